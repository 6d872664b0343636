// Filters on strings.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/jinja/template_space.h"
#include "text/jinja/text_functions.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

bool is_safe(const Value& value) {
  const auto* text = value.get<TextPtr>();
  return text != nullptr && (*text)->safe;
}

template <std::string (*kFunction)(std::string_view)>
Value mapped(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("filter", arguments, {});
  return make_text(kFunction(to_string(input)), is_safe(input));
}

// The filter starts a word after white space, hyphens and opening brackets only.
std::string title_words(std::string_view text) {
  std::string out;
  bool starts = true;
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    const std::string_view character = text.substr(at, c.length);
    const bool separator = is_python_space(c.code) ||
                           std::string_view("-({[<").find(text[at]) != std::string_view::npos;
    out += starts ? to_upper(character) : to_lower(character);
    starts = separator;
    at += c.length;
  }
  return out;
}

Value trim_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("trim", arguments, {"chars"});
  const Value* chars = bound.get(0);
  const bool given = chars != nullptr && !chars->is_none();
  const std::string set = given ? to_string(*chars) : "";
  return make_text(strip(to_string(input), true, true, given ? &set : nullptr), is_safe(input));
}

Value replace_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"});
  const Value* count = bound.get(2);
  const bool all = count == nullptr || count->is_none();
  return make_text(replace(to_string(input),
                           to_string(bound.required(0)),
                           to_string(bound.required(1)),
                           all ? -1 : bound.integer(2, -1)));
}

Value string_filter(Interpreter&, const Value& input, const Arguments&) {
  return input.is_text() ? input : make_text(to_string(input));
}

Value safe_filter(Interpreter&, const Value& input, const Arguments&) {
  return make_text(to_string(input), true);
}

Value escape_filter(Interpreter&, const Value& input, const Arguments&) {
  return is_safe(input) ? input : make_text(escape_html(to_string(input)), true);
}

Value force_escape_filter(Interpreter&, const Value& input, const Arguments&) {
  return make_text(escape_html(to_string(input)), true);
}

Value indent_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  const Value* width = bound.get(0);
  const std::string by =
      width != nullptr && width->is_text() ? width->text() : pad("", bound.integer(0, 4), '<', " ");
  const bool blank = bound.flag(2, false);
  // One more newline, so that a last empty line counts as a line.
  const std::vector<std::string> lines = split_lines(to_string(input) + "\n", false);
  std::string out = bound.flag(1, false) ? by : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += i == 0 ? "" : "\n";
    out += i > 0 && (blank || !lines[i].empty()) ? by : "";
    out += lines[i];
  }
  return make_text(std::move(out), is_safe(input));
}

Value truncate_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::int64_t most = bound.integer(0, 255);
  const std::string end = bound.text(2, "...");
  const std::string text = to_string(input);
  const auto size = static_cast<std::int64_t>(count_characters(text));
  const std::int64_t kept = most - static_cast<std::int64_t>(count_characters(end));
  if (size <= most + bound.integer(3, 5)) {
    return make_text(text);
  }
  if (kept < 0) {
    throw TemplateError("truncate: the length is shorter than the end");
  }
  const SliceBounds bounds{make_none(), make_int(kept), make_none()};
  std::string start = slice(make_text(text), bounds).text();
  if (!bound.flag(1, false)) {
    start = start.substr(0, std::min(start.rfind(' '), start.size()));
  }
  return make_text(start + end);
}

Value word_count(Interpreter&, const Value& input, const Arguments&) {
  std::int64_t count = 0;
  bool inside = false;
  const std::string text = to_string(input);
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    count += is_word(c.code) && !inside ? 1 : 0;
    inside = is_word(c.code);
    at += c.length;
  }
  return make_int(count);
}

Value center_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("center", arguments, {"width"});
  return make_text(pad(to_string(input), bound.integer(0, 80), '^', " "));
}

Value format_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  if (!arguments.named.empty()) {
    Dict named;
    for (const auto& [name, value] : arguments.named) {
      named.set(make_text(name), value);
    }
    return make_text(printf_format(to_string(input), make_dict(std::move(named))));
  }
  return make_text(printf_format(to_string(input), make_tuple(arguments.positional)));
}

Value tojson_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.flag(0, false);
  style.sort_keys = bound.flag(3, false);
  if (const Value* indent = bound.get(1); indent != nullptr && !indent->is_none()) {
    style.indent = indent->is_text() ? indent->text() : pad("", bound.integer(1, 0), '<', " ");
    style.item_separator.pop_back();  // no space before a line break
  }
  if (const Value* separators = bound.get(2); separators != nullptr && !separators->is_none()) {
    const auto both = iterate(*separators);
    if (both.size() != 2) {
      throw TemplateError("tojson: separators is not a pair");
    }
    style.item_separator = to_string(both[0]);
    style.key_separator = to_string(both[1]);
  }
  return make_text(to_json(input, style));
}

Value urlencode_filter(Interpreter&, const Value& input, const Arguments&) {
  std::string out;
  for (const char c : to_string(input)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return make_text(std::move(out));
}

}  // namespace

void add_text_filters(FilterTable& table) {
  table.insert({
      {"upper", mapped<to_upper>},
      {"lower", mapped<to_lower>},
      {"capitalize", mapped<capitalize>},
      {"title", mapped<title_words>},
      {"trim", trim_filter},
      {"replace", replace_filter},
      {"string", string_filter},
      {"safe", safe_filter},
      {"escape", escape_filter},
      {"e", escape_filter},
      {"forceescape", force_escape_filter},
      {"indent", indent_filter},
      {"truncate", truncate_filter},
      {"wordcount", word_count},
      {"center", center_filter},
      {"format", format_filter},
      {"tojson", tojson_filter},
      {"urlencode", urlencode_filter},
  });
}

}  // namespace tandem::text::jinja
