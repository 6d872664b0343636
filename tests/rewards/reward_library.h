// Builds reward libraries the way a user does, and samples to score with them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "rewards/reward.h"
#include "support/temporary_folder.h"

namespace tandem::rewards::test {

using tandem::test::TemporaryFolder;

/// Compiles `source` by a plain g++ into FOLDER/NAME.so and returns that path.
inline std::string build_library(const std::filesystem::path& folder,
                                 const std::string& name,
                                 const std::string& source) {
  const std::string code = (folder / (name + ".cpp")).string();
  const std::string library = (folder / (name + ".so")).string();
  std::ofstream(code) << source;
  const std::string command =
      "g++ -std=c++17 -Wall -Wextra -Werror -shared -fPIC -I include " + code + " -o " + library;
  if (std::system(command.c_str()) != 0) {
    fail("cannot run: {}", command);
  }
  return library;
}

inline std::string write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

inline RewardConfig library_config(const std::string& library, const std::string& function) {
  RewardConfig config;
  config.name = function;
  config.library = library;
  config.timeout_ms = 20000;  // for calls that must not miss it, on a busy machine
  return config;
}

/// `count` samples named "s0", "s1"... with completions "0", "1"...
inline std::vector<RewardSample> make_samples(std::size_t count) {
  std::vector<RewardSample> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    samples[i].id = "s" + std::to_string(i);
    samples[i].prompt_text = "count to " + std::to_string(i);
    samples[i].completion = std::to_string(i);
    samples[i].completion_ids = {static_cast<TokenId>(i)};
    samples[i].ground_truth = std::to_string(i);
  }
  return samples;
}

/// What `action` throws of type E, as text; empty when it throws nothing.
template <class E, class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tandem::rewards::test
