// One list of fields a struct serves reader, printer, reference and help:
//
//   struct Clip {
//     double low = 0.2;
//     template <class V> void visit(V& v) { v("low", low, doc("..."), in(0, 1)); }
//   };
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "config/scalar_types.h"
#include "config/slots.h"

namespace tandem::config {

/// The `v` of a struct's `visit`: turns typed fields into slots for a FieldVisitor.
class Fields {
 public:
  explicit Fields(FieldVisitor& visitor) : visitor_(visitor) {}

  template <class T, class... Options>
  void operator()(const char* name, T& value, const Options&... options) {
    FieldInfo info;
    info.name = name;
    (apply(info, options), ...);
    put(info, value);
  }

 private:
  template <class T>
  void put(const FieldInfo& info, T& value) {
    if constexpr (kIsScalar<T>) {
      visitor_.scalar(
          info,
          {scalar_type<T>(),
           false,
           [&value] { return std::optional<ScalarValue>(to_scalar(value)); },
           [&value](const std::optional<ScalarValue>& v) { value = from_scalar<T>(*v); }});
    } else if constexpr (IsOptional<T>::value) {
      put_optional(info, value);
    } else if constexpr (IsVector<T>::value || IsArray<T>::value) {
      put_list(info, value);
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      visitor_.strings(info, value);
    } else if constexpr (std::is_same_v<T, JsonText>) {
      visitor_.json(info, value);
    } else if constexpr (std::is_same_v<T, NotYet>) {
      visitor_.later(info);
    } else {
      visitor_.table(info, {false, [] { return true; }, [](bool) {}, visit_of(value)});
    }
  }

  template <class T>
  void put_optional(const FieldInfo& info, std::optional<T>& value) {
    if constexpr (kIsScalar<T>) {
      visitor_.scalar(info,
                      {scalar_type<T>(),
                       true,
                       [&value] {
                         return value ? std::optional<ScalarValue>(to_scalar(*value))
                                      : std::nullopt;
                       },
                       [&value](const std::optional<ScalarValue>& v) {
                         value = v ? std::optional<T>(from_scalar<T>(*v)) : std::nullopt;
                       }});
    } else {
      const auto visit = [&value](FieldVisitor& visitor) {
        T absent;  // lists the fields of a table that is not there
        Fields fields(visitor);
        (value ? *value : absent).visit(fields);
      };
      visitor_.table(
          info,
          {true,
           [&value] { return value.has_value(); },
           [&value](bool present) { value = present ? std::optional<T>(T()) : std::nullopt; },
           visit});
    }
  }

  template <class C>
  void put_list(const FieldInfo& info, C& list) {
    using T = typename C::value_type;
    if constexpr (kIsScalar<T>) {
      ListSlot slot{scalar_type<T>(), IsArray<C>::value ? list.size() : 0, {}, {}};
      slot.get = [&list] {
        std::vector<ScalarValue> values;
        for (const auto& value : list) {
          values.push_back(to_scalar(value));
        }
        return values;
      };
      slot.set = [&list](const std::vector<ScalarValue>& values) {
        if constexpr (IsVector<C>::value) {
          list.resize(values.size());
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
          list[i] = from_scalar<T>(values[i]);
        }
      };
      visitor_.list(info, slot);
    } else {
      visitor_.tables(
          info,
          {[&list] { return list.size(); },
           [&list](std::size_t size) { list.assign(size, T()); },
           [&list](std::size_t i, FieldVisitor& visitor) { visit_of(list[i])(visitor); },
           [](FieldVisitor& visitor) {
             T fresh;
             visit_of(fresh)(visitor);
           }});
    }
  }

  template <class T>
  static std::function<void(FieldVisitor&)> visit_of(T& value) {
    return [&value](FieldVisitor& visitor) {
      Fields fields(visitor);
      value.visit(fields);
    };
  }

  FieldVisitor& visitor_;
};

}  // namespace tandem::config
