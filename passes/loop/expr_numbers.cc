#include "passes/loop/expr_numbers.h"

#include <cstring>

#include "ir/loop/build.h"
#include "ir/loop/data.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

int64_t bits_of(double v) {
  int64_t b;
  std::memcpy(&b, &v, sizeof b);
  return b;
}

bool divides(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    auto* a = as<Apply>(x);
    found |= a && (a->op == Op::Div || a->op == Op::FloorDiv || a->op == Op::Mod || a->op == Op::FloorMod);
    return !found;
  });
  return found;
}

}  // namespace

Exprs operands_of(const Expr& e) {
  return visit(
      e, [](const IntImm&) { return Exprs(); }, [](const FloatImm&) { return Exprs(); },
      [](const VarRef&) { return Exprs(); }, [](const Lanes&) { return Exprs(); },
      [](const Apply& k) { return k.args; },
      [](const Select& k) {
        return Exprs{k.condition, k.yes, k.no};
      },
      [](const Cast& k) { return Exprs{k.value}; }, [](const Bitcast& k) { return Exprs{k.value}; },
      [](const Load& k) { return k.index; }, [](const Ramp& k) { return Exprs{k.base}; },
      [](const Broadcast& k) { return Exprs{k.value}; },
      [](const Partial& k) {
        return Exprs{k.value, k.count};
      });
}

Expr with_operands(const Expr& e, const Exprs& ops) {
  Exprs old = operands_of(e);
  bool same = true;
  for (size_t i = 0; i < old.size(); ++i) same &= old[i].same_as(ops[i]);
  if (same) return e;
  auto raw = [&](auto kind) {
    return Expr(std::make_shared<const ExprNode>(ExprNode{e->dtype, e->vector, std::move(kind)}));
  };
  auto leaf = [&](const auto&) { return e; };
  return visit(
      e, [&](const IntImm& k) { return leaf(k); }, [&](const FloatImm& k) { return leaf(k); },
      [&](const VarRef& k) { return leaf(k); }, [&](const Lanes& k) { return leaf(k); },
      [&](const Apply& k) {
        return raw(Apply{k.op, ops});
      },
      [&](const Select&) {
        return raw(Select{ops[0], ops[1], ops[2]});
      },
      [&](const Cast& k) {
        return raw(Cast{ops[0], k.saturate});
      },
      [&](const Bitcast&) { return raw(Bitcast{ops[0]}); },
      [&](const Load& k) {
        return raw(Load{k.buffer, ops});
      },
      [&](const Ramp&) { return raw(Ramp{ops[0]}); }, [&](const Broadcast&) { return raw(Broadcast{ops[0]}); },
      [&](const Partial&) {
        return raw(Partial{ops[0], ops[1]});
      });
}

int64_t ExprNumbers::id(const void* p) { return ids_.try_emplace(p, int64_t(ids_.size())).first->second; }

int ExprNumbers::number(const Expr& e) {
  if (auto it = known_.find({e.get(), epoch_}); it != known_.end()) return it->second;
  Node node{e, {}, {}, false};
  std::vector<int64_t> key = {int64_t(e->kind.index()), int64_t(e->dtype), e->vector};
  for (const Expr& x : operands_of(e)) {
    node.children.push_back(number(x));
    node.may_fault |= nodes_[size_t(node.children.back())].may_fault;
    key.push_back(node.children.back());
  }
  node.lazy.assign(node.children.size(), false);
  visit(
      e, [&](const IntImm& k) { key.push_back(k.value); }, [&](const FloatImm& k) { key.push_back(bits_of(k.value)); },
      [&](const VarRef& k) { key.push_back(id(k.var.get())); },
      [&](const Apply& k) {
        key.push_back(int64_t(k.op));
        node.may_fault |= k.op == Op::Index;
        if (k.op == Op::And || k.op == Op::Or) node.lazy[1] = true;
      },
      [&](const Select& k) { node.lazy[1] = node.lazy[2] = !k.condition->vector; },
      [&](const Cast& k) { key.push_back(k.saturate); }, [&](const Bitcast&) {},
      [&](const Load& k) {
        key.push_back(id(k.buffer.get()));
        key.push_back(versions_[k.buffer.get()]);
        node.may_fault = true;
      },
      [&](const Ramp&) {}, [&](const Broadcast&) {}, [&](const Lanes&) {},
      // The load inside touches `count` elements only: it is no value of its own.
      [&](const Partial&) { node.lazy[0] = true; });
  auto [it, fresh] = table_.try_emplace(std::move(key), int(nodes_.size()));
  if (fresh) nodes_.push_back(std::move(node));
  known_[{e.get(), epoch_}] = it->second;
  keep_.push_back(e);
  return it->second;
}

void ExprNumbers::stored(const Buffer& b) {
  ++versions_[b.get()];
  ++epoch_;
}

void ExprNumbers::stored_in(const Stmt& s) {
  walk(s, [&](const Stmt& x) {
    auto* k = as<Store>(x);
    if (k) stored(k->buffer);
    // Others may have written anything; a store through a view reaches what has another name.
    if (as<Barrier>(x) || as<Intrin>(x) || as<Launch>(x) || (k && views_)) {
      for (auto& [p, version] : versions_) ++version;
      ++epoch_;
    }
    return true;
  });
}

bool has_views(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) { return !(found |= as<Alias>(x) != nullptr); });
  return found;
}

bool is_worth_binding(const Expr& e) {
  if (as<Apply>(e)) {
    if (e->dtype != DType::I64 || e->vector || holds_data(e)) return true;
    Op op = as<Apply>(e)->op;
    bool affine = op == Op::Add || op == Op::Sub || op == Op::Mul || op == Op::Neg;
    return !affine || divides(e);
  }
  if (auto* l = as<Load>(e)) return l->buffer->scope != Scope::Register;
  return as<Select>(e) || as<Cast>(e) || as<Partial>(e) || as<Bitcast>(e);
}

namespace {
// "ih" for a sum over "oh": where an output's position reads its input.
std::string index_name(const Expr& e) {
  std::string name = "at";
  walk(e, [&](const Expr& x) {
    auto* v = as<VarRef>(x);
    bool output = v && v->var->name.size() == 2 && v->var->name[0] == 'o';
    if (output && name == "at") name = std::string("i") + v->var->name[1];
    return true;
  });
  return name;
}
}  // namespace

std::string binding_name(const Expr& e) {
  if (auto* l = as<Load>(e)) return l->buffer->name + "_v";
  if (auto* p = as<Partial>(e)) return binding_name(p->value);
  if (auto* c = as<Cast>(e)) {
    bool named = as<Load>(c->value) || as<Apply>(c->value);
    return named ? binding_name(c->value) : "v";
  }
  if (as<Select>(e)) return "picked";
  auto* a = as<Apply>(e);
  if (!a) return "v";
  bool index = e->dtype == DType::I64 && !holds_data(e);
  switch (a->op) {
    case Op::Add: return index ? index_name(e) : "sum";
    case Op::Sub: return !index ? "diff" : as<IntImm>(a->args[0]) ? "left" : index_name(e);
    case Op::Mul: return index ? "whole" : "prod";
    case Op::Div:
    case Op::FloorDiv: return "quot";
    case Op::Mod:
    case Op::FloorMod: return "rest";
    case Op::Max: return "high";
    case Op::Min: return "low";
    case Op::Index: return "at";
    default: break;
  }
  return info(a->op).compares ? "test" : std::string(info(a->op).name) + "_v";
}

Expr reference(const Var& v, const Expr& e) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{v->dtype, e->vector, VarRef{v}}));
}

}  // namespace tc
