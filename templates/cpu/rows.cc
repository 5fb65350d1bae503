// Reductions along rows that lie contiguous in memory, with everything around them: softmax, layer normalisation,
// means.
//
//   for rows:                                 shared among threads
//     m = max(row); s = sum(exp(row - m))     vectors with several accumulators, joined over the lanes at the end
//     row' = exp(row - m) / s                 vectors again; the row is still in the first-level cache
//
// Stages over whole rows are written in place into what reads them, unless they are costly and read twice: these are
// stored to the row of the result, and read back. What has one value per row is a scalar.
#include <algorithm>
#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

struct Step {
  enum class Kind { Keep, Reduce, Scalar, Row, Value } kind;  // Row, Value: the result, a row or one value of it
  Expr value;
  Op op = Op::Add;  // Reduce
  Expr init;
  Var name;  // Reduce, Scalar
};

struct Rows {
  Canonical c;  // inputs, views and out; axes are the rows
  std::vector<Axis> columns;
  std::vector<Step> steps;
  Expr kept_index;  // of the result's row, where Keep writes
};

std::vector<int64_t> sizes(const std::vector<Axis>& axes) {
  std::vector<int64_t> v;
  for (const Axis& a : axes)
    if (a.extent.value > 1) v.push_back(a.extent.value);
  return v;
}

class Matcher {
 public:
  explicit Matcher(const TemplateArgs& a) : fn_(a.fn) {}

  std::optional<Rows> run() {
    if (!is_plain() || !find_shape()) return {};
    for (const Buffer& b : fn_.inputs) {
      r_.c.inputs.push_back(make_buffer(b->name, b->dtype, {Dim(num_elements(static_dims(b->shape)))}));
      r_.c.originals.push_back(b);
    }
    r_.c.original_out = fn_.outputs[0];
    r_.c.out =
        make_buffer(r_.c.original_out->name, DType::F32, {Dim(num_elements(static_dims(r_.c.original_out->shape)))});
    for (const Stage& s : fn_.stages)
      if (!add(s)) return {};
    merge();
    if (r_.columns.size() != 1 || !all_vector_forms()) return {};
    return std::move(r_);
  }

 private:
  bool is_plain() const {
    if (fn_.outputs.size() != 1 || fn_.stages.empty() || fn_.stages.back().outputs[0] != fn_.outputs[0]) return false;
    for (const Buffer& b : fn_.inputs)
      if (!is_static(b->shape) || !b->strides.empty() || b->offset != 0) return false;
    for (const Stage& s : fn_.stages) {
      if (s.kind == Stage::Kind::Nest || s.scan >= 0 || s.outputs.size() != 1) return false;
      if (!is_static(s.outputs[0]->shape) || s.outputs[0]->dtype != DType::F32) return false;
      if (s.kind == Stage::Kind::Reduce && !s.combiner.op) return false;
      if (s.kind == Stage::Kind::Reduce && *s.combiner.op != Op::Add && *s.combiner.op != Op::Max &&
          *s.combiner.op != Op::Min)
        return false;
    }
    return true;
  }

  // Rows and columns from the first reduction; all stages must have this shape.
  bool find_shape() {
    const auto s = std::find_if(fn_.stages.begin(), fn_.stages.end(),
                                [](const Stage& x) { return x.kind == Stage::Kind::Reduce; });
    if (s == fn_.stages.end()) return false;
    auto fresh = [](const std::vector<Axis>& from) {
      std::vector<Axis> to;
      for (const Axis& a : from)
        if (a.extent.value > 1) to.push_back({make_var(a.var->name), a.extent});
      return to;
    };
    r_.c.axes = fresh(s->axes);
    r_.columns = fresh(s->raxes);
    return !r_.columns.empty();
  }

  bool is_row_shape(const std::vector<int64_t>& v) const { return v == sizes(r_.c.axes); }
  bool is_full_shape(const std::vector<int64_t>& v) const {
    std::vector<int64_t> all = sizes(r_.c.axes), columns = sizes(r_.columns);
    all.insert(all.end(), columns.begin(), columns.end());
    return v == all;
  }

