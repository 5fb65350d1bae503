// tensorize: a nest that computes what a row of the table of instructions computes becomes that instruction.
//
//   for n in 0 .. +16:                                           for v in 0 .. +16 / VL:
//     for q in 0 .. +4:                                    ->      sums = acc[v * VL:VL]
//       acc[n] += i32(x[k * 4 + q]) * i32(w[k, n, q])              dot4(sums, x[k * 4], w[k, v * VL, 0], 0, 4)
//                                                                  acc[v * VL:VL] = sums
//
// The row says what it does as loops around a store (Assignments). The nest has to be that but for names, the order of loops
// whose order means nothing, and the places of the operands: each index is a sum of a place that no loop of the nest moves and
// of the steps of the loops, which are the row's, or become its scalars. A loop over the lanes of a vector has a multiple of
// the most lanes there are.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/linear.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/print.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/analysis/region.h"
#include "passes/schedule/match_instruction.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr int64_t kMostUnrolled = 64;  // iterations over vectors of registers

// A vector operand is a register of its own, which is filled before and stored behind.
struct Registers {
  std::vector<Buffer> buffers;
  Stmts before, behind;
  Stmt around(const Stmt& call) const {
    Stmts list = before;
    list.push_back(call);
    list.insert(list.end(), behind.begin(), behind.end());
    Stmt s = seq(std::move(list));
    for (const Buffer& b : buffers) s = alloc(b, s);
    return s;
  }
  IntrinOperand add(const OperandPlace& p, const Expr& at, OperandUse use) {
    const Buffer b = make_buffer(p.buffer->name + "_v", p.buffer->dtype, {Dim(kMaxLanes)}, Scope::Register);
    Exprs there = p.lead;
    there.push_back(ramp(at));
    if (use != OperandUse::Written) before.push_back(store(b, {ramp(0)}, load(p.buffer, there)));
    if (use != OperandUse::Read) behind.push_back(store(p.buffer, there, load(b, {ramp(0)})));
    buffers.push_back(b);
    return {b, {}};
  }
};

bool is_tensorizable(const Instruction& row) {
  const bool forms = std::all_of(row.operands.begin(), row.operands.end(), [](const InstructionOperand& o) {
    return o.form == OperandForm::Memory || o.form == OperandForm::Vector;
  });
  return std::holds_alternative<Assignments>(row.meaning) && !row.operands.empty() && forms && !row.c.empty();
}

}  // namespace

std::vector<std::string> tensorizable_instructions() {
  std::vector<std::string> names;
  for (const Instruction& row : instructions())
    if (is_tensorizable(row)) names.push_back(row.name);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// All elements of the memory that the buffer lies in, from its beginning on.
int64_t memory_size(const Buffer& b) {
  int64_t last = b->offset;
  for (size_t d = 0; d < b->shape.size() && !b->strides.empty(); d++) last += (b->shape[d].value - 1) * b->strides[d];
  return b->strides.empty() ? last + num_elements(static_dims(b->shape)) : last + 1;
}

// A lane that moves by several elements comes with all of these.
bool is_readable(const OperandPlace& p, const For& over_lanes, size_t lanes, const Ranges& ranges) {
  const int64_t step = p.steps[lanes];
  const Range begin = interval(p.begin, ranges);
  return step <= 1 || (bounded(begin) && begin.max + *as_const_int(over_lanes.extent) * step <= memory_size(p.buffer));
}

// ": sum[lane] += i32(a[q]) * i32(b[lane * 4 + q])"
std::string store_text(const Stmt& meaning) {
  const auto nest = store_nest(meaning);
  if (!nest) return "";
  const std::string text =
      to_text(store(nest->store->buffer, nest->store->index, nest->store->value, nest->store->reduce));
  return ": " + text.substr(0, text.find('\n'));
}

void require_vector(const StepCheck& step, const OperandPlace& p, int64_t lanes, const Stmt& where) {
  const std::string b = "\"" + p.buffer->name + "\"";
  step.require(p.buffer->strides.empty() || p.buffer->strides.back() == 1, b + " has strides", where);
  const bool whole = is_const(simplify(floor_mod(p.begin, kMaxLanes)), 0) && lanes <= kMostUnrolled;
  step.require(p.buffer->scope != Scope::Register || whole, b + " lies in registers that are no few whole vectors",
               where);
}

Exprs scalars_of(const StepCheck& step, const Instruction& row, const MatchedNest& found, const Stmt& where) {
  Exprs scalars;
  for (size_t i = 0; i < row.scalars.size(); i++) {
    const int64_t n = found.scalars[i].value_or(0);
    const InstructionScalar& s = row.scalars[i];
    step.require(
        n >= s.least && n <= s.most,
        std::string(s.name) + " would be " + to_text(n) + ": it is from " + to_text(s.least) + " to " + to_text(s.most),
        where);
    scalars.push_back(Expr(n));
  }
  return scalars;
}

}  // namespace

