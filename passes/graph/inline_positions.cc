// Puts formulas into indices, where a tensor of positions is one: exporters write the batch's number and the word's into tensors,
// and read a mask there.
//   r = Range(0, n, 1); p = Mul(r, 128); q = Add(p, [0, 1, ..., 127])     q[i, l] = 128 * i + l
//   y = Gather(x, q)   y[i, l] = x[index(q[i, l], n)]               ->    y[i, l] = x[128 * i + l]
// A size that has no upper bound may be part of it, where positions are not tested: no kernel's text says which element the last is.
//   p = index(-1, n)   y[j] = x[index(p, 94466211840), j]           ->    y[j] = x[n - 1, j]
// What is read is then known before the run: no index is tested, and what follows sees which elements are needed, also where
// sizes are chosen at run time.
//
// Preconditions: the tensor of positions is of integers, and a stage (or a chain of such) that depends on the index alone, or a
// constant that is a sum of multiples of its indices; the formula is short.
//
// Needs: to_functions. Leaves: the same nodes without those that nobody reads any more.
#include <algorithm>
#include <map>

#include "ir/graph/views.h"
#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "ir/ops/helpers.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

constexpr int kLongest = 24;                  // nodes of a formula
constexpr int64_t kMostElements = 1'000'000;  // of a constant that is looked at

/// The element at `axes`, in terms of these and of variables for sizes.
struct Formula {
  std::vector<Var> axes;
  Expr value;
};

std::vector<Var> axes_of(const Dims& dims) {
  std::vector<Var> axes;
  for (size_t a = 0; a < dims.size(); a++) axes.push_back(make_var("i"));
  return axes;
}
Exprs as_index(const std::vector<Var>& axes) { return {axes.begin(), axes.end()}; }

Ranges ranges_of(const std::vector<Var>& axes, const Dims& dims) {
  Ranges ranges;
  for (size_t a = 0; a < axes.size(); a++) ranges[axes[a].get()] = {0, dims[a] - 1};
  return ranges;
}

/// base + sum(step * index), where every element of the constant is that.
std::optional<Formula> of_constant(const TensorData& t, const Dims& dims) {
  const int64_t n = num_elements(dims);
  if (t.dtype != DType::I64 || n < 2 || n > kMostElements) return {};
  Formula f{axes_of(dims), Expr(t.as_int(0))};
  std::vector<int64_t> step(dims.size(), 0);
  int64_t stride = 1;
  for (size_t a = dims.size(); a-- > 0; stride *= dims[a])
    if (dims[a] > 1) step[a] = t.as_int(stride) - t.as_int(0);
  for (int64_t k = 0; k < n; k++) {
    int64_t at = k, value = t.as_int(0);
    for (size_t a = dims.size(); a-- > 0; at /= dims[a]) value += at % dims[a] * step[a];
    if (value != t.as_int(k)) return {};
  }
  for (size_t a = 0; a < dims.size(); a++)
    if (step[a] != 0) f.value = f.value + Expr(f.axes[a]) * Expr(step[a]);
  return f;
}

class Positions {
 public:
  explicit Positions(Graph& g) : g_(g) {
    for (const SizeInput& s : g.sizes().chosen)
      if (!s.next && is_open(s.most)) {
        const Value* v = g.inputs()[s.input];
        const Var size = sizes_.emplace(v, make_var("size")).first->second;
        size_ranges_[size.get()] = {s.least, s.most};
      }
  }

  void run() {
    for (auto it = g_.nodes().begin(); it != g_.nodes().end();) {
      Node* n = (it++)->get();
      if (n->outputs.size() != 1 || !n->outputs[0] || !n->outputs[0]->type.is_static_tensor()) continue;
      if (is_view(*n))
        view(*n);
      else if (is_fused(n))
        function(n);
    }
  }

 private:
  const Formula* of(const Value* v) {
    if (const auto it = known_.find(v); it != known_.end()) return &it->second;
    if (!v->is_constant() || !v->type.is_static_tensor()) return nullptr;
    const auto f = of_constant(*v->constant, dims_of(v));
    return f ? &known_.emplace(v, *f).first->second : nullptr;
  }

  void know(const Value* v, Formula f) {
    int length = 0;
    bool plain = true;
    walk(f.value, [&](const Expr& e) {
      const Apply* a = as<Apply>(e);
      plain = plain && ++length <= kLongest && !as<Load>(e) && !(a && a->op == Op::Index);
      return plain;
    });
    if (plain) known_.emplace(v, std::move(f));
  }

  void view(const Node& n) {
    const Formula* x = of(n.inputs[0]);
    const Dims to = dims_of(n.outputs[0]), from = dims_of(n.inputs[0]);
    if (!x || has_no_elements(to)) return;
    Formula f{axes_of(to), {}};
    const Exprs index = delinearize(linear_index(as_index(f.axes), to), from);
    f.value = simplify(at(*x, index), with_sizes(ranges_of(f.axes, to)));
    know(n.outputs[0], std::move(f));
  }

