#include "ir/ops/evaluate.h"

#include <algorithm>
#include <cstring>

#include "ir/graph/origin.h"
#include "ir/ops/op.h"
#include "ir/ops/regions.h"
#include "support/interrupt.h"

namespace tc {

namespace {

using Values = std::vector<Constant>;

[[noreturn]] void unsupported(const Node& n, const std::string& why) {
  throw Error(problem_of(n, "TC0310", ExitCode::Unsupported, why));
}

/// Copies n elements.
void copy_elements(const TensorData& from, int64_t first, MutableTensor& to, int64_t at, int64_t n) {
  if (from.dtype == DType::String) {
    std::copy_n(from.strings.begin() + first, n, to.data.strings.begin() + at);
    return;
  }
  const int64_t e = info(from.dtype).bytes;
  if (n > 0) std::memcpy(to.bytes + at * e, from.bytes.get() + first * e, size_t(n * e));
}

/// The slice `at` of axis `axis`, that axis removed.
Constant slice(const TensorData& t, size_t axis, int64_t at) {
  Dims dims = t.dims;
  dims.erase(dims.begin() + int64_t(axis));
  const int64_t inner = num_elements(Dims(t.dims.begin() + int64_t(axis) + 1, t.dims.end()));
  const int64_t outer = num_elements(Dims(t.dims.begin(), t.dims.begin() + int64_t(axis)));
  MutableTensor m = new_tensor(t.dtype, dims);
  for (int64_t o = 0; o < outer; ++o) copy_elements(t, (o * t.dims[axis] + at) * inner, m, o * inner, inner);
  return std::make_shared<TensorData>(std::move(m.data));
}

/// Joins equal tensors of `element` type along a new axis, which has room for `capacity` of them at least.
Constant stack(const Values& parts, const ValueType& element, size_t axis, int64_t capacity = 0) {
  Dims one = static_dims(element.shape), dims = one;
  const auto count = int64_t(parts.size()), room = std::max(count, capacity);
  dims.insert(dims.begin() + int64_t(axis), room);
  const int64_t inner = num_elements(Dims(one.begin() + int64_t(axis), one.end()));
  const int64_t outer = num_elements(Dims(one.begin(), one.begin() + int64_t(axis)));
  MutableTensor m = new_tensor(element.dtype, dims);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < count; ++k) copy_elements(*parts[size_t(k)], o * inner, m, (o * room + k) * inner, inner);
  return std::make_shared<TensorData>(std::move(m.data));
}

class GraphRun {
 public:
  GraphRun(const Graph& g, const RunOptions& o) : g_(g), options_(o), values_(size_t(g.value_ids())) {}

  Values run(const Values& inputs) {
    check(inputs.size() == g_.inputs().size(), "evaluate: as many tensors as the graph has inputs");
    std::vector<int> uses(values_.size(), 0);
    for (const auto& v : g_.values()) {
      uses[size_t(v->id)] = int(v->users.size()) + v->output_uses;
      if (v->is_constant()) at(v.get()) = v->constant;
    }
    for (size_t i = 0; i < inputs.size(); ++i) at(g_.inputs()[i]) = inputs[i];
    for (const auto& n : g_.nodes()) {
      stop_if_interrupted();
      run_node(*n);
      for (const Value* v : n->inputs)
        if (v && --uses[size_t(v->id)] == 0) at(v) = nullptr;
    }
    Values out;
    for (const Value* v : g_.outputs()) out.push_back(at(v));
    return out;
  }

 private:
  Constant& at(const Value* v) { return values_[size_t(v->id)]; }

  Values operands(const Node& n, size_t begin = 0) {
    Values list;
    for (size_t i = begin; i < n.inputs.size(); ++i) list.push_back(n.inputs[i] ? at(n.inputs[i]) : nullptr);
    return list;
  }

  void finish(const Node& n, const Values& results) {
    for (size_t k = 0; k < n.outputs.size(); ++k)
      if (n.outputs[k]) at(n.outputs[k]) = results.at(k);
  }

