// The recipe's sections `rollout` and `rewards`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/recipe/field_options.h"

namespace tandem::app {

struct SpeculationSection {
  std::string method = "none";
  std::int64_t num_speculative_tokens = 5;
  std::int64_t prompt_lookup_max = 4;
  std::int64_t prompt_lookup_min = 2;

  template <class V>
  void visit(V& v) {
    v("method",
      method,
      doc("`ngram`: guesses what followed the same tokens earlier in the text. The samples and "
          "their "
          "log-probabilities are the same with and without it."),
      one_of({"none", "ngram"}));
    v("num_speculative_tokens",
      num_speculative_tokens,
      doc("Tokens guessed a step and sample."),
      in(1, 64));
    v("prompt_lookup_max", prompt_lookup_max, doc("Most tokens that must agree."), in(1, 64));
    v("prompt_lookup_min", prompt_lookup_min, doc("Fewest tokens that must agree."), in(1, 64));
  }
};

struct LogitBiasSection {
  std::int64_t id = 0;
  double bias = 0.0;

  template <class V>
  void visit(V& v) {
    v("id", id, doc("A token id."), required(), at_least(0));
    v("bias", bias, doc("Added to its logit."), required());
  }
};

struct RolloutSection {
  std::int64_t prompts_per_step = 8;
  std::int64_t samples_per_prompt = 8;
  std::int64_t max_new_tokens = 256;
  std::int64_t min_new_tokens = 0;
  double temperature = 1.0;
  double top_p = 1.0;
  std::int64_t top_k = 0;
  double min_p = 0.0;
  std::vector<std::string> stop;
  std::optional<std::int64_t> max_model_len;
  std::optional<std::int64_t> kv_bytes;
  std::int64_t block_size = 16;
  std::int64_t max_batched_tokens = 2048;
  std::int64_t max_turns = 1;
  SpeculationSection speculation;
  double repetition_penalty = 1.0;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  std::vector<LogitBiasSection> logit_bias;
  std::vector<std::int64_t> allowed_token_ids;
  std::vector<std::int64_t> banned_token_ids;
  std::vector<std::string> bad_words;
  NotYet tools;

  template <class V>
  void visit(V& v) {
    v("prompts_per_step", prompts_per_step, doc("Prompts a step."), at_least(1));
    v("samples_per_prompt", samples_per_prompt, doc("Completions a prompt."), at_least(1));
    v("max_new_tokens", max_new_tokens, doc("Longest completion, in tokens."), at_least(1));
    v("min_new_tokens",
      min_new_tokens,
      doc("No end of the completion before so many tokens."),
      at_least(0));
    v("temperature", temperature, doc("Divides the logits before sampling."), at_least(0));
    v("top_p",
      top_p,
      doc("Samples from the likeliest tokens that hold this probability; 1: all."),
      config::Range{0, 1, true});
    v("top_k", top_k, doc("Samples from so many likeliest tokens; 0: all."), at_least(0));
    v("min_p",
      min_p,
      doc("Samples from tokens at least this share as likely as the likeliest; 0: all."),
      in(0, 1));
    v("stop", stop, doc("Texts that end a completion, beside the model's end tokens."));
    v("max_model_len",
      max_model_len,
      doc("Longest prompt and completion together, in tokens."),
      at_least(2),
      unset_means("the model's positions"));
    v("kv_bytes",
      kv_bytes,
      doc("Memory of the KV cache."),
      at_least(1),
      unset_means("from the memory plan"));
    v("block_size", block_size, doc("Tokens a block of the KV cache."), in(1, 1024));
    v("max_batched_tokens",
      max_batched_tokens,
      doc("Tokens of one forward pass of the sampler."),
      at_least(1));
    v("max_turns", max_turns, doc("Turns of a conversation."), only(1));
    v("speculation", speculation, doc("Tokens guessed ahead and verified in one step."));
    v("repetition_penalty",
      repetition_penalty,
      doc("Above 1: ids of prompt and completion are less likely. `eval` only."),
      above(0));
    v("frequency_penalty",
      frequency_penalty,
      doc("Taken from an id's logit for each time it was drawn. `eval` only."),
      in(-2, 2));
    v("presence_penalty",
      presence_penalty,
      doc("Taken from the logit of an id that was drawn. `eval` only."),
      in(-2, 2));
    v("logit_bias", logit_bias, doc("Added to logits. `eval` only."));
    v("allowed_token_ids", allowed_token_ids, doc("Only these ids are drawn; none given: all."));
    v("banned_token_ids", banned_token_ids, doc("These ids are never drawn."));
    v("bad_words",
      bad_words,
      doc("Texts that are never completed, as they stand and behind a space."));
    v("tools", tools, doc("Tools that the model may call."));
  }
};

struct RewardSection {
  std::string name;
  std::string kind;
  std::string library;
  std::string file;
  std::string function;
  JsonText options;
  double weight = 1.0;
  std::int64_t timeout_ms = 10'000;
  std::string on_failure = "none";
  std::string isolation = "process";

  template <class V>
  void visit(V& v) {
    v("name",
      name,
      doc("Name in metrics and completions; each is used once."),
      unset_means("the function's, library's or kind's"));
    v("kind",
      kind,
      doc("A built-in reward, or `python` with `file`."),
      unset_means("told by `library` or `file`"));
    v("library", library, doc("A shared object with the reward ABI."), unset_means("none"));
    v("file", file, doc("A Python file."), unset_means("none"));
    v("function",
      function,
      doc("The function in the library or file."),
      unset_means("the name, or the library's only one"));
    v("options", options, doc("Handed to the function."));
    v("weight", weight, doc("Factor in the sum of rewards."));
    v("timeout_ms", timeout_ms, doc("Deadline of one call."), at_least(1));
    v("on_failure",
      on_failure,
      doc("A failed sample: `none` leaves this reward out, `error` stops the run, `drop_group` "
          "leaves its group out, a number stands in."));
    v("isolation",
      isolation,
      doc("`process`: a crash costs a sample. `thread`: faster, for code one trusts."),
      one_of({"process", "thread"}));
  }
};

}  // namespace tandem::app
