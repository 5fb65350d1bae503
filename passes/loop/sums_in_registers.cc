// sums_in_registers: a row that a loop adds to, over and over, would go to memory and back each time, and every sum would wait for the one
// before to get there. A short one has room in registers:
//
//   alloc change: f32[64] workspace              alloc change: f32[64] register
//   for i in 64:                           ->    for i in 64:
//     for v in 64 / VL:                            unrolled v in 64 / VL:
//       change[v * VL:VL] += ...                     change[v * VL:VL] += ...
//
// Preconditions: whole vectors, that no tail ends; each is reached by a loop over all of them and by nothing else, for registers have no
// address; a loop outside of these adds to it. Leaves: such loops unrolled.
#include "passes/loop/sums_in_registers.h"

#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

constexpr int64_t kMostVectors = 8;  // of 16 lanes, in one row: two rows are half of AVX-512's registers

bool may_live_in_registers(const Buffer& b) {
  return (b->scope == Scope::Workspace || b->scope == Scope::Stack) && b->dtype == DType::F32 && b->shape.size() == 1 &&
         b->shape[0].is_const() && b->shape[0].value >= kMaxLanes && b->shape[0].value % kMaxLanes == 0 &&
         b->shape[0].value <= kMostVectors * kMaxLanes;
}

/// How the loops of a body reach a row.
class Uses {
 public:
  explicit Uses(const Buffer& b) : b_(b) {}

  void of(const Stmt& s) { visit(s, 0); }
  bool fit() const { return fit_ && summed_; }
  bool is_over_row(const Var& v) const { return loops_.contains(v.get()); }

 private:
  struct Over {
    Var var;
    int64_t depth = 0;
  };

  void visit(const Stmt& s, int64_t depth) {
    if (!s || !fit_) return;
    if (const Store* k = as<Store>(s)) {
      for (const Expr& e : k->index) expr(e);
      expr(k->value);
      if (k->count) expr(k->count);
      if (k->buffer == b_) at(k->index, !k->count, k->reduce.has_value() || loads(k->value));
    } else if (const For* k = as<For>(s)) {
      expr(k->begin);
      expr(k->extent);
      const bool whole = is_const(k->begin, 0) && structurally_equal(k->extent, Expr(b_->shape[0].value) / lanes()) &&
                         (k->kind == ForKind::Serial || k->kind == ForKind::Unroll);
      const auto before = over_;
      if (whole) over_.push_back({k->var, depth});
      visit(k->body, depth + (whole ? 0 : 1));
      over_ = before;
    } else if (const If* k = as<If>(s)) {
      expr(k->condition);
      visit(k->then, depth);
      visit(k->otherwise, depth);
    } else if (const Let* k = as<Let>(s)) {
      expr(k->value);
      visit(k->body, depth);
    } else if (const Alloc* k = as<Alloc>(s)) {
      visit(k->body, depth);
    } else if (const Seq* k = as<Seq>(s)) {
      for (const Stmt& x : k->list) visit(x, depth);
    } else if (const Comment* k = as<Comment>(s)) {
      visit(k->body, depth);
    } else {
      walk(
          s, [&](const Stmt& x) { return fit_ = fit_ && !touches(x); },
          [&](const Expr& e) { return fit_ = fit_ && !loads(e); });
    }
  }
  bool touches(const Stmt& s) const {
    if (const Intrin* k = as<Intrin>(s)) return std::find(k->buffers.begin(), k->buffers.end(), b_) != k->buffers.end();
    if (const Prefetch* k = as<Prefetch>(s)) return k->buffer == b_;
    if (const Alias* k = as<Alias>(s)) return k->base == b_ || k->view == b_;
    const Store* k = as<Store>(s);
    return k && k->buffer == b_;
  }
  bool loads(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      return !(found = found || (l && l->buffer == b_));
    });
    return found;
  }
  void expr(const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x); l && l->buffer == b_) at(l->index, true, false);
      return true;
    });
  }
  /// One vector, of a loop over all.
  void at(const Exprs& index, bool whole, bool sums) {
    const Ramp* r = index.size() == 1 ? as<Ramp>(index[0]) : nullptr;
    const auto is_of = [&](const Over& o) { return r && structurally_equal(r->base, Expr(o.var) * lanes()); };
    const auto over = std::find_if(over_.begin(), over_.end(), is_of);
    fit_ = fit_ && whole && over != over_.end();
    if (!fit_) return;
    loops_.insert(over->var.get());
    summed_ = summed_ || (sums && over->depth > 0);
  }

  Buffer b_;
  std::vector<Over> over_;         // loops of as many iterations as the row has vectors
  std::set<const VarDef*> loops_;  // that reach it; looked up only
  bool fit_ = true, summed_ = false;
};

/// x of sum = sum + x.
Expr added(const Store& s) {
  const Apply* a = s.reduce ? nullptr : as<Apply>(s.value);
  const Load* l = a && a->op == Op::Add ? as<Load>(a->args[0]) : nullptr;
  return l && l->buffer == s.buffer && structurally_equal(l->index[0], s.index[0]) ? a->args[1] : Expr();
}

}  // namespace

Stmt sums_in_registers(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& x) -> Stmt {
    const Alloc* k = as<Alloc>(x);
    if (!k || !may_live_in_registers(k->buffer)) return {};
    Uses uses(k->buffer);
    uses.of(k->body);
    if (!uses.fit()) return {};
    const Stmt unrolled = rewrite(k->body, {}, [&](const Stmt& y) -> Stmt {
      const For* f = as<For>(y);
      return f && uses.is_over_row(f->var) ? loop(f->var, f->extent, f->body, ForKind::Unroll, f->begin) : Stmt();
    });
    const Buffer sums = make_buffer(k->buffer->name, k->buffer->dtype, k->buffer->shape, Scope::Register);
    return alloc(sums, rewrite(substitute_buffers(unrolled, {{k->buffer.get(), sums}}), {}, [&](const Stmt& y) -> Stmt {
                   const Store* k = as<Store>(y);
                   const Expr term = k && k->buffer == sums ? added(*k) : Expr();
                   return term ? store(sums, k->index, term, Op::Add) : Stmt();
                 }));
  });
}

}  // namespace tc
