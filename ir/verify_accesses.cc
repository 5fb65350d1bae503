// Every index that is linear in variables of loops with constant bounds takes all values between its ends, unless a
// condition on one of these variables stands in between. Threads part where a condition, or the number of iterations,
// differs among the threads of a block.
#include "ir/verify_accesses.h"

#include <map>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/expand_intrin.h"
#include "ir/loop/linear.h"
#include "ir/loop/print.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

bool is_thread(ForKind k) {
  return k == ForKind::ThreadX || k == ForKind::ThreadY || k == ForKind::ThreadZ || k == ForKind::Fragment;
}

class AccessVerifier {
 public:
  void stmt(const Stmt& s) {
    if (!s) return;
    visit(
        s,
        [&](const Store& k) {
          access(k.buffer, k.index, "store to");
          if (k.reduce) access(k.buffer, k.index, "load of");
          for (const Expr& i : k.index) expr(i);
          expr(k.value);
        },
        [&](const For& k) { loop(k); },
        [&](const While& k) {
          expr(k.condition);
          under(k.condition, [&] { stmt(k.body); });
        },
        [&](const If& k) {
          expr(k.condition);
          under(k.condition, [&] {
            stmt(k.then);
            stmt(k.otherwise);
          });
        },
        [&](const Let& k) {
          expr(k.value);
          if (differs(k.value)) differing_.insert(k.var.get());
          depends_on_[k.var.get()] = variables_of(k.value);
          stmt(k.body);
        },
        [&](const Alloc& k) { stmt(k.body); },
        [&](const Alias& k) {
          views_[k.view.get()] = {k.base, k.offset};
          stmt(k.body);
        },
        [&](const Seq& k) {
          for (const Stmt& x : k.list) stmt(x);
        },
        [&](const Barrier& k) {
          if (parted_ > 0)
            throw InternalError("verify: a barrier of scope " + scope_name(k.scope) + " that threads may pass by");
        },
        [&](const Prefetch&) {}, [&](const Intrin& k) { intrin(k); }, [&](const Launch&) {},
        [&](const Comment& k) { stmt(k.body); });
  }

 private:
  // Of what a thread does by itself; what a warp does together lies in tiles and registers.
  void intrin(const Intrin& k) {
    if (std::holds_alternative<Assignments>(instruction(k).meaning)) stmt(expand_intrin(k));
  }

  void loop(const For& k) {
    const std::optional<int64_t> begin = as_const_int(k.begin), extent = as_const_int(k.extent);
    if (extent && *extent <= 0) return;  // nothing in it ever runs
    exact_.erase(k.var.get());           // loops behind one another may share their variable
    if (begin && extent) exact_[k.var.get()] = {*begin, *begin + *extent - 1};
    const bool parts = differs(k.begin) || differs(k.extent);
    if (is_thread(k.kind) || parts) differing_.insert(k.var.get());
    parted_ += parts;
    if (extent)
      stmt(k.body);
    else
      under(k.extent, [&] { stmt(k.body); });
    parted_ -= parts;
  }

  // What runs only if `condition` holds.
  template <class F>
  void under(const Expr& condition, F&& body) {
    const bool parts = differs(condition);
    const std::set<const VarDef*> names = variables_of(condition);
    guards_.insert(names.begin(), names.end());
    parted_ += parts;
    body();
    parted_ -= parts;
    for (const VarDef* v : names) guards_.erase(guards_.find(v));
  }

  // Those that stand in it, and those that these were computed from.
  std::set<const VarDef*> variables_of(const Expr& e) const {
    std::set<const VarDef*> names;
    walk(e, [&](const Expr& x) {
      if (const VarRef* v = as<VarRef>(x)) {
        names.insert(v->var.get());
        if (const auto from = depends_on_.find(v->var.get()); from != depends_on_.end())
          names.insert(from->second.begin(), from->second.end());
      }
      return true;
    });
    return names;
  }

