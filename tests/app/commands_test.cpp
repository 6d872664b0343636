// The commands that need no LibTorch, as the program runs them.
#include "app/commands.h"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "app/prefix_check.h"
#include "app/reward_configs.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace tandem::app {
namespace {

using Json = nlohmann::json;

const Command kCommands[] = {{"tokenize", "", set_up_tokenize},
                             {"render", "", set_up_render},
                             {"report", "", set_up_report},
                             {"reward", "", set_up_reward}};

struct Result {
  int status;
  std::vector<Json> rows;  // what --json wrote
};

// Runs `words` with `input` as the file that stands for IN.
Result run(std::vector<std::string> words, const std::string& input) {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "in.jsonl", input);
  for (std::string& word : words) {
    word = word == "IN" ? (folder / "in.jsonl").string() : word;
  }
  words.insert(words.end(), {"--json", (folder / "out.jsonl").string()});
  Result result{run_command_line(kCommands, words), {}};
  std::ifstream out(folder / "out.jsonl");
  for (std::string line; std::getline(out, line);) {
    result.rows.push_back(Json::parse(line));
  }
  return result;
}

std::string smollm2() {
  return (test::shared_data() / "tokenizers/smollm2").string();
}

TEST_CASE("tokenize gives ids, and with --decode the text again") {
  TANDEM_NEEDS_SHARED("tokenizers/smollm2");
  const auto ids = run({"tokenize", "--model", smollm2(), "IN"}, "{\"text\": \"12 * 3 =\"}\n");
  REQUIRE(ids.status == 0);
  CHECK(ids.rows.at(0)["ids"] == Json({33, 34, 1672, 216, 35, 446}));
  const auto text =
      run({"tokenize", "--model", smollm2(), "--decode", "IN"}, ids.rows.at(0).dump() + "\n");
  CHECK(text.rows.at(0)["text"] == "12 * 3 =");
}

TEST_CASE("tokenize refuses rows without text, ids out of range and unknown models") {
  TANDEM_NEEDS_SHARED("stories260K/hf");
  const std::string small = (test::shared_data() / "stories260K/hf").string();
  CHECK(run({"tokenize", "--model", small, "IN"}, "{\"ids\": [1]}\n").status == 2);
  CHECK(run({"tokenize", "--model", small, "IN"}, "nonsense\n").status == 2);
  const auto decode = [&](const std::string& row) {
    return run({"tokenize", "--model", small, "--decode", "IN"}, row).status;
  };
  CHECK(decode("{\"ids\": [99999999]}\n") == 2);
  CHECK(decode("{\"ids\": [-1]}\n") == 2);
  CHECK(decode("{\"ids\": [1.5]}\n") == 2);
  CHECK(decode("{\"ids\": [1], \"skip_special_tokens\": 3}\n") == 2);
  CHECK(run({"tokenize", "--model", "no/such/model/at/all", "IN"}, "").status == 2);
}

TEST_CASE("render prints the template's text or ids; a row that it refuses has an error") {
  TANDEM_NEEDS_SHARED("tokenizers/smollm2");
  const std::string row =
      "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", "
      "\"content\": \"q\"}]}\n";
  const auto text =
      run({"render", "--model", smollm2(), "--messages", "IN", "--add-generation-prompt"}, row);
  REQUIRE(text.status == 0);
  CHECK(text.rows.at(0)["text"] ==
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n");
  const auto ids = run({"render", "--model", smollm2(), "--messages", "IN", "--ids"}, row);
  CHECK(ids.rows.at(0)["ids"][0] == 1);  // <|im_start|>
  CHECK(run({"render", "--model", smollm2(), "--messages", "IN"}, "{\"text\": 1}\n").status == 2);
  const auto refused = [&](const std::string& bad) {
    return run({"render", "--model", smollm2(), "--messages", "IN", "--check"}, bad).status == 2;
  };
  CHECK(refused("{\"messages\": [3]}\n"));
  CHECK(
      refused("{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}], "
              "\"chat_template_kwargs\": \"x\"}\n"));
}

TEST_CASE("render --check finds SmolLM2's template prefix-preserving") {
  TANDEM_NEEDS_SHARED("tokenizers/smollm2");
  const auto result = run(
      {"render", "--model", smollm2(), "--messages", "IN", "--check"},
      R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},)"
      R"( {"role": "user", "content": "r"}, {"role": "assistant", "content": "b"}]})");
  CHECK(result.status == 0);
  CHECK(result.rows.at(0)["prefix_preserving"] == true);
}

