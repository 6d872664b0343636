// Updates of a policy that works in bfloat16 and has float32 masters.
#include <map>

#include "base/thread_pool.h"
#include "support/doctest_torch.h"
#include "trainer/step_bench.h"

namespace tandem::trainer {
namespace {

TEST_CASE("in bfloat16 every ratio is exactly 1, recomputing and threads change no bit") {
  std::vector<std::vector<float>> gradients;
  for (const int threads : {1, 2}) {
    for (const bool checkpoint : {false, true}) {
      set_compute_threads(threads);
      Bench bench(5, at::kBFloat16);
      const auto trajectories = make_trajectories(*bench.tiny.decoder);
      const auto report = bench.step(with_advantages(trajectories, kAdvantages),
                                     {.loss = {}, .checkpoint_layers = checkpoint});
      CHECK(report.num_updates == 1);
      CHECK(report.first.logp_gap_max == 0.0);
      CHECK(report.first.num_ratio_not_one == 0);
      gradients.push_back(gradient_of(bench));
    }
  }
  set_compute_threads(1);
  for (const auto& gradient : gradients) {
    CHECK(gradient == gradients[0]);
  }
}

// Of two models with the same weights, one working in bfloat16. Every activation and its gradient
// is rounded to 8 bits there, some twenty times on the way through two layers and back, and the
// weights are eight times a fresh model's, which sharpens softmax and gates.
TEST_CASE("the gradient in bfloat16 is that of float32 within 3e-2 relative L2") {
  Bench rounded(5, at::kBFloat16);
  Bench exact(5);
  const auto values = rounded.tiny.weights->named_tensors();
  const std::map<std::string, at::Tensor> by_name(values.begin(), values.end());
  exact.tiny.weights->load([&](const std::string& name) { return by_name.at(name); });
  AdamWConfig unclipped;
  unclipped.max_grad_norm = 0;
  std::vector<std::vector<float>> gradients;
  for (Bench* bench : {&rounded, &exact}) {
    bench->optimizer =
        std::make_unique<AdamW>(unclipped, optimizer_parameters(*bench->tiny.weights));
    const auto trajectories = make_trajectories(*bench->tiny.decoder);
    bench->step(with_advantages(trajectories, kAdvantages), {});
    gradients.push_back(gradient_of(*bench));
  }
  const double distance = relative_distance(gradients[0], gradients[1]);
  MESSAGE("relative L2 distance " << distance);
  CHECK(distance < 3e-2);
  CHECK(distance > 1e-4);  // it did work in bfloat16
}

TEST_CASE("updates too small for bfloat16 add up in the masters") {
  Bench bench(5, at::kBFloat16);
  bench.rate = 1e-6;
  const auto before = bench.tiny.weights->layers()[0].qkv.value.clone();
  const auto trajectories = make_trajectories(*bench.tiny.decoder);
  const auto sequences = with_advantages(trajectories, kAdvantages);
  bench.step(sequences, {});
  const auto moved = [&] {
    return (bench.tiny.weights->layers()[0].qkv.value != before).sum().item<std::int64_t>();
  };
  const std::int64_t after_one = moved();
  CHECK(after_one < before.numel() / 50);
  for (int i = 0; i < 200; ++i) {
    bench.step(sequences, {});
  }
  CHECK(moved() > 10 * (after_one + 1));
}

}  // namespace
}  // namespace tandem::trainer
