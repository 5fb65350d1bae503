// Layers that look along an axis whose size is known at run time, as operators that can: statistics as means.
//   y = GlobalAveragePool(x)                 ->   y = ReduceMean(x, [2, 3])
//   y = InstanceNormalization(x, s, b)       ->   d = x - ReduceMean(x, [2, 3])   y = d / sqrt(ReduceMean(d d, [2, 3]) + e) s + b
//   y = LayerNormalization(x, s, b)          ->   the same over the axes from `axis` on, times s, plus b; RMSNormalization without the mean
//   y = MeanVarianceNormalization(x)         ->   d = x - ReduceMean(x, axes)   y = d / (sqrt(ReduceMean(d d, axes)) + 1e-9)
//   y, s, z = DynamicQuantizeLinear(x)       ->   s, z = tc.quantized_range(-inf behind x, inf behind x)   y = QuantizeLinear(x, s, z)
//   y = DynamicQuantizeMatMul(x, w, ...)     ->   the same, and MatMulIntegerToFloat
//   y = Cast(x) {to = f32}   x of text       ->   y = tc.number_of_text(x, n): what lies behind need not be a number
//   y = QLinearConcat(s, z, a, sa, za, ...)  ->   y = QuantizeLinear(Concat(DequantizeLinear(a, sa, za), ...), s, z)
// TopK along another axis sorts each row by itself. Trilu, EyeLike and random tensors count from the front: what they give at the
// bound begins with what they give.
//
// Preconditions: channels and features are not counted; a GroupNormalization's groups have whole channels.
#include <algorithm>
#include <functional>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

std::vector<int64_t> axes_from(int first, int rank) {
  std::vector<int64_t> axes;
  for (int d = first; d < rank; d++) axes.push_back(d);
  return axes;
}

/// Has the result the sizes of the first operand, and an element the same value however many there are?
bool counts_from_front(const Node& n) { return has_trait(n, OpTrait::PlacesFromFront); }

using MakesOp = std::function<Value*(const char* op, const std::vector<Value*>& inputs, const Attrs& attrs)>;

DType wide_type(DType t) { return t == DType::F64 ? t : DType::F32; }

Value* to_type(const MakesOp& op, Value* v, DType to) {
  return v->type.dtype == to ? v : op("Cast", {v}, {{"to", int64_t(to)}});
}

/// As the function body of ONNX has it: the epsilon is added to the deviation, not to the variance.
Value* mean_variance_normalized(Graph& g, const Node& n, const std::vector<int64_t>& list, const MakesOp& op) {
  const ModelText& base = n.outputs[0]->name;
  const DType t = n.inputs[0]->type.dtype;
  const Attrs keep = {{"keepdims", int64_t(1)}};
  Value* axes = g.add_constant(derived(base, "_axes"), int64_constant(list));
  Value* epsilon = g.add_constant(derived(base, "_epsilon"), scalar_constant(wide_type(t), 1e-9));
  Value* x = to_type(op, n.inputs[0], wide_type(t));
  Value* d = op("Sub", {x, op("ReduceMean", {x, axes}, keep)}, {});
  Value* deviation = op("Sqrt", {op("ReduceMean", {op("Mul", {d, d}, {}), axes}, keep)}, {});
  return to_type(op, op("Div", {d, op("Add", {deviation, epsilon}, {})}, {}), t);
}

struct Standardized {
  Value *y = nullptr, *mean = nullptr, *deviation = nullptr;  // the mean: null where none is taken off
};
/// d / sqrt(mean(d d) + epsilon) over the axes from `first` on; d is x, or what is left of it without the mean.
Standardized standardized(Graph& g, const Node& n, Value* x, int first, bool centred, const MakesOp& op) {
  const ModelText& base = n.outputs[0]->name;
  const Attrs keep = {{"keepdims", int64_t(1)}};
  Value* axes = g.add_constant(derived(base, "_axes"), int64_constant(axes_from(first, rank_of(x))));
  Standardized s;
  if (centred) s.mean = op("ReduceMean", {x, axes}, keep);
  Value* d = centred ? op("Sub", {x, s.mean}, {}) : x;
  Value* variance = op("ReduceMean", {op("Mul", {d, d}, {}), axes}, keep);
  Value* epsilon =
      g.add_constant(derived(base, "_epsilon"), scalar_constant(x->type.dtype, n.attr_float("epsilon", 1e-5f)));
  s.deviation = op("Sqrt", {op("Add", {variance, epsilon}, {})}, {});
  s.y = op("Div", {d, s.deviation}, {});
  return s;
}

