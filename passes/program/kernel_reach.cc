// Every access of a kernel's loops, with the ranges of the variables and names around it and what conditions say of them; instructions
// count for what they stand for.
#include "passes/program/kernel_reach.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/expand_intrin.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"

namespace tc {
namespace {

class Reach {
 public:
  Reach(const Kernel& k, const std::vector<std::optional<Range>>& elements) : k_(k) {
    for (size_t i = 0; i < k.params.size(); i++)
      if (elements[i]) {
        const Var v = make_var("element", k.params[i].buffer->dtype);
        sizes_[k.params[i].buffer.get()] = v;
        ranges_[v.get()] = *elements[i];
      }
    stmt(with_sizes(with_most_lanes(k.body)));
  }
  KernelReach take() { return std::move(result_); }

 private:
  /// Does nothing but the kernel's own variables say which element it is? Else what is read on the way counts.
  static bool is_found_without_memory(const Load& l) {
    bool own = true;
    for (const Expr& i : l.index)
      walk(i, [&](const Expr& e) {
        const Load* inner = as<Load>(e);
        own = own && (!inner || inner->buffer->scope == Scope::Stack || inner->buffer->scope == Scope::Register);
        return own;
      });
    return own;
  }

  Expr size_of(const Expr& e) const {
    const Load* l = as<Load>(e);
    const auto size = l ? sizes_.find(l->buffer.get()) : sizes_.end();
    return size == sizes_.end() || !is_found_without_memory(*l) ? Expr() : Expr(size->second);
  }
  Stmt with_sizes(const Stmt& s) const {
    return rewrite(s, [&](const Expr& e) { return size_of(e); });
  }
  Expr with_sizes(const Expr& e) const {
    return rewrite(e, [&](const Expr& x) { return size_of(x); });
  }

  void instruction(const Intrin& k) {
    const Instruction& row = tc::instruction(k);
    const bool by_lanes =
        std::holds_alternative<ThreadReduction>(row.meaning) || std::holds_alternative<WarpShuffle>(row.meaning) ||
        std::holds_alternative<MatrixLoad>(row.meaning) ||
        (std::holds_alternative<MatrixInstruction>(row.meaning) && k.buffers.at(0)->scope != Scope::Fragment);
    if (!by_lanes) return stmt(with_most_lanes(expand_intrin(k)));
    for (const Buffer& b : k.buffers)  // registers, and what a block shares
      if (root(b)->scope == Scope::Global) reach(b, kUnknownReach);
  }

  /// A function of the device, in as many blocks as the launch has.
  void launch(const Launch& l) {
    for (const DeviceFunction& f : k_.device) {
      if (f.name != l.kernel) continue;
      for (size_t i = 0; i < l.buffers.size(); i++)
        if (f.params[i] != l.buffers[i]) {
          views_[f.params[i].get()] = {l.buffers[i], 0};
          if (const auto size = sizes_.find(l.buffers[i].get()); size != sizes_.end())
            sizes_[f.params[i].get()] = size->second;
        }
      for (size_t i = 0; i < l.args.size(); i++) lets_[f.host_loops[i].var.get()] = l.args[i];
      blocks_ = l.grid;
      for (Expr& e : blocks_) e = with_sizes(e);
      on_device_ = true;
      stmt(with_sizes(with_most_lanes(f.body)));
      on_device_ = false;
      blocks_.clear();
    }
  }
  /// How often it runs: a loop of blocks may be longer than its launch.
  Expr extent_of(const For& f) const {
    return is_block(f.kind) && !blocks_.empty() ? blocks_[size_t(f.kind) - size_t(ForKind::BlockX)] : f.extent;
  }

