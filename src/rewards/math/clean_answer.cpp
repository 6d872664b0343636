// One spelling for the many ways to write an answer in LaTeX.
#include <array>
#include <cctype>
#include <utility>

#include "rewards/builtin/text.h"
#include "rewards/math/answer_text.h"
#include "rewards/math/scanner.h"

namespace tandem::rewards {
namespace {

struct Rewrite {
  std::string_view from;
  std::string_view to;
};

// Commands, which end where their letters end.
constexpr std::array kCommands = {
    Rewrite{"\\left", ""},        Rewrite{"\\right", ""},        Rewrite{"\\bigl", ""},
    Rewrite{"\\bigr", ""},        Rewrite{"\\Bigl", ""},         Rewrite{"\\Bigr", ""},
    Rewrite{"\\big", ""},         Rewrite{"\\displaystyle", ""}, Rewrite{"\\dfrac", "\\frac"},
    Rewrite{"\\tfrac", "\\frac"}, Rewrite{"\\cfrac", "\\frac"},  Rewrite{"\\dbinom", "\\binom"},
    Rewrite{"\\lbrace", "{"},     Rewrite{"\\rbrace", "}"},      Rewrite{"\\le", "\x01"},
    Rewrite{"\\leq", "\x01"},     Rewrite{"\\leqslant", "\x01"}, Rewrite{"\\ge", "\x02"},
    Rewrite{"\\geq", "\x02"},     Rewrite{"\\geqslant", "\x02"}, Rewrite{"\\lt", "<"},
    Rewrite{"\\gt", ">"},         Rewrite{"\\ne", "\x03"},       Rewrite{"\\neq", "\x03"},
    Rewrite{"\\approx", "\x04"},  Rewrite{"\\cup", "\x05"},      Rewrite{"\\in", "\x06"},
    Rewrite{"\\pm", "\x07"},      Rewrite{"\\mp", "\x08"},       Rewrite{"\\circ", ""},
    Rewrite{"\\degree", ""},      Rewrite{"\\lvert", "|"},       Rewrite{"\\rvert", "|"},
    Rewrite{"\\dots", "..."},     Rewrite{"\\ldots", "..."},     Rewrite{"\\cdots", "..."},
    Rewrite{"\\colon", ":"}};

// Anything else, in this order.
constexpr std::array kPieces = {Rewrite{"\\! ", ""},
                                Rewrite{"\\!", ""},
                                Rewrite{"\\qquad", " "},
                                Rewrite{"\\quad", " "},
                                Rewrite{"\\,", " "},
                                Rewrite{"\\;", " "},
                                Rewrite{"\\:", " "},
                                Rewrite{"\\ ", " "},
                                Rewrite{"~", " "},
                                Rewrite{"{,}", ""},
                                Rewrite{"^{\\circ}", ""},
                                Rewrite{"^\\circ", ""},
                                Rewrite{"\\$", ""},
                                Rewrite{"$", ""},
                                Rewrite{"\xe2\x82\xac", ""},
                                Rewrite{"\xc2\xa3", ""},
                                Rewrite{"\xc2\xb0", ""},
                                Rewrite{"\xc2\xb2", ""},
                                Rewrite{"\\%", "%"},
                                Rewrite{"\\{", "{"},
                                Rewrite{"\\}", "}"},
                                Rewrite{"<=", "\x01"},
                                Rewrite{">=", "\x02"},
                                Rewrite{"!=", "\x03"},
                                Rewrite{"\xe2\x89\xa4", "\x01"},
                                Rewrite{"\xe2\x89\xa5", "\x02"},
                                Rewrite{"\xe2\x88\x92", "-"},
                                Rewrite{"\xc2\xb1", "\x07"},
                                Rewrite{"percentage", "%"},
                                Rewrite{"percent", "%"},
                                Rewrite{"pct", "%"},
                                Rewrite{"\\(", ""},
                                Rewrite{"\\)", ""},
                                Rewrite{"\n", " "}};

void rewrite_commands(std::string& text) {
  for (const auto& [from, to] : kCommands) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      const std::size_t end = at + from.size();
      if (end < text.size() && is_letter(text[end])) {
        at = end;
        continue;
      }
      text.replace(at, from.size(), to);
    }
  }
}

std::size_t group_end(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) {
      return i;
    }
  }
  return text.size();
}

// Whether a text group after `before` is a unit: it follows a number or a closing bracket.
bool follows_quantity(std::string_view before) {
  const std::string_view trimmed = trim(before);
  return !trimmed.empty() && (is_digit(trimmed.back()) || trimmed.back() == '}' ||
                              trimmed.back() == ')' || trimmed.back() == '.');
}

