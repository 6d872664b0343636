#include "trainer/sft.h"

#include <algorithm>

#include "trainer/microbatch.h"
#include "trainer/packed_pass.h"
#include "trainer/weight_update.h"

namespace tandem::trainer {
namespace {

std::vector<PackSequence> to_pack(std::span<const SftExample> batch) {
  std::vector<PackSequence> packs;
  for (const auto& example : batch) {
    packs.push_back(
        {.ids = example.ids, .prompt_length = example.prompt_length, .wanted = example.mask});
  }
  return packs;
}

// The summed loss of a pass; `slopes` become its derivatives, -1 / N on each target.
double negative_log_likelihood(std::span<const PackSequence> packs,
                               std::int64_t num_targets,
                               TokenValues& slopes) {
  double loss = 0;
  const auto n = static_cast<double>(num_targets);
  for (std::size_t i = 0; i < packs.size(); ++i) {
    for (std::size_t t = 0; t < slopes[i].size(); ++t) {
      const bool target = packs[i].wanted[t] != 0;
      loss -= target ? static_cast<double>(slopes[i][t]) / n : 0.0;
      slopes[i][t] = target ? static_cast<float>(-1.0 / n) : 0.0F;
    }
  }
  return loss;
}

}  // namespace

SftReport sft_step(model::Decoder& decoder,
                   AdamW& optimizer,
                   std::span<const SftExample> batch,
                   const SftConfig& config,
                   double learning_rate) {
  SftReport report;
  for (const auto& example : batch) {
    report.num_targets += std::count(example.mask.begin(), example.mask.end(), 1);
  }
  if (report.num_targets == 0) {
    report.update.skipped = true;
    return report;
  }
  decoder.weights().zero_gradients();
  const auto packs = to_pack(batch);
  const auto label = [&](std::int64_t i) { return batch[static_cast<std::size_t>(i)].label; };
  static const std::vector<AllowedSet> kAll;
  for (const auto& indices : split_microbatches(packs, config.rows_per_microbatch, label)) {
    std::vector<PackSequence> members;
    for (const auto i : indices) {
      members.push_back(packs[static_cast<std::size_t>(i)]);
    }
    const std::vector<const std::vector<AllowedSet>*> allowed(members.size(), &kAll);
    PackedPass pass(decoder,
                    members,
                    allowed,
                    {.with_gradient = true,
                     .checkpoint_layers = config.checkpoint_layers,
                     .keep_logits = config.keep_logits,
                     .num_ids = config.num_ids});
    TokenValues slopes = pass.logprobs();
    report.loss += negative_log_likelihood(members, report.num_targets, slopes);
    pass.backward(slopes, {});
  }
  report.update = update_weights(decoder.weights(), optimizer, learning_rate);
  if (!config.keep_gradients) {
    decoder.weights().drop_gradients();
  }
  return report;
}

}  // namespace tandem::trainer
