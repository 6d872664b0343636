// Unit cases of the template language, with what Python's Jinja2 gives for them.
#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/shared_data.h"
#include "text/chat_template.h"
#include "text/golden_time.h"
#include "text/read_file.h"

namespace tandem::text {
namespace {

using Json = nlohmann::ordered_json;

struct Tally {
  int num_cases = 0;
  int num_passed = 0;

  // `row` holds the wanted text under "python_jinja2", or an error.
  void check(const std::string& source, const Json& context, const Json& row) {
    ++num_cases;
    const bool wants_error = !row.contains("python_jinja2") || !row["python_jinja2"].is_string();
    std::string got;
    try {
      const ChatTemplate chat(
          source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}, test::golden_time);
      got = chat.render(context);
    } catch (const UserError& error) {
      num_passed += wants_error ? 1 : 0;
      if (!wants_error) {
        MESSAGE(source << "\n  error: " << std::string(error.what()));
      }
      return;
    }
    const bool holds = !wants_error && got == row["python_jinja2"].get<std::string>();
    num_passed += holds ? 1 : 0;
    if (!holds) {
      MESSAGE(source << "\n  got: " << got << "\n  wanted: "
                     << (wants_error ? "an error" : row["python_jinja2"].get<std::string>()));
    }
  }
};

TEST_CASE("the unit cases of llama.cpp's template engine give Jinja2's results") {
  const auto path = test::shared_data() / "llama.cpp/jinja/test_jinja_cases.json";
  TANDEM_NEEDS_SHARED("llama.cpp/jinja/test_jinja_cases.json");
  Tally tally;
  for (const Json& row : Json::parse(test::read_file(path))) {
    tally.check(row["template"].get<std::string>(), row["context"], row);
  }
  MESSAGE(tally.num_passed << " of " << tally.num_cases << " llama.cpp cases");
  CHECK(tally.num_cases == 290);
  CHECK(tally.num_passed == tally.num_cases);
}

TEST_CASE("the template cases of huggingface.js give Jinja2's results") {
  const auto path = test::shared_data() / "huggingface.js/jinja/template_cases.json";
  TANDEM_NEEDS_SHARED("huggingface.js/jinja/template_cases.json");
  Tally tally;
  for (const Json& row : Json::parse(test::read_file(path))) {
    if (row["has_functions"].empty()) {  // the others call functions of the host language
      tally.check(row["template"].get<std::string>(), row["context"], row);
    }
  }
  MESSAGE(tally.num_passed << " of " << tally.num_cases << " huggingface.js unit cases");
  CHECK(tally.num_cases > 150);
  CHECK(tally.num_passed == tally.num_cases);
}

TEST_CASE("the conversations of huggingface.js give Jinja2's results") {
  const auto path = test::shared_data() / "huggingface.js/jinja/e2e_cases.json";
  TANDEM_NEEDS_SHARED("huggingface.js/jinja/e2e_cases.json");
  Tally tally;
  for (const Json& row : Json::parse(test::read_file(path))) {
    tally.check(row["chat_template"].get<std::string>(), row["data"], row);
  }
  MESSAGE(tally.num_passed << " of " << tally.num_cases << " huggingface.js conversations");
  CHECK(tally.num_cases == 53);
  CHECK(tally.num_passed == tally.num_cases);
}

}  // namespace
}  // namespace tandem::text
