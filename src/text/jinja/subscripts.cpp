// Elements, slices and the operator "in".
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "text/jinja/operators.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

bool is_integer(const Value& value) {
  return value.is<std::int64_t>() || value.is<bool>();
}

std::int64_t as_int(const Value& value) {
  const auto* b = value.get<bool>();
  return b != nullptr ? (*b ? 1 : 0) : *value.get<std::int64_t>();
}

// Index into `size` elements, or nothing.
std::optional<std::size_t> checked_index(const Value& key, std::size_t size) {
  if (!is_integer(key)) {
    return std::nullopt;
  }
  const std::int64_t index = as_int(key);
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t at = index < 0 ? index + count : index;
  return at >= 0 && at < count ? std::optional(static_cast<std::size_t>(at)) : std::nullopt;
}

std::int64_t bound(const Value& value, std::int64_t otherwise, std::int64_t size, bool down) {
  if (value.is_none()) {
    return otherwise;
  }
  if (!is_integer(value)) {
    throw TemplateError("slice indices must be integers or None");
  }
  std::int64_t at = as_int(value);
  at = at < 0 ? std::max(at + size, std::int64_t{down ? -1 : 0}) : at;
  return std::min(at, down ? size - 1 : size);
}

template <class Take>
void walk_slice(std::int64_t size, const SliceBounds& bounds, const Take& take) {
  if (!bounds.step.is_none() && !is_integer(bounds.step)) {
    throw TemplateError("slice indices must be integers or None");
  }
  const std::int64_t step = bounds.step.is_none() ? 1 : as_int(bounds.step);
  if (step == 0) {
    throw TemplateError("slice step cannot be zero");
  }
  const bool down = step < 0;
  std::int64_t at = bound(bounds.begin, down ? size - 1 : 0, size, down);
  const std::int64_t end = bound(bounds.end, down ? -1 : size, size, down);
  while (down ? at > end : at < end) {
    take(static_cast<std::size_t>(at));
    if (step > size || step < -size) {
      break;
    }
    at += step;
  }
}

std::vector<std::string_view> split_characters(const std::string& text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode_utf8(text, at).length;
    out.push_back(std::string_view(text).substr(at, length));
    at += length;
  }
  return out;
}

}  // namespace

bool contains(const Value& container, const Value& item) {
  if (container.is_text()) {
    if (item.is_undefined()) {
      throw_undefined(item);
    }
    if (!item.is_text()) {
      throw TemplateError(
          fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    }
    return container.text().find(item.text()) != std::string::npos;
  }
  if (const auto* dict = container.get<DictPtr>()) {
    return (*dict)->find(item) != nullptr;
  }
  if (!container.is_iterable()) {
    throw TemplateError(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
  return std::ranges::any_of(iterate(container), [&](const Value& v) { return equal(v, item); });
}

Value item_or_undefined(const Value& object, const Value& key) {
  if (const auto* dict = object.get<DictPtr>()) {
    const Value* found = (*dict)->find(key);
    return found != nullptr ? *found : Value();
  }
  if (object.is_text()) {
    const auto characters = split_characters(object.text());
    const auto at = checked_index(key, characters.size());
    return at.has_value() ? make_text(std::string(characters[*at])) : Value();
  }
  const auto* view = object.get<ViewPtr>();
  const bool range = view != nullptr && (*view)->type == "range";
  const auto* elements = range ? &(*view)->items : object.elements();
  if (elements == nullptr) {
    return {};
  }
  const auto at = checked_index(key, elements->size());
  return at.has_value() ? (*elements)[*at] : Value();
}

Value slice(const Value& object, const SliceBounds& bounds) {
  if (object.is_undefined()) {
    throw_undefined(object);
  }
  if (object.is_text()) {
    const auto characters = split_characters(object.text());
    std::string out;
    walk_slice(static_cast<std::int64_t>(characters.size()), bounds, [&](std::size_t at) {
      out += characters[at];
    });
    return make_text(std::move(out));
  }
  const auto* view = object.get<ViewPtr>();
  const bool range = view != nullptr && (*view)->type == "range";
  const auto* elements = range ? &(*view)->items : object.elements();
  if (elements == nullptr) {
    throw TemplateError(fmt::format("'{}' object is not subscriptable", type_name(object)));
  }
  std::vector<Value> out;
  walk_slice(static_cast<std::int64_t>(elements->size()), bounds, [&](std::size_t at) {
    out.push_back((*elements)[at]);
  });
  return object.is<Tuple>() ? make_tuple(std::move(out)) : make_list(std::move(out));
}

}  // namespace tandem::text::jinja
