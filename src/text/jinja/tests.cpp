// What stands after "is".
#include <array>
#include <utility>

#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

const Value& operand(const Arguments& arguments) {
  if (arguments.positional.empty()) {
    throw TemplateError("the test lacks its argument");
  }
  return arguments.positional[0];
}

bool is_integer(const Value& v) {
  return v.is<std::int64_t>();
}

bool is_multiple(const Value& v, const Value& of) {
  return equal(arithmetic("%", v, of), make_int(0));
}

bool same_object(const Value& a, const Value& b) {
  if (a.variant().index() != b.variant().index()) {
    return false;
  }
  if (const auto* list = a.get<ListPtr>()) {
    return *list == *b.get<ListPtr>();
  }
  if (const auto* dict = a.get<DictPtr>()) {
    return *dict == *b.get<DictPtr>();
  }
  return equal(a, b);
}

bool is_lower(Interpreter&, const Value& v, const Arguments&) {
  const std::string text = to_string(v);
  return text == to_lower(text) && text != to_upper(text);
}

bool is_upper(Interpreter&, const Value& v, const Arguments&) {
  const std::string text = to_string(v);
  return text == to_upper(text) && text != to_lower(text);
}

bool is_sequence(Interpreter&, const Value& v, const Arguments&) {
  const auto* view = v.get<ViewPtr>();
  return v.is_text() || v.elements() != nullptr || v.is<DictPtr>() || v.is_undefined() ||
         (view != nullptr && (*view)->type == "range");
}

bool is_escaped(Interpreter&, const Value& v, const Arguments&) {
  const auto* text = v.get<TextPtr>();
  return text != nullptr && (*text)->safe;
}

using Entry = std::pair<std::string_view, Test>;

// Of the value alone.
constexpr std::array<Entry, 22> kPlain = {{
    {"defined", [](Interpreter&, const Value& v, const Arguments&) { return !v.is_undefined(); }},
    {"undefined", [](Interpreter&, const Value& v, const Arguments&) { return v.is_undefined(); }},
    {"none", [](Interpreter&, const Value& v, const Arguments&) { return v.is_none(); }},
    {"string", [](Interpreter&, const Value& v, const Arguments&) { return v.is_text(); }},
    {"number", [](Interpreter&, const Value& v, const Arguments&) { return v.is_number(); }},
    {"integer", [](Interpreter&, const Value& v, const Arguments&) { return is_integer(v); }},
    {"float", [](Interpreter&, const Value& v, const Arguments&) { return v.is<double>(); }},
    {"boolean", [](Interpreter&, const Value& v, const Arguments&) { return v.is<bool>(); }},
    {"mapping", [](Interpreter&, const Value& v, const Arguments&) { return v.is<DictPtr>(); }},
    {"iterable", [](Interpreter&, const Value& v, const Arguments&) { return v.is_iterable(); }},
    {"sequence", is_sequence},
    {"callable",
     [](Interpreter&, const Value& v, const Arguments&) {
       return v.is<CallablePtr>() || v.is<LoopPtr>() || v.is_undefined();
     }},
    {"true",
     [](Interpreter&, const Value& v, const Arguments&) { return v.is<bool>() && *v.get<bool>(); }},
    {"false",
     [](Interpreter&, const Value& v, const Arguments&) {
       return v.is<bool>() && !*v.get<bool>();
     }},
    {"odd",
     [](Interpreter&, const Value& v, const Arguments&) {
       return equal(arithmetic("%", v, make_int(2)), make_int(1));
     }},
    {"even",
     [](Interpreter&, const Value& v, const Arguments&) { return is_multiple(v, make_int(2)); }},
    {"lower", is_lower},
    {"upper", is_upper},
    {"escaped", is_escaped},
    {"filter",
     [](Interpreter&, const Value& v, const Arguments&) {
       return find_filter(to_string(v)) != nullptr;
     }},
    {"test",
     [](Interpreter&, const Value& v, const Arguments&) {
       return find_test(to_string(v)) != nullptr;
     }},
    {"divisibleby",
     [](Interpreter&, const Value& v, const Arguments& a) { return is_multiple(v, operand(a)); }},
}};

bool test_eq(Interpreter&, const Value& v, const Arguments& a) {
  return equal(v, operand(a));
}
bool test_ne(Interpreter&, const Value& v, const Arguments& a) {
  return !equal(v, operand(a));
}
bool test_lt(Interpreter&, const Value& v, const Arguments& a) {
  return compare(v, operand(a)) < 0;
}
bool test_le(Interpreter&, const Value& v, const Arguments& a) {
  return compare(v, operand(a)) <= 0;
}
bool test_gt(Interpreter&, const Value& v, const Arguments& a) {
  return compare(v, operand(a)) > 0;
}
bool test_ge(Interpreter&, const Value& v, const Arguments& a) {
  return compare(v, operand(a)) >= 0;
}
bool test_in(Interpreter&, const Value& v, const Arguments& a) {
  return contains(operand(a), v);
}
bool test_same(Interpreter&, const Value& v, const Arguments& a) {
  return same_object(v, operand(a));
}

// Against an operand.
constexpr std::array<Entry, 17> kBinary = {{
    {"eq", test_eq},
    {"equalto", test_eq},
    {"==", test_eq},
    {"ne", test_ne},
    {"!=", test_ne},
    {"lt", test_lt},
    {"lessthan", test_lt},
    {"<", test_lt},
    {"le", test_le},
    {"<=", test_le},
    {"gt", test_gt},
    {"greaterthan", test_gt},
    {">", test_gt},
    {"ge", test_ge},
    {">=", test_ge},
    {"in", test_in},
    {"sameas", test_same},
}};

}  // namespace

Test find_test(const std::string& name) {
  for (const auto& [known, test] : kPlain) {
    if (known == name) {
      return test;
    }
  }
  for (const auto& [known, test] : kBinary) {
    if (known == name) {
      return test;
    }
  }
  return nullptr;
}

}  // namespace tandem::text::jinja
