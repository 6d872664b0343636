// Which C++ types of a struct's fields are scalars, optionals and lists, and how they are stored.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "config/slots.h"

namespace tandem::config {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};

template <class T>
constexpr bool kIsScalar = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

template <class T>
constexpr ScalarType scalar_type() {
  if constexpr (std::is_same_v<T, bool>) {
    return ScalarType::kBool;
  } else if constexpr (std::is_integral_v<T>) {
    return ScalarType::kInteger;
  } else if constexpr (std::is_floating_point_v<T>) {
    return ScalarType::kNumber;
  } else {
    return ScalarType::kString;
  }
}

template <class T>
ScalarValue to_scalar(const T& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<std::int64_t>(value);
  } else {
    return value;
  }
}

template <class T>
T from_scalar(const ScalarValue& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<T>(std::get<std::int64_t>(value));
  } else {
    return std::get<T>(value);
  }
}

}  // namespace tandem::config
