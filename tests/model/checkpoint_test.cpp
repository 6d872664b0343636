#include "model/checkpoint.h"

#include <stdlib.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/gguf.h"
#include "model/safetensors.h"
#include "support/doctest_torch.h"
#include "support/gguf_builder.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

const std::string kGolden = "tests/golden/models/";

std::string refusal(const std::string& model) {
  try {
    (void)CheckpointReader::open(model);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

bool says(const std::string& message, const std::string& part) {
  INFO(message);
  CHECK(message.find(part) != std::string::npos);
  return message.find('\n') == std::string::npos;
}

TEST_CASE("every golden model opens, and its tensors are those of its files") {
  for (const char* name : {"llama-tied", "llama3-rope", "mistral", "qwen2", "qwen3"}) {
    INFO(name);
    const auto reader = CheckpointReader::open(kGolden + name);
    const SafetensorsFile file(kGolden + name + "/model.safetensors");
    CHECK(reader.names().size() == file.tensors().size());
    for (const std::string& tensor : reader.names()) {
      CHECK(test::same_bits(reader.read(tensor), file.tensor(tensor)));
    }
    CHECK_FALSE(reader.has_tokenizer());
    CHECK_THROWS_AS((void)reader.tokenizer(), UserError);
    CHECK(reader.companion_files().count("generation_config.json") == 1);
  }
}

TEST_CASE("a sharded model reads in the file's dtype") {
  const auto reader = CheckpointReader::open(kGolden + "sharded-qwen3-bf16");
  CHECK(reader.names().size() == 36);
  CHECK(reader.has("lm_head.weight"));
  CHECK_FALSE(reader.has("other"));
  for (const std::string& name : reader.names()) {
    CHECK((reader.read(name).scalar_type() == at::kBFloat16));
    CHECK(reader.stored_dtype(name) == "BF16");
  }
  CHECK_THROWS_AS((void)reader.read("other"), UserError);
}

TEST_CASE("a GGUF file reads like the folder that it was made from") {
  TANDEM_NEEDS_SHARED("golden/gguf/llama-tied-f32.gguf");
  const auto gguf =
      CheckpointReader::open((test::shared_data() / "golden/gguf/llama-tied-f32.gguf").string());
  const auto folder = CheckpointReader::open(kGolden + "llama-tied");
  CHECK(gguf.is_gguf());
  CHECK(gguf.names() == folder.names());
  for (const std::string& name : gguf.names()) {
    INFO(name);
    CHECK(test::same_bits(gguf.read(name), folder.read(name)));
  }
}

TEST_CASE("a quantised GGUF file is close to the folder, q and k rows included") {
  const auto gguf = CheckpointReader::open("tests/golden/gguf/llama-tied-q8_0.gguf");
  const auto folder = CheckpointReader::open(kGolden + "llama-tied");
  CHECK(gguf.stored_dtype("model.embed_tokens.weight") == "Q8_0");
  for (const std::string& name : gguf.names()) {
    INFO(name);
    const at::Tensor wanted = folder.read(name);
    CHECK(test::close(gguf.read(name), wanted, 0.0, 0.006 * wanted.abs().max().item<double>()));
  }
}

TEST_CASE("interleaved rows of q and k come back half-split, those of v as they are") {
  // One head of 4: rows 0 1 2 3 of Hugging Face lie as 0 2 1 3.
  test::GgufBuilder builder;
  builder.string("general.architecture", "llama");
  for (const char* key : {"block_count", "attention.head_count", "attention.head_count_kv"}) {
    builder.integer(std::string("llama.") + key, 1);
  }
  for (const char* key : {"embedding_length", "feed_forward_length", "context_length"}) {
    builder.integer(std::string("llama.") + key, 4);
  }
  const std::vector<float> rows = {0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 3, 3, 3, 3};
  builder.floats("token_embd.weight", {4, 4}, rows);
  builder.floats("output_norm.weight", {4}, {1, 1, 1, 1});
  for (const char* name : {"attn_norm", "ffn_norm"}) {
    builder.floats("blk.0." + std::string(name) + ".weight", {4}, {1, 1, 1, 1});
  }
  for (const char* name :
       {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    builder.floats("blk.0." + std::string(name) + ".weight", {4, 4}, rows);
  }
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "m.gguf", builder.build());
  const auto reader = CheckpointReader::open((folder / "m.gguf").string());
  const at::Tensor ordered = at::arange(4, at::kFloat);
  const at::Tensor as_stored = at::tensor({0.0f, 2.0f, 1.0f, 3.0f});
  const std::string attention = "model.layers.0.self_attn.";
  for (const char* name : {"q_proj", "k_proj"}) {
    CHECK(test::same_bits(reader.read(attention + name + ".weight").select(1, 2), ordered));
  }
  CHECK(test::same_bits(reader.read(attention + "v_proj.weight").select(1, 2), as_stored));
}

TEST_CASE("models of the larger test data open") {
  TANDEM_NEEDS_SHARED("stories260K/hf/model.safetensors");
  const auto stories = CheckpointReader::open((test::shared_data() / "stories260K/hf").string());
  CHECK(stories.names().size() == 5 * 9 + 2);
  CHECK(stories.has_tokenizer());
  CHECK(stories.tokenizer().size() == 512);
  const auto verl =
      CheckpointReader::open((test::shared_data() / "verl-arithmetic-sequence/model").string());
  CHECK(verl.has("lm_head.weight"));
  CHECK((verl.read("lm_head.weight").scalar_type() == at::kBFloat16));
}

TEST_CASE("the head of a tied model may be stored once more, but not differ") {
  const test::TemporaryFolder folder;
  const fs::path copy = folder / "model";
  fs::copy(kGolden + "llama-tied", copy);
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  const SafetensorsFile file(kGolden + "llama-tied/model.safetensors");
  for (const TensorInfo& info : file.tensors()) {
    tensors.emplace_back(info.name, file.tensor(info.name));
  }
  tensors.emplace_back("lm_head.weight", file.tensor("model.embed_tokens.weight").clone());
  write_safetensors(copy / "model.safetensors", tensors);
  const auto reader = CheckpointReader::open(copy.string());
  const auto names = reader.names();
  CHECK(std::find(names.begin(), names.end(), "lm_head.weight") == names.end());
  tensors.back().second[3][5] += 1.0;
  write_safetensors(copy / "model.safetensors", tensors);
  CHECK(says(refusal(copy.string()), "tie_word_embeddings"));
}

TEST_CASE("what is no model is refused in one line") {
  const test::TemporaryFolder folder;
  ::setenv("HF_HUB_CACHE", folder.path().c_str(), 1);
  CHECK(says(refusal(""), "no such model"));
  CHECK(says(refusal("no such thing"), "no such model"));
  CHECK(says(refusal("some/model"), "hf download some/model"));
  CHECK(says(refusal(folder.path().string()), "no config.json"));
  CHECK(says(refusal(kGolden + "qwen2/model.safetensors"), "give the folder"));
  CHECK(says(refusal(kGolden + "qwen2/config.json"), "no GGUF file"));
  CHECK(says(refusal(kGolden + "phi3"), "'phi3'"));
  CHECK(says(refusal(kGolden + "gemma3"), "'gemma3_text'"));
  CHECK(says(refusal(kGolden + "qwen3-moe"), "'qwen3_moe'"));
  ::unsetenv("HF_HUB_CACHE");
}

TEST_CASE("weights of another model, truncated or of another dtype are refused by name") {
  const test::TemporaryFolder folder;
  const fs::path copy = folder / "model";
  fs::copy(kGolden + "llama-tied", copy);
  const auto target = copy / "model.safetensors";
  fs::copy(kGolden + "qwen2/model.safetensors", target, fs::copy_options::overwrite_existing);
  CHECK(says(refusal(copy.string()), "embed_tokens.weight is [300, 72] instead of [257, 64]"));
  fs::resize_file(target, 100000);
  CHECK(says(refusal(copy.string()), "truncated"));

  std::vector<std::pair<std::string, at::Tensor>> tensors;
  const SafetensorsFile file(kGolden + "llama-tied/model.safetensors");
  for (const TensorInfo& info : file.tensors()) {
    tensors.emplace_back(info.name, file.tensor(info.name).to(at::kInt));
  }
  write_safetensors(target, tensors);
  CHECK(says(refusal(copy.string()), "has dtype I32; supported: F32, F16, BF16"));
}

}  // namespace
}  // namespace tandem::model
