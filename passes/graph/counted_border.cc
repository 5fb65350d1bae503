// Sizes that the caller chooses, at the border of the graph. In front, an input of bounded sizes gets room for the largest, and a number
// for each of its symbols; elements that the caller hands over densely are spread. Behind, results are packed, and their sizes
// are outputs.
#include <algorithm>

#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

/// Do the counted elements lie densely at the start? The first counted axis has nothing in front of it, and is the only one.
bool is_dense(const Dims& dims, const std::vector<int64_t>& axes) {
  return axes.size() == 1 &&
         std::all_of(dims.begin(), dims.begin() + std::ptrdiff_t(axes[0]), [](int64_t d) { return d == 1; });
}

}  // namespace

SizeSum BoundedSizes::sum_of_inputs(Graph& g, const Dim& d) {
  std::vector<DimTerm> terms = d.terms;
  if (!d.follows()) terms = {{d.symbol, 1, d.least, d.value}};
  SizeSum sum;
  sum.addend = d.addend;
  for (const DimTerm& t : terms) {
    const auto [it, is_new] = symbols_.try_emplace(t.symbol, g.inputs().size());
    if (is_new) {
      Value* size = g.add_input(ModelText(t.symbol), ValueType::tensor(DType::I64, {}));
      chosen_.chosen.push_back({it->second, t.least, t.most});
      counts_.add(size, t.most, t.least);
    }
    sum.terms.push_back({it->second, t.factor});
  }
  return sum;
}

SizeForm BoundedSizes::form_of(const Graph& g, const SizeSum& sum) const {
  SizeForm f = fixed_size(sum.addend);
  for (const SizeSum::Term& t : sum.terms) f = f + *counts_.find(g.inputs()[t.input]) * t.factor;
  return f;
}

void BoundedSizes::open_inputs(Graph& g) {
  chosen_.states = g.sizes().states;
  std::vector<Value*> own = g.inputs();
  Node* first = g.nodes().empty() ? nullptr : g.nodes().front().get();
  for (size_t k = 0; k < own.size(); k++) {
    Value* x = own[k];
    Dims dims;
    std::vector<int64_t> axes, least;
    std::vector<Value*> operands = {x};
    for (const Dim& d : x->type.shape) {
      dims.push_back(d.value);
      if (!d.is_bounded()) continue;
      const SizeSum sum = sum_of_inputs(g, d);
      chosen_.inputs.push_back({k, int(dims.size()) - 1, sum});
      axes.push_back(int64_t(dims.size()) - 1);
      const SizeForm form = form_of(g, sum);
      counts_.limit(form, d.value);
      operands.push_back(counts_.value_of(g, first, form, derived(x->name, "_size" + to_text(axes.back()))));
      least.push_back(std::max<int64_t>(0, counts_.least(form)));
    }
    if (axes.empty()) continue;
    g.set_type(x, ValueType::tensor(x->type.dtype, to_shape(dims)));
    Value* wide = x;
    const bool kept =
        std::any_of(chosen_.states.begin(), chosen_.states.end(), [&](const StatePair& s) { return s.input == k; });
    if (!kept && !is_dense(dims, axes)) {
      const Attrs attrs = {{"axes", axes}, {"shape", std::vector<int64_t>(dims)}, {"least", least}};
      Node* spread = g.insert(first, "unpack", {}, {derived(x->name, "_unpacked")}, attrs, "tc");
      g.replace_uses(x, spread->outputs[0]);
      Value* all = g.add_constant(derived(x->name, "_elements"), int64_constant({num_elements(dims)}));
      operands[0] = add_op(g, spread, "Reshape", {x, all}, derived(x->name, "_flat"), {{"allowzero", int64_t(1)}});
      for (Value* v : operands) g.add_node_input(spread, v);
      infer_types(g, *spread);
      wide = spread->outputs[0];
    }
    for (size_t a = 0; a < axes.size(); a++) note(wide, {int(axes[a]), operands[a + 1], dims[size_t(axes[a])]});
  }
}