  // The stage's own variables become ours.
  bool bind(const Stage& s, bool& full, VarMap& to) const {
    std::vector<Axis> axes = s.axes;
    axes.insert(axes.end(), s.raxes.begin(), s.raxes.end());
    const std::vector<int64_t> v = sizes(axes);
    full = is_full_shape(v);
    if (!full && !is_row_shape(v)) return false;
    if (s.kind == Stage::Kind::Reduce && (!full || !is_row_shape(sizes(s.axes)))) return false;
    std::vector<Axis> ours = r_.c.axes;
    if (full) ours.insert(ours.end(), r_.columns.begin(), r_.columns.end());
    size_t next = 0;
    for (const Axis& a : axes) to[a.var.get()] = a.extent.value > 1 ? Expr(ours[next++].var) : Expr(0);
    return true;
  }

  // A read of an earlier stage must be of the same row (and column).
  bool reads_here(const Load& l, bool full) const {
    std::vector<Axis> ours = r_.c.axes;
    if (full) ours.insert(ours.end(), r_.columns.begin(), r_.columns.end());
    size_t next = 0;
    for (size_t d = 0; d < l.index.size(); d++) {
      if (l.buffer->shape[d].value == 1) continue;
      const VarRef* v = as<VarRef>(l.index[d]);
      if (!v || next >= ours.size() || v->var != ours[next++].var) return false;
    }
    return next == ours.size();
  }

  // The expression in our variables, over flat buffers and earlier results; null if it reads something else.
  Expr translate(const Expr& e, const VarMap& to) {
    bool ok = true;
    Expr r = rewrite(substitute(e, to), [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      if (!l) return {};
      for (size_t i = 0; i < fn_.inputs.size(); i++)
        if (l->buffer == fn_.inputs[i]) {
          Expr index = 0;
          for (size_t d = 0; d < l->index.size(); d++) index = index * Expr(l->buffer->shape[d]) + l->index[d];
          return load(r_.c.inputs[i], {simplify(index, ranges())});
        }
      const auto it = results_.find(l->buffer.get());
      if (it == results_.end()) return {};  // one of ours already
      ok = ok && reads_here(*l, it->second.full);
      return it->second.value;
    });
    return ok ? r : Expr();
  }

  Ranges ranges() const {
    Ranges r;
    for (const auto* l : {&r_.c.axes, &r_.columns})
      for (const Axis& a : *l) r[a.var.get()] = {0, a.extent.value - 1};
    return r;
  }

  int readers(const Buffer& b) const {
    int n = 0;
    for (const Stage& s : fn_.stages)
      for (const Load* l : loads_of(s.values[0]))
        if (l->buffer == b) {
          n++;
          break;
        }
    return n;
  }

  bool add(const Stage& s) {
    VarMap to;
    bool full = false;
    if (!bind(s, full, to)) return false;
    const Expr value = translate(s.values[0], to);
    if (!value) return false;
    const bool last = s.outputs[0] == fn_.outputs[0];
    const BufferDef* key = s.outputs[0].get();
    if (s.kind == Stage::Kind::Reduce) {
      const Expr init = translate(s.init[0], to);
      if (!init) return false;
      const Var v = make_var(s.name, DType::F32);
      r_.steps.push_back({Step::Kind::Reduce, value, *s.combiner.op, init, v});
      results_[key] = {Expr(v), false};
      if (last) r_.steps.push_back({Step::Kind::Value, Expr(v), Op::Add, {}, nullptr});
    } else if (last) {
      r_.steps.push_back({full ? Step::Kind::Row : Step::Kind::Value, value, Op::Add, {}, nullptr});
    } else if (!full) {
      const Var v = make_var(s.name, DType::F32);
      r_.steps.push_back({Step::Kind::Scalar, value, Op::Add, {}, v});
      results_[key] = {Expr(v), false};
    } else if (!kept_ && readers(s.outputs[0]) > 1 && is_costly(value) && fn_.outputs[0]->shape.size() > 0 &&
               full_output()) {
      kept_ = true;
      r_.steps.push_back({Step::Kind::Keep, value, Op::Add, {}, nullptr});
      results_[key] = {load(r_.c.out, {flat_point()}), true};
    } else {
      results_[key] = {value, true};
    }
    return true;
  }

