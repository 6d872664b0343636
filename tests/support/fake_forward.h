// A stand-in for the model's forward pass over a paged KV arena, for tests of the scheduler.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "rollout/scheduler.h"

namespace tandem::test {

/// Obeys the contract of rollout::StepPlan: a row's KV is a hash of its token, its position, the
/// weight version and all KV that it attends to, and its logits are a function of that KV. Whoever
/// reads a stale, foreign or unwritten slot gets other logits. Reading a slot that another sequence
/// writes in the same step is an error.
class FakeForward {
 public:
  FakeForward(std::int32_t num_blocks, std::int32_t block_size, std::int64_t num_ids)
      : block_size_(block_size),
        num_ids_(num_ids),
        slots_(static_cast<std::size_t>(num_blocks) * block_size) {}

  /// The logits of each of `plan.sample_rows`.
  std::vector<std::vector<float>> run(const rollout::StepPlan& plan, WeightVersion version) {
    ++step_;
    for (const auto& copy : plan.copies) {
      for (std::int32_t offset = 0; offset < block_size_; ++offset) {
        slots_.at(copy.to * block_size_ + offset) = slots_.at(copy.from * block_size_ + offset);
      }
    }
    std::vector<std::uint64_t> rows;
    for (std::size_t row = 0; row < plan.ids.size(); ++row) {
      const std::int32_t sequence = plan.sequence_of_row[row];
      const auto view = plan.sequences[sequence].slots;
      const auto position = static_cast<std::size_t>(plan.positions[row]);
      TANDEM_CHECK(view[position] == plan.slots[row], "row {} is not in its own sequence", row);
      const std::uint64_t kv =
          kv_of(plan.ids[row], version, attend(view.first(position), sequence));
      slots_.at(plan.slots[row]) = {kv, step_, sequence};
      rows.push_back(kv);
    }
    std::vector<std::vector<float>> logits;
    for (const std::int32_t row : plan.sample_rows) {
      logits.push_back(logits_of(rows.at(row)));
    }
    return logits;
  }

  /// The logits after `ids`, computed from nothing.
  [[nodiscard]] std::vector<float> logits_after(std::span<const TokenId> ids,
                                                WeightVersion version) const {
    std::uint64_t context = 0;
    std::uint64_t kv = 0;
    for (const TokenId id : ids) {
      kv = kv_of(id, version, context);
      context = mix(context, kv);
    }
    return logits_of(kv);
  }

  /// Logits become NaN from now on; `false` ends it.
  void break_logits(bool broken) { broken_ = broken; }

 private:
  struct Slot {
    std::uint64_t kv = 0xdead;
    std::int64_t step = -1;
    std::int32_t sequence = -1;
  };

  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  static std::uint64_t kv_of(TokenId id, WeightVersion version, std::uint64_t context) {
    return mix(mix(static_cast<std::uint64_t>(id) + 1, static_cast<std::uint64_t>(version)),
               context);
  }

  [[nodiscard]] std::uint64_t attend(std::span<const std::int32_t> keys,
                                     std::int32_t sequence) const {
    std::uint64_t context = 0;
    for (const std::int32_t key : keys) {
      const Slot& slot = slots_.at(key);
      TANDEM_CHECK(slot.step != step_ || slot.sequence == sequence,
                   "sequence {} reads what sequence {} writes in the same step",
                   sequence,
                   slot.sequence);
      context = mix(context, slot.kv);
    }
    return context;
  }

  [[nodiscard]] std::vector<float> logits_of(std::uint64_t kv) const {
    std::vector<float> logits;
    for (std::int64_t id = 0; id < num_ids_; ++id) {
      const auto bits = mix(kv, static_cast<std::uint64_t>(id));
      logits.push_back(broken_ ? NAN : static_cast<float>(bits >> 40) / (1 << 22));
    }
    return logits;
  }

  std::int32_t block_size_;
  std::int64_t num_ids_;
  std::int64_t step_ = 0;
  bool broken_ = false;
  std::vector<Slot> slots_;
};

using SampleName = std::pair<std::int64_t, std::int32_t>;  // draw, sample

/// A scheduler, its arena and a sampler: what an engine is made of.
struct FakeEngine {
  explicit FakeEngine(const rollout::SchedulerConfig& config,
                      std::int64_t num_ids = 12,
                      rollout::TextSinkFactory text = {})
      : scheduler(config, std::move(text)),
        forward(config.blocks.num_blocks, config.blocks.block_size, num_ids),
        sampler(num_ids) {}

