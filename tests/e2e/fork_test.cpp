// Workers of rewards are forked before the trainer has any thread: a fork beside threads may
// deadlock in the child.
#include <filesystem>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "rewards/reward_library.h"
#include "support/program.h"
#include "support/workplace.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A reward that notes how many threads the trainer has, when it is loaded and when it is called.
// The worker's parent is the spawner, whose parent is the trainer.
std::string counting_reward(const fs::path& notes) {
  return "static const char* const kNotes = \"" + notes.string() + "\";\n" + R"(
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <tandem/reward.hpp>

static std::string parent_of(const std::string& pid) {
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string word; status >> word;) {
    if (word == "PPid:") {
      status >> word;
      return word;
    }
  }
  return "";
}

static void note(const char* when) {
  const std::string trainer = parent_of(std::to_string(getppid()));
  const std::filesystem::directory_iterator threads("/proc/" + trainer + "/task");
  const auto count = std::distance(begin(threads), end(threads));
  std::ofstream(kNotes, std::ios::app) << when << " " << count << "\n";
}

static const bool loaded = (note("loaded"), true);

TANDEM_REWARD(counting) {
  note("called");
  return loaded ? static_cast<double>(sample.completion_ids().size()) : 0.0;
}
)";
}

TEST_CASE(
    "a reward library is loaded while the trainer has one thread, and called when it has more") {
  const test::Workplace place;
  const fs::path notes = place.folder / "notes";
  const std::string library =
      rewards::test::build_library(place.folder.path(), "counting", counting_reward(notes));
  auto text = test::recipe_text(place.folder.path());
  const std::string kind = "kind: exact_match";
  text.replace(text.find(kind), kind.size(), "library: " + library);
  text.replace(text.find("name: accuracy"), 14, "name: counting");
  test::write(place.folder / "counting.yaml", text);
  const auto trained = test::run_program("train " + place.at("counting.yaml") + " threads=2");
  REQUIRE_MESSAGE(trained.status == 0, trained.err);

  std::set<int> loaded;
  std::set<int> called;
  std::istringstream lines(read_file(notes));
  int count = 0;
  for (std::string when; lines >> when >> count;) {
    (when == "loaded" ? loaded : called).insert(count);
  }
  CHECK(loaded == std::set<int>{1});
  REQUIRE_FALSE(called.empty());
  CHECK(*called.begin() > 1);
}

}  // namespace
}  // namespace tandem
