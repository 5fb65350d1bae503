// Reductions along rows, with everything around them: softmax, normalisation, means, positions of extremes.
//
//   x_row = x[row]                          16 bytes a read; the row is read once and stays in registers
//   max = max(x_row), over the lanes too    shuffles; through shared memory where a block has the row
//   exp_row = exp(x_row - max); sum = ...
//   y[row] = exp_row / sum
//
// Rows that lie contiguous in memory: up to 1024 columns a warp or a part of it has the row, else a block. Where
// neighbouring rows are neighbours in memory instead (a softmax over channels first), a warp has 32 rows, and several
// warps share their columns. Rows of a few columns have a thread each. Rows that do not fit into the registers are read
// again for every step.
#include <bit>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/raises.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cuda/row_elements.h"

namespace tc {
namespace {

class RowLoops final : RowElements {
 public:
  RowLoops(Rows r, const RowPlan& plan) : RowElements(std::move(r), plan) {}

  Stmt build() {
    if (p_.in_registers) keep_operands();
    Stmt body = steps(0);
    if (partial_ && !clamped_) body = if_then(at_.flat < Expr(rows_), body);
    body = at_.wrap(body);
    if (p_.lanes > 1 && p_.rows > 1) body = let(lane_, lane_number(), body);
    Stmt launch = loop(thread_, p_.threads(), body, ForKind::ThreadX);
    for (size_t i = shared_.size(); i-- > 0;) launch = alloc(shared_[i], launch);
    return loop(block_, ceil_div(rows_, p_.rows), launch, ForKind::BlockX);
  }

 private:
  // Rows of operands that several steps read get an array, filled first.
  void keep_operands() {
    std::vector<RowStep> keeps;
    for (size_t i = 0; i < r_.steps.size(); i++) {
      if (!along_row(r_.steps[i])) continue;
      const Expr read = read_again(r_.steps[i]);
      if (!read) continue;
      const Buffer& from = as<Load>(read)->buffer;
      const Buffer kept = make_buffer(from->name + "_row", from->dtype, {Dim(columns_)}, Scope::Register);
      for (RowStep& s : r_.steps)
        for (Expr* value : values_of(s))
          *value = rewrite(*value, [&](const Expr& e) -> Expr {
            return as<Load>(e) && structurally_equal(e, read) ? load(kept, {r_.kept_index}) : Expr();
          });
      keeps.push_back({RowStep::Kind::Keep, read, Op::Add, {}, nullptr, kept});
      i--;  // the loads of this step are others now
    }
    r_.steps.insert(r_.steps.begin(), keeps.begin(), keeps.end());
    for (const RowStep& s : r_.steps)
      if (s.kind == RowStep::Kind::Keep) arrays_[s.kept.get()] = array_of(s);
  }
  // A read of the step that is made along the rows, and in other steps too.
  Expr read_again(const RowStep& step) const {
    for (const Expr& value : values_of(step))
      for (const Load* l : loads_of(value)) {
        if (l->buffer->scope != Scope::Global || !walks_rows(l->index[0]) || !is_inside(*l)) continue;
        const Expr read = load(l->buffer, l->index);
        if (depends_on_data(l->index[0]) && !always_reads(value, read)) continue;
        int uses = 0;
        for (const RowStep& s : r_.steps) uses += along_row(s) && reads(s, read) ? 1 : 0;
        if (uses > 1) return read;
      }
    return {};
  }
  // Does no condition stand in front of the read?
  static bool always_reads(const Expr& value, const Expr& read) {
    bool found = false;
    walk(value, [&](const Expr& x) {
      if (const Select* k = as<Select>(x)) {
        found = found || always_reads(k->condition, read);
        return false;
      }
      if (const Apply* a = as<Apply>(x); a && (a->op == Op::And || a->op == Op::Or)) {
        found = found || always_reads(a->args[0], read);
        return false;
      }
      found = found || (as<Load>(x) && structurally_equal(x, read));
      return !found;
    });
    return found;
  }
  // Has the operand all elements of every row? What a condition leaves out, as behind the end of what is padded, is not there.
  bool is_inside(const Load& l) const {
    Ranges ranges;
    for (const auto* axes : {&r_.c.axes, &r_.columns})
      for (const Axis& a : *axes) ranges[a.var.get()] = {0, a.extent.value - 1};
    const Range at = interval(l.index[0], ranges);
    return at.min >= 0 && at.max < num_elements(static_dims(l.buffer->shape));
  }
  bool walks_rows(const Expr& index) const {
    if (!uses_var(index, r_.columns[0].var)) return false;
    for (const Axis& a : r_.c.axes)
      if (uses_var(index, a.var)) return true;
    return rows_ == 1;
  }
  static bool reads(const RowStep& s, const Expr& read) {
    bool found = false;
    for (const Expr& value : values_of(s))
      walk(value, [&](const Expr& x) {
        found |= as<Load>(x) && structurally_equal(x, read);
        return !found;
      });
    return found;
  }

