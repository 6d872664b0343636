// Every file that the user gives can be wrong: one line with file and remedy, status 2 (or 3 for
// the machine), nothing written.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "base/atomic_file.h"
#include "support/commands_here.h"
#include "support/workplace.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

using test::recipe_text;
using test::run_program;
using test::Workplace;
using test::write;

void check_refused(const std::string& arguments, const std::string& named, int status = 2) {
  CAPTURE(arguments);
  const auto result = test::run_here(arguments);
  CAPTURE(result.err);
  CHECK(result.status == status);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(result.err.find(named) != std::string::npos);
}

TEST_CASE("the workplace of these cases is right: its recipe runs") {
  const Workplace place;
  const auto result = run_program("train " + place.at("r.yaml"));
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(fs::exists(place.folder / "runs/r/metrics.jsonl"));
}

TEST_CASE("a wrong recipe is refused before anything is written") {
  const Workplace place;
  check_refused("train " + place.at("missing.yaml"), "missing.yaml");
  check_refused("train " + place.at("model"), "model");
  for (const std::string text : {"", "{", "seed: [1\n", "a: b: c\n", "\x01\x02\xff"}) {
    write(place.folder / "x.yaml", text);
    check_refused("train " + place.at("x.yaml"), "x.yaml");
  }
  write(place.folder / "x.yaml", recipe_text(place.folder.path()) + "treiner: {steps: 2}\n");
  check_refused("train " + place.at("x.yaml"), "x.yaml:7: ");
  check_refused("train " + place.at("r.yaml") + " trainer.stepz=3", "trainer.stepz");
  check_refused("train " + place.at("r.yaml") + " trainer.steps=many", "trainer.steps");
  CHECK_FALSE(fs::exists(place.folder / "runs"));
}

TEST_CASE("wrong data is refused with file and line") {
  const Workplace place;
  const std::string train = "train " + place.at("r.yaml");
  fs::remove(place.folder / "data.jsonl");
  check_refused(train, "data.jsonl");
  for (const std::string text :
       {"", "{\"prompt\": \"1\"}\n{\"prompt\": ", "nonsense\n", "[1]\n", "{\"other\": 1}\n"}) {
    write(place.folder / "data.jsonl", text);
    check_refused(train, "data.jsonl");
  }
  write(place.folder / "data.jsonl", "{\"prompt\": \"1+1\", \"answer\": \"2\"}\n");
  check_refused(train, "data.jsonl: 1 rows are left after filtering, one step takes 2");
  CHECK_FALSE(fs::exists(place.folder / "runs"));
}

TEST_CASE("a wrong model or tokenizer is refused by name") {
  const Workplace place;
  const std::string train = "train " + place.at("r.yaml");
  for (const std::string name : {"model/config.json", "model/tokenizer.json"}) {
    for (const std::string text : {"", "{", "nonsense", "[]", "{}"}) {
      const Workplace other;
      write(other.folder / name, text);
      check_refused("train " + other.at("r.yaml"), name);
    }
  }
  fs::remove(place.folder / "model/config.json");
  check_refused(train, "config.json");
  check_refused("generate --model " + place.at("nothing") + " --prompt 1", "nothing");
  write(place.folder / "x.gguf", "GGUF");
  check_refused("inspect " + place.at("x.gguf"), "x.gguf");
  check_refused("inspect tests/golden/models/phi3", "phi3");
  check_refused("inspect tests/golden/models/gemma3", "gemma3");
  check_refused("inspect tests/golden/models/qwen3-moe", "qwen3_moe");
}

TEST_CASE("generation_config.json may be missing, but it may not be wrong") {
  const test::TemporaryFolder folder;
  const fs::path model = folder / "model";
  fs::copy("tests/golden/models/llama-tied", model);
  for (const std::string text : {"", "{", "nonsense", "[]"}) {
    write(model / "generation_config.json", text);
    check_refused("inspect " + model.string(), "model/generation_config.json: ");
  }
  fs::remove(model / "generation_config.json");
  const auto result = test::run_here("inspect " + model.string());
  CHECK_MESSAGE(result.status == 0, result.err);
}

TEST_CASE("wrong rewards are refused before anything starts") {
  const Workplace place;
  write(place.folder / "empty.so", "");
  write(place.folder / "text.so", "not a shared object");
  for (const std::string name : {"no.so", "empty.so", "text.so"}) {
    auto text = recipe_text(place.folder.path());
    text.replace(text.find("kind: exact_match"), 17, "library: " + place.at(name));
    write(place.folder / "x.yaml", text);
    check_refused("train " + place.at("x.yaml"), name);
  }
  check_refused("train " + place.at("r.yaml") + " rewards.0.kind=exactmatch", "exact_match");
  CHECK_FALSE(fs::exists(place.folder / "runs"));
}

