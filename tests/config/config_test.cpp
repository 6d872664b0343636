#include "config/config.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem::config {
namespace {

struct Source {
  std::string path;
  double weight = 1.0;

  template <class V>
  void visit(V& v) {
    v("path", path, doc("The file."), required());
    v("weight", weight, doc("Its share."), above(0));
  }
};

struct Clip {
  double low = 0.2;
  std::optional<double> high;

  template <class V>
  void visit(V& v) {
    v("low", low, doc("Lower bound."), in(0, 1));
    v("high", high, doc("Upper bound."), at_least(0), unset_means("as low"));
  }
};

struct Settings {
  std::int64_t steps = 10;
  bool shuffle = true;
  std::string name = "grpo";
  int turns = 1;
  std::array<double, 2> betas = {0.9, 0.999};
  std::vector<std::string> stop;
  std::vector<Source> sources;
  Clip clip;
  std::optional<Clip> other;
  std::map<std::string, std::string> columns;
  JsonText options;
  NotYet speculation;

  template <class V>
  void visit(V& v) {
    v("steps", steps, doc("How many."), at_least(1));
    v("shuffle", shuffle, doc("Mix | match."));
    v("name", name, doc("Which."), one_of({"grpo", "rloo"}), later({"ppo"}));
    v("turns", turns, doc("Turns."), only(1));
    v("betas", betas, doc("Two."), in(0, 1));
    v("stop", stop, doc("Ends."));
    v("sources", sources, doc("Files."));
    v("clip", clip, doc("Clipping."));
    v("other", other, doc("More clipping."));
    v("columns", columns, doc("Names."));
    v("options", options, doc("Free."));
    v("speculation", speculation, doc("Draft tokens."));
  }
};

Settings read_text(const std::string& text) {
  return read<Settings>(Document::parse(text, "r.yaml"));
}

std::string error_of(const std::string& text) {
  try {
    read_text(text);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST_CASE("what the file gives is set, the rest keeps its default") {
  const Settings s = read_text(
      "steps: 1e3\nshuffle: false\nname: rloo\nbetas: [0.8, 0.9]\nstop: [a, 5]\n"
      "sources:\n  - {path: x.jsonl}\n  - {path: y.jsonl, weight: 2}\n"
      "clip: {high: 3e-1}\nother: {low: 0}\ncolumns: {prompt: q}\noptions: {max: 3, deep: [1]}\n"
      "speculation: null\n");
  CHECK(s.steps == 1000);
  CHECK_FALSE(s.shuffle);
  CHECK(s.betas[0] == 0.8);
  CHECK(s.stop == std::vector<std::string>{"a", "5"});
  CHECK(s.sources.size() == 2);
  CHECK(s.sources[1].weight == 2.0);
  CHECK(s.clip.low == 0.2);
  CHECK(s.clip.high == 0.3);
  CHECK(s.other->low == 0.0);
  CHECK(s.columns.at("prompt") == "q");
  CHECK(s.options.text == R"({"max": 3, "deep": [1]})");
}

TEST_CASE("errors say place, key, what was expected and what stands there") {
  CHECK(error_of("clip:\n  hihg: 1\n") ==
        "r.yaml:2: unknown key clip.hihg; did you mean clip.high?");
  CHECK(error_of("weight: 1\n") == "r.yaml:1: unknown key weight; did you mean sources.*.weight?");
  CHECK(error_of("zzzzzz: 1\n") == "r.yaml:1: unknown key zzzzzz");
  CHECK(error_of("steps: many\n") == "r.yaml:1: steps wants a whole number, not 'many'");
  CHECK(error_of("steps: \"5\"\n") == "r.yaml:1: steps wants a whole number, not the text \"5\"");
  CHECK(error_of("steps: 1.5\n") == "r.yaml:1: steps wants a whole number, not '1.5'");
  CHECK(error_of("steps: 99999999999999999999\n").find("wants a whole number") !=
        std::string::npos);
  CHECK(error_of("steps: 0\n") == "r.yaml:1: steps is 0; it must be at least 1");
  CHECK(error_of("steps: [1]\n") == "r.yaml:1: steps wants a whole number, not a list");
  CHECK(error_of("steps:\n") == "r.yaml:1: steps wants a whole number, not nothing");
  CHECK(error_of("shuffle: yes\n") == "r.yaml:1: shuffle wants true or false, not 'yes'");
  CHECK(error_of("clip: {low: 1.5}\n") == "r.yaml:1: clip.low is 1.5; it must be in [0, 1]");
  CHECK(error_of("clip: {low: .nan}\n") == "r.yaml:1: clip.low is .nan; a finite number is needed");
  CHECK(error_of("clip: {high: inf}\n") == "r.yaml:1: clip.high is inf; a finite number is needed");
  CHECK(error_of("clip: {high: 1e999}\n").find("a finite number is needed") != std::string::npos);
  CHECK(error_of("clip: 3\n") == "r.yaml:1: clip wants a table, not '3'");
  CHECK(error_of("sources: {path: x}\n") ==
        "r.yaml:1: sources wants a list of tables, not a table");
  CHECK(error_of("sources:\n- path: x\n- weight: 1\n") == "r.yaml:3: sources.1.path is missing");
  CHECK(error_of("sources: [{path: x, weight: 0}]\n") ==
        "r.yaml:1: sources.0.weight is 0; it must be above 0");
  CHECK(error_of("betas: [1]\n") == "r.yaml:1: betas wants 2 values, not 1");
  CHECK(error_of("stop: a\n") == "r.yaml:1: stop wants a list, not 'a'");
  CHECK(error_of("columns: [a]\n") == "r.yaml:1: columns wants a table, not a list");
  CHECK(error_of("options: 3\n") == "r.yaml:1: options wants a table, not '3'");
  CHECK(error_of("name: gpro\n") ==
        "r.yaml:1: name is \"gpro\"; it must be one of grpo, rloo; did you mean grpo?");
}

TEST_CASE("what comes in a later version is refused as such, its off values are not") {
  CHECK(error_of("speculation: {k: 2}\n") == "r.yaml:1: speculation: not in this version");
  CHECK(error_of("turns: 2\n") == "r.yaml:1: turns: 2 is not in this version, only 1 is");
  CHECK(error_of("name: ppo\n") ==
        "r.yaml:1: name: ppo is not in this version, which has grpo, rloo");
  CHECK(error_of("speculation: false\nturns: 1\n") == "no error");
}

TEST_CASE("an override is read like the file, and named in errors") {
  auto document = Document::parse("steps: 5\n", "r.yaml");
  document.apply_override("clip.low=2");
  try {
    read<Settings>(document);
    FAIL("no error");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()) == "command line, clip.low=2: clip.low is 2; it must be in [0, 1]");
  }
  auto typo = Document::parse("steps: 5\n", "r.yaml");
  typo.apply_override("clipp.low=2");
  try {
    read<Settings>(typo);
    FAIL("no error");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()) ==
          "command line, clipp.low=2: unknown key clipp; did you mean clip?");
  }
}

