// `eval` on two sources: its numbers follow what the model is made to answer.
#include <doctest/doctest.h>

#include "support/json_rows.h"
#include "support/workplace.h"

namespace tandem {
namespace {

using nlohmann::json;

// A recipe whose validation data are two files: of three questions two want "3 3 3".
std::string recipe_of_two_sources(const test::Workplace& place) {
  test::write(place.folder / "sums.jsonl",
              "{\"prompt\": \"1+2\", \"answer\": \"3 3 3\"}\n"
              "{\"prompt\": \"2+2\", \"answer\": \"4 4 4\"}\n");
  test::write(place.folder / "more.jsonl", "{\"prompt\": \"3+0\", \"answer\": \"3 3 3\"}\n");
  auto text = test::recipe_text(place.folder.path());
  const std::string train = "train: [{path: " + place.at("data.jsonl") + "}]";
  const std::string validation = ", validation: [{path: " + place.at("sums.jsonl") +
                                 "}, {path: " + place.at("more.jsonl") + "}]";
  text.insert(text.find(train) + train.size(), validation);
  test::write(place.folder / "two.yaml", text);
  return place.at("two.yaml");
}

json eval(const std::string& recipe, const test::Words& overrides = {}) {
  test::Words words = {
      "eval", recipe, "--json", "-", "validation.samples=2", "validation.temperature=1"};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return test::rows_of(words).at(0);
}

TEST_CASE("a bias that forces the answer 3 3 3 moves the accuracy of each source") {
  const test::Workplace place;
  const std::string recipe = recipe_of_two_sources(place);
  const json plain = eval(recipe);
  const json forced = eval(recipe, {"rollout.logit_bias=[{id: 3, bias: 1000}]"});
  // Forced, both samples of a prompt are the same: mean, best and majority are too.
  CHECK(forced.size() == 3 * 2 * 3);
  for (const char* kind : {"reward", "acc"}) {
    for (const char* of : {"mean@2", "best@2", "maj@2"}) {
      const std::string end = std::string("/") + kind + "/" + of;
      CAPTURE(end);
      CHECK(forced.at("val/sums" + end) == 0.5);
      CHECK(forced.at("val/more" + end) == 1.0);
      CHECK(forced.at("val/all" + end).get<double>() == doctest::Approx(2.0 / 3));
      CHECK(plain.at("val/all" + end) < 0.5);
    }
  }
  CHECK_FALSE(std::filesystem::exists(place.folder / "runs"));
}

TEST_CASE("samples that differ have a best above the mean") {
  const test::Workplace place;
  const std::string recipe = recipe_of_two_sources(place);
  // One token of 3 or 4, evenly: with 16 samples a prompt both are there.
  test::write(place.folder / "sums.jsonl", "{\"prompt\": \"1+2\", \"answer\": \"3\"}\n");
  test::write(place.folder / "more.jsonl", "{\"prompt\": \"2+2\", \"answer\": \"4\"}\n");
  const json scores = eval(
      recipe,
      {"validation.samples=16", "rollout.max_new_tokens=1", "rollout.allowed_token_ids=[3, 4]"});
  for (const char* source : {"val/sums", "val/more"}) {
    const double mean = scores.at(std::string(source) + "/acc/mean@16");
    CHECK(mean > 0);
    CHECK(mean < 1);
    CHECK(scores.at(std::string(source) + "/acc/best@16") == 1.0);
    // The majority's answer is the right one where more than half of the samples are right.
    if (mean != 0.5) {
      CHECK(scores.at(std::string(source) + "/acc/maj@16") == (mean > 0.5 ? 1.0 : 0.0));
    }
  }
}

}  // namespace
}  // namespace tandem
