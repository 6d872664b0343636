#include "config/document.h"

#include <fstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace tandem::config {
namespace {

std::string error_of(const std::string& text) {
  try {
    Document::parse(text, "r.yaml");
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error for " + text;
}

bool contains(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("nodes know their lines") {
  const auto document = Document::parse("a: 1\nb:\n  c: [x, y]\n  d:\n    - e: 2\n", "r.yaml");
  CHECK(document.place("a") == "r.yaml:1");
  CHECK(document.place("b.c") == "r.yaml:3");
  CHECK(document.place("b.d.0.e") == "r.yaml:5");
  CHECK(document.place("b.d.0.missing") == "r.yaml:5");
  CHECK(document.place("missing") == "r.yaml");
}

TEST_CASE("comments, quotes, block texts, a BOM and carriage returns are YAML as elsewhere") {
  const auto document = Document::parse(
      "\xEF\xBB\xBF"
      "a: \"5\"  # five\r\nb: |\r\n  one\r\n  two\r\nc:\r\n",
      "r");
  CHECK(document.root().find("a")->quoted);
  CHECK(document.root().find("a")->text == "5");
  CHECK(document.root().find("b")->text == "one\ntwo\n");
  CHECK(document.root().find("c")->kind == Node::Kind::kNull);
}

TEST_CASE("bad files are one line with file, line and reason") {
  contains(error_of(""), "r.yaml:1: is empty");
  contains(error_of("# only a comment\n"), "is empty");
  contains(error_of("- a\n- b\n"), "r.yaml:1: a table of keys was expected");
  contains(error_of("just words\n"), "a table of keys was expected");
  contains(error_of("a: 1\nb: 2\na: 3\n"), "r.yaml:3: key a is given twice, first in line 1");
  contains(error_of("a:\n\tb: 1\n"), "r.yaml:2: a tab indents this line");
  contains(error_of("a: [1, 2\n"), "is not valid YAML");
  contains(error_of("a: 'open\n"), "is not valid YAML");
  contains(error_of("a: {b: 1\nc: 2\n"), "is not valid YAML");
  contains(error_of("a: {{\n"), "r.yaml:");
  contains(error_of("? [a, b]\n: 1\n"), "r.yaml:1: a key must be a word");
  contains(error_of("a: *nowhere\n"), "r.yaml:1: is not valid YAML");
  contains(error_of("a: 1\n---\nb: 2\n"), "more than one YAML document");
  contains(error_of(std::string("a: \0b\n", 6)), "is not a text file");
  CHECK(error_of("a:\n\tb: 1\n").find('\n') == std::string::npos);
}

TEST_CASE("random bytes throw UserError and nothing else") {
  std::uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      state = state * 1664525u + 1013904223u;
      text += "ab:-[]{}&*!|>'\"%#, \n\t\x80\xff\x01?"[(state >> 16) % 26];
    }
    try {
      Document::parse(text, "r.yaml");
    } catch (const UserError&) {
    }
  }
}

TEST_CASE("deep nesting and aliases that multiply are refused") {
  contains(error_of("a: " + std::string(500, '[') + std::string(500, ']')),
           "nested deeper than 32 levels");
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) {
      bomb += (i > 0 ? ", *" : "*") + before;
    }
    bomb += "]\n";
  }
  contains(error_of(bomb), "more than 100000 values");
}

TEST_CASE("an alias stands for its anchor's value, and is an error inside it") {
  const auto document = Document::parse("a: &x {b: 1}\nc: *x\n", "r.yaml");
  CHECK(document.root().find("c")->find("b")->text == "1");
  contains(error_of("a: &x [*x]\n"), "r.yaml:1:");
}

TEST_CASE("a missing file, a folder and a huge file are errors that name it") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(Document::load(folder / "missing.yaml"), UserError);
  CHECK_THROWS_AS(Document::load(folder.path()), UserError);
  std::ofstream(folder / "huge.yaml") << std::string((1 << 20) + 1, '#');
  CHECK_THROWS_AS(Document::load(folder / "huge.yaml"), UserError);
}

TEST_CASE("overrides reach tables, lists and what is not there yet") {
  auto document = Document::parse("a:\n  b: 1\nl:\n  - w: 1\n", "r.yaml");
  document.apply_override("a.b=2");
  document.apply_override("l.0.w=0.5");
  document.apply_override("l.1.w=3");
  document.apply_override("n.m.k=[1, 2]");
  document.apply_override("s=a=b");
  CHECK(document.root().find("a")->find("b")->text == "2");
  CHECK(document.root().find("l")->items.size() == 2);
  CHECK(document.root().find("l")->items[1].find("w")->text == "3");
  CHECK(document.root().find("n")->find("m")->find("k")->items.size() == 2);
  CHECK(document.root().find("s")->text == "a=b");
  CHECK(document.place("a.b") == "command line, a.b=2");
  CHECK(document.place("n.m") == "command line, n.m.k=[1, 2]");
}

TEST_CASE("overrides that fit nowhere are named") {
  auto document = Document::parse("a: 1\nl: [1]\n", "r.yaml");
  CHECK_THROWS_AS(document.apply_override("a"), UserError);
  CHECK_THROWS_AS(document.apply_override("=1"), UserError);
  CHECK_THROWS_AS(document.apply_override("a.b=1"), UserError);
  CHECK_THROWS_AS(document.apply_override("l.5=1"), UserError);
  CHECK_THROWS_AS(document.apply_override("l.x=1"), UserError);
  CHECK_THROWS_AS(document.apply_override("a..b=1"), UserError);
  CHECK_THROWS_AS(document.apply_override("a=[1"), UserError);
}

TEST_CASE("a tree becomes JSON with numbers as numbers and quoted words as texts") {
  const auto document =
      Document::parse("a: [1, 1e-3, \"2\", yes, true, null, .inf]\nb: {c: 'x\"y'}\n", "r.yaml");
  CHECK(to_json(document.root()) ==
        R"({"a": [1, 0.001, "2", "yes", true, null, ".inf"], "b": {"c": "x\"y"}})");
}

}  // namespace
}  // namespace tandem::config
