#include "rollout/stop_rules.h"

#include <algorithm>
#include <utility>

namespace tandem::rollout {

StopStrings::StopStrings(const std::vector<std::string>& strings) : strings_(&strings) {}

std::optional<StopStrings::Match> StopStrings::push(std::string_view piece, bool armed) {
  const std::size_t old_size = text_.size();
  text_ += piece;
  if (!armed || piece.empty()) {
    return std::nullopt;
  }
  std::optional<Match> best;
  for (std::size_t i = 0; i < strings_->size(); ++i) {
    const std::string& string = (*strings_)[i];
    // A match that ends in the piece begins less than its own length before it.
    const std::size_t from = old_size - std::min(old_size, string.size() - 1);
    const std::size_t begin = text_.find(string, from);
    if (begin != std::string::npos && (!best || begin < best->begin)) {
      best = Match{begin, i};
    }
  }
  return best;
}

StopRules::StopRules(const SamplingParams& params,
                     std::int64_t max_tokens,
                     std::unique_ptr<TextSink> text)
    : params_(&params),
      max_tokens_(max_tokens),
      sink_(std::move(text)),
      strings_(params.stop_strings) {}

std::optional<Stop> StopRules::push(TokenId id, std::int64_t num_tokens) {
  const bool armed = num_tokens >= params_->min_new_tokens;
  if (armed && is_stop_id(id)) {
    return Stop{FinishReason::kStop, id, {}};
  }
  if (sink_) {
    if (const auto match = strings_.push(sink_->push(id), armed)) {
      cut_ =
          match->begin + (params_->include_stop ? params_->stop_strings[match->string].size() : 0);
      return Stop{FinishReason::kStopString, std::nullopt, params_->stop_strings[match->string]};
    }
  }
  if (num_tokens >= max_tokens_) {
    return Stop{FinishReason::kLength, std::nullopt, {}};
  }
  return std::nullopt;
}

std::string StopRules::final_text() {
  if (!sink_) {
    return {};
  }
  return cut_ ? strings_.text().substr(0, *cut_) : strings_.text() + sink_->finish();
}

bool StopRules::is_stop_id(TokenId id) const {
  return !params_->ignore_eos &&
         std::ranges::find(params_->stop_ids, id) != params_->stop_ids.end();
}

}  // namespace tandem::rollout