TEST_CASE("printed settings read back as the same settings") {
  Settings s = read_text(
      "stop: ['true', '1e3', \"a\\nb: c\", '', '- x', '#', 'null']\nclip: {low: 0.1, high: 1e-7}\n"
      "sources: [{path: 'a b'}, {path: c, weight: 0.3333333333333333}]\n"
      "columns: {'a b': '1', c: d}\noptions: {p: '\\d+', n: [1, {m: null}]}\n");
  const std::string yaml = to_yaml(s);
  Settings again = read_text(yaml);
  CHECK(to_yaml(again) == yaml);
  CHECK(again.stop == s.stop);
  CHECK(again.clip.high == s.clip.high);
  CHECK(again.sources[0].path == "a b");
  CHECK(again.sources[1].weight == s.sources[1].weight);
  CHECK(again.columns == s.columns);
  CHECK(again.options == s.options);
  CHECK_FALSE(again.other);
}

TEST_CASE("the paths that differ from the defaults are listed") {
  Settings s = read_text(
      "steps: 10\nclip: {low: 0.3}\nsources: [{path: x}, {path: y, weight: 2}]\nother: {}\n");
  CHECK(
      changed_paths(s) ==
      std::vector<std::string>{
          "clip.low", "other", "sources", "sources.0.path", "sources.1.path", "sources.1.weight"});
}

TEST_CASE("the reference names each key with value, default and meaning") {
  Settings s;
  const std::string text = describe_fields(fields_of(s));
  const auto has = [&](const std::string& line) { return text.find(line) != std::string::npos; };
  CHECK(has("## Top of the file"));
  CHECK(has("| `steps` | whole number at least 1 | `10` | How many. |"));
  CHECK(has("| `shuffle` | true or false | `true` | Mix \\| match. |"));
  CHECK(has("| `name` | `grpo`, `rloo` | `grpo` | Which. Not in this version: `ppo`. |"));
  CHECK(has("| `high` | number at least 0 | as low | Upper bound. |"));
  CHECK(has("## `sources[]`"));
  CHECK(has("| `path` | text | must be given | The file. |"));
  CHECK(has("| `speculation` | | | Draft tokens. Not in this version. |"));
}

}  // namespace
}  // namespace tandem::config
