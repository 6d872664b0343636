// `score` and `generate` as users run them: their numbers against a reference implementation's, and
// what each option of sampling does.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>

#include "support/json_rows.h"
#include "support/temporary_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using test::Ids;
using test::rows_of;
using test::Words;

constexpr double kTolerance = 2e-5;  // float32 against the reference in float64
const char* const kModels[] = {"llama-tied", "mistral"};

// A golden model, its reference numbers, and files of ids made of them.
struct Golden {
  explicit Golden(const std::string& name)
      : model("tests/golden/models/" + name), forward(read_forward()) {
    std::vector<Ids> cases;
    for (const auto& one : forward["cases"]) {
      cases.push_back(one["input_ids"]);
    }
    ids = test::write_ids(folder / "ids.jsonl", cases);
    prompt = test::write_ids(folder / "prompt.jsonl", {forward["greedy"]["prompt"]});
  }

  [[nodiscard]] Words score(const Words& more = {}) const {
    return with(more, {"score", "--model", model, "--ids", ids});
  }
  // From the golden greedy prompt, 16 tokens, whatever ends them.
  [[nodiscard]] Words generate(const Words& more = {}) const {
    return with(
        more,
        {"generate", "--model", model, "--ids", prompt, "--ignore-eos", "--max-new-tokens", "16"});
  }
  [[nodiscard]] Words greedy(const Words& more = {}) const {
    return with(more, generate({"--temperature", "0"}));
  }
  [[nodiscard]] Ids greedy_ids() const {
    const Ids all = forward["greedy"]["tokens"];
    return {all.begin(), all.begin() + 16};
  }

  std::string model;
  json forward;
  test::TemporaryFolder folder;
  std::string ids, prompt;