/// LayerNormalization and RMSNormalization: scale and bias broadcast to the operand. Who reads the means, or one over the deviations,
/// gets them.
Value* normalized_rows(Graph& g, const Node& n, int first, const MakesOp& op) {
  const bool centred = n.is("LayerNormalization");
  const DType wide = wide_type(n.inputs[0]->type.dtype);
  const Standardized s = standardized(g, n, to_type(op, n.inputs[0], wide), first, centred, op);
  const DType stash = DType(n.attr_int("stash_type", 1));
  const auto give = [&](size_t k, Value* v) {
    v = to_type(op, v, stash);
    v->name = n.outputs[k]->name;
    g.replace_uses(n.outputs[k], v);
  };
  if (n.outputs.size() > 1 && n.outputs[1]) give(1, s.mean);
  if (n.outputs.size() > 2 && n.outputs[2]) give(2, op("Reciprocal", {s.deviation}, {}));
  Value* y = op("Mul", {s.y, to_type(op, n.inputs.at(1), wide)}, {});
  if (n.inputs.size() > 2 && n.inputs[2]) y = op("Add", {y, to_type(op, n.inputs[2], wide)}, {});
  return to_type(op, y, n.inputs[centred ? 0 : 1]->type.dtype);
}

}  // namespace

Value* BoundedSizes::made(Graph& g, Node* before, const std::string& op, const std::vector<Value*>& inputs,
                          const ModelText& name, const Attrs& attrs, const std::string& domain) {
  Node* n = count_results(g, look_across(g, insert_for(g, *before, before, op, inputs, {name}, attrs, domain)));
  infer_types(g, *n);
  follow(g, n);
  return n->outputs[0];
}

Node* BoundedSizes::replaced(Graph& g, Node* n, Value* v) {
  // Of a rewrite that had nothing to do: what others read keeps its name.
  if (!v->producer || v->is_used()) v = made(g, n, "Identity", {v}, n->outputs.at(0)->name);
  Node* last = v->producer;
  last->outputs[0]->name = n->outputs.at(0)->name;
  g.replace_uses(n->outputs[0], last->outputs[0]);
  g.erase(n);
  return last;
}