  bool full_output() const {
    const Dims d = static_dims(fn_.outputs[0]->shape);
    return num_elements(d) == points(r_.c.axes) * points(r_.columns);
  }

  Expr flat_point() const {
    Expr e = 0;
    for (const auto* l : {&r_.c.axes, &r_.columns})
      for (const Axis& a : *l) e = e * Expr(a.extent) + Expr(a.var);
    return e;
  }

  void merge() {
    const bool row = r_.steps.back().kind == Step::Kind::Row;
    r_.kept_index = flat_point();
    r_.c.out_index = r_.kept_index;
    if (!row) {
      r_.c.out_index = 0;
      for (const Axis& a : r_.c.axes) r_.c.out_index = r_.c.out_index * Expr(a.extent) + Expr(a.var);
    }
    std::vector<Expr*> values, indices = {&r_.c.out_index, &r_.kept_index};
    for (Step& s : r_.steps) {
      values.push_back(&s.value);
      if (s.init) values.push_back(&s.init);
    }
    merge_axes(r_.c.axes, values, indices);
    merge_axes(r_.columns, values, indices);
  }

  bool all_vector_forms() const {
    const Var lane = r_.columns[0].var;
    if (r_.columns[0].extent.value < 8) return false;
    for (const Step& s : r_.steps) {
      const bool along = s.kind == Step::Kind::Keep || s.kind == Step::Kind::Reduce || s.kind == Step::Kind::Row;
      if (along ? !has_vector_form(s.value, lane) : uses_var(s.value, lane)) return false;
    }
    return true;
  }

  struct Result {
    Expr value;
    bool full;
  };
  const TensorFn& fn_;
  Rows r_;
  std::map<const BufferDef*, Result> results_;  // looked up only
  bool kept_ = false;
};

class Builder {
 public:
  explicit Builder(const Rows& r) : r_(r), lane_(r.columns[0].var), n_(r.columns[0].extent.value) {}

  Stmt build() {
    const int64_t work = points(r_.c.axes) * n_ * int64_t(r_.steps.size());
    for (const Axis& a : r_.c.axes) at_.push_back({a.var, Expr(a.var)});
    Stmt body = steps(0);
    for (size_t i = r_.c.axes.size(); i-- > 1;) body = loop(r_.c.axes[i].var, r_.c.axes[i].extent, body);
    if (r_.c.axes.empty()) return body;
    return outermost(body, work >= kParallelThreshold);
  }

 private:
  // Rows in at most 32 equal parts where that is possible.
  Stmt outermost(const Stmt& body, bool parallel) {
    const Axis& a = r_.c.axes[0];
    if (!parallel) return loop(a.var, a.extent, body);
    int64_t parts = 32;
    while (a.extent.value % parts != 0) parts--;
    if (parts < 4) return loop(a.var, a.extent, body, ForKind::Parallel);
    const int64_t each = a.extent.value / parts;
    const Var part = make_var("part");
    return loop(part, parts, loop(a.var, each, body, ForKind::Serial, Expr(part) * Expr(each)), ForKind::Parallel);
  }

  LanePoint point(const Expr& base, const Expr& count = {}) const { return {at_, lane_, base, count, {}}; }

  Stmt steps(size_t i) {
    if (i == r_.steps.size()) return {};
    const Step& s = r_.steps[i];
    switch (s.kind) {
      case Step::Kind::Scalar:
        return let(s.name, scalar_form(s.value, at_), steps(i + 1));
      case Step::Kind::Value:
        return store(r_.c.out, {index_at(r_.c.out_index, at_)}, scalar_form(s.value, at_));
      case Step::Kind::Row:
        return row(s);
      case Step::Kind::Keep: {
        const bool next = i + 1 < r_.steps.size() && r_.steps[i + 1].kind == Step::Kind::Reduce;
        if (next) return reduce(r_.steps[i + 1], &s, i + 2);
        return seq({row(s), steps(i + 1)});
      }
      case Step::Kind::Reduce:
        return reduce(s, nullptr, i + 1);
    }
    return {};
  }

  Stmt row(const Step& s) {
    const Expr& index = s.kind == Step::Kind::Keep ? r_.kept_index : r_.c.out_index;
    return over_lanes("v", n_, [&](const Expr& offset, const Expr& count) {
      return store_lanes(r_.c.out, index, s.value, point(offset, count));
    });
  }

