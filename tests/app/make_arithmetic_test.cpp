// The quick start's questions: right answers, and none that the model has seen in another place.
#include "app/make_arithmetic.h"

#include <cstdio>
#include <map>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "app/recipe.h"
#include "base/atomic_file.h"
#include "support/temporary_folder.h"

namespace tandem::app {
namespace {

using Answers = std::map<std::string, std::string>;  // by question

Answers read_answers(const std::filesystem::path& file) {
  Answers answers;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line);
    CHECK(answers.emplace(row.at("prompt"), row.at("answer")).second);  // no question twice
  }
  return answers;
}

// What `a * b =` or `a + b =` asks for.
int result_of(const std::string& question) {
  int a = 0, b = 0;
  char sign = 0;
  REQUIRE(std::sscanf(question.c_str(), "%d %c %d =", &a, &sign, &b) == 3);
  return sign == '*' ? a * b : a + b;
}

struct Made {
  explicit Made(std::uint64_t seed) {
    const test::TemporaryFolder folder;
    counts = make_arithmetic(folder / "train.jsonl", folder / "validation.jsonl", seed);
    train = read_answers(folder / "train.jsonl");
    validation = read_answers(folder / "validation.jsonl");
  }
  ArithmeticFiles counts;
  Answers train, validation;
};

TEST_CASE("training and validation share no question, and every answer is right") {
  for (const std::uint64_t seed : {0, 1}) {
    const Made made(seed);
    CHECK(static_cast<std::int64_t>(made.train.size()) == made.counts.num_train);
    CHECK(static_cast<std::int64_t>(made.validation.size()) == made.counts.num_validation);
    // 8 x 8 products and 90 x 8 sums, but for three worked examples.
    CHECK(made.train.size() + made.validation.size() == 781);
    CHECK(made.validation.size() == 78);
    for (const auto& [question, answer] : made.validation) {
      CHECK_MESSAGE(made.train.count(question) == 0, question);
    }
    for (const Answers* answers : {&made.train, &made.validation}) {
      for (const auto& [question, answer] : *answers) {
        CHECK_MESSAGE(std::stoi(answer) == result_of(question), question);
      }
    }
  }
}

TEST_CASE("the worked examples of the quick start's recipe are asked nowhere") {
  const auto examples =
      load_recipe("recipes/smollm2-arithmetic.yaml", {}, Purpose::kTrain).recipe.data.examples;
  REQUIRE_FALSE(examples.empty());
  for (const std::uint64_t seed : {0, 1}) {
    const Made made(seed);
    for (const auto& example : examples) {
      CAPTURE(example.user);
      CHECK(std::stoi(example.assistant) == result_of(example.user));
      CHECK(made.train.count(example.user) == 0);
      CHECK(made.validation.count(example.user) == 0);
    }
  }
}

}  // namespace
}  // namespace tandem::app
