#include "app/make_sequence.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/shuffle_rows.h"
#include "base/atomic_file.h"

namespace tandem::app {
namespace {

constexpr int kModulus = 5;
constexpr int kMostTerms = 6;
constexpr int kCarelessAnswers = 2;

struct Question {
  int a = 0, b = 0, num_terms = 0;
};

// `step` is what each term adds to the one before.
std::string row(const Question& q, int step) {
  std::vector<int> terms;
  int last = q.b;
  for (int i = 0; i < q.num_terms; ++i) {
    last = (last + step + kModulus) % kModulus;
    terms.push_back(last);
  }
  return fmt::format(R"({{"prompt": "{},{}:{},{}", "answer": "{}"}})"
                     "\n",
                     q.a,
                     q.b,
                     kModulus,
                     q.num_terms,
                     fmt::join(terms, ","));
}

std::vector<Question> all_questions() {
  std::vector<Question> questions;
  for (int a = 0; a < kModulus; ++a) {
    for (int b = 0; b < kModulus; ++b) {
      for (int n = 1; n <= kMostTerms; ++n) {
        questions.push_back({a, b, n});
      }
    }
  }
  return questions;
}

std::string joined(const std::vector<std::string>& rows) {
  return fmt::format("{}", fmt::join(rows, ""));
}

}  // namespace

SequenceCounts make_sequence(const SequenceFiles& files, std::uint64_t seed) {
  auto questions = all_questions();
  shuffle_rows(questions, seed);
  std::vector<std::string> train, validation, demonstrations;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Question& q = questions[i];
    const std::string right = row(q, q.b - q.a);
    if (i % 10 == 9) {
      validation.push_back(right);
      continue;
    }
    train.push_back(right);
    demonstrations.push_back(right);
    demonstrations.insert(demonstrations.end(), kCarelessAnswers, row(q, 0));
  }
  write_file_atomic(files.train, joined(train));
  write_file_atomic(files.validation, joined(validation));
  write_file_atomic(files.demonstrations, joined(demonstrations));
  return {static_cast<std::int64_t>(train.size()),
          static_cast<std::int64_t>(validation.size()),
          static_cast<std::int64_t>(demonstrations.size())};
}

}  // namespace tandem::app
