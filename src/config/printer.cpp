#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "config/config.h"
#include "config/scalars.h"

namespace tandem::config {
namespace {

// Words that YAML or its readers would take for something else than a text.
bool is_plain_text(const std::string& text) {
  static const std::vector<std::string> kReserved = {
      "null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  if (text.empty() || parse_number(text) || text.front() == '-' || text.front() == '.') {
    return false;
  }
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  if (std::find(kReserved.begin(), kReserved.end(), lower) != kReserved.end()) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/');
  });
}

std::string text_of(const ScalarValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? "true" : "false";
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return std::to_string(*whole);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return number_text(*number);
  }
  const auto& text = std::get<std::string>(value);
  return is_plain_text(text) ? text : quote(text);
}

std::string text_of(const ScalarSlot& slot) {
  const auto value = slot.get();
  return value ? text_of(*value) : "null";
}

std::string text_of(const ListSlot& slot) {
  std::vector<std::string> parts;
  for (const ScalarValue& value : slot.get()) {
    parts.push_back(text_of(value));
  }
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string text_of(const std::map<std::string, std::string>& value) {
  std::vector<std::string> parts;
  for (const auto& [key, text] : value) {
    parts.push_back(fmt::format("{}: {}", text_of(ScalarValue(key)), text_of(ScalarValue(text))));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

class YamlPrinter final : public FieldVisitor {
 public:
  std::string out;

  void scalar(const FieldInfo& info, const ScalarSlot& slot) override { line(info, text_of(slot)); }
  void list(const FieldInfo& info, const ListSlot& slot) override { line(info, text_of(slot)); }

  void table(const FieldInfo& info, const TableSlot& slot) override {
    if (!slot.present()) {
      line(info, "null");
      return;
    }
    line(info, "");
    indent_ += 2;
    slot.visit(*this);
    indent_ -= 2;
  }

  void tables(const FieldInfo& info, const TableListSlot& slot) override {
    if (slot.size() == 0) {
      line(info, "[]");
      return;
    }
    line(info, "");
    indent_ += 4;
    for (std::size_t i = 0; i < slot.size(); ++i) {
      first_of_item_ = true;
      slot.visit(i, *this);
    }
    indent_ -= 4;
  }

  void strings(const FieldInfo& info, std::map<std::string, std::string>& value) override {
    line(info, text_of(value));
  }
  void json(const FieldInfo& info, JsonText& value) override { line(info, value.text); }
  void later(const FieldInfo&) override {}

 private:
  void line(const FieldInfo& info, const std::string& value) {
    const std::string pad = first_of_item_ ? fmt::format("{:{}}- ", "", indent_ - 2)
                                           : fmt::format("{:{}}", "", indent_);
    first_of_item_ = false;
    out += fmt::format("{}{}:{}{}\n", pad, info.name, value.empty() ? "" : " ", value);
  }

  std::size_t indent_ = 0;
  bool first_of_item_ = false;
};

class Flattener final : public FieldVisitor {
 public:
  std::map<std::string, std::string> values;

  void scalar(const FieldInfo& info, const ScalarSlot& slot) override { put(info, text_of(slot)); }
  void list(const FieldInfo& info, const ListSlot& slot) override { put(info, text_of(slot)); }

  void table(const FieldInfo& info, const TableSlot& slot) override {
    if (slot.optional) {
      put(info, slot.present() ? "{}" : "null");
    }
    inside(info.name, slot.visit);
  }

  void tables(const FieldInfo& info, const TableListSlot& slot) override {
    put(info, fmt::format("[{}]", slot.size()));
    inside(info.name + ".*", slot.visit_fresh);
    for (std::size_t i = 0; i < slot.size(); ++i) {
      inside(fmt::format("{}.{}", info.name, i),
             [&](FieldVisitor& visitor) { slot.visit(i, visitor); });
    }
  }

  void strings(const FieldInfo& info, std::map<std::string, std::string>& value) override {
    put(info, text_of(value));
  }
  void json(const FieldInfo& info, JsonText& value) override { put(info, value.text); }
  void later(const FieldInfo& info) override { put(info, "null"); }

 private:
  void put(const FieldInfo& info, const std::string& value) { values[prefix_ + info.name] = value; }

  void inside(const std::string& name, const VisitFields& visit) {
    const std::string outer = prefix_;
    prefix_ += name + ".";
    visit(*this);
    prefix_ = outer;
  }

  std::string prefix_;
};

// "data.train.0.weight" is compared with "data.train.*.weight".
std::string fresh_path(const std::string& path) {
  std::vector<std::string> parts = split_path(path);
  for (std::string& part : parts) {
    if (std::all_of(
            part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
      part.assign(1, '*');
    }
  }
  return fmt::format("{}", fmt::join(parts, "."));
}

}  // namespace

std::string print_fields(const VisitFields& visit) {
  YamlPrinter printer;
  visit(printer);
  return printer.out;
}

std::map<std::string, std::string> flatten_fields(const VisitFields& visit) {
  Flattener flattener;
  visit(flattener);
  return std::move(flattener.values);
}

std::vector<std::string> changed_fields(const VisitFields& value, const VisitFields& fresh) {
  const auto defaults = flatten_fields(fresh);
  std::vector<std::string> paths;
  for (const auto& [path, text] : flatten_fields(value)) {
    const auto found = defaults.find(fresh_path(path));
    if (found == defaults.end() || found->second != text) {
      paths.push_back(path);
    }
  }
  return paths;
}

}  // namespace tandem::config
