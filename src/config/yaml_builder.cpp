#include "config/yaml_builder.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/error.h"

namespace tandem::config {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::int64_t kMaxNodes = 100'000;

std::int64_t count_nodes(const Node& node) {
  std::int64_t count = 1;
  for (const Node& item : node.items) {
    count += count_nodes(item);
  }
  for (const Entry& entry : node.entries) {
    count += count_nodes(entry.value);
  }
  return count;
}

int line_of(const YAML::Mark& mark) {
  return mark.line + 1;
}

// A list or table under construction.
struct Open {
  Node node;
  YAML::anchor_t anchor = 0;
  bool has_key = false;  // of a table: the next value belongs to `key`
  std::string key;
  int key_line = 0;
};

class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string place, bool with_lines) : place_(std::move(place)), with_lines_(with_lines) {}

  [[nodiscard]] std::string at(int line) const {
    return with_lines_ ? fmt::format("{}:{}", place_, line) : place_;
  }
  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    put(make(Node::Kind::kNull, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      fail<UserError>("{}: this alias stands inside the value it names", at(line_of(mark)));
    }
    Node copy = found->second;
    count(count_nodes(copy), line_of(mark));
    copy.line = line_of(mark);
    put(std::move(copy), 0);
  }

  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(Node::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    const bool null = value.empty() || value == "~" || value == "null";
    if (null && !node.quoted) {
      node.kind = Node::Kind::kNull;
    }
    put(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string&,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kList, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark,
                  const std::string&,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kTable, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  Node make(Node::Kind kind, const YAML::Mark& mark) {
    count(1, line_of(mark));
    Node node;
    node.kind = kind;
    node.line = line_of(mark);
    return node;
  }

  void count(std::int64_t added, int line) {
    num_nodes_ += added;
    if (num_nodes_ > kMaxNodes) {
      fail<UserError>("{}: more than {} values, aliases counted", at(line), kMaxNodes);
    }
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() >= kMaxDepth) {
      fail<UserError>("{}: nested deeper than {} levels", at(line_of(mark)), kMaxDepth);
    }
    if (!open_.empty() && open_.back().node.kind == Node::Kind::kTable && !open_.back().has_key) {
      fail<UserError>("{}: a key must be a word, not a list or table", at(line_of(mark)));
    }
    Open item;
    item.node = make(kind, mark);
    item.anchor = anchor;
    open_.push_back(std::move(item));
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    put(std::move(done.node), done.anchor);
  }

  // Gives a finished value to the list or table around it; in a table it may be a key.
  void put(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& around = open_.back();
    if (around.node.kind == Node::Kind::kList) {
      around.node.items.push_back(std::move(node));
    } else if (around.has_key) {
      if (node.kind == Node::Kind::kNull) {
        node.line = around.key_line;  // yaml-cpp has the place where the value would have ended
      }
      around.node.entries.push_back({around.key, around.key_line, std::move(node)});
      around.has_key = false;
    } else {
      take_key(around, node);
    }
  }

  void take_key(Open& table, const Node& key) const {
    if (key.kind != Node::Kind::kScalar) {
      fail<UserError>("{}: a key must be a word", at(key.line));
    }
    for (const Entry& entry : table.node.entries) {
      if (entry.key == key.text) {
        fail<UserError>(
            "{}: key {} is given twice, first in line {}", at(key.line), key.text, entry.line);
      }
    }
    table.has_key = true;
    table.key = key.text;
    table.key_line = key.line;
  }

  std::string place_;
  bool with_lines_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::int64_t num_nodes_ = 0;
};

// The line number of the first line that a tab indents, or 0.
int tab_indented_line(std::string_view text) {
  int line = 1;
  bool indent = true;
  for (const char c : text) {
    if (indent && c == '\t') {
      return line;
    }
    indent = c == '\n' || (indent && c == ' ');
    line += c == '\n' ? 1 : 0;
  }
  return 0;
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& place, bool with_lines) {
  Builder builder(place, with_lines);
  if (text.find('\0') != std::string_view::npos) {
    fail<UserError>("{}: is not a text file, YAML was expected", place);
  }
  try {
    // yaml-cpp takes the end of the file for the end of an open quote, but not a document's end
    // mark.
    std::istringstream stream(std::string(text) + "\n...\n");
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder) && parser.HandleNextDocument(builder)) {
      fail<UserError>("{}: holds more than one YAML document, one was expected", place);
    }
  } catch (const YAML::Exception& e) {
    if (const int line = tab_indented_line(text); line > 0) {
      fail<UserError>("{}: a tab indents this line; YAML wants spaces", builder.at(line));
    }
    const auto num_lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
    if (line_of(e.mark) > num_lines) {
      fail<UserError>("{}: is not valid YAML: a quote or bracket is never closed",
                      builder.at(num_lines));
    }
    fail<UserError>("{}: is not valid YAML: {}", builder.at(line_of(e.mark)), e.msg);
  }
  return builder.take();
}

}  // namespace tandem::config
