#include "model/hub_cache.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "support/temporary_folder.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'a');

// A cache as the Hugging Face tools lay it out, with one model `org/name` on branch main.
class FakeCache {
 public:
  FakeCache() {
    ::setenv("HF_HUB_CACHE", folder_.path().c_str(), 1);
    fs::create_directories(repository() / "refs");
    fs::create_directories(repository() / "blobs");
    fs::create_directories(snapshot());
    write_file_atomic(repository() / "refs" / "main", kCommit + "\n");
    write_file_atomic(repository() / "blobs" / "abc", "{}");
    fs::create_symlink("../../blobs/abc", snapshot() / "config.json");
  }
  FakeCache(const FakeCache&) = delete;
  FakeCache& operator=(const FakeCache&) = delete;
  ~FakeCache() { ::unsetenv("HF_HUB_CACHE"); }

  [[nodiscard]] fs::path repository() const { return folder_ / "models--org--name"; }
  [[nodiscard]] fs::path snapshot() const { return repository() / "snapshots" / kCommit; }

 private:
  test::TemporaryFolder folder_;
};

std::string refusal(const std::string& name, const std::string& revision = "main") {
  try {
    find_in_hub_cache(name, revision);
  } catch (const UserError& error) {
    return error.what();
  }
  return "found";
}

TEST_CASE("the root follows HF_HUB_CACHE, then HF_HOME, then the home folder") {
  ::unsetenv("HF_HUB_CACHE");
  ::unsetenv("HF_HOME");
  ::setenv("HOME", "/home/somebody", 1);
  CHECK(hub_cache_root() == "/home/somebody/.cache/huggingface/hub");
  ::setenv("HF_HOME", "/hf", 1);
  CHECK(hub_cache_root() == "/hf/hub");
  ::setenv("HF_HUB_CACHE", "/cache", 1);
  CHECK(hub_cache_root() == "/cache");
  ::unsetenv("HF_HUB_CACHE");
  ::unsetenv("HF_HOME");
}

TEST_CASE("a name is found by branch, by commit and with a link to its files") {
  const FakeCache cache;
  CHECK(find_in_hub_cache("org/name") == cache.snapshot());
  CHECK(find_in_hub_cache("org/name", kCommit) == cache.snapshot());
  CHECK(read_file(find_in_hub_cache("org/name") / "config.json") == "{}");
}

TEST_CASE("what is missing is an error with the line that fetches it") {
  const FakeCache cache;
  CHECK(refusal("org/other").find("fetch it with: hf download org/other") != std::string::npos);
  CHECK(refusal("org/name", "v2").find("hf download org/name --revision v2") != std::string::npos);
  CHECK(refusal("org/name", std::string(40, 'b')).find("no snapshot") != std::string::npos);
  fs::remove(cache.repository() / "blobs" / "abc");
  const std::string message = refusal("org/name");
  CHECK(message.find("config.json") != std::string::npos);
  CHECK(message.find("hf download org/name") != std::string::npos);
}

TEST_CASE("a branch file that leads out of the cache is refused") {
  const FakeCache cache;
  write_file_atomic(cache.repository() / "refs" / "main", "../../..");
  CHECK(refusal("org/name").find("no snapshot") != std::string::npos);
  CHECK(refusal("org/name", "../../etc") != "found");
}

TEST_CASE("only org/name is a name of the hub") {
  CHECK(is_hub_name("HuggingFaceTB/SmolLM2-135M-Instruct"));
  for (const char* bad :
       {"", "name", "/name", "org/", "a/b/c", "../name", "org/..", "a b/c", "org/$x"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_hub_name(bad));
    CHECK(refusal(bad).find("neither a folder") != std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::model
