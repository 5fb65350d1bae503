// Recognises attention in the stages of a function: which stages are scores, softmax and result, what each factor
// reads, and which axes both products share.
#include <algorithm>
#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "templates/cuda/attention.h"

namespace tc {
namespace {

// The stages of fn that `result` needs, up to operands and to `stop`, as a function of these.
TensorFn part_of(const TensorFn& fn, const Buffer& result, const Buffer& stop = nullptr) {
  TensorFn part;
  std::vector<bool> needed(fn.stages.size(), false);
  std::vector<Buffer> wanted = {result};
  auto wants = [&](const Buffer& b) { return std::find(wanted.begin(), wanted.end(), b) != wanted.end(); };
  for (size_t i = fn.stages.size(); i-- > 0;) {
    const Stage& s = fn.stages[i];
    if (s.outputs.size() != 1 || !wants(s.outputs[0]) || s.outputs[0] == stop) continue;
    needed[i] = true;
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        for (const Load* l : loads_of(e))
          if (!wants(l->buffer)) wanted.push_back(l->buffer);
  }
  for (const Buffer& b : wanted)
    if (b == stop || !producer(fn, b)) part.inputs.push_back(b);
  for (size_t i = 0; i < fn.stages.size(); i++)
    if (needed[i]) part.stages.push_back(fn.stages[i]);
  part.outputs = {result};
  return part;
}

// The part with its result read once more: a mask that forbids the last keys would pass for a border.
TensorFn without_border(TensorFn part) {
  if (part.stages.empty()) return part;
  Stage s = part.stages.back();
  s.kind = Stage::Kind::Compute;
  s.raxes.clear();
  s.init.clear();
  s.combiner = {};
  Exprs at;
  for (const Axis& a : s.axes) at.push_back(Expr(a.var));
  s.values = {load(part.outputs[0], at)};
  s.outputs = {make_buffer(part.outputs[0]->name, part.outputs[0]->dtype, part.outputs[0]->shape)};
  part.outputs = s.outputs;
  part.stages.push_back(std::move(s));
  return part;
}

// A last axis of the result that is divided (heads side by side with their columns) as two: y[b, i, h * size + d]
// becomes y[b, i, h, d], which lies in memory the same way.
TensorFn with_heads_apart(TensorFn part) {
  if (part.stages.empty() || part.stages.back().axes.empty()) return part;
  Stage& s = part.stages.back();
  const Axis merged = s.axes.back();
  int64_t size = 0;
  walk(s.values[0], [&](const Expr& e) {
    const Apply* k = as<Apply>(e);
    const VarRef* v = k && k->op == Op::FloorDiv ? as<VarRef>(k->args[0]) : nullptr;
    if (v && v->var == merged.var) size = as_const_int(k->args[1]).value_or(0);
    return true;
  });
  if (size < 2 || merged.extent.value % size != 0 || s.kind != Stage::Kind::Compute) return part;
  const Axis head{make_var("h"), Dim(merged.extent.value / size)}, column{make_var("d"), Dim(size)};
  Ranges ranges;
  for (const Axis& a : {head, column}) ranges[a.var.get()] = {0, a.extent.value - 1};
  for (const Axis& a : s.axes) ranges[a.var.get()] = {0, a.extent.value - 1};
  const Expr at = Expr(head.var) * Expr(size) + Expr(column.var);
  s.values[0] = simplify(substitute(s.values[0], {{merged.var.get(), at}}), ranges);
  s.axes.back() = head;
  s.axes.push_back(column);
  Shape shape = s.outputs[0]->shape;
  shape.back() = head.extent;
  shape.push_back(column.extent);
  part.outputs = s.outputs = {make_buffer(s.outputs[0]->name, s.outputs[0]->dtype, shape)};
  return part;
}

bool is_computed_singly(DType t) { return t == DType::F32 || is_half(t); }

// Without a rounding to halves, or the widening of them: models of halves store scores and weights so.
const Expr& unrounded(const Expr& e) {
  const Cast* c = as<Cast>(e);
  const bool rounds = c && c->value->dtype == DType::F32 && is_half(e->dtype);
  const bool widens = c && is_half(c->value->dtype) && e->dtype == DType::F32;
  return rounds || widens ? c->value : e;
}

bool is_minus_infinity(const Expr& e) { return as_const_number(e).value_or(0) == -INFINITY; }

// Does `l` read the element of a stage's point, or of its row: all axes but the last?
bool reads_point(const Load& l, const std::vector<Var>& point, bool row) {
  const size_t n = row ? point.size() - 1 : point.size();
  if (l.index.size() < n) return false;
  for (size_t d = 0; d < l.index.size(); d++) {
    const VarRef* v = as<VarRef>(l.index[d]);
    const bool same = d < n && v && v->var == point[d];
    if (!same && l.buffer->shape[d] != Dim(1)) return false;
  }
  return true;
}
const Load* read_of_point(const Expr& e, const std::vector<Var>& point, bool row) {
  const Load* l = as<Load>(unrounded(e));
  return l && reads_point(*l, point, row) ? l : nullptr;
}

// x, or select(x == special, instead, x).
struct Guarded {
  const Load* load = nullptr;
  bool guarded = false;
};
Guarded guarded_row(const Expr& e, double special, double instead, const std::vector<Var>& point) {
  if (const Load* l = read_of_point(e, point, true)) return {l, false};
  const Select* s = as<Select>(e);
  const Apply* test = s ? as<Apply>(s->condition) : nullptr;
  const Load* l = s ? read_of_point(s->no, point, true) : nullptr;
  if (!l || !test || test->op != Op::Eq || as_const_number(s->yes) != instead) return {};
  if (as_const_number(test->args[1]) != special || !structurally_equal(test->args[0], s->no)) return {};
  return {l, true};
}

// A softmax over the last axis: its operand, its result.
struct Softmax {
  Buffer scores, weights;
  bool zero_if_none = false, zero_if_nan = false;
};

const Stage* reduction(const TensorFn& fn, const Buffer& b, Op op) {
  const Stage* s = producer(fn, b);
  return s && s->kind == Stage::Kind::Reduce && s->combiner.op == op && s->raxes.size() == 1 ? s : nullptr;
}

// Does the reduction take the rows of `from`? It may keep the axis, with one element.
bool reduces_rows(const Stage& s, const Buffer& from) {
  const Load* l = as<Load>(unrounded(s.values[0]));
  if (!l || l->buffer != from) return false;
  std::vector<Var> element = vars_of(s.axes);
  if (element.size() == l->index.size()) element.pop_back();
  element.push_back(s.raxes[0].var);
  return element.size() == l->index.size() && reads_point(*l, element, false);
}

// exp / sum, or select(sum > 0, exp / sum, 0)
struct Quotient {
  const Apply* divide = nullptr;
  bool guarded = false;
};
Quotient quotient_of(const Expr& e) {
  const Select* s = as<Select>(e);
  const Apply* divide = as<Apply>(s ? s->yes : e);
  if (!divide || divide->op != Op::Div) return {};
  if (!s) return {divide, false};
  const Apply* test = as<Apply>(s->condition);
  const bool positive = test && ((test->op == Op::Gt && structurally_equal(test->args[0], divide->args[1]) &&
                                  as_const_number(test->args[1]) == 0.0) ||
                                 (test->op == Op::Lt && structurally_equal(test->args[1], divide->args[1]) &&
                                  as_const_number(test->args[0]) == 0.0));
  return positive && as_const_number(s->no) == 0.0 ? Quotient{divide, true} : Quotient{};
}

// weights[i] = exp(scores[i] - max[row]) / sum[row]
std::optional<Softmax> softmax_at(const TensorFn& fn, const Stage& weights) {
  if (weights.kind != Stage::Kind::Compute) return {};
  const Quotient quotient = quotient_of(unrounded(weights.values[0]));
  if (!quotient.divide) return {};
  const std::vector<Var> point = vars_of(weights.axes);
  const Load* exp = read_of_point(quotient.divide->args[0], point, false);
  const Guarded total = guarded_row(quotient.divide->args[1], 0, 1, point);
  if (!exp || !total.load) return {};
  const bool zero_if_none = quotient.guarded || total.guarded;
  const Stage* sum = reduction(fn, total.load->buffer, Op::Add);
  const Stage* exps = producer(fn, exp->buffer);
  if (!sum || !exps || exps->kind != Stage::Kind::Compute || !is_zero(sum->init[0])) return {};
  const Apply* e = as<Apply>(exps->values[0]);
  const Apply* difference = e && e->op == Op::Exp ? as<Apply>(e->args[0]) : nullptr;
  if (!difference || difference->op != Op::Sub) return {};
  const std::vector<Var> at = vars_of(exps->axes);
  const Load* score = read_of_point(difference->args[0], at, false);
  const Guarded top = guarded_row(difference->args[1], -INFINITY, 0, at);
  const Stage* max = top.load ? reduction(fn, top.load->buffer, Op::Max) : nullptr;
  if (!score || !max || !is_minus_infinity(max->init[0]) || top.guarded != zero_if_none) return {};
  if (!reduces_rows(*sum, exp->buffer) || !reduces_rows(*max, score->buffer)) return {};
  return Softmax{score->buffer, weights.outputs[0], zero_if_none, quotient.guarded};
}

std::optional<Softmax> find_softmax(const TensorFn& fn) {
  for (const Stage& s : fn.stages)
    if (s.outputs.size() == 1 && s.scan < 0)
      if (auto found = softmax_at(fn, s)) return found;
  return {};
}

// An axis of a product by how far it moves in the matrix of scores.
struct StridedAxis {
  Axis axis;
  int64_t step = 0;
};
using StridedAxes = std::vector<StridedAxis>;

void sort_by_step(StridedAxes& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const StridedAxis& a, const StridedAxis& b) { return a.step > b.step; });
}

