// Stores tensors between kernels in half the bytes, as --precision fp16 allows (CUDA).
//   c = tc.fused(x, w)   f32, a convolution      ->   c = tc.fused(x, w)   f16: rounded where it is stored
//   y = tc.fused(c, v)   f32, a convolution           y = tc.fused(c, v)   f32, of f32(c)
// Kernels compute as before: sums, the statistics of a softmax or of a normalisation, exponentials and all the rest are
// single precision, only what goes through memory is rounded. Which tensors do is decided by what is computed:
//   always   results of sums of products, and their factors, which tensor cores round anyway
//   follow   results of anything else that keeps the size of a tensor, of operands of which one is stored so
//   never    inputs and outputs of the model, operands of control flow, results that are read where no floats come out
//            (an index, a mask), and what reductions leave of a tensor (statistics), unless only sums of products read
//            it
// bf16 keeps 8 bits of a number: stored between all kernels it loses more than its bound of 1e-2 in deep networks, so
// --precision bf16 rounds factors alone.
//
// Preconditions: the target and the options ask for it; a tensor is f32, of a known shape, and no operand, result or
// capture of control flow, nor one of the model; every reader has a formula (no loops of its own, no scan) with results of
// floats; of tensors that share memory all may change, or none.
//
// Views share the memory of what they show, and so its type. Functions of several sums of products (regions) are left
// as they are where no template knows them with other operands.
//
// Needs: fuse_ops, form_regions. Leaves: the same nodes, with other types between them.
#include <algorithm>
#include <set>

#include "ir/graph/views.h"
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/backend.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

size_t operand_of(const TensorFn& fn, size_t input) { return fn.operands.empty() ? input : size_t(fn.operands[input]); }

bool is_formula(const TensorFn& fn) {
  return std::all_of(fn.stages.begin(), fn.stages.end(),
                     [](const Stage& s) { return s.kind != Stage::Kind::Nest && s.scan < 0; });
}
bool reduces(const TensorFn& fn) {
  return std::any_of(fn.stages.begin(), fn.stages.end(), [](const Stage& s) { return s.kind == Stage::Kind::Reduce; });
}

bool is_read(const TensorFn& fn, const Buffer& b) {
  for (const Stage& s : fn.stages)
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (uses_buffer(e, b)) return true;
  return false;
}

size_t stage_of(const TensorFn& fn, const Buffer& b) {
  for (size_t i = 0; i < fn.stages.size(); i++)
    if (std::find(fn.stages[i].outputs.begin(), fn.stages[i].outputs.end(), b) != fn.stages[i].outputs.end()) return i;
  return fn.stages.size();
}

// out = t(b), behind the stage that makes b
void add_rounding(TensorFn& fn, const Buffer& b, const Buffer& out) {
  Stage s;
  s.name = "round";
  Exprs at;
  for (size_t d = 0; d < b->shape.size(); d++) {
    s.axes.push_back({make_var("i" + to_text(int64_t(d))), b->shape[d]});
    at.push_back(Expr(s.axes.back().var));
  }
  s.values = {cast(out->dtype, load(b, at))};
  s.outputs = {out};
  fn.stages.insert(fn.stages.begin() + std::ptrdiff_t(stage_of(fn, b)) + 1, std::move(s));
}

// The result `b`, rounded to t where it is computed: a border or a move passes it on, so that templates still see it.
Buffer round_result(TensorFn& fn, const Buffer& b, DType t) {
  const Buffer out = stored_as(t, b);
  const size_t i = stage_of(fn, b);
  const bool only = fn.stages[i].kind == Stage::Kind::Compute && fn.stages[i].outputs.size() == 1 && !is_read(fn, b);
  if (!only) {
    add_rounding(fn, b, out);
    return out;
  }
  const Expr value = fn.stages[i].values[0];
  const Select* border = as<Select>(value);
  const Load* moved = as<Load>(border ? border->yes : value);
  fn.stages[i].outputs = {out};
  fn.stages[i].values = {zero(t)};
  const bool passes_on = moved && stage_of(fn, moved->buffer) < fn.stages.size() && !is_read(fn, moved->buffer) &&
                         (!border || as_const_number(border->no));
  if (!passes_on) {
    fn.stages[i].values = {cast(t, value)};
    return out;
  }
  const Expr passed = load(round_result(fn, moved->buffer, t), moved->index);
  fn.stages[stage_of(fn, out)].values = {
      border ? select(border->condition, passed, make_const(t, *as_const_number(border->no))) : passed};
  return out;
}

