// Equality and order of values.
#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/value.h"

namespace tandem::text::jinja {
namespace {

double as_double(const Value& value) {
  if (const auto* b = value.get<bool>()) {
    return *b ? 1.0 : 0.0;
  }
  if (const auto* i = value.get<std::int64_t>()) {
    return static_cast<double>(*i);
  }
  return *value.get<double>();
}

std::int64_t as_int(const Value& value) {
  const auto* b = value.get<bool>();
  return b != nullptr ? (*b ? 1 : 0) : *value.get<std::int64_t>();
}

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is<double>() || b.is<double>()) {
    return three_way(as_double(a), as_double(b));
  }
  return three_way(as_int(a), as_int(b));
}

bool equal_elements(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  return a.entries.size() == b.entries.size() &&
         std::ranges::all_of(a.entries, [&](const auto& entry) {
           const Value* other = b.find(entry.first);
           return other != nullptr && equal(entry.second, *other);
         });
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return compare_numbers(a, b) == 0;
  }
  if (a.variant().index() != b.variant().index()) {
    return false;
  }
  if (a.is_text()) {
    return a.text() == b.text();
  }
  if (const auto* elements = a.elements()) {
    return equal_elements(*elements, *b.elements());
  }
  if (const auto* dict = a.get<DictPtr>()) {
    return equal_dicts(**dict, **b.get<DictPtr>());
  }
  if (const auto* view = a.get<ViewPtr>()) {
    return equal_elements((*view)->items, (*b.get<ViewPtr>())->items);
  }
  if (const auto* name_space = a.get<NamespacePtr>()) {
    return *name_space == *b.get<NamespacePtr>();
  }
  if (const auto* callable = a.get<CallablePtr>()) {
    return *callable == *b.get<CallablePtr>();
  }
  return a.is_none() || a.is_undefined();
}

int compare(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return compare_numbers(a, b);
  }
  if (a.is_text() && b.is_text()) {
    return three_way(a.text(), b.text());  // UTF-8 sorts like its characters
  }
  const auto* left = a.elements();
  const auto* right = b.elements();
  if (left != nullptr && right != nullptr && a.variant().index() == b.variant().index()) {
    for (std::size_t i = 0; i < std::min(left->size(), right->size()); ++i) {
      if (!equal((*left)[i], (*right)[i])) {
        return compare((*left)[i], (*right)[i]);
      }
    }
    return three_way(left->size(), right->size());
  }
  for (const Value* value : {&a, &b}) {
    if (const auto* undefined = value->get<Undefined>()) {
      throw TemplateError(undefined->message == nullptr ? "a value is undefined"
                                                        : *undefined->message);
    }
  }
  throw TemplateError(fmt::format("'{}' and '{}' cannot be ordered", type_name(a), type_name(b)));
}

}  // namespace tandem::text::jinja