// The product's two factors: `walked` uses the variable, `other` does not.
struct Factors {
  Expr walked, other;
};
std::optional<Factors> factors_of(const Expr& value, const std::function<bool(const Expr&)>& is_walked) {
  const Apply* m = as<Apply>(value);
  if (!m || m->op != Op::Mul) return {};
  const bool first = is_walked(m->args[0]), second = is_walked(m->args[1]);
  if (first == second) return {};
  return Factors{m->args[first ? 0 : 1], m->args[first ? 1 : 0]};
}

bool is_sum_of_products(const Canonical& c) {
  return !c.border && c.value.get() != nullptr && c.combine == Op::Add && is_zero(c.init) &&
         c.value->dtype == DType::F32 && is_computed_singly(c.epilogue->dtype);
}

// Scores are never stored: what a model of halves rounds on the way to them stays in single precision.
Expr without_roundings(const Expr& e) {
  return rewrite(e, [](const Expr& x) -> Expr {
    const Cast* widening = as<Cast>(x);
    const Cast* rounding = widening && x->dtype == DType::F32 ? as<Cast>(widening->value) : nullptr;
    return rounding && is_half(widening->value->dtype) && rounding->value->dtype == DType::F32 ? rounding->value
                                                                                               : Expr();
  });
}

// The type of the operand that q, k and v widen, where it is the same.
DType stored_type(const Expr& q, const Expr& k, const Expr& v) {
  auto type = [](const Expr& e) {
    const Read r = read_of(e);
    return r.load ? r.load->buffer->dtype : e->dtype;
  };
  return type(q) == type(k) && type(q) == type(v) && is_half(type(q)) ? type(q) : DType::F32;
}

