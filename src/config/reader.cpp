#include <algorithm>

#include "base/error.h"
#include "config/config.h"
#include "config/convert.h"
#include "config/suggest.h"

namespace tandem::config {
namespace {

std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

// Lists the names of one table, to find unknown keys before anything is read.
class NameCollector final : public FieldVisitor {
 public:
  std::vector<std::string> names;

  void scalar(const FieldInfo& info, const ScalarSlot&) override { names.push_back(info.name); }
  void list(const FieldInfo& info, const ListSlot&) override { names.push_back(info.name); }
  void table(const FieldInfo& info, const TableSlot&) override { names.push_back(info.name); }
  void tables(const FieldInfo& info, const TableListSlot&) override { names.push_back(info.name); }
  void strings(const FieldInfo& info, std::map<std::string, std::string>&) override {
    names.push_back(info.name);
  }
  void json(const FieldInfo& info, JsonText&) override { names.push_back(info.name); }
  void later(const FieldInfo& info) override { names.push_back(info.name); }
};

class TableReader final : public FieldVisitor {
 public:
  /// `all_paths`: every key of the whole document, for keys that stand in the wrong table.
  TableReader(const Document& document,
              const Node& table,
              std::string path,
              const std::vector<std::string>& all_paths)
      : document_(document), table_(table), path_(std::move(path)), all_paths_(all_paths) {}

  void read(const VisitFields& visit) {
    NameCollector known;
    visit(known);
    for (const Entry& entry : table_.entries) {
      if (std::find(known.names.begin(), known.names.end(), entry.key) == known.names.end()) {
        refuse_unknown(entry, known.names);
      }
    }
    visit(*this);
  }

  void scalar(const FieldInfo& info, const ScalarSlot& slot) override {
    const Node* node = find(info);
    if (node == nullptr) {
      return;
    }
    if (node->kind == Node::Kind::kNull && slot.optional) {
      slot.set(std::nullopt);
      return;
    }
    slot.set(convert(info, *node, slot.type, join(path_, info.name)));
  }

  void list(const FieldInfo& info, const ListSlot& slot) override {
    const Node* node = find(info);
    if (node == nullptr) {
      return;
    }
    const std::string path = join(path_, info.name);
    if (node->kind != Node::Kind::kList) {
      fail<UserError>("{}: {} wants a list, not {}", document_.place(*node), path, describe(*node));
    }
    if (slot.fixed_size != 0 && node->items.size() != slot.fixed_size) {
      fail<UserError>("{}: {} wants {} values, not {}",
                      document_.place(*node),
                      path,
                      slot.fixed_size,
                      node->items.size());
    }
    std::vector<ScalarValue> values;
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      values.push_back(convert(info, node->items[i], slot.type, fmt::format("{}.{}", path, i)));
    }
    slot.set(values);
  }

  void table(const FieldInfo& info, const TableSlot& slot) override {
    const Node* node = find(info);
    if (node == nullptr || (node->kind == Node::Kind::kNull && slot.optional)) {
      return;
    }
    slot.set_present(true);
    read_table(*node, join(path_, info.name), slot.visit);
  }

  void tables(const FieldInfo& info, const TableListSlot& slot) override {
    const Node* node = find(info);
    if (node == nullptr) {
      return;
    }
    const std::string path = join(path_, info.name);
    if (node->kind != Node::Kind::kList) {
      fail<UserError>(
          "{}: {} wants a list of tables, not {}", document_.place(*node), path, describe(*node));
    }
    slot.resize(node->items.size());
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const auto visit = [&](FieldVisitor& visitor) { slot.visit(i, visitor); };
      read_table(node->items[i], fmt::format("{}.{}", path, i), visit);
    }
  }

  void strings(const FieldInfo& info, std::map<std::string, std::string>& value) override {
    const Node* node = find(info);
    if (node == nullptr) {
      return;
    }
    const std::string path = join(path_, info.name);
    if (node->kind != Node::Kind::kTable) {
      fail<UserError>(
          "{}: {} wants a table, not {}", document_.place(*node), path, describe(*node));
    }
    value.clear();
    for (const Entry& entry : node->entries) {
      const auto text = convert({}, entry.value, ScalarType::kString, join(path, entry.key));
      value[entry.key] = std::get<std::string>(text);
    }
  }

  void json(const FieldInfo& info, JsonText& value) override {
    const Node* node = find(info);
    if (node == nullptr) {
      return;
    }
    if (node->kind != Node::Kind::kTable) {
      fail<UserError>("{}: {} wants a table, not {}",
                      document_.place(*node),
                      join(path_, info.name),
                      describe(*node));
    }
    value.text = to_json(*node);
  }

  void later(const FieldInfo& info) override {
    const Node* node = table_.find(info.name);
    const bool off = node == nullptr || node->kind == Node::Kind::kNull ||
                     (node->kind == Node::Kind::kScalar && node->text == "false") ||
                     (node->kind == Node::Kind::kTable && node->entries.empty()) ||
                     (node->kind == Node::Kind::kList && node->items.empty());
    if (!off) {
      fail<UserError>(
          "{}: {}: not in this version", document_.place(*node), join(path_, info.name));
    }
  }

 private:
  const Node* find(const FieldInfo& info) const {
    const Node* node = table_.find(info.name);
    if (node == nullptr && info.required) {
      fail<UserError>("{}: {} is missing", document_.place(table_), join(path_, info.name));
    }
    return node;
  }

  void read_table(const Node& node, const std::string& path, const VisitFields& visit) const {
    if (node.kind != Node::Kind::kTable && node.kind != Node::Kind::kNull) {
      fail<UserError>("{}: {} wants a table, not {}", document_.place(node), path, describe(node));
    }
    TableReader(document_, node, path, all_paths_).read(visit);
  }

  [[noreturn]] void refuse_unknown(const Entry& entry,
                                   const std::vector<std::string>& known) const {
    const std::string where =
        entry.line > 0 ? fmt::format("{}:{}", document_.name(), entry.line) : place_of(entry.value);
    std::string hint;
    if (const auto name = nearest(entry.key, known)) {
      hint = fmt::format("; did you mean {}?", join(path_, *name));
    } else {
      for (const std::string& path : all_paths_) {
        if (hint.empty() && (path == entry.key || path.ends_with("." + entry.key))) {
          hint = fmt::format("; did you mean {}?", path);
        }
      }
    }
    fail<UserError>("{}: unknown key {}{}", where, join(path_, entry.key), hint);
  }

  // The place of a value, or of something inside it: overrides make tables without a place.
  [[nodiscard]] std::string place_of(const Node& node) const {
    const Node* at = &node;
    while (at->line == 0 && at->override_index < 0 && !at->entries.empty()) {
      at = &at->entries.front().value;
    }
    return document_.place(*at);
  }

  ScalarValue convert(const FieldInfo& info,
                      const Node& node,
                      ScalarType type,
                      const std::string& path) const {
    return convert_scalar(info, node, type, {document_.place(node), path});
  }

  const Document& document_;
  const Node& table_;
  std::string path_;
  const std::vector<std::string>& all_paths_;
};

}  // namespace

void read_fields(const Document& document, const VisitFields& visit) {
  std::vector<std::string> all_paths;
  for (const auto& [path, value] : flatten_fields(visit)) {
    all_paths.push_back(path);
  }
  TableReader(document, document.root(), "", all_paths).read(visit);
}

}  // namespace tandem::config
