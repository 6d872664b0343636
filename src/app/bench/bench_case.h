// The project's own benchmarks: one function each, timed by its caller.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/bench/work.h"
#include "app/session.h"

namespace tandem::app {

/// The sizes of a benchmark; each reads what its line in `tandem bench --help` names.
struct BenchSizes {
  std::int64_t prompts = 16;
  std::int64_t samples = 8;
  std::int64_t prompt_tokens = 128;
  std::int64_t new_tokens = 256;
  std::int64_t sequences = 8;
  std::int64_t tokens = 256;
  bool shared_text = false;     // all prompts begin alike
  std::string memory = "auto";  // auto, low: as trainer.memory
  bool reuse = false;           // as trainer.reuse_activations
  std::vector<std::int64_t> batches = {1, 8, 32, 64, 128};
};

/// What a part of a benchmark had to do, and how long it took.
struct PartOfBench {
  double seconds = 0;
  Work work;
};

/// One repetition: its seconds, and figures by name. A figure with a '/' in its name belongs to an
/// object: "tokens_per_s/8".
struct BenchResult {
  double seconds = 0;
  std::map<std::string, double> figures;
  std::map<std::string, PartOfBench> parts;  // by name; their rooflines become figures
};

/// Adds the machine's limits, and for each part `roofline_s` (the seconds that its work takes at
/// those limits), `roofline_share`, `gflops`, `share_of_fma_limit` and `share_of_dram`.
void add_roofline(const Session& session, const MachineLimits& limits, BenchResult& result);

/// `rollout`: random prompts, eos ignored, temperature 1, as the trainer calls it.
BenchResult bench_rollout(const Session& session, const BenchSizes& sizes);

/// `decode`: steady decoding at several batch sizes; prompts are not timed.
BenchResult bench_decode(const Session& session, const BenchSizes& sizes);

/// `score`: teacher-forced log-probabilities of random sequences.
BenchResult bench_score(const Session& session, const BenchSizes& sizes);

/// `train`: forward, backward and update. With prompt_tokens below tokens, groups of `samples`
/// share a prompt and only the tokens after it are trained.
BenchResult bench_train(const Session& session, const BenchSizes& sizes, bool shared_prompts);

/// `step`: one whole RL step with a trivial reward.
BenchResult bench_step(const Session& session, const BenchSizes& sizes);

/// `kernels`: each kernel at the model's shapes, forward and backward, with its share of what binds
/// it (the arithmetic in use, or memory), which it measures in the same run.
BenchResult bench_kernels(const Session& session);

/// Of the session's model, in its precision.
WorkCounter counter_of(const Session& session);

/// 0 where no time passed.
double tokens_per_second(std::int64_t tokens, double seconds);

/// Ids that look like text to the kernels: uniform, the same for the same arguments.
std::vector<TokenId> random_ids(const Session& session, std::int64_t count, std::uint64_t draw);

}  // namespace tandem::app