TEST_CASE("wrong ids and options are refused with their place") {
  const Workplace place;
  const std::string model = "tests/golden/models/llama-tied";
  for (const std::string text : {"{\"ids\": [1, 999999]}\n",
                                 "{\"ids\": [-1]}\n",
                                 "{\"id\": 1}\n",
                                 "{\"ids\": [1.5]}\n",
                                 "x\n",
                                 "{\"ids\": []}\n"}) {
    write(place.folder / "ids.jsonl", text);
    check_refused("score --model " + model + " --ids " + place.at("ids.jsonl"), "ids.jsonl:1");
  }
  check_refused("generate --model " + model + " --prompt hello", "tokenizer");
  check_refused("score --model " + model + " --ids " + place.at("none"), "none");
  check_refused("generate --model " + model + " --ids x --prompt y", "--prompt");
  check_refused("trian x.yaml", "train");
}

// A command with one file of the user's, and what names the place and the remedy in its message
// for a file of each kind; "" where that kind is right.
struct FileCase {
  std::string command;  // ends with the option that wants the file
  std::string file;     // its name
  std::string empty, truncated, nonsense, wrong_type, oversized;
  std::string wrong_type_text = "{\"other\": 1}\n";
  std::uintmax_t oversized_bytes = std::uintmax_t{300} << 20;
};

// A refusal that names the file and says what to do, and leaves no results.
void check_file_refused(const Workplace& place, const FileCase& c, const std::string& named) {
  const std::string out = place.at("out.jsonl");
  check_refused(c.command + " " + place.at(c.file) + " --json " + out, c.file + named);
  CHECK_FALSE(fs::exists(out));
}

void check_each_wrong_file(const Workplace& place, const FileCase& c, const std::string& whole) {
  CAPTURE(c.command);
  const fs::path file = place.folder / c.file;
  fs::remove(file);
  check_file_refused(place, c, "");
  write(file, "");
  check_file_refused(place, c, c.empty);
  write(file, whole.substr(0, whole.size() / 2));
  check_file_refused(place, c, c.truncated);
  write(file, "nonsense");
  check_file_refused(place, c, c.nonsense);
  write(file, c.wrong_type_text);
  check_file_refused(place, c, c.wrong_type);
  write(file, "");
  fs::resize_file(file, c.oversized_bytes);  // grown by holes: they take no disk
  check_file_refused(place, c, c.oversized);
  write(file, whole);
  const auto right = test::run_here(c.command + " " + file.string());
  CHECK_MESSAGE(right.status == 0, right.err);
}

// A model folder with weights, a tokenizer and a chat template.
void train_model(const Workplace& place) {
  const auto trained = run_program("train " + place.at("r.yaml") + " trainer.checkpoint.every=1");
  REQUIRE_MESSAGE(trained.status == 0, trained.err);
  fs::rename(place.folder / "runs/r/checkpoints/step-000001/model", place.folder / "whole");
  write(place.folder / "whole/chat_template.jinja", "{{ messages[0]['content'] }}");
}

TEST_CASE("files of rows: missing, empty, cut short, nonsense, of the wrong type, oversized") {
  const Workplace place;
  train_model(place);
  const std::string model = " --model " + place.at("whole");
  const std::string no_rows = ": has no rows; write";
  const std::string broken = ":1: is not valid JSON: ";
  const std::string long_line = ":1: is longer than 268435456 bytes; leave";
  check_each_wrong_file(place,
                        {"generate" + model + " --max-new-tokens 1 --prompts",
                         "prompts.jsonl",
                         no_rows,
                         broken,
                         broken,
                         ":1: has no \"prompt\"",
                         long_line},
                        "{\"prompt\": \"1+1\"}\n");
  for (const std::string& command : {"generate" + model + " --max-new-tokens 1", "score" + model}) {
    check_each_wrong_file(place,
                          {command + " --ids",
                           "ids.jsonl",
                           no_rows,
                           broken,
                           broken,
                           ":1: has no list \"ids\"",
                           long_line},
                          "{\"ids\": [1, 2]}\n");
  }
  const std::string messages = "{\"messages\": [{\"role\": \"user\", \"content\": \"1\"}]}\n";
  check_each_wrong_file(place,
                        {"render" + model + " --messages",
                         "messages.jsonl",
                         no_rows,
                         broken,
                         broken,
                         ":1: wants {\"messages\": ",
                         long_line},
                        messages);
  check_each_wrong_file(place,
                        {"reward --reward exact_match --data",
                         "scored.jsonl",
                         no_rows,
                         broken,
                         broken,
                         ":1: has no completion ",
                         long_line},
                        "{\"prompt\": \"1\", \"completion\": \"1\", \"answer\": \"1\"}\n");
}

