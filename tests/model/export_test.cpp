#include "model/export.h"

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/checkpoint.h"
#include "model/safetensors.h"
#include "support/doctest_torch.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

const std::string kGolden = "tests/golden/models/";

void export_to(const fs::path& path, const CheckpointReader& reader, const ExportOptions& options) {
  write_model_folder(
      path,
      reader.config(),
      [&](const std::string& name) { return reader.read(name); },
      reader.companion_files(),
      options);
}

void check_same(const CheckpointReader& a, const CheckpointReader& b) {
  REQUIRE(a.names() == b.names());
  for (const std::string& name : a.names()) {
    INFO(name);
    CHECK(test::same_bits(a.read(name), b.read(name)));
  }
}

TEST_CASE("every golden model comes back from an export bit for bit") {
  for (const char* name :
       {"llama-tied", "llama3-rope", "mistral", "qwen2", "qwen3", "sharded-qwen3-bf16"}) {
    INFO(name);
    const test::TemporaryFolder folder;
    const auto reader = CheckpointReader::open(kGolden + name);
    export_to(folder / "out", reader, {.dtype = reader.config().dtype});
    const auto again = CheckpointReader::open((folder / "out").string());
    check_same(again, reader);
    CHECK(nlohmann::json::parse(again.config().source_json) ==
          nlohmann::json::parse(reader.config().source_json));
    CHECK(fs::exists(folder / "out/README.md"));
    const SafetensorsFile file(folder / "out/model.safetensors");
    CHECK(file.metadata().at("format") == "pt");
    CHECK((file.find("lm_head.weight") == nullptr) == reader.config().tied_embeddings);
  }
}

TEST_CASE("an export in another dtype rounds the weights and says so in its config") {
  const test::TemporaryFolder folder;
  const auto reader = CheckpointReader::open(kGolden + "qwen2");
  export_to(folder / "out", reader, {.dtype = "bfloat16"});
  const auto again = CheckpointReader::open((folder / "out").string());
  CHECK(again.config().dtype == "bfloat16");
  for (const std::string& name : reader.names()) {
    CHECK(test::same_bits(again.read(name), reader.read(name).to(at::kBFloat16)));
  }
  CHECK_THROWS_AS(export_to(folder / "no", reader, {.dtype = "int4"}), UserError);
  CHECK_FALSE(fs::exists(folder / "no"));
}

TEST_CASE("a small limit gives shards with an index that load back equal") {
  const test::TemporaryFolder folder;
  const auto reader = CheckpointReader::open(kGolden + "llama3-rope");
  export_to(folder / "out", reader, {.shard_bytes = 100'000});
  check_same(CheckpointReader::open((folder / "out").string()), reader);
  CHECK_FALSE(fs::exists(folder / "out/model.safetensors"));
  const auto index = nlohmann::json::parse(read_file(folder / "out/model.safetensors.index.json"));
  std::uint64_t total = 0;
  std::set<std::string> shards;
  for (const auto& [name, file] : index["weight_map"].items()) {
    total += reader.read(name).nbytes();
    shards.insert(file);
  }
  CHECK(index["metadata"]["total_size"] == total);
  CHECK(shards.size() >= total / 100'000);
  CHECK(shards.begin()->starts_with("model-00001-of-"));
  for (const std::string& shard : shards) {
    const SafetensorsFile file(folder / "out" / shard);
    const bool one = file.tensors().size() == 1;
    CHECK((one || file.tensors().back().end <= 100'000));
  }
}

TEST_CASE("a GGUF file converts to a folder with the same values") {
  const test::TemporaryFolder folder;
  const auto reader = CheckpointReader::open("tests/golden/gguf/llama-tied-q8_0.gguf");
  export_to(folder / "out", reader, {});
  const auto again = CheckpointReader::open((folder / "out").string());
  check_same(again, reader);
  CHECK(again.config().rope == reader.config().rope);
  CHECK(again.config().rms_norm_eps == 1e-5);
}

TEST_CASE("rows beyond the vocabulary are cut, other shapes are refused") {
  const test::TemporaryFolder folder;
  const auto reader = CheckpointReader::open(kGolden + "llama-tied");
  const auto padded = [&](const std::string& name) {
    const at::Tensor tensor = reader.read(name);
    return name == "model.embed_tokens.weight" ? at::constant_pad_nd(tensor, {0, 0, 0, 7}) : tensor;
  };
  write_model_folder(folder / "out", reader.config(), padded, {}, {});
  check_same(CheckpointReader::open((folder / "out").string()), reader);
  const auto wrong = [&](const std::string& name) { return reader.read(name).flatten(); };
  CHECK_THROWS_AS(write_model_folder(folder / "out", reader.config(), wrong, {}, {}), Error);
  check_same(CheckpointReader::open((folder / "out").string()), reader);  // still the old one
}

TEST_CASE("a folder that holds no model is not replaced") {
  const test::TemporaryFolder folder;
  const auto reader = CheckpointReader::open(kGolden + "llama-tied");
  fs::create_directories(folder / "precious");
  write_file_atomic(folder / "precious/thesis.txt", "years of work");
  write_file_atomic(folder / "file", "x");
  CHECK_THROWS_AS(export_to(folder / "precious", reader, {}), UserError);
  CHECK_THROWS_AS(export_to(folder / "file", reader, {}), UserError);
  CHECK(fs::exists(folder / "precious/thesis.txt"));
}

TEST_CASE("the token ids of a model without a generation config are written") {
  const test::TemporaryFolder folder;
  const auto reader = CheckpointReader::open(kGolden + "llama-tied");
  ModelConfig config = reader.config();
  config.eos_ids = {2, 9};
  config.bos_id.reset();
  const auto read = [&](const std::string& name) { return reader.read(name); };
  write_model_folder(folder / "out", config, read, {{"tokenizer.json", "{}"}}, {});
  const auto written = nlohmann::json::parse(read_file(folder / "out/generation_config.json"));
  CHECK(written == nlohmann::json{{"eos_token_id", {2, 9}}, {"pad_token_id", 0}});
  CHECK(read_file(folder / "out/tokenizer.json") == "{}");
}

}  // namespace
}  // namespace tandem::model
