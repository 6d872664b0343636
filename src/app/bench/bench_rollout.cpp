#include <algorithm>
#include <memory>

#include "app/bench/bench_case.h"
#include "base/counter_rng.h"
#include "base/stopwatch.h"
#include "rollout/engine.h"

namespace tandem::app {
namespace {

std::unique_ptr<rollout::Engine> make_engine(const Session& session, std::int64_t num_tokens) {
  rollout::EngineConfig config;
  config.num_ids = session.num_ids;
  config.kv_bytes =
      (num_tokens + 2 * config.block_size) *
      rollout::kv_bytes_per_token(session.decoder->config(), session.weights->dtype());
  return std::make_unique<rollout::Engine>(*session.decoder, config, nullptr);
}

rollout::GroupRequest make_request(const Session& session,
                                   const BenchSizes& sizes,
                                   std::int64_t draw,
                                   std::int32_t samples) {
  rollout::GroupRequest request;
  request.draw = draw;
  request.num_samples = samples;
  request.prompt = random_ids(session, sizes.prompt_tokens, static_cast<std::uint64_t>(draw));
  if (sizes.shared_text) {
    const auto common = random_ids(session, sizes.prompt_tokens / 2, 1'000'000);
    std::copy(common.begin(), common.end(), request.prompt.begin());
  }
  request.params.max_new_tokens = sizes.new_tokens;
  request.params.ignore_eos = true;
  return request;
}

// Seconds and tokens of the steps that computed prompts, and of those that only decoded.
struct EngineTimes {
  double prefill_s = 0, decode_s = 0;
  std::int64_t prefill_tokens = 0, decode_tokens = 0, sampled = 0;
};

EngineTimes run_timed(rollout::Engine& engine) {
  EngineTimes times;
  while (engine.has_work()) {
    const auto before = engine.scheduler().counters();
    const Stopwatch watch;
    for (const auto& sample : engine.step()) {
      times.sampled += static_cast<std::int64_t>(sample.ids.size());
    }
    const auto after = engine.scheduler().counters();
    const auto prefilled = after.tokens_prefill - before.tokens_prefill;
    (prefilled > 0 ? times.prefill_s : times.decode_s) += watch.seconds();
    times.prefill_tokens += prefilled;
    times.decode_tokens += prefilled > 0 ? 0 : after.tokens_decode - before.tokens_decode;
  }
  return times;
}

}  // namespace

std::vector<TokenId> random_ids(const Session& session, std::int64_t count, std::uint64_t draw) {
  std::vector<TokenId> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    const RandomKey key = {.seed = 1,
                           .draw = draw,
                           .position = static_cast<std::uint32_t>(i),
                           .purpose = RandomPurpose::kMakeData};
    ids.push_back(
        static_cast<TokenId>(random_below(key, static_cast<std::uint64_t>(session.num_ids))));
  }
  return ids;
}

BenchResult bench_rollout(const Session& session, const BenchSizes& sizes) {
  const std::int64_t per_group = sizes.prompt_tokens + 32 + sizes.samples * (sizes.new_tokens + 32);
  const auto engine = make_engine(session, sizes.prompts * per_group);
  for (std::int64_t p = 0; p < sizes.prompts; ++p) {
    engine->add(make_request(session, sizes, p, static_cast<std::int32_t>(sizes.samples)));
  }
  const Stopwatch watch;
  const EngineTimes times = run_timed(*engine);
  BenchResult result;
  result.seconds = watch.seconds();
  result.figures["tokens_per_s"] = tokens_per_second(times.sampled, result.seconds);
  result.figures["prefill_tokens_per_s"] = tokens_per_second(times.prefill_tokens, times.prefill_s);
  result.figures["decode_tokens_per_s"] = tokens_per_second(times.decode_tokens, times.decode_s);
  const RolloutSizes work = {.prompts = sizes.prompts,
                             .samples = sizes.samples,
                             .prompt_tokens = sizes.prompt_tokens,
                             .new_tokens = sizes.new_tokens,
                             .shared_tokens = sizes.shared_text ? sizes.prompt_tokens / 2 : 0};
  const auto counter = counter_of(session);
  result.parts["prefill"] = {times.prefill_s, counter.prefill(work)};
  result.parts["decode"] = {times.decode_s, counter.decode(work)};
  result.parts["rollout"] = {result.seconds, counter.rollout(work)};
  return result;
}

BenchResult bench_decode(const Session& session, const BenchSizes& sizes) {
  BenchResult result;
  for (const auto batch : sizes.batches) {
    const auto engine = make_engine(session, batch * (sizes.prompt_tokens + sizes.new_tokens + 64));
    for (std::int64_t p = 0; p < batch; ++p) {
      engine->add(make_request(session, sizes, p, 1));
    }
    const EngineTimes times = run_timed(*engine);
    result.seconds += times.decode_s;
    const std::string name = std::to_string(batch);
    result.figures["tokens_per_s/" + name] = tokens_per_second(times.decode_tokens, times.decode_s);
    result.parts[name] = {times.decode_s,
                          counter_of(session).decode({.prompts = batch,
                                                      .samples = 1,
                                                      .prompt_tokens = sizes.prompt_tokens,
                                                      .new_tokens = sizes.new_tokens})};
  }
  return result;
}

}  // namespace tandem::app