Node* BoundedSizes::layer(Graph& g, Node* n) {
  Value* x = operand(*n, 0);
  if (n->is("RoiAlign")) return align_rois(g, n);
  if (n->domain == "com.microsoft" && n->op == "QLinearConcat") return quantized_concat(g, n);
  if (!x || !is_counted(x) || !n->outputs.at(0)) return n;
  if (n->domain == "com.microsoft" && n->op == "QLinearGlobalAveragePool") return quantized_average(g, n);
  if (n->domain == "com.microsoft" && n->op == "QLinearAveragePool") return quantized_pool(g, n);
  if (n->domain == "com.microsoft" && n->op == "QLinearSoftmax") return quantized_softmax(g, n);
  if (n->domain == "com.microsoft" && n->op == "DynamicQuantizeMatMul") return multiply_by_range(g, n);
  if (!n->domain.empty()) return n;
  if (n->is("LSTM") || n->is("GRU") || n->is("RNN")) return recur(g, n);
  if (n->is("STFT")) return frames(g, n);
  if (n->is("Cast") && x->type.dtype == DType::String) return number_of_text(g, n);
  if (n->is("DynamicQuantizeLinear")) return quantize_by_range(g, n);
  if (n->is("ReverseSequence")) return reverse(g, n);
  if (counts_from_front(*n)) {
    note_sized(g, n, x, forms(x));
    return n;
  }
  if (n->is("TopK")) return select_rows(g, n);
  const MakesOp op = [&, step = 0](const char* kind, const std::vector<Value*>& inputs, const Attrs& attrs) mutable {
    return made(g, n, kind, inputs, derived(n->outputs[0]->name, "_step" + to_text(int64_t(step++))), attrs);
  };
  if (n->is("MeanVarianceNormalization")) {
    std::vector<int64_t> axes = n->attr_ints("axes");
    if (axes.empty()) axes = {0, 2, 3};
    for (int64_t& a : axes) a = axis_from_front(a, x);
    const auto is_reduced = [&](const BoundedSize& s) { return std::count(axes.begin(), axes.end(), s.axis) != 0; };
    const std::vector<BoundedSize>& all = sizes(x);
    if (std::none_of(all.begin(), all.end(), is_reduced)) return n;
    return replaced(g, n, mean_variance_normalized(g, *n, axes, op));
  }
  if (n->is("LayerNormalization") || n->is("RMSNormalization")) {
    const int64_t first = axis_from_front(n->attr_int("axis", -1), x);
    const auto is_normalised = [first](const BoundedSize& s) { return s.axis >= first; };
    const std::vector<BoundedSize>& all = sizes(x);
    if (first < 0 || std::none_of(all.begin(), all.end(), is_normalised)) return n;
    return replaced(g, n, normalized_rows(g, *n, int(first), op));
  }
  if (!along_space(sizes(x)) || find(x, 1) || n->attrs.count("data_layout")) return n;
  const ModelText& name = n->outputs[0]->name;
  const auto reduced = [&](const char* op) {
    Value* axes = g.add_constant(derived(name, "_axes"), int64_constant(axes_from(2, rank_of(x))));
    return replaced(g, n, made(g, n, op, {x, axes}, derived(name, "_reduced"), {{"keepdims", int64_t(1)}}));
  };
  if (n->is("GlobalAveragePool")) return reduced("ReduceMean");
  if (n->is("GlobalMaxPool")) return reduced("ReduceMax");
  if (n->is("GlobalLpPool") && n->attr_int("p", 2) == 2) return reduced("ReduceL2");
  if (n->is("GlobalLpPool") && n->attr_int("p", 2) == 1) return reduced("ReduceL1");
  if (n->is("InstanceNormalization")) return replaced(g, n, normalized(g, n, x, 2));
  if (n->is("GroupNormalization")) return group_norm(g, n);
  return n;
}

// (x - mean) / sqrt(variance + epsilon) over the axes from `first` on, times a scale and a bias for each channel of n's. In f32 for
// narrow types.
Value* BoundedSizes::normalized(Graph& g, Node* n, Value* x, int first) {
  const ModelText base = n->outputs[0]->name;
  const DType t = x->type.dtype;
  const MakesOp op = [&, step = 0](const char* kind, const std::vector<Value*>& inputs, const Attrs& attrs) mutable {
    return made(g, n, kind, inputs, derived(base, "_step" + to_text(int64_t(step++))), attrs);
  };
  const std::vector<SizeForm> shape = forms(n->inputs[0]);
  Value* y = standardized(g, *n, to_type(op, x, wide_type(t)), first, true, op).y;
  if (rank_of(y) != int(shape.size())) y = viewed(g, n, y, shape, derived(base, "_whole"));
  Dims channels(shape.size() - 1, 1);
  channels[0] = -1;
  Value* by_channel = g.add_constant(derived(base, "_channels"), int64_constant(channels));
  y = op("Mul", {y, op("Reshape", {to_type(op, n->inputs.at(1), wide_type(t)), by_channel}, {})}, {});
  y = op("Add", {y, op("Reshape", {to_type(op, n->inputs.at(2), wide_type(t)), by_channel}, {})}, {});
  return to_type(op, y, t);
}

Value* BoundedSizes::viewed(Graph& g, Node* n, Value* x, const std::vector<SizeForm>& to, const ModelText& name) {
  Value* none = g.add_constant(derived(name, "_shape"), int64_constant({}));
  Node* view = view_as(g, insert_for(g, *n, n, "Reshape", {x, none}, {name}), to);
  return view->outputs[0];
}

Node* BoundedSizes::group_norm(Graph& g, Node* n) {
  Value* x = n->inputs[0];
  std::vector<SizeForm> shape = forms(x);
  const int64_t groups = n->attr_int("num_groups", 0), channels = dims_of(x)[1];
  if (groups < 1 || channels % groups != 0) return n;
  shape.insert(shape.begin() + 1, fixed_size(groups));
  shape[2] = fixed_size(channels / groups);
  Value* grouped = viewed(g, n, x, shape, derived(n->outputs[0]->name, "_groups"));
  return replaced(g, n, normalized(g, n, grouped, 2));
}

