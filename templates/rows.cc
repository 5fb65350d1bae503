#include "templates/rows.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "templates/cpu/lanes.h"

namespace tc {
namespace {

std::vector<int64_t> sizes(const std::vector<Axis>& axes) {
  std::vector<int64_t> v;
  for (const Axis& a : axes)
    if (a.extent.value > 1) v.push_back(a.extent.value);
  return v;
}

class Matcher {
 public:
  Matcher(const TensorFn& fn, KeptRows kept) : fn_(fn), kept_rows_(kept) {}

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
    if (r_.columns.size() != 1) return {};
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
      r_.steps.push_back({RowStep::Kind::Reduce, value, *s.combiner.op, init, v, nullptr});
      results_[key] = {Expr(v), false};
      if (last) r_.steps.push_back({RowStep::Kind::Value, Expr(v), Op::Add, {}, nullptr, nullptr});
    } else if (last) {
      r_.steps.push_back({full ? RowStep::Kind::Row : RowStep::Kind::Value, value, Op::Add, {}, nullptr, nullptr});
    } else if (!full) {
      const Var v = make_var(s.name, DType::F32);
      r_.steps.push_back({RowStep::Kind::Scalar, value, Op::Add, {}, v, nullptr});
      results_[key] = {Expr(v), false};
    } else if (const Buffer kept = kept_buffer(s, value)) {
      r_.steps.push_back({RowStep::Kind::Keep, value, Op::Add, {}, nullptr, kept});
      results_[key] = {load(kept, {flat_point()}), true};
    } else {
      results_[key] = {value, true};
    }
    return true;
  }

  // Null: the stage is written in place.
  Buffer kept_buffer(const Stage& s, const Expr& value) {
    if (kept_rows_ == KeptRows::Nowhere || readers(s.outputs[0]) < 2) return nullptr;
    if (kept_rows_ == KeptRows::InArrays) {
      int rows = 0;
      for (const Load* l : loads_of(value)) rows += uses_var(l->index[0], r_.columns.back().var) ? 1 : 0;
      if (!is_costly(value) && rows < 2) return nullptr;
      return make_buffer(s.name, DType::F32, {Dim(points(r_.columns))}, Scope::Register);
    }
    if (kept_ || !is_costly(value) || fn_.outputs[0]->shape.empty() || !full_output()) return nullptr;
    kept_ = true;
    return r_.c.out;
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
    const bool row = r_.steps.back().kind == RowStep::Kind::Row;
    r_.kept_index = flat_point();
    r_.c.out_index = r_.kept_index;
    if (!row) {
      r_.c.out_index = 0;
      for (const Axis& a : r_.c.axes) r_.c.out_index = r_.c.out_index * Expr(a.extent) + Expr(a.var);
    }
    std::vector<Expr*> values, indices = {&r_.c.out_index, &r_.kept_index};
    for (RowStep& s : r_.steps) {
      values.push_back(&s.value);
      if (s.init) values.push_back(&s.init);
    }
    merge_axes(r_.c.axes, values, indices);
    merge_axes(r_.columns, values, indices);
  }

  struct Result {
    Expr value;
    bool full;
  };
  const TensorFn& fn_;
  const KeptRows kept_rows_;
  Rows r_;
  std::map<const BufferDef*, Result> results_;  // looked up only
  bool kept_ = false;
};

}  // namespace

std::optional<Rows> match_rows(const TensorFn& fn, KeptRows kept) { return Matcher(fn, kept).run(); }

}  // namespace tc
