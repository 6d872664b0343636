// One update of the policy on a small random model: sharing, micro-batches, masks, faults.
#include "trainer/train_step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "support/doctest_torch.h"
#include "trainer/step_bench.h"

namespace tandem::trainer {
namespace {

TEST_CASE("on-policy every ratio is exactly 1, and the loss is minus the mean advantage") {
  Bench bench;
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  const auto report = bench.step(with_advantages(trajectories, kAdvantages), {});
  CHECK(report.num_updates == 1);
  CHECK(report.first.logp_gap_max == 0.0);
  CHECK(report.first.num_ratio_not_one == 0);
  CHECK(report.sums.ratio_min == 1.0);
  CHECK(report.sums.ratio_max == 1.0);
  CHECK(std::abs(report.sums.loss) < 1e-12);  // the advantages add up to 0
  CHECK(report.grad_norm > 0);
}

TEST_CASE("a shared tree, separate sequences and any micro-batches give the same gradient") {
  Bench whole;
  const auto trajectories = make_trajectories(*whole.tiny.decoder);
  const auto sequences = with_advantages(trajectories, kAdvantages);
  const auto report = whole.step(sequences, {});
  const auto want = gradient_of(whole);
  // 21 rows fit the longest sequence alone, so that nothing is shared between most of them.
  for (const std::int64_t rows : {21, 30, 45}) {
    Bench split;
    const auto other = split.step(sequences, {.loss = {}, .rows_per_microbatch = rows});
    CHECK(other.num_rows >= report.num_rows);
    CHECK(relative_distance(gradient_of(split), want) < 2e-5);
    CHECK(other.sums.loss == doctest::Approx(report.sums.loss).epsilon(1e-6));
  }
  Bench checkpointed;
  checkpointed.step(sequences, {.loss = {}, .checkpoint_layers = true});
  CHECK(gradient_of(checkpointed) == want);  // recomputing changes no bit
}

TEST_CASE("rows that sequences share are computed once") {
  Bench bench;
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  const auto report = bench.step(with_advantages(trajectories, kAdvantages), {});
  std::int64_t separate = 0;
  for (const auto& t : trajectories) {
    separate += static_cast<std::int64_t>(t.ids.size()) - 1;
  }
  // 4 rows begin all prompts; each prompt's rest once; the first answer token is common to a group.
  CHECK(report.num_rows < separate * 7 / 10);
}

TEST_CASE("updates are the same bits for any number of threads") {
  std::vector<std::vector<float>> gradients;
  for (const int threads : {1, 2, 4}) {
    set_compute_threads(threads);
    Bench bench;
    const auto trajectories = make_trajectories(*bench.tiny.decoder);
    bench.step(with_advantages(trajectories, kAdvantages), {});
    gradients.push_back(gradient_of(bench));
  }
  CHECK(gradients[0] == gradients[1]);
  CHECK(gradients[0] == gradients[2]);
}

TEST_CASE("equal rewards cost nothing: counted, not computed, and no weight moves") {
  Bench bench;
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  const auto before = bench.tiny.weights->layers()[0].qkv.value.clone();
  const auto version = bench.tiny.weights->version();
  const auto report = bench.step(with_advantages(trajectories, {0, 0, 0, 0, 0, 0}), {});
  CHECK(report.num_rows == 0);
  CHECK(report.num_zero_weight == 6);
  CHECK(report.num_empty == 1);
  CHECK(report.num_updates == 0);
  CHECK(test::same_bits(before, bench.tiny.weights->layers()[0].qkv.value));
  CHECK(bench.tiny.weights->version() == version);
}

TEST_CASE("zero-weight sequences stay in the denominators") {
  Bench all;
  const auto trajectories = make_trajectories(*all.tiny.decoder);
  const auto with_zero = all.step(with_advantages(trajectories, {1, 0, 0, 0, 0, 0}), {});
  Bench one;
  const auto alone = one.step(with_advantages({trajectories[0]}, {1}), {});
  CHECK(with_zero.num_zero_weight == 5);
  CHECK(with_zero.grad_norm == doctest::Approx(alone.grad_norm / 6).epsilon(1e-5));
}

TEST_CASE("a masked sequence leaves the loss and its denominators") {
  Bench bench;
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  auto sequences = with_advantages(trajectories, kAdvantages);
  for (std::size_t i = 1; i < sequences.size(); ++i) {
    sequences[i].masked = true;
  }
  const auto masked = bench.step(sequences, {});
  Bench one;
  const auto alone = one.step(with_advantages({trajectories[0]}, {1}), {});
  CHECK(masked.grad_norm == doctest::Approx(alone.grad_norm).epsilon(1e-6));
}

TEST_CASE("KL against an equal reference is exactly 0 and grows as the policy moves") {
  Bench bench;
  const auto frozen = test::random_model(5);
  bench.reference = frozen.decoder.get();
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  TrainStepConfig config;
  config.loss.kl.coefficient = 0.1;
  const auto sequences = with_advantages(trajectories, kAdvantages);
  const auto first = bench.step(sequences, config);
  CHECK(first.sums.kl == 0.0);
  const auto second = bench.step(sequences, config);
  CHECK(second.sums.kl > 0.0);
  // With a KL term equal rewards still give a gradient once the policy has moved.
  const auto equal = bench.step(with_advantages(trajectories, {0, 0, 0, 0, 0, 0}), config);
  CHECK(equal.num_updates == 1);
  CHECK(equal.grad_norm > 0);
}

TEST_CASE("several epochs and minibatches make that many updates, and later ratios leave 1") {
  Bench bench;
  bench.rate = 5e-3;
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  const auto report = bench.step(with_advantages(trajectories, kAdvantages),
                                 {.loss = {}, .epochs = 2, .minibatches = 2});
  CHECK(report.num_updates == 4);
  CHECK(report.first.num_ratio_not_one == 0);
  CHECK(report.sums.num_ratio_not_one > 0);
}

TEST_CASE("a weight that is not a number skips the step, names the sample and changes nothing") {
  Bench bench;
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  bench.tiny.weights->layers()[1].down.value[3][5] = std::numeric_limits<float>::quiet_NaN();
  const auto before = bench.tiny.weights->layers()[0].qkv.value.clone();
  const auto report = bench.step(with_advantages(trajectories, kAdvantages), {});
  CHECK(report.num_skipped == 1);
  CHECK(report.num_updates == 0);
  REQUIRE_FALSE(report.problems.empty());
  CHECK(report.problems[0].find("sample 0") != std::string::npos);
  CHECK(test::same_bits(before, bench.tiny.weights->layers()[0].qkv.value));
}

TEST_CASE(
    "a gradient that is not finite skips the step and names its samples, with a finite loss") {
  Bench bench;
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  const auto before = bench.tiny.weights->layers()[0].qkv.value.clone();
  auto advantages = kAdvantages;
  advantages[1] = 1e100;  // a finite loss in double, whose slopes overflow float32
  advantages[4] = 1e100;
  // One micro-batch holds samples 1 and 4 and sound ones; many hold few samples each.
  for (const std::int64_t rows : {4096, 30}) {
    const auto report = bench.step(with_advantages(trajectories, advantages),
                                   {.loss = {}, .rows_per_microbatch = rows});
    CHECK(std::isfinite(report.sums.loss));
    CHECK(report.num_skipped == 1);
    CHECK(report.num_updates == 0);
    REQUIRE(report.problems.size() == 1);
    const std::string& problem = report.problems[0];
    CAPTURE(problem);
    CHECK(problem.find(" is not finite, from sample 1; sample 4") != std::string::npos);
  }
  CHECK(test::same_bits(before, bench.tiny.weights->layers()[0].qkv.value));
  CHECK(bench.step(with_advantages(trajectories, kAdvantages), {}).num_updates == 1);
}

TEST_CASE("the least and the greatest share of clipped tokens are over the step's updates") {
  Bench bench;
  auto trajectories = make_trajectories(*bench.tiny.decoder);
  for (auto& t : trajectories) {
    // Ratios of e^1: above the range, which counts where the advantage is positive.
    std::ranges::for_each(t.logprobs, [](float& logp) { logp -= 1; });
  }
  bench.rate = 0;
  const auto report = bench.step(with_advantages(trajectories, {1, 1, 1, -1, -1, -1}),
                                 {.loss = {}, .minibatches = 6});
  CHECK(report.num_updates == 6);
  CHECK(report.clip_high_max == 1);  // of an update with a positive advantage
  CHECK(report.clip_low_min == 0);
  CHECK(report.first.logp_gap == doctest::Approx(static_cast<double>(report.first.num_tokens)));
  for (auto& t : trajectories) {
    std::ranges::for_each(t.logprobs, [](float& logp) { logp += 2; });  // now ratios of e^-1
  }
  const auto below = bench.step(with_advantages(trajectories, {-1, -1, -1, -1, -1, -1}),
                                {.loss = {}, .minibatches = 6});
  CHECK(below.clip_low_min == 1);
  CHECK(below.clip_high_max == 0);
}

TEST_CASE("a sequence longer than the budget is an error that names it") {
  Bench bench;
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  CHECK_THROWS_AS(bench.step(with_advantages(trajectories, kAdvantages),
                             {.loss = {}, .rows_per_microbatch = 5}),
                  UserError);
}

// d loss / d weight by central differences, for a loss with clipping, KL and entropy.
TEST_CASE("the gradient of the whole loss agrees with finite differences") {
  Bench bench;
  const auto moved = test::random_model(6);
  bench.reference = moved.decoder.get();
  auto trajectories = make_trajectories(*bench.tiny.decoder);
  for (auto& t : trajectories) {
    for (std::size_t i = 0; i < t.logprobs.size(); ++i) {
      t.logprobs[i] += i % 2 == 0 ? 0.1F : -0.1F;  // off-policy, inside the clip range
    }
  }
  const auto sequences = with_advantages(trajectories, kAdvantages);
  TrainStepConfig config;
  config.loss.kl.coefficient = 0.05;
  config.loss.entropy_coefficient = 0.02;
  config.loss.aggregation = Aggregation::kTokenMean;
  AdamWConfig unclipped;
  unclipped.max_grad_norm = 0;
  unclipped.beta1 = 0;
  bench.optimizer = std::make_unique<AdamW>(unclipped, optimizer_parameters(*bench.tiny.weights));
  bench.rate = 0;
  bench.step(sequences, config);
  for (auto& moments : bench.optimizer->moments()) {
    if (moments.name.find("q_proj") == std::string::npos) {
      continue;
    }
    // The largest entry has the best ratio of slope to rounding.
    const auto largest =
        std::max_element(moments.first.begin(), moments.first.end(), [](float a, float b) {
          return std::abs(a) < std::abs(b);
        });
    const auto index = largest - moments.first.begin();
    const double slope = *largest;
    for (auto& parameter : bench.tiny.weights->parameters()) {
      if (parameter.name != moments.name) {
        continue;
      }
      float& weight = parameter.weight->value.data_ptr<float>()[index];
      const float start = weight;
      constexpr float kStep = 2e-2F;
      weight = start + kStep;
      const double above = bench.step(sequences, config).sums.loss;
      weight = start - kStep;
      const double below = bench.step(sequences, config).sums.loss;
      weight = start;
      CHECK((above - below) / (2 * kStep) == doctest::Approx(slope).epsilon(0.02));
    }
  }
}

}  // namespace
}  // namespace tandem::trainer