// The range is that of what is counted; what lies behind may be any byte.
BoundedSizes::ByRange BoundedSizes::quantized_by_range(Graph& g, Node* n, Value* x,
                                                       const std::vector<ModelText>& names) {
  Value *high = x, *low = x;
  for (const BoundedSize& size : std::vector<BoundedSize>(sizes(x))) {
    high = filled(g, n, high, size, "lowest");
    low = filled(g, n, low, size, "highest");
  }
  Node* range = insert_for(g, *n, n, "quantized_range", {high, low}, {names[1], names[2]}, {}, "tc");
  infer_types(g, *range);
  Value *scale = range->outputs[0], *zero = range->outputs[1];
  return {made(g, n, "QuantizeLinear", {x, scale, zero}, names[0]), scale, zero};
}

Node* BoundedSizes::quantize_by_range(Graph& g, Node* n) {
  const ModelText& name = n->outputs[0]->name;
  std::vector<ModelText> names = {name, derived(name, "_scale"), derived(name, "_zero_point")};
  for (size_t k = 1; k < n->outputs.size(); k++)
    if (n->outputs[k]) names[k] = n->outputs[k]->name;
  const ByRange q = quantized_by_range(g, n, n->inputs[0], names);
  const std::vector<Value*> results = {q.bytes, q.scale, q.zero_point};
  for (size_t k = 1; k < n->outputs.size(); k++)
    if (n->outputs[k]) g.replace_uses(n->outputs[k], results[k]);
  return replaced(g, n, q.bytes);
}

Node* BoundedSizes::multiply_by_range(Graph& g, Node* n) {
  const ModelText& name = n->outputs[0]->name;
  const ByRange q = quantized_by_range(
      g, n, n->inputs[0], {derived(name, "_bytes"), derived(name, "_scale"), derived(name, "_zero_point")});
  return replaced(
      g, n,
      made(g, n, "MatMulIntegerToFloat",
           {q.bytes, n->inputs.at(1), q.scale, n->inputs.at(2), q.zero_point, operand(*n, 3), operand(*n, 4)},
           derived(name, "_product"), {}, n->domain));
}

Node* BoundedSizes::number_of_text(Graph& g, Node* n) {
  Value* x = n->inputs[0];
  std::vector<Value*> operands = {x};
  std::vector<int64_t> axes;
  for (const BoundedSize& s : sizes(x)) {
    axes.push_back(s.axis);
    operands.push_back(s.count);
  }
  Node* read = insert_for(g, *n, n, "number_of_text", operands, {n->outputs[0]->name},
                          {{"axes", std::move(axes)}, {"to", n->attr_int("to", 0)}}, "tc");
  note_sized(g, read, x, forms(x));
  g.replace_uses(n->outputs[0], read->outputs[0]);
  g.erase(n);
  return read;
}

// The first elements of each row, as many as an operand says, in turn: no row has more than there are.
Node* BoundedSizes::reverse(Graph& g, Node* n) {
  Value *x = n->inputs[0], *lengths = operand(*n, 1);
  const auto rows = int(n->attr_int("batch_axis", 1));
  if (!lengths || !lengths->type.is_static_tensor() || rank_of(lengths) != 1 || rows < 0 || rows >= rank_of(x))
    return n;
  if (form_along(lengths, 0) != form_along(x, rows)) return n;
  if (const auto size = find(lengths, 0)) g.set_input(n, 1, filled(g, n, lengths, *size, "zero"));
  note_sized(g, n, x, forms(x));
  return n;
}

// Each row is sorted by itself.
Node* BoundedSizes::select_rows(Graph& g, Node* n) {
  Value* x = n->inputs[0];
  const int64_t along = axis_from_front(n->attr_int("axis", -1), x);
  if (along < 0 || along >= rank_of(x) || find(x, int(along)) || !operand(*n, 1) || !n->inputs[1]->constant) return n;
  const std::vector<BoundedSize> all = sizes(x);
  infer_types(g, *n);
  for (const Value* y : n->outputs)
    for (const BoundedSize& s : all)
      if (y) note(y, s);
  return n;
}

