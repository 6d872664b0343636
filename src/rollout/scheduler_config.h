// What a scheduler is told, and what it counts.
#pragma once

#include <cstdint>

#include "rollout/block_manager.h"

namespace tandem::rollout {

/// Tokens guessed ahead of a sample and verified in one step. They change no token and no
/// log-probability: at each place the token is drawn as without them, and a guess only tells
/// whether the rows behind it were of use.
struct SpeculationConfig {
  std::int64_t num_tokens = 0;  // guesses a step and sample; 0: none are made
  std::int64_t lookup_max = 4;  // longest end of the text that is looked for further up
  std::int64_t lookup_min = 2;  // shortest; at least 1
};

struct SchedulerConfig {
  BlockManagerConfig blocks;
  std::int64_t max_batched_tokens = 2048;  // rows a step; at least max_sequences
  std::int64_t max_sequences = 256;        // samples that run at one time
  std::int64_t max_model_len = 0;          // prompt and output; 0: as long as the pool allows
  std::int64_t max_prompt_chunk = 0;       // rows of one prompt a step; 0: up to the budget
  SpeculationConfig speculation = {};
  bool check_each_step = false;  // check_invariants() after each commit
};

/// Totals since the scheduler was made, except where "now" is said.
struct SchedulerCounters {
  std::int64_t steps = 0;
  std::int64_t tokens_prefill = 0;     // prompt rows computed for the first time
  std::int64_t tokens_decode = 0;      // rows of sampled tokens computed for the first time
  std::int64_t tokens_recomputed = 0;  // rows whose KV had been given up
  std::int64_t prefix_query_tokens = 0;
  std::int64_t prefix_hit_tokens = 0;  // of those asked for, once a request
  std::int64_t preemptions = 0;        // sequences that lost their blocks, or found none to fork
  std::int64_t aborts = 0;             // samples
  std::int64_t forks = 0;
  std::int64_t cow_copies = 0;       // forks that copied a partly filled block
  std::int64_t drafts = 0;           // tokens guessed ahead
  std::int64_t drafts_accepted = 0;  // of them, those that were drawn
  std::int64_t nan_rows = 0;         // samples ended by logits that are not finite
  std::int64_t running = 0;          // samples now
  std::int64_t waiting = 0;          // samples now
  double kv_usage = 0;               // share of the pool in use now
  double kv_usage_peak = 0;          // since it was last taken
};

/// What pause() does with the requests there are. Those added later wait for resume() in any case.
enum class PauseMode {
  kAbort,  // all end, with what they have
  kWait,   // those that have started run to their end
  kKeep,   // nothing moves; they go on after resume()
};

}  // namespace tandem::rollout
