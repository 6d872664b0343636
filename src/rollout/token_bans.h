// Which ids the next token may be, before anything is known of their probabilities.
#pragma once

#include <cstdint>
#include <span>

#include "rollout/sampling_params.h"

namespace tandem::rollout {

/// The set that `params` leaves of [0, num_ids) for the token behind `output`, the tokens drawn so
/// far, `num_generated` of them: the allowed ids, without banned ones, without stop ids while the
/// minimum length is not reached, and without the last token of a bad word whose others were just
/// drawn.
///
/// With allowed_ids it lists what is left, which may be nothing: then `none` is true.
struct TokenBans {
  AllowedSet set;
  bool none = false;
};
TokenBans token_bans(const SamplingParams& params,
                     std::span<const TokenId> output,
                     std::int64_t num_generated,
                     std::int64_t num_ids);

}  // namespace tandem::rollout
