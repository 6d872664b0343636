// The math reward by worked examples: reading expressions, finding answers, comparing them.
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "rewards/builtin/builtin.h"
#include "rewards/math/answer.h"
#include "rewards/math/answer_text.h"
#include "rewards/math/expression.h"
#include "rewards/math/hendrycks.h"
#include "rewards/reward_library.h"

namespace tandem::rewards::test {
namespace {

bool same(const std::string& truth, const std::string& answer) {
  return same_answer(truth, answer, {});
}

double value_of(const std::string& text) {
  const auto value = evaluate(text, 1);
  return value ? static_cast<double>(value->value.real()) : std::nan("");
}

double math_score(const std::string& truth, const std::string& completion) {
  RewardSample sample;
  sample.completion = completion;
  sample.ground_truth = truth;
  return make_builtin(parse_reward_spec("math"))->score({&sample, 1}, 1, 1)[0].value.value_or(-1);
}

TEST_CASE("expressions are computed with the usual precedence") {
  CHECK(value_of("2+3*4") == 14.0);
  CHECK(value_of("-2^2") == -4.0);
  CHECK(value_of("2^{-1}") == 0.5);
  CHECK(value_of("2^10") == 1024.0);
  CHECK(value_of("\\frac12 + \\frac{1}{2}") == 1.0);
  CHECK(value_of("2\\frac{1}{2}") == 2.5);
  CHECK(value_of("12/3/2") == 2.0);
  CHECK(value_of("\\sqrt[3]{27}") == doctest::Approx(3.0));
  CHECK(value_of("3(4+1)") == 15.0);
  CHECK(value_of("|3-5|") == 2.0);
  CHECK(value_of("4!") == doctest::Approx(24.0));
  CHECK(value_of("\\sin^2 2 + \\cos^2 2") == doctest::Approx(1.0));
  CHECK(value_of("\\log_2 8") == doctest::Approx(3.0));
  CHECK(value_of("\\binom{5}{2}") == doctest::Approx(10.0));
  CHECK(value_of("2\\pi") == doctest::Approx(6.283185307));
  CHECK(value_of("sqrt(16)") == 4.0);
}

TEST_CASE("what is no expression has no value") {
  for (const char* text :
       {"", "+", "2+", "(2", "2 3", "\\frac{1}", "\\unknown{2}", "1/0", "a b)", "..", "^2", "{"}) {
    CAPTURE(text);
    CHECK_FALSE(evaluate(text, 1).has_value());
  }
  CHECK_FALSE(evaluate(std::string(100'000, '('), 1).has_value());
  CHECK_FALSE(evaluate(std::string(100'000, '-') + "1", 1).has_value());
}

TEST_CASE("boxes are found with nested braces, open ends and the older spelling") {
  const auto last = [](const char* text) { return std::string(boxes(text).back().content); };
  CHECK(last("\\boxed{\\frac{1}{2}}") == "\\frac{1}{2}");
  CHECK(last("\\boxed{1} then \\fbox{2}") == "2");
  CHECK(last("$\\boxed 7$ ok") == "7");
  CHECK(last("\\boxed{1{2") == "1{2");
  CHECK(boxes("boxed{1}").empty());
}

TEST_CASE("the final answer is the box, the announcement, the formula, the line or the number") {
  CHECK(final_answer("first $3$, so \\boxed{4}, not 5") == "4");
  CHECK(final_answer("$3$. The answer is 4.\n\nThanks!") == "4.");
  CHECK(final_answer("we get $3 + 4$") == "3 + 4");
  CHECK(final_answer("56") == "56");
  CHECK(final_answer(" 10/9 ") == "10/9");
  CHECK(final_answer("He has 5 apples and 7 pears left") == "7");
  CHECK(final_answer("It costs -3.50 in all") == "-3.50");
  CHECK(final_answer("Evelyn") == "Evelyn");
  CHECK(final_answer("") == "");
  CHECK(final_answer("\\boxed{1} and \\boxed{2}") == "1 , 2");
  CHECK(final_answer("\\boxed{1} was wrong, it is \\boxed{2}") == "2");
}

TEST_CASE("numbers, fractions, decimals, percent and units") {
  CHECK(same("1/2", "0.5"));
  CHECK(same("\\frac{3}{4}", "0.75"));
  CHECK(same("\\frac{1}{3}", "0.333333"));
  CHECK_FALSE(same("\\frac{1}{3}", "0.33"));
  CHECK(same("1234", "1,234"));
  CHECK(same("10\\%", "10"));
  CHECK(same("0.1", "10\\%"));
  CHECK_FALSE(same("10", "1000"));  // a hundred times too much is wrong
  CHECK_FALSE(same("10", "0.1"));
  CHECK(same("864 \\mbox{ inches}^2", "864"));
  CHECK(same("5", "5 \\text{ cm}"));
  CHECK(same("5", "5 apples"));
  CHECK(same("145^\\circ", "145"));
  CHECK(same("\\$18.90", "18.9"));
  CHECK(same("204_5", "204"));
  CHECK_FALSE(same("204_5", "204_6"));
  CHECK(same("12345678901234567890", "12,345,678,901,234,567,890"));
  CHECK_FALSE(same("12345678901234567890", "12345678901234567891"));
  CHECK_FALSE(same("5", "-5"));
  CHECK_FALSE(same("5", "5x"));
}

TEST_CASE("expressions with variables are compared as functions") {
  CHECK(same("(x+1)^2", "x^2+2x+1"));
  CHECK(same("2 \\sin b \\cos a", "\\sin(a+b) - \\sin(a-b)"));
  CHECK(same("\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt{2}}{2}"));
  CHECK_FALSE(same("x+1", "x-1"));
  CHECK_FALSE(same("x", "y"));
  CHECK(same("x_{1}", "x_1"));
  CHECK(same("1 - 12i", "1-12i"));
}

TEST_CASE("lists, tuples, intervals and sets keep what order means to them") {
  CHECK(same("1, 2, 3", "3,2,1"));
  CHECK(same("\\{1,2\\}", "2,1"));
  CHECK_FALSE(same("1,2", "1,2,3"));
  CHECK_FALSE(same("1,2,3", "1,2"));
  CHECK_FALSE(same("(1,2)", "(2,1)"));
  CHECK_FALSE(same("[0,1)", "[0,1]"));
  CHECK(same("(1, 4.5)", "(1,\\frac{9}{2})"));
  CHECK(same("1 \\pm \\sqrt{19}", "1-\\sqrt{19}, 1+\\sqrt{19}"));
  CHECK(same("(0,1) \\cup (2,3)", "(2,3)\\cup(0,1)"));
  CHECK_FALSE(same("(0,1) \\cup (2,3)", "(0,1)"));
  CHECK_FALSE(same("7", "1,2,3,4,5,6,7"));  // naming everything is no answer
}

TEST_CASE("relations: assignments, equations up to a factor, inequalities, intervals") {
  CHECK(same("5", "x = 5"));
  CHECK(same("x = 2 + 3 = 5", "5"));
  CHECK_FALSE(same("1", "2x + z = 1"));
  CHECK(same("2x + 4y = 3", "y = -\\frac{x}{2} + \\frac{3}{4}"));
  CHECK_FALSE(same("2x + 4y = 3", "y = \\frac{x}{2} + \\frac{3}{4}"));
  CHECK(same("x < 1", "-x > -1"));
  CHECK_FALSE(same("x < 1", "x > 1"));
  CHECK_FALSE(same("x < 1", "x \\le 1"));
  CHECK(same("-2 \\le x \\le 7", "x \\in [-2,7]"));
  CHECK(same("k \\ge 2", "[2,\\infty)"));
}

TEST_CASE("words and letters are compared without their wrapping") {
  CHECK(same("\\text{Evelyn}", "evelyn"));
  CHECK(same("\\text{(B)}", "B"));
  CHECK_FALSE(same("\\text{(B)}", "C"));
  CHECK_FALSE(same("east", "west"));
  CHECK_FALSE(same("east", "seat"));
}

TEST_CASE("the reward: right, wrong, empty, without a truth, huge, and odd bytes") {
  CHECK(math_score("42", "6 * 7 = 42") == 1.0);
  CHECK(math_score("42", "42") == 1.0);
  CHECK(math_score("42", "43") == 0.0);
  CHECK(math_score("42", "") == 0.0);
  CHECK(math_score("", "42") == -1.0);  // does not apply
  CHECK(math_score("42", std::string("4\0002", 3)) == 0.0);
  CHECK(math_score("42", "\xff\xfe") == 0.0);
  CHECK(math_score("42", std::string(5'000'000, '[') + " so \\boxed{42}") == 1.0);
  CHECK(math_score("42", std::string(100'000, '{') + "$") == 0.0);
}

TEST_CASE("random answers never crash and equal themselves or not, but in bounded time") {
  const std::string alphabet = "0123456789.,xyz+-*/^_(){}[]|$%\\ =<>&!:;";
  const char* const words[] = {"\\frac",
                               "\\sqrt",
                               "\\boxed{",
                               "\\pm",
                               "\\begin{pmatrix}",
                               "\\\\",
                               "\\end{pmatrix}",
                               "\\text{",
                               "\\left",
                               " and ",
                               "\\cup",
                               "\\in",
                               "answer is",
                               "\\[",
                               "\\]",
                               "\\le",
                               "sin",
                               "\\log_"};
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (unsigned size = random() % 24; size > 0; --size) {
      text += random() % 4 == 0 ? std::string(words[random() % std::size(words)])
                                : std::string(1, alphabet[random() % alphabet.size()]);
    }
    CHECK(std::abs(math_score("7", text)) <= 1.0);
    same_answer(text, text + "+1", {});
  }
}

}  // namespace
}  // namespace tandem::rewards::test
