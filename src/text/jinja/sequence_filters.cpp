// Filters on lists and dicts.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

Value fold_case(const Value& value, bool case_sensitive) {
  return !case_sensitive && value.is_text() ? make_text(to_lower(value.text())) : value;
}

Value length_filter(Interpreter&, const Value& input, const Arguments&) {
  return make_int(length(input));
}

Value join_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"});
  const std::string separator = bound.text(0, "");
  std::string out;
  bool first = true;
  for (const Value& item : iterate(input)) {
    out += std::exchange(first, false) ? "" : separator;
    out +=
        to_string(bound.get(1) != nullptr ? attribute_of(interpreter, item, *bound.get(1)) : item);
  }
  return make_text(std::move(out));
}

Value first_filter(Interpreter&, const Value& input, const Arguments&) {
  const auto items = iterate(input);
  return items.empty() ? make_undefined("No first item, sequence was empty.") : items.front();
}

Value last_filter(Interpreter&, const Value& input, const Arguments&) {
  const auto items = iterate(input);
  return items.empty() ? make_undefined("No last item, sequence was empty.") : items.back();
}

Value list_filter(Interpreter&, const Value& input, const Arguments&) {
  return make_list(iterate(input));
}

Value reverse_filter(Interpreter&, const Value& input, const Arguments&) {
  auto items = iterate(input);
  std::ranges::reverse(items);
  if (!input.is_text()) {
    return make_generator(std::move(items));
  }
  std::string out;
  for (const Value& item : items) {
    out += item.text();
  }
  return make_text(std::move(out));
}

Value items_filter(Interpreter&, const Value& input, const Arguments&) {
  if (input.is_undefined()) {
    return make_generator({});
  }
  const auto* dict = input.get<DictPtr>();
  if (dict == nullptr) {
    throw TemplateError("Can only get item pairs from a mapping.");
  }
  std::vector<Value> items;
  for (const auto& [key, value] : (*dict)->entries) {
    items.push_back(make_tuple({key, value}));
  }
  return make_generator(std::move(items));
}

// Sorts by keys made once; equal keys keep their order, also when reversed.
std::vector<Value> sorted_by(std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  std::ranges::stable_sort(keyed, [reverse](const auto& a, const auto& b) {
    return reverse ? compare(b.first, a.first) < 0 : compare(a.first, b.first) < 0;
  });
  std::vector<Value> out;
  for (auto& [key, value] : keyed) {
    out.push_back(std::move(value));
  }
  return out;
}

Value sort_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = bound.flag(1, false);
  const Value* attribute = bound.get(2);
  const bool by_attribute = attribute != nullptr && !attribute->is_none();
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(input)) {
    std::vector<Value> parts;  // "a,b" sorts by several attributes
    if (by_attribute && attribute->is_text()) {
      std::string rest = attribute->text();
      for (std::size_t comma = 0; comma != std::string::npos;) {
        comma = rest.find(',');
        const Value path = make_text(rest.substr(0, comma));
        parts.push_back(fold_case(attribute_of(interpreter, item, path), case_sensitive));
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
      }
    } else {
      const Value key = by_attribute ? attribute_of(interpreter, item, *attribute) : item;
      parts.push_back(fold_case(key, case_sensitive));
    }
    keyed.emplace_back(make_list(std::move(parts)), item);
  }
  return make_list(sorted_by(std::move(keyed), bound.flag(0, false)));
}

Value dictsort_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = bound.text(1, "key");
  const auto* dict = input.get<DictPtr>();
  if (by != "key" && by != "value") {
    throw TemplateError("dictsort: by is neither key nor value");
  }
  if (dict == nullptr) {
    if (input.is_undefined()) {
      throw_undefined(input);
    }
    throw TemplateError(fmt::format("'{} object' has no attribute 'items'", type_name(input)));
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : (*dict)->entries) {
    keyed.emplace_back(fold_case(by == "key" ? key : value, bound.flag(0, false)),
                       make_tuple({key, value}));
  }
  return make_list(sorted_by(std::move(keyed), bound.flag(2, false)));
}

Value unique_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  std::vector<Value> seen;
  std::vector<Value> out;
  for (const Value& item : iterate(input)) {
    const Value key =
        fold_case(bound.get(1) != nullptr ? attribute_of(interpreter, item, *bound.get(1)) : item,
                  bound.flag(0, false));
    if (std::ranges::none_of(seen, [&](const Value& old) { return equal(old, key); })) {
      seen.push_back(key);
      out.push_back(item);
    }
  }
  return make_generator(std::move(out));
}

