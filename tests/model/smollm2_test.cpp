// A real model against its golden values, where its file is: scripts/fetch_model.sh smollm2.
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "model/checkpoint.h"
#include "model/gguf.h"
#include "model/gguf_names.h"
#include "support/doctest_torch.h"
#include "support/shared_data.h"

namespace tandem::model {
namespace {

using nlohmann::json;

std::string smollm2_path() {
  const char* given = std::getenv("TANDEM_SMOLLM2_GGUF");
  return given != nullptr ? given : "models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

// Within 1 ulp, as the golden's values are told.
bool starts_with(const at::Tensor& tensor, const json& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto got = tensor.flatten()[static_cast<std::int64_t>(i)].item<float>();
    if (std::abs(got - values[i].get<float>()) > 1.2e-7f * std::abs(got)) {
      return false;
    }
  }
  return true;
}

#define NEEDS_SMOLLM2()                            \
  TANDEM_NEEDS_SHARED("golden/smollm2/gguf.json"); \
  if (!std::filesystem::exists(smollm2_path())) {  \
    MESSAGE("skipped: no " << smollm2_path());     \
    return;                                        \
  }

TEST_CASE("all tensors of SmolLM2 have the expected place, sum and first values") {
  NEEDS_SMOLLM2();
  const json golden = json::parse(read_file(test::shared_data() / "golden/smollm2/gguf.json"));
  const GgufFile file(smollm2_path());
  const auto reader = CheckpointReader::open(smollm2_path());
  REQUIRE(file.tensors().size() == golden["tensors"].size());
  for (const json& wanted : golden["tensors"]) {
    const std::string name = wanted["name"];
    const std::string hf_name = wanted["hf_name"];
    INFO(name);
    const GgufTensor* info = file.find(name);
    REQUIRE(info != nullptr);
    CHECK(std::string(info->type->name) == wanted["type"]);
    CHECK(json(info->shape) == wanted["shape"]);
    CHECK(info->begin == wanted["offset"]);
    CHECK(hf_name_of_gguf(name) == hf_name);
    const at::Tensor stored = file.dequantize(name);
    const at::Tensor values = reader.read(hf_name);
    const double abs_sum = wanted["abs_sum"];
    CHECK(stored.abs().sum(at::kDouble).item<double>() == doctest::Approx(abs_sum).epsilon(1e-6));
    CHECK(std::abs(values.sum(at::kDouble).item<double>() - wanted["sum"].get<double>()) <
          1e-6 * abs_sum);
    CHECK(starts_with(stored, wanted["first4"]));
    CHECK(starts_with(values, wanted["first4_hf"]));
    if (values.dim() == 2) {
      CHECK(starts_with(values[1], wanted["row1_first4_hf"]));
    }
  }
}

TEST_CASE("the config of SmolLM2 is that of its Hugging Face folder") {
  NEEDS_SMOLLM2();
  const std::string path = (test::shared_data() / "golden/smollm2/config.json").string();
  ModelConfig wanted = parse_config(read_file(path), path);
  ModelConfig got = CheckpointReader::open(smollm2_path()).config();
  wanted.source_json.clear();
  got.source_json.clear();
  CHECK(got == wanted);
}

TEST_CASE("the tokenizer of SmolLM2 gives the golden ids") {
  NEEDS_SMOLLM2();
  const json chat = json::parse(read_file(test::shared_data() / "golden/smollm2/chat.json"));
  const auto tokenizer = CheckpointReader::open(smollm2_path()).tokenizer();
  CHECK(tokenizer.chat_template().has_value());
  std::size_t num_cases = 0;
  const json& cases = chat.is_array() ? chat : chat["cases"];
  for (const json& row : cases) {
    CHECK(tokenizer.encode(row["text"].get<std::string>()) ==
          row["ids"].get<std::vector<text::TokenId>>());
    ++num_cases;
  }
  CHECK(num_cases == 10);
}

}  // namespace
}  // namespace tandem::model
