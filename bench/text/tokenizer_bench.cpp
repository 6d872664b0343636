// Megabytes of text a second on one core.  tokenizer_bench TEXT_FILE TOKENIZER_FOLDER...
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/bench.h"
#include "text/tokenizer.h"

namespace tandem {
namespace {

constexpr double kSeconds = 1.0;
constexpr double kMega = 1e6;

std::vector<std::string> read_lines(const char* path) {
  std::ifstream stream(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

void run(const std::vector<std::string>& lines, const std::string& folder) {
  const text::Tokenizer tokenizer = text::Tokenizer::from_folder(folder);
  double bytes = 0;
  std::vector<std::vector<text::TokenId>> ids(lines.size());
  for (const std::string& line : lines) {
    bytes += static_cast<double>(line.size());
  }
  const auto encode = [&] {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ids[i] = tokenizer.encode(lines[i]);
    }
  };
  const double start = bench::now_s(true);
  encode();
  const double first_s = bench::now_s(true) - start;  // with an empty cache of words
  const bench::Times encoding = bench::measure(encode, kSeconds, true);
  std::size_t decoded_bytes = 0;
  const auto decode = [&] {
    for (const auto& line : ids) {
      decoded_bytes += tokenizer.decode(line, true).size();
    }
  };
  const bench::Times decoding = bench::measure(decode, kSeconds, true);
  fmt::print(
      "{{\"name\": \"tokenizer\", \"folder\": \"{}\", \"megabytes\": {:.2f}, \"unit\": \"MB/s\", "
      "\"first\": {:.1f}, \"encode\": {:.1f}, \"decode\": {:.1f}}}\n",
      folder,
      bytes / kMega,
      bytes / kMega / first_s,
      bytes / kMega / encoding.best_s,
      bytes / kMega / decoding.best_s);
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: tokenizer_bench TEXT_FILE TOKENIZER_FOLDER...\n", stderr);
    return 2;
  }
  try {
    const auto lines = tandem::read_lines(argv[1]);
    for (int i = 2; i < argc; ++i) {
      tandem::run(lines, argv[i]);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "tokenizer_bench: {}\n", error.what());
    return 2;
  }
  return 0;
}
