#include "templates/rows.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/raises.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "templates/cpu/lanes.h"
#include "templates/row_axes.h"

namespace tc {
namespace {

constexpr int64_t kMostKept = 1024;  // numbers of a row on the stack

class Matcher {
 public:
  Matcher(const TensorFn& fn, KeptRows kept, RowForm form, const std::vector<int>& open_axes)
      : fn_(fn), kept_rows_(kept), form_(form), open_axes_(open_axes) {
    if (!fn.outputs.empty() && fn.outputs[0]->dtype == DType::F64) type_ = DType::F64;
  }

  std::optional<Rows> run() {
    if (!is_plain() || !find_shape()) return {};
    for (const Buffer& b : fn_.inputs) {
      r_.c.inputs.push_back(flat(b));
      r_.c.originals.push_back(b);
    }
    for (const Buffer& b : fn_.outputs) {
      r_.outs.push_back(flat(b));
      outs_[b.get()] = r_.outs.back();
    }
    r_.c.original_out = fn_.outputs[0];
    r_.c.out = r_.outs[0];
    for (const Stage& s : fn_.stages)
      if (!add(s)) return {};
    merge();
    if (form_ == RowForm::Strict && r_.columns.size() != 1 && !only_reduces()) return {};
    return std::move(r_);
  }

 private:
  static Buffer flat(const Buffer& b) {
    int64_t last = 0;
    for (size_t d = 0; d < b->shape.size(); d++) last += (b->shape[d].value - 1) * (is_dense(b) ? 0 : b->strides[d]);
    return make_buffer(b->name, b->dtype, {Dim(is_dense(b) ? num_elements(static_dims(b->shape)) : last + 1)});
  }

  bool only_reduces() const {
    auto of_a_row = [](const RowStep& s) { return s.kind == RowStep::Kind::Reduce || !along_row(s); };
    return !r_.columns.empty() && std::all_of(r_.steps.begin(), r_.steps.end(), of_a_row);
  }

  bool knows(DType t, bool reduced) const {
    if (form_ == RowForm::Strict)
      return t == type_ || (!reduced && (is_half(t) ? fn_.outputs[0]->dtype == t : t == DType::I8 || t == DType::U8));
    const bool number = t == DType::Bool || is_float(t) || is_int(t);
    return number && info(t).bits >= (t == DType::Bool ? 0 : 8) &&
           !(reduced && (is_narrow_float(t) || t == DType::Bool));
  }

  bool is_plain() const {
    if (fn_.outputs.empty() || fn_.stages.empty()) return false;
    if (form_ == RowForm::Strict && (fn_.outputs.size() != 1 || fn_.stages.back().outputs[0] != fn_.outputs[0]))
      return false;
    for (const Buffer& b : fn_.outputs)
      if (!producer(fn_, b)) return false;
    for (const Buffer& b : fn_.inputs)
      if (!is_static(b->shape) || b->offset != 0 || (form_ == RowForm::Any && !b->strides.empty())) return false;
    return std::all_of(fn_.stages.begin(), fn_.stages.end(), [&](const Stage& s) { return is_plain(s); });
  }
  bool is_plain(const Stage& s) const {
    if (s.kind == Stage::Kind::Nest || s.scan >= 0) return false;
    const bool reduces = s.kind == Stage::Kind::Reduce;
    const auto none = [](const Axis& a) { return a.extent.value == 0; };  // axes of one element are left out below
    if (std::any_of(s.axes.begin(), s.axes.end(), none) || std::any_of(s.raxes.begin(), s.raxes.end(), none))
      return false;
    for (const Buffer& b : s.outputs)
      if (!is_static(b->shape) || !knows(b->dtype, reduces) || (form_ == RowForm::Any && !b->strides.empty()))
        return false;
    if (!reduces) return s.outputs.size() == 1;
    if (!s.combiner.op) return form_ == RowForm::Any;
    const Op op = *s.combiner.op;
    return op == Op::Add || op == Op::Max || op == Op::Min || (op == Op::Mul && form_ == RowForm::Any);
  }

