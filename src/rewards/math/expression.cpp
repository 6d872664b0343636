#include "rewards/math/expression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "rewards/math/scanner.h"
#include "rewards/math/symbols.h"

namespace tandem::rewards {
namespace {

constexpr int kMaxDepth = 64;
constexpr long double kInfinity = 1e300L;
constexpr Complex kFailed{std::numeric_limits<long double>::quiet_NaN(), 0};

// Recursive descent. A failure sets failed_ and moves to the end, so that all loops stop.
class Evaluator : private Scanner {
 public:
  Evaluator(std::string_view text, std::uint64_t seed) : Scanner(text), seed_(seed) {}

  std::optional<EvaluatedExpression> run() {
    const Complex value = sum();
    if (failed_ || !at_end() || !std::isfinite(value.real()) || !std::isfinite(value.imag())) {
      return std::nullopt;
    }
    return EvaluatedExpression{value, has_variables_};
  }

 private:
  Complex give_up() {
    failed_ = true;
    move_to(std::string_view::npos);
    return kFailed;
  }

  Complex sum() {
    if (++depth_ > kMaxDepth) {
      return give_up();
    }
    Complex value = product();
    for (;;) {
      if (take("+")) {
        value += product();
      } else if (take("-")) {
        value -= product();
      } else {
        break;
      }
    }
    --depth_;
    return value;
  }

  Complex product() {
    Complex value = signed_power();
    for (;;) {
      if (take("*") || take("\\cdot") || take("\\times")) {
        value *= signed_power();
      } else if (take("/") || take("\\div")) {
        value /= signed_power();
      } else if (starts_factor()) {
        value *= power();
      } else {
        return value;
      }
    }
  }

  // Whether a factor follows without a sign. Two numbers side by side are no product.
  bool starts_factor() {
    const char c = peek();
    return is_letter(c) || c == '(' || c == '{' || c == '\\' || (c == '|' && bars_ == 0) ||
           ((is_digit(c) || c == '.') && !is_digit(previous()) && previous() != ' ');
  }

  Complex signed_power() {
    if (take("-")) {
      return ++depth_ > kMaxDepth ? give_up() : -signed_power();
    }
    take("+");
    return power();
  }

  Complex power() {
    Complex base = primary();
    while (take("!")) {
      base = std::tgamma(base.real() + 1);
    }
    if (take("^")) {
      const Complex exponent = script();
      const bool square = exponent == Complex(2);
      base = square ? base * base : std::pow(base, exponent);
    }
    return base;
  }

  Complex primary() {
    const char c = peek();
    if (is_digit(c) || c == '.') {
      return number();
    }
    if (c == '(' || c == '[' || c == '{') {
      skip(1);
      return closed_by(c == '(' ? ')' : c == '[' ? ']' : '}');
    }
    if (c == '|') {
      skip(1);
      ++bars_;
      const Complex inside = sum();
      --bars_;
      return take("|") ? Complex(std::abs(inside)) : give_up();
    }
    if (c == '\\') {
      skip(1);
      return command();
    }
    return is_letter(c) ? word() : give_up();
  }

  Complex closed_by(char close) {
    const int bars = std::exchange(bars_, 0);
    const Complex inside = sum();
    bars_ = bars;
    return take(std::string_view(&close, 1)) ? inside : give_up();
  }

  Complex number() {
    const std::size_t start = place();
    digits();
    const bool whole = rest().substr(0, 1) != ".";
    if (!whole) {
      skip(1);
      digits();
    }
    const std::string literal(since(start));
    if (literal == ".") {
      return give_up();
    }
    const Complex value = std::strtold(literal.c_str(), nullptr);
    return whole ? value + fraction_of_mixed_number() : value;
  }

  // 1/3 right after the 2 of 2\frac{1}{3}, else 0.
  Complex fraction_of_mixed_number() {
    const std::size_t start = place();
    if (take("\\frac{")) {
      const std::string top(digits());
      if (!top.empty() && take("}{")) {
        const std::string bottom(digits());
        if (!bottom.empty() && take("}")) {
          return std::strtold(top.c_str(), nullptr) / std::strtold(bottom.c_str(), nullptr);
        }
      }
    }
    move_to(start);
    return 0;
  }

