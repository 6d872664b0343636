// Where in a text the final answer stands.
#include <algorithm>
#include <cctype>
#include <vector>

#include "rewards/builtin/text.h"
#include "rewards/math/answer_text.h"
#include "rewards/math/hendrycks.h"
#include "rewards/math/scanner.h"

namespace tandem::rewards {
namespace {

constexpr std::size_t kLongestGap = 60;     // between two parts of one answer
constexpr std::size_t kLongestAnswer = 80;  // of a line that is taken whole
constexpr std::size_t kTail = 1u << 16;     // a final answer further from the end is not looked for

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return result;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Whether two parts with `gap` between them are one answer: an "and" or "or", or no word at all.
bool joins(std::string_view gap) {
  if (gap.size() > kLongestGap || contains(gap, "\n\n") || contains(gap, ". ")) {
    return false;
  }
  std::string words;
  for (const char c : gap) {
    words += is_letter(c) || c == '\\' ? c : ' ';
  }
  for (const std::string_view command : {"\\quad", "\\text", "\\qquad"}) {
    replace_all(words, command, " ");
  }
  words = " " + words + " ";
  return trim(words).find_first_not_of("\\ ") == std::string::npos || contains(words, " and ") ||
         contains(words, " or ");
}

// The last part, with those before it that it is joined to.
std::string joined(std::string_view text, const std::vector<Box>& parts) {
  std::string answer(parts.back().content);
  for (std::size_t i = parts.size() - 1; i > 0; --i) {
    const std::size_t gap = parts[i - 1].end;
    if (!joins(text.substr(gap, parts[i].start - gap))) {
      break;
    }
    answer = std::string(parts[i - 1].content) + " , " + answer;
  }
  return answer;
}

// "%" where the text says percent right after the answer.
std::string percent_after(std::string_view text, std::size_t at) {
  const std::size_t start = text.find_first_not_of("$ )\\", at);
  const std::string_view rest = start == std::string_view::npos ? "" : text.substr(start);
  const bool percent =
      rest.substr(0, 1) == "%" || rest.substr(0, 3) == "pct" || rest.substr(0, 7) == "percent";
  return percent ? "%" : "";
}

struct Delimiter {
  std::string_view open, close;
  bool lines;  // may hold line breaks
};

// $$..$$, \[..\], \(..\), $..$ from left to right.
std::vector<Box> formulas(std::string_view text) {
  constexpr Delimiter kDelimiters[] = {
      {"$$", "$$", true}, {"\\[", "\\]", true}, {"\\(", "\\)", false}, {"$", "$", false}};
  std::vector<Box> all;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '$' || text[at + 1] == '\\')) {
      ++at;  // \$ is a dollar, \\[ a line break
      continue;
    }
    const auto* delimiter =
        std::find_if(std::begin(kDelimiters), std::end(kDelimiters), [&](const Delimiter& d) {
          return text.substr(at, d.open.size()) == d.open;
        });
    if (delimiter == std::end(kDelimiters)) {
      continue;
    }
    const std::size_t start = at + delimiter->open.size();
    std::size_t close = text.find(delimiter->close, start);
    while (close != std::string_view::npos && delimiter->close[0] == '$' &&
           text[close - 1] == '\\') {
      close = text.find(delimiter->close, close + 1);
    }
    const std::string_view content =
        close == std::string_view::npos ? std::string_view() : text.substr(start, close - start);
    if (!trim(content).empty() && (delimiter->lines || !contains(content, "\n"))) {
      all.push_back({at, close + delimiter->close.size(), content});
      at = all.back().end - 1;
    }
  }
  return all;
}

// The last number, with its sign, decimals, fraction and percent. None of its digits may follow a
// letter.
std::string last_number(std::string_view text) {
  for (std::size_t end = text.size(); end > 0; --end) {
    if (!is_digit(text[end - 1])) {
      continue;
    }
    std::size_t start = end;
    const auto part_of_number = [&](std::size_t i) {
      const bool digit_before = i > 0 && is_digit(text[i - 1]);
      const char c = text[i];
      return is_digit(c) || ((c == ',' || c == '/') && digit_before) || c == '.' ||
             (c == ' ' && digit_before && start + 3 <= text.size() && is_digit(text[start]) &&
              end - start >= 3);
    };
    while (start > 0 && part_of_number(start - 1)) {
      --start;
    }
    start += text[start] == ' ' ? 1 : 0;
    if (start > 0 && is_letter(text[start - 1])) {
      end = start;
      continue;
    }
    const bool negative =
        start > 0 && text[start - 1] == '-' && (start == 1 || !is_digit(text[start - 2]));
    return std::string(text.substr(negative ? start - 1 : start, end - start + negative)) +
           percent_after(text, end);
  }
  return "";
}

// What follows the last "answer is" or "answer:". `hope` tells whether it ends with ". I hope",
// the wording of Minerva's prompt, which stands after any box.
std::string_view announced(std::string_view text, bool& hope) {
  const std::string small = lower(text);
  std::size_t best = 0;
  for (const std::string_view mark : {"answer is", "answer:", "answer :"}) {
    const std::size_t at = small.rfind(mark);
    best = at == std::string::npos ? best : std::max(best, at + mark.size());
  }
  std::string_view rest = best == 0 ? std::string_view() : text.substr(best);
  const std::size_t end = rest.find(". I hope");
  hope = end != std::string_view::npos;
  return trim(rest.substr(0, std::min(end, rest.find("\n\n"))));
}

std::string answer_in(std::string_view text) {
  bool hope = false;
  const std::string_view rest = announced(text, hope);
  const auto boxed = boxes(text);
  if (!rest.empty() && (hope || boxed.empty())) {
    return answer_in(rest);
  }
  if (!boxed.empty()) {
    return joined(text, boxed) + percent_after(text, boxed.back().end);
  }
  if (const auto found = formulas(text); !found.empty()) {
    const std::string number = last_number(text.substr(found.back().end));
    return number.empty() ? joined(text, found) + percent_after(text, found.back().end) : number;
  }
  const std::string_view line = last_line(text);
  if (line.size() <= kLongestAnswer && reads_as_mathematics(clean_answer(line))) {
    return std::string(line);
  }
  const std::string number = last_number(text);
  return number.empty() ? std::string(line) : number;
}

}  // namespace

std::string final_answer(std::string_view text) {
  return answer_in(text.size() > kTail ? text.substr(text.size() - kTail) : text);
}

std::string stated_answer(std::string_view ground_truth) {
  const bool marked = !boxes(ground_truth).empty() || !formulas(ground_truth).empty();
  return marked ? answer_in(ground_truth) : std::string(trim(ground_truth));
}

}  // namespace tandem::rewards