  // One value of a row; `keep` is stored on the way.
  Stmt reduce(const Step& s, const Step* keep, size_t next) {
    const int64_t ways = n_ % (kMaxLanes * 4) == 0 && n_ >= 256 ? 4 : n_ % (kMaxLanes * 2) == 0 ? 2 : 1;
    const Expr identity = s.op == Op::Add   ? make_float(DType::F32, 0)
                          : s.op == Op::Max ? lowest(DType::F32)
                                            : highest(DType::F32);
    const Buffer acc = make_buffer("acc", DType::F32, {Dim(kMaxLanes * ways)}, Scope::Register);
    auto cell = [&](const Expr& u) { return Exprs{ramp(u * lanes())}; };
    auto ways_loop = [&](const std::function<Stmt(const Expr& u)>& f) {
      if (ways == 1) return f(Expr(0));
      const Var u = make_var("u");
      return loop(u, ways, f(Expr(u)), ForKind::Unroll);
    };
    const Stmt start = ways_loop([&](const Expr& u) { return store(acc, cell(u), broadcast(identity)); });
    const Var v = make_var("v");
    const Stmt body = ways_loop([&](const Expr& u) {
      const Expr base = (Expr(v) * Expr(ways) + u) * lanes();
      const Stmt kept = keep ? store_lanes(r_.c.out, r_.kept_index, keep->value, point(base)) : Stmt();
      return seq({kept, store(acc, cell(u), broadcast(vector_form(s.value, point(base))), s.op)});
    });
    const Stmt main = loop(v, ways == 1 ? Expr(n_) / lanes() : Expr(n_ / ways) / lanes(), body);
    return alloc(acc, seq({start, main, finish(s, keep, acc, ways, next)}));
  }

  // The lanes joined, what is left of the row, and the steps that use the value.
  Stmt finish(const Step& s, const Step* keep, const Buffer& acc, int64_t ways, size_t next) {
    Expr all;
    for (int64_t u = 0; u < ways; u++) {
      const Expr part = load(acc, {ramp(u == 0 ? Expr(0) : Expr(u) * lanes())});
      all = all ? apply(s.op, {all, part}) : part;
    }
    const Op over = s.op == Op::Add ? Op::ReduceAdd : s.op == Op::Max ? Op::ReduceMax : Op::ReduceMin;
    Expr value = apply(over, {all});
    const auto init = as_const_number(s.init);
    const bool neutral = init && (s.op == Op::Add   ? *init == 0
                                  : s.op == Op::Max ? *init == -INFINITY
                                                    : *init == INFINITY);
    if (!neutral) value = apply(s.op, {scalar_form(s.init, at_), value});
    if (n_ % kMaxLanes == 0) return let(s.name, value, steps(next));
    const Buffer total = make_buffer("total", DType::F32, {}, Scope::Register);
    const Var column = make_var(lane_->name);
    Point at = at_;
    at.push_back({lane_, Expr(column)});
    const Expr done = Expr(n_) / lanes() * lanes();
    const Stmt kept = keep ? store(r_.c.out, {index_at(r_.kept_index, at)}, scalar_form(keep->value, at)) : Stmt();
    const Stmt one = seq({kept, store(total, {}, scalar_form(s.value, at), s.op)});
    return alloc(total, seq({store(total, {}, value), loop(column, Expr(n_) - done, one, ForKind::Serial, done),
                             let(s.name, load(total, {}), steps(next))}));
  }

  const Rows& r_;
  const Var lane_;
  const int64_t n_;
  Point at_;
};

}  // namespace

std::optional<Scheduled> schedule_rows(const TemplateArgs& a) {
  if (a.options.strict_fp) return {};  // lanes change the order of sums
  const auto r = Matcher(a).run();
  if (!r) return {};
  Scheduled s;
  s.body = Builder(*r).build();
  bind_operands(s, r->c);
  s.family = "rows";
  s.words = "rows of " + to_text(r->columns[0].extent.value) + " in vectors, sums over the lanes joined at the end";
  return s;
}

}  // namespace tc