// y = QLinear...(x, sx, zx, sy, zy)   ->   y = QuantizeLinear(f(DequantizeLinear(x, sx, zx)), sy, zy)
Node* BoundedSizes::in_reals(Graph& g, Node* n, const std::function<Value*(Value*)>& f) {
  const ModelText& name = n->outputs[0]->name;
  Value* y = f(made(g, n, "DequantizeLinear", {n->inputs[0], n->inputs[1], n->inputs[2]}, derived(name, "_real")));
  return replaced(g, n, made(g, n, "QuantizeLinear", {y, n->inputs[3], n->inputs[4]}, derived(name, "_quantized")));
}

// QLinearGlobalAveragePool: the mean over all axes but the batch and the channels.
Node* BoundedSizes::quantized_average(Graph& g, Node* n) {
  if (n->inputs.size() < 5) return n;
  Value* x = n->inputs[0];
  const int rank = rank_of(x), channels = n->attr_int("channels_last", 0) != 0 ? rank - 1 : 1;
  if (rank < 3 || find(x, channels)) return n;
  const ModelText& name = n->outputs[0]->name;
  const std::vector<int64_t> axes = channels == 1 ? axes_from(2, rank) : axes_from(1, rank - 1);
  return in_reals(g, n, [&](Value* real) {
    return made(g, n, "ReduceMean", {real, g.add_constant(derived(name, "_axes"), int64_constant(axes))},
                derived(name, "_mean"), {{"keepdims", int64_t(1)}});
  });
}

// QLinearAveragePool, whose channels may be last.
Node* BoundedSizes::quantized_pool(Graph& g, Node* n) {
  if (n->inputs.size() < 5 || rank_of(n->inputs[0]) < 3) return n;
  const ModelText& name = n->outputs[0]->name;
  const int rank = rank_of(n->inputs[0]);
  const bool channels_last = n->attr_int("channels_last", 0) != 0;
  std::vector<int64_t> first = axes_from(1, rank - 1), last = axes_from(2, rank);
  first.insert(first.begin(), {0, int64_t(rank) - 1});
  last.insert(last.begin(), 0), last.push_back(1);
  Attrs attrs = n->attrs;
  attrs.erase("channels_last");
  return in_reals(g, n, [&](Value* v) {
    if (channels_last) v = made(g, n, "Transpose", {v}, derived(name, "_first"), {{"perm", first}});
    v = made(g, n, "AveragePool", {v}, derived(name, "_mean"), attrs);
    return channels_last ? made(g, n, "Transpose", {v}, derived(name, "_last"), {{"perm", last}}) : v;
  });
}

// QLinearSoftmax over what is counted.
Node* BoundedSizes::quantized_softmax(Graph& g, Node* n) {
  if (n->inputs.size() < 5) return n;
  const int64_t axis = axis_from_front(n->attr_int("axis", -1), n->inputs[0]);
  const bool flattens = n->attr_int("opset", 13) < 13 && axis + 1 < rank_of(n->inputs[0]);
  if (flattens || !find(n->inputs[0], int(axis))) return n;
  return in_reals(g, n, [&](Value* real) {
    return made(g, n, "Softmax", {real}, derived(n->outputs[0]->name, "_shares"), {{"axis", axis}});
  });
}

// Operands: scale and zero point of the result, then each part with its own.
Node* BoundedSizes::quantized_concat(Graph& g, Node* n) {
  const size_t count = n->inputs.size();
  if (count < 5 || (count - 2) % 3 != 0 || !n->outputs.at(0)) return n;
  if (std::count(n->inputs.begin(), n->inputs.end(), nullptr) != 0) return n;
  bool along = false;
  for (size_t k = 2; k < count; k += 3)
    along |= find(n->inputs[k], int(axis_from_front(n->attr_int("axis", 0), n->inputs[k]))).has_value();
  if (!along) return n;
  const ModelText& name = n->outputs[0]->name;
  std::vector<Value*> parts;
  for (size_t k = 2; k < count; k += 3)
    parts.push_back(made(g, n, "DequantizeLinear", {n->inputs[k], n->inputs[k + 1], n->inputs[k + 2]},
                         derived(name, "_real" + to_text(int64_t(k / 3)))));
  Value* whole = made(g, n, "Concat", parts, derived(name, "_whole"), {{"axis", n->attr_int("axis", 0)}});
  return replaced(g, n, made(g, n, "QuantizeLinear", {whole, n->inputs[0], n->inputs[1]}, derived(name, "_quantized")));
}

}  // namespace tc
