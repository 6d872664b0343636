#include <fmt/format.h>

#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/jinja/scope.h"

namespace tandem::text::jinja {
namespace {

bool compare_values(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") {
    return equal(a, b);
  }
  if (op == "!=") {
    return !equal(a, b);
  }
  if (op == "in") {
    return contains(b, a);
  }
  if (op == "not in") {
    return !contains(b, a);
  }
  const bool nan = (a.is<double>() && *a.get<double>() != *a.get<double>()) ||
                   (b.is<double>() && *b.get<double>() != *b.get<double>());
  const int order = compare(a, b);
  if (nan) {
    return false;
  }
  return op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
}

void check_hashable(const Value& key, int line) {
  if (key.is<ListPtr>() || key.is<DictPtr>()) {
    throw TemplateError(fmt::format("unhashable type: '{}'", type_name(key)), line);
  }
}

}  // namespace

Value Interpreter::lookup(const std::string& name) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->outer.get()) {
    for (const auto& [known, value] : scope->variables) {
      if (known == name) {
        return value;
      }
    }
  }
  if (const auto found = context_.find(name); found != context_.end()) {
    return found->second;
  }
  if (auto global = find_global(name)) {
    return *global;
  }
  return make_undefined(fmt::format("'{}' is undefined", name));
}

Value Interpreter::evaluate(const Expression& node) {
  const DepthGuard guard(*this, node.line);
  count_step();
  try {
    switch (node.kind) {
      case ExpressionKind::kConstant:
        return node.constant;
      case ExpressionKind::kName:
        return lookup(node.name);
      case ExpressionKind::kList:
        return make_list(evaluate_all(node.children));
      case ExpressionKind::kTuple:
        return make_tuple(evaluate_all(node.children));
      case ExpressionKind::kDict:
        return evaluate_dict(node);
      case ExpressionKind::kUnary: {
        const Value operand = evaluate(*node.children[0]);
        return node.name == "not" ? make_bool(!is_true(operand))
               : node.name == "-" ? negate(operand)
                                  : plus(operand);
      }
      case ExpressionKind::kBinary:
        return evaluate_binary(node);
      case ExpressionKind::kCompare:
        return evaluate_compare(node);
      case ExpressionKind::kConditional: {
        const bool chosen = is_true(evaluate(*node.children[0]));
        const auto& branch = node.children[chosen ? 1 : 2];
        return branch != nullptr ? evaluate(*branch)
                                 : make_undefined("the inline if-expression has no else");
      }
      case ExpressionKind::kMember:
        return member(evaluate(*node.children[0]), node.name);
      case ExpressionKind::kItem: {
        const Value object = evaluate(*node.children[0]);
        return item(object, evaluate(*node.children[1]));
      }
      case ExpressionKind::kSlice:
        return evaluate_slice(node);
      case ExpressionKind::kCall:
        return evaluate_call(node);
      case ExpressionKind::kFilter:
        return evaluate_filters(node, {});
      case ExpressionKind::kTest: {
        const Value input = evaluate(*node.children[0]);
        return make_bool(apply_test(node.name, input, evaluate_arguments(node.arguments)));
      }
    }
  } catch (TemplateError& error) {
    error.set_line(node.line);
    throw;
  }
  return {};
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExpressionPtr>& nodes) {
  std::vector<Value> values;
  values.reserve(nodes.size());
  for (const ExpressionPtr& node : nodes) {
    values.push_back(evaluate(*node));
  }
  return values;
}

Value Interpreter::evaluate_dict(const Expression& node) {
  Dict dict;
  for (std::size_t i = 0; i < node.children.size(); i += 2) {
    Value key = evaluate(*node.children[i]);
    check_hashable(key, node.line);
    dict.set(std::move(key), evaluate(*node.children[i + 1]));
  }
  return make_dict(std::move(dict));
}

Value Interpreter::evaluate_binary(const Expression& node) {
  Value left = evaluate(*node.children[0]);
  if (node.name == "and" || node.name == "or") {
    return is_true(left) == (node.name == "or") ? left : evaluate(*node.children[1]);
  }
  const Value right = evaluate(*node.children[1]);
  if (node.name == "~") {
    return make_text(to_string(left) + to_string(right));
  }
  return arithmetic(node.name, left, right);
}