  Stmt steps(size_t i) {
    if (i == r_.steps.size()) return {};
    const RowStep& s = r_.steps[i];
    switch (s.kind) {
      case RowStep::Kind::Keep: {
        const Buffer array = arrays_.at(s.kept.get());
        const bool joined =
            !as<Load>(s.value) && i + 1 < r_.steps.size() && r_.steps[i + 1].kind == RowStep::Kind::Reduce;
        return alloc(array, joined ? reduce(r_.steps[i + 1], &s, i + 2) : seq({keep(s), steps(i + 1)}));
      }
      case RowStep::Kind::Reduce: return reduce(s, nullptr, i + 1);
      case RowStep::Kind::Scalar: return let(s.name, at_row(s.value), steps(i + 1));
      case RowStep::Kind::Value: {
        Stmt one = store(s.out, {at_index(s.out_index, {})}, at_row(s.value));
        if (clamped_)
          one = if_then(eq(lane(), 0) && row_number() < Expr(rows_), one);
        else if (p_.lanes > 1)
          one = if_then(eq(lane(), 0), one);
        return seq({one, steps(i + 1)});
      }
      case RowStep::Kind::Row:
        return seq(
            {comment(s.out == r_.c.out ? "the result" : "the result " + s.out->name, if_live(row(s))), steps(i + 1)});
    }
    return {};
  }
  Stmt if_live(const Stmt& s) const { return clamped_ ? if_then(row_number() < Expr(rows_), s) : s; }

  Stmt row(const RowStep& s) const {
    auto one = [&](const Element& c) { return store(s.out, {at_index(s.out_index, c)}, at_element(s.value, c)); };
    return over_iterations([&](const Element& first) {
      if (p_.vector == 1) return one(first);
      const int64_t n = together(s.out, s.out_index);
      const Var piece = make_var("h"), j = make_var("j");
      if (n == 1 || n == p_.vector)
        return loop(j, p_.vector, one({first.iteration, first.column + Expr(j), Expr(j)}),
                    n > 1 ? ForKind::Vector : ForKind::Unroll);
      const Expr begin = Expr(piece) * Expr(n);
      const Stmt s1 =
          loop(j, n, one({first.iteration, first.column + begin + Expr(j), begin + Expr(j)}), ForKind::Vector);
      return loop(piece, p_.vector / n, s1, ForKind::Unroll);
    });
  }

  Stmt keep(const RowStep& s) const {
    const Buffer to = arrays_.at(s.kept.get());
    const Load* l = as<Load>(s.value);
    const int64_t n = l ? together(l->buffer, l->index[0]) : 1;
    if (n > 1)
      return comment("this thread's part of the row",
                     over_iterations([&](const Element& c) { return read_vector(to, {c.iteration}, *l, n, c); }));
    return at_elements({s.value}, [&](const Element& c, const Exprs& v) { return store(to, index_in(to, c), v[0]); });
  }

  // `kept` is stored on the way.
  Stmt reduce(const RowStep& s, const RowStep* kept, size_t next) {
    if (!s.tuple.empty()) return reduce_tuple(s, kept, next);
    const DType t = s.name->dtype;
    const std::string name = s.name->name == r_.c.out->name ? name_of_reduction(s.op) : s.name->name;
    const Buffer total = make_buffer(name, t, {}, Scope::Register);
    auto add = [&](const Expr& value) { return store(total, {}, value, s.op); };
    Stmts list = {store(total, {}, identity_of(s.op, t)),
                  part_of(kept, {s.value}, [&](const Exprs& v) { return add(v[0]); })};
    if (p_.across || info(t).bytes < 4)
      list.push_back(join({total}, [&](const Exprs& other) { return add(other[0]); }));
    else
      list.push_back(allreduce(total, s.op, p_.lanes));
    const auto init = as_const_number(s.init), none = as_const_number(identity_of(s.op, t));
    if (!init || *init != *none) list.push_back(add(at_row(s.init)));
    names_[s.name.get()] = load(total, {});
    list.push_back(steps(next));
    return comment(name + " of the row", alloc(total, seq(std::move(list))));
  }

