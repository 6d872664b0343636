#include "text/jinja/registry.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace tandem::text::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;  // as in Jinja's sandbox

Value make_range(Interpreter&, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.named.empty()) {
    throw TemplateError("range takes 1 to 3 positional arguments");
  }
  const auto number = [&](std::size_t i) { return expect_integer(given[i], "range"); };
  const std::int64_t begin = given.size() > 1 ? number(0) : 0;
  const std::int64_t end = given.size() > 1 ? number(1) : number(0);
  const std::int64_t step = given.size() > 2 ? number(2) : 1;
  if (step == 0) {
    throw TemplateError("range() arg 3 must not be zero");
  }
  std::vector<Value> items;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    if (static_cast<std::int64_t>(items.size()) == kMaxRange) {
      throw TemplateError(fmt::format("range too big, the maximum is {}", kMaxRange));
    }
    items.push_back(make_int(i));
    if ((step > 0 && i > end - step) || (step < 0 && i < end - step)) {
      break;  // the next one would pass the end, and perhaps the largest integer
    }
  }
  const std::string print = step == 1 ? fmt::format("range({}, {})", begin, end)
                                      : fmt::format("range({}, {}, {})", begin, end, step);
  return make_view("range", print, std::move(items));
}

// dict(...) and namespace(...): a mapping or pairs, then keywords.
Dict collect_dict(const Arguments& arguments) {
  Dict dict;
  for (const Value& source : arguments.positional) {
    if (const auto* other = source.get<DictPtr>()) {
      for (const auto& [key, value] : (*other)->entries) {
        dict.set(key, value);
      }
      continue;
    }
    for (const Value& pair : iterate(source)) {
      const auto both = iterate(pair);
      if (both.size() != 2) {
        throw TemplateError("dict wants pairs");
      }
      dict.set(both[0], both[1]);
    }
  }
  for (const auto& [key, value] : arguments.named) {
    dict.set(make_text(key), value);
  }
  return dict;
}

Value new_dict(Interpreter&, const Arguments& arguments) {
  return make_dict(collect_dict(arguments));
}

Value new_namespace(Interpreter& interpreter, const Arguments& arguments) {
  Namespace content;
  for (const auto& [key, value] : collect_dict(arguments).entries) {
    content.attributes.emplace_back(to_string(key), value);
  }
  return interpreter.make_namespace(std::move(content));
}

Value raise_exception(Interpreter&, const Arguments& arguments) {
  const Bound bound("raise_exception", arguments, {"message"});
  throw TemplateError(to_string(bound.required(0)), 0, true);
}

Value strftime_now(Interpreter& interpreter, const Arguments& arguments) {
  const Bound bound("strftime_now", arguments, {"format"});
  const std::string format = to_string(bound.required(0));
  if (format.empty()) {
    return make_text("");
  }
  const std::tm time = interpreter.now();
  std::string out(4 * format.size() + 256, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &time));
  return make_text(std::move(out));
}

// joiner(sep): nothing the first time, then the separator. The state is a namespace, the only
// thing that may change.
Value new_joiner(Interpreter& interpreter, const Arguments& arguments) {
  const Bound bound("joiner", arguments, {"sep"});
  const std::string separator = bound.text(0, ", ");
  const Value used = interpreter.make_namespace({});
  return make_callable("joiner", [separator, used](Interpreter&, const Arguments&) {
    auto& marks = (*used.get<NamespacePtr>())->attributes;
    if (marks.empty()) {
      marks.emplace_back("used", make_bool(true));
      return make_text("");
    }
    return make_text(separator);
  });
}

}  // namespace

std::optional<Value> find_global(const std::string& name) {
  using Function = Value (*)(Interpreter&, const Arguments&);
  static constexpr std::array<std::pair<std::string_view, Function>, 6> kGlobals = {{
      {"range", make_range},
      {"dict", new_dict},
      {"namespace", new_namespace},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
      {"joiner", new_joiner},
  }};
  for (const auto& [known, function] : kGlobals) {
    if (known == name) {
      return make_callable(name, function);
    }
  }
  return std::nullopt;
}

Filter find_filter(const std::string& name) {
  static const FilterTable table = [] {
    FilterTable filters;
    add_text_filters(filters);
    add_sequence_filters(filters);
    add_selection_filters(filters);
    add_number_filters(filters);
    return filters;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

Bound::Bound(std::string_view function,
             const Arguments& arguments,
             std::initializer_list<const char*> names)
    : function_(function), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size()) {
    throw TemplateError(fmt::format("{} takes at most {} argument(s), {} were given",
                                    function_,
                                    names_.size(),
                                    arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto found =
        std::ranges::find_if(names_, [&](const char* known) { return name == known; });
    const auto i = static_cast<std::size_t>(found - names_.begin());
    if (found == names_.end() || values_[i] != nullptr) {
      throw TemplateError(fmt::format("{} got an unexpected argument '{}'", function_, name));
    }
    values_[i] = &value;
  }
}

const Value& Bound::required(std::size_t i) const {
  if (values_[i] == nullptr) {
    throw TemplateError(fmt::format("{} lacks the argument '{}'", function_, names_[i]));
  }
  return *values_[i];
}

bool Bound::flag(std::size_t i, bool otherwise) const {
  return values_[i] == nullptr ? otherwise : is_true(*values_[i]);
}

std::int64_t Bound::integer(std::size_t i, std::int64_t otherwise) const {
  return values_[i] == nullptr ? otherwise : expect_integer(*values_[i], function_);
}

std::string Bound::text(std::size_t i, const std::string& otherwise) const {
  return values_[i] == nullptr ? otherwise : to_string(*values_[i]);
}

std::int64_t expect_integer(const Value& value, std::string_view what) {
  if (value.is_undefined()) {
    throw_undefined(value);
  }
  if (const auto* b = value.get<bool>()) {
    return *b ? 1 : 0;
  }
  const auto* i = value.get<std::int64_t>();
  if (i == nullptr) {
    throw TemplateError(
        fmt::format("{}: '{}' object cannot be interpreted as an integer", what, type_name(value)));
  }
  return *i;
}

Value attribute_of(Interpreter& interpreter,
                   const Value& item,
                   const Value& path,
                   const Value* otherwise) {
  std::vector<Value> parts;
  if (path.is_text()) {
    std::size_t at = 0;
    const std::string& text = path.text();
    while (at <= text.size()) {
      const std::size_t dot = std::min(text.find('.', at), text.size());
      const std::string part = text.substr(at, dot - at);
      const bool number = !part.empty() && part.size() < 10 &&
                          std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
      parts.push_back(number ? make_int(std::stoi(part)) : make_text(part));
      at = dot + 1;
    }
  } else {
    parts.push_back(path);
  }
  Value found = item;
  for (const Value& part : parts) {
    found = interpreter.item(found, part);
    if (found.is_undefined() && otherwise != nullptr) {
      found = *otherwise;
    }
  }
  return found;
}

}  // namespace tandem::text::jinja
