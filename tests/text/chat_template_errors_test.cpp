// Templates that fail, and templates that mean harm.
#include <doctest/doctest.h>

#include "base/error.h"
#include "text/chat_template.h"

namespace tandem::text {
namespace {

using Json = nlohmann::ordered_json;

std::string render(const std::string& source, const Json& context = Json::object()) {
  return ChatTemplate(source).render(context);
}

std::string error_of(const std::string& source, const Json& context = Json::object()) {
  try {
    render(source, context);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string repeat(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) {
    out += part;
  }
  return out;
}

TEST_CASE("raise_exception gives its own text, other errors the line") {
  CHECK(error_of("\n{{ raise_exception('roles must\nalternate') }}") == "roles must alternate");
  CHECK(error_of("a\n\n{{ 1 + 'x' }}") ==
        "chat template line 3: unsupported operand type(s) for +: 'int' and 'str'");
  CHECK(error_of("{{ x.y.z }}", {{"x", {{"a", 1}}}}) ==
        "chat template line 1: 'dict object' has no attribute 'y'");
  CHECK(error_of("\n{{ nobody() }}") == "chat template line 2: 'nobody' is undefined");
  CHECK(error_of("{{ 'a' | nofilter }}") ==
        "chat template line 1: No filter named 'nofilter' found");
  CHECK(error_of("{{ 1 / 0 }}") == "chat template line 1: division by zero");
}

TEST_CASE("syntax errors name the line") {
  CHECK(error_of("a\n{% if x %}").starts_with("chat template line 2: unexpected end of template"));
  CHECK(error_of("{% for %}").starts_with("chat template line 1: expected a name"));
  CHECK(error_of("{{ 'open }}") == "chat template line 1: a string has no end");
  CHECK(error_of("{{ (1 }}") != "no error");
  CHECK(error_of("{% endif %}") == "chat template line 1: unexpected tag 'endif'");
  CHECK(error_of("{% include 'x' %}") == "chat template line 1: tag 'include' is not supported");
  CHECK(error_of("{% break %}") == "chat template line 1: 'break' outside of a loop");
  CHECK(error_of("{# never closed") == "chat template line 1: Missing end of comment tag");
  CHECK(error_of("{% raw %} x") == "chat template line 1: Missing end of raw directive");
  CHECK(error_of("{{ 99999999999999999999 }}") != "no error");
}

TEST_CASE("a template cannot change what it was given") {
  const Json context = {{"l", {1, 2}}, {"d", {{"a", 1}}}};
  CHECK(error_of("{{ l.append(3) }}", context) ==
        "chat template line 1: access to attribute 'append' of 'list' object is unsafe");
  CHECK(error_of("{{ d.update({'b': 1}) }}", context) != "no error");
  CHECK(error_of("{% set d.a = 2 %}", context) ==
        "chat template line 1: cannot assign attribute on non-namespace object");
}

TEST_CASE("deep nesting is an error, in the source, in values and in calls") {
  CHECK(error_of("{{ " + repeat("(", 5000) + "1" + repeat(")", 5000) + " }}") != "no error");
  CHECK(error_of("{{ " + repeat("not ", 5000) + "1 }}") != "no error");
  CHECK(error_of("{{ " + repeat("-", 5000) + "1 }}") != "no error");
  CHECK(error_of("{{ 1" + repeat(" + 1", 5000) + " }}") != "no error");
  CHECK(error_of("{{ x" + repeat("[0]", 5000) + " }}") != "no error");
  CHECK(error_of(repeat("{% if 1 %}", 5000)) != "no error");
  CHECK(error_of("{% set " + repeat("(", 5000) + "a = 1 %}") != "no error");
  CHECK(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}") ==
        "chat template line 1: the template recurses too deeply");
  CHECK(error_of("{% set ns = namespace(x=[]) %}{% for i in range(9999) %}"
                 "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}") ==
        "chat template line 1: values are nested too deeply");
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) {
    deep = Json::array({deep});
  }
  CHECK(error_of("x", {{"deep", deep}}) != "no error");
}

TEST_CASE("endless work and endless output are errors") {
  CHECK(error_of("{{ range(100001) }}") != "no error");
  CHECK(error_of("{{ 'x' * 9999999999 }}") != "no error");
  CHECK(error_of("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
                 "{{ a }}{% for b in range(99999) %}{% set c = b %}{% endfor %}{% endfor %}") ==
        "chat template line 1: the template does not come to an end");
  CHECK(error_of("{% set x = 'x' * 9999999 %}{% for a in range(999) %}{{ x }}{% endfor %}") ==
        "chat template line 1: the template's output is too large");
  CHECK(error_of("{{ '%9999999999d' % 1 }}") != "no error");
}

TEST_CASE("namespaces that refer to each other are released") {
  // The leak check of the sanitizer build is what would fail.
  CHECK(render("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}"
               "{% set a.self = a %}x") == "x");
  CHECK(render("{% set n = namespace() %}{% for i in [1] %}{% set n.loop = loop %}"
               "{% set n.c = loop.changed(loop) %}{% endfor %}"
               "{% macro m() %}y{% endmacro %}{% set n.m = m %}{{ n.m() }}") == "y");
}

TEST_CASE("names, values and broken bytes of the context reach the template") {
  CHECK(render("{{ tools is none }} {{ documents is none }} {{ nothing is undefined }}") ==
        "True True True");
  CHECK(render("{{ k }}", {{"k", 1.5}}) == "1.5");
  CHECK(render("{{ k }}", {{"k", "a\xFF"}}) == "a\xEF\xBF\xBD");
  CHECK(ChatTemplate("{{ eos_token }}", {{"eos_token", "</s>"}}).render(Json::object()) == "</s>");
}

TEST_CASE("Python's printing of numbers and texts") {
  CHECK(render("{{ [1e16, 1e15, 0.0001, 0.00001, 1.0, 123456.789, -0.0] }}") ==
        "[1e+16, 1000000000000000.0, 0.0001, 1e-05, 1.0, 123456.789, -0.0]");
  CHECK(render(R"({{ ["a'b", 'a"b', 'a\'"b', 'tab\t', '\x00', '\u200b'] }})") ==
        R"(["a'b", 'a"b', 'a\'"b', 'tab\t', '\x00', '\u200b'])");
  CHECK(render("{{ '%05.1f|%-4s|%+d|%x' % (2.25, 'ab', 3, 255) }}") == "002.2|ab  |+3|ff");
  CHECK(render("{{ '{:>6.2f}|{:<4}|{:^5}|{:,}'.format(3.14159, 'a', 'b', 1234567) }}") ==
        "  3.14|a   |  b  |1,234,567");
  CHECK(render("{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 1.1|round(1, 'ceil') }}") ==
        "2.0 4.0 2.67 1.1");
  CHECK(render("{{ 7 // -2 }} {{ -7 % 3 }} {{ 7.5 % -2 }} {{ 2 ** 10 }} {{ 2 ** -1 }}") ==
        "-4 2 -0.5 1024 0.5");
}

TEST_CASE("rarely used statements") {
  CHECK(render("{% with a=1, b=2 %}{{ a + b }}{% endwith %}{{ a is defined }}") == "3False");
  CHECK(render("{% for a in [1, [2, [3]]] recursive %}"
               "{{ loop(a) if a is iterable else a }}{{ loop.depth }} {% endfor %}") ==
        "11 22 33 2 1 ");
  CHECK(render("{% raw %}{{ x }}{% endraw %}") == "{{ x }}");
  CHECK(render("{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}"
               "{{ m(1, 2, b=3) }}") == "1(2,){'b': 3}");
  CHECK(render("{% set x | upper %}abc{% endset %}{{ x }}") == "ABC");
  CHECK(render("{{ [1, 2, 3, 4, 5] | batch(2) | list }} {{ [1, 2, 3] | slice(2) | list }}") ==
        "[[1, 2], [3, 4], [5]] [[1, 2], [3]]");
  CHECK(render("{% for k, g in [{'a': 1}, {'a': 2}, {'a': 1}] | groupby('a') %}"
               "{{ k }}:{{ g | length }} {% endfor %}") == "1:2 2:1 ");
  CHECK(render("{{ '<b>' | safe + '<' }} {{ '<' | escape }}") == "<b>&lt; &lt;");
}

}  // namespace
}  // namespace tandem::text
