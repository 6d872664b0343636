#include "rollout/engine.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/vocab.h"

namespace tandem::rollout {
namespace {

// Rows of logits held at once: 64 rows of 49,152 ids are 13 MB.
constexpr std::int64_t kLogitRows = 64;

template <class T>
at::Tensor view_of(const std::vector<T>& values, at::ScalarType type) {
  const auto size = static_cast<std::int64_t>(values.size());
  return at::from_blob(const_cast<T*>(values.data()), {size}, at::dtype(type));
}

VocabMath kernel_vocab_math() {
  return {&kernels::reduce_logits, &kernels::exp_shifted};
}

std::int64_t num_blocks(const model::Decoder& decoder, const EngineConfig& config) {
  const auto block_bytes =
      kv_bytes_per_token(decoder.config(), decoder.weights().dtype()) * config.block_size;
  // Block 0 is never used, and a pool needs at least one more.
  const std::int64_t blocks = config.kv_bytes / block_bytes;
  if (blocks < 2) {
    fail<UserError>("rollout.kv_bytes: {} bytes hold {} blocks of {} bytes; at least 2 are needed",
                    config.kv_bytes,
                    blocks,
                    block_bytes);
  }
  return blocks;
}

KvArenaConfig arena_config(const model::Decoder& decoder, const EngineConfig& config) {
  const auto& c = decoder.config();
  return {.num_slots = num_blocks(decoder, config) * config.block_size,
          .num_layers = c.num_layers,
          .num_kv_heads = c.num_kv_heads,
          .head_dim = c.head_dim,
          .dtype = decoder.weights().dtype()};
}

SchedulerConfig scheduler_config(const model::Decoder& decoder, const EngineConfig& config) {
  SchedulerConfig scheduler;
  scheduler.blocks.num_blocks = static_cast<std::int32_t>(num_blocks(decoder, config));
  scheduler.blocks.block_size = config.block_size;
  scheduler.max_batched_tokens = config.max_batched_tokens;
  scheduler.max_sequences = std::min<std::int64_t>(config.max_sequences, config.max_batched_tokens);
  scheduler.max_model_len =
      config.max_model_len > 0 ? config.max_model_len : decoder.max_positions();
  scheduler.speculation = config.speculation;
  scheduler.check_each_step = config.check_invariants;
  return scheduler;
}

}  // namespace

std::int64_t kv_bytes_per_token(const model::ModelConfig& config, at::ScalarType dtype) {
  return 2 * config.num_layers * config.num_kv_heads * config.head_dim *
         static_cast<std::int64_t>(at::elementSize(dtype));
}

Engine::Engine(model::Decoder& decoder, const EngineConfig& config, TextSinkFactory text)
    : decoder_(decoder),
      config_(config),
      arena_(arena_config(decoder, config)),
      scheduler_(scheduler_config(decoder, config), std::move(text)) {
  scheduler_.set_weight_version(decoder.weights().version());
  set_phase(Phase::kRollout);
  if (config.tape != nullptr) {
    row_of_slot_.assign(static_cast<std::size_t>(num_blocks(decoder, config) * config.block_size),
                        -1);
  }
  for (int i = 0; i < compute_pool().num_threads(); ++i) {
    samplers_.emplace_back(config.num_ids, kernel_vocab_math());
  }
}

Engine::~Engine() {
  decoder_.weights().set_phase(Phase::kTrain);  // nobody samples from them any more
}

void Engine::add(GroupRequest request) {
  request.read_cache = request.read_cache && config_.prefix_cache;
  request.params.validate_ids(config_.num_ids);
  scheduler_.add(std::move(request));
}

std::vector<FinishedSample> Engine::step() {
  require_phase(phase_, Phase::kRollout, "sampling");
  TANDEM_CHECK(decoder_.weights().version() == scheduler_.weight_version(),
               "the weights are at version {} and the cache at version {}: call "
               "enter_rollout_phase() after the weights were written",
               decoder_.weights().version(),
               scheduler_.weight_version());
  const StepPlan plan = scheduler_.schedule();
  if (plan.empty()) {  // nothing to compute, but aborted samples may be there to hand out
    auto ended = scheduler_.commit(plan, {});
    TANDEM_CHECK(
        !ended.empty() || !scheduler_.has_work(),
        "the engine has requests but nothing to compute; this is a fault of the scheduler");
    return ended;
  }
  const at::NoGradGuard no_grad;
  const bool has_prompts = plan.ids.size() > plan.sequences.size();
  const SpanRecorder::Scope span(config_.spans, has_prompts ? "prefill" : "decode");
  copy_blocks(plan);
  const auto hidden = forward(plan);
  const KeptRows kept = kept_rows(plan);  // the plan's views end with the commit
  auto ended = scheduler_.commit(plan, sample(plan, hidden));
  for (auto& sample : ended) {
    // The rows of a prompt that its group shares go by the first sample: a sample that ends with
    // its first token has no others.
    auto rows = kept.upper_bound({sample.draw, sample.sample});
    if (rows == kept.begin() || (--rows)->first.first != sample.draw) {
      continue;
    }
    if (rows->first.second == sample.sample || sample.ids.size() <= 1) {
      sample.kept_rows = rows->second;
    }
  }
  return ended;
}

// Room for the plan's rows on the tape, if there is one; slots remember which row they hold.
model::TapeWriter Engine::tape_for(const StepPlan& plan) {
  if (config_.tape == nullptr) {
    return {};
  }
  const bool current = config_.tape->version() == decoder_.weights().version();
  const auto count = static_cast<std::int64_t>(plan.ids.size());
  const auto first = current ? config_.tape->append(count) : std::nullopt;
  for (std::size_t r = 0; r < plan.slots.size(); ++r) {
    row_of_slot_[static_cast<std::size_t>(plan.slots[r])] =
        first ? static_cast<std::int32_t>(*first) + static_cast<std::int32_t>(r) : -1;
  }
  return first ? model::TapeWriter{config_.tape, *first} : model::TapeWriter{};
}

Engine::KeptRows Engine::kept_rows(const StepPlan& plan) const {
  KeptRows kept;
  if (config_.tape == nullptr) {
    return kept;
  }
  for (const auto& sequence : plan.sequences) {
    auto& rows = kept[{sequence.draw, sequence.sample}];
    for (const auto slot : sequence.slots) {
      rows.push_back(row_of_slot_[static_cast<std::size_t>(slot)]);
    }
  }
  return kept;
}

std::vector<FinishedSample> Engine::run() {
  std::vector<FinishedSample> finished;
  while (scheduler_.has_work()) {
    auto ended = step();
    std::move(ended.begin(), ended.end(), std::back_inserter(finished));
  }
  return finished;
}

void Engine::copy_blocks(const StepPlan& plan) {
  auto& cache = arena_.cache();
  for (const auto& copy : plan.copies) {
    if (config_.tape != nullptr) {
      const auto first = row_of_slot_.begin();
      std::copy_n(first + std::ptrdiff_t{copy.from} * config_.block_size,
                  config_.block_size,
                  first + std::ptrdiff_t{copy.to} * config_.block_size);
    }
    for (std::size_t layer = 0; layer < cache.k.size(); ++layer) {
      for (auto* side : {&cache.k[layer], &cache.v[layer]}) {
        const auto block = [&](BlockId id) {
          return side->narrow(0, std::int64_t{id} * config_.block_size, config_.block_size);
        };
        block(copy.to).copy_(block(copy.from));
      }
    }
  }
}

at::Tensor Engine::forward(const StepPlan& plan) {
  const SpanRecorder::Scope span(config_.spans, "forward");
  std::vector<std::int32_t> key_slots;
  std::vector<std::int64_t> start_of_sequence;
  for (const auto& sequence : plan.sequences) {
    start_of_sequence.push_back(static_cast<std::int64_t>(key_slots.size()));
    key_slots.insert(key_slots.end(), sequence.slots.begin(), sequence.slots.end());
  }
  std::vector<std::int64_t> path_start;
  for (const auto sequence : plan.sequence_of_row) {
    path_start.push_back(start_of_sequence[static_cast<std::size_t>(sequence)]);
  }
  const std::vector<std::int64_t> write_slots(plan.slots.begin(), plan.slots.end());
  const model::RowBatch batch = {.ids = view_of(plan.ids, at::kInt),
                                 .paths = {.positions = view_of(plan.positions, at::kInt),
                                           .path_start = view_of(path_start, at::kLong),
                                           .key_slots = view_of(key_slots, at::kInt)}};
  return decoder_.forward_cached(
      batch, view_of(write_slots, at::kLong), arena_.cache(), tape_for(plan));
}

std::vector<SampledToken> Engine::sample(const StepPlan& plan, const at::Tensor& hidden) {
  const SpanRecorder::Scope span(config_.spans, "sample");
  std::vector<SampledToken> tokens(plan.samples.size());
  const std::vector<std::int64_t> rows(plan.sample_rows.begin(), plan.sample_rows.end());
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const auto wanted = hidden.index_select(0, view_of(rows, at::kLong));
  for (std::int64_t first = 0; first < num_rows; first += kLogitRows) {
    const std::int64_t count = std::min(kLogitRows, num_rows - first);
    const auto logits = kernels::logits(wanted.narrow(0, first, count), decoder_.weights().head());
    std::vector<std::size_t> entries;
    for (std::size_t i = 0; i < plan.samples.size(); ++i) {
      const std::int64_t row = plan.samples[i].logits_row;
      if (row >= first && row < first + count) {
        entries.push_back(i);
      }
    }
    const auto num_tasks = static_cast<std::int64_t>(samplers_.size());
    compute_pool().parallel_for(num_tasks, [&](std::int64_t task) {
      for (auto e = static_cast<std::size_t>(task); e < entries.size(); e += samplers_.size()) {
        const auto& entry = plan.samples[entries[e]];
        const float* row = logits.data_ptr<float>() + (entry.logits_row - first) * logits.size(1);
        tokens[entries[e]] = samplers_[static_cast<std::size_t>(task)].sample(row, entry.input);
      }
    });
  }
  return tokens;
}

void Engine::enter_train_phase() {
  TANDEM_CHECK(
      !scheduler_.has_work(),
      "the train phase cannot begin while requests are running: finish, abort or pause them");
  scheduler_.preempt_all();
  forget_prefixes();  // what the pages held is lost, whatever the weights' version
  arena_.release();
  set_phase(Phase::kTrain);
}

void Engine::forget_prefixes() {
  TANDEM_CHECK(scheduler_.reset_cache(), "the prefix cache cannot be emptied while requests run");
}

void Engine::enter_rollout_phase() {
  if (decoder_.weights().version() > scheduler_.weight_version()) {
    scheduler_.set_weight_version(decoder_.weights().version());
  }
  set_phase(Phase::kRollout);
}

// The weights know it too: whoever writes them asks there.
void Engine::set_phase(Phase phase) {
  phase_ = phase;
  decoder_.weights().set_phase(phase);
}

}  // namespace tandem::rollout