template <bool kMax>
Value extreme_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Bound bound(kMax ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  std::optional<std::pair<Value, Value>> best;
  for (const Value& item : iterate(input)) {
    const Value key =
        fold_case(bound.get(1) != nullptr ? attribute_of(interpreter, item, *bound.get(1)) : item,
                  bound.flag(0, false));
    const bool better =
        !best.has_value() || (kMax ? compare(key, best->first) > 0 : compare(key, best->first) < 0);
    if (better) {
      best = {key, item};
    }
  }
  return best.has_value() ? best->second
                          : make_undefined("No aggregated item, sequence was empty.");
}

Value sum_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  Value total = bound.get(1) != nullptr ? *bound.get(1) : make_int(0);
  const Value* attribute = bound.get(0);
  const bool by_attribute = attribute != nullptr && !attribute->is_none();
  for (const Value& item : iterate(input)) {
    total =
        arithmetic("+", total, by_attribute ? attribute_of(interpreter, item, *attribute) : item);
  }
  return total;
}

Value batch_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("batch", arguments, {"linecount", "fill_with"});
  const std::int64_t size = expect_integer(bound.required(0), "batch");
  if (size <= 0 || size > (1 << 20)) {
    throw TemplateError("batch: the size is out of range");
  }
  std::vector<Value> out;
  std::vector<Value> row;
  const auto flush = [&] { out.push_back(make_list(std::exchange(row, {}))); };
  for (const Value& item : iterate(input)) {
    if (static_cast<std::int64_t>(row.size()) == size) {
      flush();
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    if (bound.get(1) != nullptr && !bound.get(1)->is_none()) {
      row.resize(static_cast<std::size_t>(size), *bound.get(1));
    }
    flush();
  }
  return make_generator(std::move(out));
}

Value slice_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("slice", arguments, {"slices", "fill_with"});
  const std::int64_t count = expect_integer(bound.required(0), "slice");
  if (count <= 0 || count > (1 << 20)) {
    throw TemplateError("slice: the number of slices is out of range");
  }
  const auto items = iterate(input);
  const auto size = static_cast<std::int64_t>(items.size());
  const std::int64_t extra = size % count;
  std::vector<Value> out;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t end = at + size / count + (i < extra ? 1 : 0);
    std::vector<Value> part(items.begin() + at, items.begin() + end);
    const Value* fill = bound.get(1);
    if (fill != nullptr && !fill->is_none() && i >= extra && extra > 0) {
      part.push_back(*fill);
    }
    out.push_back(make_list(std::move(part)));
    at = end;
  }
  return make_generator(std::move(out));
}

Value groupby_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"});
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(input)) {
    const Value key = attribute_of(interpreter, item, bound.required(0), bound.get(1));
    keyed.emplace_back(fold_case(key, bound.flag(2, false)), make_tuple({key, item}));
  }
  std::vector<std::pair<Value, std::vector<Value>>> groups;  // key of the first member, members
  Value last;
  for (const Value& entry : sorted_by(std::move(keyed), false)) {
    const auto& both = *entry.elements();
    const Value folded = fold_case(both[0], bound.flag(2, false));
    if (groups.empty() || !equal(last, folded)) {
      groups.emplace_back(both[0], std::vector<Value>());
    }
    groups.back().second.push_back(both[1]);
    last = folded;
  }
  std::vector<Value> out;
  for (auto& [key, members] : groups) {
    out.push_back(make_tuple({key, make_list(std::move(members))}));
  }
  return make_list(std::move(out));
}

}  // namespace

void add_sequence_filters(FilterTable& table) {
  table.insert({
      {"length", length_filter},
      {"count", length_filter},
      {"join", join_filter},
      {"first", first_filter},
      {"last", last_filter},
      {"list", list_filter},
      {"reverse", reverse_filter},
      {"items", items_filter},
      {"sort", sort_filter},
      {"dictsort", dictsort_filter},
      {"unique", unique_filter},
      {"min", extreme_filter<false>},
      {"max", extreme_filter<true>},
      {"sum", sum_filter},
      {"batch", batch_filter},
      {"slice", slice_filter},
      {"groupby", groupby_filter},
  });
}

}  // namespace tandem::text::jinja