TEST_CASE("files that are one whole: tools and rewards") {
  const Workplace place;
  train_model(place);
  write(place.folder / "messages.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"1\"}]}\n");
  const std::string no_list = ": is no JSON list of tools; write ";
  check_each_wrong_file(place,
                        {"render --model " + place.at("whole") + " --messages " +
                             place.at("messages.jsonl") + " --tools",
                         "tools.json",
                         no_list,
                         no_list,
                         no_list,
                         no_list,
                         ": ",
                         "{\"type\": \"function\"}",
                         std::uintmax_t{3} << 30},
                        "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]");
  write(place.folder / "scored.jsonl", "{\"completion\": \"1\", \"answer\": \"1\"}\n");
  check_each_wrong_file(
      place,
      {"reward --data " + place.at("scored.jsonl") + " --reward",
       "rewards.yaml",
       ":1: is empty; ",
       ":",
       ":",
       ":1: unknown key ",
       ": ",
       "other: 1\n",
       std::uintmax_t{2} << 20},
      "rewards: [{kind: exact_match, name: accuracy, weight: 1, options: {last_line: true}}]\n");
}

TEST_CASE("files larger than any of their kind are refused before they fill the memory") {
  // Grown by holes: they take no disk.
  const auto grow = [](const Workplace& place, const std::string& name, std::uintmax_t bytes) {
    fs::resize_file(place.folder / name, bytes);
  };
  const Workplace recipe;
  grow(recipe, "r.yaml", std::uintmax_t{2} << 20);
  check_refused("train " + recipe.at("r.yaml"), "r.yaml");
  const Workplace data;
  grow(data, "data.jsonl", std::uintmax_t{300} << 20);
  check_refused("train " + data.at("r.yaml"), "data.jsonl:3: ");
  for (const std::string name : {"model/config.json", "model/tokenizer.json"}) {
    const Workplace model;
    grow(model, name, std::uintmax_t{3} << 30);
    check_refused("train " + model.at("r.yaml"), name);
  }
  write(data.folder / "ids.jsonl", "{\"ids\": [1]}\n");
  grow(data, "ids.jsonl", std::uintmax_t{300} << 20);
  check_refused("score --model tests/golden/models/llama-tied --ids " + data.at("ids.jsonl"),
                "ids.jsonl:2: ");
}

TEST_CASE("a GGUF file that is missing, empty, cut short, grown or nonsense is refused by name") {
  const Workplace place;
  const fs::path file = place.folder / "model.gguf";
  const std::string inspect = "inspect " + file.string();
  check_refused(inspect, "model.gguf");
  const std::string whole = read_file("tests/golden/gguf/llama-tied-q8_0.gguf");
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), whole.substr(0, 100), "GGUF" + whole}) {
    write(file, text);
    check_refused(inspect, "model.gguf");
  }
  write(file, whole);
  const auto result = test::run_here(inspect);
  CHECK_MESSAGE(result.status == 0, result.err);
}

TEST_CASE("a cache that a sample can never fit in is refused before anything is written") {
  const Workplace place;
  check_refused("train " + place.at("r.yaml") + " rollout.kv_bytes=100", "kv_bytes");
  check_refused("train " + place.at("r.yaml") + " rollout.kv_bytes=4100 rollout.max_new_tokens=40",
                "blocks");
  CHECK_FALSE(fs::exists(place.folder / "runs"));
}

TEST_CASE("an unwritable run folder is the machine's fault") {
  const Workplace place;
  write(place.folder / "file", "");
  check_refused("train " + place.at("r.yaml") + " run.dir=" + place.at("file"), "file", 3);
}

TEST_CASE("a full disk ends the run with one line, status 3") {
  const Workplace place;
  // A limit on the size of files stands for the full disk: no file grows beyond 4 KB.
  const test::TemporaryFolder runs;
  const auto limit = [] {
    ::signal(SIGXFSZ, SIG_IGN);  // a write then fails as it does on a full disk
    const rlimit four_kilobytes = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &four_kilobytes);
  };
  const auto result = run_program(
      "train " + place.at("r.yaml") +
          " trainer.checkpoint.every=1 log.tensorboard=false run.dir=" + runs.path().string(),
      limit);
  CAPTURE(result.err);
  CHECK(result.status == 3);
  // No half-written checkpoint is left, and none is named.
  const fs::path checkpoints = runs / "r/checkpoints";
  CHECK_FALSE(fs::exists(checkpoints / "latest"));
  CHECK_FALSE(fs::exists(checkpoints / "step-000001"));
}

}  // namespace
}  // namespace tandem
