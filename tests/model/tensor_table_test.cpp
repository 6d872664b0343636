#include "model/tensor_table.h"

#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/safetensors.h"

namespace tandem::model {
namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

const std::string kGolden = "tests/golden/models/";

ModelConfig golden_config(const std::string& name) {
  const std::string path = kGolden + name + "/config.json";
  return parse_config(read_file(path), path);
}

Shapes golden_shapes(const std::string& name) {
  Shapes shapes;
  const SafetensorsFile file(kGolden + name + "/model.safetensors");
  for (const TensorInfo& info : file.tensors()) {
    shapes[info.name] = info.shape;
  }
  return shapes;
}

std::string refusal(const ModelConfig& config, const Shapes& shapes) {
  try {
    check_tensors(config, shapes, "m");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("the expected tensors of each family are those of its golden file") {
  for (const char* name : {"llama-tied", "llama3-rope", "mistral", "qwen2", "qwen3"}) {
    CAPTURE(name);
    Shapes expected;
    for (const ExpectedTensor& tensor : expected_tensors(golden_config(name))) {
      expected[tensor.name] = tensor.shape;
    }
    CHECK(expected == golden_shapes(name));
  }
}

TEST_CASE("missing, misshapen and unknown tensors are named with their shapes") {
  const ModelConfig config = golden_config("llama-tied");
  const Shapes good = golden_shapes("llama-tied");
  REQUIRE(refusal(config, good) == "accepted");
  Shapes shapes = good;
  shapes.erase("model.norm.weight");
  CHECK(refusal(config, shapes).find("lacks the tensors model.norm.weight [64]") !=
        std::string::npos);
  shapes = good;
  shapes["model.layers.1.self_attn.k_proj.weight"] = {64, 32};
  CHECK(refusal(config, shapes)
            .find("model.layers.1.self_attn.k_proj.weight is [64, 32] instead of [32, 64]") !=
        std::string::npos);
  shapes = good;
  shapes["model.layers.0.mlp.gate.weight"] = {8, 64};
  CHECK(refusal(config, shapes).find("'model.layers.0.mlp.gate.weight' [8, 64]") !=
        std::string::npos);
  CHECK(refusal(config, {}).find("and 17 more") != std::string::npos);
}

TEST_CASE("stored rotary frequencies and the head of a tied model pass") {
  const ModelConfig config = golden_config("llama-tied");
  Shapes shapes = golden_shapes("llama-tied");
  shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = {8};
  shapes["lm_head.weight"] = {257, 64};
  CHECK(refusal(config, shapes) == "accepted");
  CHECK(refusal(golden_config("llama3-rope"), golden_shapes("llama3-rope")) == "accepted");
}

}  // namespace
}  // namespace tandem::model