  void stmt(const Stmt& s) {
    if (!s) return;
    visit(
        s,
        [&](const Store& k) {
          for (const Expr& i : k.index) expr(i);
          expr(k.value);
          access(k.buffer, k.index, k.count);
        },
        [&](const For& k) {
          const Expr all = extent_of(k);
          expr(k.begin);
          expr(all);
          const Range begin = interval(k.begin, ranges_), end = interval(linear_form(k.begin + all), ranges_),
                      extent = interval(all, ranges_);
          if (extent.max <= 0 || end.max <= begin.min) return;  // it never runs
          if (on_device_) result_.longest = std::max(result_.longest, as_const_int(all).value_or(0));
          const Range with_extent = begin + extent;
          const int64_t behind = std::min(end.max, with_extent.max);
          ranges_[k.var.get()] = {begin.min, behind == INT64_MAX ? behind : behind - 1};
          limits_[k.var.get()] = is_const(k.begin, 0) ? limits_of(without_names(all)) : std::vector<Limit>();
          stmt(k.body);
        },
        [&](const While& k) {
          expr(k.condition);
          stmt(k.body);
        },
        [&](const If& k) {
          expr(k.condition);
          where(k.condition, true, [&] { stmt(k.then); });
          where(k.condition, false, [&] { stmt(k.otherwise); });
        },
        [&](const Let& k) {
          expr(k.value);
          ranges_[k.var.get()] = interval(k.value, ranges_);
          lets_[k.var.get()] = without_names(k.value);
          stmt(k.body);
        },
        [&](const Alloc& k) { stmt(k.body); },
        [&](const Alias& k) {
          expr(k.offset);
          views_[k.view.get()] = {k.base, k.offset};
          stmt(k.body);
        },
        [&](const Seq& k) {
          for (const Stmt& x : k.list) stmt(x);
        },
        [&](const Barrier&) {}, [&](const Prefetch&) {}, [&](const Intrin& k) { instruction(k); },
        [&](const Launch& k) { launch(k); }, [&](const Comment& k) { stmt(k.body); });
  }

  static Stmt with_most_lanes(const Stmt& s) {
    return rewrite(s, [](const Expr& e) -> Expr { return as<Lanes>(e) ? Expr(kMaxLanes) : Expr(); });
  }

  /// Tests that have names as what these say.
  Expr spelled(const Expr& test) const {
    if (as<VarRef>(test)) return without_names(test);
    const Apply* a = as<Apply>(test);
    if (!a || a->op != Op::And) return test;
    return apply(Op::And, {spelled(a->args[0]), spelled(a->args[1])});
  }
  template <class F>
  void where(const Expr& test, bool holds, F&& body) {
    const Expr condition = spelled(test);
    const Ranges all = ranges_;
    const VarMap names = lets_;
    const size_t known = below_.size();
    assume(ranges_, condition, holds);
    if (holds) keep_names(condition);
    if (holds) learn(condition);
    body();
    ranges_ = all;
    lets_ = names;
    below_.resize(known);
  }
  /// Of a name that is compared with a number, more is known than of its value.
  void keep_names(const Expr& condition) {
    const Apply* a = as<Apply>(condition);
    if (a && a->op == Op::And)
      for (const Expr& e : a->args) keep_names(e);
    if (!a || a->op < Op::Eq || a->op > Op::Ge) return;
    const VarRef* v = as<VarRef>(a->args[as_const_int(a->args[0]) ? 1 : 0]);
    if (v && (as_const_int(a->args[0]) || as_const_int(a->args[1]))) lets_.erase(v->var.get());
  }
  /// What a condition says of an expression that is no variable: i / n < rows.
  void learn(const Expr& condition) {
    const Apply* a = as<Apply>(condition);
    if (a && a->op == Op::And)
      for (const Expr& e : a->args) learn(e);
    if (!a || a->op != Op::Lt || a->args[0]->dtype != DType::I64 || as<VarRef>(without_names(a->args[0]))) return;
    const Range r = interval(a->args[0], ranges_), end = interval(a->args[1], ranges_);
    if (end.max == INT64_MAX || r.max < end.max) return;
    const Var v = make_var("below");
    ranges_[v.get()] = {std::min(r.min, end.max - 1), end.max - 1};
    below_.push_back({to_expr(linear_form(divided(bounded(a->args[0])))), v});
  }
  /// A loop's variable v: by * v <= end - by.
  struct Limit {
    Expr end;
    int64_t by = 1;
  };
  /// Of a loop that runs so often: of the least of several numbers each one.
  static std::vector<Limit> limits_of(const Expr& extent) {
    const Apply* a = as<Apply>(extent);
    if (a && (a->op == Op::Div || a->op == Op::FloorDiv) && as_const_int(a->args[1]).value_or(0) > 0) {
      std::vector<Limit> list = limits_of(a->args[0]);
      std::erase_if(list, [](const Limit& l) { return l.by != 1; });
      for (Limit& l : list) l.by = *as_const_int(a->args[1]);
      return list;
    }
    if (a && a->op == Op::Min) {
      std::vector<Limit> list = limits_of(a->args[0]);
      const std::vector<Limit> more = limits_of(a->args[1]);
      list.insert(list.end(), more.begin(), more.end());
      return list;
    }
    if (a && (a->op == Op::Add || a->op == Op::Sub) && as_const_int(a->args[1])) {
      std::vector<Limit> list = limits_of(a->args[0]);
      const int64_t more = a->op == Op::Add ? *as_const_int(a->args[1]) : -*as_const_int(a->args[1]);
      std::erase_if(list, [](const Limit& l) { return l.by != 1; });
      for (Limit& l : list) l.end = l.end + Expr(more);
      return list;
    }
    return {{extent, 1}};
  }
  /// The largest value, where what limits a loop's variable takes away what stands around it: p * 8 + j for j < n - p * 8.
  int64_t most(const Linear& l) const {
    int64_t least = interval(l, ranges_).max;
    for (const Linear::Term& t : l.terms) {
      const VarRef* v = as<VarRef>(t.atom);
      const auto limits = v && t.coefficient > 0 ? limits_.find(v->var.get()) : limits_.end();
      if (limits == limits_.end()) continue;
      for (const Limit& limit : limits->second) {
        if (t.coefficient % limit.by != 0) continue;
        Linear there = l;
        there.add(t.atom, -t.coefficient);
        there.add(linear_form(limit.end), t.coefficient / limit.by);
        there.constant -= t.coefficient;
        least = std::min(least, interval(there, ranges_).max);
      }
    }
    return least;
  }