  void run_node(Node& n) {
    if (n.is("If")) return run_if(n);
    if (n.is("Loop")) return run_loop(n);
    if (n.is("Scan")) return run_scan(n);
    for (const Value* v : n.outputs)
      if (v && !v->type.is_static_tensor()) unsupported(n, "its result is not a tensor of known sizes");
    Values args;
    const TensorFn& fn = tensor_fn(n);
    for (int i : fn_operands(n)) args.push_back(at(n.inputs[size_t(i)]));
    const Values results = evaluate(fn, args, options_);
    for (size_t k = 0, r = 0; k < n.outputs.size(); ++k)
      if (n.outputs[k]) at(n.outputs[k]) = results.at(r++);
  }

  void run_if(const Node& n) {
    check(n.regions.size() == 2, "If has two regions");
    const bool yes = at(n.inputs[0])->as_int(0) != 0;
    finish(n, GraphRun(*n.regions[yes ? 0 : 1], options_).run(operands(n, 1)));
  }

  void run_loop(const Node& n) {
    const Graph& body = *n.regions.at(0);
    const size_t states = own_inputs(n) - 2;
    const int64_t trips = n.inputs[0] ? at(n.inputs[0])->as_int(0) : INT64_MAX;
    bool go = !n.inputs[1] || at(n.inputs[1])->as_int(0) != 0;
    Values args = operands(n, 2);
    std::vector<Values> scanned(body.outputs().size() - 1 - states);
    for (int64_t i = 0; i < trips && go; ++i) {
      Values in = {scalar_constant(DType::I64, double(i)), scalar_constant(DType::Bool, 1)};
      in.insert(in.end(), args.begin(), args.end());
      const Values out = GraphRun(body, options_).run(in);
      go = out[0]->as_int(0) != 0;
      std::copy_n(out.begin() + 1, states, args.begin());
      for (size_t k = 0; k < scanned.size(); ++k) scanned[k].push_back(out[1 + states + k]);
    }
    Values results(args.begin(), args.begin() + int64_t(states));
    for (size_t k = 0; k < scanned.size(); ++k)
      results.push_back(stack(scanned[k], body.outputs()[1 + states + k]->type, 0, n.attr_int("capacity", 0)));
    finish(n, results);
  }

  void run_scan(const Node& n) {
    const Graph& body = *n.regions.at(0);
    const size_t scans = size_t(n.attr_int("num_scan_inputs", 0));
    const size_t states = own_inputs(n) - scans, outs = body.outputs().size() - states;
    const auto in_back = n.attr_ints("scan_input_directions", std::vector<int64_t>(scans, 0));
    const auto out_back = n.attr_ints("scan_output_directions", std::vector<int64_t>(outs, 0));
    Values args = operands(n);
    const Values whole(args.begin() + int64_t(states), args.begin() + int64_t(states + scans));
    std::vector<size_t> axes;
    for (size_t k = 0; k < scans; ++k)
      axes.push_back(size_t(scan_axis(n, "scan_input_axes", k, whole[k]->dims.size())));
    const int64_t trips = scans ? whole[0]->dims.at(axes[0]) : 0;
    std::vector<Values> scanned(outs);
    for (int64_t i = 0; i < trips; ++i) {
      for (size_t k = 0; k < scans; ++k) args[states + k] = slice(*whole[k], axes[k], in_back[k] ? trips - 1 - i : i);
      const Values out = GraphRun(body, options_).run(args);
      std::copy_n(out.begin(), states, args.begin());
      for (size_t k = 0; k < outs; ++k) scanned[k].push_back(out[states + k]);
    }
    Values results(args.begin(), args.begin() + int64_t(states));
    for (size_t k = 0; k < outs; ++k) {
      if (out_back[k]) std::reverse(scanned[k].begin(), scanned[k].end());
      const ValueType& element = body.outputs()[states + k]->type;
      const int64_t axis = scan_axis(n, "scan_output_axes", k, element.shape.size() + 1);
      results.push_back(stack(scanned[k], element, size_t(axis)));
    }
    finish(n, results);
  }