// n's function for operands and results of which those `is_half` says are of type t.
TensorFn with_halves(const Node* n, DType t, const std::function<bool(const Value*)>& is_half) {
  TensorFn fn = *n->fn;
  for (size_t i = 0; i < fn.inputs.size(); i++)
    if (is_half(n->inputs[operand_of(fn, i)])) read_stored_as(fn, i, t);
  for (size_t k = 0; k < fn.outputs.size(); k++)
    if (n->outputs[k] && is_half(n->outputs[k])) fn.outputs[k] = round_result(fn, fn.outputs[k], t);
  return fn;
}

// Tensors by the memory that they show.
class Storage {
 public:
  Storage(Graph& g, const PassContext& cx) : g_(g), cx_(cx), type_(DType::F16) {}

  void run() {
    for (const auto& n : g_.nodes()) look(n.get());
    for (const auto& n : g_.nodes()) choose(n.get());
    for (const auto& n : g_.nodes()) retype(n.get());
  }

 private:
  bool is_half(const Value* v) const { return v && half_.contains(root_of(v)->id); }
  void keep(const Value* v) {
    if (v) single_.insert(root_of(v)->id);
  }

  // What must stay, and which memory only sums of products read.
  void look(const Node* n) {
    const bool plain = is_fused(n) && is_formula(*n->fn) && regions_keep_their_template(n);
    for (const Value* v : n->outputs) {
      if (!v) continue;
      if (v->output_uses > 0 || v->type.dtype != DType::F32 || !v->type.is_static_tensor() || (!plain && !is_view(*n)))
        keep(v);
    }
    if (is_view(*n)) {
      if (!root_of(n->inputs[0])->producer) keep(n->inputs[0]);
      return;
    }
    const bool floats = plain && std::all_of(n->outputs.begin(), n->outputs.end(),
                                             [](const Value* v) { return !v || is_float(v->type.dtype); });
    for (const Value* v : n->inputs) {
      if (!v) continue;
      if (!v->producer || !floats) keep(v);
      if (!is_contraction(n)) other_readers_.insert(root_of(v)->id);
    }
  }

  bool regions_keep_their_template(const Node* n) const {
    int products = 0;
    for (const Stage& s : n->fn->stages) {
      const Apply* k = s.kind == Stage::Kind::Reduce && s.values.size() == 1 ? as<Apply>(s.values[0]) : nullptr;
      products += k && k->op == Op::Mul && s.combiner.op == Op::Add;
    }
    if (products < 2) return true;
    std::vector<bool> constant;
    for (size_t i = 0; i < n->fn->inputs.size(); i++)
      constant.push_back(root_of(n->inputs[operand_of(*n->fn, i)])->is_constant());
    const ScheduleOptions o{.strict_fp = cx_.options.strict_fp, .precision = cx_.options.precision};
    const TensorFn all = with_halves(
        n, type_, [&](const Value* v) { return v->type.dtype == DType::F32 && !root_of(v)->is_constant(); });
    return cx_.backend->region_pays(all, constant, o);
  }

  // Producers come first.
  void choose(const Node* n) {
    if (!is_fused(n)) return;
    int64_t most = 0;
    bool follows = is_contraction(n);
    for (const Value* v : n->inputs)
      if (v && !root_of(v)->is_constant()) {
        most = std::max(most, num_elements(dims_of(v)));
        follows = follows || is_half(v);
      }
    for (const Value* v : n->outputs) {
      if (!v || single_.contains(v->id)) continue;
      const bool factor = !other_readers_.contains(v->id);
      const bool statistic = !is_contraction(n) && reduces(*n->fn) && num_elements(dims_of(v)) * kStatistic <= most;
      if (factor || (follows && !statistic)) half_.insert(v->id);
    }
  }

  void retype(Node* n) {
    auto half = [&](const Value* v) { return is_half(v); };
    if (is_fused(n) && (std::any_of(n->inputs.begin(), n->inputs.end(), half) ||
                        std::any_of(n->outputs.begin(), n->outputs.end(), half)))
      n->fn = std::make_shared<const TensorFn>(with_halves(n, type_, half));
    for (Value* v : n->outputs)
      if (is_half(v)) {
        ValueType t = v->type;
        t.dtype = type_;
        g_.set_type(v, t);
      }
  }

  static constexpr int64_t kStatistic = 8;  // so much smaller than what was reduced
  Graph& g_;
  const PassContext& cx_;
  const DType type_;
  std::set<int> single_, other_readers_, half_;  // ids of values; looked up only
};

}  // namespace

void to_mixed_precision(Graph& g, PassContext& cx) {
  if (!cx.target.picks_precision || cx.options.strict_fp || cx.options.precision != Precision::F16) return;
  for (const auto& n : g.nodes())
    for (const auto& r : n->regions) to_mixed_precision(*r, cx);
  Storage(g, cx).run();
}

}  // namespace tc