class Matcher {
 public:
  explicit Matcher(const CudaArgs& a) : fn_(a.fn) {}

  std::optional<CudaAttention> run() {
    if (fn_.outputs.size() != 1 || !is_plain()) return {};
    const auto softmax = find_softmax(fn_);
    if (!softmax || !is_computed_singly(softmax->scores->dtype) || !is_computed_singly(softmax->weights->dtype))
      return {};
    m_.zero_if_none = softmax->zero_if_none;
    m_.zero_if_nan = softmax->zero_if_nan;
    columns_ = static_dims(softmax->scores->shape).back();
    const TensorFn first = without_border(part_of(fn_, softmax->scores)),
                   second = with_heads_apart(part_of(fn_, fn_.outputs[0], softmax->weights));
    const auto scores = canonicalize(first), result = canonicalize(second);
    if (columns_ < 2 || !scores || !result || !is_sum_of_products(*scores) || !is_sum_of_products(*result)) return {};
    bind(*scores, *result, softmax->weights);
    if (!take_scores(*scores) || !take_result(*result)) return {};
    classify();
    merge();
    m_.type = stored_type(m_.q, m_.k, m_.v);
    return std::move(m_);
  }

 private:
  bool is_plain() const {
    for (const Buffer& b : fn_.inputs)
      if (!is_static(b->shape) || !b->strides.empty() || b->offset != 0) return false;
    return std::all_of(fn_.stages.begin(), fn_.stages.end(), [](const Stage& s) {
      return s.kind != Stage::Kind::Nest && s.scan < 0 && s.outputs.size() == 1 && is_static(s.outputs[0]->shape);
    });
  }

  // One flat view for each operand of the function.
  void bind(const Canonical& scores, const Canonical& result, const Buffer& weights) {
    m_.c.originals = fn_.inputs;
    m_.c.original_out = fn_.outputs[0];
    m_.c.out = result.out;
    for (const Buffer& b : fn_.inputs) {
      m_.c.inputs.push_back(make_buffer(b->name, b->dtype, {Dim(num_elements(static_dims(b->shape)))}));
      for (const Canonical* c : {&scores, &result})
        for (size_t i = 0; i < c->originals.size(); i++)
          if (c->originals[i] == b) views_[c->inputs[i].get()] = m_.c.inputs.back();
    }
    for (size_t i = 0; i < result.originals.size(); i++)
      if (result.originals[i] == weights) weights_ = result.inputs[i];
  }