void BoundedSizes::hold_counts(Graph& g) {
  if (!holder_) holder_ = g.append("counts", {}, {}, {}, "tc");
  for (Value* v : counts_.take_new())
    if (v->producer) g.add_node_input(holder_, v);
}

void BoundedSizes::release_counts(Graph& g) {
  if (holder_) erase_unused(g, std::exchange(holder_, nullptr));
}

/// Of a size that has no upper bound: as a sum of those that the caller chooses, which says how much room it needs.
std::optional<SizeSum> BoundedSizes::open_sum(const Graph& g, const BoundedSize& size) const {
  const auto form = counts_.find(size.count);
  if (!form || !is_open(counts_.bound(*form))) return std::nullopt;
  SizeSum sum{{}, form->addend};
  for (const auto& [atoms, factor] : form->terms) {
    const SizeInput* of = nullptr;
    for (const SizeInput& s : chosen_.chosen)
      if (!s.next && atoms == std::vector<int>(1, g.inputs()[s.input]->id)) of = &s;
    if (!of || factor < 0) return std::nullopt;
    sum.terms.push_back({of->input, factor});
  }
  return sum;
}

void BoundedSizes::finish(Graph& g) {
  std::vector<Value*> outputs = g.outputs();
  const size_t own = outputs.size();
  RunTimeSizes all = chosen_;
  keep_states(g, all);
  for (size_t k = 0; k < own; k++) {
    const std::vector<BoundedSize> list = sizes(outputs[k]);
    const auto is_kept = [&](const StatePair& s) { return s.output == k; };
    if (list.empty() || std::any_of(all.states.begin(), all.states.end(), is_kept)) continue;
    if (!outputs[k]->type.is_static_tensor()) continue;  // of a node with a problem, which has been told
    std::vector<int64_t> axes;
    std::vector<Value*> operands = {outputs[k]};
    for (const BoundedSize& size : list) {
      axes.push_back(size.axis);
      operands.push_back(size.count);
      auto input = std::find(g.inputs().begin(), g.inputs().end(), size.count);
      const auto counts_on = [&](const SizeInput& c) { return c.next && g.inputs()[c.input] == size.count; };
      if (std::any_of(all.chosen.begin(), all.chosen.end(), counts_on))
        input = g.inputs().end();                                               // it is another one behind the run
      if (!broken_.empty() && outputs.size() == own) input = g.inputs().end();  // it is what is checked
      if (input != g.inputs().end()) {
        all.outputs.push_back({k, size.axis, 0, SizeSum::of(size_t(input - g.inputs().begin()))});
        continue;
      }
      if (const auto sum = open_sum(g, size); sum && broken_.empty()) {
        all.outputs.push_back({k, size.axis, 0, *sum});
        continue;
      }
      size_t at = own;
      while (at < outputs.size() && outputs[at] != size.count) at++;
      if (at == outputs.size()) {
        // Callers know the output, not the nodes that have computed its size; and they know outputs by their names.
        const auto has_name = [&](const Value* v) { return v->name == size.count->name; };
        if (counts_.is_computed(size.count) || std::any_of(outputs.begin(), outputs.end(), has_name))
          size.count->name = derived(outputs[k]->name, "_size" + to_text(int64_t(size.axis)));
        outputs.push_back(size.count);
      }
      all.outputs.push_back({k, size.axis, at});
    }
    if (is_dense(dims_of(outputs[k]), axes)) continue;
    Value* wide = outputs[k];
    Node* pack = g.append("pack", operands, {wide->name}, {{"axes", axes}}, "tc");
    wide->name = derived(wide->name, "_unpacked");
    infer_types(g, *pack);
    outputs[k] = pack->outputs[0];
  }
  const bool counted = outputs.size() > own || !all.outputs.empty();
  if (!broken_.empty()) check_promises(g, outputs, own);
  if (counted || !broken_.empty()) g.set_outputs(std::move(outputs));
  g.set_sizes(std::move(all));
  release_counts(g);
}

}  // namespace tc