  /// Without names, and with variables for what conditions say of parts of it.
  Expr bounded(const Expr& e) const {
    return rewrite(without_names(e), [&](const Expr& x) -> Expr {
      const Expr there = divided(x);
      for (const Below& b : below_)
        if (structurally_equal(x, b.what) || structurally_equal(there, b.what)) return Expr(b.var);
      return {};
    });
  }
  /// (block * 256 + thread) / 2 as block * 128 + thread / 2: what loops of blocks and what conditions on them say alike.
  Expr divided(const Expr& e) const {
    const Apply* a = as<Apply>(e);
    const bool divides = a && e->dtype == DType::I64 && (a->op == Op::Div || a->op == Op::FloorDiv);
    const int64_t n = divides ? as_const_int(a->args[1]).value_or(0) : 0;
    if (n <= 1) return e;
    Linear whole, rest;
    for (const Linear::Term& t : linear_form(a->args[0]).terms)
      t.coefficient % n == 0 ? whole.add(t.atom, t.coefficient / n) : rest.add(t.atom, t.coefficient);
    rest.constant = linear_form(a->args[0]).constant;
    if (interval(rest, ranges_).min < 0 || interval(whole, ranges_).min < 0) return e;
    whole.add(apply(a->op, {to_expr(rest), Expr(n)}), 1);
    return to_expr(whole);
  }
  Expr without_names(const Expr& e) const { return substitute(e, lets_); }
  Range interval_of(const Expr& e) const {
    Range r = interval(linear_form(e), ranges_);
    r.max = std::min(r.max, most(linear_form(without_names(e))));
    if (below_.empty()) return r;
    r.max = std::min(r.max, interval(linear_form(bounded(e)), ranges_).max);
    return r;
  }