  /// Whether a condition on nothing but numbers holds, and on loops of one iteration: what it does not choose never runs.
  std::optional<bool> known(const Expr& condition) const {
    bool numbers = true;
    const Expr here = rewrite(condition, [&](const Expr& x) -> Expr {
      const VarRef* v = as<VarRef>(x);
      const auto range = v ? exact_.find(v->var.get()) : exact_.end();
      if (range != exact_.end() && range->second.min == range->second.max) return Expr(range->second.min);
      numbers = numbers && !v && !as<Load>(x) && !as<Lanes>(x);
      return {};
    });
    const auto value = numbers ? as_const_int(simplify(here)) : std::nullopt;
    return value ? std::optional(*value != 0) : std::nullopt;
  }

  void expr(const Expr& e) {
    if (!e) return;
    if (const Select* s = as<Select>(e)) {
      expr(s->condition);
      if (const auto holds = known(s->condition)) return expr(*holds ? s->yes : s->no);
      return under(s->condition, [&] {
        expr(s->yes);
        expr(s->no);
      });
    }
    const Apply* a = as<Apply>(e);
    if (a && (a->op == Op::And || a->op == Op::Or)) {
      expr(a->args[0]);
      return under(a->args[0], [&] { expr(a->args[1]); });
    }
    if (const Load* l = as<Load>(e)) access(l->buffer, l->index, "load of");
    bool top = true;
    walk(e, [&](const Expr& x) {
      if (top) return !(top = false);
      expr(x);
      return false;
    });
  }

  // A base pointer may lie before its buffer, if what is read from there does not: views are looked through.
  void access(const Buffer& b, const Exprs& index, const char* what) {
    const auto view = views_.find(b.get());
    if (view != views_.end() && view->second.base->dtype == b->dtype && index.size() == 1) {
      const Expr first = first_lane(index[0]);
      if (first) access(view->second.base, {view->second.offset + first}, what);
      return;
    }
    for (size_t d = 0; d < index.size() && d < b->shape.size(); d++) {
      const Expr first = first_lane(index[d]);
      if (!b->shape[d].is_const() || !first) continue;
      const std::optional<Range> r = exact(first);
      if (r && (r->min < 0 || r->max >= b->shape[d].value))
        throw InternalError("verify: " + std::string(what) + " buffer \"" + printable(b->name) + "\": index " +
                            to_text(to_expr(linear_form(first))) + " reaches from " + to_text(r->min) + " to " +
                            to_text(r->max) + " of " + to_text(b->shape[d].value));
    }
  }

  static Expr first_lane(const Expr& e) {
    if (const Ramp* r = as<Ramp>(e)) return r->base;
    return e->vector ? Expr() : e;
  }

  std::optional<Range> exact(const Expr& e) const {
    const Linear l = linear_form(e);
    Range sum{l.constant, l.constant};
    for (const Linear::Term& t : l.terms) {
      const VarRef* v = as<VarRef>(t.atom);
      const auto it = v ? exact_.find(v->var.get()) : exact_.end();
      if (it == exact_.end() || guards_.count(it->first) != 0) return std::nullopt;
      sum = sum + it->second * Range{t.coefficient, t.coefficient};
    }
    return sum;
  }

  // May the threads of a block see different values?
  bool differs(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const VarRef* v = as<VarRef>(x);
      found |= v && differing_.count(v->var.get()) != 0;
      const Load* l = as<Load>(x);
      found |= l && threads_own(l->buffer->scope);
      return !found;
    });
    return found;
  }

  static bool threads_own(Scope s) {
    return s == Scope::Register || s == Scope::Stack || s == Scope::Warp || s == Scope::Fragment;
  }

  std::map<const VarDef*, Range> exact_;                         // of loops whose variables take each of these values
  std::map<const VarDef*, std::set<const VarDef*>> depends_on_;  // of Lets
  struct View {
    Buffer base;
    Expr offset;
  };
  std::map<const BufferDef*, View> views_;
  std::multiset<const VarDef*> guards_;  // stand in the conditions around; looked up only
  std::set<const VarDef*> differing_;    // among the threads of a block
  int parted_ = 0;                       // conditions around that differ
};

}  // namespace

void verify_accesses(const Stmt& s) { AccessVerifier().stmt(s); }

}  // namespace tc
