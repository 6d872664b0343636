// The two ways to format text: "%5.2f" and "{:>5}".
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "text/jinja/format_spec.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/jinja/text_functions.h"

namespace tandem::text::jinja {
namespace {

// One "{...}" of a format string.
class BraceFormatter {
 public:
  BraceFormatter(Interpreter& interpreter, const Arguments& arguments)
      : interpreter_(interpreter), arguments_(arguments) {}

  std::string field(std::string_view field) {
    const std::size_t colon = std::min(field.find(':'), field.size());
    std::string_view name = field.substr(0, colon);
    const std::string_view spec = field.substr(std::min(field.size(), colon + 1));
    char conversion = '\0';
    if (name.size() >= 2 && name[name.size() - 2] == '!') {
      conversion = name.back();
      name.remove_suffix(2);
    }
    Value value = find(name);
    if (conversion != '\0') {
      value = make_text(conversion == 'r' ? to_repr(value) : to_string(value));
    }
    return format_value(value, spec);
  }

 private:
  Value find(std::string_view name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end));
    for (std::size_t at = end; at < name.size();) {
      const bool bracket = name[at] == '[';
      const std::size_t stop =
          bracket ? name.find(']', at) : std::min(name.find_first_of(".[", at + 1), name.size());
      if (stop == std::string_view::npos) {
        throw TemplateError("expected ']' in a format field");
      }
      const std::string key(name.substr(at + 1, stop - at - 1));
      value = bracket ? interpreter_.item(value, key_of(key)) : interpreter_.member(value, key);
      at = stop + (bracket ? 1 : 0);
    }
    return value;
  }

  static Value key_of(const std::string& key) {
    std::size_t at = 0;
    const auto number = read_number(key, at);
    return number.has_value() && at == key.size() ? make_int(*number) : make_text(key);
  }

  Value first(std::string_view name) {
    std::size_t at = 0;
    const auto number = read_number(name, at);
    const bool numbered = number.has_value() && at == name.size();
    if (name.empty() || numbered) {
      const std::size_t index = numbered ? static_cast<std::size_t>(*number) : next_++;
      if (index >= arguments_.positional.size()) {
        throw TemplateError("a format's index is out of range of its arguments");
      }
      return arguments_.positional[index];
    }
    for (const auto& [known, value] : arguments_.named) {
      if (known == name) {
        return value;
      }
    }
    throw TemplateError(fmt::format("a format names '{}', which is not given", name));
  }

  Interpreter& interpreter_;
  const Arguments& arguments_;
  std::size_t next_ = 0;
};

// "%(name)-5.2f" from the '%' on.
struct PrintfField {
  std::string name;
  FormatSpec spec;
};

PrintfField read_printf_field(std::string_view format, std::size_t& at) {
  PrintfField field;
  if (at < format.size() && format[at] == '(') {
    const std::size_t close = std::min(format.find(')', at), format.size());
    field.name = format.substr(at + 1, close - at - 1);
    at = std::min(close + 1, format.size());
  }
  for (; at < format.size() && std::string_view("-+ 0#").find(format[at]) != std::string_view::npos;
       ++at) {
    const char flag = format[at];
    field.spec.align = flag == '-' ? '<' : field.spec.align;
    field.spec.sign = flag == '+' || flag == ' ' ? flag : field.spec.sign;
    field.spec.zero = field.spec.zero || flag == '0';
    field.spec.alternate = field.spec.alternate || flag == '#';
  }
  field.spec.width = read_number(format, at).value_or(0);
  if (at < format.size() && format[at] == '.') {
    ++at;
    field.spec.precision = std::min(read_number(format, at).value_or(0), kMaxPrecision);
  }
  if (at == format.size()) {
    throw TemplateError("incomplete format");
  }
  field.spec.type = format[at++];
  return field;
}

std::string print_field(const PrintfField& field, const Value& value) {
  FormatSpec spec = field.spec;
  if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
    spec.align = spec.align == '\0' ? '>' : spec.align;
    return format_text(spec.type == 's' ? to_string(value) : to_repr(value), spec);
  }
  if (std::string_view("diuxXofFeEgG").find(spec.type) == std::string_view::npos) {
    throw TemplateError(fmt::format("unsupported format character '{}'", spec.type));
  }
  if (!value.is_number()) {
    throw TemplateError(
        fmt::format("%{} format: a number is required, not {}", spec.type, type_name(value)));
  }
  const bool whole = std::string_view("diu").find(spec.type) != std::string_view::npos;
  if (whole && value.is<double>()) {
    spec.type = 'f';
    spec.precision = 0;
    return format_number(Value::Variant(std::trunc(*value.get<double>())), spec);
  }
  return format_number(value, spec);
}

}  // namespace

std::string brace_format(Interpreter& interpreter,
                         std::string_view format,
                         const Arguments& arguments) {
  BraceFormatter formatter(interpreter, arguments);
  std::string out;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    const bool doubled = at + 1 < format.size() && format[at + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      out += c;
      ++at;
    } else if (c == '{') {
      const std::size_t close = format.find('}', at);
      if (close == std::string_view::npos) {
        throw TemplateError("expected '}' before end of string");
      }
      out += formatter.field(format.substr(at + 1, close - at - 1));
      at = close;
    } else if (c == '}') {
      throw TemplateError("single '}' encountered in format string");
    } else {
      out += c;
    }
  }
  return out;
}

std::string printf_format(const std::string& format, const Value& arguments) {
  const std::vector<Value> list =
      arguments.is<Tuple>() ? *arguments.elements() : std::vector<Value>{arguments};
  const auto* dict = arguments.get<DictPtr>();
  std::size_t next = 0;
  std::string out;
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    if (++at < format.size() && format[at] == '%') {
      out += format[at++];
      continue;
    }
    const PrintfField field = read_printf_field(format, at);
    if (!field.name.empty() && dict != nullptr) {
      const Value* value = (*dict)->find(field.name);
      out += print_field(field, value != nullptr ? *value : Value());
    } else if (next < list.size()) {
      out += print_field(field, list[next++]);
    } else {
      throw TemplateError("not enough arguments for format string");
    }
  }
  if (next < list.size() && dict == nullptr) {
    throw TemplateError("not all arguments converted during string formatting");
  }
  return out;
}

}  // namespace tandem::text::jinja