 private:
  [[nodiscard]] json read_forward() const {
    return json::parse(read_file(fs::path(model) / "forward.json"));
  }
  static Words with(const Words& more, Words words) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

Ids ids_of(const json& row) {
  return row.at("ids").get<Ids>();
}

void check_near(const json& got, const json& want, std::size_t count) {
  REQUIRE(got.size() == count);
  REQUIRE(want.size() >= count);
  for (std::size_t i = 0; i < count; ++i) {
    CAPTURE(i);
    CHECK(std::abs(got[i].get<double>() - want[i].get<double>()) < kTolerance);
  }
}

TEST_CASE("score gives the reference's log-probabilities and entropies") {
  for (const char* name : kModels) {
    CAPTURE(name);
    const Golden golden(name);
    const auto rows = rows_of(golden.score({"--top", "1"}));
    const auto& cases = golden.forward["cases"];
    REQUIRE(rows.size() == cases.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t count = cases[i]["input_ids"].size() - 1;
      CHECK(rows[i]["id"] == std::to_string(i));
      check_near(rows[i]["logprobs"], cases[i]["next_logprobs_f64"], count);
      check_near(rows[i]["entropies"], cases[i]["entropy_f64"], count);
      for (std::size_t t = 0; t < count; ++t) {
        CHECK(rows[i]["top"][t][0][0] == cases[i]["argmax"][t]);
      }
    }
  }
}

TEST_CASE("generate at temperature 0 gives the reference's greedy ids and log-probabilities") {
  for (const char* name : kModels) {
    CAPTURE(name);
    const Golden golden(name);
    const auto rows = rows_of(golden.greedy());
    REQUIRE(rows.size() == 1);
    CHECK(ids_of(rows[0]) == golden.greedy_ids());
    check_near(rows[0]["logprobs"], golden.forward["greedy"]["logprobs"], 16);
    CHECK(rows[0]["prompt_ids"] == golden.forward["greedy"]["prompt"]);
    CHECK(rows[0]["finish_reason"] == "length");
  }
}

TEST_CASE("samples of a prompt differ, each with its index; a seed gives them again") {
  const Golden golden("llama-tied");
  const auto rows = rows_of(golden.generate({"--n", "2", "--seed", "7"}));
  REQUIRE(rows.size() == 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(rows[i]["id"] == "0");
    CHECK(rows[i]["index"] == i);
    CHECK(ids_of(rows[i]).size() == 16);
    CHECK(rows[i]["logprobs"].size() == 16);
  }
  CHECK(ids_of(rows[0]) != ids_of(rows[1]));
  CHECK(rows_of(golden.generate({"--n", "2", "--seed", "7"})) == rows);
  CHECK(rows_of(golden.generate({"--n", "2", "--seed", "8"})) != rows);
}

TEST_CASE("a bias forces an id; an end id ends the sample and is named") {
  const Golden golden("llama-tied");
  const auto forced = rows_of(golden.generate({"--logit-bias", "7:1000"}));
  CHECK(ids_of(forced[0]) == Ids(16, 7));
  const auto ended = rows_of({"generate",
                              "--model",
                              golden.model,
                              "--ids",
                              golden.prompt,
                              "--max-new-tokens",
                              "16",
                              "--logit-bias",
                              "2:1000"});  // 2 is the eos of the model's generation_config.json
  CHECK(ids_of(ended[0]) == Ids{2});
  CHECK(ended[0]["finish_reason"] == "stop");
  CHECK(ended[0]["stop"] == 2);
}

TEST_CASE("only allowed ids are drawn, and never banned ones") {
  const Golden golden("llama-tied");
  const auto allowed = rows_of(golden.generate({"--n", "4", "--allowed-token-ids", "5,8,9"}));
  std::set<std::int32_t> drawn;
  for (const auto& row : allowed) {
    for (const std::int32_t id : ids_of(row)) {
      drawn.insert(id);
    }
  }
  CHECK(drawn == std::set<std::int32_t>{5, 8, 9});
  // The greedy sample begins 241, 241: it has to go another way.
  const auto banned = ids_of(rows_of(golden.greedy({"--banned-token-ids", "241"}))[0]);
  CHECK(std::count(banned.begin(), banned.end(), 241) == 0);
}

TEST_CASE("a frequency penalty changes what is drawn; both log-probabilities are there") {
  const Golden golden("llama-tied");
  const auto row = rows_of(golden.greedy({"--frequency-penalty", "2"}))[0];
  const Ids ids = ids_of(row);
  // 241 comes twice in a row without it. Nothing was drawn before the first one.
  CHECK(ids[0] == 241);
  CHECK(ids[1] != 241);
  REQUIRE(row["sampled_logprobs"].size() == ids.size());
  CHECK(row["sampled_logprobs"][0] == row["logprobs"][0]);
  CHECK(row["sampled_logprobs"][1] > row["logprobs"][1]);  // 241 lost its share to the others
  CHECK(rows_of(golden.greedy())[0].count("sampled_logprobs") == 0);
}

TEST_CASE("log-probabilities of a prompt, of a decode and of score are the same bits") {
  for (const char* name : kModels) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      CAPTURE(name);
      CAPTURE(dtype);
      const Golden golden(name);
      const auto decoded = rows_of(golden.generate({"--dtype", dtype}))[0];
      Ids whole = golden.forward["greedy"]["prompt"];
      const std::size_t prompt_length = whole.size();
      const Ids drawn = ids_of(decoded);
      whole.insert(whole.end(), drawn.begin(), drawn.end());
      const auto file = test::write_ids(golden.folder / "whole.jsonl", {whole});
      const auto prompt = rows_of({"generate",
                                   "--model",
                                   golden.model,
                                   "--ids",
                                   file,
                                   "--max-new-tokens",
                                   "1",
                                   "--prompt-logprobs",
                                   "0",
                                   "--dtype",
                                   dtype})[0]["prompt_logprobs"];
      REQUIRE(prompt.size() == whole.size() - 1);
      const json of_drawn(std::vector<json>(
          prompt.begin() + static_cast<std::ptrdiff_t>(prompt_length) - 1, prompt.end()));
      CHECK(of_drawn == decoded["logprobs"]);
      CHECK(
          rows_of(
              {"score", "--model", golden.model, "--ids", file, "--dtype", dtype})[0]["logprobs"] ==
          prompt);
    }
  }
}

