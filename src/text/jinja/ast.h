// The syntax tree of a template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace tandem::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionKind {
  kConstant,     // constant
  kName,         // name
  kList,         // children
  kTuple,        // children
  kDict,         // children: key, value, key, value, ...
  kUnary,        // name: - + not; child
  kBinary,       // name: + - * / // % ** ~ and or; two children
  kCompare,      // operators; children: one more than operators
  kConditional,  // condition, value, otherwise (may be null)
  kMember,       // child . name
  kItem,         // child [ child ]
  kSlice,        // child [ begin : end : step ], each of the three may be null
  kCall,         // child ( arguments )
  kFilter,       // child | name ( arguments ); child null in a filter block
  kTest,         // child is name ( arguments )
};

struct NamedArgument {
  std::string name;
  ExpressionPtr value;
};

struct CallSyntax {
  std::vector<ExpressionPtr> positional;
  std::vector<NamedArgument> named;
  ExpressionPtr list;  // *list
  ExpressionPtr dict;  // **dict
};

struct Expression {
  ExpressionKind kind;
  int line = 0;
  int depth = 1;  // of the tree, bounded by the parser
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> children;
  std::vector<std::string> operators;
  CallSyntax arguments;
};

/// What an assignment or a loop binds: a name, a member of a namespace, or several of these.
struct Target {
  std::string name;
  std::string member;         // set ns.member
  std::vector<Target> parts;  // a, (b, c)
  int line = 0;
};

struct Statement;
using Block = std::vector<Statement>;

enum class StatementKind {
  kText,        // text
  kPrint,       // value
  kIf,          // branches
  kFor,         // target in value if condition; body; otherwise
  kSet,         // target = value
  kSetBlock,    // target, body, value: filters or null
  kMacro,       // name, parameters, body
  kCall,        // value: the call; parameters, body: its caller()
  kFilter,      // value: filters; body
  kWith,        // parameters, body
  kGeneration,  // body
  kBreak,
  kContinue,
  kDo,  // value
};

struct Branch {
  ExpressionPtr condition;  // null: else
  Block body;
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // default, or null
};

struct Statement {
  StatementKind kind;
  int line = 0;
  std::string text;  // or name
  ExpressionPtr value;
  ExpressionPtr condition;
  Target target;
  Block body;
  Block otherwise;
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  bool recursive = false;      // of a loop
  bool uses_loop = false;      // whether the body mentions `loop`
  bool takes_varargs = false;  // whether a macro's body mentions `varargs`
  bool takes_kwargs = false;   // or `kwargs`
};

}  // namespace tandem::text::jinja
