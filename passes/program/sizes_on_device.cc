// Sizes that the caller chooses, where tensors are in the memory of a device: the host knows them, and kernels get them as
// numbers. What the host copies on a CPU is a kernel, which fills a whole slot at once:
//   slot[i, :] = i < batch ? x[i, :] : x[0, :]
// Sizes that the instance counts are other numbers in every run, and graphs that are captured serve them all: kernels read
// these in the memory of the device, where each run stores them first.
#include "ir/identity.h"
#include "ir/loop/build.h"
#include "ir/open_size.h"
#include "passes/program/plan_open_sizes.h"
#include "passes/program/program_builder.h"
#include "passes/program/size_bounds.h"

namespace tc {

bool ProgramBuilder::is_host_number(const Operand& o) const {
  return cx_.target.device_memory && o.kind == Operand::Kind::Input && p_.inputs.at(size_t(o.index)).is_size;
}

std::vector<bool> ProgramBuilder::by_value(const std::vector<const Value*>& operands) const {
  std::vector<bool> list;
  for (const Value* v : operands) {
    const auto it = operands_.find(root_of(v));
    list.push_back(it != operands_.end() && is_host_number(it->second));
  }
  return list;
}

/// `operands`: of fn's inputs, then of its outputs.
void ProgramBuilder::call_own(const TensorFn& fn, std::vector<Operand> operands, std::vector<Step>& steps) {
  std::vector<bool> by_value;
  for (size_t k = 0; k < fn.inputs.size(); k++) by_value.push_back(is_host_number(operands.at(k)));
  const Compiled& c = compile({identity_of(fn), std::vector<bool>(fn.inputs.size()), {}, {}, by_value}, fn,
                              std::vector<Constant>(fn.inputs.size()), nullptr);
  Call call;
  call.kernel = c.kernel;
  call.by_variant = c.by_variant;
  size_t input = 0, output = fn.inputs.size();
  step_++;
  for (const Param& p : p_.kernels[size_t(c.kernel)].params) {
    if (p.role == Param::Role::Scratch) {  // of a schedule of the user's
      add_scratch(call);
      continue;
    }
    const bool reads = p.role == Param::Role::Input;
    check(reads || p.role == Param::Role::Output, "a copy needs inputs, outputs and scratch memory only");
    call.operands.push_back(operands.at(reads ? size_t(c.input_index.at(input++)) : output++));
    touch(call.operands.back());
  }
  steps.push_back({std::move(call)});
}

// How many parts of the copy there are: a formula of sizes, which become operands of fn.
Expr ProgramBuilder::rows_of(const CopyStep& c, TensorFn& fn, std::vector<Operand>& operands) const {
  std::map<size_t, Expr> numbers;  // by input
  const auto number = [&](size_t size) {
    Expr& n = numbers[size];
    if (n) return n;
    fn.inputs.push_back(make_buffer("n" + to_text(int64_t(numbers.size() - 1)), DType::I64, {}));
    const IoTensor& t = p_.inputs[size];
    operands.push_back(t.is_kept() ? Operand{Operand::Kind::Slot, t.state} : Operand{Operand::Kind::Input, int(size)});
    return n = load(fn.inputs.back(), {});
  };
  Expr rows;
  for (const SizeSum& sum : c.times) {
    Expr n;
    for (const SizeSum::Term& t : sum.terms) {
      const Expr term = t.factor == 1 ? number(t.input) : number(t.input) * Expr(t.factor);
      n = n ? n + term : term;
    }
    if (sum.addend != 0) n = n + Expr(sum.addend);
    rows = rows ? rows * n : n;
  }
  return rows;
}

// Behind what there is of an input stand copies of its first part, where there is one, else zeros.
void ProgramBuilder::fill_room(const CopyStep& c, DType dtype, std::vector<Step>& steps) {
  if (c.bytes == 0 || c.room == 0) return;
  if (is_open(c.room)) return fill_behind(c, dtype, steps);
  const bool repeats = c.times.size() == 1 && least_size(p_, c.times[0]) > 0;
  const Dims dims = {c.room / c.bytes, c.bytes / info(dtype).bytes};
  TensorFn fn;
  std::vector<Operand> operands = {c.from};
  fn.inputs = {make_buffer("x", dtype, to_shape(dims))};
  const Expr rows = rows_of(c, fn, operands);
  Stage s;
  s.name = repeats ? "repeat_first" : "pad";
  const Var i = make_var("i"), j = make_var("j");
  s.axes = {{i, Dim(dims[0])}, {j, Dim(dims[1])}};
  const Expr is_there = Expr(i) < rows;
  const auto row = [&](const Expr& k) { return load(fn.inputs[0], {k, Expr(j)}); };
  s.values = {select(is_there, row(i), repeats ? row(int64_t(0)) : zero(dtype))};
  s.outputs = {make_buffer("y", dtype, to_shape(dims))};
  fn.outputs = s.outputs;
  fn.stages = {s};
  operands.push_back(c.to);
  call_own(fn, std::move(operands), steps);
}

// Of sizes without an upper bound: what tiles may reach beyond the last part, behind a copy of the others.
void ProgramBuilder::fill_behind(const CopyStep& c, DType dtype, std::vector<Step>& steps) {
  const bool repeats = c.times.size() == 1 && least_size(p_, c.times[0]) > 0;
  const int64_t size = info(dtype).bytes;
  const Shape all = to_shape({c.room / size});
  TensorFn fn;
  std::vector<Operand> operands = {c.from};
  fn.inputs = {make_buffer("x", dtype, all)};
  fn.outputs = {make_buffer("y", dtype, all)};
  const Expr first = rows_of(c, fn, operands) * Expr(c.bytes / size);
  const Var i = make_var("i");
  const Expr value = repeats ? load(fn.inputs[0], {floor_mod(Expr(i), Expr(c.bytes / size))}) : zero(dtype);
  Stage s;
  s.kind = Stage::Kind::Nest;
  s.name = repeats ? "repeat_first" : "pad";
  s.outputs = fn.outputs;
  s.nest = loop(i, kOverhangBytes / size, store(fn.outputs[0], {first + Expr(i)}, value));
  fn.stages = {s};
  operands.push_back(c.to);
  add_part(steps, c);
  call_own(fn, std::move(operands), steps);
}

void ProgramBuilder::store_number(Operand number, Operand to, std::vector<Step>& steps) {
  TensorFn fn;
  fn.inputs = {make_buffer("n", DType::I64, {})};
  Stage s;
  s.name = "store";
  s.values = {load(fn.inputs[0], {})};
  s.outputs = fn.outputs = {make_buffer("y", DType::I64, {})};
  fn.stages = {s};
  call_own(fn, {number, to}, steps);
}

// Zeros behind the elements of a state that grows: kernels multiply what is there by zero, and what a run has left there
// that was dropped may be no number. Nothing to do if nothing was dropped.
void ProgramBuilder::clear_behind(const IoTensor& state, std::vector<Step>& steps) {
  for (const IoSize& size : state.sizes) {
    const size_t count = size.sum.terms.at(0).input;
    if (!p_.inputs[count].is_kept()) continue;
    TensorFn fn;
    fn.inputs = {make_buffer("n", DType::I64, {})};
    fn.outputs = {make_buffer("y", state.dtype, to_shape(state.dims))};
    Exprs at;
    std::vector<Var> vars;
    for (size_t d = 0; d < state.dims.size(); d++)
      at.emplace_back(vars.emplace_back(make_var("i" + to_text(int64_t(d)))));
    Stmt nest = if_then(at[size_t(size.axis)] >= load(fn.inputs[0], {}), store(fn.outputs[0], at, zero(state.dtype)));
    for (size_t d = vars.size(); d-- > 0;) nest = loop(vars[d], state.dims[d], nest);
    Stage s;
    s.kind = Stage::Kind::Nest;
    s.name = "clear_behind";
    s.outputs = fn.outputs;
    s.nest = nest;
    fn.stages = {s};
    call_own(fn, {{Operand::Kind::Input, int(count)}, {Operand::Kind::Slot, state.state}}, steps);
  }
}

}  // namespace tc
