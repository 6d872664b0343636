// The recipe's sections `run`, `model`, `parallel` and `log`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/recipe/field_options.h"

namespace tandem::app {

struct RunSection {
  std::string name;
  std::string dir = "runs";

  template <class V>
  void visit(V& v) {
    v("name",
      name,
      doc("Name of the run's folder; when it exists, -2, -3 ... is added."),
      unset_means("the recipe file's name"));
    v("dir", dir, doc("Folder that holds the run folders."));
  }
};

struct InitSection {
  std::string config;
  std::int64_t seed = 0;

  template <class V>
  void visit(V& v) {
    v("config",
      config,
      doc("Folder with a config.json and the tokenizer's files; weights there are not read."),
      required());
    v("seed", seed, doc("Of the random weights."), at_least(0));
  }
};

struct ModelSection {
  std::string path;
  std::optional<InitSection> init;
  std::string dtype = "auto";
  NotYet adapter;

  template <class V>
  void visit(V& v) {
    v("path",
      path,
      doc("A Hugging Face folder, a GGUF file, or org/name in the Hugging Face cache. Either this "
          "or `init`."),
      unset_means("`init` must be given"));
    v("init", init, doc("Random initial weights, instead of `path`."));
    v("dtype",
      dtype,
      doc("Working precision of trainer and sampler; `bfloat16` trains float32 masters beside it. "
          "`auto`: the file's (float16 becomes float32)."),
      one_of({"auto", "float32", "bfloat16"}));
    v("adapter", adapter, doc("Low-rank adapters."));
  }
};

struct TrainLayoutSection {
  std::int64_t dp = 1;
  std::int64_t tp = 1;
  std::int64_t zero = 0;

  template <class V>
  void visit(V& v) {
    v("dp", dp, doc("Data-parallel ranks."), only(1));
    v("tp", tp, doc("Tensor-parallel ranks."), only(1));
    v("zero", zero, doc("How much of the optimizer is sharded."), only(0));
  }
};

struct RolloutLayoutSection {
  std::int64_t dp = 1;
  std::int64_t tp = 1;

  template <class V>
  void visit(V& v) {
    v("dp", dp, doc("Data-parallel ranks."), only(1));
    v("tp", tp, doc("Tensor-parallel ranks."), only(1));
  }
};

struct ParallelSection {
  TrainLayoutSection train;
  RolloutLayoutSection rollout;

  template <class V>
  void visit(V& v) {
    v("train", train, doc("Ranks of the trainer."));
    v("rollout", rollout, doc("Ranks of the sampler."));
  }
};

struct LogSection {
  bool console = true;
  bool tensorboard = true;
  std::int64_t completions_every = 10;

  template <class V>
  void visit(V& v) {
    v("console", console, doc("Progress on standard error."));
    v("tensorboard", tensorboard, doc("Writes the metrics as a TensorBoard event file too."));
    v("completions_every",
      completions_every,
      doc("Steps between the files of completions; the first step has one. 0: none."),
      at_least(0));
  }
};

}  // namespace tandem::app
