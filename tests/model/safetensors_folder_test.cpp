#include "model/safetensors_folder.h"

#include <string>

#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "support/damage.h"
#include "support/temporary_folder.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

const fs::path kSharded = "tests/golden/models/sharded-qwen3-bf16";
const std::string kIndex = "model.safetensors.index.json";

std::string refusal(const fs::path& folder) {
  try {
    const SafetensorsFolder opened(folder);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// A copy of the sharded golden model, to be damaged.
class ShardedCopy {
 public:
  ShardedCopy() { fs::copy(kSharded, path()); }
  [[nodiscard]] fs::path path() const { return folder_ / "model"; }
  [[nodiscard]] fs::path operator/(const std::string& name) const { return path() / name; }

  void replace_in_index(const std::string& from, const std::string& to) const {
    std::string index = read_file(*this / kIndex);
    const auto at = index.find(from);
    REQUIRE(at != std::string::npos);
    write_file_atomic(*this / kIndex, index.replace(at, from.size(), to));
  }

 private:
  test::TemporaryFolder folder_;
};

bool says(const std::string& message, const std::string& part) {
  CAPTURE(message);
  CHECK(message.find(part) != std::string::npos);
  return message.find('\n') == std::string::npos;
}

TEST_CASE("shards and single files are opened") {
  const SafetensorsFolder sharded(kSharded);
  CHECK(sharded.places().size() == 3 * 11 + 3);
  CHECK(sharded.find("lm_head.weight").info->shape == std::vector<std::int64_t>{515, 64});
  CHECK_THROWS_AS((void)sharded.find("other"), UserError);
  CHECK(SafetensorsFolder("tests/golden/models/qwen2").places().size() == 2 * 12 + 2);
}

TEST_CASE("a folder without weights says what to do") {
  const test::TemporaryFolder folder;
  CHECK(says(refusal(folder.path()), "fetch the complete model"));
  write_file_atomic(folder / "pytorch_model.bin", "x");
  CHECK(says(refusal(folder.path()), "as safetensors first"));
}

TEST_CASE("a missing shard and an index naming a missing tensor are named") {
  const ShardedCopy copy;
  REQUIRE(refusal(copy.path()) == "accepted");
  copy.replace_in_index("\"model.norm.weight\"", "\"model.other.weight\"");
  CHECK(says(refusal(copy.path()), "'model.other.weight'"));
  fs::remove(copy / "model-00002-of-00003.safetensors");
  CHECK(says(refusal(copy.path()), "'model-00002-of-00003.safetensors' is missing"));
}

TEST_CASE("an index naming the wrong shard, and a tensor in two shards are named") {
  const ShardedCopy wrong;
  wrong.replace_in_index("\"model.embed_tokens.weight\": \"model-00001-of",
                         "\"model.embed_tokens.weight\": \"model-00003-of");
  CHECK(says(refusal(wrong.path()), "'model.embed_tokens.weight' is in 'model-00003-of-00003"));
  const ShardedCopy twice;
  fs::copy(twice / "model-00001-of-00003.safetensors", twice / "again.safetensors");
  twice.replace_in_index("\"weight_map\": {", "\"weight_map\": {\"x\": \"again.safetensors\",");
  CHECK(says(refusal(twice.path()), "stands in another shard too"));
}

TEST_CASE("an index that leads out of the folder or makes no sense is refused") {
  for (const char* text : {"",
                           "{",
                           "[]",
                           "{}",
                           R"({"weight_map": []})",
                           R"({"weight_map": {}})",
                           R"({"weight_map": {"a": 1}})",
                           R"({"weight_map": {"a": "../b"}})",
                           R"({"weight_map": {"a": "/etc/passwd"}})",
                           R"({"weight_map": {"a": ""}})",
                           R"({"weight_map": {"a": ".."}})"}) {
    CAPTURE(text);
    try {
      parse_shard_index(text, "index");
      FAIL("accepted");
    } catch (const UserError& error) {
      CHECK(std::string(error.what()).starts_with("index"));
    }
  }
}

TEST_CASE("damaged indexes are read or refused, and never crash") {
  const std::string good = read_file(kSharded / kIndex);
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    try {
      parse_shard_index(test::damaged(good, seed, good.size()), "index");
    } catch (const UserError&) {
      ++refused;
    }
  }
  CHECK(refused > 150);
}

}  // namespace
}  // namespace tandem::model
