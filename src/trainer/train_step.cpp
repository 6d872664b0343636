#include "trainer/train_step.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/stopwatch.h"
#include "trainer/microbatch.h"
#include "trainer/packed_pass.h"
#include "trainer/weight_update.h"

namespace tandem::trainer {
namespace {

std::vector<PackSequence> to_pack(std::span<const TrainSequence> sequences) {
  std::vector<PackSequence> packs;
  for (const auto& sequence : sequences) {
    const Trajectory& t = *sequence.trajectory;
    packs.push_back({.ids = t.ids,
                     .prompt_length = t.prompt_length,
                     .wanted = t.mask,
                     .kept_rows = t.kept_rows});
  }
  return packs;
}

std::vector<const std::vector<AllowedSet>*> allowed_sets(std::span<const TrainSequence> sequences) {
  std::vector<const std::vector<AllowedSet>*> sets;
  for (const auto& sequence : sequences) {
    sets.push_back(&sequence.trajectory->allowed);
  }
  return sets;
}

std::int64_t counted_tokens(const TrainSequence& sequence) {
  const Trajectory& t = *sequence.trajectory;
  return sequence.masked ? 0 : num_counted_tokens<float>(t.mask, t.logprobs);
}

// One update's shares of clipped tokens, into those of the step.
void add_clip_shares(const PolicyLossSums& update, TrainStepReport& report) {
  if (update.num_tokens == 0) {
    return;
  }
  const auto n = static_cast<double>(update.num_tokens);
  report.clip_low_min =
      std::min(report.clip_low_min, static_cast<double>(update.num_clipped_low) / n);
  report.clip_high_max =
      std::max(report.clip_high_max, static_cast<double>(update.num_clipped_high) / n);
}

bool finite_gradients(const model::WeightStore& weights) {
  const auto gradients = weights.named_gradients();
  return std::ranges::all_of(gradients, [](const auto& entry) {
    return at::isfinite(entry.second).all().template item<bool>();
  });
}

}  // namespace

PolicyTrainer::PolicyTrainer(model::Decoder& decoder,
                             const model::Decoder* reference,
                             AdamW& optimizer,
                             const TrainStepConfig& config)
    : decoder_(decoder), reference_(reference), optimizer_(optimizer), config_(config) {
  check_policy_loss(config.loss);
  TANDEM_CHECK(config.loss.kl.coefficient == 0 || reference != nullptr,
               "a loss with a KL term needs a reference model");
}

TrainStepReport PolicyTrainer::step(std::span<const TrainSequence> sequences,
                                    std::int64_t step,
                                    const LearningRate& learning_rate) {
  TrainStepReport report;
  const auto count = static_cast<std::int64_t>(sequences.size());
  for (std::int64_t epoch = 0; epoch < config_.epochs; ++epoch) {
    const MinibatchKey key = {config_.seed, step, epoch};
    for (const auto& indices : split_minibatches(count, config_.minibatches, key)) {
      std::vector<TrainSequence> minibatch;
      for (const auto i : indices) {
        minibatch.push_back(sequences[static_cast<std::size_t>(i)]);
      }
      update(minibatch, learning_rate, report);
    }
  }
  if (!config_.keep_gradients) {
    decoder_.weights().drop_gradients();
  }
  return report;
}

void PolicyTrainer::update(std::span<const TrainSequence> minibatch,
                           const LearningRate& learning_rate,
                           TrainStepReport& report) {
  const bool is_first = report.num_updates + report.num_empty + report.num_skipped == 0;
  std::vector<std::int64_t> tokens;
  std::vector<TrainSequence> members;  // those that give a gradient
  for (const auto& sequence : minibatch) {
    tokens.push_back(counted_tokens(sequence));
    if (tokens.back() > 0 && has_loss(sequence.advantage, config_.loss)) {
      members.push_back(sequence);
    }
  }
  report.num_zero_weight += static_cast<std::int64_t>(minibatch.size() - members.size());
  if (members.empty()) {
    ++report.num_empty;
    return;
  }
  const LossNormalizer normalizer(tokens, config_.loss);
  decoder_.weights().zero_gradients();
  const auto label = [&](std::int64_t i) { return members[static_cast<std::size_t>(i)].label; };
  PolicyLossSums sums;
  for (const auto& indices :
       split_microbatches(to_pack(members), config_.rows_per_microbatch, label)) {
    std::vector<TrainSequence> microbatch;
    for (const auto i : indices) {
      microbatch.push_back(members[static_cast<std::size_t>(i)]);
    }
    sums += run_microbatch(microbatch, normalizer, report);
  }
  report.sums += sums;
  add_clip_shares(sums, report);
  if (is_first) {
    report.first = sums;
  }
  if (sums.finite()) {
    apply(learning_rate(optimizer_.num_steps()), members, normalizer, report);
  } else {
    ++report.num_skipped;
  }
}

PolicyLossSums PolicyTrainer::run_microbatch(std::span<const TrainSequence> sequences,
                                             const LossNormalizer& normalizer,
                                             TrainStepReport& report) {
  const auto packs = to_pack(sequences);
  const auto allowed = allowed_sets(sequences);
  PassOptions options = {.temperature = config_.temperature, .num_ids = config_.num_ids};
  TokenValues ref_logp;
  if (config_.loss.kl.coefficient != 0) {
    const SpanRecorder::Scope span(config_.spans, "reference");
    const Stopwatch watch;
    ref_logp = PackedPass(*reference_, packs, allowed, options).logprobs();
    report.reference_s += watch.seconds();
  }
  options.with_gradient = true;
  options.checkpoint_layers = config_.checkpoint_layers;
  options.keep_logits = config_.keep_logits;
  options.tape = config_.tape;
  auto pass = [&] {
    const SpanRecorder::Scope span(config_.spans, "forward");
    return PackedPass(decoder_, packs, allowed, options);
  }();
  report.num_rows += pass.num_rows();
  report.num_sampled_rows += pass.was_sampled() ? pass.num_rows() : 0;

  TokenValues logp_slopes = pass.logprobs();
  TokenValues entropy_slopes = pass.entropies();
  PolicyLossSums sums;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Trajectory& t = *sequences[i].trajectory;
    const SequenceLossInput<float> input = {
        .logp = pass.logprobs()[i],
        .behavior_logp = t.logprobs,
        .ref_logp = ref_logp.empty() ? std::span<const float>() : ref_logp[i],
        .entropy = pass.entropies()[i],
        .mask = t.mask,
        .advantage = sequences[i].advantage};
    PolicyLossSums own;
    sequence_loss<float>(input,
                         config_.loss,
                         normalizer.token_weight(counted_tokens(sequences[i])),
                         {logp_slopes[i], entropy_slopes[i]},
                         own);
    if (!own.finite()) {
      report.problems.push_back(
          fmt::format("update skipped: the loss of {} is not finite", sequences[i].label));
    }
    sums += own;
  }
  if (config_.loss.entropy_coefficient == 0) {
    entropy_slopes.clear();
  }
  const SpanRecorder::Scope span(config_.spans, "backward");
  pass.backward(logp_slopes, entropy_slopes);
  return sums;
}