// What score and generate print with these options, or nothing where the machine lacks the isa.
std::string printed(const Golden& golden, const Words& options) {
  std::string text;
  for (auto words : {golden.score({"--top", "3"}), golden.generate({"--n", "3"})}) {
    words.insert(words.end(), options.begin(), options.end());
    const auto result = test::run_program(words);
    if (result.status == 3) {
      MESSAGE("skipped: " << result.err);
      return "";
    }
    REQUIRE_MESSAGE(result.status == 0, result.err);
    text += result.out;
  }
  return text;
}

TEST_CASE("every instruction set prints the same bytes, in float32 and in widened bfloat16") {
  for (const char* name : kModels) {
    const Golden golden(name);
    for (const Words& precision :
         {Words{"--dtype", "float32"}, Words{"--dtype", "bfloat16", "--arithmetic", "widened"}}) {
      Words portable = precision;
      portable.insert(portable.end(), {"--isa", "portable"});
      const std::string want = printed(golden, portable);
      REQUIRE_FALSE(want.empty());
      for (const char* isa : {"avx512", "avx2"}) {
        CAPTURE(name);
        CAPTURE(isa);
        Words words = precision;
        words.insert(words.end(), {"--isa", isa});
        const std::string got = printed(golden, words);
        CHECK((got.empty() || got == want));
      }
    }
  }
}

TEST_CASE("guessed tokens change nothing that generate prints") {
  const Golden golden("llama-tied");
  // A prompt that repeats itself, so that there is something to guess from.
  const auto file = test::write_ids(golden.folder / "again.jsonl", {Ids(24, 241), Ids(24, 93)});
  for (const char* temperature : {"0", "0.5", "1"}) {
    const Words words = {"generate",
                         "--model",
                         golden.model,
                         "--ids",
                         file,
                         "--ignore-eos",
                         "--max-new-tokens",
                         "40",
                         "--n",
                         "3",
                         "--logprobs",
                         "2",
                         "--temperature",
                         temperature};
    Words guessing = words;
    guessing.insert(guessing.end(), {"--speculation", "ngram", "--prompt-lookup-min", "1"});
    CHECK(test::run_program(guessing).out == test::run_program(words).out);
    CHECK(rows_of(guessing).size() == 6);
  }
}

// The golden model with a tokenizer in which id 93 reads "<93>".
std::string with_tokenizer(const Golden& golden) {
  const fs::path folder = golden.folder / "model";
  fs::copy(golden.model, folder);
  json vocabulary = json::object();
  for (int id = 0; id < 257; ++id) {
    vocabulary["<" + std::to_string(id) + ">"] = id;
  }
  const json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", json::array()},
      {"decoder", {{"type", "Fuse"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
  write_file_atomic(folder / "tokenizer.json", tokenizer.dump());
  return folder.string();
}

TEST_CASE("a stop string over the border of tokens ends the text before it, or with it") {
  const Golden golden("llama-tied");
  // The greedy sample begins 241 241 93 118.
  const Words words = {"generate",
                       "--model",
                       with_tokenizer(golden),
                       "--ids",
                       golden.prompt,
                       "--temperature",
                       "0",
                       "--max-new-tokens",
                       "16",
                       "--stop",
                       "3><1"};
  const auto row = rows_of(words)[0];
  CHECK(ids_of(row) == Ids{241, 241, 93, 118});
  CHECK(row["text"] == "<241><241><9");
  CHECK(row["finish_reason"] == "stop_string");
  CHECK(row["stop"] == "3><1");
  Words included = words;
  included.emplace_back("--include-stop");
  CHECK(rows_of(included)[0]["text"] == "<241><241><93><1");
}

}  // namespace
}  // namespace tandem