  void function(Node* n) {
    const TensorFn& fn = *n->fn;
    if (fn.stages.size() != 1 || !fn.operands.empty()) return;
    const Stage& s = fn.stages[0];
    if (s.kind != Stage::Kind::Compute || s.scan >= 0 || s.values.size() != 1) return;
    std::map<const BufferDef*, const Formula*> formulas;  // looked up only
    for (size_t k = 0; k < fn.inputs.size(); k++)
      if (const Formula* f = of(n->inputs[k])) formulas[fn.inputs[k].get()] = f;
    Formula result;
    Ranges ranges;
    for (const Axis& a : s.axes) {
      result.axes.push_back(a.var);
      ranges[a.var.get()] = {0, a.extent.value - 1};
    }
    ranges = with_sizes(std::move(ranges));
    const auto of_load = [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      const auto f = l ? formulas.find(l->buffer.get()) : formulas.end();
      return f == formulas.end() ? Expr() : at(*f->second, l->index);
    };
    if (is_int(s.outputs[0]->dtype) || s.outputs[0]->dtype == DType::Bool) {
      result.value = from_front(simplify(by_sizes(*n, rewrite(s.values[0], of_load)), ranges));
      know(n->outputs[0], std::move(result));
    }
    bool changed = false;
    const Expr value = rewrite(s.values[0], [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      if (!l) return {};
      Exprs index;
      bool inlined = false;
      for (const Expr& i : l->index) {
        const Expr formula = rewrite(i, of_load);
        inlined = inlined || !formula.same_as(i);
        index.push_back(formula.same_as(i) ? i : simplify(by_sizes(*n, formula), ranges));
      }
      changed = changed || inlined;
      return inlined ? load(l->buffer, std::move(index)) : Expr();
    });
    if (changed) replace(n, value);
  }

  Ranges with_sizes(Ranges ranges) const {
    ranges.insert(size_ranges_.begin(), size_ranges_.end());
    return ranges;
  }
  /// Variables for what the node reads of sizes.
  Expr by_sizes(const Node& n, const Expr& value) const {
    return rewrite(value, [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      if (!l || !l->index.empty()) return {};
      for (size_t k = 0; k < n.fn->inputs.size(); k++)
        if (n.fn->inputs[k] == l->buffer)
          if (const auto it = sizes_.find(n.inputs[k]); it != sizes_.end()) return Expr(it->second);
      return {};
    });
  }
  /// A position that is the same in all runs but for a size, from the front: one that is in range of all sizes is not tested.
  Expr from_front(const Expr& value) const {
    const Apply* a = as<Apply>(value);
    const auto position = a && a->op == Op::Index ? as_const_int(a->args[0]) : std::nullopt;
    const VarRef* size = position ? as<VarRef>(a->args[1]) : nullptr;
    const auto range = size ? size_ranges_.find(size->var.get()) : size_ranges_.end();
    if (range == size_ranges_.end() || *position >= range->second.min || *position < -range->second.min) return value;
    return *position < 0 ? a->args[1] + Expr(*position) : Expr(*position);
  }

  /// The node with another value, in which variables stand for sizes, and without the operands that it no longer reads.
  void replace(Node* n, Expr value) {
    TensorFn fn = *n->fn;
    std::vector<Value*> operands;
    std::vector<Buffer> inputs;
    for (const SizeInput& s : g_.sizes().chosen) {
      Value* v = g_.inputs()[s.input];
      const auto size = sizes_.find(v);
      if (size == sizes_.end() || !uses_var(value, size->second)) continue;
      const auto known = std::find(n->inputs.begin(), n->inputs.end(), v);
      const bool is_read = known != n->inputs.end();
      const Buffer b = is_read ? fn.inputs[size_t(known - n->inputs.begin())] : make_buffer("size", DType::I64, {});
      if (!is_read) inputs.push_back(b), operands.push_back(v);
      value = substitute(value, {{size->second.get(), load(b, {})}});
    }
    fn.stages[0].values[0] = value;
    for (size_t k = 0; k < fn.inputs.size(); k++) {
      bool read = false;
      walk(value, [&](const Expr& e) {
        const Load* l = as<Load>(e);
        return !(read = read || (l && l->buffer == fn.inputs[k]));
      });
      if (!read) continue;
      inputs.push_back(fn.inputs[k]);
      operands.push_back(n->inputs[k]);
    }
    fn.inputs = std::move(inputs);
    Node* f = insert_for(g_, *n, n, "fused", std::move(operands), {n->outputs[0]->name}, {}, "tc");
    f->fn = std::make_shared<const TensorFn>(std::move(fn));
    g_.set_type(f->outputs[0], n->outputs[0]->type);
    if (const auto it = known_.find(n->outputs[0]); it != known_.end()) know(f->outputs[0], it->second);
    g_.replace_uses(n->outputs[0], f->outputs[0]);
    g_.erase(n);
  }

  static Expr at(const Formula& f, const Exprs& index) {
    VarMap vars;
    for (size_t a = 0; a < f.axes.size(); a++) vars[f.axes[a].get()] = index[a];
    return substitute(f.value, vars);
  }

  Graph& g_;
  std::map<const Value*, Formula> known_;  // looked up only
  std::map<const Value*, Var> sizes_;      // inputs without an upper bound; looked up only
  Ranges size_ranges_;                     // of these variables; looked up only
};

}  // namespace

void inline_positions(Graph& g, PassContext& cx) {
  for (const auto& n : g.nodes())
    for (const auto& r : n->regions) inline_positions(*r, cx);
  Positions(g).run();
  dead_code(g, cx);
  g.drop_unused_constants();
}

}  // namespace tc
