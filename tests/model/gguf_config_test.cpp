#include <cmath>
#include <cstdlib>
#include <numbers>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/gguf.h"
#include "model/gguf_names.h"
#include "model/gguf_vocabulary.h"
#include "support/gguf_builder.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace tandem::model {
namespace {

using test::GgufBuilder;

// The metadata of a small model, all but `left_out`.
GgufBuilder small_model(const std::string& architecture = "llama",
                        const std::string& left_out = "") {
  GgufBuilder builder;
  builder.string("general.architecture", architecture);
  const std::pair<const char*, std::uint32_t> sizes[] = {
      {"block_count", 2},
      {"embedding_length", 64},
      {"feed_forward_length", 160},
      {"attention.head_count", 4},
      {"attention.head_count_kv", 2},
      {"context_length", 512},
      {"rope.dimension_count", 16},
  };
  for (const auto& [key, value] : sizes) {
    if (key != left_out) {
      builder.integer(architecture + "." + key, value);
    }
  }
  builder.number(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  return builder.floats("token_embd.weight", {64, 3}, std::vector<float>(192, 1.0f));
}

ModelConfig config_of(const GgufBuilder& builder) {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "m.gguf", builder.build());
  return config_from_gguf(GgufFile(folder / "m.gguf"));
}

std::string refusal(const GgufBuilder& builder) {
  try {
    config_of(builder);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("a GGUF file gives the config of the model that it was made from") {
  const GgufFile file("tests/golden/gguf/llama-tied-q8_0.gguf");
  ModelConfig got = config_from_gguf(file);
  const std::string path = "tests/golden/models/llama-tied/config.json";
  ModelConfig wanted = parse_config(read_file(path), path);
  CHECK_FALSE(got.source_json.empty());
  got.source_json = wanted.source_json;
  // What the converter left out of the file.
  wanted.eos_ids = got.eos_ids;
  wanted.bos_id = got.bos_id;
  wanted.pad_id = got.pad_id;
  CHECK(got == wanted);
  CHECK(got.rms_norm_eps == 1e-5);
}

TEST_CASE("the golden names map to Hugging Face's") {
  const auto golden =
      nlohmann::json::parse(read_file("tests/golden/gguf/llama-tied-q8_0.json"))["names"];
  CHECK(golden.size() == 20);
  for (const auto& [gguf, hf] : golden.items()) {
    CHECK(hf_name_of_gguf(gguf) == hf.get<std::string>());
  }
  CHECK(hf_name_of_gguf("output.weight") == "lm_head.weight");
  CHECK(hf_name_of_gguf("blk.12.attn_q.bias") == "model.layers.12.self_attn.q_proj.bias");
  CHECK(hf_name_of_gguf("blk.0.attn_k_norm.weight") == "model.layers.0.self_attn.k_norm.weight");
  for (const char* other : {"",
                            "blk.",
                            "blk..attn_q.weight",
                            "blk.1.weight",
                            "blk.x.attn_q.weight",
                            "blk.0.ffn_gate_inp.weight",
                            "token_embd",
                            "token_embd.scale"}) {
    CAPTURE(other);
    CHECK_FALSE(hf_name_of_gguf(other).has_value());
  }
}

TEST_CASE("families are told by their architecture, and others are refused by name") {
  const ModelConfig qwen2 = config_of(small_model("qwen2"));
  CHECK(qwen2.attention_bias);
  const ModelConfig qwen3 = config_of(small_model("qwen3"));
  CHECK(qwen3.qk_norm);
  CHECK(qwen3.head_dim == 16);
  CHECK(config_of(small_model()).sliding_window_of_layer == std::vector<std::int64_t>{0, 0});
  for (const char* other : {"gemma3", "phi3", "mamba"}) {
    const std::string message = refusal(small_model(other));
    CAPTURE(message);
    CHECK(message.find("'" + std::string(other) + "'") != std::string::npos);
    CHECK(message.find("supported: llama, mistral, qwen2, qwen3") != std::string::npos);
  }
}

TEST_CASE("a missing key is named, and so is what this version would compute otherwise") {
  CHECK(refusal(small_model("llama", "block_count")).find("'llama.block_count'") !=
        std::string::npos);
  CHECK(refusal(small_model().integer("llama.expert_count", 8)).find("mixture of experts") !=
        std::string::npos);
  CHECK(refusal(small_model().integer("llama.attention.sliding_window", 8)).find("window") !=
        std::string::npos);
  CHECK(refusal(small_model().integer("llama.attention.key_length", 32))
            .find("'llama.rope.dimension_count'") != std::string::npos);
  CHECK(refusal(small_model().string("llama.rope.scaling.type", "yarn")).find("'yarn'") !=
        std::string::npos);
  CHECK(refusal(small_model().number("llama.rope.freq_base", std::nanf(""))).find("not finite") !=
        std::string::npos);
}

TEST_CASE("linear rotary scaling is read") {
  const ModelConfig config = config_of(small_model()
                                           .string("llama.rope.scaling.type", "linear")
                                           .number("llama.rope.scaling.factor", 4.0f));
  CHECK(config.rope == RopeConfig{.type = RopeType::kLinear, .theta = 10000.0, .factor = 4.0});
}

// What the converter of Llama 3 stores: wave lengths below 2048 keep their frequency, those above
// 8192 are divided by the factor, and between them it blends.
std::vector<float> llama3_divisors() {
  std::vector<float> divisors;
  for (int j = 0; j < 8; ++j) {
    const double wave = 2.0 * std::numbers::pi * std::pow(500000.0, j / 8.0);
    const double smooth = (8192.0 / wave - 1.0) / 3.0;
    const double divisor = wave < 2048.0   ? 1.0
                           : wave > 8192.0 ? 32.0
                                           : 1.0 / ((1.0 - smooth) / 32.0 + smooth);
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

TEST_CASE("Llama 3's scaling is recognised from the factors that it is stored as") {
  auto divisors = llama3_divisors();
  const auto model = [&] {
    return small_model()
        .number("llama.rope.freq_base", 500000.0f)
        .floats("rope_freqs.weight", {8}, divisors);
  };
  CHECK(config_of(model()).rope == RopeConfig{RopeType::kLlama3, 500000.0, 32.0, 1.0, 4.0, 8192});
  divisors[4] = 3.0f;
  CHECK(refusal(model()).find("rope_freqs.weight") != std::string::npos);
}

TEST_CASE("the vocabulary is read from the metadata") {
  const test::TemporaryFolder folder;
  const auto strings = [](const std::vector<std::string>& values) {
    std::string bytes = GgufBuilder::u32(8) + GgufBuilder::u64(values.size());
    for (const std::string& value : values) {
      bytes += GgufBuilder::text(value);
    }
    return bytes;
  };
  GgufBuilder builder = small_model();
  CHECK_FALSE(config_of(builder).bos_id.has_value());
  write_file_atomic(folder / "none.gguf", builder.build());
  CHECK_FALSE(has_vocabulary(GgufFile(folder / "none.gguf")));
  CHECK_THROWS_AS(vocabulary_from_gguf(GgufFile(folder / "none.gguf")), UserError);

  builder.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "smollm")
      .entry("tokenizer.ggml.tokens", 9, strings({"a", "b", "ab"}))
      .entry("tokenizer.ggml.merges", 9, strings({"a b"}))
      .integer("tokenizer.ggml.bos_token_id", 1)
      .integer("tokenizer.ggml.eos_token_id", 2)
      .entry("tokenizer.ggml.add_bos_token", 7, std::string(1, '\1'))
      .string("tokenizer.chat_template", "{{ x }}");
  write_file_atomic(folder / "m.gguf", builder.build());
  const GgufFile file(folder / "m.gguf");
  const auto vocabulary = vocabulary_from_gguf(file);
  CHECK(vocabulary.model == "gpt2");
  CHECK(vocabulary.pre == "smollm");
  CHECK(vocabulary.tokens == std::vector<std::string>{"a", "b", "ab"});
  CHECK(vocabulary.merges == std::vector<std::string>{"a b"});
  CHECK(vocabulary.bos_id == 1);
  CHECK(vocabulary.add_bos == true);
  CHECK_FALSE(vocabulary.pad_id.has_value());
  CHECK(vocabulary.chat_template == "{{ x }}");
  CHECK(config_from_gguf(file).bos_id == 1);
  CHECK(config_from_gguf(file).eos_ids == std::vector<std::int64_t>{2});
}

}  // namespace
}  // namespace tandem::model
