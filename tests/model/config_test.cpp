#include "model/config.h"

#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "support/shared_data.h"

namespace tandem::model {
namespace {

using nlohmann::json;

const std::string kGolden = "tests/golden/models/";

ModelConfig load(const std::string& path) {
  return parse_config(read_file(path), path);
}

ModelConfig without_source(ModelConfig config) {
  config.source_json.clear();
  return config;
}

// A small valid config, changed by `edit`.
ModelConfig parse_edited(const std::function<void(json&)>& edit) {
  json value = json::parse(read_file(kGolden + "llama-tied/config.v4.json"));
  edit(value);
  return parse_config(value.dump(), "config.json");
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

bool says(const std::string& message, const std::string& part) {
  CAPTURE(message);
  CHECK(message.find(part) != std::string::npos);
  return message.find('\n') == std::string::npos;
}

TEST_CASE("both spellings of every golden config mean the same") {
  for (const char* name :
       {"llama-tied", "llama3-rope", "mistral", "qwen2", "qwen3", "sharded-qwen3-bf16"}) {
    CAPTURE(name);
    const std::string folder = kGolden + name;
    CHECK(without_source(load(folder + "/config.json")) ==
          without_source(load(folder + "/config.v4.json")));
  }
}

TEST_CASE("the fields of the golden configs arrive") {
  const ModelConfig llama = load(kGolden + "llama3-rope/config.json");
  CHECK(llama.family == "llama");
  CHECK(llama.hidden_size == 64);
  CHECK(llama.num_heads == 4);
  CHECK(llama.num_kv_heads == 1);
  CHECK(llama.head_dim == 32);
  CHECK(llama.vocab_size == 320);
  CHECK(llama.max_positions == 512);
  CHECK(llama.rms_norm_eps == 1e-5);
  CHECK_FALSE(llama.tied_embeddings);
  CHECK(llama.rope == RopeConfig{RopeType::kLlama3, 500000.0, 8.0, 1.0, 4.0, 64});
  CHECK(llama.eos_ids == std::vector<std::int64_t>{2});
  CHECK(llama.bos_id == 1);
  CHECK(llama.pad_id == 0);

  CHECK(load(kGolden + "mistral/config.json").sliding_window_of_layer ==
        std::vector<std::int64_t>{8, 8});
  const ModelConfig qwen2 = load(kGolden + "qwen2/config.json");
  CHECK(qwen2.attention_bias);
  CHECK(qwen2.head_dim == 12);
  CHECK(qwen2.sliding_window_of_layer == std::vector<std::int64_t>{0, 0});
  const ModelConfig qwen3 = load(kGolden + "qwen3/config.json");
  CHECK(qwen3.qk_norm);
  CHECK_FALSE(qwen3.attention_bias);
  CHECK(qwen3.head_dim == 24);
  CHECK(load(kGolden + "sharded-qwen3-bf16/config.json").dtype == "bfloat16");
}

TEST_CASE("a config written from its numbers reads back equal") {
  for (const char* name : {"llama-tied", "llama3-rope", "mistral", "qwen2", "qwen3"}) {
    CAPTURE(name);
    const ModelConfig config = without_source(load(kGolden + std::string(name) + "/config.json"));
    CHECK(without_source(parse_config(to_json(config), "written")) == config);
  }
}

TEST_CASE("a config that was read is written back with nothing but its dtype changed") {
  const ModelConfig config = load(kGolden + "qwen2/config.json");
  auto expected = nlohmann::ordered_json::parse(config.source_json);
  expected["dtype"] = "bfloat16";
  CHECK(nlohmann::ordered_json::parse(to_json_with_dtype(config, "bfloat16")) == expected);
  const ModelConfig classic = load(kGolden + "qwen2/config.v4.json");
  const json written = json::parse(to_json_with_dtype(classic, "float16"));
  CHECK(written["torch_dtype"] == "float16");
  CHECK_FALSE(written.contains("dtype"));
}

TEST_CASE("other architectures are refused by name with the supported list") {
  for (const auto& [folder, name] : std::map<std::string, std::string>{
           {"phi3", "'phi3'"}, {"gemma3", "'gemma3_text'"}, {"qwen3-moe", "'qwen3_moe'"}}) {
    for (const char* file : {"/config.json", "/config.v4.json"}) {
      const auto message = message_of([&] { load(kGolden + folder + file); });
      CHECK(says(message, name));
      CHECK(says(message, "llama, mistral, qwen2, qwen3"));
      CHECK(says(message, kGolden + folder + file));
    }
  }
}

TEST_CASE("sliding windows follow the family's rule") {
  const auto qwen = [](const std::function<void(json&)>& edit) {
    json value = json::parse(read_file(kGolden + "qwen2/config.v4.json"));
    value["sliding_window"] = 6;
    edit(value);
    return parse_config(value.dump(), "config.json").sliding_window_of_layer;
  };
  using Windows = std::vector<std::int64_t>;
  CHECK(qwen([](json&) {}) == Windows{0, 0});
  CHECK(qwen([](json& v) {
          v["use_sliding_window"] = true;
          v["max_window_layers"] = 1;
        }) == Windows{0, 6});
  CHECK(qwen([](json& v) {
          v["use_sliding_window"] = true;
          v["layer_types"] = {"sliding_attention", "full_attention"};
        }) == Windows{6, 0});
  const auto mistral = [](const std::function<void(json&)>& edit) {
    json value = json::parse(read_file(kGolden + "mistral/config.v4.json"));
    edit(value);
    return parse_config(value.dump(), "config.json").sliding_window_of_layer;
  };
  CHECK(mistral([](json& v) { v["sliding_window"] = nullptr; }) == Windows{0, 0});
  CHECK(mistral([](json& v) { v.erase("sliding_window"); }) == Windows{4096, 4096});
}

TEST_CASE("absent fields take the family's defaults, and null counts as absent") {
  const ModelConfig config = parse_edited([](json& v) {
    for (const char* key : {"num_key_value_heads",
                            "rms_norm_eps",
                            "tie_word_embeddings",
                            "rope_theta",
                            "torch_dtype",
                            "max_position_embeddings"}) {
      v.erase(key);
    }
    v["head_dim"] = nullptr;
  });
  CHECK(config.num_kv_heads == 4);
  CHECK(config.head_dim == 16);
  CHECK(config.rms_norm_eps == 1e-6);
  CHECK_FALSE(config.tied_embeddings);
  CHECK(config.rope.theta == 10000.0);
  CHECK(config.dtype == "float32");
  CHECK(config.max_positions == 2048);
}

TEST_CASE("a family is found by its architecture when there is no model_type") {
  CHECK(parse_edited([](json& v) { v.erase("model_type"); }).family == "llama");
  CHECK(says(message_of([] {
               parse_edited([](json& v) {
                 v.erase("model_type");
                 v.erase("architectures");
               });
             }),
             "(none)"));
}

TEST_CASE("rotary scaling: the newer form wins, old spellings work, unknown types are named") {
  CHECK(parse_edited([](json& v) {
          v["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
        }).rope == RopeConfig{.type = RopeType::kLinear, .theta = 10000.0, .factor = 4.0});
  CHECK(parse_edited([](json& v) {
          v["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
          v["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5}};
        }).rope == RopeConfig{.theta = 5.0});
  for (const char* type : {"dynamic", "yarn", "longrope", "su"}) {
    const auto message = message_of([&] {
      parse_edited([&](json& v) { v["rope_scaling"] = {{"type", type}, {"factor", 4.0}}; });
    });
    CHECK(says(message, type));
    CHECK(says(message, "rope_scaling.type"));
  }
}

TEST_CASE("token ids are united over the files, and sampling values are never taken") {
  ModelConfig config = load(kGolden + "llama-tied/config.json");
  const ModelConfig before = config;
  add_generation_config(config,
                        R"({"eos_token_id": [7, 2, 9], "bos_token_id": 5, "temperature": 0.1})",
                        "generation_config.json");
  CHECK(config.eos_ids == std::vector<std::int64_t>{2, 7, 9});
  CHECK(config.bos_id == 1);
  config.eos_ids = before.eos_ids;
  CHECK(config == before);
}

TEST_CASE("ids outside the vocabulary count as absent") {
  const ModelConfig config = parse_edited([](json& v) {
    v["pad_token_id"] = -1;
    v["eos_token_id"] = {2, 257, 2};
  });
  CHECK_FALSE(config.pad_id.has_value());
  CHECK(config.eos_ids == std::vector<std::int64_t>{2});
}

TEST_CASE("wrong fields are refused with file, field, value and remedy") {
  struct Case {
    const char* key;
    json value;
  };
  const std::vector<Case> cases = {
      {"hidden_size", -3},        {"hidden_size", "64"},
      {"hidden_size", 1e30},      {"hidden_size", 64.0},
      {"hidden_size", nullptr},   {"num_hidden_layers", 2000000000},
      {"vocab_size", 0},          {"num_key_value_heads", 3},
      {"head_dim", 15},           {"rms_norm_eps", -1.0},
      {"rope_theta", 0},          {"rope_scaling", "linear"},
      {"hidden_act", "gelu"},     {"partial_rotary_factor", 0.5},
      {"mlp_bias", true},         {"attention_bias", "yes"},
      {"attention_bias", true},   {"eos_token_id", {{"a", 1}}},
      {"torch_dtype", "float64"}, {"quantization_config", {{"bits", 4}}},
  };
  for (const auto& [key, value] : cases) {
    CAPTURE(key);
    CAPTURE(value.dump());
    const auto message = message_of([&] { parse_edited([&](json& v) { v[key] = value; }); });
    CHECK(says(message, "config.json: field '" + std::string(key) + "'"));
  }
}

TEST_CASE("text that is no JSON object is refused in one line") {
  const std::string deep(100000, '[');
  for (const std::string& text : {std::string(),
                                  std::string("{"),
                                  std::string("[1]"),
                                  std::string("nonsense\n"),
                                  deep,
                                  std::string("{\"a\": 1e999}"),
                                  std::string("{\"a\": 1, \"a\": 2}"),
                                  std::string("\xff\xfe")}) {
    CHECK(says(message_of([&] { parse_config(text, "config.json"); }), "config.json"));
  }
}

TEST_CASE("configs of the larger test data parse") {
  TANDEM_NEEDS_SHARED("stories260K/hf/config.json");
  const ModelConfig stories = load((test::shared_data() / "stories260K/hf/config.json").string());
  CHECK(stories.num_layers == 5);
  CHECK(stories.head_dim == 8);
  const ModelConfig verl =
      load((test::shared_data() / "verl-arithmetic-sequence/model/config.json").string());
  CHECK_FALSE(verl.bos_id.has_value());
  CHECK(verl.dtype == "bfloat16");
  const ModelConfig smol = load((test::shared_data() / "golden/smollm2/config.json").string());
  CHECK(smol.rope.theta == 100000.0);
  CHECK(smol.tied_embeddings);
}

}  // namespace
}  // namespace tandem::model
