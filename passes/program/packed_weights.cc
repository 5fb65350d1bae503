// Weights that kernels read in another order: scheduled prologues. They are evaluated when the blob of weights is written, one after
// another, so that a model needs no memory for all of its packed weights.
#include <algorithm>

#include "passes/program/program_builder.h"

namespace tc {

// A number for each constant, in order of first use: ids of values are those of one graph only, bodies have others.
int ProgramBuilder::ordinal(const Constant& c) {
  return ordinals_.try_emplace(c.get(), int(ordinals_.size())).first->second;
}

namespace {

// The prologue input after which a packed weight is named: the first that its stage reads.
int owner_of(const TensorFn& prologue, const Buffer& out) {
  Buffer b = out;
  for (int guard = 0; guard < 16; guard++) {
    for (size_t i = 0; i < prologue.inputs.size(); i++)
      if (prologue.inputs[i] == b) return int(i);
    const Stage* s = producer(prologue, b);
    if (!s) return 0;
    Buffer next;
    for (const Expr& e : s->values)
      walk(e, [&](const Expr& x) {
        if (const Load* l = as<Load>(x); l && !next) next = l->buffer;
        return !next;
      });
    if (!next) return 0;
    b = next;
  }
  return 0;
}

// Constants as a function reads them: what stays a Reshape in the graph is the same bytes under other sizes.
std::vector<Constant> of_shapes(const std::vector<Buffer>& buffers, std::vector<Constant> constants) {
  for (size_t i = 0; i < constants.size(); ++i) {
    Dims dims = static_dims(buffers[i]->shape);
    if (constants[i]->dims == dims) continue;
    TensorData seen = *constants[i];
    seen.dims = std::move(dims);
    constants[i] = std::make_shared<const TensorData>(std::move(seen));
  }
  return constants;
}

// The results of one prologue for the same constants, which several weights are: made together, and each given away once.
class Packing {
 public:
  Packing(std::shared_ptr<Packer> how, std::vector<Constant> inputs)
      : how_(std::move(how)), inputs_(std::move(inputs)) {}
  Constant take(size_t k) {
    if (results_.empty() || !results_[k]) results_ = how_->pack(inputs_);
    return std::exchange(results_[k], nullptr);
  }

 private:
  std::shared_ptr<Packer> how_;
  std::vector<Constant> inputs_, results_;
};

const Value* first_output(const Node& n) {
  return *std::find_if(n.outputs.begin(), n.outputs.end(), [](const Value* v) { return v != nullptr; });
}

// Type and sizes of a weight that is not made yet.
Constant outline(const Buffer& b) {
  TensorData t{b->dtype, static_dims(b->shape), nullptr, 0, {}};
  t.num_bytes = size_t(checked_mul(t.size(), info(t.dtype).bytes));
  return std::make_shared<const TensorData>(std::move(t));
}

}  // namespace

std::vector<Constant> Packer::pack(const std::vector<Constant>& inputs) {
  if (!evaluator_) evaluator_.emplace(prologue_);
  return (*evaluator_)(inputs);
}

// The k-th packed weight of a call; the same constants packed the same way are stored once.
int ProgramBuilder::packed(Compiled& c, const Node& n, const std::vector<const Value*>& operands, size_t k) {
  std::vector<Constant> inputs;
  for (const int i : c.prologue_operands) inputs.push_back(root_of(operands[size_t(i)])->constant);
  std::vector<int> ordinals;
  for (const Constant& x : inputs) ordinals.push_back(ordinal(x));
  std::vector<int>& weights = packed_[{c.prologue_key, std::move(ordinals)}];
  if (weights.empty()) {
    const auto packing = std::make_shared<Packing>(c.packer, of_shapes(c.prologue.inputs, std::move(inputs)));
    for (size_t i = 0; i < c.prologue.outputs.size(); i++) {
      const bool table = c.prologue_operands.empty();  // of nothing but positions: what reads it gives it its name
      const int owner = table ? 0 : c.prologue_operands.at(size_t(owner_of(c.prologue, c.prologue.outputs[i])));
      const Value* v =
          operands.empty() ? first_output(n) : root_of(operands.at(size_t(owner)));  // random numbers alone
      weights.push_back(
          add_weight(*v, outline(c.prologue.outputs[i]), table ? c.prologue.outputs[i]->name : "packed", ""));
      p_.weights.back().pack = [packing, i] { return packing->take(i); };
    }
  }
  return weights.at(k);
}

}  // namespace tc
