// The recipe's sections `trainer` and `sft`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/recipe/data_section.h"
#include "app/recipe/field_options.h"

namespace tandem::app {

struct CheckpointSection {
  std::int64_t every = 50;
  std::int64_t keep = 2;
  bool export_model = true;
  bool best = false;

  template <class V>
  void visit(V& v) {
    v("every",
      every,
      doc("Steps between checkpoints; one more at the end and on a signal. 0: none at all."),
      at_least(0));
    v("keep", keep, doc("How many of the newest stay on disk."), at_least(1));
    v("export", export_model, doc("Puts the model inside as a Hugging Face folder."));
    v("best",
      best,
      doc("Saves one at each validation with a higher reward than all before, and keeps the last "
          "such."));
  }
};

struct TrainerSection {
  std::optional<std::int64_t> steps;
  std::optional<double> data_epochs;
  std::int64_t minibatches = 1;
  std::int64_t tokens_per_microbatch = 4096;
  std::string activation_checkpointing = "auto";
  std::string memory = "auto";
  bool reuse_activations = false;
  CheckpointSection checkpoint;
  std::int64_t validate_every = 0;
  bool validate_before = false;

  template <class V>
  void visit(V& v) {
    v("steps",
      steps,
      doc("Steps of the run; either this or `data_epochs`."),
      at_least(1),
      unset_means("from `data_epochs`"));
    v("data_epochs",
      data_epochs,
      doc("Passes over the training data."),
      above(0),
      unset_means("from `steps`"));
    v("minibatches", minibatches, doc("Updates a pass over one step's completions."), at_least(1));
    v("tokens_per_microbatch",
      tokens_per_microbatch,
      doc("Most tokens that are trained on at once; a longer sequence is an error."),
      at_least(1));
    v("activation_checkpointing",
      activation_checkpointing,
      doc("Recomputes each layer in the backward pass, to spare memory."),
      one_of({"auto", "on", "off"}));
    v("memory",
      memory,
      doc("`auto`: buffers stay between the phases where they fit. `low`: the least that works: "
          "layers are recomputed, buffers go back to the system between phases, micro-batches and "
          "sampling steps are small; slower by about a third."),
      one_of({"auto", "low"}));
    v("reuse_activations",
      reuse_activations,
      doc("Keeps what the layers computed while sampling, and starts the backward pass of a step's "
          "first update from there. Changes no bit; takes memory for all of a step's tokens."));
    v("checkpoint", checkpoint, doc("What is saved, and how often."));
    v("validate_every",
      validate_every,
      doc("Steps between validations; one more at the end. 0: never."),
      at_least(0));
    v("validate_before", validate_before, doc("Validates before the first step too."));
  }
};

struct SftSection {
  std::vector<SourceSection> data;
  std::int64_t steps = 100;
  std::int64_t batch_size = 16;
  double learning_rate = 1e-5;
  std::string schedule = "constant";
  std::int64_t warmup_steps = 0;
  std::optional<std::int64_t> max_tokens;

  template <class V>
  void visit(V& v) {
    v("data", data, doc("Files of conversations or of prompts with completions."));
    v("steps", steps, doc("Updates."), at_least(1));
    v("batch_size", batch_size, doc("Sequences an update."), at_least(1));
    v("learning_rate", learning_rate, doc("Instead of optimizer.learning_rate."), at_least(0));
    v("schedule",
      schedule,
      doc("Instead of optimizer.schedule."),
      one_of({"constant", "linear", "cosine"}));
    v("warmup_steps", warmup_steps, doc("Instead of optimizer.warmup_steps."), at_least(0));
    v("max_tokens",
      max_tokens,
      doc("Longest sequence; data.overlong says what happens to others."),
      at_least(2),
      unset_means("trainer.tokens_per_microbatch"));
  }
};

}  // namespace tandem::app