void PolicyTrainer::apply(double rate,
                          std::span<const TrainSequence> members,
                          const LossNormalizer& normalizer,
                          TrainStepReport& report) {
  const SpanRecorder::Scope span(config_.spans, "optimizer");
  const Stopwatch watch;
  const auto result = update_weights(decoder_.weights(), optimizer_, rate);
  report.optimizer_s += watch.seconds();
  report.grad_norm = result.grad_norm;
  report.learning_rate = rate;
  if (result.skipped) {
    ++report.num_skipped;
    report.problems.push_back(
        fmt::format("update skipped: the gradient of {} is not finite, from {}",
                    result.nonfinite,
                    origin_of_fault(members, normalizer)));
  } else {
    ++report.num_updates;
  }
}

// Names the first samples whose own gradient is not finite. The update is skipped, so its gradients
// may be overwritten: each sample runs once more, alone. It costs time only where something broke.
std::string PolicyTrainer::origin_of_fault(std::span<const TrainSequence> members,
                                           const LossNormalizer& normalizer) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> labels;
  for (const auto& member : members) {
    decoder_.weights().zero_gradients();
    TrainStepReport unused;
    run_microbatch({&member, 1}, normalizer, unused);
    if (!finite_gradients(decoder_.weights())) {
      labels.push_back(member.label);
    }
    if (labels.size() == kMostNamed) {
      break;
    }
  }
  return labels.empty() ? fmt::format("the sum over {} samples", members.size())
                        : fmt::format("{}", fmt::join(labels, "; "));
}

}  // namespace tandem::trainer
