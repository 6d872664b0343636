// A small random model, trajectories of it, and one trainer step on them.
#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "support/tiny_model.h"
#include "trainer/packed_pass.h"
#include "trainer/train_step.h"
#include "trainer/weight_update.h"

namespace tandem::trainer {

inline constexpr std::int64_t kIds = 1490;

// Trajectories of two prompts, three answers each; their log-probabilities are the model's own.
inline std::vector<Trajectory> make_trajectories(const model::Decoder& decoder) {
  std::vector<Trajectory> all;
  for (std::int64_t prompt = 0; prompt < 2; ++prompt) {
    for (std::int32_t sample = 0; sample < 3; ++sample) {
      Trajectory t;
      t.draw = prompt;
      t.sample = sample;
      for (TokenId i = 0; i < 6 + 5 * static_cast<TokenId>(prompt); ++i) {
        t.ids.push_back(i < 4 ? 11 + i : 100 + 7 * i + static_cast<TokenId>(prompt));
      }
      t.prompt_length = static_cast<std::int64_t>(t.ids.size());
      for (TokenId i = 0; i < 3 + 4 * sample; ++i) {
        t.ids.push_back(i == 0 ? 50 : (200 + 31 * i * (sample + 1)) % 1400);
      }
      t.mask.assign(t.ids.size() - static_cast<std::size_t>(t.prompt_length), 1);
      const PackSequence pack = {.ids = t.ids, .prompt_length = t.prompt_length, .wanted = t.mask};
      const std::vector<AllowedSet>* allowed = &t.allowed;
      t.logprobs = PackedPass(decoder, {&pack, 1}, {&allowed, 1}, {.num_ids = kIds}).logprobs()[0];
      all.push_back(std::move(t));
    }
  }
  return all;
}

inline std::vector<TrainSequence> with_advantages(const std::vector<Trajectory>& trajectories,
                                                  const std::vector<double>& advantages) {
  std::vector<TrainSequence> sequences;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    sequences.push_back({&trajectories[i], advantages[i], false, fmt::format("sample {}", i)});
  }
  return sequences;
}

inline const std::vector<double> kAdvantages = {1.0, -0.5, -0.5, 0.7, 0.3, -1.0};

struct Bench {
  explicit Bench(std::uint64_t seed = 5, at::ScalarType dtype = at::kFloat)
      : tiny(test::random_model(seed, dtype)) {
    optimizer = std::make_unique<AdamW>(AdamWConfig{}, optimizer_parameters(*tiny.weights));
  }

  TrainStepReport step(std::span<const TrainSequence> sequences, TrainStepConfig config) {
    config.num_ids = kIds;
    PolicyTrainer trainer(*tiny.decoder, reference, *optimizer, config);
    return trainer.step(sequences, 1, [this](std::int64_t) { return rate; });
  }

  test::TinyModel tiny;
  std::unique_ptr<AdamW> optimizer;
  const model::Decoder* reference = nullptr;
  double rate = 1e-3;
};

// The first moments after one update are (1 - beta1) times the clipped gradient.
inline std::vector<float> gradient_of(Bench& bench) {
  std::vector<float> all;
  for (const auto& moments : bench.optimizer->moments()) {
    all.insert(all.end(), moments.first.begin(), moments.first.end());
  }
  return all;
}

inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(squares / norm);
}

}  // namespace tandem::trainer
