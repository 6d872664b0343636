// Structs with a `visit` list of fields, read from YAML and printed again.
#pragma once

#include <map>
#include <string>

#include "config/document.h"
#include "config/fields.h"

namespace tandem::config {

/// Sets the fields that the document gives. Throws UserError with the place for an unknown key
/// (with the nearest known one), a wrong type or range, a missing required key, a key or word of a
/// later version.
void read_fields(const Document& document, const VisitFields& visit);

/// All fields with their values as YAML, defaults included; reads back as the same struct.
std::string print_fields(const VisitFields& visit);

/// Each field's path ("data.train.0.weight") with its value as text. Items of a list of tables
/// appear once more as those of a fresh item, under the index "*".
std::map<std::string, std::string> flatten_fields(const VisitFields& visit);

/// Markdown tables of all keys: type, default, meaning; one section a table.
std::string describe_fields(const VisitFields& visit);

template <class T>
VisitFields fields_of(T& value) {
  return [&value](FieldVisitor& visitor) {
    Fields fields(visitor);
    value.visit(fields);
  };
}

template <class T>
T read(const Document& document) {
  T value;
  read_fields(document, fields_of(value));
  return value;
}

template <class T>
std::string to_yaml(T value) {
  return print_fields(fields_of(value));
}

/// The paths whose values differ from those of a default-made struct, in order.
std::vector<std::string> changed_fields(const VisitFields& value, const VisitFields& fresh);

template <class T>
std::vector<std::string> changed_paths(T value) {
  T fresh;
  return changed_fields(fields_of(value), fields_of(fresh));
}

}  // namespace tandem::config
