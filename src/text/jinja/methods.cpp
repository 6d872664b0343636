// Methods of dicts, lists, tuples and namespaces, and the members of `loop`.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/print.h"
#include "text/jinja/registry.h"

namespace tandem::text::jinja {
namespace {

Value dict_get(const Dict& dict, const Arguments& arguments) {
  const Bound bound("get", arguments, {"key", "default"});
  if (const Value* found = dict.find(bound.required(0))) {
    return *found;
  }
  return bound.get(1) != nullptr ? *bound.get(1) : make_none();
}

Value dict_view(const Dict& dict, const std::string& name, const Arguments& arguments) {
  const Bound bound(name, arguments, {});
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries) {
    items.push_back(name == "keys" ? key : name == "values" ? value : make_tuple({key, value}));
  }
  return make_view("dict_" + name, "", std::move(items));
}

template <std::size_t kSize>
bool is_one_of(const std::string& name, const std::array<std::string_view, kSize>& names) {
  return std::ranges::find(names, name) != names.end();
}

// The sandbox lets no template change what it was given.
Value forbidden(const Value& object, const std::string& name) {
  return make_undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe", name, type_name(object)));
}

std::optional<Value> find_dict_method(const Value& object, const std::string& name) {
  static constexpr std::array<std::string_view, 5> kChanging = {
      "clear", "pop", "popitem", "setdefault", "update"};
  const DictPtr dict = *object.get<DictPtr>();
  if (is_one_of(name, kChanging)) {
    return forbidden(object, name);
  }
  if (name == "get") {
    return make_callable(name, [dict](Interpreter&, const Arguments& arguments) {
      return dict_get(*dict, arguments);
    });
  }
  if (name == "keys" || name == "values" || name == "items") {
    return make_callable(name, [dict, name](Interpreter&, const Arguments& arguments) {
      return dict_view(*dict, name, arguments);
    });
  }
  if (name == "copy") {
    return make_callable(name, [object](Interpreter&, const Arguments&) { return object; });
  }
  return std::nullopt;
}

Value index_of(const std::vector<Value>& items, const Arguments& arguments) {
  const Bound bound("index", arguments, {"value", "start", "stop"});
  const auto size = static_cast<std::int64_t>(items.size());
  const auto begin = std::clamp(bound.integer(1, 0), std::int64_t{0}, size);
  const auto end = std::clamp(bound.integer(2, size), begin, size);
  for (std::int64_t i = begin; i < end; ++i) {
    if (equal(items[i], bound.required(0))) {
      return make_int(i);
    }
  }
  throw TemplateError("the value is not in the list");
}

std::optional<Value> find_list_method(const Value& object, const std::string& name) {
  static constexpr std::array<std::string_view, 8> kChanging = {
      "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
  if (object.is<ListPtr>() && is_one_of(name, kChanging)) {
    return forbidden(object, name);
  }
  if (name == "index") {
    return make_callable(name, [object](Interpreter&, const Arguments& arguments) {
      return index_of(*object.elements(), arguments);
    });
  }
  if (name == "count") {
    return make_callable(name, [object](Interpreter&, const Arguments& arguments) {
      const Bound bound("count", arguments, {"value"});
      return make_int(std::ranges::count_if(
          *object.elements(), [&](const Value& item) { return equal(item, bound.required(0)); }));
    });
  }
  if (name == "copy" && object.is<ListPtr>()) {
    return make_callable(name, [object](Interpreter&, const Arguments&) { return object; });
  }
  return std::nullopt;
}

Value loop_changed(Loop& loop, const Arguments& arguments) {
  std::string now = to_repr(make_tuple(arguments.positional));
  const bool changed = !loop.called_changed || loop.last_changed != now;
  loop.called_changed = true;
  loop.last_changed = std::move(now);
  return make_bool(changed);
}

}  // namespace

std::optional<Value> find_loop_member(const Value& value, const std::string& name) {
  const LoopPtr loop = *value.get<LoopPtr>();
  const auto at = static_cast<std::int64_t>(loop->at);
  const auto size = static_cast<std::int64_t>(loop->items.size());
  const std::pair<std::string_view, std::int64_t> numbers[] = {{"index", at + 1},
                                                               {"index0", at},
                                                               {"length", size},
                                                               {"revindex", size - at},
                                                               {"revindex0", size - at - 1},
                                                               {"depth", loop->depth},
                                                               {"depth0", loop->depth - 1}};
  for (const auto& [known, number] : numbers) {
    if (known == name) {
      return make_int(number);
    }
  }
  if (name == "first") {
    return make_bool(at == 0);
  }
  if (name == "last") {
    return make_bool(at + 1 == size);
  }
  if (name == "previtem") {
    return at > 0 ? loop->items[at - 1] : make_undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return at + 1 < size ? loop->items[at + 1] : make_undefined("there is no next item");
  }
  if (name == "cycle") {
    return make_callable(name, [at](Interpreter&, const Arguments& arguments) {
      const auto& items = arguments.positional;
      return items.empty() ? throw TemplateError("no items for cycling given")
                           : items[static_cast<std::size_t>(at) % items.size()];
    });
  }
  if (name == "changed") {
    const std::weak_ptr<Loop> weak = loop;  // the loop may come to hold this very function
    return make_callable(name, [weak](Interpreter&, const Arguments& arguments) {
      const LoopPtr alive = weak.lock();
      return alive == nullptr ? make_bool(true) : loop_changed(*alive, arguments);
    });
  }
  return std::nullopt;
}

std::optional<Value> find_method(const Value& object, const std::string& name) {
  if (object.is_text()) {
    return find_text_method(object, name);
  }
  if (object.is<DictPtr>()) {
    return find_dict_method(object, name);
  }
  if (object.elements() != nullptr) {
    return find_list_method(object, name);
  }
  if (object.is<LoopPtr>()) {
    return find_loop_member(object, name);
  }
  if (const auto* name_space = object.get<NamespacePtr>()) {
    for (const auto& [known, value] : (*name_space)->attributes) {
      if (known == name) {
        return value;
      }
    }
  }
  return std::nullopt;
}

}  // namespace tandem::text::jinja