  const Graph& g_;
  RunOptions options_;
  Values values_;  // by id
};

}  // namespace

std::vector<Constant> evaluate(const Graph& g, const std::vector<Constant>& inputs, const RunOptions& o) {
  return GraphRun(g, o).run(inputs);
}

namespace {

/// What the caller gives as `g` declares it: dense at the start of tensors of the largest sizes, and the sizes themselves.
std::vector<Constant> in_largest_sizes(const Graph& g, const std::vector<Constant>& given) {
  const RunTimeSizes& sizes = g.sizes();
  check(given.size() + sizes.chosen.size() == g.inputs().size(), "a tensor for every input that is no size");
  std::vector<Constant> inputs(g.inputs().size());
  std::map<size_t, int64_t> chosen;
  for (const SizeInput& s : sizes.chosen) chosen[s.input] = s.most;
  for (size_t k = 0, next = 0; k < inputs.size(); k++)
    if (chosen.count(k) == 0) inputs[k] = given[next++];
  for (const InputSize& s : sizes.inputs)
    if (s.count.is_one()) chosen.at(s.count.terms[0].input) = inputs[s.input]->dims.at(size_t(s.axis));
  for (const auto& [k, n] : chosen) inputs[k] = scalar_constant(DType::I64, double(n));
  for (const InputSize& s : sizes.inputs) {
    const Dims dims = static_dims(g.inputs()[s.input]->type.shape);
    if (inputs[s.input]->dims == dims) continue;
    MutableTensor wide = new_tensor(inputs[s.input]->dtype, dims);
    check(inputs[s.input]->num_bytes <= wide.data.num_bytes, "no more elements than there is room for");
    if (inputs[s.input]->dtype == DType::String)
      std::copy(inputs[s.input]->strings.begin(), inputs[s.input]->strings.end(), wide.data.strings.begin());
    else if (inputs[s.input]->num_bytes > 0)
      std::memcpy(wide.bytes, inputs[s.input]->bytes.get(), inputs[s.input]->num_bytes);
    inputs[s.input] = std::make_shared<const TensorData>(std::move(wide.data));
  }
  return inputs;
}

/// Results in their actual sizes, without the numbers that count them.
std::vector<Constant> in_actual_sizes(const Graph& g, const std::vector<Constant>& results,
                                      const std::vector<Constant>& inputs) {
  std::vector<Constant> tensors = results;
  std::vector<bool> is_count(results.size(), false);
  for (const OutputSize& s : g.sizes().outputs) {
    Dims dims = tensors.at(s.output)->dims;
    const auto input = [&](size_t k) { return inputs.at(k)->as_int(0); };
    dims.at(size_t(s.axis)) = s.of_inputs() ? s.sum.value(input) : results.at(s.count)->as_int(0);
    TensorData cut = *tensors[s.output];  // the elements lie densely at the start
    cut.dims = dims;
    check(num_elements(dims) <= results[s.output]->size(), "more elements than there is room for");
    if (cut.dtype == DType::String)
      cut.strings.resize(size_t(num_elements(dims)));
    else
      cut.num_bytes = size_t(checked_mul(num_elements(dims), info(cut.dtype).bytes));
    tensors[s.output] = std::make_shared<const TensorData>(std::move(cut));
    if (!s.of_inputs()) is_count.at(s.count) = true;
  }
  std::vector<Constant> seen;
  for (size_t k = 0; k < tensors.size(); k++)
    if (!is_count[k]) seen.push_back(tensors[k]);
  return seen;
}

}  // namespace

std::vector<Constant> evaluate_model(const Graph& g, const std::vector<Constant>& given, const RunOptions& o) {
  const std::vector<Constant> inputs = in_largest_sizes(g, given);
  return in_actual_sizes(g, evaluate(g, inputs, o), inputs);
}

}  // namespace tc
