// A YAML file as a tree whose nodes know their line, and overrides from the command line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::config {

struct Entry;

/// One value of the file. Plain structs; the tree owns its children.
struct Node {
  enum class Kind { kNull, kScalar, kList, kTable };

  Kind kind = Kind::kNull;
  std::string text;            // of a scalar
  bool quoted = false;         // "5" is never a number
  int line = 0;                // from 1; 0: `override` is its place
  int override_index = -1;     // which override gave it
  std::vector<Node> items;     // of a list
  std::vector<Entry> entries;  // of a table, in the file's order; keys differ

  [[nodiscard]] const Node* find(std::string_view key) const;
};

struct Entry {
  std::string key;
  int line = 0;
  Node value;
};

/// A whole recipe: the file's tree with the overrides put in.
class Document {
 public:
  /// Reads and parses `file`. Throws UserError with file and line: unreadable, larger than 1 MiB,
  /// not YAML, empty, no table at the top, a key given twice, nesting deeper than 32, aliases that
  /// expand to more than 100,000 values.
  static Document load(const std::filesystem::path& file);

  /// As `load`, of a text; `name` stands for the file in errors.
  static Document parse(std::string_view text, const std::string& name);

  /// Puts `table.key=value` into the tree; the value is YAML. A number in the path is the index of
  /// a list's item; one past the end appends. Throws UserError naming the override.
  void apply_override(const std::string& assignment);

  [[nodiscard]] const Node& root() const { return root_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// "recipe.yaml:14", or "command line, trainer.steps=5".
  [[nodiscard]] std::string place(const Node& node) const;

  /// The place of the value at `path` ("data.train.0.path"), or of the nearest table around it.
  [[nodiscard]] std::string place(std::string_view path) const;

 private:
  std::string name_;
  Node root_;
  std::vector<std::string> overrides_;
};

/// The parts of "a.b.0".
std::vector<std::string> split_path(std::string_view path);

/// The tree as one line of JSON; plain scalars become null, booleans and numbers as YAML's core
/// schema has them.
std::string to_json(const Node& node);

}  // namespace tandem::config
