// A nest keeps a count if a loop of its own goes along each counted axis, and an iteration has nothing to do with another: what it
// reads and writes along these axes has the loop's index, nothing else looks at that index, and local variables begin anew.
//   for b in 5: alloc m[4, 4]: m = x[b, ., .]; ...; y[b] = d      x counted along 0   ->   y counted along 0
//   alloc n: for b in 5: if x[b]: y[n] = x[b]; n = n + 1                              ->   no: iterations share n
#include <algorithm>

#include "ir/loop/raises.h"
#include "ir/loop/visit.h"
#include "passes/graph/counted_follow.h"

namespace tc {
namespace {

using AxesOf = std::map<const BufferDef*, std::set<int>>;
using Vars = std::set<const VarDef*>;

const VarDef* variable(const Expr& e) {
  const VarRef* r = as<VarRef>(e);
  return r ? r->var.get() : nullptr;
}

/// Variables of the loops that go along counted axes, found from what is read to what is written.
class AlongCounts {
 public:
  explicit AlongCounts(AxesOf axes) : axes_(std::move(axes)) {}

  bool find(const Stage& s) {
    for (const Buffer& b : s.outputs) outputs_.insert(b.get());
    for (bool again = true; again;) {
      const size_t before = size();
      collect(s.nest, {});
      again = size() != before;
    }
    return !across_ && check(s.nest, {});
  }
  const AxesOf& axes() const { return axes_; }

 private:
  size_t size() const {
    size_t n = vars_.size();
    for (const auto& [buffer, axes] : axes_) n += axes.size();
    return n;
  }

  void at_axes(const BufferDef* b, const Exprs& index) {
    const auto it = axes_.find(b);
    if (it == axes_.end()) return;
    for (const int axis : it->second) {
      const VarDef* v = variable(index.at(size_t(axis)));
      across_ = across_ || !v;
      if (v) vars_.insert(v);
    }
  }

  /// `around`: variables of the loops around the statement. Reads come before the store that depends on them.
  void collect(const Stmt& stmt, const Vars& around) {
    walk(
        stmt,
        [&](const Stmt& s) {
          if (const For* f = as<For>(s)) {
            each_load(f->begin), each_load(f->extent);
            Vars inside = around;
            inside.insert(f->var.get());
            collect(f->body, inside);
            return false;
          }
          if (const Store* k = as<Store>(s)) written(*k, around);
          return true;
        },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) at_axes(l->buffer.get(), l->index);
          return true;
        });
  }
  void each_load(const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x)) at_axes(l->buffer.get(), l->index);
      return true;
    });
  }
  void written(const Store& s, const Vars& around) {
    if (outputs_.count(s.buffer.get()) != 0)
      for (const VarDef* v : around)
        if (vars_.count(v) != 0) {
          const auto at = std::find_if(s.index.begin(), s.index.end(), [&](const Expr& e) { return variable(e) == v; });
          across_ = across_ || at == s.index.end();
          if (at != s.index.end()) axes_[s.buffer.get()].insert(int(at - s.index.begin()));
        }
    at_axes(s.buffer.get(), s.index);
  }

  /// Does the expression look at such variables only as indices along counted axes, and raise nothing of what is not there?
  bool only_indexes(const Expr& e) const {
    bool ok = !e || !raises_status(e);
    if (!e) return ok;
    walk(e, [&](const Expr& x) {
      if (const VarDef* v = variable(x)) ok = ok && vars_.count(v) == 0;
      const Load* l = as<Load>(x);
      if (l) ok = ok && indices_fit(l->buffer.get(), l->index);
      return ok && !l;
    });
    return ok;
  }
  bool indices_fit(const BufferDef* b, const Exprs& index) const {
    const auto it = axes_.find(b);
    for (size_t k = 0; k < index.size(); k++) {
      const bool along = it != axes_.end() && it->second.count(int(k)) != 0;
      if (!along && !only_indexes(index[k])) return false;
    }
    return true;
  }

  /// `there`: the local variables that there are already.
  bool check(const Stmt& stmt, const std::set<const BufferDef*>& there) const {
    bool ok = true;
    walk(
        stmt,
        [&](const Stmt& s) {
          if (const Alloc* a = as<Alloc>(s)) {
            auto more = there;
            more.insert(a->buffer.get());
            ok = ok && check(a->body, more);
            return false;
          }
          if (const For* f = as<For>(s); f && vars_.count(f->var.get()) != 0) {
            ok = ok && goes_along(*f) && !shares(f->body, there) && check(f->body, {});
            return false;
          }
          if (const Store* k = as<Store>(s)) {
            ok = ok && indices_fit(k->buffer.get(), k->index) && only_indexes(k->value) && !k->count;
            return false;
          }
          ok = ok && (as<For>(s) || as<While>(s) || as<If>(s) || as<Let>(s) || as<Seq>(s) || as<Comment>(s));
          return ok;
        },
        [&](const Expr& e) {
          ok = ok && only_indexes(e);
          return false;
        });
    return ok;
  }

  /// All elements, whatever the axis.
  bool goes_along(const For& f) const {
    const IntImm *begin = as<IntImm>(f.begin), *extent = as<IntImm>(f.extent);
    if (!begin || begin->value != 0 || !extent) return false;
    bool whole = true;
    const auto compare = [&](const BufferDef* b, const Exprs& index) {
      for (size_t k = 0; k < index.size(); k++)
        if (variable(index[k]) == f.var.get()) whole = whole && b->shape.at(k) == Dim(extent->value);
    };
    walk(
        f.body,
        [&](const Stmt& s) {
          if (const Store* k = as<Store>(s)) compare(k->buffer.get(), k->index);
          return true;
        },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) compare(l->buffer.get(), l->index);
          return true;
        });
    return whole;
  }
  static bool shares(const Stmt& body, const std::set<const BufferDef*>& locals) {
    bool found = false;
    walk(
        body,
        [&](const Stmt& s) {
          if (const Store* k = as<Store>(s)) found = found || locals.count(k->buffer.get()) != 0;
          return true;
        },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) found = found || locals.count(l->buffer.get()) != 0;
          return true;
        });
    return found;
  }

  AxesOf axes_;  // looked up only
  Vars vars_;
  std::set<const BufferDef*> outputs_;
  bool across_ = false;
};

}  // namespace

bool CountedAxes::spread_nest(const Stage& s) {
  AlongCounts along(axes_);
  if (!along.find(s)) return false;
  axes_ = along.axes();
  return true;
}

}  // namespace tc
