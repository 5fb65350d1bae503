// hoist_pointers: a tile of unrolled loops reads its buffers through one pointer each.
//
//   unroll i: unroll v: acc[i, v] += x[(w + i) * 64 + k] * weight[k * 32 + v * VL : VL]
// becomes
//   alias x_k = &x[w * 64 + k]
//   alias weight_k = &weight[k * 32]
//   unroll i: unroll v: acc[i, v] += x_k[i * 64] * weight_k[v * VL : VL]
//
// Where an index has a number from memory in it, x[c * 784 + i * 28 + at[w]], the pointer goes as far as is known to lie inside of the buffer:
// x_c[i * 28 + at[w]].
//
// Compilers keep a tile in registers when all its addresses are one base plus a constant, and spill it otherwise; a
// reader sees what moves with which loop. Needs: flattened buffers. Leaves: accesses outside of tiles as they are.
#include "passes/loop/hoist_pointers.h"

#include <set>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

struct Split {
  Expr outer, inner;  // index = outer + inner; inner depends on the tile's own loops only
};

/// Where a tile stands.
struct Around {
  std::string name = "tile";  // of the innermost loop that is not unrolled
  Ranges loops;               // of the variables of all of them
};

class Tile {
 public:
  Tile(const Stmt& s, const Around& around) : around_(around) {
    walk(s, [&](const Stmt& x) {
      if (const For* f = as<For>(x)) inner_.insert(f->var.get());
      if (const Let* l = as<Let>(x)) (is_data(l->value) ? data_ : bound_).insert(l->var.get());
      if (const Alloc* a = as<Alloc>(x)) local_.insert(a->buffer.get());
      if (const Alias* a = as<Alias>(x)) local_.insert(a->view.get());
      return true;
    });
  }

  bool has_loops() const { return !inner_.empty(); }

  Stmt apply(const Stmt& s) {
    const Stmt body = rewrite(
        s,
        [&](const Expr& e) -> Expr {
          const Load* l = as<Load>(e);
          if (!l) return {};
          const auto r = through_alias(l->buffer, l->index);
          return r ? load(r->first, {r->second}) : Expr();
        },
        [&](const Stmt& x) -> Stmt {
          if (const Store* k = as<Store>(x))
            if (const auto r = through_alias(k->buffer, k->index))
              return store(r->first, {r->second}, k->value, k->reduce, k->count);
          if (const Prefetch* k = as<Prefetch>(x))
            if (const auto r = through_alias(k->buffer, k->index)) return prefetch(r->first, {r->second}, k->level);
          if (const Intrin* k = as<Intrin>(x)) return instruction(*k);
          return {};
        });
    Stmt out = body;
    for (size_t i = aliases_.size(); i > 0; i--)
      out = alias(aliases_[i - 1].view, aliases_[i - 1].base, aliases_[i - 1].offset, out);
    return out;
  }

 private:
  Stmt instruction(const Intrin& k) {
    IntrinCall c = parse(k);
    bool changed = false;
    for (IntrinOperand& o : c.operands)
      if (const auto r = through_alias(o.buffer, o.index)) {
        o = {r->first, {r->second}};
        changed = true;
      }
    return changed ? intrin(k.name, c.operands, c.scalars) : Stmt();
  }

  struct Hoisted {
    Buffer view, base;
    Expr offset;
  };

