#include "rewards/math/answer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "rewards/builtin/text.h"
#include "rewards/math/answer_parts.h"
#include "rewards/math/answer_text.h"
#include "rewards/math/expression.h"
#include "rewards/math/hendrycks.h"
#include "rewards/math/relation.h"
#include "rewards/math/scanner.h"
#include "rewards/math/symbols.h"
#include "rewards/math/values.h"

namespace tandem::rewards {
namespace {

constexpr std::size_t kMaxItems = 64;
constexpr std::size_t kMaxAnswerSize = 2000;  // longer ones are compared as text alone
constexpr int kMaxDepth = 8;
constexpr std::size_t kShortestWord = 4;

std::string without_spaces(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    kept.append(std::isspace(static_cast<unsigned char>(c)) != 0 ? 0 : 1, c);
  }
  return kept;
}

// Letters and digits in lower case, for answers that are words: "(B)" and "b".
std::string words_of(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    kept.append(std::isalnum(byte) != 0 || byte >= 0x80 ? 1 : 0,
                static_cast<char>(std::tolower(byte)));
  }
  return kept;
}

bool is_words(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_letter) &&
         text.find_first_of("0123456789+-*/^=<>\\,") == std::string_view::npos;
}

bool is_inequality(std::string_view text) {
  const auto relation = parse_relation(text);
  return relation && relation->signs[0] != '=';
}

class Comparison {
 public:
  explicit Comparison(const AnswerOptions& options) : options_(options) {}

  bool same(std::string_view a, std::string_view b) {
    a = without_outer_braces(a);
    b = without_outer_braces(b);
    if (a.empty() || b.empty() || ++depth_ > kMaxDepth) {
      return false;
    }
    const bool result = without_spaces(a) == without_spaces(b) || same_parts(a, b);
    --depth_;
    return result;
  }

 private:
  bool same_parts(std::string_view a, std::string_view b) {
    const auto x = decimal_number(a);
    const auto y = decimal_number(b);
    if (x && y && a.find(',') == a.npos && b.find(',') == b.npos) {
      return *x == *y;
    }
    const auto items_a = items_of(a);
    const auto items_b = items_of(b);
    if (items_a.size() > 1 || items_b.size() > 1) {
      return same_items(a, items_a, b, items_b);
    }
    if (const std::size_t in = a.find(kElement); in != a.npos) {
      return b.find(kElement) != b.npos || !is_inequality(b)
                 ? same(a.substr(in + 1), b.substr(b.find(kElement) + 1))
                 : false;
    }
    if (const std::size_t in = b.find(kElement); in != b.npos) {
      return same(a, b.substr(in + 1));
    }
    const auto union_a = split_outside(a, std::string_view(&kUnion, 1));
    const auto union_b = split_outside(b, std::string_view(&kUnion, 1));
    if (union_a.size() > 1 || union_b.size() > 1) {
      return same_in_any_order(union_a, union_b);
    }
    return same_single(a, b);
  }

  bool same_single(std::string_view a, std::string_view b) {
    const auto relation_a = parse_relation(a);
    const auto relation_b = parse_relation(b);
    if (relation_a || relation_b) {
      return same_relations(a, relation_a, b, relation_b);
    }
    const auto sequence_a = parse_sequence(a);
    const auto sequence_b = parse_sequence(b);
    if (sequence_a && sequence_b) {
      return same_sequences(*sequence_a, *sequence_b);
    }
    const auto matrix_a = parse_matrix(a);
    const auto matrix_b = parse_matrix(b);
    if (matrix_a && matrix_b) {
      return same_matrices(*matrix_a, *matrix_b);
    }
    const auto ratio_a = split_outside(a, ":");
    const auto ratio_b = split_outside(b, ":");
    if (ratio_a.size() > 1 || ratio_b.size() > 1) {
      return same_in_order(ratio_a, ratio_b);
    }
    if (is_words(a) && is_words(b) && std::max(a.size(), b.size()) >= kShortestWord) {
      return words_of(a) == words_of(b);  // as products of letters, anagrams would be equal
    }
    return same_values(a, b, options_.precision) ||
           (is_words(a) && is_words(b) && words_of(a) == words_of(b));
  }

  // The items of a list, with both values of each plus-or-minus.
  static std::vector<std::string> items_of(std::string_view text) {
    std::vector<std::string> items;
    for (const std::string& item : split_outside(text, ",;")) {
      const bool both = item.find(kPlusMinus) != item.npos;
      for (const bool plus : {true, false}) {
        std::string value = item;
        std::replace(value.begin(), value.end(), kPlusMinus, plus ? '+' : '-');
        std::replace(value.begin(), value.end(), kMinusPlus, plus ? '-' : '+');
        if (plus || both) {
          items.push_back(std::move(value));
        }
      }
    }
    return items;
  }

  bool same_items(std::string_view a,
                  const std::vector<std::string>& items_a,
                  std::string_view b,
                  const std::vector<std::string>& items_b) {
    const auto tuple_a = items_a.size() == 1 ? parse_sequence(a) : std::nullopt;
    const auto tuple_b = items_b.size() == 1 ? parse_sequence(b) : std::nullopt;
    if (tuple_a || tuple_b) {  // a set has no order; as a tuple it counts when written upwards
      return same_in_order(tuple_a ? tuple_a->items : sorted(items_a),
                           tuple_b ? tuple_b->items : sorted(items_b));
    }
    return same_in_any_order(items_a, items_b);
  }

