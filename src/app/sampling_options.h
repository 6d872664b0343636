// From what users say about sampling, in recipes and on the command line, to the engine's settings.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/session.h"
#include "rollout/sampling_params.h"
#include "rollout/scheduler_config.h"

namespace tandem::app {

/// `params` with what the model adds: its end tokens, and the ids of each bad word as it stands and
/// behind a space. Throws UserError, naming the setting, for one out of its range.
rollout::SamplingParams complete_sampling(rollout::SamplingParams params,
                                          std::span<const std::string> bad_words,
                                          const Session& session);

/// Ids as the engine has them; one that is too large for any vocabulary is a UserError.
std::vector<TokenId> token_ids(std::span<const std::int64_t> ids, const char* setting);

/// "5,8" and "9" to 5, 8, 9. `option` is named in the UserError for anything else.
std::vector<TokenId> parse_token_ids(std::span<const std::string> texts, const char* option);

/// "ID:BIAS" to pairs.
std::vector<std::pair<TokenId, float>> parse_logit_bias(std::span<const std::string> texts);

/// Tokens guessed ahead, in vLLM's words.
struct SpeculationOptions {
  std::string method = "none";
  std::int64_t num_tokens = 5;  // --num-speculative-tokens
  std::int64_t lookup_max = 4;  // --prompt-lookup-max
  std::int64_t lookup_min = 2;  // --prompt-lookup-min

  /// Throws UserError, naming the option, for a method or number there is not.
  [[nodiscard]] rollout::SpeculationConfig config() const;
};

}  // namespace tandem::app
