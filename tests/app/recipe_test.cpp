#include "app/recipe.h"

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "support/temporary_folder.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

const std::string kSmall =
    "model: {path: models/m}\n"
    "data: {train: [{path: a.jsonl}]}\n"
    "rewards: [{kind: exact_match}]\n"
    "trainer: {steps: 5}\n";

LoadedRecipe load(const std::string& text,
                  const std::vector<std::string>& overrides = {},
                  Purpose purpose = Purpose::kTrain) {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "r.yaml", text);
  return load_recipe(folder / "r.yaml", overrides, purpose);
}

// The error without the folder's name.
std::string error_of(const std::string& text,
                     const std::vector<std::string>& overrides = {},
                     Purpose purpose = Purpose::kTrain) {
  try {
    load(text, overrides, purpose);
  } catch (const UserError& e) {
    const std::string what = e.what();
    const std::size_t at = what.find("r.yaml");
    return at == std::string::npos ? what : what.substr(at);
  }
  return "no error";
}

TEST_CASE("a small recipe gets the documented defaults and the file's name") {
  const Recipe r = load(kSmall).recipe;
  CHECK(r.run.name == "r");
  CHECK(r.run.dir == "runs");
  CHECK(r.algorithm.name == "grpo");
  CHECK_FALSE(r.algorithm.clip_low);
  CHECK(r.algorithm.advantage_epsilon == 1e-4);
  CHECK(r.rollout.block_size == 16);
  CHECK(r.rollout.max_batched_tokens == 2048);
  CHECK(r.rewards[0].timeout_ms == 10'000);
  CHECK(r.data.overlong == "drop");
  CHECK(r.data.last_batch == "wrap");
  CHECK(r.validation.samples == 1);
}

TEST_CASE("the recipe of the command-line contract reads") {
  const std::string contract = R"(
seed: 1
run: {name: smollm2-arithmetic, dir: runs}
model:
  path: models/smollm2-135m-instruct
  dtype: bfloat16            # working precision
data:
  train: [{path: data/arithmetic.jsonl}]
  validation: [{path: data/arithmetic_val.jsonl}]
  max_prompt_tokens: 256
  shuffle: true
rollout:
  prompts_per_step: 8
  samples_per_prompt: 8
  max_new_tokens: 64
  temperature: 1.0
  max_turns: 1
rewards:
  - {name: accuracy, kind: math, weight: 1.0}
  - {name: brevity, library: libbrevity.so, weight: 0.1, timeout_ms: 1000, on_failure: none}
algorithm:
  name: grpo
  epochs: 1
  clip_low: 0.2
  clip_high: 0.2
optimizer: {name: adamw, learning_rate: 1.0e-6, betas: [0.9, 0.999], weight_decay: 0.0, max_grad_norm: 1.0, schedule: constant}
trainer:
  steps: 100
  minibatches: 1
  tokens_per_microbatch: 4096
  checkpoint: {every: 50, keep: 2, export: true}
  validate_every: 20
parallel:
  train:   {dp: 1, tp: 1, zero: 0}
  rollout: {dp: 1, tp: 1}
log: {console: true, tensorboard: true, completions_every: 10}
)";
  CHECK(error_of(contract, {}, Purpose::kEval) == "no error");
  const Recipe r = load(contract).recipe;
  CHECK(r.model.dtype == "bfloat16");
  CHECK(r.rewards[1].weight == 0.1);
  CHECK(r.algorithm.clip_high == 0.2);
  CHECK(r.trainer.validate_every == 20);
}

TEST_CASE("the effective recipe reads back as itself") {
  const Recipe r = load(kSmall, {"data.examples=[{user: '2 * 3 =', assistant: '6'}]"}).recipe;
  const std::string yaml = recipe_yaml(r);
  CHECK(recipe_yaml(load(yaml).recipe) == yaml);
  CHECK(yaml.find("max_grad_norm: 1\n") != std::string::npos);
}

