// The global stream of draws: which row of which file the group number d is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/prompts.h"
#include "data/sft.h"

namespace tandem::data {

enum class LastBatch { kWrap, kDrop, kShort };

/// "wrap", "drop" or "short". Throws UserError.
LastBatch last_batch_from(const std::string& name);

/// What the stream knows of a file.
struct StreamSource {
  std::string path;
  std::int64_t num_rows = 0;
  double weight = 1.0;
  std::uint64_t fingerprint = 0;  // of all kept rows, to notice changed data on a resume
};

StreamSource stream_source(const PromptSource& source, double weight);
StreamSource stream_source(const SftSource& source, double weight);

struct StreamConfig {
  std::uint64_t seed = 0;
  std::int64_t rows_per_step = 1;
  LastBatch last_batch = LastBatch::kWrap;  // read with one file alone
  bool shuffle = true;
};

struct Draw {
  std::int64_t draw = 0;  // index in the stream: names the group
  std::size_t source = 0;
  std::int64_t row = 0;    // in the source
  std::int64_t epoch = 0;  // of the source
};

/// Draws rows for step after step, resumable at any step.
///
/// One file: epoch e goes through a permutation of its rows that is a function of (seed, e).
/// Several files: draw d comes from a file chosen by (seed, d) with the weights as probabilities,
/// and each file goes through its own epochs. Not thread safe.
class DrawStream {
 public:
  /// Throws UserError with the numbers when all files together have fewer rows than one step: the
  /// same prompt twice in a step is taken for a mistake, also under wrap.
  DrawStream(std::vector<StreamSource> sources, const StreamConfig& config);

  /// The rows of the next step: rows_per_step of them, fewer only at an epoch's end under `short`.
  std::vector<Draw> next_step();

  /// Draws so far.
  [[nodiscard]] std::int64_t num_draws() const { return num_draws_; }

  /// Passes over the data so far: draws divided by those of an epoch.
  [[nodiscard]] double epoch() const;

  /// Draws that make one epoch: all rows, less under `drop` those that do not fill a step.
  [[nodiscard]] std::int64_t draws_per_epoch() const;

  /// Steps from the start to the end of `epochs` passes, the last one whole.
  [[nodiscard]] std::int64_t steps_for_epochs(double epochs) const;

  /// The position as one line of JSON, below 1 KB for few files.
  [[nodiscard]] std::string state() const;

  /// Continues from a state. Throws UserError when seed or data differ from those it was saved
  /// with, and, naming `origin`, when it is damaged.
  void restore(const std::string& state, const std::string& origin = "the checkpoint");

 private:
  Draw draw_next();
  [[nodiscard]] std::size_t choose_source(std::int64_t draw) const;
  [[nodiscard]] std::int64_t row_at(std::size_t source, std::int64_t epoch, std::int64_t position);

  // One file's permutation of one epoch.
  struct Order {
    std::int64_t epoch = -1;
    std::vector<std::int64_t> rows;
  };

  std::vector<StreamSource> sources_;
  StreamConfig config_;
  std::int64_t num_draws_ = 0;
  std::vector<std::int64_t> drawn_;  // draws of each source so far
  std::vector<Order> orders_;
};

}  // namespace tandem::data
