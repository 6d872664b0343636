// map, select, reject and their forms for attributes.
#include "text/jinja/print.h"
#include "text/jinja/registry.h"

namespace tandem::text::jinja {
namespace {

Arguments rest_of(const Arguments& arguments, std::size_t used) {
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used),
                         arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

// These filters take a value that counts as false, none included, for an empty list.
std::vector<Value> iterate_or_nothing(const Value& input) {
  return is_true(input) ? iterate(input) : std::vector<Value>();
}

Value map_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  std::vector<Value> out;
  if (arguments.positional.empty() && !arguments.named.empty()) {
    const Bound bound("map", arguments, {"attribute", "default"});
    for (const Value& item : iterate_or_nothing(input)) {
      out.push_back(attribute_of(interpreter, item, bound.required(0), bound.get(1)));
    }
    return make_generator(std::move(out));
  }
  if (arguments.positional.empty()) {
    throw TemplateError("map requires a filter argument");
  }
  const std::string name = to_string(arguments.positional[0]);
  const Arguments rest = rest_of(arguments, 1);
  for (const Value& item : iterate_or_nothing(input)) {
    out.push_back(interpreter.apply_filter(name, item, rest));
  }
  return make_generator(std::move(out));
}

template <bool kKeep, bool kAttribute>
Value choose_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const std::size_t test = kAttribute ? 1 : 0;  // where the test's name stands
  const auto& given = arguments.positional;
  if (kAttribute && given.empty()) {
    throw TemplateError("Missing parameter for attribute name");
  }
  const bool named = given.size() > test;
  const std::string name = named ? to_string(given[test]) : "";
  const Arguments rest = named ? rest_of(arguments, test + 1) : Arguments();
  std::vector<Value> out;
  for (const Value& item : iterate_or_nothing(input)) {
    const Value subject = kAttribute ? attribute_of(interpreter, item, given[0]) : item;
    const bool holds = named ? interpreter.apply_test(name, subject, rest) : is_true(subject);
    if (holds == kKeep) {
      out.push_back(item);
    }
  }
  return make_generator(std::move(out));
}

}  // namespace

void add_selection_filters(FilterTable& table) {
  table.insert({
      {"map", map_filter},
      {"select", choose_filter<true, false>},
      {"reject", choose_filter<false, false>},
      {"selectattr", choose_filter<true, true>},
      {"rejectattr", choose_filter<false, true>},
  });
}

}  // namespace tandem::text::jinja