// One past an exponent at `at`, as in \text{cm}^2; `at` where there is none.
std::size_t exponent_end(const std::string& text, std::size_t at) {
  if (at >= text.size() || text[at] != '^') {
    return at;
  }
  const bool group = at + 1 < text.size() && text[at + 1] == '{';
  return std::min(group ? group_end(text, at + 1) + 1 : at + 2, text.size());
}

// "\text{ and }" to a comma, a unit to nothing, any other text group to its content.
void unwrap_text_groups(std::string& text) {
  for (const std::string_view name : {"\\text{",
                                      "\\mbox{",
                                      "\\textbf{",
                                      "\\textit{",
                                      "\\textrm{",
                                      "\\textnormal{",
                                      "\\mathrm{",
                                      "\\mathbf{",
                                      "\\mathit{",
                                      "\\operatorname{",
                                      "\\boxed{",
                                      "\\fbox{",
                                      "\\overline{"}) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
      const std::size_t open = at + name.size() - 1;
      const std::size_t close = group_end(text, open);
      const std::string content(trim(text.substr(open + 1, close - open - 1)));
      const std::size_t end = std::min(close + 1, text.size());
      const bool joins = content == "and" || content == "or" || content == ", and";
      const bool boxed = name == "\\boxed{" || name == "\\fbox{";
      const bool unit = !boxed && content.size() > 1 && is_letter(content[0]) &&
                        content.find(" and") == std::string::npos &&
                        follows_quantity(std::string_view(text).substr(0, at));
      if (unit && !joins) {
        text.erase(at, exponent_end(text, end) - at);
      } else {
        text.replace(at, end - at, joins ? " , " : boxed ? content : " " + content + " ");
      }
    }
  }
}

void join_words(std::string& text) {
  for (const std::string_view word : {" and ", " or ", ")or("}) {
    replace_all(text, word, word[0] == ')' ? "),(" : " , ");
  }
  for (std::size_t at = text.find(','); at != std::string::npos; at = text.find(',', at + 1)) {
    const std::size_t next = text.find_first_not_of(' ', at + 1);
    if (next != std::string::npos && text[next] == ',') {
      text.erase(at, next - at);  // ", and" has become two commas
      --at;
    }
  }
}

// "1 000" to "1000".
void join_spaced_thousands(std::string& text) {
  for (std::size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    const bool three = at + 3 < text.size() && is_digit(text[at + 1]) && is_digit(text[at + 2]) &&
                       is_digit(text[at + 3]) && (at + 4 == text.size() || !is_digit(text[at + 4]));
    if (three && at > 0 && is_digit(text[at - 1])) {
      text.erase(at--, 1);
    }
  }
}

// "125 miles", "3 m/s": a number followed by words.
void drop_plain_unit(std::string& text) {
  Scanner scanner(text);
  if (scanner.peek() == '-') {
    scanner.skip(1);
  }
  scanner.skip_space();
  const std::size_t start = scanner.place();
  scanner.move_to(std::min(text.find_first_not_of("0123456789.,", start), text.size()));
  const std::string_view rest = scanner.rest();
  const bool words = rest.size() > 2 && rest[0] == ' ' && is_letter(rest[1]) && is_letter(rest[2]);
  if (scanner.place() > start && words &&
      rest.find_first_of("\\=<>(){}[]+\x01\x02\x03\x04\x05\x06\x07") == std::string_view::npos) {
    text.erase(scanner.place());
  }
}

}  // namespace

std::string clean_answer(std::string_view answer) {
  std::string text(answer);
  // Between rows of a matrix; elsewhere a backslash escaped twice, as in JSON inside JSON.
  const bool matrix = text.find("\\begin") != std::string::npos;
  replace_all(text, "\\\\", matrix ? std::string_view(&kRowBreak, 1) : "\\");
  for (const auto& [from, to] : kPieces) {
    replace_all(text, from, to);
  }
  rewrite_commands(text);
  unwrap_text_groups(text);
  join_words(text);
  join_spaced_thousands(text);
  std::string_view trimmed = trim(text);
  while (!trimmed.empty() && std::string_view(".,;:").find(trimmed.back()) != std::string::npos) {
    trimmed = trim(trimmed.substr(0, trimmed.size() - 1));
  }
  text = std::string(trimmed);
  drop_plain_unit(text);
  return text;
}

}  // namespace tandem::rewards
