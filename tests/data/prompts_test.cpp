#include "data/prompts.h"

#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "data/fake_text_model.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace tandem::data {
namespace {

PromptSource load(const std::string& rows,
                  const RowConfig& config = {},
                  bool with_template = true) {
  const tandem::test::TemporaryFolder folder;
  write_file_atomic(folder / "task.jsonl", rows);
  return load_prompts(
      (folder / "task.jsonl").string(), config, test::fake_text_model(with_template));
}

std::string error_of(const std::string& rows,
                     const RowConfig& config = {},
                     bool with_template = true) {
  try {
    load(rows, config, with_template);
  } catch (const UserError& e) {
    const std::string what = e.what();
    const std::size_t at = what.find("task.jsonl");
    return at == std::string::npos ? what : what.substr(at);
  }
  return "no error";
}

TEST_CASE("a verl row: messages, nested answer, its source; extra_info may be null") {
  const auto source =
      load(R"({"data_source": "gsm", "prompt": [{"role": "user", "content": "1+1"}],)"
           R"( "ability": "math", "reward_model": {"style": "rule", "ground_truth": "2"},)"
           R"( "extra_info": null})");
  const Prompt& prompt = source.prompts.at(0);
  CHECK(prompt.source == "gsm");
  CHECK(prompt.ground_truth == "2");
  CHECK(prompt.text == "<user>1+1|\n<assistant>");
  CHECK(test::text_of(prompt.ids) == prompt.text);
  CHECK(prompt.row_json.find("\"extra_info\":null") != std::string::npos);
}

TEST_CASE("a TRL row: a text or messages, further columns kept for the rewards") {
  const auto source = load(
      "{\"prompt\": \"sky?\", \"color\": \"blue\", \"id\": 7}\n"
      "{\"prompt\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": "
      "\"q\"}]}\n");
  CHECK(source.prompts[0].text == "<user>sky?|\n<assistant>");
  CHECK(source.prompts[0].id == "7");
  CHECK(source.prompts[0].source == "task");
  CHECK(source.prompts[0].ground_truth.empty());
  CHECK(source.prompts[0].row_json.find("blue") != std::string::npos);
  CHECK(source.prompts[1].messages.size() == 2);
  CHECK(source.prompts[1].id.ends_with("task.jsonl:2"));
}

TEST_CASE("plain rows: question and answer, numbers as texts") {
  const auto source =
      load("{\"question\": \"2*3\", \"answer\": 6}\n{\"problem\": \"x\", \"solution\": \"y\"}\n");
  CHECK(source.prompts[0].ground_truth == "6");
  CHECK(source.prompts[1].ground_truth == "y");
}

TEST_CASE("the recipe names columns where they differ; a missing one lists those there are") {
  RowConfig config;
  config.columns.prompt = "Body";
  config.columns.ground_truth = "meta.answer";
  config.columns.source = "kind";
  const auto source = load(R"({"Body": "b", "meta": {"answer": [1, 2]}, "kind": "k"})", config);
  CHECK(source.prompts[0].ground_truth == "[1,2]");
  CHECK(source.prompts[0].source == "k");
  CHECK(error_of("{\"Body\": \"b\"}", config) ==
        "task.jsonl:1: has no column meta.answer; it has Body");
  CHECK(error_of("{\"text\": \"b\", \"n\": 1}") ==
        "task.jsonl:1: has no prompt; its columns are n, text, name one in data.columns.prompt");
}

TEST_CASE("system message and worked examples go before each prompt as turns") {
  RowConfig config;
  config.system = "S";
  config.examples = {{"user", "1+1"}, {"assistant", "2"}};
  const auto source = load(
      "{\"prompt\": \"q\"}\n"
      "{\"prompt\": [{\"role\": \"system\", \"content\": \"own\"}, {\"role\": \"user\", "
      "\"content\": \"q\"}]}\n",
      config);
  CHECK(source.prompts[0].text == "<system>S|\n<user>1+1|\n<assistant>2|\n<user>q|\n<assistant>");
  CHECK(source.prompts[1].text == "<system>own|\n<user>1+1|\n<assistant>2|\n<user>q|\n<assistant>");
  CHECK(error_of("{\"prompt\": \"q\"}", config, false).find("need a chat template") !=
        std::string::npos);
}

TEST_CASE("a prompt template is filled from the row's columns") {
  RowConfig config;
  config.prompt_template = "{{{Body}}} {Question} in \\boxed{{}}";
  const auto source = load(R"({"Body": "B", "Question": "Q?"})", config);
  CHECK(source.prompts[0].messages[0].content == "{B} Q? in \\boxed{}");
  CHECK(error_of(R"({"Body": "B"})", config) ==
        "task.jsonl:1: data.prompt_template wants a column Question, the row has Body");
  config.prompt_template = "{Body";
  CHECK(error_of(R"({"Body": "B"})", config).find("without its }") != std::string::npos);
  config.prompt_template = "Body}";
  CHECK(error_of(R"({"Body": "B"})", config).find("without its {") != std::string::npos);
}

TEST_CASE("without a chat template a text is raw, with the tokenizer's special tokens") {
  const auto source = load("{\"prompt\": \"ab\"}", {}, false);
  CHECK(source.prompts[0].text == "ab");
  CHECK(source.prompts[0].messages.empty());
  CHECK(source.prompts[0].ids == std::vector<TokenId>{test::kBegin, 'a', 'b'});
  RowConfig raw;
  raw.chat = false;
  CHECK(load("{\"prompt\": \"ab\"}", raw).prompts[0].ids.size() == 3);
  CHECK(
      error_of(R"({"prompt": [{"role": "user", "content": "q"}]})", raw).find("no chat template") !=
      std::string::npos);
}

TEST_CASE("a prompt of exactly the limit stays, one more is dropped, cut or an error") {
  RowConfig config;
  config.max_tokens = 3;  // the special token and two characters
  const std::string rows = "{\"prompt\": \"ab\"}\n{\"prompt\": \"abcde\"}\n";
  const auto dropped = load(rows, config, false);
  CHECK(dropped.prompts.size() == 1);
  CHECK(dropped.report.num_overlong == 1);
  config.overlong = Overlong::kLeft;
  CHECK(load(rows, config, false).prompts[1].ids == std::vector<TokenId>{'c', 'd', 'e'});
  config.overlong = Overlong::kRight;
  CHECK(load(rows, config, false).prompts[1].ids == std::vector<TokenId>{test::kBegin, 'a', 'b'});
  config.overlong = Overlong::kMiddle;
  CHECK(load(rows, config, false).prompts[1].ids == std::vector<TokenId>{test::kBegin, 'd', 'e'});
  CHECK(load(rows, config, false).report.num_cut == 1);
  config.overlong = Overlong::kError;
  CHECK(error_of(rows, config, false) ==
        "task.jsonl:2: has 6 tokens, 3 are allowed; raise the limit or set data.overlong");
}

TEST_CASE("empty prompts and null answers are dropped with a count, and all is reported") {
  RowConfig config;
  config.max_tokens = 4;
  const auto source = load(
      "{\"prompt\": \"a\", \"answer\": 1}\n\n{\"prompt\": \" \\n\", \"answer\": 1}\n"
      "{\"prompt\": null, \"answer\": 1}\n{\"prompt\": \"b\", \"answer\": null}\n"
      "{\"prompt\": \"abcd\", \"answer\": 1}\n{\"prompt\": \"abc\", \"answer\": 1}\n",
      config,
      false);
  CHECK(source.report.num_read == 6);
  CHECK(source.report.num_kept == 2);
  CHECK(source.report.num_empty == 2);
  CHECK(source.report.num_no_answer == 1);
  CHECK(describe(source.report, "f", config) ==
        "f: 6 rows, 2 kept (2 empty, 1 without an answer, 1 longer than 4 tokens), tokens "
        "min/median/max 2/4/4");
}

TEST_CASE("broken rows and files without a usable row are named") {
  CHECK(error_of("{\"prompt\": \"a\"}\nnonsense\n").starts_with("task.jsonl:2: is not valid JSON"));
  CHECK(error_of("{\"prompt\": 5}\n") ==
        "task.jsonl:1: the prompt must be a text or a list of messages, not number");
  CHECK(error_of(R"({"prompt": [{"role": "user"}]})").find("message 0 must be") !=
        std::string::npos);
  CHECK(error_of(R"({"prompt": "a", "tools": [{"name": "x"}]})") ==
        "task.jsonl:1: tools: not in this version");
  CHECK(error_of("").find("nothing is left to draw from") != std::string::npos);
  CHECK(error_of("{\"prompt\": \"\"}\n").find("1 rows, 0 kept (1 empty)") != std::string::npos);
  CHECK_THROWS_AS(load_prompts("no/such.jsonl", {}, test::fake_text_model()), UserError);
}

TEST_CASE("the real data sets are read") {
  TANDEM_NEEDS_SHARED("gsm8k/test.jsonl");
  const auto gsm8k = load_prompts(
      (tandem::test::shared_data() / "gsm8k/test.jsonl").string(), {}, test::fake_text_model());
  CHECK(gsm8k.report.num_kept == 1319);
  CHECK(gsm8k.prompts[0].source == "test");
  CHECK(gsm8k.prompts[0].ground_truth.find("#### ") != std::string::npos);
  const auto mawps = load_prompts(
      (tandem::test::shared_data() / "mawps/addsub.jsonl").string(), {}, test::fake_text_model());
  CHECK(mawps.report.num_kept == 395);
}

}  // namespace
}  // namespace tandem::data
