// The methods of strings.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/jinja/text_functions.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

using Method = Value (*)(Interpreter&, const Text& self, const Arguments&);

std::string argument_text(const Value& value, const char* method) {
  if (!value.is_text()) {
    throw TemplateError(fmt::format("{}: must be str, not {}", method, type_name(value)));
  }
  return value.text();
}

void no_keywords(const Arguments& arguments, const char* method) {
  if (!arguments.named.empty()) {
    throw TemplateError(fmt::format("str.{}() takes no keyword arguments", method));
  }
}

template <bool kLeft, bool kRight>
Value strip_method(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("strip", arguments, {"chars"});
  const Value* chars = bound.get(0);
  const bool given = chars != nullptr && !chars->is_none();
  const std::string set = given ? argument_text(*chars, "strip") : "";
  return make_text(strip(self.text, kLeft, kRight, given ? &set : nullptr), self.safe);
}

template <bool kRight>
Value split_method(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("split", arguments, {"sep", "maxsplit"});
  const std::int64_t most = bound.integer(1, -1);
  const Value* separator = bound.get(0);
  std::vector<std::string> parts;
  if (separator == nullptr || separator->is_none()) {
    parts = split_words(self.text, most, kRight);
  } else {
    const std::string between = argument_text(*separator, "split");
    if (between.empty()) {
      throw TemplateError("empty separator");
    }
    parts = split_at(self.text, between, most, kRight);
  }
  std::vector<Value> items;
  for (std::string& part : parts) {
    items.push_back(make_text(std::move(part)));
  }
  return make_list(std::move(items));
}

Value splitlines(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("splitlines", arguments, {"keepends"});
  std::vector<Value> items;
  for (std::string& line : split_lines(self.text, bound.flag(0, false))) {
    items.push_back(make_text(std::move(line)));
  }
  return make_list(std::move(items));
}

// startswith and endswith take one text or a tuple of them.
template <bool kStart>
Value affix_method(Interpreter&, const Text& self, const Arguments& arguments) {
  const char* name = kStart ? "startswith" : "endswith";
  const Bound bound(name, arguments, {"affix", "start", "end"});
  const Value& wanted = bound.required(0);
  const SliceBounds part{bound.get(1) != nullptr ? *bound.get(1) : make_none(),
                         bound.get(2) != nullptr ? *bound.get(2) : make_none(),
                         make_none()};
  const std::string text = slice(make_text(self.text), part).text();
  const auto fits = [&](const Value& affix) {
    const std::string& a = argument_text(affix, name);
    return kStart ? text.starts_with(a) : text.ends_with(a);
  };
  return make_bool(wanted.is<Tuple>() ? std::ranges::any_of(*wanted.elements(), fits)
                                      : fits(wanted));
}

Value replace_method(Interpreter&, const Text& self, const Arguments& arguments) {
  no_keywords(arguments, "replace");
  const Bound bound("replace", arguments, {"old", "new", "count"});
  return make_text(replace(self.text,
                           argument_text(bound.required(0), "replace"),
                           argument_text(bound.required(1), "replace"),
                           bound.integer(2, -1)));
}

template <bool kRight, bool kThrow>
Value find_method_of_text(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("find", arguments, {"sub", "start", "end"});
  const std::string wanted = argument_text(bound.required(0), "find");
  const std::int64_t size = static_cast<std::int64_t>(count_characters(self.text));
  const std::int64_t given = bound.integer(1, 0);
  const std::int64_t start = std::max<std::int64_t>(given < 0 ? given + size : given, 0);
  const SliceBounds part{
      make_int(start), bound.get(2) != nullptr ? *bound.get(2) : make_none(), make_none()};
  const std::string text = slice(make_text(self.text), part).text();
  const std::size_t at = start > size ? std::string::npos
                         : kRight     ? text.rfind(wanted)
                                      : text.find(wanted);
  if (at == std::string::npos) {
    return kThrow ? throw TemplateError("substring not found") : make_int(-1);
  }
  return make_int(start + static_cast<std::int64_t>(count_characters(text.substr(0, at))));
}

Value count_method(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("count", arguments, {"sub"});
  const std::string wanted = argument_text(bound.required(0), "count");
  if (wanted.empty()) {
    return make_int(static_cast<std::int64_t>(count_characters(self.text)) + 1);
  }
  std::int64_t count = 0;
  for (std::size_t at = self.text.find(wanted); at != std::string::npos;
       at = self.text.find(wanted, at + wanted.size())) {
    ++count;
  }
  return make_int(count);
}

Value join_method(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("join", arguments, {"iterable"});
  std::string out;
  bool first = true;
  for (const Value& item : iterate(bound.required(0))) {
    out += std::exchange(first, false) ? "" : self.text;
    out += argument_text(item, "join");
  }
  return make_text(std::move(out));
}

