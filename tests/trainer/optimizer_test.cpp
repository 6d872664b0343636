#include "trainer/optimizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include <doctest/doctest.h>

#include "base/counter_rng.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "trainer/golden.h"

namespace tandem::trainer {
namespace {

using Tensors = std::vector<std::vector<float>>;

std::vector<std::span<const float>> spans(const Tensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

std::vector<OptimizerParameter> parameters_of(Tensors& weights) {
  std::vector<OptimizerParameter> parameters;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    parameters.push_back({.name = "p" + std::to_string(i), .weight = weights[i], .dimensions = 2});
  }
  return parameters;
}

AdamWConfig config_of(const nlohmann::json& one) {
  const auto& args = one.at("args");
  const auto betas = args.value("betas", std::vector<double>{0.9, 0.999});
  return {.beta1 = betas[0],
          .beta2 = betas[1],
          .epsilon = args.value("eps", 1e-8),
          .weight_decay = args.value("weight_decay", 0.01),
          .decay_all = !one.at("weight_decay_only_for_2d_and_up").get<bool>(),
          .max_grad_norm = one.at("clip_global_norm").is_null()
                               ? 0.0
                               : one.at("clip_global_norm").get<double>()};
}

double max_difference(std::span<const float> got, std::span<const float> want) {
  REQUIRE(got.size() == want.size());
  double difference = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - want[i]));
  }
  return difference;
}

// All weights after a step, and the bf16 copies, which may differ by one place on a rounding edge.
void check_step(const test::GoldenTensors& golden,
                const std::string& step,
                const Tensors& weights,
                const std::vector<std::vector<std::uint16_t>>& copies) {
  for (std::size_t p = 0; p < weights.size(); ++p) {
    const std::string suffix = step + "." + std::to_string(p);
    CHECK(max_difference(weights[p], golden.values("after." + suffix)) <= 5e-6);
    if (copies[p].empty()) {
      continue;
    }
    const auto want = golden.values("after_bf16." + suffix);
    for (std::size_t i = 0; i < want.size(); ++i) {
      CHECK(std::abs(static_cast<int>(copies[p][i]) -
                     static_cast<int>(std::bit_cast<std::uint32_t>(want[i]) >> 16)) <= 1);
    }
  }
}

void run_golden(const nlohmann::json& one) {
  constexpr std::size_t kNumTensors = 4;
  const test::GoldenTensors golden("optim/" + one.at("file").get<std::string>());
  const bool bf16 = one.at("mode") == "bf16_master";
  Tensors weights(kNumTensors);
  std::vector<std::vector<std::uint16_t>> copies(kNumTensors);
  std::vector<OptimizerParameter> parameters;
  for (std::size_t p = 0; p < kNumTensors; ++p) {
    const std::string name = "param." + std::to_string(p);
    weights[p] = golden.values(name);
    copies[p].resize(bf16 ? weights[p].size() : 0);
    parameters.push_back({.name = name,
                          .weight = weights[p],
                          .dimensions = static_cast<std::int64_t>(golden.shape(name).size()),
                          .bf16_copy = copies[p]});
  }
  AdamW optimizer(config_of(one), parameters);
  for (std::int64_t step = 0; step < one.at("steps").get<std::int64_t>(); ++step) {
    CAPTURE(step);
    const auto at = static_cast<std::size_t>(step);
    Tensors gradients;
    for (std::size_t p = 0; p < kNumTensors; ++p) {
      gradients.push_back(golden.values("grad." + std::to_string(step) + "." + std::to_string(p)));
    }
    const auto result = optimizer.step(spans(gradients), one.at("lr").at(at).get<double>());
    CHECK_FALSE(result.skipped);
    CHECK(result.grad_norm ==
          doctest::Approx(one.at("grad_norm_before_clip").at(at).get<double>()).epsilon(2e-6));
    check_step(golden, std::to_string(step), weights, copies);
  }
  const auto moments = optimizer.moments();
  for (std::size_t p = 0; p < kNumTensors; ++p) {
    const std::string suffix = std::to_string(p);
    CHECK(max_difference(moments[p].first, golden.values("state.exp_avg." + suffix)) <= 5e-6);
    CHECK(max_difference(moments[p].second, golden.values("state.exp_avg_sq." + suffix)) <= 5e-6);
  }
}

TEST_CASE("AdamW follows PyTorch's over 20 steps") {
  int compared = 0;
  const auto golden = test::golden_json("optim/optimizers.json");
  for (const auto& one : golden.at("cases")) {
    const std::string name = one.at("name");
    if (name == "adamw_bf16_pure" || one.at("optimizer") != "torch.optim.AdamW") {
      continue;  // moments in bf16 lose the signal; SGD is not offered
    }
    CAPTURE(name);
    run_golden(one);
    ++compared;
  }
  CHECK(compared == 4);
}

// Sizes around the boundaries of pieces and vectors.
Tensors random_tensors(std::uint64_t draw) {
  Tensors tensors;
  for (const std::size_t size : {1u, 7u, 16383u, 16384u, 16385u, 50001u}) {
    auto& tensor = tensors.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i) {
      tensor[i] = static_cast<float>(random_uniform({.draw = draw,
                                                     .sample = static_cast<std::uint32_t>(size),
                                                     .position = static_cast<std::uint32_t>(i),
                                                     .purpose = RandomPurpose::kMakeData}) -
                                     0.5);
    }
  }
  return tensors;
}