TEST_CASE("a template that drops earlier thoughts breaks the rule at that turn") {
  // As Qwen3's does: what stands before the last question loses its <think> part.
  const auto messages = nlohmann::ordered_json::parse(
      R"([{"role": "user"}, {"role": "assistant"}, {"role": "user"}, {"role": "assistant"}])");
  const auto render = [](std::size_t num_messages, bool prompt) {
    std::string text;
    for (std::size_t i = 0; i < num_messages; ++i) {
      text += i % 2 == 0 ? "U" : i + 1 == num_messages ? "A<think>x</think>a" : "Aa";
    }
    return text + (prompt ? "A" : "");
  };
  const auto broken = find_prefix_break(messages, render);
  REQUIRE(broken);
  CHECK(broken->turn == 3);
  CHECK(broken->byte == 2);
  CHECK(broken->before == "<think>x</think>a");
  const auto plain = [](std::size_t num_messages, bool prompt) {
    return std::string(num_messages, 'm') + (prompt ? "m" : "");
  };
  CHECK_FALSE(find_prefix_break(messages, plain));
}

TEST_CASE("reward scores completions offline, several of one prompt by index") {
  const auto result =
      run({"reward", "--reward", "exact_match", "--data", "IN"},
          "{\"prompt\": \"1+1\", \"completion\": \"2\", \"ground_truth\": \"2\"}\n"
          "{\"question\": \"1+1\", \"completions\": [\"3\", \"2\"], \"answer\": 2}\n");
  REQUIRE(result.status == 0);
  REQUIRE(result.rows.size() == 3);
  CHECK(result.rows[0]["rewards"]["exact_match"] == 1.0);
  CHECK(result.rows[0]["failures"].empty());
  CHECK(result.rows[1]["rewards"]["exact_match"] == 0.0);
  CHECK(result.rows[1]["index"] == 0);
  CHECK(result.rows[2]["rewards"]["exact_match"] == 1.0);
}

TEST_CASE("reward refuses bad rows, unknown rewards and none at all") {
  const std::string row = "{\"completion\": \"2\", \"answer\": \"2\"}\n";
  CHECK(run({"reward", "--data", "IN"}, row).status == 2);
  CHECK(run({"reward", "--reward", "exact_mach", "--data", "IN"}, row).status == 2);
  CHECK(run({"reward", "--reward", "no.so", "--data", "IN"}, row).status == 2);
  CHECK(run({"reward", "--reward", "exact_match", "--data", "IN"}, "{\"prompt\": 1}\n").status ==
        2);
  CHECK(run({"reward", "--reward", "exact_match", "--reward", "exact_match", "--data", "IN"}, row)
            .status == 2);
}

TEST_CASE("rewards may stand in a YAML file") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "r.yaml",
                    "rewards:\n  - {name: a, kind: exact_match, weight: 2}\n  - {kind: length, "
                    "options: {max: 10, buffer: 5}}\n");
  const std::vector<std::string> specs = {(folder / "r.yaml").string()};
  const auto configs = reward_configs_of_specs(specs);
  REQUIRE(configs.size() == 2);
  CHECK(configs[0].name == "a");
  CHECK(configs[0].weight == 2.0);
  CHECK(Json::parse(configs[1].options)["max"] == 10);
}

TEST_CASE("report names a folder that is no run") {
  CHECK(run_command_line(kCommands, {"report", "no/such/run"}) == 2);
}

}  // namespace
}  // namespace tandem::app
