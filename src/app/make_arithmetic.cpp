#include "app/make_arithmetic.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "app/shuffle_rows.h"
#include "base/atomic_file.h"

namespace tandem::app {
namespace {

// The questions that recipes/smollm2-arithmetic.yaml answers before each prompt: the model reads
// their answers, so neither training nor validation may ask them.
constexpr std::array<std::string_view, 3> kWorkedExamples = {"3 * 4 =", "25 + 6 =", "7 * 8 ="};

bool is_worked_example(const std::string& question) {
  return std::find(kWorkedExamples.begin(), kWorkedExamples.end(), question) !=
         kWorkedExamples.end();
}

std::vector<std::string> all_rows() {
  std::vector<std::string> rows;
  const auto add = [&](const char* source, int a, char sign, int b, int answer) {
    const std::string question = fmt::format("{} {} {} =", a, sign, b);
    if (!is_worked_example(question)) {
      rows.push_back(fmt::format(R"({{"prompt": "{}", "answer": "{}", "data_source": "{}"}})"
                                 "\n",
                                 question,
                                 answer,
                                 source));
    }
  };
  for (int a = 2; a <= 9; ++a) {
    for (int b = 2; b <= 9; ++b) {
      add("product", a, '*', b, a * b);
    }
  }
  for (int a = 10; a <= 99; ++a) {
    for (int b = 2; b <= 9; ++b) {
      add("sum", a, '+', b, a + b);
    }
  }
  return rows;
}

}  // namespace

ArithmeticFiles make_arithmetic(const std::filesystem::path& train,
                                const std::filesystem::path& validation,
                                std::uint64_t seed) {
  auto rows = all_rows();
  shuffle_rows(rows, seed);
  std::string train_text, validation_text;
  ArithmeticFiles files;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool held_out = i % 10 == 9;
    (held_out ? validation_text : train_text) += rows[i];
    ++(held_out ? files.num_validation : files.num_train);
  }
  write_file_atomic(train, train_text);
  write_file_atomic(validation, validation_text);
  return files;
}

}  // namespace tandem::app
