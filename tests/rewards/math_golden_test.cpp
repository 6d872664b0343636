// The math reward on recorded cases of other checkers; what it does not reach is listed by name.
#include <fstream>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "rewards/builtin/builtin.h"
#include "rewards/math/hendrycks.h"
#include "rewards/reward_library.h"
#include "support/shared_data.h"

namespace tandem::rewards::test {
namespace {

using nlohmann::json;

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

double math_score(const std::string& truth, const std::string& completion, int precision = 6) {
  RewardSample sample;
  sample.completion = completion;
  sample.ground_truth = truth;
  RewardConfig config;
  config.kind = "math";
  config.options = fmt::format("{{\"precision\":{}}}", precision);
  return make_builtin(config)->score({&sample, 1}, 1, 1000)[0].value.value_or(-1.0);
}

TEST_CASE("all 16 recorded cases of hendrycks string equality") {
  TANDEM_NEEDS_SHARED("hendrycks-math/is_equiv_cases.json");
  const json golden = read_json(tandem::test::shared_data() / "hendrycks-math/is_equiv_cases.json");
  int passed = 0;
  for (const json& row : golden.at("cases")) {
    CAPTURE(row.dump());
    const bool equal = hendrycks_equal(row[0].get<std::string>(), row[1].get<std::string>());
    CHECK(equal == (row[2].get<int>() == 1));
    passed += equal == (row[2].get<int>() == 1) ? 1 : 0;
  }
  MESSAGE("hendrycks: " << passed << " of 16");
  CHECK(passed == 16);
}

// Names of the rows that are known not to agree, one a line: "test_name index".
std::set<std::string> known_gaps() {
  std::ifstream file("tests/golden/rewards/math_verify_gaps.txt");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') {
      names.insert(line);
    }
  }
  return names;
}

TEST_CASE("math-verify: every row agrees but the known gaps") {
  TANDEM_NEEDS_SHARED("math-verify/math_verify_cases.json");
  const json rows = read_json(tandem::test::shared_data() / "math-verify/math_verify_cases.json");
  const std::set<std::string> gaps = known_gaps();
  std::set<std::string> missed;
  std::int64_t agreed = 0;
  for (const json& row : rows) {
    const std::string file = row.at("file").get<std::string>();
    const std::string name = fmt::format("{}:{} {}",
                                         file.substr(file.rfind('/') + 1),
                                         row.at("test").get<std::string>(),
                                         row.at("i").get<int>());
    bool agrees = false;
    if (row.contains("gold")) {  // the others look at the extractor's own results
      const int expected = (row.contains("expected") ? row.at("expected") : row.at("result"));
      agrees = math_score(row.at("gold"), row.at("pred"), row.value("precision", 6)) == expected;
    }
    agreed += agrees ? 1 : 0;
    if (!agrees) {
      missed.insert(name);
    }
    CHECK_MESSAGE(agrees == (gaps.count(name) == 0), name);
  }
  std::string all;
  for (const std::string& name : missed) {
    all += "\n  " + name;
  }
  MESSAGE("math-verify: " << agreed << " of " << rows.size() << "; not reached:" << all);
  CHECK(rows.size() == 276);
  CHECK(agreed >= 257);  // raise it with the gaps that are closed
}

TEST_CASE("math500: answers written differently agree, and neighbours' answers do not") {
  TANDEM_NEEDS_SHARED("math500/math_test_cleaned.json");
  const auto folder = tandem::test::shared_data();
  const json cleaned = read_json(folder / "math500/math_test_cleaned.json");
  std::map<std::string, std::string> answers;
  for (const json& row : read_json(folder / "math-train/test/math/math.json")) {
    answers[row.at("problem")] = row.at("answer");
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [index, problem] : cleaned.at("problem").items()) {
    pairs.emplace_back(cleaned.at("expected_answer").at(index), answers.at(problem));
  }
  REQUIRE(pairs.size() == 500);
  int different = 0, found = 0, same = 0, wrong = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [expected, written] = pairs[i];
    const double score = math_score(written, "The answer is \\boxed{" + expected + "}.");
    const double reversed = math_score(expected, "The answer is \\boxed{" + written + "}.");
    CHECK_MESSAGE((score == 1.0 && reversed == 1.0), expected << " and " << written);
    (expected == written ? same : different) += 1;
    found += expected != written && score == 1.0 ? 1 : 0;
    const std::string& neighbour = pairs[(i + 1) % pairs.size()].second;
    if (!hendrycks_equal(written, neighbour)) {
      const double negative = math_score(written, "so \\boxed{" + neighbour + "}");
      CHECK_MESSAGE(negative == 0.0, written << " and " << neighbour);
      wrong += negative == 0.0 ? 0 : 1;
    }
  }
  MESSAGE("math500: " << found << " of " << different << " pairs; " << wrong
                      << " of the neighbours taken for equal");
  CHECK(different == 85);
  CHECK(found == 85);
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace tandem::rewards::test
