#include "ir/ops/macs.h"

#include <algorithm>

#include "ir/ops/op.h"
#include "ir/ops/regions.h"

namespace tc {
namespace {

int64_t plus(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

int64_t times(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

/// A product of two things that are read, behind conversions of its type and tests for padding.
bool is_product(const Expr& e) {
  if (const Cast* c = as<Cast>(e)) return is_product(c->value);
  if (const Select* s = as<Select>(e)) return is_product(s->yes) || is_product(s->no);
  const Apply* a = as<Apply>(e);
  return a && a->op == Op::Mul && !as<FloatImm>(a->args[0]) && !as<IntImm>(a->args[0]) && !as<FloatImm>(a->args[1]) &&
         !as<IntImm>(a->args[1]);
}

int64_t points(const Stage& s) {
  int64_t n = 1;
  for (const auto* list : {&s.axes, &s.raxes})
    for (const Axis& a : *list) n = a.extent.value == 0 ? 0 : times(n, a.extent.value);
  return n;
}

bool has_meaning(const Node& n) {
  for (const auto* list : {&n.inputs, &n.outputs})
    for (const Value* v : *list)
      if (v && !v->type.is_static_tensor()) return false;
  const OpRow* row = row_of(n);
  return n.fn || (row && row->define);
}

/// How often the body runs: once where that depends on data.
int64_t known_trips(const Node& n) {
  if (n.is("Loop")) return std::max<int64_t>(loop_facts(n).limit, 1);
  if (!n.is("Scan")) return 1;
  const ValueType& t = n.inputs.at(own_inputs(n) - size_t(n.attr_int("num_scan_inputs", 1)))->type;
  if (!t.is_static_tensor()) return 1;
  return t.shape.at(size_t(scan_axis(n, "scan_input_axes", 0, t.shape.size()))).value;
}

}  // namespace

int64_t multiply_accumulates(const TensorFn& fn) {
  int64_t sum = 0;
  for (const Stage& s : fn.stages) {
    const bool adds = s.kind == Stage::Kind::Reduce && s.combiner.op == Op::Add && s.values.size() == 1;
    if (adds && is_product(s.values[0])) sum = plus(sum, points(s));
  }
  return sum;
}

int64_t multiply_accumulates(Graph& g) {
  int64_t sum = 0;
  for (const auto& n : g.nodes()) {
    int64_t here = 0;
    for (const auto& r : n->regions) here = std::max(here, multiply_accumulates(*r));
    if (!n->regions.empty()) here = times(here, known_trips(*n));
    if (n->regions.empty() && has_meaning(*n)) here = multiply_accumulates(tensor_fn(*n));
    sum = plus(sum, here);
  }
  return sum;
}

}  // namespace tc