  // Each lane begins with what joins first: a combiner gives the same however often it joins.
  Stmt reduce_tuple(const RowStep& s, const RowStep* kept, size_t next) {
    std::vector<Buffer> totals;
    for (const RowComponent& k : s.tuple)
      totals.push_back(make_buffer(k.name->name, k.name->dtype, {}, Scope::Register));
    auto combine = [&](const Exprs& other) {
      VarMap at;
      std::vector<Var> values, results;
      for (size_t k = 0; k < totals.size(); k++) {
        values.push_back(make_var("v", totals[k]->dtype));
        results.push_back(make_var("next", totals[k]->dtype));
        at[s.combiner.lhs[k].get()] = load(totals[k], {});
        at[s.combiner.rhs[k].get()] = Expr(values[k]);
      }
      Stmts stores;
      for (size_t k = 0; k < totals.size(); k++) stores.push_back(store(totals[k], {}, Expr(results[k])));
      Stmt one = seq(std::move(stores));
      for (size_t k = totals.size(); k-- > 0;) one = let(results[k], substitute(s.combiner.result[k], at), one);
      for (size_t k = totals.size(); k-- > 0;) one = let(values[k], other[k], one);
      return one;
    };
    Exprs values;
    for (const RowComponent& k : s.tuple) values.push_back(k.value);
    Stmts list = {part_of(kept, values, combine), join(totals, combine)};
    for (size_t k = 0; k < totals.size(); k++) names_[s.tuple[k].name.get()] = load(totals[k], {});
    list.push_back(steps(next));
    Stmt all = seq(std::move(list));
    for (size_t k = totals.size(); k-- > 0;)
      all = alloc(totals[k], seq({store(totals[k], {}, at_row(s.tuple[k].init)), all}));
    return comment(totals[0]->name + " of the row", all);
  }

  // This thread's part of a reduction.
  Stmt part_of(const RowStep* kept, const Exprs& values, const std::function<Stmt(const Exprs& values)>& add) {
    if (!kept) return at_elements(values, [&](const Element&, const Exprs& v) { return add(v); });
    const Buffer to = arrays_.at(kept->kept.get());
    return at_elements({kept->value}, [&](const Element& c, const Exprs& v) {
      Exprs at;
      for (const Expr& e : values) at.push_back(at_element(e, c));
      return seq({store(to, index_in(to, c), v[0]), add(at)});
    });
  }

  // The lanes' parts through shared memory, halves of the lanes at a time; all lanes get the whole.
  Stmt join(const std::vector<Buffer>& totals, const std::function<Stmt(const Exprs& other)>& add) {
    if (p_.lanes == 1) return {};
    std::vector<Buffer> parts;
    for (const Buffer& t : totals) {
      parts.push_back(make_buffer(t->name + "_of_thread", t->dtype, {Dim(p_.threads())}, Scope::Shared));
      shared_.push_back(parts.back());
    }
    const int64_t step = p_.across ? p_.rows : 1;
    const Expr me = Expr(thread_);
    auto put = [&] {
      Stmts list;
      for (size_t k = 0; k < totals.size(); k++) list.push_back(store(parts[k], {me}, load(totals[k], {})));
      return seq(std::move(list));
    };
    Stmts list = {put()};
    const Var iteration = make_var("k"), half = make_var("half");
    Exprs other;
    for (const Buffer& p : parts) other.push_back(load(p, {me + Expr(half) * Expr(step)}));
    const Stmt once = seq({barrier(Scope::Shared), if_then(lane() < Expr(half), seq({add(other), put()}))});
    list.push_back(loop(iteration, std::countr_zero(uint64_t(p_.lanes)),
                        let(half, apply(Op::Shr, {Expr(p_.lanes / 2), Expr(iteration)}), once)));
    list.push_back(barrier(Scope::Shared));
    for (size_t k = 0; k < totals.size(); k++)
      list.push_back(store(totals[k], {}, load(parts[k], {me - lane() * Expr(step)})));
    return seq(std::move(list));
  }

  std::vector<Buffer> shared_;
};

}  // namespace

Stmt row_loops(Rows r, const RowPlan& plan) { return RowLoops(std::move(r), plan).build(); }

}  // namespace tc
