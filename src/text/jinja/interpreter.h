// Runs a template's syntax tree.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace tandem::text::jinja {

/// The time that strftime_now prints.
using Clock = std::function<std::tm()>;

/// One rendering. Not thread safe; many may run on one tree at the same time.
class Interpreter {
 public:
  Interpreter(std::map<std::string, Value> context, Clock clock);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  ~Interpreter();

  /// The rendered text. Throws TemplateError with the line.
  std::string render(const Block& block);

  /// Byte ranges of the text that {% generation %} blocks made.
  [[nodiscard]] const std::vector<std::pair<std::int64_t, std::int64_t>>& generation_spans() const {
    return generation_spans_;
  }

  // What filters, tests and methods use.
  Value call(const Value& callee, const Arguments& arguments);
  Value apply_filter(const std::string& name, const Value& input, const Arguments& arguments);
  bool apply_test(const std::string& name, const Value& input, const Arguments& arguments);

  /// object.name: methods and attributes first.
  Value member(const Value& object, const std::string& name);
  /// object[key]: elements first.
  Value item(const Value& object, const Value& key);

  Value make_namespace(Namespace content);
  [[nodiscard]] std::tm now() const { return clock_(); }

 private:
  struct Scope;
  using ScopePtr = std::shared_ptr<Scope>;
  class ScopeGuard;
  class DepthGuard;
  enum class Flow { kNext, kBreak, kContinue };

  // statements.cpp
  Flow run(const Block& block);
  Flow run(const Statement& statement);
  Flow run_if(const Statement& node);
  Flow run_for(const Statement& node);
  Value run_loop(const Statement& node, const Value& iterable, std::int64_t depth, Flow& flow);
  std::vector<Value> filtered(const Statement& node, const std::vector<Value>& items);
  bool passes(const Statement& node, const Value& item);
  void run_set_block(const Statement& node);
  void run_macro(const Statement& node);
  void run_call(const Statement& node);
  Flow run_filter(const Statement& node);
  Flow run_with(const Statement& node);
  void run_generation(const Statement& node);
  void assign(const Target& target, Value value);
  std::string capture(const Block& block, Flow& flow);
  Value make_macro(const Statement& node, std::string name);
  Value call_macro(const Statement& node, const Arguments& arguments, const ScopePtr& outer);
  void bind_parameters(const Statement& node, const Arguments& arguments);
  void bind_named(const Statement& node, const Arguments& arguments, std::vector<bool>& bound);
  void write(std::string_view text);
  void count_step();

  // evaluate.cpp
  Value evaluate(const Expression& node);
  Value evaluate_binary(const Expression& node);
  Value evaluate_compare(const Expression& node);
  Value evaluate_call(const Expression& node);
  Value evaluate_slice(const Expression& node);
  Value evaluate_dict(const Expression& node);
  Value evaluate_filters(const Expression& node, Value input);
  Arguments evaluate_arguments(const CallSyntax& syntax);
  std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& nodes);
  [[nodiscard]] Value lookup(const std::string& name) const;

  std::map<std::string, Value> context_;
  Clock clock_;
  ScopePtr scope_;
  std::string* out_ = nullptr;  // of the innermost captured block
  std::string root_;            // the template's own output
  std::vector<std::pair<std::int64_t, std::int64_t>> generation_spans_;
  std::vector<NamespacePtr> namespaces_;  // all: they may refer to each other in circles
  std::int64_t steps_ = 0;
  std::int64_t written_ = 0;
  int depth_ = 0;
};

}  // namespace tandem::text::jinja