TEST_CASE("weights, moments and norm are the same bits for any number of threads") {
  const Tensors start = random_tensors(0);
  const auto train = [&](int threads) {
    set_compute_threads(threads);
    auto weights = start;
    AdamW optimizer({.weight_decay = 0.1}, parameters_of(weights));
    double norms = 0;
    for (std::uint64_t step = 1; step <= 3; ++step) {
      norms += optimizer.step(spans(random_tensors(step)), 1e-2).grad_norm;
    }
    Tensors state = weights;
    for (const auto& moments : optimizer.moments()) {
      state.emplace_back(moments.first.begin(), moments.first.end());
      state.emplace_back(moments.second.begin(), moments.second.end());
    }
    set_compute_threads(1);
    return std::pair(state, norms);
  };
  const auto one = train(1);
  CHECK(one.first[5] != start[5]);
  CHECK(train(2) == one);
  CHECK(train(5) == one);
}

TEST_CASE("a gradient that is not finite skips the step, names its tensor and changes nothing") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Tensors weights = random_tensors(0);
    AdamW optimizer({.weight_decay = 0.1}, parameters_of(weights));
    optimizer.step(spans(random_tensors(1)), 1e-2);
    const Tensors before = weights;
    Tensors gradients = random_tensors(2);
    gradients[4][16384] = bad;
    const auto result = optimizer.step(spans(gradients), 1e-2);
    CHECK(result.skipped);
    CHECK(result.nonfinite == "p4");
    CHECK_FALSE(std::isfinite(result.grad_norm));
    CHECK(weights == before);
    CHECK(optimizer.num_steps() == 1);
  }
}

TEST_CASE("huge gradients overflow neither the norm nor the weights") {
  Tensors weights = {{1.0f, 2.0f}};
  AdamW optimizer({}, parameters_of(weights));
  const auto result = optimizer.step(spans({{3e38f, 3e38f}}), 0.1);
  CHECK_FALSE(result.skipped);
  CHECK(result.grad_norm == doctest::Approx(3e38 * std::sqrt(2.0)));
  CHECK(weights[0][0] == doctest::Approx(0.9));
}

TEST_CASE("a run continued from saved moments and step count has the same bits") {
  Tensors straight = random_tensors(0);
  AdamW whole({}, parameters_of(straight));
  whole.step(spans(random_tensors(1)), 1e-2);
  Tensors resumed = straight;
  AdamW second({}, parameters_of(resumed));
  auto to = second.moments();
  const auto from = whole.moments();
  for (std::size_t p = 0; p < to.size(); ++p) {
    CHECK(to[p].name == from[p].name);
    std::ranges::copy(from[p].first, to[p].first.begin());
    std::ranges::copy(from[p].second, to[p].second.begin());
  }
  second.set_num_steps(whole.num_steps());
  whole.step(spans(random_tensors(2)), 1e-2);
  second.step(spans(random_tensors(2)), 1e-2);
  CHECK(resumed == straight);
}

TEST_CASE("with a learning rate of zero the weights stay and the moments move") {
  Tensors weights = random_tensors(0);
  AdamW optimizer({.weight_decay = 0.1}, parameters_of(weights));
  optimizer.step(spans(random_tensors(1)), 0);
  CHECK(weights == random_tensors(0));
  CHECK(optimizer.moments()[5].second[3] > 0);
}

TEST_CASE("settings out of range and gradients that do not fit are errors") {
  Tensors weights = {{1.0f, 2.0f}};
  CHECK_THROWS_AS(AdamW({.beta2 = 1.0}, parameters_of(weights)), UserError);
  CHECK_THROWS_AS(AdamW({.epsilon = 0}, parameters_of(weights)), UserError);
  CHECK_THROWS_AS(AdamW({.weight_decay = -1}, parameters_of(weights)), UserError);
  CHECK_THROWS_AS(AdamW({.max_grad_norm = -1}, parameters_of(weights)), UserError);
  auto twice = parameters_of(weights);
  twice.push_back(twice.front());
  CHECK_THROWS_AS(AdamW({}, twice), Error);
  AdamW optimizer({}, parameters_of(weights));
  CHECK_THROWS_AS(optimizer.step({}, 0.1), Error);
  CHECK_THROWS_WITH_AS(
      optimizer.step(spans({{1.0f}}), 0.1), doctest::Contains("p0 has 2 weights"), Error);
}

TEST_CASE("a master that the optimizer holds starts as the copy and steps as fp32 weights do") {
  Tensors weights = random_tensors(1);
  std::vector<std::vector<std::uint16_t>> copies;
  std::vector<OptimizerParameter> without_weight;
  for (auto& tensor : weights) {
    auto& copy = copies.emplace_back();
    for (float& value : tensor) {
      copy.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
      value = std::bit_cast<float>(std::uint32_t{copy.back()} << 16);
    }
  }
  for (auto& copy : copies) {
    without_weight.push_back(
        {.name = "p" + std::to_string(without_weight.size()), .dimensions = 2, .bf16_copy = copy});
  }
  AdamW plain({}, parameters_of(weights));
  AdamW holder({}, without_weight);
  CHECK(plain.state_bytes() * 3 == holder.state_bytes() * 2);
  const Tensors start = weights;
  for (std::uint64_t step = 0; step < 5; ++step) {
    const Tensors gradients = random_tensors(10 + step);
    plain.step(spans(gradients), 1e-6);  // far below what a bf16 weight can follow
    holder.step(spans(gradients), 1e-6);
  }
  const auto state = holder.moments();
  for (std::size_t p = 0; p < weights.size(); ++p) {
    REQUIRE(state[p].master.size() == weights[p].size());
    CHECK(std::ranges::equal(state[p].master, weights[p]));
    CHECK(max_difference(state[p].master, start[p]) > 0);
    for (std::size_t i = 0; i < copies[p].size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(weights[p][i]);
      CHECK(copies[p][i] == (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }
  }
  CHECK(plain.moments()[0].master.empty());
}

}  // namespace
}  // namespace tandem::trainer