TEST_CASE("what the command needs must be there") {
  CHECK(error_of("seed: 1\n") ==
        "r.yaml: model: no model is given; give one of model.path and model.init");
  CHECK(error_of(kSmall, {"model.init={config: x}"}).find("path and init are both given") !=
        std::string::npos);
  CHECK(error_of("model: {path: m}\n") ==
        "r.yaml: data.train: is missing; give a list of files, [{path: FILE.jsonl}]");
  CHECK(error_of(kSmall, {"data.train=[]"}).find("data.train: is missing") != std::string::npos);
  CHECK(error_of(kSmall, {"rewards=[]"}).find("rewards: is missing") != std::string::npos);
  CHECK(error_of(kSmall, {"trainer.steps=null"}).find("trainer.steps: is missing") !=
        std::string::npos);
  CHECK(error_of(kSmall, {"trainer.data_epochs=1"}).find("give one of them") != std::string::npos);
  CHECK(error_of(kSmall, {}, Purpose::kSft).find("sft.data: is missing") != std::string::npos);
  CHECK(error_of(kSmall, {}, Purpose::kEval).find("data.validation: is missing") !=
        std::string::npos);
  CHECK(error_of("model: {path: m}\nsft: {data: [{path: a}]}\n", {}, Purpose::kSft) == "no error");
}

TEST_CASE("keys of later versions are refused as such, with their line") {
  const auto refused = [](const std::string& override_text) {
    const std::string error = error_of(kSmall, {override_text});
    CAPTURE(error);
    CHECK(error.find("not in this version") != std::string::npos);
    CHECK(error.find(override_text.substr(0, override_text.find('='))) != std::string::npos);
  };
  refused("rollout.tools=[calculator]");
  refused("rollout.max_turns=3");
  refused("model.adapter={rank: 8}");
  refused("algorithm.dynamic_sampling={enabled: true}");
  refused("algorithm.overlong={max: 10}");
  refused("algorithm.name=gspo");
  refused("algorithm.name=ppo");
  refused("algorithm.name=reinforce_plus_plus");
  refused("algorithm.kl.in=reward");
  refused("optimizer.name=sgd");
  refused("parallel.train.dp=2");
  refused("parallel.train.zero=3");
  refused("parallel.rollout.tp=2");
  CHECK(error_of(kSmall + "rollout:\n  tools: [calculator]\n") ==
        "r.yaml:6: rollout.tools: not in this version");
}

TEST_CASE("what moves probabilities is refused in training, with the reason, and runs in eval") {
  for (const char* setting : {"rollout.repetition_penalty=1.2",
                              "rollout.frequency_penalty=0.5",
                              "rollout.presence_penalty=-0.5",
                              "rollout.logit_bias=[{id: 5, bias: 1.5}]"}) {
    const std::string name = std::string(setting).substr(0, std::string(setting).find('='));
    const std::string error = error_of(kSmall, {setting});
    CAPTURE(error);
    CHECK(error.find(name + ": moves the probabilities") != std::string::npos);
    CHECK(error_of(kSmall, {setting, "data.validation=[{path: v.jsonl}]"}, Purpose::kEval) ==
          "no error");
  }
  // What removes ids travels with each token, and the trainer sums over the same ids.
  CHECK(error_of(kSmall, {"rollout.banned_token_ids=[1, 2]", "rollout.bad_words=[no]"}) ==
        "no error");
  CHECK(error_of(kSmall, {"rollout.speculation={method: ngram, prompt_lookup_min: 5}"})
            .find("more than prompt_lookup_max, 4") != std::string::npos);
}

TEST_CASE("a key that nothing reads is an error that says why") {
  const auto refused = [](const std::string& override_text, const std::string& reason) {
    const std::string error = error_of(kSmall, {override_text});
    CAPTURE(error);
    CAPTURE(override_text);
    CHECK(error.find(override_text.substr(0, override_text.find('=')) + ": ") != std::string::npos);
    CHECK(error.find(reason) != std::string::npos);
  };
  refused("algorithm.kl.estimator=k1", "algorithm.kl.coefficient is 0");
  refused("validation.max_prompts=5", "without data.validation");
  refused("trainer.validate_every=5", "without data.validation");
  refused("trainer.validate_before=true", "without data.validation");
  refused("data.train.0.weight=2", "one file");
  refused("sft.steps=5", "without sft.data");
  refused("data.columns.completion=x", "without sft.data");
  CHECK(error_of(kSmall, {"algorithm.name=rloo", "algorithm.advantage_epsilon=1e-6"})
            .find("does not divide by the standard deviation") != std::string::npos);
  CHECK(
      error_of(kSmall, {"algorithm.name=cispo", "algorithm.clip_dual=3"}).find("capped already") !=
      std::string::npos);
  CHECK(error_of(kSmall, {"data.template=none", "data.system=hello"}).find("no turns") !=
        std::string::npos);
  CHECK(error_of(kSmall, {"trainer.checkpoint={every: 0, keep: 3}"}).find("keeps no checkpoints") !=
        std::string::npos);
}