  // What follows \frac or \sqrt: a group, one digit, one letter or a command.
  Complex argument() {
    const char c = peek();
    if (is_digit(c)) {
      skip(1);
      return Complex(c - '0');
    }
    return primary();
  }

  // An exponent or base: like an argument, but a run of digits is taken whole, with its sign.
  Complex script() {
    const long double sign = take("-") ? -1 : 1;
    return sign * (is_digit(peek()) ? Complex(std::strtold(std::string(digits()).c_str(), nullptr))
                                    : argument());
  }

  Complex command() {
    const std::string_view name = letters();
    if (name == "frac") {
      const Complex top = argument();
      return top / argument();
    }
    if (name == "sqrt") {
      return root();
    }
    if (name == "binom") {
      const long double n = argument().real();
      const long double k = argument().real();
      return std::tgamma(n + 1) / std::tgamma(k + 1) / std::tgamma(n - k + 1);
    }
    if (name == "pi") {
      return std::numbers::pi_v<long double>;
    }
    if (name == "infty") {
      return kInfinity;
    }
    return named(name);
  }

  // A function or a Greek variable.
  Complex named(std::string_view name) {
    for (const NamedFunction& function : named_functions()) {
      if (function.name == name) {
        return call(function);
      }
    }
    return is_greek_letter(name) ? variable(name) : give_up();
  }

  Complex root() {
    Complex degree = 2;
    if (take("[")) {
      degree = closed_by(']');
    }
    const Complex base = argument();
    return degree == Complex(2) ? std::sqrt(base) : std::pow(base, Complex(1) / degree);
  }

  Complex call(const NamedFunction& function) {
    Complex base = 0;
    const bool has_base = function.name == "log" && take("_");
    if (has_base) {
      base = script();
    }
    const bool has_power = take("^");
    const Complex exponent = has_power ? script() : Complex(1);
    const Complex x = function_argument();
    const Complex value = has_base ? std::log(x) / std::log(base) : function.apply(x);
    return has_power ? std::pow(value, exponent) : value;
  }

  // A group, or the factors up to the next sign or function: \sin 2x \cos y.
  Complex function_argument() {
    const char c = peek();
    if (c == '(' || c == '{' || c == '[') {
      return primary();
    }
    Complex value = power();
    while (starts_factor() && function_at(rest().substr(peek() == '\\' ? 1 : 0)) == nullptr) {
      value *= power();
    }
    return value;
  }

  // Letters outside a command: a known word, else one letter that is a constant or a variable.
  Complex word() {
    if (const NamedFunction* function = function_at(rest())) {
      skip(function->name.size());
      return call(*function);
    }
    if (take("pi")) {
      return std::numbers::pi_v<long double>;
    }
    const std::string_view letter = rest().substr(0, 1);
    skip(1);
    const bool subscripted = rest().substr(0, 1) == "_";
    if (letter == "e" && !subscripted) {
      return std::numbers::e_v<long double>;
    }
    return letter == "i" && !subscripted ? Complex(0, 1) : variable(letter);
  }

  // Its subscript is part of the name.
  Complex variable(std::string_view letters) {
    std::string name(letters);
    has_variables_ = true;
    if (take("_")) {
      const std::size_t start = place();
      const std::size_t size = take("{") ? rest().find('}') + 1 : 1;
      skip(std::min(size, rest().size()));
      for (const char c : since(start)) {
        name.append(c == '{' || c == '}' || c == ' ' ? 0 : 1, c);
      }
    }
    return made_up_value(name, seed_);
  }

  std::uint64_t seed_;
  int depth_ = 0;
  int bars_ = 0;  // absolute values that are open
  bool failed_ = false;
  bool has_variables_ = false;
};

}  // namespace

std::optional<EvaluatedExpression> evaluate(std::string_view text, std::uint64_t seed) {
  return Evaluator(text, seed).run();
}

}  // namespace tandem::rewards
