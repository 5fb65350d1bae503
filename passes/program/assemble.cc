// What is left of a Concat or a Pad whose operands are made in place (parts.h): copies of the others, and the border.
#include "ir/identity.h"
#include "ir/loop/build.h"
#include "passes/program/program_builder.h"

namespace tc {

namespace {

Buffer part_buffer(const std::string& name, DType dtype, const Dims& dims, const std::vector<int64_t>& strides) {
  auto d = std::make_shared<BufferDef>(*make_buffer(name, dtype, to_shape(dims)));
  d->strides = strides;
  return d;
}

/// y[i, j, ...] = x[i, j, ...]
TensorFn copy_function(DType dtype, const Dims& dims, const std::vector<int64_t>& from,
                       const std::vector<int64_t>& to) {
  TensorFn fn;
  fn.inputs = {part_buffer("x", dtype, dims, from)};
  Stage s;
  s.name = "copy";
  Exprs at;
  for (size_t d = 0; d < dims.size(); ++d) {
    s.axes.push_back({make_var("i" + to_text(int64_t(d))), Dim(dims[d])});
    at.emplace_back(s.axes.back().var);
  }
  s.values = {load(fn.inputs[0], at)};
  s.outputs = {part_buffer("part", dtype, dims, to)};
  fn.outputs = s.outputs;
  fn.stages = {std::move(s)};
  return fn;
}

/// Elements before and behind [begin, end), axis by axis, each once: interior of the axes before, everything of those after.
TensorFn border_function(DType dtype, const Dims& dims, const std::vector<int64_t>& strides, const Assembly& a) {
  TensorFn fn;
  const Buffer y = part_buffer("border", dtype, dims, strides);
  Stmts slabs;
  const auto slab = [&](size_t axis, int64_t from, int64_t to) {
    if (from == to) return;
    std::vector<Var> vars;
    Exprs at;
    for (size_t d = 0; d < dims.size(); ++d) {
      vars.push_back(make_var("i" + to_text(int64_t(d))));
      const int64_t first = d < axis ? a.begin[d] : d == axis ? from : 0;
      at.push_back(Expr(vars[d]) + Expr(first));
    }
    Stmt s = store(y, at, a.border);
    for (size_t d = dims.size(); d-- > 0;)
      s = loop(vars[d], d < axis ? a.end[d] - a.begin[d] : d == axis ? to - from : dims[d], s);
    slabs.push_back(std::move(s));
  };
  for (size_t d = 0; d < dims.size(); ++d) {
    slab(d, 0, a.begin[d]);
    slab(d, a.end[d], dims[d]);
  }
  Stage s;
  s.kind = Stage::Kind::Nest;
  s.name = "border";
  s.outputs = fn.outputs = {y};
  s.nest = seq(std::move(slabs));
  fn.stages = {std::move(s)};
  return fn;
}

}  // namespace

void ProgramBuilder::add_assembly(const Node& n, const Assembly& a, std::vector<Step>& steps) {
  const Value* w = n.outputs[0];
  const Operand whole = result_of(w);
  const auto strides_of = [&](const Value* v) {
    const Part* p = parts_.of(v);
    return p ? p->strides : std::vector<int64_t>();
  };
  const size_t before = steps.size();
  for (const Assembly::Copy& c : a.copies) {
    const Value* v = n.inputs[c.operand];
    const Operand to = part_slot(v, "part", c.to);
    call_own(copy_function(v->type.dtype, static_dims(v->type.shape), strides_of(v), c.to.strides), {operand_of(v), to},
             steps);
  }
  if (a.border) call_own(border_function(w->type.dtype, static_dims(w->type.shape), strides_of(w), a), {whole}, steps);
  for (size_t i = before; i < steps.size(); ++i)
    if (Call* c = std::get_if<Call>(&steps[i].kind)) c->origins = n.origins;
}

/// A slot for v, or a copy of it, inside of another's memory.
Operand ProgramBuilder::part_slot(const Value* v, const std::string& suffix, const Part& at) {
  const Operand whole = result_of(at.whole);
  const Operand part = new_slot(v->name, suffix, v->type.dtype, static_dims(v->type.shape));
  Slot& s = p_.slots[size_t(part.index)];
  s.alias_of = whole.index;
  s.within = at.offset * info(s.dtype).bytes;
  return part;
}

}  // namespace tc
