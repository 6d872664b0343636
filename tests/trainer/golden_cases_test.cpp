// No case of the reference files is overlooked: each is run by a test, or listed as a later one.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/shared_data.h"
#include "trainer/golden.h"

namespace tandem::trainer {
namespace {

using Names = std::vector<std::string>;

Names keys_of(const nlohmann::json& object) {
  Names names;
  for (const auto& [name, unused] : object.items()) {
    names.push_back(name);
  }
  return names;
}

// Whether `run` and `later` together are the names of `section`, each once.
bool lists_all(const nlohmann::json& section, Names run, const Names& later) {
  run.insert(run.end(), later.begin(), later.end());
  std::ranges::sort(run);
  return run == keys_of(section);  // an object's names come sorted
}

TEST_CASE("every section and case of verl's file is run or listed for later") {
  const auto golden = test::golden_json("rl/verl_core_algos.json");
  CHECK(lists_all(
      golden,
      {"advantages", "agg", "agg_with_empty_row", "dual_clip", "kl", "misc", "policy_loss"},
      {"inputs", "note", "value_loss"}));  // data, words, and a critic's loss
  const std::string grpo = " (unbiased std; singleton group: mean 0 std 1)";
  const std::string gae = " (whitened adv; returns unwhitened)";
  CHECK(lists_all(golden.at("advantages"),
                  // advantages_test
                  {"grpo index norm_std=True eps=1e-6" + grpo,
                   "grpo index norm_std=False eps=1e-6" + grpo,
                   "grpo index2 norm_std=True eps=1e-6" + grpo,
                   "grpo index2 norm_std=False eps=1e-6" + grpo,
                   "rloo index",
                   "rloo index2"},
                  // estimators that do not exist here yet
                  {"gae gamma=1.0 lam=1.0" + gae,
                   "gae gamma=0.99 lam=0.95" + gae,
                   "gae gamma=0.9 lam=0.0" + gae,
                   "reinforce++baseline index",
                   "reinforce++baseline index2",
                   "opo index",
                   "opo index2",
                   "reinforce++ gamma=0.99"}));
  CHECK(lists_all(golden.at("misc"),
                  {"logprobs_from_logits"},  // kernels/vocab_test
                  {"masked_whiten",
                   "response_mask eos=2",
                   "adaptive_kl init=0.2 target=6 horizon=10000 n_steps=256"}));
}

TEST_CASE("every section of torchtune's file is run or listed for later") {
  CHECK(lists_all(test::golden_json("rl/torchtune_cases.json"),
                  {"ppo_policy_loss", "masked_mean", "masked_mean_rows"},
                  {"source", "kl_reward", "gae_returns", "truncate_at_stop"}));
}

TEST_CASE("every section of TRL's file is run or listed for later") {
  TANDEM_NEEDS_SHARED("golden/rl/trl_cases.json");
  const auto file = tandem::test::shared_data() / "golden/rl/trl_cases.json";
  CHECK(lists_all(nlohmann::json::parse(read_file(file)),
                  {"soft_overlong_punishment"},  // rewards/builtin_test
                  {"source",
                   "high_entropy_mask",
                   "off_policy_mask",
                   "repetition_penalty",
                   "cosine_scaled",
                   "think_format"}));
}

}  // namespace
}  // namespace tandem::trainer
