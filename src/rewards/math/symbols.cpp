#include "rewards/math/symbols.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem::rewards {
namespace {

constexpr std::array<NamedFunction, 17> kFunctions = {{
    {"arcsin", [](const Complex& x) { return std::asin(x); }},
    {"arccos", [](const Complex& x) { return std::acos(x); }},
    {"arctan", [](const Complex& x) { return std::atan(x); }},
    {"sinh", [](const Complex& x) { return std::sinh(x); }},
    {"cosh", [](const Complex& x) { return std::cosh(x); }},
    {"tanh", [](const Complex& x) { return std::tanh(x); }},
    {"sin", [](const Complex& x) { return std::sin(x); }},
    {"cos", [](const Complex& x) { return std::cos(x); }},
    {"tan", [](const Complex& x) { return std::tan(x); }},
    {"cot", [](const Complex& x) { return Complex(1) / std::tan(x); }},
    {"sec", [](const Complex& x) { return Complex(1) / std::cos(x); }},
    {"csc", [](const Complex& x) { return Complex(1) / std::sin(x); }},
    {"log", [](const Complex& x) { return std::log(x); }},
    {"ln", [](const Complex& x) { return std::log(x); }},
    {"lg", [](const Complex& x) { return std::log(x) / std::log(Complex(10)); }},
    {"exp", [](const Complex& x) { return std::exp(x); }},
    {"sqrt", [](const Complex& x) { return std::sqrt(x); }},
}};

constexpr std::array<std::string_view, 27> kGreek = {
    "alpha",    "beta",    "gamma", "delta",  "epsilon", "varepsilon", "zeta",  "eta",   "theta",
    "vartheta", "iota",    "kappa", "lambda", "mu",      "nu",         "xi",    "rho",   "sigma",
    "tau",      "upsilon", "phi",   "varphi", "chi",     "psi",        "omega", "Delta", "Omega"};

}  // namespace

std::span<const NamedFunction> named_functions() {
  return kFunctions;
}

const NamedFunction* function_at(std::string_view text) {
  const auto found = std::find_if(kFunctions.begin(), kFunctions.end(), [&](const auto& function) {
    return text.substr(0, function.name.size()) == function.name;
  });
  return found == kFunctions.end() ? nullptr : found;
}

bool is_greek_letter(std::string_view name) {
  return std::find(kGreek.begin(), kGreek.end(), name) != kGreek.end();
}

Complex made_up_value(std::string_view name, std::uint64_t seed) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ull * (seed + 1);
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
    hash ^= hash >> 29;
  }
  hash *= 0xBF58476D1CE4E5B9ull;
  return 0.4L + 2.0L * static_cast<long double>(hash >> 11) / 9007199254740992.0L;
}

}  // namespace tandem::rewards
