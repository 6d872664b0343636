// Training step after step takes no more memory than the first few did.
#include <fstream>

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/counter_rng.h"
#include "base/thread_pool.h"
#include "support/doctest_torch.h"
#include "support/tiny_model.h"
#include "trainer/train_step.h"
#include "trainer/weight_update.h"

namespace tandem::trainer {
namespace {

constexpr std::int64_t kIds = 1490;

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t below(std::int64_t step, std::uint32_t position, std::uint64_t n) {
  const RandomKey key = {.draw = static_cast<std::uint64_t>(step),
                         .position = position,
                         .purpose = RandomPurpose::kMakeData};
  return static_cast<std::int64_t>(random_below(key, n));
}

// Four groups of four: prompts of 4 to 33 tokens, answers of 1 to 40, other ones at each step.
std::vector<Trajectory> random_trajectories(std::int64_t step) {
  std::vector<Trajectory> all;
  std::uint32_t position = 0;
  for (std::int64_t prompt = 0; prompt < 4; ++prompt) {
    std::vector<TokenId> ids(static_cast<std::size_t>(4 + below(step, position++, 30)));
    for (auto& id : ids) {
      id = static_cast<TokenId>(below(step, position++, kIds));
    }
    for (std::int32_t sample = 0; sample < 4; ++sample) {
      Trajectory t;
      t.ids = ids;
      t.prompt_length = static_cast<std::int64_t>(ids.size());
      const auto length = static_cast<std::size_t>(1 + below(step, position++, 40));
      for (std::size_t i = 0; i < length; ++i) {
        t.ids.push_back(static_cast<TokenId>(below(step, position++, kIds)));
      }
      t.mask.assign(length, 1);
      t.logprobs.assign(length, -7.0F);
      all.push_back(std::move(t));
    }
  }
  return all;
}

// Pages that the process has had to be given so far.
std::int64_t page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Where the gradients are; empty while there are none.
std::vector<const void*> gradient_places(const model::WeightStore& weights) {
  std::vector<const void*> places;
  for (const auto& [name, gradient] : weights.named_gradients()) {
    places.push_back(gradient.const_data_ptr());
  }
  return places;
}

TEST_CASE("memory stays flat over 120 steps of several micro-batches each") {
  set_compute_threads(2);
  // As the program does: freed memory stays for the next step.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
  constexpr std::int64_t kWarmUp = 40, kSteps = 160;
  for (const bool keep : {true, false}) {
    CAPTURE(keep);
    const auto tiny = test::random_model(3);
    AdamW optimizer({}, optimizer_parameters(*tiny.weights));
    PolicyTrainer trainer(*tiny.decoder,
                          nullptr,
                          optimizer,
                          {.loss = {},
                           .minibatches = 2,
                           .rows_per_microbatch = 128,
                           .keep_gradients = keep,
                           .num_ids = kIds});
    std::int64_t warm = 0, faults = 0, rows = 0;
    std::vector<const void*> places;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const auto trajectories = random_trajectories(step);
      std::vector<TrainSequence> sequences;
      for (std::size_t i = 0; i < trajectories.size(); ++i) {
        sequences.push_back({&trajectories[i], i % 2 == 0 ? 1.0 : -1.0, false, "sample"});
      }
      rows += trainer.step(sequences, step, [](std::int64_t) { return 1e-4; }).num_rows;
      if (step + 1 == kWarmUp) {
        warm = resident_bytes();
        faults = page_faults();
        places = gradient_places(*tiny.weights);
      }
    }
    faults = page_faults() - faults;
    MESSAGE("page faults of " << kSteps - kWarmUp << " steps: " << faults);
    // One a step is the growth below; a gradient that is mapped anew has some hundred.
    CHECK(faults < 2 * (kSteps - kWarmUp));
    CHECK(places.empty() != keep);
    CHECK(gradient_places(*tiny.weights) == places);
    CHECK(rows > 2 * 128 * kSteps);  // so there were more micro-batches than updates
    MESSAGE("grew by " << resident_bytes() - warm << " bytes");
    CHECK(resident_bytes() - warm < 1'000'000);
  }
}

}  // namespace
}  // namespace tandem::trainer
