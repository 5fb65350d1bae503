// See alias_query.cc for the proof that iterations do not alias.
#include "passes/analysis/dependence.h"

#include <set>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/print.h"
#include "ir/loop/simplifier.h"
#include "ir/loop/visit.h"
#include "passes/analysis/alias_query.h"
#include "passes/analysis/nest.h"

namespace tc {
namespace {

class Collector {
 public:
  explicit Collector(Ranges outer) : ranges_(std::move(outer)) {}

  void stmt(const Stmt& s) {
    if (!s) return;
    visit(
        s,
        [&](const Store& k) {
          loads(k.index), loads({k.value});
          if (k.count) loads({k.count});
          add(k.buffer, k.index, true, k.reduce);
        },
        [&](const For& k) {
          loads({k.begin, k.extent});
          const Ranges before = ranges_;
          ranges_[k.var.get()] = loop_range(k, before);
          out.bound.push_back(k.var);
          stmt(k.body);
          ranges_ = before;
        },
        [&](const While& k) { loads({k.condition}), stmt(k.body); },
        [&](const If& k) {
          loads({k.condition});
          under(k.condition, true, k.then);
          under(k.condition, false, k.otherwise);
        },
        [&](const Let& k) {
          loads({k.value});
          const Ranges before = ranges_;
          out.bound.push_back(k.var);
          if (!is_float(k.value->dtype) && !k.value->vector) lets_[k.var.get()] = substitute(k.value, lets_);
          assume_name(ranges_, k);
          stmt(k.body);
          ranges_ = before;
        },
        [&](const Alloc& k) {
          local_.insert(k.buffer.get());
          stmt(k.body);
        },
        [&](const Alias& k) { unknown("a view into another buffer"), stmt(k.body); },
        [&](const Seq& k) {
          for (const Stmt& x : k.list) stmt(x);
        },
        [&](const Barrier&) { out.has_barrier = true; }, [&](const Prefetch&) {},
        [&](const Intrin&) { unknown("an instruction"); }, [&](const Launch&) { unknown("a launch"); },
        [&](const Comment& k) { stmt(k.body); });
  }

  Accesses out;

 private:
  void unknown(const char* what) {
    if (out.opaque.empty()) out.opaque = what;
  }

  void under(const Expr& condition, bool holds, const Stmt& s) {
    if (!s) return;
    const Ranges before = ranges_;
    assume(ranges_, substitute(condition, lets_), holds);
    stmt(s);
    ranges_ = before;
  }

  void add(const Buffer& b, const Exprs& index, bool write, std::optional<Op> reduce) {
    if (local_.count(b.get()) != 0) return;
    Access a{b, {}, write, reduce, ranges_};
    for (const Expr& i : index) a.index.push_back(substitute(i, lets_));
    out.list.push_back(std::move(a));
  }

  void loads(const Exprs& list) {
    for (const Expr& e : list)
      walk(e, [&](const Expr& x) {
        if (const Load* l = as<Load>(x)) add(l->buffer, l->index, false, {});
        return true;
      });
  }

  Ranges ranges_;
  VarMap lets_;
  std::set<const BufferDef*> local_;  // looked up only
};

std::string describe(const Access& a) {
  std::string s = a.buffer->name + "[";
  for (size_t d = 0; d < a.index.size(); d++) s += (d > 0 ? ", " : "") + to_text(a.index[d]);
  s += "]";
  if (a.reduce) return "joins into " + s;
  return (a.write ? "writes " : "reads ") + s;
}

}  // namespace

Accesses accesses_of(const Stmt& s, const Ranges& outer) {
  Collector c(outer);
  c.stmt(s);
  return std::move(c.out);
}

std::vector<Conflict> conflicts(const Stmt& root, const Var& v, const Ranges& outer) {
  const auto site = find_loop(root, v);
  if (site && as_const_int(site->loop->extent).value_or(2) <= 1) return {};  // there is no other iteration
  const Accesses all = accesses_of(root, outer);
  if (!all.opaque.empty()) return {{nullptr, {}, "contains " + all.opaque}};
  if (all.has_barrier) return {{nullptr, {}, "contains a barrier"}};
  std::set<const VarDef*> varies;
  std::set<const BufferDef*> written;
  for (const Var& b : all.bound) varies.insert(b.get());
  for (const Access& a : all.list)
    if (a.write) written.insert(a.buffer.get());
  std::vector<Conflict> found;
  for (size_t i = 0; i < all.list.size(); i++)
    for (size_t j = i; j < all.list.size(); j++) {
      const Access &a = all.list[i], &b = all.list[j];
      if (a.buffer != b.buffer || (!a.write && !b.write)) continue;
      AliasQuery m(a, b, varies, written);
      if (m.no_alias() || m.implies_equal(v)) continue;
      Conflict c{a.buffer, {}, ""};
      if (a.reduce && a.reduce == b.reduce) c.reduce = a.reduce;
      c.text = describe(a) + (i == j ? "" : " and " + describe(b));
      if (i == j && !a.reduce) c.text += " more than once";
      found.push_back(std::move(c));
    }
  return found;
}

bool may_reorder(const Conflict& c, bool strict_fp) {
  if (!c.reduce || !c.buffer) return false;
  switch (*c.reduce) {
    case Op::Add:
    case Op::Mul: return !strict_fp || !is_float(c.buffer->dtype);
    case Op::Min:
    case Op::Max:
    case Op::And:
    case Op::Or:
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor: return true;
    default: return false;
  }
}

}  // namespace tc