  // Rows and columns from the first reduction; all stages must have this shape.
  bool find_shape() {
    const auto s = std::find_if(fn_.stages.begin(), fn_.stages.end(),
                                [](const Stage& x) { return x.kind == Stage::Kind::Reduce; });
    if (s == fn_.stages.end()) return false;
    VarMap to;
    auto fresh = [&](const std::vector<Axis>& from) {
      std::vector<Axis> list;
      for (const Axis& a : from) {
        to[a.var.get()] = 0;
        if (a.extent.value <= 1) continue;
        list.push_back({make_var(a.var->name), a.extent});
        to[a.var.get()] = Expr(list.back().var);
      }
      return list;
    };
    r_.c.axes = fresh(s->axes);
    raxes_ = r_.columns = fresh(s->raxes);
    if (raxes_.empty()) return false;
    for (const Axis& a : all()) whole_.push_back({a.extent.value, Expr(a.var)});
    if (form_ == RowForm::Any) find_order(*s, to);
    return true;
  }

  // The axes of stages over whole rows are those of an operand of the first reduction that has one element per row and
  // column. The column whose neighbours are nearest goes last.
  void find_order(const Stage& s, const VarMap& to) {
    for (const Expr& value : s.values)
      for (const Load* l : loads_of(value)) {
        const Dims dims = static_dims(l->buffer->shape);
        if (num_elements(dims) != points(all())) continue;
        Exprs index;
        std::vector<IndexedAxis> indexed;
        bool whole = true;
        for (size_t d = 0; d < dims.size(); d++) {
          index.push_back(simplify(substitute(l->index[d], to), ranges()));
          whole = whole && (dims[d] == 1 || counts_through(index[d], dims[d], all()));
          if (dims[d] > 1) indexed.push_back({dims[d], index[d]});
        }
        const auto o = whole ? offset_of(simplify(flat_of(l->buffer, index), ranges()), vars_of(all())) : std::nullopt;
        if (!o) continue;
        whole_ = std::move(indexed);
        std::stable_sort(r_.columns.begin(), r_.columns.end(),
                         [&](const Axis& a, const Axis& b) { return o->of(a.var) > o->of(b.var); });
        return;
      }
  }

  std::vector<Axis> all() const {
    std::vector<Axis> list = r_.c.axes;
    list.insert(list.end(), r_.columns.begin(), r_.columns.end());
    return list;
  }
  Ranges ranges() const {
    Ranges r;
    for (const Axis& a : all()) r[a.var.get()] = {0, a.extent.value - 1};
    return r;
  }

  // The stage's own variables become ours. `full`: it has a value for every column.
  bool bind(const Stage& s, bool& full, VarMap& to) const {
    for (const auto* l : {&s.axes, &s.raxes})
      for (const Axis& a : *l) to[a.var.get()] = 0;
    auto in_order = [&](const std::vector<Axis>& from, const std::vector<Axis>& ours) {
      if (sizes_of(from) != sizes_of(ours)) return false;
      size_t next = 0;
      for (const Axis& a : from)
        if (a.extent.value > 1) to[a.var.get()] = Expr(ours[next++].var);
      return true;
    };
    full = s.kind == Stage::Kind::Reduce;
    if (full) return in_order(s.axes, r_.c.axes) && in_order(s.raxes, raxes_);
    if (in_order(s.axes, r_.c.axes)) return true;
    full = true;
    if (form_ == RowForm::Any && bind_as_read(s, to)) return true;
    size_t next = 0;
    for (const Axis& a : s.axes) {
      if (a.extent.value <= 1) continue;
      if (next == whole_.size() || whole_[next].extent != a.extent.value) return false;
      to[a.var.get()] = whole_[next++].index;
    }
    return next == whole_.size();
  }

  static std::vector<IndexedAxis> bound(const Stage& s, const VarMap& to) {
    std::vector<IndexedAxis> list;
    for (const Axis& a : s.axes)
      if (a.extent.value > 1) list.push_back({a.extent.value, to.at(a.var.get())});
    return list;
  }

  // A stage with other axes than those before it reads these with axes exchanged.
  bool bind_as_read(const Stage& s, VarMap& to) const {
    for (const Load* l : loads_of(s.values[0])) {
      const auto it = results_.find(l->buffer.get());
      if (it == results_.end() || !it->second.full) continue;
      const std::vector<IndexedAxis>& made = it->second.axes;
      VarMap found;
      size_t next = 0;
      for (size_t d = 0; d < l->index.size(); d++) {
        if (l->buffer->shape[d].value == 1 && !raises_status(l->index[d])) continue;
        const VarRef* v = as<VarRef>(l->index[d]);
        if (!v || next == made.size()) return false;
        found[v->var.get()] = made[next++].index;
      }
      for (const Axis& a : s.axes)
        if (a.extent.value > 1 && !found.contains(a.var.get())) return false;
      if (found.size() != made.size() || sizes_of(s.axes).size() != made.size()) return false;
      for (const Axis& a : s.axes)
        if (a.extent.value > 1) to[a.var.get()] = found[a.var.get()];
      return true;
    }
    return false;
  }

