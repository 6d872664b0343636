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
  check_refused(train, "1");  // fewer prompts than one step: an error with the numbers
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
    check_refused("generate --model " + model + " --ids " + place.at("ids.jsonl"), "ids.jsonl:1");
  }
  check_refused("generate --model " + model + " --prompt hello", "tokenizer");
  check_refused("score --model " + model + " --ids " + place.at("none"), "none");
  check_refused("generate --model " + model + " --ids x --prompt y", "--prompt");
  check_refused("trian x.yaml", "train");
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