Value Interpreter::evaluate_compare(const Expression& node) {
  Value left = evaluate(*node.children[0]);
  for (std::size_t i = 0; i < node.operators.size(); ++i) {
    Value right = evaluate(*node.children[i + 1]);
    if (!compare_values(node.operators[i], left, right)) {
      return make_bool(false);
    }
    left = std::move(right);
  }
  return make_bool(true);
}

Value Interpreter::evaluate_slice(const Expression& node) {
  const Value object = evaluate(*node.children[0]);
  const auto part = [&](std::size_t i) {
    return node.children[i] == nullptr ? make_none() : evaluate(*node.children[i]);
  };
  SliceBounds bounds;
  bounds.begin = part(1);
  bounds.end = part(2);
  bounds.step = part(3);
  return slice(object, bounds);
}

Arguments Interpreter::evaluate_arguments(const CallSyntax& syntax) {
  Arguments arguments;
  arguments.positional = evaluate_all(syntax.positional);
  for (const NamedArgument& named : syntax.named) {
    arguments.named.emplace_back(named.name, evaluate(*named.value));
  }
  if (syntax.list != nullptr) {
    const std::vector<Value> more = iterate(evaluate(*syntax.list));
    arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
  }
  if (syntax.dict != nullptr) {
    const Value more = evaluate(*syntax.dict);
    const auto* dict = more.get<DictPtr>();
    if (dict == nullptr) {
      throw TemplateError("argument after ** must be a mapping, not " + type_name(more));
    }
    for (const auto& [key, value] : (*dict)->entries) {
      arguments.named.emplace_back(to_string(key), value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expression& node) {
  const Value callee = evaluate(*node.children[0]);
  return call(callee, evaluate_arguments(node.arguments));
}

Value Interpreter::evaluate_filters(const Expression& node, Value input) {
  if (node.children[0] != nullptr) {
    const Expression& inner = *node.children[0];
    input = inner.kind == ExpressionKind::kFilter ? evaluate_filters(inner, std::move(input))
                                                  : evaluate(inner);
  }
  return apply_filter(node.name, input, evaluate_arguments(node.arguments));
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  if (callee.is_undefined()) {
    throw_undefined(callee);
  }
  if (const auto* loop = callee.get<LoopPtr>(); loop != nullptr && (*loop)->recurse) {
    const Bound bound("loop", arguments, {"iterable"});
    return (*loop)->recurse(bound.required(0));
  }
  const auto* function = callee.get<CallablePtr>();
  if (function == nullptr) {
    throw TemplateError(fmt::format("'{}' object is not callable", type_name(callee)));
  }
  return (*function)->call(*this, arguments);
}

Value Interpreter::apply_filter(const std::string& name,
                                const Value& input,
                                const Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (filter == nullptr) {
    throw TemplateError(fmt::format("No filter named '{}' found", name));
  }
  return filter(*this, input, arguments);
}

bool Interpreter::apply_test(const std::string& name,
                             const Value& input,
                             const Arguments& arguments) {
  const Test test = find_test(name);
  if (test == nullptr) {
    throw TemplateError(fmt::format("No test named '{}' found", name));
  }
  return test(*this, input, arguments);
}

Value Interpreter::member(const Value& object, const std::string& name) {
  if (object.is_undefined()) {
    throw_undefined(object);
  }
  if (!name.starts_with('_')) {
    if (auto method = find_method(object, name)) {
      return *method;
    }
  }
  if (const auto* dict = object.get<DictPtr>()) {
    if (const Value* found = (*dict)->find(name)) {
      return *found;
    }
  }
  return make_undefined(fmt::format("'{} object' has no attribute '{}'", type_name(object), name));
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) {
    throw_undefined(object);
  }
  Value found = item_or_undefined(object, key);
  if (!found.is_undefined() || object.is<DictPtr>()) {
    const auto* dict = object.get<DictPtr>();
    if (dict == nullptr || (*dict)->find(key) != nullptr) {
      return found;
    }
  }
  if (key.is_text()) {
    if (auto method = find_method(object, key.text())) {
      return *method;
    }
    return make_undefined(
        fmt::format("'{} object' has no attribute '{}'", type_name(object), key.text()));
  }
  return make_undefined(
      fmt::format("{} object has no element {}", type_name(object), to_repr(key)));
}

}  // namespace tandem::text::jinja