  // A read of an earlier stage must be of the same row (and column): the element that its own axes say.
  bool reads_here(const Load& l, const std::vector<IndexedAxis>& expected) const {
    const Ranges known = ranges();
    size_t next = 0;
    for (size_t d = 0; d < l.index.size(); d++) {
      if (l.buffer->shape[d].value == 1 && !raises_status(l.index[d])) continue;
      if (next == expected.size() || !same_index(l.index[d], expected[next++].index, known)) return false;
    }
    return next == expected.size();
  }

  // The expression in our variables, over flat buffers and earlier results; null if it reads something else.
  Expr translate(const Expr& e, const VarMap& to) {
    bool ok = true;
    Expr r = rewrite(substitute(e, to), [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      if (!l) return {};
      for (size_t i = 0; i < fn_.inputs.size(); i++)
        if (l->buffer == fn_.inputs[i]) return load(r_.c.inputs[i], {simplify(flat_of(l->buffer, l->index), ranges())});
      const auto it = results_.find(l->buffer.get());
      if (it == results_.end()) return {};  // one of ours already
      ok = ok && reads_here(*l, it->second.axes);
      return it->second.value;
    });
    return ok ? r : Expr();
  }

  int readers(const Buffer& b) const {
    int n = 0;
    auto reads = [&](const Stage& s) {
      for (const auto* l : {&s.values, &s.init})
        for (const Expr& e : *l)
          if (uses_buffer(e, b)) return true;
      return false;
    };
    for (const Stage& s : fn_.stages) n += reads(s) ? 1 : 0;
    return n;
  }

  bool add(const Stage& s) {
    VarMap to;
    bool full = false;
    if (!bind(s, full, to)) return false;
    if (s.kind == Stage::Kind::Reduce) return add_reduction(s, to);
    const Expr value = translate(s.values[0], to);
    if (!value) return false;
    const Buffer& b = s.outputs[0];
    const bool is_result = outs_.contains(b.get());
    if (is_result && readers(b) == 0) {
      add_result(s, b, value, full, to);
    } else if (!full) {
      const Var v = make_var(s.name, b->dtype);
      r_.steps.push_back({RowStep::Kind::Scalar, value, Op::Add, {}, v, nullptr});
      results_[b.get()] = {Expr(v), false, bound(s, to)};
      if (is_result) add_result(s, b, Expr(v), false, to);
    } else {
      Expr read = value;
      if (const Buffer kept = kept_buffer(s, value)) {
        r_.steps.push_back({RowStep::Kind::Keep, value, Op::Add, {}, nullptr, kept});
        if (kept->scope == Scope::Stack) r_.kept_index = point_number(r_.columns);
        read = load(kept, {kept->scope == Scope::Stack ? r_.kept_index : point_number(all())});
      }
      results_[b.get()] = {read, true, bound(s, to)};
      if (is_result) add_result(s, b, read, true, to);
    }
    return true;
  }

  bool add_reduction(const Stage& s, const VarMap& to) {
    RowStep step{RowStep::Kind::Reduce, {}, Op::Add, {}, nullptr, nullptr};
    for (size_t k = 0; k < s.values.size(); k++) {
      const Expr value = translate(s.values[k], to), init = translate(s.init[k], to);
      if (!value || !init) return false;
      const bool is_position = k > 0 && s.outputs[k]->dtype == DType::I64;
      const std::string name = is_position ? "position" : s.name;
      step.tuple.push_back({value, init, make_var(name, s.outputs[k]->dtype)});
      results_[s.outputs[k].get()] = {Expr(step.tuple[k].name), false, bound(s, to)};
    }
    const std::vector<RowComponent> parts = step.tuple;
    step.combiner = s.combiner;
    if (s.combiner.op) {
      step.value = parts[0].value;
      step.init = parts[0].init;
      step.name = parts[0].name;
      step.op = *s.combiner.op;
      step.tuple.clear();
    }
    r_.steps.push_back(step);
    for (size_t k = 0; k < parts.size(); k++)
      if (outs_.contains(s.outputs[k].get())) add_result(s, s.outputs[k], Expr(parts[k].name), false, to);
    return true;
  }

