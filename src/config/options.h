// What a struct may say about a field behind its name: v("low", low, doc("..."), in(0, 1)).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/slots.h"

namespace tandem::config {

struct Doc {
  const char* text;
};
struct Range {
  double lowest;
  double highest;
  bool open_below = false;
};
struct Choices {
  std::vector<std::string> names;
};
struct LaterChoices {
  std::vector<std::string> names;
};
struct Only {
  double value;
};
struct Required {};
struct DefaultNote {
  const char* text;
};

inline Doc doc(const char* text) {
  return {text};
}
inline Range in(double lowest, double highest) {
  return {lowest, highest};
}
inline Range at_least(double lowest) {
  return {lowest, kUnbounded};
}
inline Range above(double bound) {
  return {bound, kUnbounded, true};
}
inline Choices one_of(std::vector<std::string> names) {
  return {std::move(names)};
}
/// Names that are known and refused as "not in this version".
inline LaterChoices later(std::vector<std::string> names) {
  return {std::move(names)};
}
/// Every other number is refused as "not in this version".
inline Only only(double value) {
  return {value};
}
inline Required required() {
  return {};
}
/// What an unset value means, for the reference: "from the memory plan".
inline DefaultNote unset_means(const char* text) {
  return {text};
}

inline void apply(FieldInfo& info, const Doc& option) {
  info.doc = option.text;
}
inline void apply(FieldInfo& info, const Range& option) {
  info.lowest = option.lowest;
  info.highest = option.highest;
  info.open_below = option.open_below;
}
inline void apply(FieldInfo& info, const Choices& option) {
  info.choices = option.names;
}
inline void apply(FieldInfo& info, const LaterChoices& option) {
  info.later_choices = option.names;
}
inline void apply(FieldInfo& info, const Only& option) {
  info.only = option.value;
}
inline void apply(FieldInfo& info, const Required&) {
  info.required = true;
}
inline void apply(FieldInfo& info, const DefaultNote& option) {
  info.unset_means = option.text;
}

}  // namespace tandem::config
