// regex: 1 when a PCRE2 search finds `pattern` in the completion, else 0.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "rewards/builtin/builtin.h"

namespace tandem::rewards {
namespace {

// Backtracking beyond these ends the search with an error instead of minutes of work.
constexpr std::uint32_t kMatchLimit = 1'000'000;
constexpr std::uint32_t kDepthLimit = 100'000;
constexpr std::uint32_t kHeapLimitKib = 64 * 1024;

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

class Pattern {
 public:
  Pattern(const std::string& pattern, const Options& options) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    // MATCH_INVALID_UTF: completions that are not UTF-8 are searched, not refused.
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                              pattern.size(),
                              PCRE2_UTF | PCRE2_MATCH_INVALID_UTF,
                              &error,
                              &offset,
                              nullptr));
    if (!code_) {
      options.refuse(fmt::format(
          "option pattern: {} at character {} of '{}'", message_of(error), offset, pattern));
    }
    limits_.reset(pcre2_match_context_create(nullptr));
    matches_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    TANDEM_CHECK(limits_ && matches_, "no memory for a pattern");
    pcre2_set_match_limit(limits_.get(), kMatchLimit);
    pcre2_set_depth_limit(limits_.get(), kDepthLimit);
    pcre2_set_heap_limit(limits_.get(), kHeapLimitKib);
  }

  [[nodiscard]] bool found_in(const std::string& text) const {
    const int result = pcre2_match(code_.get(),
                                   reinterpret_cast<PCRE2_SPTR>(text.data()),
                                   text.size(),
                                   0,
                                   0,
                                   matches_.get(),
                                   limits_.get());
    TANDEM_CHECK(
        result >= 0 || result == PCRE2_ERROR_NOMATCH, "pattern search: {}", message_of(result));
    return result >= 0;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_context* limits) const { pcre2_match_context_free(limits); }
    void operator()(pcre2_match_data* matches) const { pcre2_match_data_free(matches); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_context, Free> limits_;
  std::unique_ptr<pcre2_match_data, Free> matches_;
};

}  // namespace

BuiltinScore make_regex(Options& options) {
  const std::string pattern = options.text("pattern", "");
  if (pattern.empty()) {
    options.refuse("option pattern is required");
  }
  const auto compiled = std::make_shared<const Pattern>(pattern, options);
  return [compiled](const RewardSample& sample) -> std::optional<double> {
    return compiled->found_in(sample.completion) ? 1.0 : 0.0;
  };
}

}  // namespace tandem::rewards
