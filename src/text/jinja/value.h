// Values of the template language: Python's, as far as a template can tell.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tandem::text::jinja {

class Interpreter;
class Value;
struct Arguments;

/// What an absent name or member gives. Printing it gives nothing, using it raises `message`.
struct Undefined {
  std::shared_ptr<const std::string> message;
};

struct None {};

struct Text {
  std::string text;   // valid UTF-8
  bool safe = false;  // marked by the filter "safe": what is added to it gets escaped
};

/// Elements of a list or tuple.
struct Sequence {
  std::vector<Value> items;
  int depth = 1;  // of nesting, bounded so that destruction and printing cannot overflow the stack
};

/// Keys keep their order; 1, 1.0 and true are one key.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;

  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;
  void set(Value key, Value value);
};

/// A range, or the keys, values or items of a dict: counts and iterates, is no list.
struct View {
  std::string type;   // "range", "dict_items", ...
  std::string print;  // what str() gives
  std::vector<Value> items;
};

/// What lazy filters return: iterates once, has no length.
struct Generator {
  std::vector<Value> items;
};

/// The one value that a template can change.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

struct Callable {
  std::string name;
  std::function<Value(Interpreter&, const Arguments&)> call;
};

/// The variable `loop`.
struct Loop;

using TextPtr = std::shared_ptr<const Text>;
using ListPtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using ViewPtr = std::shared_ptr<const View>;
using GeneratorPtr = std::shared_ptr<Generator>;
using NamespacePtr = std::shared_ptr<Namespace>;
using CallablePtr = std::shared_ptr<const Callable>;
using LoopPtr = std::shared_ptr<Loop>;

struct Tuple {
  ListPtr items;
};

class Value {
 public:
  using Variant = std::variant<Undefined,
                               None,
                               bool,
                               std::int64_t,
                               double,
                               TextPtr,
                               ListPtr,
                               Tuple,
                               DictPtr,
                               ViewPtr,
                               GeneratorPtr,
                               NamespacePtr,
                               CallablePtr,
                               LoopPtr>;

  Value() = default;
  Value(Variant v) : v_(std::move(v)) {}  // NOLINT(google-explicit-constructor)

  template <class T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(v_);
  }
  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&v_);
  }
  [[nodiscard]] const Variant& variant() const { return v_; }

  [[nodiscard]] bool is_undefined() const { return is<Undefined>(); }
  [[nodiscard]] bool is_none() const { return is<None>(); }
  [[nodiscard]] bool is_text() const { return is<TextPtr>(); }
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_iterable() const;

  /// The text of a string; the value is one.
  [[nodiscard]] const std::string& text() const { return std::get<TextPtr>(v_)->text; }

  /// The elements of a list or tuple, or null.
  [[nodiscard]] const std::vector<Value>* elements() const;

 private:
  Variant v_;
};

/// Positional and named arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Loop {
  std::vector<Value> items;
  std::size_t at = 0;
  std::int64_t depth = 1;
  std::string last_changed;  // what the previous changed() was called with, printed
  bool called_changed = false;
  std::function<Value(const Value&)> recurse;  // of a recursive loop
};

/// An error of the template or of what it was given. `line` 0: not known yet.
class TemplateError : public std::exception {
 public:
  explicit TemplateError(std::string message, int line = 0, bool raised_by_template = false)
      : message_(std::move(message)), line_(line), raised_(raised_by_template) {}

  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  [[nodiscard]] int line() const { return line_; }
  [[nodiscard]] bool raised_by_template() const { return raised_; }
  void set_line(int line) { line_ = line_ == 0 ? line : line_; }

 private:
  std::string message_;
  int line_;
  bool raised_;
};

Value make_undefined(std::string message);
Value make_text(std::string text, bool safe = false);
Value make_list(std::vector<Value> items);
Value make_tuple(std::vector<Value> items);
Value make_dict(Dict dict);
Value make_generator(std::vector<Value> items);
Value make_view(std::string type, std::string print, std::vector<Value> items);
Value make_callable(std::string name,
                    std::function<Value(Interpreter&, const Arguments&)> function);
inline Value make_int(std::int64_t i) {
  return Value::Variant(i);
}
inline Value make_bool(bool b) {
  return Value::Variant(b);
}
inline Value make_none() {
  return Value::Variant(None{});
}

/// Python's name of the type: "str", "int", "NoneType", ...
std::string type_name(const Value& value);

bool is_true(const Value& value);
bool equal(const Value& a, const Value& b);

/// Negative, zero, positive. Throws where Python cannot order the two.
int compare(const Value& a, const Value& b);

/// The elements in iteration order; uses up a generator. Throws where the value does not iterate.
std::vector<Value> iterate(const Value& value);

/// len(): throws where there is none.
std::int64_t length(const Value& value);

}  // namespace tandem::text::jinja
