#include "config/document.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "config/scalars.h"
#include "config/yaml_builder.h"

namespace tandem::config {
namespace {

constexpr std::uintmax_t kMaxBytes = 1 << 20;

std::optional<std::size_t> as_index(const std::string& part) {
  const bool digits =
      !part.empty() && part.size() < 7 &&
      std::all_of(part.begin(), part.end(), [](char c) { return '0' <= c && c <= '9'; });
  return digits ? std::optional<std::size_t>(std::stoul(part)) : std::nullopt;
}

void mark_as_override(Node& node, int index) {
  node.line = 0;
  node.override_index = index;
  for (Node& item : node.items) {
    mark_as_override(item, index);
  }
  for (Entry& entry : node.entries) {
    mark_as_override(entry.value, index);
  }
}

// The child of `node` for one part of an override's path, made where it is missing.
Node& descend(Node& node, const std::string& part, const std::string& override_place) {
  if (node.kind == Node::Kind::kList) {
    const auto index = as_index(part);
    if (!index || *index > node.items.size()) {
      fail<UserError>(
          "{}: {} is no index of a list with {} items", override_place, part, node.items.size());
    }
    if (*index == node.items.size()) {
      node.items.emplace_back();
    }
    return node.items[*index];
  }
  if (node.kind == Node::Kind::kScalar) {
    fail<UserError>("{}: {} would be a key of a value that is not a table", override_place, part);
  }
  if (node.kind == Node::Kind::kNull && part == "0") {
    node.kind = Node::Kind::kList;
    return node.items.emplace_back();
  }
  node.kind = Node::Kind::kTable;
  for (Entry& entry : node.entries) {
    if (entry.key == part) {
      return entry.value;
    }
  }
  node.entries.push_back({part, 0, {}});
  return node.entries.back().value;
}

std::string scalar_json(const Node& node) {
  if (node.quoted) {
    return quote(node.text);
  }
  if (const auto value = parse_integer(node.text)) {
    return std::to_string(*value);
  }
  if (const auto value = parse_number(node.text); value && std::isfinite(*value)) {
    return number_text(*value);
  }
  return parse_bool(node.text) ? node.text : quote(node.text);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) {
      return &entry.value;
    }
  }
  return nullptr;
}

Document Document::load(const std::filesystem::path& file) {
  return parse(read_file(file, kMaxBytes), file.string());
}

Document Document::parse(std::string_view text, const std::string& name) {
  Document document;
  document.name_ = name;
  document.root_ = parse_yaml(text, name, /*with_lines=*/true);
  if (document.root_.kind == Node::Kind::kNull) {
    fail<UserError>("{}:1: is empty; a table of keys was expected", name);
  }
  if (document.root_.kind != Node::Kind::kTable) {
    fail<UserError>("{}: a table of keys was expected here", document.place(document.root_));
  }
  return document;
}

void Document::apply_override(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string where = fmt::format("command line, {}", assignment);
  if (equals == std::string::npos || equals == 0) {
    fail<UserError>("{}: is not of the form table.key=value", where);
  }
  Node value = parse_yaml(std::string_view(assignment).substr(equals + 1), where, false);
  const auto index = static_cast<int>(overrides_.size());
  overrides_.push_back(assignment);
  mark_as_override(value, index);
  Node* node = &root_;
  for (const std::string& part : split_path(std::string_view(assignment).substr(0, equals))) {
    if (part.empty()) {
      fail<UserError>("{}: has an empty key", where);
    }
    const bool fresh = node->kind == Node::Kind::kNull;
    Node& child = descend(*node, part, where);
    if (fresh) {
      node->line = 0;
      node->override_index = index;
    }
    node = &child;
  }
  *node = std::move(value);
}

std::string Document::place(const Node& node) const {
  if (node.line > 0) {
    return fmt::format("{}:{}", name_, node.line);
  }
  if (node.override_index >= 0) {
    return fmt::format("command line, {}",
                       overrides_[static_cast<std::size_t>(node.override_index)]);
  }
  return name_;
}

std::string Document::place(std::string_view path) const {
  const Node* node = &root_;
  std::string found = name_;
  for (const std::string& part : split_path(path)) {
    const Node* child = node->find(part);
    if (const auto index = as_index(part); index && *index < node->items.size()) {
      child = &node->items[*index];
    }
    if (child == nullptr) {
      break;
    }
    node = child;
    found = place(*node);
  }
  return found;
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) {
      return parts;
    }
    path.remove_prefix(dot + 1);
  }
}

std::string to_json(const Node& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kScalar:
      return scalar_json(node);
    case Node::Kind::kList:
      for (const Node& item : node.items) {
        parts.push_back(to_json(item));
      }
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case Node::Kind::kTable:
      for (const Entry& entry : node.entries) {
        parts.push_back(fmt::format("{}: {}", quote(entry.key), to_json(entry.value)));
      }
      return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return "null";
}

}  // namespace tandem::config
