// One pass over a tree of sequences against a pass for each sequence: nothing is lost by sharing.
#include "trainer/packed_pass.h"

#include <vector>

#include "support/doctest_torch.h"
#include "trainer/step_bench.h"

namespace tandem::trainer {
namespace {

PackSequence pack_of(const Trajectory& t) {
  return {.ids = t.ids, .prompt_length = t.prompt_length, .wanted = t.mask};
}

// Some derivative by each log-probability, others for each sequence and place.
std::vector<float> slopes_of(const Trajectory& t, std::size_t sequence) {
  std::vector<float> slopes;
  for (std::size_t i = 0; i < t.mask.size(); ++i) {
    slopes.push_back((sequence % 2 == 0 ? 0.3F : -0.2F) + 0.1F * static_cast<float>(i % 3));
  }
  return slopes;
}

// The gradients of all sequences, `a_pass` of them in each pass, and the rows computed for them.
struct Passes {
  std::vector<float> gradient;
  std::int64_t num_rows = 0;

  Passes(const test::TinyModel& tiny, const std::vector<Trajectory>& all, std::size_t a_pass) {
    tiny.weights->zero_gradients();
    for (std::size_t begin = 0; begin < all.size(); begin += a_pass) {
      std::vector<PackSequence> packs;
      TokenValues slopes;
      for (std::size_t i = begin; i < begin + a_pass; ++i) {
        packs.push_back(pack_of(all[i]));
        slopes.push_back(slopes_of(all[i], i));
      }
      const std::vector<const std::vector<AllowedSet>*> allowed(packs.size(), &all[0].allowed);
      PackedPass pass(*tiny.decoder, packs, allowed, {.with_gradient = true, .num_ids = kIds});
      pass.backward(slopes, {});
      num_rows += pass.num_rows();
    }
    for (const auto& [name, grad] : tiny.weights->named_gradients()) {
      const auto flat = grad.contiguous();
      const float* data = flat.const_data_ptr<float>();
      gradient.insert(gradient.end(), data, data + flat.numel());
    }
  }
};

TEST_CASE("a tree's gradient is the sum of those of its sequences alone, which share nothing") {
  const auto tiny = test::random_model(5);
  const auto all = make_trajectories(*tiny.decoder);
  REQUIRE(all.size() == 6);
  const Passes tree(tiny, all, 6);
  const Passes alone(tiny, all, 1);
  std::int64_t num_tokens = 0;
  for (const auto& t : all) {
    num_tokens += static_cast<std::int64_t>(t.ids.size()) - 1;  // the last has no row
  }
  CHECK(alone.num_rows == num_tokens);
  CHECK(tree.num_rows < alone.num_rows);
  CHECK(relative_distance(tree.gradient, alone.gradient) < 2e-5);
}

}  // namespace
}  // namespace tandem::trainer
