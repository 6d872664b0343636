// Macros and {% call %} blocks.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/interpreter.h"
#include "text/jinja/print.h"
#include "text/jinja/scope.h"

namespace tandem::text::jinja {

// A macro sees the variables of the place where it stands, as they are when it is called. It does
// not keep them alive: they hold the macro.
Value Interpreter::make_macro(const Statement& node, std::string name) {
  const std::weak_ptr<Scope> outer = scope_;
  return make_callable(std::move(name),
                       [&node, outer](Interpreter& interpreter, const Arguments& arguments) {
                         return interpreter.call_macro(node, arguments, outer.lock());
                       });
}

Value Interpreter::call_macro(const Statement& node,
                              const Arguments& arguments,
                              const ScopePtr& outer) {
  const DepthGuard depth(*this, node.line);
  const ScopeGuard guard(*this, outer);
  bind_parameters(node, arguments);
  Flow flow = Flow::kNext;
  return make_text(capture(node.body, flow));
}

void Interpreter::bind_parameters(const Statement& node, const Arguments& arguments) {
  const std::size_t count = node.parameters.size();
  const std::vector<Value>& given = arguments.positional;
  if (given.size() > count && !node.takes_varargs) {
    throw TemplateError(
        fmt::format("macro '{}' takes not more than {} argument(s)", node.text, count));
  }
  std::vector<bool> bound(count, false);
  for (std::size_t i = 0; i < std::min(given.size(), count); ++i) {
    scope_->set(node.parameters[i].name, given[i]);
    bound[i] = true;
  }
  scope_->set("caller", make_undefined("no caller defined"));
  bind_named(node, arguments, bound);
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = node.parameters[i];
    if (!bound[i] && parameter.otherwise != nullptr) {
      scope_->set(parameter.name, evaluate(*parameter.otherwise));
    } else if (!bound[i]) {
      scope_->set(parameter.name,
                  make_undefined(fmt::format("parameter '{}' was not provided", parameter.name)));
    }
  }
  if (node.takes_varargs) {
    const std::size_t first = std::min(given.size(), count);
    scope_->set("varargs",
                make_tuple({given.begin() + static_cast<std::ptrdiff_t>(first), given.end()}));
  }
}

void Interpreter::bind_named(const Statement& node,
                             const Arguments& arguments,
                             std::vector<bool>& bound) {
  Dict more;
  for (const auto& [name, value] : arguments.named) {
    const auto parameter =
        std::ranges::find(node.parameters, name, [](const Parameter& p) { return p.name; });
    const auto i = static_cast<std::size_t>(parameter - node.parameters.begin());
    if (parameter != node.parameters.end()) {
      if (bound[i]) {
        throw TemplateError(fmt::format("macro '{}' got two values for '{}'", node.text, name));
      }
      scope_->set(name, value);
      bound[i] = true;
    } else if (name == "caller") {
      scope_->set(name, value);
    } else if (node.takes_kwargs) {
      more.set(make_text(name), value);
    } else {
      throw TemplateError(
          fmt::format("macro '{}' takes no keyword argument '{}'", node.text, name));
    }
  }
  if (node.takes_kwargs) {
    scope_->set("kwargs", make_dict(std::move(more)));
  }
}

void Interpreter::run_call(const Statement& node) {
  const Value callee = evaluate(*node.value->children[0]);
  Arguments arguments = evaluate_arguments(node.value->arguments);
  arguments.named.emplace_back("caller", make_macro(node, "caller"));
  write(to_string(call(callee, arguments)));
}

}  // namespace tandem::text::jinja
