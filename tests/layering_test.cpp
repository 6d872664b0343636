// The module graph of docs/architecture.md, checked against the #include lines of src/.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;

struct Module {
  std::set<std::string> modules;  // which it may include; each stands further up in the table
  std::set<std::string> outside;  // first component of library headers, "" for the standard library
};

// The reward and tool ABI ("tandem") may be included by the modules that load it.
const std::map<std::string, Module> kModules = {
    {"base", {{}, {"fmt"}}},
    {"config", {{"base"}, {"fmt", "yaml-cpp"}}},
    {"text", {{"base"}, {"fmt", "pcre2", "utf8proc", "nlohmann", "zlib"}}},
    {"protocol", {{"base"}, {"fmt", "cereal", "nlohmann"}}},
    {"tensor", {{"base"}, {"fmt", "torch"}}},
    {"kernels", {{"base", "tensor"}, {"fmt", "torch"}}},
    {"data", {{"base", "protocol", "text"}, {"fmt", "nlohmann"}}},
    {"model", {{"base", "tensor", "kernels", "text"}, {"fmt", "torch", "nlohmann"}}},
    {"rewards",
     {{"base", "text", "protocol"}, {"fmt", "tandem", "boost", "nlohmann", "pcre2", "cereal"}}},
    {"rollout",
     {{"base", "text", "protocol", "tensor", "kernels", "model"},
      {"fmt", "torch", "boost", "nlohmann"}}},
    {"trainer", {{"base", "protocol", "tensor", "kernels", "model"}, {"fmt", "torch", "cereal"}}},
    {"weightsync", {{"base", "tensor", "model"}, {"fmt", "torch"}}},
    {"app",
     {{"base",
       "config",
       "text",
       "protocol",
       "tensor",
       "kernels",
       "data",
       "model",
       "rewards",
       "rollout",
       "trainer",
       "weightsync"},
      {"fmt", "tandem", "torch", "boost", "nlohmann", "CLI", "yaml-cpp"}}},
};

// Modules whose sources, except for the named files, must not know LibTorch at all.
const std::set<std::string> kTorchFree = {"base", "config", "text", "protocol", "data", "rewards"};

std::string library_of(const std::string& header) {
  static const std::map<std::string, std::string> kFiles = {
      {"pcre2.h", "pcre2"}, {"utf8proc.h", "utf8proc"}, {"zlib.h", "zlib"}};
  if (const auto found = kFiles.find(header); found != kFiles.end()) {
    return found->second;
  }
  const std::string first = header.substr(0, header.find('/'));
  if (first == "ATen" || first == "c10" || first == "torch") {
    return "torch";
  }
  static const std::set<std::string> kLibraries = {
      "fmt", "yaml-cpp", "nlohmann", "cereal", "boost", "CLI", "tandem"};
  return kLibraries.count(first) == 1 ? first : "";  // the rest: standard library and system
}

TEST_CASE("modules include only the layers below them, and only their own outside libraries") {
  const fs::path root = TANDEM_SOURCE_DIR;
  const std::regex quoted("^\\s*#include \"([a-z0-9_]+)/.*");
  const std::regex angled("^\\s*#include <([^>]+)>.*");
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name == "CMakeLists.txt") {
      continue;
    }
    const std::string module = fs::relative(entry.path(), root).begin()->string();
    CAPTURE(entry.path().string());
    REQUIRE(kModules.count(module) == 1);
    const Module& allowed = kModules.at(module);
    std::ifstream stream(entry.path());
    std::smatch match;
    for (std::string line; std::getline(stream, line);) {
      CAPTURE(line);
      if (std::regex_match(line, match, quoted)) {
        CHECK((match[1] == module || allowed.modules.count(match[1]) == 1));
      } else if (std::regex_match(line, match, angled)) {
        const std::string library = library_of(match[1]);
        CHECK((library.empty() || allowed.outside.count(library) == 1));
        CHECK_FALSE((library == "torch" && kTorchFree.count(module) == 1));
      }
    }
  }
}

// A cycle would need a module that reaches itself.
TEST_CASE("the module graph has no cycle") {
  for (const auto& [name, module] : kModules) {
    std::set<std::string> reached = module.modules;
    for (std::size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const auto& next : std::set<std::string>(reached)) {
        reached.insert(kModules.at(next).modules.begin(), kModules.at(next).modules.end());
      }
    }
    CAPTURE(name);
    CHECK(reached.count(name) == 0);
  }
}

}  // namespace
