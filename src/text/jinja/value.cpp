#include "text/jinja/value.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/print.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

constexpr int kMaxDepth = 200;

int depth_of(const Value& value) {
  if (const auto* list = value.get<ListPtr>()) {
    return (*list)->depth;
  }
  if (const auto* tuple = value.get<Tuple>()) {
    return tuple->items->depth;
  }
  if (const auto* dict = value.get<DictPtr>()) {
    return (*dict)->depth;
  }
  if (const auto* view = value.get<ViewPtr>()) {
    int depth = 0;
    for (const Value& item : (*view)->items) {
      depth = std::max(depth, depth_of(item));
    }
    return depth + 1;
  }
  return value.is<GeneratorPtr>() || value.is<LoopPtr>() ? kMaxDepth / 2 : 0;
}

int checked_depth(int depth) {
  if (depth >= kMaxDepth) {
    throw TemplateError("values are nested too deeply");
  }
  return depth + 1;
}

std::shared_ptr<const Sequence> make_sequence(std::vector<Value> items) {
  int depth = 0;
  for (const Value& item : items) {
    depth = std::max(depth, depth_of(item));
  }
  return std::make_shared<Sequence>(Sequence{std::move(items), checked_depth(depth)});
}

std::vector<Value> characters(const std::string& text) {
  std::vector<Value> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode_utf8(text, at).length;
    out.push_back(make_text(text.substr(at, length)));
    at += length;
  }
  return out;
}

}  // namespace

const Value* Dict::find(const Value& key) const {
  if (key.is_text()) {
    return find(key.text());
  }
  for (const auto& [k, value] : entries) {
    if (equal(k, key)) {
      return &value;
    }
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [k, value] : entries) {
    if (k.is_text() && k.text() == key) {
      return &value;
    }
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  depth = std::max(depth, checked_depth(std::max(depth_of(key), depth_of(value))));
  for (auto& [k, old] : entries) {
    if (equal(k, key)) {
      old = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::move(key), std::move(value));
}

bool Value::is_number() const {
  return is<bool>() || is<std::int64_t>() || is<double>();
}

bool Value::is_iterable() const {
  return is_undefined() || is_text() || elements() != nullptr || is<DictPtr>() || is<ViewPtr>() ||
         is<GeneratorPtr>() || is<LoopPtr>();
}

const std::vector<Value>* Value::elements() const {
  if (const auto* list = get<ListPtr>()) {
    return &(*list)->items;
  }
  if (const auto* tuple = get<Tuple>()) {
    return &tuple->items->items;
  }
  return nullptr;
}

Value make_undefined(std::string message) {
  return Value::Variant(Undefined{std::make_shared<const std::string>(std::move(message))});
}

Value make_text(std::string text, bool safe) {
  return Value::Variant(std::make_shared<const Text>(Text{std::move(text), safe}));
}

Value make_list(std::vector<Value> items) {
  return Value::Variant(make_sequence(std::move(items)));
}

Value make_tuple(std::vector<Value> items) {
  return Value::Variant(Tuple{make_sequence(std::move(items))});
}

Value make_dict(Dict dict) {
  return Value::Variant(std::make_shared<const Dict>(std::move(dict)));
}

Value make_generator(std::vector<Value> items) {
  return Value::Variant(std::make_shared<Generator>(Generator{std::move(items)}));
}

Value make_view(std::string type, std::string print, std::vector<Value> items) {
  return Value::Variant(
      std::make_shared<const View>(View{std::move(type), std::move(print), std::move(items)}));
}

Value make_callable(std::string name,
                    std::function<Value(Interpreter&, const Arguments&)> function) {
  return Value::Variant(
      std::make_shared<const Callable>(Callable{std::move(name), std::move(function)}));
}

std::string type_name(const Value& value) {
  static constexpr const char* kNames[] = {"Undefined",
                                           "NoneType",
                                           "bool",
                                           "int",
                                           "float",
                                           "str",
                                           "list",
                                           "tuple",
                                           "dict",
                                           "view",
                                           "generator",
                                           "Namespace",
                                           "function",
                                           "LoopContext"};
  const auto* view = value.get<ViewPtr>();
  return view != nullptr ? (*view)->type : kNames[value.variant().index()];
}

bool is_true(const Value& value) {
  if (value.is_number()) {
    return !equal(value, make_int(0));
  }
  if (value.is_undefined() || value.is_none()) {
    return false;
  }
  if (value.is_text()) {
    return !value.text().empty();
  }
  if (const auto* elements = value.elements()) {
    return !elements->empty();
  }
  if (const auto* dict = value.get<DictPtr>()) {
    return !(*dict)->entries.empty();
  }
  if (const auto* view = value.get<ViewPtr>()) {
    return !(*view)->items.empty();
  }
  return true;
}

std::vector<Value> iterate(const Value& value) {
  if (const auto* elements = value.elements()) {
    return *elements;
  }
  if (value.is_text()) {
    return characters(value.text());
  }
  if (const auto* dict = value.get<DictPtr>()) {
    std::vector<Value> keys;
    for (const auto& entry : (*dict)->entries) {
      keys.push_back(entry.first);
    }
    return keys;
  }
  if (const auto* view = value.get<ViewPtr>()) {
    return (*view)->items;
  }
  if (const auto* generator = value.get<GeneratorPtr>()) {
    return std::exchange((*generator)->items, {});
  }
  if (value.is_undefined()) {
    return {};
  }
  throw TemplateError(fmt::format("'{}' object is not iterable", type_name(value)));
}

std::int64_t length(const Value& value) {
  if (value.is_text()) {
    return static_cast<std::int64_t>(count_characters(value.text()));
  }
  if (const auto* dict = value.get<DictPtr>()) {
    return static_cast<std::int64_t>((*dict)->entries.size());
  }
  if (const auto* loop = value.get<LoopPtr>()) {
    return static_cast<std::int64_t>((*loop)->items.size());
  }
  if (value.elements() != nullptr || value.is<ViewPtr>() || value.is_undefined()) {
    return static_cast<std::int64_t>(iterate(value).size());
  }
  throw TemplateError(fmt::format("object of type '{}' has no len()", type_name(value)));
}

}  // namespace tandem::text::jinja
