// Filters, tests, global functions and methods by name.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "text/jinja/interpreter.h"
#include "text/jinja/value.h"

namespace tandem::text::jinja {

using Filter = Value (*)(Interpreter&, const Value& input, const Arguments&);
using Test = bool (*)(Interpreter&, const Value& input, const Arguments&);

/// Null for an unknown name.
Filter find_filter(const std::string& name);
Test find_test(const std::string& name);

using FilterTable = std::unordered_map<std::string, Filter>;
void add_text_filters(FilterTable& table);
void add_sequence_filters(FilterTable& table);
void add_selection_filters(FilterTable& table);
void add_number_filters(FilterTable& table);

/// range, dict, namespace, raise_exception, strftime_now, joiner, cycler; or nothing.
std::optional<Value> find_global(const std::string& name);

/// A method bound to its object, a method that would change it (calling it raises), or nothing.
std::optional<Value> find_method(const Value& object, const std::string& name);
std::optional<Value> find_text_method(const Value& object, const std::string& name);
std::optional<Value> find_loop_member(const Value& loop, const std::string& name);

/// Arguments bound to parameter names; throws like Python for too many or unknown ones.
class Bound {
 public:
  Bound(std::string_view function,
        const Arguments& arguments,
        std::initializer_list<const char*> names);

  /// The argument of that position in the list of names, or null.
  [[nodiscard]] const Value* get(std::size_t i) const { return values_[i]; }
  [[nodiscard]] const Value& required(std::size_t i) const;
  [[nodiscard]] bool flag(std::size_t i, bool otherwise) const;
  [[nodiscard]] std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  [[nodiscard]] std::string text(std::size_t i, const std::string& otherwise) const;

 private:
  std::string function_;
  std::vector<const char*> names_;
  std::vector<const Value*> values_;
};

/// The integer that a value is; throws naming `what` otherwise.
std::int64_t expect_integer(const Value& value, std::string_view what);

/// What "attribute" arguments of filters do: a name, a dotted path or a number.
Value attribute_of(Interpreter& interpreter,
                   const Value& item,
                   const Value& path,
                   const Value* otherwise = nullptr);

}  // namespace tandem::text::jinja
