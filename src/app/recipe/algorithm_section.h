// The recipe's sections `algorithm` and `optimizer`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "app/recipe/field_options.h"

namespace tandem::app {

struct KlSection {
  double coefficient = 0.0;
  std::string estimator = "k3";
  std::string in = "loss";

  template <class V>
  void visit(V& v) {
    v("coefficient",
      coefficient,
      doc("Weight of the divergence from the model at the start; 0: no reference is kept."),
      at_least(0));
    v("estimator",
      estimator,
      doc("Schulman's estimators; with + the value is theirs and the gradient that of k2."),
      one_of({"k1", "k2", "k3", "abs", "k1+", "k3+"}));
    v("in", in, doc("Where it counts."), one_of({"loss"}), later({"reward"}));
  }
};

struct AlgorithmSection {
  std::string name = "grpo";
  std::optional<std::string> aggregation;
  double advantage_epsilon = 1e-4;
  std::optional<double> clip_low;
  std::optional<double> clip_high;
  std::optional<double> clip_dual;
  KlSection kl;
  double entropy_coefficient = 0.0;
  bool mask_truncated = false;
  std::int64_t epochs = 1;
  NotYet overlong;
  NotYet dynamic_sampling;

  template <class V>
  void visit(V& v) {
    v("name",
      name,
      doc("Preset of advantage, loss and aggregation; its parts can be set one by one."),
      one_of({"grpo", "dr_grpo", "dapo", "cispo", "rloo"}),
      later({"gspo", "ppo", "reinforce_plus_plus", "remax", "opo", "gpg", "sapo", "lite_ppo"}));
    v("aggregation",
      aggregation,
      doc("How token terms become one loss."),
      one_of({"token-mean",
              "seq-mean-token-mean",
              "seq-mean-token-sum",
              "seq-mean-token-sum-norm",
              "token-sum"}),
      unset_means("the preset's"));
    v("advantage_epsilon",
      advantage_epsilon,
      doc("Added to the group's standard deviation."),
      above(0));
    v("clip_low",
      clip_low,
      doc("The probability ratio counts from 1 - clip_low."),
      in(0, 1),
      unset_means("the preset's: 0.2; cispo 1"));
    v("clip_high",
      clip_high,
      doc("The probability ratio counts up to 1 + clip_high."),
      at_least(0),
      unset_means("the preset's: 0.2; dapo 0.28; cispo 4"));
    v("clip_dual",
      clip_dual,
      doc("Caps the loss of a negative advantage at this multiple of it."),
      above(1),
      unset_means("no cap"));
    v("kl", kl, doc("Divergence from the model that the run started with."));
    v("entropy_coefficient", entropy_coefficient, doc("Reward for entropy in the loss."));
    v("mask_truncated",
      mask_truncated,
      doc("Completions that end at max_new_tokens take no part in the loss."));
    v("epochs", epochs, doc("Passes over one step's completions."), at_least(1));
    v("overlong", overlong, doc("Soft length limit; a reward of kind `length` does the same."));
    v("dynamic_sampling", dynamic_sampling, doc("Draws until enough groups have unequal rewards."));
  }
};

struct OptimizerSection {
  std::string name = "adamw";
  double learning_rate = 1e-6;
  std::array<double, 2> betas = {0.9, 0.999};
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double max_grad_norm = 1.0;
  std::string schedule = "constant";
  std::int64_t warmup_steps = 0;

  template <class V>
  void visit(V& v) {
    v("name", name, doc("Update rule."), one_of({"adamw"}), later({"sgd", "adafactor", "muon"}));
    v("learning_rate", learning_rate, doc("Of the full rate of the schedule."), at_least(0));
    v("betas", betas, doc("Decay of the two running means, below 1."), in(0, 1));
    v("epsilon", epsilon, doc("Added to the root of the second mean."), above(0));
    v("weight_decay", weight_decay, doc("Decoupled, of all parameters."), at_least(0));
    v("max_grad_norm",
      max_grad_norm,
      doc("A longer gradient is scaled to this norm; 0: never."),
      at_least(0));
    v("schedule",
      schedule,
      doc("Of the learning rate; linear and cosine end at 0 with the last update."),
      one_of({"constant", "linear", "cosine"}));
    v("warmup_steps", warmup_steps, doc("Updates over which the rate rises from 0."), at_least(0));
  }
};

}  // namespace tandem::app
