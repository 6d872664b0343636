#include "data/sft.h"

#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "data/fake_text_model.h"
#include "support/temporary_folder.h"

namespace tandem::data {
namespace {

SftSource load(const std::string& rows,
               const RowConfig& config = {},
               const TextModel& model = test::fake_text_model()) {
  const tandem::test::TemporaryFolder folder;
  write_file_atomic(folder / "task.jsonl", rows);
  return load_sft((folder / "task.jsonl").string(), config, model);
}

TEST_CASE("of a conversation every assistant turn is learnt up to its stop token") {
  const auto source = load(
      R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},)"
      R"( {"role": "user", "content": "r"}, {"role": "assistant", "content": "bc"}]})");
  const SftSequence& sequence = source.sequences.at(0);
  CHECK(test::text_of(sequence.ids) == "<user>q|\n<assistant>a|\n<user>r|\n<assistant>bc|\n");
  CHECK(test::learnt(sequence.ids, sequence.mask) == "a|bc|");
}

TEST_CASE("of prompt and completion only the completion is learnt, worked examples are not") {
  RowConfig config;
  config.examples = {{"user", "1"}, {"assistant", "one"}};
  const auto source = load(
      "{\"prompt\": \"2\", \"completion\": \"two\"}\n{\"question\": \"3\", \"answer\": "
      "\"three\"}\n",
      config);
  CHECK(test::text_of(source.sequences[0].ids) ==
        "<user>1|\n<assistant>one|\n<user>2|\n<assistant>two|\n");
  CHECK(test::learnt(source.sequences[0].ids, source.sequences[0].mask) == "two|");
  CHECK(test::learnt(source.sequences[1].ids, source.sequences[1].mask) == "three|");
}

TEST_CASE("raw text: prompt ids as they are sampled from, then the completion and a stop token") {
  const auto source =
      load("{\"prompt\": \"1,2\", \"answer\": \"3\"}", {}, test::fake_text_model(false));
  CHECK(source.sequences[0].ids ==
        std::vector<TokenId>{test::kBegin, '1', ',', '2', '3', test::kStop});
  CHECK(test::learnt(source.sequences[0].ids, source.sequences[0].mask) == "3|");
}

TEST_CASE("TRL's completion as messages is read") {
  const auto source = load(R"({"prompt": [{"role": "user", "content": "q"}],)"
                           R"( "completion": [{"role": "assistant", "content": "a"}]})");
  CHECK(test::learnt(source.sequences[0].ids, source.sequences[0].mask) == "a|");
}

TEST_CASE("a template that changes earlier turns is refused") {
  TextModel model = test::fake_text_model();
  model.render = [](const std::vector<Message>& messages, bool) {
    return "turns " + std::to_string(messages.size()) + "|";
  };
  CHECK_THROWS_AS(load(R"({"prompt": "q", "answer": "a"})", {}, model), UserError);
}

TEST_CASE("too long, empty and unlearnable rows are dropped with a count") {
  RowConfig config;
  config.max_tokens = 6;
  const auto source =
      load("{\"prompt\": \"1\", \"answer\": \"2\"}\n{\"prompt\": \"1\", \"answer\": \"23456\"}\n",
           config,
           test::fake_text_model(false));
  CHECK(source.report.num_kept == 1);
  CHECK(source.report.num_overlong == 1);
  config.overlong = Overlong::kRight;
  const auto cut =
      load("{\"prompt\": \"1\", \"answer\": \"23456\"}\n", config, test::fake_text_model(false));
  CHECK(cut.sequences[0].ids.size() == 6);
  CHECK_THROWS_AS(load(R"({"messages": [{"role": "user", "content": "q"}]})"), UserError);
  CHECK_THROWS_AS(load(R"({"prompt": "q"})"), UserError);
}

}  // namespace
}  // namespace tandem::data
