#include "app/sampling_options.h"

#include <limits>
#include <string_view>

#include "base/error.h"
#include "config/scalars.h"

namespace tandem::app {

rollout::SamplingParams complete_sampling(rollout::SamplingParams params,
                                          std::span<const std::string> bad_words,
                                          const Session& session) {
  params.stop_ids = session.stop_ids;
  for (const std::string& word : bad_words) {
    if (word.empty()) {
      fail<UserError>("bad_words: a word is empty");
    }
    for (const std::string& text : {word, " " + word}) {
      params.bad_words.push_back(
          session.need_tokenizer().encode(text, {.add_special_tokens = false}));
    }
  }
  params.validate();
  params.validate_ids(session.num_ids);
  return params;
}

std::vector<TokenId> token_ids(std::span<const std::int64_t> ids, const char* setting) {
  std::vector<TokenId> result;
  for (const std::int64_t id : ids) {
    if (id < 0 || id > std::numeric_limits<TokenId>::max()) {
      fail<UserError>("{}: {} is no token id", setting, id);
    }
    result.push_back(static_cast<TokenId>(id));
  }
  return result;
}

std::vector<TokenId> parse_token_ids(std::span<const std::string> texts, const char* option) {
  std::vector<std::int64_t> ids;
  for (const std::string& text : texts) {
    std::string_view rest = text;
    for (bool more = true; more;) {
      const std::size_t comma = rest.find(',');
      const auto id = config::parse_integer(rest.substr(0, comma));
      if (!id) {
        fail<UserError>("{} {}: give token ids, 5,8,9", option, text);
      }
      ids.push_back(*id);
      more = comma != std::string_view::npos;
      rest.remove_prefix(more ? comma + 1 : rest.size());
    }
  }
  return token_ids(ids, option);
}

std::vector<std::pair<TokenId, float>> parse_logit_bias(std::span<const std::string> texts) {
  std::vector<std::pair<TokenId, float>> biases;
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    const auto id = config::parse_integer(std::string_view(text).substr(0, colon));
    const auto bias = colon == std::string::npos
                          ? std::nullopt
                          : config::parse_number(std::string_view(text).substr(colon + 1));
    if (!id || !bias) {
      fail<UserError>("--logit-bias {}: give ID:BIAS, as in 5:-2.5", text);
    }
    biases.emplace_back(token_ids(std::span(&*id, 1), "--logit-bias").front(),
                        static_cast<float>(*bias));
  }
  return biases;
}

rollout::SpeculationConfig SpeculationOptions::config() const {
  if (method == "none") {
    return {};
  }
  if (method != "ngram") {
    fail<UserError>("--speculation is {}; use none or ngram", method);
  }
  if (num_tokens < 1 || num_tokens > 64) {
    fail<UserError>("--num-speculative-tokens is {}; use 1 to 64", num_tokens);
  }
  if (lookup_min < 1 || lookup_min > lookup_max) {
    fail<UserError>(
        "--prompt-lookup-min is {}; use 1 to --prompt-lookup-max, {}", lookup_min, lookup_max);
  }
  return {.num_tokens = num_tokens, .lookup_max = lookup_max, .lookup_min = lookup_min};
}

}  // namespace tandem::app