  bool depends(const Expr& e, const std::set<const VarDef*>& vars) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      if (const VarRef* v = as<VarRef>(x)) found |= vars.count(v->var.get()) != 0;
      return !found;
    });
    return found;
  }
  bool has_load(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      found |= as<Load>(x) != nullptr;
      return !found;
    });
    return found;
  }

  /// A number from memory, or made of one.
  bool is_data(const Expr& e) const { return depends(e, data_) || has_load(e); }

  std::optional<Split> split(const Expr& e) const {
    const bool data = is_data(e);
    if (!data && !depends(e, inner_)) return Split{e, 0};
    const Apply* k = as<Apply>(e);
    if (as<VarRef>(e)) return Split{0, e};
    const bool sum = k && (k->op == Op::Add || k->op == Op::Sub);
    if (data && !sum) return Split{0, e};
    if (!k) return std::nullopt;
    if (sum) {
      const auto a = split(k->args[0]), b = split(k->args[1]);
      if (!a || !b) return std::nullopt;
      return k->op == Op::Add ? Split{a->outer + b->outer, a->inner + b->inner}
                              : Split{a->outer - b->outer, a->inner - b->inner};
    }
    if (k->op == Op::Mul) {
      const bool left = depends(k->args[0], inner_);
      const Expr& factor = k->args[left ? 1 : 0];
      if (!as_const_int(factor) && !as<Lanes>(factor)) return std::nullopt;
      const auto a = split(k->args[left ? 0 : 1]);
      if (!a) return std::nullopt;
      return Split{a->outer * factor, a->inner * factor};
    }
    return std::nullopt;
  }

  std::optional<std::pair<Buffer, Expr>> through_alias(const Buffer& b, const Exprs& index) {
    const bool array = b->scope == Scope::Register || b->scope == Scope::Shared;  // of the text, not a pointer
    if (array || local_.count(b.get()) != 0 || index.size() != 1) return std::nullopt;
    const Ramp* r = as<Ramp>(index[0]);
    const Expr scalar = r ? r->base : index[0];
    if (!depends(scalar, inner_) || depends(scalar, bound_)) return std::nullopt;
    const auto parts = split(scalar);
    if (!parts || as_const_int(parts->outer)) return std::nullopt;
    // Beside a number from memory, the rest of the index says nothing of where it leads.
    if (is_data(scalar) && !lies_inside(parts->outer, *b)) return std::nullopt;
    const Buffer view = alias_for(b, parts->outer);
    return std::pair(view, r ? ramp(parts->inner) : parts->inner);
  }

  bool lies_inside(const Expr& offset, const BufferDef& b) const {
    if (b.shape.size() != 1 || !b.shape[0].is_const()) return false;
    const Range r = interval(offset, around_.loops);
    return r.min >= 0 && r.max < b.shape[0].value;
  }

  Buffer alias_for(const Buffer& b, const Expr& offset) {
    for (const Hoisted& h : aliases_)
      if (h.base == b && structurally_equal(h.offset, offset)) return h.view;
    auto d = std::make_shared<BufferDef>(*b);
    d->name = b->name + "_" + around_.name;
    aliases_.push_back({d, b, offset});
    local_.insert(d.get());
    return d;
  }

  const Around& around_;
  std::set<const VarDef*> inner_, bound_, data_;  // looked up only
  std::set<const BufferDef*> local_;
  std::vector<Hoisted> aliases_;
};

bool has_serial_loop(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    if (const For* f = as<For>(x)) found |= f->kind != ForKind::Unroll;
    found |= as<While>(x) != nullptr;
    return !found;
  });
  return found;
}

std::string short_name(const std::string& var) {
  return var.size() > 2 && var.ends_with("_o") ? var.substr(0, var.size() - 2) : var;
}

Stmt hoist(const Stmt& s, const Around& around);

Stmt hoist_run(Stmts run, const Around& around) {
  const Stmt s = seq(std::move(run));
  if (!s) return s;
  // Behind the condition: where it does not hold, what a pointer would point to need not exist.
  if (const If* k = as<If>(s))
    return if_then(k->condition, hoist_run({k->then}, around),
                   k->otherwise ? hoist_run({k->otherwise}, around) : Stmt());
  Tile tile(s, around);
  return tile.has_loops() ? tile.apply(s) : s;
}

Stmt hoist_list(const Stmts& list, const Around& around) {
  Stmts out, run;
  for (const Stmt& x : list) {
    if (!has_serial_loop(x)) {
      run.push_back(x);
      continue;
    }
    out.push_back(hoist_run(std::move(run), around));
    run.clear();
    out.push_back(hoist(x, around));
  }
  out.push_back(hoist_run(std::move(run), around));
  return seq(std::move(out));
}

Stmt hoist_loop(const For& k, Around around) {
  around.name = short_name(k.var->name);
  around.loops[k.var.get()] = loop_range(k, around.loops);
  return loop(k.var, k.extent, hoist(k.body, around), k.kind, k.begin);
}

Stmt hoist(const Stmt& s, const Around& around) {
  if (!s) return s;
  if (!has_serial_loop(s)) return hoist_run({s}, around);
  return visit(
      s, [&](const Store&) { return s; }, [&](const For& k) { return hoist_loop(k, around); },
      [&](const While& k) { return while_loop(k.condition, hoist(k.body, around)); },
      [&](const If& k) { return if_then(k.condition, hoist(k.then, around), hoist(k.otherwise, around)); },
      [&](const Let& k) { return let(k.var, k.value, hoist(k.body, around)); },
      [&](const Alloc& k) { return alloc(k.buffer, hoist(k.body, around)); },
      [&](const Alias& k) { return alias(k.view, k.base, k.offset, hoist(k.body, around)); },
      [&](const Seq& k) { return hoist_list(k.list, around); }, [&](const Barrier&) { return s; },
      [&](const Prefetch&) { return s; }, [&](const Intrin&) { return s; }, [&](const Launch&) { return s; },
      [&](const Comment& k) { return comment(k.text, hoist(k.body, around)); });
}

}  // namespace

Stmt hoist_pointers(const Stmt& s) { return hoist(s, {}); }

}  // namespace tc
