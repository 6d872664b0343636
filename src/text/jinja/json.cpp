#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "text/jinja/print.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

void append_unit(std::string& out, std::uint32_t unit) {
  out += fmt::format("\\u{:04x}", unit);
}

void append_character(std::string& out, char32_t code, std::string_view bytes, bool ensure_ascii) {
  switch (code) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      break;
  }
  if (code >= 0x20 && (code < 0x7F || !ensure_ascii)) {
    out += bytes;
  } else if (code < 0x10000) {
    append_unit(out, code);
  } else {
    append_unit(out, 0xD800 + ((code - 0x10000) >> 10U));
    append_unit(out, 0xDC00 + ((code - 0x10000) & 0x3FFU));
  }
}

std::string quote(const std::string& text, bool ensure_ascii) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    append_character(out, c.code, std::string_view(text).substr(at, c.length), ensure_ascii);
    at += c.length;
  }
  return out + '"';
}

std::string json_float(double x) {
  if (std::isfinite(x)) {
    return print_float(x);
  }
  return std::isnan(x) ? "NaN" : x < 0 ? "-Infinity" : "Infinity";
}

class JsonPrinter {
 public:
  explicit JsonPrinter(const JsonStyle& style) : style_(style) {}

  void print(const Value& value, int level) {
    if (value.is_text()) {
      out_ += quote(value.text(), style_.ensure_ascii);
    } else if (value.is_none()) {
      out_ += "null";
    } else if (const auto* b = value.get<bool>()) {
      out_ += *b ? "true" : "false";
    } else if (const auto* i = value.get<std::int64_t>()) {
      out_ += std::to_string(*i);
    } else if (const auto* x = value.get<double>()) {
      out_ += json_float(*x);
    } else if (const auto* elements = value.elements()) {
      print_list(*elements, level);
    } else if (const auto* dict = value.get<DictPtr>()) {
      print_dict((*dict)->entries, level);
    } else {
      throw TemplateError(
          fmt::format("Object of type {} is not JSON serializable", type_name(value)));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void line(int level) {
    if (style_.indent.has_value()) {
      out_ += '\n';
      for (int i = 0; i < level; ++i) {
        out_ += *style_.indent;
      }
    }
  }

  void print_list(const std::vector<Value>& items, int level) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      out_ += i == 0 ? "" : style_.item_separator;
      line(level + 1);
      print(items[i], level + 1);
    }
    line(level);
    out_ += ']';
  }

  void print_dict(std::vector<std::pair<Value, Value>> entries, int level) {
    if (entries.empty()) {
      out_ += "{}";
      return;
    }
    if (style_.sort_keys) {
      std::ranges::stable_sort(
          entries, [](const auto& a, const auto& b) { return compare(a.first, b.first) < 0; });
    }
    out_ += '{';
    for (std::size_t i = 0; i < entries.size(); ++i) {
      out_ += i == 0 ? "" : style_.item_separator;
      line(level + 1);
      out_ += quote(key_text(entries[i].first), style_.ensure_ascii) + style_.key_separator;
      print(entries[i].second, level + 1);
    }
    line(level);
    out_ += '}';
  }

  static std::string key_text(const Value& key) {
    if (key.is_text()) {
      return key.text();
    }
    if (key.is_none()) {
      return "null";
    }
    if (const auto* b = key.get<bool>()) {
      return *b ? "true" : "false";
    }
    if (const auto* x = key.get<double>()) {
      return json_float(*x);
    }
    if (key.is<std::int64_t>()) {
      return to_string(key);
    }
    throw TemplateError(
        fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
  }

  const JsonStyle& style_;
  std::string out_;
};

constexpr int kMaxJsonDepth = 150;

Value convert(const nlohmann::ordered_json& json, int depth) {
  using Type = nlohmann::ordered_json::value_t;
  if (depth > kMaxJsonDepth) {
    throw TemplateError("the template's input is nested too deeply");
  }
  switch (json.type()) {
    case Type::boolean:
      return make_bool(json.get<bool>());
    case Type::number_integer:
      return make_int(json.get<std::int64_t>());
    case Type::number_unsigned:
      if (json.get<std::uint64_t>() > INT64_MAX) {
        return Value::Variant(json.get<double>());
      }
      return make_int(json.get<std::int64_t>());
    case Type::number_float:
      return Value::Variant(json.get<double>());
    case Type::string:
      return make_text(replace_invalid_utf8(json.get_ref<const std::string&>()));
    case Type::array: {
      std::vector<Value> items;
      for (const auto& item : json) {
        items.push_back(convert(item, depth + 1));
      }
      return make_list(std::move(items));
    }
    case Type::object: {
      Dict dict;
      for (const auto& [key, value] : json.items()) {
        dict.set(make_text(replace_invalid_utf8(key)), convert(value, depth + 1));
      }
      return make_dict(std::move(dict));
    }
    default:
      return make_none();
  }
}

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonPrinter printer(style);
  printer.print(value, 0);
  return printer.take();
}

Value from_json(const nlohmann::ordered_json& json) {
  return convert(json, 0);
}

}  // namespace tandem::text::jinja
