// Saving a checkpoint takes no second copy of what it saves.
#include <doctest/doctest.h>

#include "support/tiny_runs.h"
#include "support/workplace.h"

namespace tandem {
namespace {

// A model of 12.6 million weights, nearly all in three tensors.
constexpr double kWeightBytes = 4 * 3.0 * 512 * 8192;
const char* const kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512,
        "intermediate_size": 8192, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 16, "vocab_size": 12, "max_position_embeddings": 64,
        "eos_token_id": 11, "tie_word_embeddings": true})";

double peak_of(const test::Workplace& place, const std::string& name, const std::string& every) {
  const auto trained = test::run_program("train " + place.at("r.yaml") + " run.name=" + name +
                                         " trainer.steps=3 trainer.checkpoint.every=" + every);
  REQUIRE_MESSAGE(trained.status == 0, trained.err);
  return test::read_metrics(place.folder / "runs" / name).back().at("memory/peak_rss_bytes");
}

TEST_CASE(
    "a run that saves weights, moments and an export at each step peaks as one that does not") {
  const test::Workplace place;
  test::write(place.folder / "model/config.json", kConfig);
  const double without = peak_of(place, "without", "0");
  const double with = peak_of(place, "with", "1");
  // Weights, gradients and two moments are resident in both.
  CHECK(without > 4 * kWeightBytes);
  CHECK(with - without < 0.5 * kWeightBytes);
}

}  // namespace
}  // namespace tandem