  void expr(const Expr& e) {
    if (!e) return;
    if (const Select* s = as<Select>(e)) {
      expr(s->condition);
      where(s->condition, true, [&] { expr(s->yes); });
      where(s->condition, false, [&] { expr(s->no); });
      return;
    }
    if (const Partial* p = as<Partial>(e))
      if (const Load* l = as<Load>(p->value)) {
        for (const Expr& i : l->index) expr(i);
        expr(p->count);
        return access(l->buffer, l->index, p->count);
      }
    if (const Load* l = as<Load>(e)) access(l->buffer, l->index, {});
    if (const Apply* a = as<Apply>(e); a && a->op == Op::Index)
      walk(without_names(e), [&](const Expr& x) {
        const Load* l = as<Load>(x);
        if (l && root(l->buffer)->scope != Scope::Global) result_.tests_own = true;
        if (l) result_.tested.insert(root(l->buffer).get());
        return true;
      });
    bool top = true;
    walk(e, [&](const Expr& x) {
      if (top) return !(top = false);
      expr(x);
      return false;
    });
  }

  /// `count`: so many lanes; null: all.
  void access(const Buffer& b, const Exprs& index, const Expr& count) {
    if (index.empty()) return reach(b, 1);
    if (index.size() != 1) return reach(b, kUnknownReach);
    const Ramp* lanes = as<Ramp>(index[0]);
    int64_t last = 0;
    if (lanes) last = (count ? std::min(interval(count, ranges_).max, kMaxLanes) : kMaxLanes) - 1;
    if (last >= 0) element(b, lanes ? lanes->base : index[0], last);
  }

  /// The elements from `at` to the one `more` behind it. Views are looked through: a base pointer may lie before its buffer.
  void element(Buffer b, Expr at, int64_t more) {
    for (auto view = views_.find(b.get()); view != views_.end(); view = views_.find(b.get())) {
      const Buffer base = view->second.base;
      if (base->dtype != b->dtype) return reach(root(base), base->scope == Scope::Global ? kUnknownReach : 0);
      at = view->second.offset + at;
      b = base;
    }
    const Range r = interval_of(at);
    reach(b, r.max == INT64_MAX || r.max >= INT64_MAX / 64 ? kUnknownReach : r.max + more + 1);
  }
  Buffer root(Buffer b) const {
    for (auto view = views_.find(b.get()); view != views_.end(); view = views_.find(b.get())) b = view->second.base;
    return b;
  }
  void reach(const Buffer& b, int64_t elements) {
    int64_t& end = result_.ends[root(b).get()];
    const int64_t bytes = info(b->dtype).bytes;
    end = std::max(end, elements == kUnknownReach ? kUnknownReach : elements * std::max<int64_t>(bytes, 1));
  }

  struct View {
    Buffer base;
    Expr offset;
  };
  struct Below {
    Expr what;
    Var var;  // in its place, with the range that a condition leaves
  };
  const Kernel& k_;
  std::map<const BufferDef*, Var> sizes_;  // by parameters whose elements are known; looked up only
  Exprs blocks_;                           // of the launch that is looked at
  bool on_device_ = false;
  Ranges ranges_;
  VarMap lets_;  // values of names, without names
  std::vector<Below> below_;
  std::map<const VarDef*, std::vector<Limit>> limits_;  // looked up only
  std::map<const BufferDef*, View> views_;              // looked up only
  KernelReach result_;
};

}  // namespace

std::optional<Range> number_of(const Kernel& k, const std::vector<std::optional<Range>>& elements) {
  const Store* s = as<Store>(k.body);
  if (!s || s->value->dtype != DType::I64 || s->reduce || bool(s->count)) return {};
  bool known = true;
  Ranges ranges;
  const Expr value = rewrite(s->value, [&](const Expr& e) -> Expr {
    const Load* l = as<Load>(e);
    if (!l) return {};
    for (size_t i = 0; i < k.params.size(); i++) {
      if (k.params[i].buffer != l->buffer || !elements[i]) continue;
      const Var v = make_var("element", l->buffer->dtype);
      ranges[v.get()] = *elements[i];
      return Expr(v);
    }
    known = false;
    return {};
  });
  const Range r = interval(value, ranges);
  const bool bounded = r.min != INT64_MIN && r.max != INT64_MAX;
  return known && bounded ? std::optional(r) : std::nullopt;
}

KernelReach reach_of(const Kernel& k, const std::vector<std::optional<Range>>& elements) {
  return Reach(k, elements).take();
}

}  // namespace tc
