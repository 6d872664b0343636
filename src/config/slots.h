// A field with its type erased: what the reader, the printer and the reference see of a struct.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tandem::config {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// What a struct says about one of its fields.
struct FieldInfo {
  std::string name;
  std::string doc;          // one sentence, for the reference
  std::string unset_means;  // of an optional field without a value
  double lowest = -kUnbounded;
  double highest = kUnbounded;
  bool open_below = false;                 // `lowest` itself is refused
  std::optional<double> only;              // all other values come in a later version
  std::vector<std::string> choices;        // the allowed words; empty: any
  std::vector<std::string> later_choices;  // words of later versions
  bool required = false;                   // must stand in the file
};

using ScalarValue = std::variant<bool, std::int64_t, double, std::string>;

enum class ScalarType { kBool, kInteger, kNumber, kString };

struct ScalarSlot {
  ScalarType type;
  bool optional;  // may be null, which means unset
  std::function<std::optional<ScalarValue>()> get;
  std::function<void(const std::optional<ScalarValue>&)> set;
};

struct ListSlot {
  ScalarType type;
  std::size_t fixed_size;  // 0: any
  std::function<std::vector<ScalarValue>()> get;
  std::function<void(const std::vector<ScalarValue>&)> set;
};

class FieldVisitor;

struct TableSlot {
  bool optional;
  std::function<bool()> present;
  std::function<void(bool)> set_present;
  std::function<void(FieldVisitor&)> visit;
};

struct TableListSlot {
  std::function<std::size_t()> size;
  std::function<void(std::size_t)> resize;  // to fresh items
  std::function<void(std::size_t, FieldVisitor&)> visit;
  std::function<void(FieldVisitor&)> visit_fresh;  // a default item
};

/// A table whose keys are free, kept as the text of one JSON object.
struct JsonText {
  std::string text = "{}";
  bool operator==(const JsonText&) const = default;
};

/// A key of a later version: known, and refused with any value but null, false or {}.
struct NotYet {
  bool operator==(const NotYet&) const = default;
};

/// Receives the fields of a struct in order.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void scalar(const FieldInfo& info, const ScalarSlot& slot) = 0;
  virtual void list(const FieldInfo& info, const ListSlot& slot) = 0;
  virtual void table(const FieldInfo& info, const TableSlot& slot) = 0;
  virtual void tables(const FieldInfo& info, const TableListSlot& slot) = 0;
  virtual void strings(const FieldInfo& info, std::map<std::string, std::string>& value) = 0;
  virtual void json(const FieldInfo& info, JsonText& value) = 0;
  virtual void later(const FieldInfo& info) = 0;
};

using VisitFields = std::function<void(FieldVisitor&)>;

}  // namespace tandem::config
