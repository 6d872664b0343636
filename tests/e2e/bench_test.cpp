// Each of the project's benchmarks runs, and its record holds the figures that it promises.
#include <algorithm>

#include <doctest/doctest.h>

#include "support/json_rows.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::Words;

const std::string kModel = "tests/golden/models/llama-tied";

// The record of a benchmark; what every record holds is checked here.
json bench(const std::string& kind, const Words& sizes, std::size_t repeat = 2) {
  CAPTURE(kind);
  Words words = {
      "bench", kind, "--model", kModel, "--threads", "2", "--repeat", std::to_string(repeat)};
  words.insert(words.end(), sizes.begin(), sizes.end());
  const json record = test::rows_of(words).at(0);
  CHECK(record.at("bench") == kind);
  CHECK(record.at("seconds").size() == repeat);
  for (const auto& seconds : record.at("seconds")) {
    CHECK(seconds.get<double>() > 0);
  }
  CHECK(record.at("peak_rss_bytes").get<double>() > 1e6);
  CHECK(record.at("threads") == 2);
  CHECK(record.at("dtype") == "float32");
  CHECK(record.at("model") == kModel);
  for (const char* name : {"cpu", "isa", "version", "command"}) {
    CAPTURE(name);
    CHECK_FALSE(record.at(name).get<std::string>().empty());
  }
  CHECK(record.at("command").get<std::string>().find("bench " + kind) != std::string::npos);
  return record;
}

void check_positive(const json& record, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    CAPTURE(name);
    CHECK(record.at(name).get<double>() > 0);
  }
}

TEST_CASE("rollout and decode give tokens a second") {
  const auto rollout = bench(
      "rollout", {"--prompts", "2", "--samples", "2", "--prompt-tokens", "8", "--new-tokens", "8"});
  check_positive(rollout, {"tokens_per_s", "prefill_tokens_per_s", "decode_tokens_per_s"});
  // Of the fastest repetition: 2 x 2 x 8 tokens in the least of the seconds.
  const auto seconds = rollout["seconds"].get<std::vector<double>>();
  const double fastest = *std::min_element(seconds.begin(), seconds.end());
  CHECK(rollout["tokens_per_s"].get<double>() == doctest::Approx(32 / fastest));
  const auto decode =
      bench("decode", {"--batch", "1,3", "--prompt-tokens", "8", "--new-tokens", "8"});
  CHECK(decode.at("tokens_per_s").size() == 2);
  check_positive(decode.at("tokens_per_s"), {"1", "3"});
}

TEST_CASE("score and train give tokens a second; of a shared prompt the answers count") {
  const auto score = bench("score", {"--sequences", "2", "--tokens", "16"});
  check_positive(score, {"tokens_per_s"});
  const auto train = bench(
      "train", {"--sequences", "4", "--tokens", "16", "--prompt-tokens", "12", "--samples", "2"});
  check_positive(train, {"tokens_per_s", "step_s"});
  // 4 answers of 16 - 12 tokens.
  CHECK(train["tokens_per_s"].get<double>() == doctest::Approx(16 / train["step_s"].get<double>()));
}

TEST_CASE("a step is the sum of its parts, and sampler and trainer agree in it") {
  const auto step = bench(
      "step", {"--prompts", "2", "--samples", "2", "--prompt-tokens", "8", "--new-tokens", "8"});
  double sum = 0;
  for (const char* part : {"rollout_s", "reward_s", "train_s", "optimizer_s", "other_s"}) {
    sum += step.at(part).get<double>();
  }
  CHECK(step.at("step_s").get<double>() == doctest::Approx(sum));
  check_positive(step, {"step_s", "rollout_s", "train_s", "optimizer_s"});
  CHECK(step.at("logprob_gap_max") == 0);
}

TEST_CASE("kernels gives each product's rate and its share of the limit measured with it") {
  const auto kernels = bench("kernels", {}, 1);
  check_positive(kernels, {"fma_limit_gflops", "dram_gb_per_s"});
  const json& rates = kernels.at("gflops");
  CHECK(rates.size() >= 5 * 5);  // five products, five batch sizes
  for (const auto& [name, rate] : rates.items()) {
    CAPTURE(name);
    CHECK(rate.get<double>() > 0);
    CHECK(kernels.at("share_of_limit").at(name).get<double>() > 0);
  }
}

}  // namespace
}  // namespace tandem