template <bool kRight>
Value partition_method(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("partition", arguments, {"sep"});
  const std::string separator = argument_text(bound.required(0), "partition");
  const std::size_t at = kRight ? self.text.rfind(separator) : self.text.find(separator);
  if (at == std::string::npos) {
    const Value all = make_text(self.text);
    const Value none = make_text("");
    return kRight ? make_tuple({none, none, all}) : make_tuple({all, none, none});
  }
  return make_tuple({make_text(self.text.substr(0, at)),
                     make_text(separator),
                     make_text(self.text.substr(at + separator.size()))});
}

template <bool kPrefix>
Value remove_affix(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("removeprefix", arguments, {"affix"});
  const std::string affix = argument_text(bound.required(0), "removeprefix");
  const bool there = kPrefix ? self.text.starts_with(affix) : self.text.ends_with(affix);
  if (!there) {
    return make_text(self.text);
  }
  return make_text(kPrefix ? self.text.substr(affix.size())
                           : self.text.substr(0, self.text.size() - affix.size()));
}

// Padding to a width: ljust, rjust, center, zfill.
enum class Side { kLeft, kRight, kCenter };

template <Side kSide>
Value pad_method(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("ljust", arguments, {"width", "fillchar"});
  const char align = kSide == Side::kLeft ? '<' : kSide == Side::kRight ? '>' : '^';
  return make_text(
      pad(self.text, expect_integer(bound.required(0), "width"), align, bound.text(1, " ")));
}

Value zfill(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("zfill", arguments, {"width"});
  const std::int64_t width = expect_integer(bound.required(0), "zfill");
  const bool sign = self.text.starts_with('-') || self.text.starts_with('+');
  return make_text(self.text.substr(0, sign ? 1 : 0) +
                   pad(self.text.substr(sign ? 1 : 0), width - (sign ? 1 : 0), '>', "0"));
}

Value format_method(Interpreter& interpreter, const Text& self, const Arguments& arguments) {
  return make_text(brace_format(interpreter, self.text, arguments));
}

template <std::string (*kFunction)(std::string_view)>
Value mapped(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("str method", arguments, {});
  return make_text(kFunction(self.text), self.safe);
}

template <bool (*kPredicate)(std::string_view)>
Value predicate(Interpreter&, const Text& self, const Arguments& arguments) {
  const Bound bound("str method", arguments, {});
  return make_bool(kPredicate(self.text));
}

constexpr std::array<std::pair<std::string_view, Method>, 39> kMethods = {{
    {"capitalize", mapped<capitalize>},
    {"casefold", mapped<to_lower>},
    {"center", pad_method<Side::kCenter>},
    {"count", count_method},
    {"endswith", affix_method<false>},
    {"find", find_method_of_text<false, false>},
    {"format", format_method},
    {"index", find_method_of_text<false, true>},
    {"isalnum", predicate<is_alphanumeric>},
    {"isalpha", predicate<is_alphabetic>},
    {"isascii", predicate<is_ascii>},
    {"isdecimal", predicate<is_decimal>},
    {"isdigit", predicate<is_decimal>},
    {"islower", predicate<is_lower_case>},
    {"isnumeric", predicate<is_numeric>},
    {"isspace", predicate<is_blank>},
    {"isupper", predicate<is_upper_case>},
    {"join", join_method},
    {"ljust", pad_method<Side::kLeft>},
    {"lower", mapped<to_lower>},
    {"lstrip", strip_method<true, false>},
    {"partition", partition_method<false>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"replace", replace_method},
    {"rfind", find_method_of_text<true, false>},
    {"rindex", find_method_of_text<true, true>},
    {"rjust", pad_method<Side::kRight>},
    {"rpartition", partition_method<true>},
    {"rsplit", split_method<true>},
    {"rstrip", strip_method<false, true>},
    {"split", split_method<false>},
    {"splitlines", splitlines},
    {"startswith", affix_method<true>},
    {"strip", strip_method<true, true>},
    {"swapcase", mapped<swap_case>},
    {"title", mapped<title_case>},
    {"upper", mapped<to_upper>},
    {"zfill", zfill},
}};

}  // namespace

std::optional<Value> find_text_method(const Value& object, const std::string& name) {
  for (const auto& [known, method] : kMethods) {
    if (known == name) {
      const TextPtr self = *object.get<TextPtr>();
      return make_callable(name,
                           [self, function = method](Interpreter& i, const Arguments& arguments) {
                             return function(i, *self, arguments);
                           });
    }
  }
  return std::nullopt;
}

}  // namespace tandem::text::jinja