  void add_result(const Stage& s, const Buffer& b, const Expr& value, bool full, const VarMap& to) {
    RowStep step{full ? RowStep::Kind::Row : RowStep::Kind::Value, value, Op::Add, {}, nullptr, nullptr};
    Exprs at;
    for (const Axis& a : s.axes) at.push_back(to.at(a.var.get()));
    step.out = outs_.at(b.get());
    step.out_index = simplify(flat_of(b, at), ranges());
    r_.steps.push_back(step);
  }

  // Null: the stage is written in place.
  Buffer kept_buffer(const Stage& s, const Expr& value) {
    if (kept_rows_ == KeptRows::Nowhere || readers(s.outputs[0]) < 2) return nullptr;
    if (kept_rows_ == KeptRows::InArrays) {
      int rows = 0;
      for (const Load* l : loads_of(value))
        rows += std::any_of(raxes_.begin(), raxes_.end(), [&](const Axis& a) { return uses_var(l->index[0], a.var); });
      if (!is_costly(value) && rows < 2) return nullptr;
      return make_buffer(s.name, s.outputs[0]->dtype, {Dim(points(r_.columns))}, Scope::Register);
    }
    if (kept_ || !is_costly(value) || fn_.outputs[0]->shape.empty() || !full_output()) return nullptr;
    const bool fits = r_.c.out->dtype == s.outputs[0]->dtype && is_dense(fn_.outputs[0]);
    if (!fits && points(r_.columns) > kMostKept) return nullptr;
    kept_ = true;
    return fits ? r_.c.out : make_buffer(s.name, s.outputs[0]->dtype, {Dim(points(r_.columns))}, Scope::Stack);
  }

  bool full_output() const {
    const Dims d = static_dims(fn_.outputs[0]->shape);
    return num_elements(d) == points(r_.c.axes) * points(r_.columns);
  }

  void merge() {
    if (!r_.kept_index) r_.kept_index = point_number(all());
    std::vector<Expr*> values, indices = {&r_.kept_index};
    for (RowStep& s : r_.steps) {
      for (Expr* e : values_of(s)) values.push_back(e);
      if (s.init) values.push_back(&s.init);
      for (RowComponent& k : s.tuple) values.push_back(&k.init);
      if (s.out_index) indices.push_back(&s.out_index);
    }
    merge_axes(r_.c.axes, values, indices, open_rows());
    merge_axes(r_.columns, values, indices);
    for (const RowStep& s : r_.steps)
      if (s.out == r_.c.out) r_.c.out_index = s.out_index;
  }

  /// The rows' axes that walk an open axis of the result.
  std::vector<Var> open_rows() const {
    std::vector<Var> list;
    const Shape& shape = fn_.outputs[0]->shape;
    const auto out =
        std::find_if(r_.steps.begin(), r_.steps.end(), [&](const RowStep& s) { return s.out == r_.c.out; });
    const auto at =
        out == r_.steps.end() || !is_dense(fn_.outputs[0]) ? std::nullopt : offset_of(out->out_index, vars_of(all()));
    for (const int axis : open_axes_) {
      int64_t stride = 1;
      for (size_t d = size_t(axis) + 1; d < shape.size(); d++) stride *= shape[d].value;
      for (const Axis& a : r_.c.axes)
        if (at && at->of(a.var) == stride && a.extent == shape[size_t(axis)]) list.push_back(a.var);
    }
    return list;
  }

  struct Result {
    Expr value;
    bool full;
    std::vector<IndexedAxis> axes;  // of its stage
  };
  const TensorFn& fn_;
  const KeptRows kept_rows_;
  const RowForm form_;
  const std::vector<int>& open_axes_;
  DType type_ = DType::F32;  // of the stages of a Strict form
  Rows r_;
  std::vector<Axis> raxes_;                     // the columns in the order of the reductions
  std::vector<IndexedAxis> whole_;              // the axes of stages over whole rows
  std::map<const BufferDef*, Result> results_;  // looked up only
  std::map<const BufferDef*, Buffer> outs_;     // looked up only
  bool kept_ = false;
};

}  // namespace

std::optional<Rows> match_rows(const TensorFn& fn, KeptRows kept, RowForm form, const std::vector<int>& open_axes) {
  return Matcher(fn, kept, form, open_axes).run();
}

}  // namespace tc
