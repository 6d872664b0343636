#include <algorithm>

#include "app/bench/bench_case.h"
#include "app/compute.h"
#include "app/memory_plan.h"
#include "app/rl/collect.h"
#include "base/error.h"
#include "base/stopwatch.h"
#include "trainer/advantages.h"
#include "trainer/packed_pass.h"
#include "trainer/sft.h"
#include "trainer/train_step.h"
#include "trainer/weight_update.h"

namespace tandem::app {
namespace {

constexpr std::int64_t kRows = 2048;      // of a micro-batch
constexpr std::int64_t kStepRows = 1024;  // of one in a whole step, as in the recipes

std::vector<trainer::SftExample> training_batch(const Session& session,
                                                const BenchSizes& sizes,
                                                bool shared_prompts) {
  std::vector<trainer::SftExample> batch;
  const std::int64_t prompt = shared_prompts ? sizes.prompt_tokens : 1;
  TANDEM_CHECK(prompt < sizes.tokens, "{} prompt tokens of {} tokens", prompt, sizes.tokens);
  for (std::int64_t s = 0; s < sizes.sequences; ++s) {
    trainer::SftExample example;
    const std::int64_t group = shared_prompts ? s / sizes.samples : s;
    example.ids = random_ids(session, prompt, static_cast<std::uint64_t>(group));
    const auto answer =
        random_ids(session, sizes.tokens - prompt, static_cast<std::uint64_t>(sizes.sequences + s));
    example.ids.insert(example.ids.end(), answer.begin(), answer.end());
    example.prompt_length = prompt;
    example.mask.assign(answer.size(), 1);
    example.label = "sequence " + std::to_string(s);
    batch.push_back(std::move(example));
  }
  return batch;
}

// What trainer.memory makes of these sizes.
MemoryPlan plan_of(const Session& session, const BenchSizes& sizes, std::int64_t rows) {
  // Of the first repetition: later ones find the heap as it was left.
  static const std::int64_t program = resident_bytes() - session.weights->bytes();
  MemoryRequest request;
  request.config = session.decoder->config();
  request.bytes_per_weight = static_cast<std::int64_t>(at::elementSize(session.weights->dtype()));
  request.program_bytes = std::max<std::int64_t>(0, program);
  // Groups are of one size here: as many as fit.
  const std::int64_t group = sizes.prompt_tokens + sizes.samples * sizes.new_tokens;
  request.rows_per_microbatch = std::max<std::int64_t>(1, rows / group) * group;
  request.reuse_activations = sizes.reuse;
  request.prompts_per_step = sizes.prompts;
  request.samples_per_prompt = sizes.samples;
  request.max_prompt_tokens = sizes.prompt_tokens;
  request.max_new_tokens = sizes.new_tokens;
  request.memory = sizes.memory;
  request.available_bytes = available_memory_bytes() + resident_bytes();
  return plan_memory(request);
}

// A reward that costs nothing and tells samples apart: the share of even ids.
std::vector<trainer::TrainSequence> with_trivial_advantages(const std::vector<Group>& groups) {
  std::vector<trainer::TrainSequence> sequences;
  for (const auto& group : groups) {
    std::vector<std::optional<double>> rewards;
    for (const auto& t : group.trajectories) {
      const auto even = std::count_if(
          t.ids.begin() + t.prompt_length, t.ids.end(), [](TokenId id) { return id % 2 == 0; });
      rewards.emplace_back(static_cast<double>(even));
    }
    const auto advantages = trainer::group_advantages(rewards, {}).advantages;
    for (std::size_t i = 0; i < group.trajectories.size(); ++i) {
      sequences.push_back({&group.trajectories[i], advantages[i], false, group.prompt.id});
    }
  }
  return sequences;
}

// Of those that give a gradient, as the trainer counts them.
RowCounts count_rows(std::span<const trainer::TrainSequence> sequences) {
  std::vector<trainer::PackSequence> packs;
  for (const auto& sequence : sequences) {
    if (sequence.advantage != 0) {
      const Trajectory& t = *sequence.trajectory;
      packs.push_back({.ids = t.ids, .prompt_length = t.prompt_length, .wanted = t.mask});
    }
  }
  return count_tree_rows(packs);
}

RowCounts count_rows(std::span<const trainer::SftExample> batch) {
  std::vector<trainer::PackSequence> packs;
  for (const auto& example : batch) {
    packs.push_back(
        {.ids = example.ids, .prompt_length = example.prompt_length, .wanted = example.mask});
  }
  return count_tree_rows(packs);
}

std::vector<DrawnPrompt> random_prompts(const Session& session, const BenchSizes& sizes) {
  std::vector<DrawnPrompt> prompts;
  for (std::int64_t p = 0; p < sizes.prompts; ++p) {
    DrawnPrompt drawn;
    drawn.draw = p;
    drawn.prompt.id = "prompt " + std::to_string(p);
    drawn.prompt.ids = random_ids(session, sizes.prompt_tokens, static_cast<std::uint64_t>(p));
    prompts.push_back(std::move(drawn));
  }
  return prompts;
}

// Where a step's activations are kept for its training; null unless the plan reuses them.
std::unique_ptr<model::ActivationTape> tape_of(const Session& session, const MemoryPlan& plan) {
  if (plan.sampled_rows == 0) {
    return nullptr;
  }
  auto tape = std::make_unique<model::ActivationTape>(
      session.weights->config(), session.weights->dtype(), plan.sampled_rows);
  tape->begin(session.weights->version());
  return tape;
}

rollout::EngineConfig engine_config(const Session& session,
                                    const BenchSizes& sizes,
                                    const MemoryPlan& plan,
                                    model::ActivationTape* tape) {
  const std::int64_t tokens =
      sizes.prompts * (sizes.prompt_tokens + 32 + sizes.samples * (sizes.new_tokens + 32));
  rollout::EngineConfig config;
  config.max_batched_tokens = plan.max_batched_tokens;
  config.num_ids = session.num_ids;
  config.kv_bytes =
      tokens * rollout::kv_bytes_per_token(session.decoder->config(), session.weights->dtype());
  config.tape = tape;
  return config;
}

trainer::TrainStepConfig step_config(const Session& session,
                                     const MemoryPlan& plan,
                                     model::ActivationTape* tape) {
  trainer::TrainStepConfig config;
  config.num_ids = session.num_ids;
  config.rows_per_microbatch = plan.rows_per_microbatch;
  config.checkpoint_layers = plan.checkpoint_layers;
  config.keep_logits = plan.keep_logits;
  config.keep_gradients = plan.keep_buffers;
  config.tape = tape;
  return config;
}

// The parts of a step, from its figures.
void add_parts(const Session& session,
               const BenchSizes& sizes,
               const RowCounts& trained,
               double sampled,
               BenchResult& result) {
  const auto counter = counter_of(session);
  const Work rollout = counter.rollout({.prompts = sizes.prompts,
                                        .samples = sizes.samples,
                                        .prompt_tokens = sizes.prompt_tokens,
                                        .new_tokens = sizes.new_tokens});
  const Work train = {counter.training(trained, sampled)};
  const Work optimizer = {counter.optimizer()};
  auto& figures = result.figures;
  result.parts["rollout"] = {figures["rollout_s"], rollout};
  result.parts["train"] = {figures["train_s"], train};
  result.parts["optimizer"] = {figures["optimizer_s"], optimizer};
  PartOfBench whole = {result.seconds, rollout};
  whole.work.insert(whole.work.end(), {train.front(), optimizer.front()});
  result.parts["step"] = whole;
}

}  // namespace

BenchResult bench_score(const Session& session, const BenchSizes& sizes) {
  std::vector<std::vector<TokenId>> ids;
  const std::vector<std::uint8_t> wanted(static_cast<std::size_t>(sizes.tokens - 1), 1);
  for (std::int64_t s = 0; s < sizes.sequences; ++s) {
    ids.push_back(random_ids(session, sizes.tokens, static_cast<std::uint64_t>(s)));
  }
  const std::vector<AllowedSet> all;
  BenchResult result;
  const Stopwatch watch;
  const std::int64_t per_pass = std::max<std::int64_t>(1, kRows / sizes.tokens);
  for (std::int64_t first = 0; first < sizes.sequences; first += per_pass) {
    std::vector<trainer::PackSequence> packs;
    for (auto s = first; s < std::min(first + per_pass, sizes.sequences); ++s) {
      packs.push_back(
          {.ids = ids[static_cast<std::size_t>(s)], .prompt_length = 1, .wanted = wanted});
    }
    const std::vector<const std::vector<AllowedSet>*> allowed(packs.size(), &all);
    const trainer::PackedPass pass(*session.decoder, packs, allowed, {.num_ids = session.num_ids});
  }
  result.seconds = watch.seconds();
  result.figures["tokens_per_s"] =
      tokens_per_second(sizes.sequences * sizes.tokens, result.seconds);
  const std::int64_t rows = sizes.sequences * (sizes.tokens - 1);  // the last predicts nothing
  result.parts["score"] = {result.seconds,
                           {counter_of(session).forward({rows, rows * sizes.tokens / 2, rows})}};
  return result;
}

BenchResult bench_train(const Session& session, const BenchSizes& sizes, bool shared_prompts) {
  trainer::AdamW optimizer({}, trainer::optimizer_parameters(*session.weights));
  const auto batch = training_batch(session, sizes, shared_prompts);
  const bool low = sizes.memory == "low";
  const trainer::SftConfig config = {.rows_per_microbatch = low ? sizes.tokens : kRows,
                                     .checkpoint_layers = low,
                                     .keep_logits = !low,
                                     .keep_gradients = !low,
                                     .num_ids = session.num_ids};
  const Stopwatch watch;
  const auto report = trainer::sft_step(*session.decoder, optimizer, batch, config, 1e-6);
  BenchResult result;
  result.seconds = watch.seconds();
  result.figures["step_s"] = result.seconds;
  result.figures["tokens_per_s"] = tokens_per_second(report.num_targets, result.seconds);
  const auto counter = counter_of(session);
  result.parts["step"] = {result.seconds,
                          {counter.training(count_rows(batch), 0), counter.optimizer()}};
  return result;
}

BenchResult bench_step(const Session& session, const BenchSizes& sizes) {
  const MemoryPlan plan = plan_of(session, sizes, kStepRows);
  trainer::AdamW optimizer({}, trainer::optimizer_parameters(*session.weights));
  const auto tape = tape_of(session, plan);
  rollout::Engine engine(
      *session.decoder, engine_config(session, sizes, plan, tape.get()), nullptr);
  trainer::PolicyTrainer policy(
      *session.decoder, nullptr, optimizer, step_config(session, plan, tape.get()));
  rollout::SamplingParams params;
  params.max_new_tokens = sizes.new_tokens;
  params.ignore_eos = true;
  const auto prompts = random_prompts(session, sizes);

  BenchResult result;
  auto& figures = result.figures;
  const Stopwatch whole;
  const Stopwatch rollout_watch;
  const auto groups =
      collect(engine, session, prompts, static_cast<std::int32_t>(sizes.samples), params);
  figures["rollout_s"] = rollout_watch.seconds();
  const Stopwatch reward_watch;
  const auto sequences = with_trivial_advantages(groups);
  figures["reward_s"] = reward_watch.seconds();
  engine.enter_train_phase();
  const Stopwatch train_watch;
  const auto report = policy.step(sequences, 0, [](std::int64_t) { return 1e-6; });
  figures["train_s"] = train_watch.seconds() - report.optimizer_s;
  figures["optimizer_s"] = report.optimizer_s;
  if (!plan.keep_buffers) {
    release_free_memory();
  }
  engine.enter_rollout_phase();
  result.seconds = whole.seconds();
  figures["step_s"] = result.seconds;
  figures["other_s"] = result.seconds - figures["rollout_s"] - figures["reward_s"] -
                       figures["train_s"] - figures["optimizer_s"];
  figures["sampled_rows"] = static_cast<double>(report.num_sampled_rows);
  figures["planned_bytes"] = static_cast<double>(plan.peak());
  figures["logprob_gap_max"] = report.first.logp_gap_max;
  const double sampled = static_cast<double>(report.num_sampled_rows) /
                         static_cast<double>(std::max<std::int64_t>(report.num_rows, 1));
  add_parts(session, sizes, count_rows(sequences), sampled, result);
  return result;
}

}  // namespace tandem::app
