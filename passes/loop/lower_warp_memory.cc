// lower_warp_memory: a buffer that the 32 lanes of a warp share is spread over their registers (CUDA).
//
//   alloc sum: f32[32] warp                      alloc sum: f32 register
//   sum[lane] = x[row, lane]                     sum = x[row, lane]
//   sum[lane] = select(lane >= 4,          ->    alloc sum_of: f32 register
//       sum[lane - 4] + sum[lane], sum[lane])    shuffle_up(sum, 4, sum_of)
//                                                sum = select(lane >= 4, sum_of + sum, sum)
//
// The lanes of a warp go through their code together, statement by statement: a statement reads what all lanes had
// before it. The last axis of a Warp buffer has 32 elements, one a lane; the other axes are each lane's own. A lane
// stores its own element only. Of the elements that it loads, its own is a register; those of lane ^ c, lane + c and
// lane - c come by the shuffles of that form, any other by shuffle_idx. A shuffle stands in front of its statement, so
// that all lanes make it, also those whose value a select drops: what it brings them from beyond the warp is never
// used.
//
// `lane` is thread % 32 for the loop ThreadX, whose extent is a multiple of 32. Throws InternalError for a store to
// another lane's element, and for an exchange that not all lanes of a warp come to.
// Needs: element types of 4 or 8 bytes; buffers not flattened. Leaves: no buffer of scope Warp.
#include "passes/loop/lower_warp_memory.h"

#include <map>
#include <set>
#include <utility>

#include "ir/loop/build.h"
#include "ir/loop/cuda_limits.h"
#include "ir/loop/intrin.h"
#include "ir/loop/linear.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "support/text.h"

namespace tc {
namespace {

class Lowering {
 public:
  explicit Lowering(const For& threads) : threads_(threads), lane_(floor_mod(Expr(threads.var), kWarp)) {
    const auto n = as_const_int(threads.extent);
    check(n && *n % kWarp == 0, "threads that share a warp's memory are whole warps");
    ranges_[threads.var.get()] = {0, *n - 1};
    if (*n == kWarp) lane_ = Expr(threads.var);
  }

  Stmt run() { return loop(threads_.var, threads_.extent, stmt(threads_.body), threads_.kind, threads_.begin); }

 private:
  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    if (const Seq* k = as<Seq>(s)) {
      Stmts list;
      for (const Stmt& x : k->list) list.push_back(stmt(x));
      return seq(std::move(list));
    }
    if (const Alloc* k = as<Alloc>(s)) return allocation(*k);
    if (const Comment* k = as<Comment>(s)) return comment(k->text, stmt(k->body));
    if (const Let* k = as<Let>(s)) {
      Exchange x;
      const Expr value = own(k->value, x);
      bind(*k);
      return x.before(let(k->var, value, stmt(k->body)));
    }
    if (const For* k = as<For>(s)) {
      Exchange x;
      const Expr begin = own(k->begin, x), extent = own(k->extent, x);
      ranges_[k->var.get()] = loop_range(For{k->var, inlined(k->begin), inlined(k->extent), k->kind, {}}, ranges_);
      const bool together = differs(k->begin) || differs(k->extent) ? false : together_;
      return x.before(loop(k->var, extent, inside(together, k->body), k->kind, begin));
    }
    if (const If* k = as<If>(s)) {
      Exchange x;
      const Expr condition = own(k->condition, x);
      const bool together = differs(k->condition) ? false : together_;
      return x.before(if_then(condition, inside(together, k->then), inside(together, k->otherwise)));
    }
    if (const While* k = as<While>(s)) {
      Exchange x;
      const Expr condition = own(k->condition, x);
      check(x.values.empty(), "the condition of a while loop exchanges values of a warp");
      return while_loop(condition, inside(differs(k->condition) ? false : together_, k->body));
    }
    if (const Store* k = as<Store>(s)) return assignment(*k);
    if (const Intrin* k = as<Intrin>(s))
      for (const Buffer& b : k->buffers) check(!spread(b), "instructions take no memory of a warp");
    return s;
  }

  Stmt inside(bool together, const Stmt& s) {
    const bool before = std::exchange(together_, together);
    const Stmt r = stmt(s);
    together_ = before;
    return r;
  }

  Stmt allocation(const Alloc& k) {
    const Buffer& b = k.buffer;
    if (b->scope != Scope::Warp) return alloc(b, stmt(k.body));
    const int bytes = info(b->dtype).bytes;
    check(!b->shape.empty() && b->shape.back().value == kWarp, "the last axis of a warp's memory is the lanes");
    check(bytes == 4 || bytes == 8, "shuffles carry 4 or 8 bytes");
    const Buffer part = make_buffer(b->name, b->dtype, Shape(b->shape.begin(), b->shape.end() - 1), Scope::Register);
    parts_[b.get()] = part;
    return alloc(part, stmt(k.body));
  }
  bool spread(const Buffer& b) const { return b->scope == Scope::Warp; }

