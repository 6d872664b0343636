#include <fmt/format.h>

#include "config/config.h"
#include "config/convert.h"

namespace tandem::config {
namespace {

const char* type_text(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return "true or false";
    case ScalarType::kInteger:
      return "whole number";
    case ScalarType::kNumber:
      return "number";
    case ScalarType::kString:
      return "text";
  }
  return "";
}

// A "|" would end the cell.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '|' ? "\\|" : std::string(1, c);
  }
  return out;
}

std::string type_and_range(const FieldInfo& info, const char* type) {
  if (!info.choices.empty()) {
    return fmt::format("`{}`", fmt::join(info.choices, "`, `"));
  }
  if (info.only) {
    return fmt::format("only {} in this version", *info.only);
  }
  const std::string range = range_text(info);
  return range.empty() ? type : fmt::format("{} {}", type, range);
}

// One section of the reference a table; the tables inside follow it.
class Describer final : public FieldVisitor {
 public:
  std::string out;

  void section(const std::string& path, const std::string& about, const VisitFields& visit) {
    const std::string outer_rows = std::move(rows_);
    const std::string outer_path = path_;
    rows_.clear();
    path_ = path;
    const std::size_t at = out.size();
    visit(*this);  // appends the inner sections behind `at`, this one goes before them
    const std::string inner = out.substr(at);
    out.resize(at);
    out += fmt::format("## {}\n\n", path.empty() ? "Top of the file" : "`" + path + "`");
    out += about.empty() ? "" : about + "\n\n";
    if (!rows_.empty()) {
      out += "| key | value | default | meaning |\n| --- | --- | --- | --- |\n" + rows_ + "\n";
    }
    out += inner;
    rows_ = outer_rows;
    path_ = outer_path;
  }

  void scalar(const FieldInfo& info, const ScalarSlot& slot) override {
    row(info, type_and_range(info, type_text(slot.type)));
  }
  void list(const FieldInfo& info, const ListSlot& slot) override {
    const std::string count =
        slot.fixed_size != 0 ? fmt::format(" of {}", slot.fixed_size) : std::string();
    row(info, fmt::format("list{}, each {}", count, type_and_range(info, type_text(slot.type))));
  }
  void table(const FieldInfo& info, const TableSlot& slot) override {
    section(join(info), info.doc, slot.visit);
  }
  void tables(const FieldInfo& info, const TableListSlot& slot) override {
    section(join(info) + "[]", "A list. " + info.doc, slot.visit_fresh);
  }
  void strings(const FieldInfo& info, std::map<std::string, std::string>&) override {
    row(info, "table of texts");
  }
  void json(const FieldInfo& info, JsonText&) override { row(info, "table"); }
  void later(const FieldInfo& info) override {
    rows_ += fmt::format("| `{}` | | | {}Not in this version. |\n",
                         info.name,
                         info.doc.empty() ? "" : cell(info.doc) + " ");
  }

  std::map<std::string, std::string> defaults;

 private:
  [[nodiscard]] std::string join(const FieldInfo& info) const {
    return path_.empty() ? info.name : path_ + "." + info.name;
  }

  [[nodiscard]] std::string default_of(const FieldInfo& info) const {
    if (info.required) {
      return "must be given";
    }
    std::string path = join(info);
    for (std::size_t at = path.find("[]"); at != std::string::npos; at = path.find("[]")) {
      path.replace(at, 2, ".*");
    }
    const auto found = defaults.find(path);
    const std::string value = found == defaults.end() ? "null" : found->second;
    if (value == "null" || value == "\"\"") {
      return info.unset_means;
    }
    return fmt::format("`{}`", value);
  }

  void row(const FieldInfo& info, const std::string& type) {
    rows_ += fmt::format(
        "| `{}` | {} | {} | {}{} |\n",
        info.name,
        cell(type),
        cell(default_of(info)),
        cell(info.doc),
        info.later_choices.empty()
            ? ""
            : fmt::format(" Not in this version: `{}`.", fmt::join(info.later_choices, "`, `")));
  }

  std::string path_;
  std::string rows_;
};

}  // namespace

std::string describe_fields(const VisitFields& visit) {
  Describer describer;
  describer.defaults = flatten_fields(visit);
  describer.section("", "", visit);
  while (describer.out.ends_with("\n\n")) {
    describer.out.pop_back();
  }
  return describer.out;
}

}  // namespace tandem::config
