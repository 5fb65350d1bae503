#include "ir/language/nest.h"

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "support/text.h"

namespace tc::language {
namespace {

std::string hint(const std::string& name) { return name.substr(0, name.find('~')); }

class NestBuilder {
 public:
  explicit NestBuilder(Names names) : names_(std::move(names)) {}

  Stmt block(const std::vector<LoopSyntax>& list) {
    Stmts all;
    for (const LoopSyntax& l : list) all.push_back(statement(l));
    return seq(std::move(all));
  }

 private:
  using Kind = LoopSyntax::Kind;

  Expr value(const Formula& f, DType t) { return Evaluator(names_, Mode::Fn).value(f, t); }

  Stmt statement(const LoopSyntax& l) {
    switch (l.kind) {
      case Kind::Store: return store_of(l);
      case Kind::For: {
        const auto kind = loop_kind_named(l.how);
        if (!kind) fail(l.at, "no loop is called '" + l.how + "'");
        const Expr extent = value(l.values[0], DType::I64);
        const Expr begin = l.values.size() > 1 ? value(l.values[1], DType::I64) : Expr(0);
        const Var v = make_var(hint(l.word));
        return loop(v, extent, with_variable(l, v), *kind, begin);
      }
      case Kind::While: return while_loop(value(l.values[0], DType::Bool), block(l.body));
      case Kind::If: {
        const Expr condition = value(l.values[0], DType::Bool);
        if (as_const_int(condition)) fail(l.at, "a condition that is known decides nothing");
        return if_then(condition, block(l.body), block(l.otherwise));
      }
      case Kind::Let: {
        const Var v = make_var(hint(l.word), type_of(l));
        const Expr e = value(l.values[0], v->dtype);
        return let(v, e, with_variable(l, v));
      }
      case Kind::Alloc: return alloc_of(l);
      case Kind::Note: return comment(l.word, block(l.body));
    }
    return {};
  }

  Stmt with_variable(const LoopSyntax& l, const Var& v) {
    if (!names_.axes.emplace(l.word, Exprs{Expr(v)}).second) fail(l.at, "'" + l.word + "' is a name already");
    const Stmt body = block(l.body);
    names_.axes.erase(l.word);
    return body;
  }

  Stmt store_of(const LoopSyntax& l) {
    const auto t = names_.tensors.find(l.word);
    if (t == names_.tensors.end()) fail(l.at, "no tensor is called '" + l.word + "' here");
    const Buffer& b = t->second;
    if (l.args.size() != b->shape.size())
      fail(l.at, "'" + l.word + "' has rank " + tc::to_text(int64_t(b->shape.size())));
    std::optional<Op> how;
    if (!l.how.empty()) {
      how = function_named(l.how);
      if (!how) how = infix_named(l.how, false);
      if (!how || info(*how).arity != 2 || info(*how).compares || b->dtype == DType::String)
        fail(l.at, "an element is not joined with a value by '" + l.how + "'");
    }
    Exprs index;
    for (const Formula& f : l.args) index.push_back(value(f, DType::I64));
    return store(b, std::move(index), value(l.values[0], b->dtype), how);
  }

  Stmt alloc_of(const LoopSyntax& l) {
    const auto scope = scope_named(l.how);
    if (!scope) fail(l.at, "a tensor does not lie in '" + l.how + "'");
    const Dims dims = Evaluator(names_, Mode::Fn).sizes(l.args);
    if (!names_.tensors.emplace(l.word, make_buffer(hint(l.word), type_of(l), to_shape(dims), *scope)).second)
      fail(l.at, "'" + l.word + "' is a tensor already");
    const Buffer b = names_.tensors.at(l.word);
    const Stmt body = block(l.body);
    names_.tensors.erase(l.word);
    return alloc(b, body);
  }

  static DType type_of(const LoopSyntax& l) {
    const auto t = element_type_of(l.type, Mode::Fn);
    if (!t) fail(l.at, "no element type is called '" + l.type + "'");
    return *t;
  }

  Names names_;
};

}  // namespace

Stmt nest_of(const std::vector<LoopSyntax>& loops, Names names) { return NestBuilder(std::move(names)).block(loops); }

std::optional<Scope> scope_named(const std::string& name) {
  for (const Scope s : {Scope::Workspace, Scope::Stack, Scope::Register})
    if (scope_name(s) == name) return s;
  return std::nullopt;
}

std::optional<ForKind> loop_kind_named(const std::string& name) {
  if (name.empty()) return ForKind::Serial;
  for (const ForKind k : {ForKind::Parallel, ForKind::Unroll, ForKind::Vector})
    if (kind_name(k) == name) return k;
  return std::nullopt;
}

}  // namespace tc::language