  Stmt assignment(const Store& k) {
    Exchange x;
    const Expr value = own(k.value, x);
    Exprs index;
    for (const Expr& e : k.index) index.push_back(own(e, x));
    if (!spread(k.buffer)) return x.before(store(k.buffer, std::move(index), value, k.reduce, k.count));
    check(is_own(k.index.back()), "a lane stores an element of its own only: buffer " + printable(k.buffer->name));
    index.pop_back();
    return x.before(store(part_of(k.buffer), std::move(index), value, k.reduce));
  }

  // The shuffles of one statement.
  struct Exchange {
    struct Value {
      Expr load;   // of another lane's element
      Buffer got;  // what it is replaced by
      Stmt shuffle;
    };
    std::vector<Value> values;
    Stmt before(Stmt s) const {
      for (size_t i = values.size(); i-- > 0;) s = alloc(values[i].got, seq({values[i].shuffle, s}));
      return s;
    }
  };

  Expr own(const Expr& e, Exchange& x) const {
    return rewrite(e, [&](const Expr& n) -> Expr {
      const Load* l = as<Load>(n);
      if (!l || !spread(l->buffer)) return {};
      const Exprs own_index(l->index.begin(), l->index.end() - 1);
      const Buffer part = part_of(l->buffer);
      if (is_own(l->index.back())) return load(part, own_index);
      for (const Exchange::Value& v : x.values)
        if (structurally_equal(v.load, n)) return load(v.got, {});
      check(together_, "not all lanes of a warp exchange values: buffer " + printable(l->buffer->name));
      const Buffer got = make_buffer(l->buffer->name + "_of", part->dtype, {}, Scope::Register);
      x.values.push_back({n, got, shuffle(got, load(part, own_index), l->index.back())});
      return load(got, {});
    });
  }

  Stmt shuffle(const Buffer& to, const Expr& value, const Expr& lane) const {
    const Expr e = simplify(inlined(lane), ranges_);
    const Apply* k = as<Apply>(e);
    if (k && k->op == Op::BitXor && as_const_int(k->args[1]) && is_lane(k->args[0]))
      return intrin("shuffle_xor", {{to, {}}}, {value, k->args[1]});
    if (const auto offset = from_lane(e))
      return intrin(*offset > 0 ? "shuffle_down" : "shuffle_up", {{to, {}}}, {value, Expr(std::abs(*offset))});
    return intrin("shuffle_idx", {{to, {}}}, {value, lane});
  }

  // c of lane + c
  std::optional<int64_t> from_lane(const Expr& e) const {
    const Linear l = linear_form(e);
    if (l.terms.size() != 1 || l.terms[0].coefficient != 1 || !is_lane(l.terms[0].atom)) return std::nullopt;
    return l.constant;
  }
  bool is_lane(const Expr& e) const { return structurally_equal(simplify(e, ranges_), simplify(lane_, ranges_)); }
  bool is_own(const Expr& e) const { return from_lane(simplify(inlined(e), ranges_)) == 0; }

  Buffer part_of(const Buffer& b) const {
    const auto it = parts_.find(b.get());
    check(it != parts_.end(), "a warp's memory is used outside of its Alloc: buffer " + printable(b->name));
    return it->second;
  }

  // May the lanes of one warp have different values of it?
  bool differs(const Expr& e) const { return differs_in(simplify(inlined(e), ranges_)); }
  bool differs_in(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& n) {
      const Apply* k = as<Apply>(n);
      const auto by = k && k->op == Op::FloorDiv ? as_const_int(k->args[1]) : std::nullopt;
      const VarRef* whole = by && *by % kWarp == 0 ? as<VarRef>(k->args[0]) : nullptr;
      if (whole && whole->var == threads_.var) return false;  // a number of warps
      const VarRef* v = as<VarRef>(n);
      found |= v && (v->var == threads_.var || differing_.count(v->var.get()) != 0);
      const Load* l = as<Load>(n);
      found |= l && l->buffer->scope != Scope::Global;
      return !found;
    });
    return found;
  }

  // What is computed from memory stays a name.
  void bind(const Let& l) {
    const Expr value = inlined(l.value);
    if (reads_nothing(value) && l.var->dtype == DType::I64)
      lets_[l.var.get()] = value;
    else if (differs(value))
      differing_.insert(l.var.get());
  }
  Expr inlined(const Expr& e) const { return substitute(e, lets_); }

  const For& threads_;
  Expr lane_;
  Ranges ranges_;
  VarMap lets_;
  std::set<const VarDef*> differing_;         // looked up only
  std::map<const BufferDef*, Buffer> parts_;  // looked up only
  bool together_ = true;                      // all lanes of a warp are here
};

bool has_warp_memory(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    const Alloc* a = as<Alloc>(x);
    found = found || (a && a->buffer->scope == Scope::Warp);
    return !found;
  });
  return found;
}

}  // namespace

Stmt lower_warp_memory(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    return f && f->kind == ForKind::ThreadX && has_warp_memory(f->body) ? Lowering(*f).run() : Stmt();
  });
}

}  // namespace tc