  std::vector<rollout::SampledToken> draw(const rollout::StepPlan& plan) {
    const auto logits = forward.run(plan, scheduler.weight_version());
    std::vector<rollout::SampledToken> tokens;
    for (const auto& entry : plan.samples) {
      tokens.push_back(sampler.sample(logits.at(entry.logits_row).data(), entry.input));
    }
    return tokens;
  }

  void keep(std::vector<rollout::FinishedSample> ended) {
    for (auto& sample : ended) {
      const SampleName name(sample.draw, sample.sample);
      TANDEM_CHECK(finished.emplace(name, std::move(sample)).second,
                   "draw {} sample {} ended twice",
                   name.first,
                   name.second);
    }
  }

  /// One step; returns its plan, whose views are no longer valid.
  rollout::StepPlan step() {
    rollout::StepPlan plan = scheduler.schedule();
    keep(scheduler.commit(plan, draw(plan)));
    return plan;
  }

  void run() {
    while (scheduler.has_work()) {
      step();
    }
  }

  /// What `sample` of `request` must be, from the definition: no cache, no batch, no scheduler.
  std::vector<rollout::SampledToken> expected_tokens(const rollout::GroupRequest& request,
                                                     std::int32_t sample) {
    std::vector<rollout::SampledToken> tokens;
    std::vector<TokenId> ids = request.prompt;
    rollout::StopRules rules(request.params, request.params.max_new_tokens, nullptr);
    for (std::int64_t n = 0;; ++n) {
      const auto logits = forward.logits_after(ids, scheduler.weight_version());
      const auto token =
          sampler.sample(logits.data(),
                         {.params = &request.params,
                          .context = ids,
                          .num_generated = n,
                          .key = {.seed = request.params.seed,
                                  .draw = static_cast<std::uint64_t>(request.draw),
                                  .sample = static_cast<std::uint32_t>(sample),
                                  .turn = static_cast<std::uint32_t>(request.turn),
                                  .position = static_cast<std::uint32_t>(ids.size())}});
      tokens.push_back(token);
      ids.push_back(token.id);
      if (rules.push(token.id, n + 1)) {
        return tokens;
      }
    }
  }

  std::vector<TokenId> expected(const rollout::GroupRequest& request, std::int32_t sample) {
    std::vector<TokenId> ids;
    for (const auto& token : expected_tokens(request, sample)) {
      ids.push_back(token.id);
    }
    return ids;
  }

  /// True when the ids, log-probabilities and sets of a finished sample are those expected.
  bool is_as_expected(const rollout::GroupRequest& request, std::int32_t sample) {
    const rollout::FinishedSample& got = finished.at({request.draw, sample});
    const auto tokens = expected_tokens(request, sample);
    bool same = got.ids.size() == tokens.size() && got.logprobs.size() == tokens.size() &&
                got.versions.size() == tokens.size();
    for (std::size_t i = 0; same && i < tokens.size(); ++i) {
      const AllowedSet allowed = got.allowed.empty() ? AllowedSet{} : got.allowed.at(i);
      same = got.ids[i] == tokens[i].id && got.logprobs[i] == tokens[i].logprob &&
             allowed == tokens[i].allowed;
    }
    return same;
  }

  rollout::Scheduler scheduler;
  FakeForward forward;
  rollout::TokenSampler sampler;
  std::map<SampleName, rollout::FinishedSample> finished;
};

/// `size` ids that no prompt with another `tag` begins with.
inline std::vector<TokenId> make_prompt(std::int64_t size, TokenId tag = 0) {
  std::vector<TokenId> ids(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<TokenId>((i * 7 + static_cast<std::size_t>(tag) * 5) % 11);
  }
  if (!ids.empty()) {
    ids.front() = tag;
  }
  return ids;
}

/// Plenty of blocks of 4 tokens, books checked after each step.
inline rollout::SchedulerConfig small_scheduler(std::int64_t max_batched_tokens,
                                                std::int64_t max_sequences) {
  return {.blocks = {.num_blocks = 64, .block_size = 4},
          .max_batched_tokens = max_batched_tokens,
          .max_sequences = max_sequences,
          .check_each_step = true};
}

/// A group of up to 6 new tokens a sample; its draw tags its prompt.
inline rollout::GroupRequest small_group(std::int64_t draw,
                                         std::int32_t num_samples,
                                         std::int64_t prompt_length) {
  rollout::GroupRequest request{.draw = draw,
                                .num_samples = num_samples,
                                .prompt = make_prompt(prompt_length, TokenId(draw))};
  request.params.max_new_tokens = 6;
  return request;
}

}  // namespace tandem::test