Buffer Schedule::flat_view(const Buffer& b) {
  if (b->shape.size() == 1 && b->strides.empty() && b->offset == 0) return b;
  for (const Scheduled::View& v : views_)
    if (v.of == b) return v.flat;
  views_.push_back({make_buffer(b->name, b->dtype, {Dim(memory_size(b))}), b});
  return views_.back().flat;
}

// Returns the loop over vectors, if the row is about the lanes of one.
// Refused: a nest that is not equal to what the row says; loops that are in vectors, parallel or bound; an operand in memory that
// is none of the kernel's; a result that is an operand, too; vectors of registers that do not begin on whole ones, or more of
// them than are unrolled.
std::optional<Var> Schedule::tensorize(const Var& v, const std::string& name) {
  StepCheck step(*this, "tensorize", {{v}, {name}});
  const LoopSite site = step.find(v);
  const Stmt& here = site.stmt;
  const Instruction* row = find_instruction(name);
  step.require_argument(
      1, row && is_tensorizable(*row),
      "no instruction of that name is one thread's; there are " + join(tensorizable_instructions(), ", "), here);
  const Stmt simple = tidy(here, site.ranges);
  const auto nest = store_nest(simple);
  step.require(nest.has_value(), "there are not only loops around one store", here);
  Stmt meaning;
  const auto found = match_instruction(*row, *nest, meaning);
  step.require(found.has_value(), "the loop does not compute what the instruction does" + store_text(meaning), here);
  for (const For* f : nest->loops)
    step.require(nest->store->reduce || conflicts(simple, f->var, site.ranges).empty(),
                 "iterations of loop " + f->var->name + " may depend on each other", here);
  const For* over_lanes = found->lanes ? nest->loops[*found->lanes] : nullptr;
  const int64_t lane_count = over_lanes ? *as_const_int(over_lanes->extent) : 0;
  const Var vector = make_var(v->name + "_v");
  std::vector<IntrinOperand> operands;
  Registers registers;
  for (size_t i = 0; i < found->places.size(); i++) {
    const OperandPlace& p = found->places[i];
    const std::string b = "\"" + p.buffer->name + "\"";
    step.require(i == 0 || p.buffer != nest->store->buffer, b + " is a result and an operand", here);
    const Expr shift = over_lanes ? Expr(vector) * lanes() * Expr(p.steps[*found->lanes]) : Expr(0);
    const Expr at = simplify(p.begin + shift);
    if (row->operands[i].form == OperandForm::Vector) {
      require_vector(step, p, lane_count, here);
      operands.push_back(registers.add(p, at, row->operands[i].use));
      continue;
    }
    step.require(p.buffer->scope == Scope::Global, b + " is no memory of the kernel's operands", here);
    step.require(!over_lanes || is_readable(p, *over_lanes, *found->lanes, site.ranges),
                 "whole vectors of " + b + " may reach behind its end", here);
    operands.push_back({flat_view(p.buffer), {at}});
  }
  Stmt call = registers.around(intrin(row->name, operands, scalars_of(step, *row, *found, here)));
  if (over_lanes)
    call =
        loop(vector, Expr(lane_count) / lanes(), call, lane_count <= kMostUnrolled ? ForKind::Unroll : ForKind::Serial);
  step.done(replace_stmt(body_, here.get(), call),
            over_lanes ? std::vector<StepOperand>{{vector}} : std::vector<StepOperand>());
  return over_lanes ? std::optional(vector) : std::nullopt;
}

}  // namespace tc
