// Variables of blocks, and the bound on how deep the interpreter may recurse.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/jinja/interpreter.h"

namespace tandem::text::jinja {

struct Interpreter::Scope {
  std::vector<std::pair<std::string, Value>> variables;
  ScopePtr outer;

  void set(const std::string& name, Value value) {
    for (auto& [known, old] : variables) {
      if (known == name) {
        old = std::move(value);
        return;
      }
    }
    variables.emplace_back(name, std::move(value));
  }
};

/// Makes a scope current inside `outer` until the end of the C++ block.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, ScopePtr outer)
      : interpreter_(interpreter), saved_(std::move(interpreter.scope_)) {
    interpreter_.scope_ = std::make_shared<Scope>(Scope{{}, std::move(outer)});
  }
  explicit ScopeGuard(Interpreter& interpreter) : ScopeGuard(interpreter, interpreter.scope_) {}
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  ~ScopeGuard() { interpreter_.scope_ = std::move(saved_); }

 private:
  Interpreter& interpreter_;
  ScopePtr saved_;
};

class Interpreter::DepthGuard {
 public:
  DepthGuard(Interpreter& interpreter, int line) : interpreter_(interpreter) {
    if (++interpreter_.depth_ > kMaxDepth) {
      --interpreter_.depth_;
      throw TemplateError("the template recurses too deeply", line);
    }
  }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  ~DepthGuard() { --interpreter_.depth_; }

 private:
  static constexpr int kMaxDepth =
      1000;  // nested statements and expressions, about 1 KB of stack each
  Interpreter& interpreter_;
};

}  // namespace tandem::text::jinja
