// gsm8k: the number after "#### ", as verl reads it or compared as a number.
//
//   numeric (default)  the number after the last "####", else the last number; compared as decimals
//   strict             last "#### N" in the last 300 characters, compared as text (verl's strict)
//   flexible           last run of digits, points and commas, compared as text (verl's flexible)
#include <cctype>

#include "rewards/builtin/builtin.h"
#include "rewards/builtin/text.h"
#include "rewards/math/answer_parts.h"

namespace tandem::rewards {
namespace {

bool is_number_char(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == ',';
}

// The run of `-?[0-9.,]+` at `at`; empty when there is none.
std::string_view run_at(std::string_view text, std::size_t at) {
  std::size_t end = at + (at < text.size() && text[at] == '-' ? 1 : 0);
  const std::size_t digits = end;
  while (end < text.size() && is_number_char(text[end])) {
    ++end;
  }
  return end == digits ? std::string_view() : text.substr(at, end - at);
}

std::string without(std::string_view text, std::string_view characters) {
  std::string kept;
  for (const char c : text) {
    if (characters.find(c) == std::string_view::npos) {
      kept += c;
    }
  }
  return kept;
}

std::optional<std::string> strict_answer(std::string_view completion) {
  constexpr std::size_t kTail = 300;
  constexpr std::string_view kMark = "#### ";
  const std::string_view tail =
      completion.size() > kTail ? completion.substr(completion.size() - kTail) : completion;
  for (std::size_t at = tail.rfind(kMark); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : tail.rfind(kMark, at - 1)) {
    const std::string_view run = run_at(tail, at + kMark.size());
    if (!run.empty()) {
      return without(run, ",$");
    }
  }
  return std::nullopt;
}

// Runs from left to right, as a regex search would cut them; the last that is not just ".".
// With `digits`, the last that has a digit.
std::optional<std::string> last_run(std::string_view text, bool digits) {
  std::optional<std::string> last;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view run = run_at(text, at);
    const bool has_digit = run.find_first_of("0123456789") != std::string_view::npos;
    if (!run.empty() && run != "." && (has_digit || !digits)) {
      last = std::string(run);
    }
    at += run.empty() ? 1 : run.size();
  }
  return last;
}

// The number of a run that may end a sentence and bear a currency or a sign.
std::optional<std::string> canonical(std::string_view text) {
  std::string digits = without(text, ", $");
  while (!digits.empty() && digits.back() == '.') {
    digits.pop_back();
  }
  digits.erase(0, digits.starts_with('+') ? 1 : 0);
  return decimal_number(digits);
}

std::optional<std::string> numeric_answer(std::string_view completion) {
  const std::size_t mark = completion.rfind("####");
  if (mark == std::string_view::npos) {
    const auto run = last_run(completion, /*digits=*/true);
    return run ? canonical(*run) : std::nullopt;
  }
  std::string rest = without(completion.substr(mark + 4), "$");
  rest = rest.substr(0, rest.find('\n'));
  const std::size_t start = rest.find_first_of("-0123456789.");
  return start == std::string::npos ? std::nullopt : canonical(run_at(rest, start));
}

double equal_score(const std::optional<std::string>& answer, const std::string& truth) {
  return answer && *answer == truth ? 1.0 : 0.0;
}

// The data has either the bare number or the whole worked answer with its "#### ".
std::string truth_of(const RewardSample& sample) {
  const std::size_t mark = sample.ground_truth.rfind("#### ");
  return mark == std::string::npos ? std::string(trim(sample.ground_truth))
                                   : without(trim(sample.ground_truth.substr(mark + 5)), ",");
}

}  // namespace

BuiltinScore make_gsm8k(Options& options) {
  const std::string mode = options.choice("mode", {"numeric", "strict", "verl_strict", "flexible"});
  return [mode](const RewardSample& sample) -> std::optional<double> {
    const std::string truth = truth_of(sample);
    if (truth.empty()) {
      return std::nullopt;  // nothing to compare with
    }
    if (mode == "numeric") {
      const auto wanted = canonical(truth);
      return wanted ? std::optional(equal_score(numeric_answer(sample.completion), *wanted))
                    : std::nullopt;
    }
    return equal_score(mode == "flexible" ? last_run(sample.completion, /*digits=*/false)
                                          : strict_answer(sample.completion),
                       truth);
  };
}

}  // namespace tandem::rewards