  static std::vector<std::string> sorted(std::vector<std::string> items) {
    const auto value = [](const std::string& item) {
      const auto evaluated = evaluate(item, 0);
      return evaluated ? evaluated->value.real() : 0.0L;
    };
    std::stable_sort(items.begin(), items.end(), [&](const auto& x, const auto& y) {
      return value(x) < value(y);
    });
    return items;
  }

  bool same_in_order(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [this](const auto& x, const auto& y) {
             return same(x, y);
           });
  }

  // As sets: a value that is listed twice counts once.
  bool same_in_any_order(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    if (a.size() > kMaxItems || b.size() > kMaxItems) {
      return false;
    }
    const auto all_in = [this](const auto& items, const auto& others) {
      return std::all_of(items.begin(), items.end(), [&](const std::string& item) {
        return std::any_of(others.begin(), others.end(), [&](const std::string& other) {
          return same(item, other);
        });
      });
    };
    return all_in(a, b) && all_in(b, a);
  }

  bool same_sequences(const Sequence& a, const Sequence& b) {
    return a.open == b.open && a.close == b.close && same_in_order(a.items, b.items);
  }

  bool same_matrices(const Matrix& a, const Matrix& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [this](const auto& x, const auto& y) {
             return same_in_order(x, y);
           });
  }

  bool same_relations(std::string_view a,
                      const std::optional<Relation>& relation_a,
                      std::string_view b,
                      const std::optional<Relation>& relation_b) {
    const std::string value_a = relation_a ? assigned_value(*relation_a) : std::string(a);
    const std::string value_b = relation_b ? assigned_value(*relation_b) : std::string(b);
    if (!value_a.empty() && !value_b.empty() && same(value_a, value_b)) {
      return true;
    }
    if (relation_a && relation_b) {
      return same_intervals(*relation_a, *relation_b) || are_proportional(*relation_a, *relation_b);
    }
    const Relation& relation = relation_a ? *relation_a : *relation_b;
    const auto interval = as_interval(relation);
    const auto sequence = parse_sequence(relation_a ? b : a);
    return interval && sequence && same_sequences(*interval, *sequence);
  }

  bool same_intervals(const Relation& a, const Relation& b) {
    const auto x = as_interval(a);
    const auto y = as_interval(b);
    return x && y && a.signs.size() == b.signs.size() && same_sequences(*x, *y) &&
           (a.signs.size() == 1 || same(a.sides[1], b.sides[1]));
  }

  const AnswerOptions& options_;
  int depth_ = 0;
};

// Whether three letters in a row are neither command nor function: "It costs 5" is no product.
bool has_plain_word(std::string_view text) {
  Scanner scanner(text);
  while (!scanner.at_end()) {
    const bool command = scanner.previous() == '\\';
    const std::string_view letters = scanner.letters();
    if (letters.size() >= 3 && !command && function_at(letters) == nullptr) {
      return true;
    }
    scanner.skip(letters.empty() ? 1 : 0);
  }
  return false;
}

// 204_5: a number with its base, in one spelling; the text before the base as `digits`.
std::string_view base_of(std::string_view text, std::string_view& digits) {
  const std::size_t bar = text.find('_');
  if (bar == text.npos || text.substr(0, bar).find_first_not_of("0123456789") != text.npos) {
    return "";
  }
  digits = text.substr(0, bar);
  return without_outer_braces(text.substr(bar + 1));
}

}  // namespace

bool reads_as_mathematics(std::string_view clean) {
  if (has_plain_word(clean)) {
    return false;
  }
  const auto items = split_outside(without_outer_braces(clean), ",;\x05");
  return std::all_of(items.begin(), items.end(), [](const std::string& item) {
    return evaluate(item, 0) || parse_sequence(item) || parse_relation(item) || parse_matrix(item);
  });
}

bool same_answer(std::string_view truth, std::string_view answer, const AnswerOptions& options) {
  if (trim(truth).empty() || trim(answer).empty()) {
    return false;
  }
  // Its way with equations drops "7 =" of "7 = a + c", so those go another way.
  const bool equation = truth.find('=') != truth.npos || answer.find('=') != answer.npos;
  if (!equation && hendrycks_equal(truth, answer)) {
    return true;
  }
  if (truth.size() > kMaxAnswerSize || answer.size() > kMaxAnswerSize) {
    return false;
  }
  const std::string a = clean_answer(truth);
  const std::string b = clean_answer(answer);
  std::string_view digits_a = a;
  std::string_view digits_b = b;
  const std::string_view base_a = base_of(a, digits_a);
  const std::string_view base_b = base_of(b, digits_b);
  if (!base_a.empty() && !base_b.empty() && base_a != base_b) {
    return false;
  }
  const std::string x = with_joined_thousands(digits_a);
  const std::string y = with_joined_thousands(digits_b);
  Comparison comparison(options);
  return comparison.same(digits_a, digits_b) || comparison.same(x, y) ||
         comparison.same(with_decimal_point(x), with_decimal_point(y));
}

}  // namespace tandem::rewards