  // q, k, what becomes of their sum, and the axes of the matrix of scores.
  bool take_scores(const Canonical& c) {
    const auto at = offset_of(c.out_index, vars_of(c.axes));
    if (!at) return false;
    int64_t keys = 0;
    for (const Axis& a : c.axes) {
      const int64_t step = at->of(a.var);
      if (step >= columns_)
        strided_.push_back({a, step});
      else if (step == 1 && a.extent.value == columns_)
        m_.keys = a, keys++;
      else
        return false;
    }
    sort_by_step(strided_);
    if (keys != 1) return false;
    const auto f = factors_of(c.value, [&](const Expr& e) { return uses_var(e, m_.keys.var); });
    if (!f) return false;
    m_.k = substitute_buffers(f->walked, views_);
    m_.q = substitute_buffers(f->other, views_);
    m_.depth = c.raxes;
    m_.score_acc = c.reduced;
    m_.score = without_roundings(cast(DType::F32, substitute_buffers(c.epilogue, views_)));
    return !m_.depth.empty();
  }

  // v and the result, in the variables of the scores.
  bool take_result(const Canonical& c) {
    if (c.raxes.size() != 1 || c.raxes[0].extent.value != columns_) return false;
    const auto f = factors_of(c.value, [&](const Expr& e) { return uses_buffer(e, weights_); });
    const Load* read = f ? as<Load>(unrounded(f->walked)) : nullptr;
    if (!read) return false;
    std::vector<Var> vars = vars_of(c.axes);
    vars.push_back(c.raxes[0].var);
    const auto at = offset_of(read->index[0], vars);
    if (!at || at->constant != 0 || at->of(c.raxes[0].var) != 1) return false;
    StridedAxes strided;
    for (const Axis& a : c.axes) {
      if (at->of(a.var) == 0)
        m_.values.push_back(a);
      else
        strided.push_back({a, at->of(a.var)});
    }
    sort_by_step(strided);
    if (m_.values.empty() || strided.size() != strided_.size()) return false;
    VarMap to{{c.raxes[0].var.get(), Expr(m_.keys.var)}};
    for (size_t i = 0; i < strided.size(); i++) {
      if (strided[i].step != strided_[i].step || strided[i].axis.extent != strided_[i].axis.extent) return false;
      to[strided[i].axis.var.get()] = Expr(strided_[i].axis.var);
    }
    auto ours = [&](const Expr& e) { return substitute(substitute_buffers(e, views_), to); };
    m_.v = ours(f->other);
    m_.result_acc = c.reduced;
    m_.result = ours(c.epilogue);
    m_.out_index = ours(c.out_index);
    return !uses_buffer(m_.result, weights_);
  }

  void classify() {
    for (const StridedAxis& p : strided_)
      (uses_var(m_.k, p.axis.var) || uses_var(m_.v, p.axis.var) ? m_.batch : m_.rows).push_back(p.axis);
  }

  void merge() {
    const std::vector<Expr*> values = {&m_.q, &m_.k, &m_.v, &m_.score, &m_.result}, indices = {&m_.out_index};
    merge_axes(m_.batch, values, indices);
    merge_axes(m_.rows, values, indices);
    merge_axes(m_.depth, {&m_.q, &m_.k}, {});
    merge_axes(m_.values, {&m_.v, &m_.result}, indices);
    std::vector<Axis> keys = {m_.keys};
    rename(m_.batch, "group"), rename(m_.rows, "row"), rename(keys, "key"), rename(m_.depth, "d"),
        rename(m_.values, "column");
    m_.keys = keys[0];
  }

  // Axes that stand alone are named after what they are here.
  void rename(std::vector<Axis>& axes, const std::string& name) {
    if (axes.size() != 1) return;
    const Var v = make_var(name);
    for (Expr* e : {&m_.q, &m_.k, &m_.v, &m_.score, &m_.result, &m_.out_index})
      *e = substitute(*e, {{axes[0].var.get(), Expr(v)}});
    axes[0].var = v;
  }

  const TensorFn& fn_;
  CudaAttention m_;
  StridedAxes strided_;  // batches, heads, rows
  int64_t columns_ = 0;
  BufferMap views_;
  Buffer weights_;
};

}  // namespace

std::optional<CudaAttention> match_cuda_attention(const CudaArgs& a) {
  if (a.options.strict_fp) return {};  // the order of sums is another one
  return Matcher(a).run();
}

}  // namespace tc
