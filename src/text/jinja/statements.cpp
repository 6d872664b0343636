#include <utility>

#include <fmt/format.h>

#include "text/jinja/interpreter.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/jinja/scope.h"

namespace tandem::text::jinja {
namespace {

// Bounds that only a runaway template reaches.
constexpr std::int64_t kMaxSteps = 10'000'000;
constexpr std::int64_t kMaxOutput = std::int64_t{256} << 20;
constexpr std::size_t kMaxNamespaces = 100'000;

}  // namespace

Interpreter::Interpreter(std::map<std::string, Value> context, Clock clock)
    : context_(std::move(context)), clock_(std::move(clock)) {}

Interpreter::~Interpreter() {
  for (const NamespacePtr& name_space : namespaces_) {
    name_space->attributes.clear();  // breaks circles; the list still holds every one of them
  }
}

std::string Interpreter::render(const Block& block) {
  scope_ = std::make_shared<Scope>();
  out_ = &root_;
  run(block);
  return std::move(root_);
}

Value Interpreter::make_namespace(Namespace content) {
  if (namespaces_.size() >= kMaxNamespaces) {
    throw TemplateError("the template makes too many namespaces");
  }
  namespaces_.push_back(std::make_shared<Namespace>(std::move(content)));
  return Value::Variant(namespaces_.back());
}

void Interpreter::count_step() {
  if (++steps_ > kMaxSteps) {
    throw TemplateError("the template does not come to an end");
  }
}

void Interpreter::write(std::string_view text) {
  written_ += static_cast<std::int64_t>(text.size());
  if (written_ > kMaxOutput) {
    throw TemplateError("the template's output is too large");
  }
  *out_ += text;
}

Interpreter::Flow Interpreter::run(const Block& block) {
  for (const Statement& statement : block) {
    if (const Flow flow = run(statement); flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const Statement& node) {
  const DepthGuard guard(*this, node.line);
  count_step();
  try {
    switch (node.kind) {
      case StatementKind::kText:
        write(node.text);
        return Flow::kNext;
      case StatementKind::kPrint:
        write(to_string(evaluate(*node.value)));
        return Flow::kNext;
      case StatementKind::kIf:
        return run_if(node);
      case StatementKind::kFor:
        return run_for(node);
      case StatementKind::kSet:
        assign(node.target, evaluate(*node.value));
        return Flow::kNext;
      case StatementKind::kSetBlock:
        run_set_block(node);
        return Flow::kNext;
      case StatementKind::kMacro:
        scope_->set(node.text, make_macro(node, node.text));
        return Flow::kNext;
      case StatementKind::kCall:
        run_call(node);
        return Flow::kNext;
      case StatementKind::kFilter:
        return run_filter(node);
      case StatementKind::kWith:
        return run_with(node);
      case StatementKind::kGeneration:
        run_generation(node);
        return Flow::kNext;
      case StatementKind::kBreak:
        return Flow::kBreak;
      case StatementKind::kContinue:
        return Flow::kContinue;
      case StatementKind::kDo:
        evaluate(*node.value);
        return Flow::kNext;
    }
  } catch (TemplateError& error) {
    error.set_line(node.line);
    throw;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_if(const Statement& node) {
  for (const Branch& branch : node.branches) {
    if (branch.condition == nullptr || is_true(evaluate(*branch.condition))) {
      return run(branch.body);
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_for(const Statement& node) {
  Flow flow = Flow::kNext;
  run_loop(node, evaluate(*node.value), 1, flow);
  return flow;
}

bool Interpreter::passes(const Statement& node, const Value& item) {
  if (node.condition == nullptr) {
    return true;
  }
  const ScopeGuard guard(*this);
  assign(node.target, item);
  return is_true(evaluate(*node.condition));
}

std::vector<Value> Interpreter::filtered(const Statement& node, const std::vector<Value>& items) {
  std::vector<Value> kept;
  for (const Value& item : items) {
    if (passes(node, item)) {
      kept.push_back(item);
    }
  }
  return kept;
}

// The condition is asked right before each turn, where nothing asks for the loop's length: it may
// depend on what earlier turns did.
Value Interpreter::run_loop(const Statement& node,
                            const Value& iterable,
                            std::int64_t depth,
                            Flow& flow) {
  const auto loop = std::make_shared<Loop>();
  const bool eager = node.uses_loop && node.condition != nullptr;
  loop->items = eager ? filtered(node, iterate(iterable)) : iterate(iterable);
  loop->depth = depth;
  if (node.recursive) {
    loop->recurse = [this, &node, depth](const Value& inner) {
      std::string text;
      std::string* const saved = std::exchange(out_, &text);
      Flow ignored = Flow::kNext;
      try {
        run_loop(node, inner, depth + 1, ignored);
      } catch (...) {
        out_ = saved;
        throw;
      }
      out_ = saved;
      return make_text(std::move(text));
    };
  }
  bool any = false;
  for (; loop->at < loop->items.size(); ++loop->at) {
    const Value item = loop->items[loop->at];
    if (!eager && !passes(node, item)) {
      continue;
    }
    any = true;
    const ScopeGuard guard(*this);
    if (node.uses_loop) {
      scope_->set("loop", Value::Variant(loop));
    }
    assign(node.target, item);
    if (run(node.body) == Flow::kBreak) {
      break;
    }
  }
  if (!any) {
    const ScopeGuard guard(*this);
    flow = run(node.otherwise);
  }
  return {};
}

std::string Interpreter::capture(const Block& block, Flow& flow) {
  std::string text;
  std::string* const saved = std::exchange(out_, &text);
  try {
    flow = run(block);
  } catch (...) {
    out_ = saved;
    throw;
  }
  out_ = saved;
  return text;
}

void Interpreter::run_set_block(const Statement& node) {
  Value value;
  {
    const ScopeGuard guard(*this);
    Flow flow = Flow::kNext;
    value = make_text(capture(node.body, flow));
    if (node.value != nullptr) {
      value = evaluate_filters(*node.value, std::move(value));
    }
  }
  assign(node.target, std::move(value));
}

Interpreter::Flow Interpreter::run_filter(const Statement& node) {
  const ScopeGuard guard(*this);
  Flow flow = Flow::kNext;
  std::string text = capture(node.body, flow);
  write(to_string(evaluate_filters(*node.value, make_text(std::move(text)))));
  return flow;
}

Interpreter::Flow Interpreter::run_with(const Statement& node) {
  std::vector<Value> values;
  for (const Parameter& parameter : node.parameters) {
    values.push_back(evaluate(*parameter.otherwise));
  }
  const ScopeGuard guard(*this);
  for (std::size_t i = 0; i < values.size(); ++i) {
    scope_->set(node.parameters[i].name, std::move(values[i]));
  }
  return run(node.body);
}

void Interpreter::run_generation(const Statement& node) {
  const ScopeGuard guard(*this);
  const auto begin = static_cast<std::int64_t>(root_.size());
  Flow flow = Flow::kNext;
  const std::string text = capture(node.body, flow);
  write(text);
  generation_spans_.emplace_back(begin, begin + static_cast<std::int64_t>(text.size()));
}

void Interpreter::assign(const Target& target, Value value) {
  if (!target.parts.empty()) {
    const std::vector<Value> items = iterate(value);
    if (items.size() != target.parts.size()) {
      throw TemplateError(
          fmt::format("{} values to unpack into {} names", items.size(), target.parts.size()),
          target.line);
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      assign(target.parts[i], items[i]);
    }
    return;
  }
  if (target.member.empty()) {
    scope_->set(target.name, std::move(value));
    return;
  }
  const Value object = lookup(target.name);
  const auto* name_space = object.get<NamespacePtr>();
  if (name_space == nullptr) {
    throw TemplateError("cannot assign attribute on non-namespace object", target.line);
  }
  for (auto& [name, old] : (*name_space)->attributes) {
    if (name == target.member) {
      old = std::move(value);
      return;
    }
  }
  (*name_space)->attributes.emplace_back(target.member, std::move(value));
}

}  // namespace tandem::text::jinja