TEST_CASE("the default value of a key that nothing reads is no error") {
  CHECK(error_of(kSmall,
                 {"algorithm.kl.estimator=k3",
                  "validation.samples=1",
                  "trainer.validate_every=0",
                  "data.train.0.weight=1"}) == "no error");
  CHECK(error_of(kSmall, {"algorithm.kl={coefficient: 0.01, estimator: k1}"}) == "no error");
}

TEST_CASE("rules over several keys name the key and the numbers") {
  const auto error = [](std::vector<std::string> overrides) { return error_of(kSmall, overrides); };
  CHECK(
      error({"rollout.min_new_tokens=300"}).find("is 300, more than rollout.max_new_tokens, 256") !=
      std::string::npos);
  CHECK(error({"rollout.max_model_len=100"}).find("is 100, less than a prompt of 1 and 256") !=
        std::string::npos);
  CHECK(error({"rollout.samples_per_prompt=1"}).find("grpo compares the samples") !=
        std::string::npos);
  CHECK(error({"rollout.temperature=0"}).find("all samples of a prompt alike") !=
        std::string::npos);
  CHECK(error({"rollout.stop=['']"}).find("empty text") != std::string::npos);
  CHECK(error({"trainer.minibatches=65"}).find("more than the 64 completions") !=
        std::string::npos);
  CHECK(error({"trainer.tokens_per_microbatch=100"}).find("less than a sequence of 257 tokens") !=
        std::string::npos);
  CHECK(error({"optimizer.betas=[0.9, 1]"}).find("below 1") != std::string::npos);
  CHECK(error({"algorithm.name=rloo", "algorithm.aggregation=token-mean"})
            .find("needs seq-mean-token-mean") != std::string::npos);
  CHECK(error({"data.validation=[{path: v}]", "validation.samples=4"})
            .find("all samples are alike") != std::string::npos);
  CHECK(error({"data.prompt_template=hello"}).find("names no {column}") != std::string::npos);
  CHECK(error({"rewards.1={kind: exact_match}"}).find("a second reward named exact_match") !=
        std::string::npos);
  CHECK(error({"rewards.0={weight: 1}"}).find("needs one of kind, library and file") !=
        std::string::npos);
  CHECK(error({"rewards.0={file: a.py, isolation: thread}"}).find("in a process only") !=
        std::string::npos);
  CHECK(error({"run.name=.."}).find("run.dir") != std::string::npos);
  CHECK(error({"run.name=a/b"}).find("run.dir") != std::string::npos);
  CHECK(error({"data.validation=[{path: v}]", "trainer.checkpoint.best=true"})
            .find("needs trainer.validate_every") != std::string::npos);
}

TEST_CASE("a reward's policy may be a number, and its options are kept as JSON") {
  const Recipe r = load(kSmall, {"rewards.0.on_failure=-0.5", "rewards.0.options={max: 3}"}).recipe;
  CHECK(r.rewards[0].on_failure == "-0.5");
  CHECK(r.rewards[0].options.text == "{\"max\": 3}");
}

TEST_CASE("rewards are read from a file of their own or from a recipe") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "own.yaml", "rewards:\n  - {kind: math}\n");
  write_file_atomic(folder / "recipe.yaml", kSmall);
  write_file_atomic(folder / "none.yaml", "seed: 1\n");
  CHECK(load_rewards(folder / "own.yaml")[0].kind == "math");
  CHECK(load_rewards(folder / "recipe.yaml")[0].kind == "exact_match");
  CHECK_THROWS_AS(load_rewards(folder / "none.yaml"), UserError);
}

TEST_CASE("docs/recipes.md is what the structs say") {
  CHECK(read_file("docs/recipes.md") == recipe_reference());
}

TEST_CASE("every recipe of the project is valid") {
  if (!fs::exists("recipes")) {
    return;
  }
  for (const auto& entry : fs::recursive_directory_iterator("recipes")) {
    if (entry.path().extension() == ".yaml") {
      CAPTURE(entry.path().string());
      const bool warm_up = entry.path().stem().string().ends_with("warmup");
      CHECK_NOTHROW(load_recipe(entry.path(), {}, warm_up ? Purpose::kSft : Purpose::kTrain));
    }
  }
}

}  // namespace
}  // namespace tandem::app
