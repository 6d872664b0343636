#include "model/hub_cache.h"

#include <algorithm>
#include <cstdlib>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/in_quotes.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_commit(const std::string& revision) {
  return revision.size() == 40 &&
         revision.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string trimmed(const std::string& text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

[[noreturn]] void refuse(const std::string& name,
                         const std::string& revision,
                         const std::string& problem) {
  const std::string option = revision == "main" ? "" : " --revision " + revision;
  fail<UserError>("{}: {}; fetch it with: hf download {}{}", name, problem, name, option);
}

}  // namespace

bool is_hub_name(const std::string& model) {
  const auto slash = model.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == model.size()) {
    return false;
  }
  const bool plain = std::all_of(
      model.begin(), model.end(), [](char c) { return is_name_character(c) || c == '/'; });
  return plain && model.find('/', slash + 1) == std::string::npos && model[0] != '.' &&
         model[slash + 1] != '.';
}

fs::path hub_cache_root() {
  if (const std::string cache = environment("HF_HUB_CACHE"); !cache.empty()) {
    return cache;
  }
  if (const std::string home = environment("HF_HOME"); !home.empty()) {
    return fs::path(home) / "hub";
  }
  return fs::path(environment("HOME")) / ".cache" / "huggingface" / "hub";
}

fs::path find_in_hub_cache(const std::string& name, const std::string& revision) {
  if (!is_hub_name(name)) {
    fail<UserError>("{}: is neither a folder, a .gguf file nor a name of the form org/name",
                    in_quotes(name));
  }
  std::string folder = name;
  folder.replace(folder.find('/'), 1, "--");
  const fs::path repository = hub_cache_root() / ("models--" + folder);
  if (!fs::is_directory(repository)) {
    refuse(name,
           revision,
           fmt::format("is neither a folder here nor in the cache {}", hub_cache_root().string()));
  }
  std::string commit = revision;
  if (!is_commit(revision)) {
    const fs::path ref = repository / "refs" / revision;
    if (!fs::is_regular_file(ref)) {
      refuse(name, revision, fmt::format("the cache has no revision {}", in_quotes(revision)));
    }
    commit = trimmed(read_file(ref, 4096));
  }
  const fs::path snapshot = repository / "snapshots" / commit;
  if (!is_commit(commit) || !fs::is_directory(snapshot)) {
    refuse(name, revision, fmt::format("the cache has no snapshot {}", in_quotes(commit)));
  }
  for (const auto& entry : fs::directory_iterator(snapshot)) {
    if (entry.is_symlink() && !fs::exists(entry.path())) {
      refuse(name,
             revision,
             fmt::format("{} of the cache points to a file that is gone", entry.path().string()));
    }
  }
  return snapshot;
}

}  // namespace tandem::model
