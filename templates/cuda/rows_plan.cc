// Which functions run row by row, and which threads have which rows, by where neighbours lie in memory.
#include <bit>
#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "support/text.h"
#include "templates/cuda/rows.h"

namespace tc {
namespace {

constexpr int64_t kWarpColumns = 1024, kFewColumns = 8;
constexpr int64_t kMaxKept = 64;         // registers of a thread for rows; half of it where a block has many threads
constexpr int64_t kThreadsToFill = 512;  // of a multiprocessor

// A read or a store of something that differs from column to column.
struct Access {
  DType type;
  std::optional<Offset> at;  // null: not a sum of axes times constants
};

std::vector<Access> accesses(const Rows& r) {
  std::vector<Var> vars = vars_of(r.c.axes);
  for (const Axis& a : r.columns) vars.push_back(a.var);
  std::vector<Access> list;
  auto add = [&](DType t, const Expr& index) {
    bool varies = false;
    for (const Axis& a : r.columns) varies = varies || uses_var(index, a.var);
    if (varies) list.push_back({t, offset_of(index, vars)});
  };
  for (const RowStep& s : r.steps) {
    if (!along_row(s)) continue;
    for (const Expr& e : values_of(s))
      for (const Load* l : loads_of(e))
        if (l->buffer->scope == Scope::Global) add(l->buffer->dtype, l->index[0]);
    if (s.out) add(s.out->dtype, s.out_index);
  }
  return list;
}

// Do as many accesses walk along rows as across them? Null: none does either.
std::optional<bool> goes_across(const Rows& r, const std::vector<Access>& list) {
  int along = 0, across = 0;
  for (const Access& a : list) {
    if (!a.at) continue;
    const int64_t column = a.at->of(r.columns.back().var), row = r.c.axes.empty() ? 0 : a.at->of(r.c.axes.back().var);
    along += std::abs(column) == 1 ? 1 : 0;
    across += row == 1 ? 1 : 0;
  }
  if (along == 0 && across == 0) return {};
  return across > along;
}

// Do rows share elements, as windows do that overlap? A row begins within the columns of the one before it.
bool overlap(const Rows& r, const std::vector<Access>& list) {
  for (const Access& a : list)
    for (const Axis& row : r.c.axes)
      for (const Axis& column : r.columns) {
        const int64_t step = a.at ? a.at->of(row.var) : 0, near = a.at ? a.at->of(column.var) : 0;
        if (near > 0 && near <= step && step < near * column.extent.value) return true;
      }
  return false;
}

// Threads of a row by its length alone.
int64_t lanes_along(int64_t columns) {
  if (columns <= kFewColumns) return 1;
  if (columns <= kWarp) return columns <= kWarp / 2 ? 8 : 16;
  return columns <= kWarpColumns ? kWarp : columns <= 8192 ? 256 : 1024;
}

// Whether a thread can have n neighbours together: everything that moves along the row begins on 16 bytes.
bool can_have(const Rows& r, const std::vector<Access>& list, int64_t lanes, int64_t n) {
  if (n == 1) return true;
  const Var column = r.columns.back().var;
  if (r.columns.back().extent.value % n != 0 || points(r.columns) < lanes * n) return false;
  bool some = false;
  for (const Access& a : list) {
    const int64_t part = vector_elements(a.type);
    if (!a.at || a.at->of(column) != 1 || part == 1 || part > n) continue;
    some = true;
    if (!begins_on(*a.at, column, part)) return false;
  }
  return some;
}

// Neighbours of a thread that can be, in ascending order.
std::vector<int64_t> vectors_along(const Rows& r, const std::vector<Access>& list, int64_t lanes) {
  int64_t most = 1;
  for (const Access& a : list) most = std::max(most, vector_elements(a.type));
  std::vector<int64_t> possible;
  for (int64_t n = 1; n <= (lanes > 1 ? most : 1); n *= 2)
    if (can_have(r, list, lanes, n)) possible.push_back(n);
  return possible;
}

int64_t kept_rows(const Rows& r) {
  int64_t n = 1;
  for (const RowStep& s : r.steps) n += s.kind == RowStep::Kind::Keep ? 1 : 0;
  return n;
}

// Rows of a block that fill whole warps.
KnobValues rows_of_block(int64_t lanes, int64_t rows) {
  if (lanes > kWarp) return KnobValues::only(1, "a block has the row");
  const int64_t step = kWarp / lanes;
  return KnobValues::range(step, std::min(kMaxBlockThreads / lanes, round_up(rows, step)), step);
}

int64_t rows_along(int64_t lanes, int64_t rows, const CudaModel& gpu) {
  if (lanes > kWarp) return 1;
  if (lanes == 1) return std::min<int64_t>(kBlockThreads, round_up(rows, kWarp));
  int64_t n = kBlockThreads / lanes;
  while (n * lanes > kWarp && ceil_div(rows, n) < gpu.multiprocessors) n /= 2;
  return n;
}

void plan_along(const Rows& r, const std::vector<Access>& list, const CudaModel& gpu, const PlanEntry& plan,
                RowPlan& p) {
  const int64_t columns = points(r.columns), rows = points(r.c.axes);
  const auto whole = int64_t(std::bit_ceil(uint64_t(columns)));
  p.lanes = plan.number(
      "lanes", [&] { return lanes_along(columns); },
      KnobValues::powers_of_two(1, std::min(kMaxBlockThreads, whole), "threads of a row of " + to_text(columns)));
  const std::vector<int64_t> possible = vectors_along(r, list, p.lanes);
  p.vector = plan.number(
      "vector", [&] { return possible.back(); },
      KnobValues::list(possible, "neighbours of a thread that lie on 16 bytes together"));
  p.rows = plan.number(
      "rows", [&] { return rows_along(p.lanes, rows, gpu); }, rows_of_block(p.lanes, rows));
}

// Where rows are few, or long, several warps share them.
int64_t lanes_across(int64_t columns, int64_t rows, int64_t kept, const CudaModel& gpu) {
  int64_t lanes = 1;
  while (lanes < kWarp && columns >= lanes * 8 &&
         (rows * lanes < kThreadsToFill * gpu.multiprocessors || ceil_div(columns, lanes) * kept > kMaxKept / 2))
    lanes *= 2;
  return lanes;
}

int64_t rows_across(int64_t lanes, int64_t rows) {
  if (lanes == 1) return std::min<int64_t>(kBlockThreads, round_up(rows, kWarp));
  int64_t n = kWarp;
  while (n / 2 >= rows) n /= 2;
  return n * lanes < kWarp ? kWarp / lanes : n;
}

// A warp has as many neighbouring rows as it has threads.
void plan_across(const Rows& r, const CudaModel& gpu, const PlanEntry& plan, RowPlan& p) {
  const int64_t columns = points(r.columns), rows = points(r.c.axes);
  p.lanes = plan.number(
      "lanes", [&] { return lanes_across(columns, rows, kept_rows(r), gpu); },
      KnobValues::powers_of_two(1, kWarp, "threads of a row"));
  p.rows = plan.number(
      "rows", [&] { return rows_across(p.lanes, rows); }, rows_of_block(p.lanes, round_up(rows, kWarp)));
}

// Few rows that are so long that a block for each would leave the machine idle. How long those are that have no upper bound
// nobody knows.
bool leaves_idle(const Rows& r, const CudaModel& gpu) {
  constexpr int64_t kLong = 1 << 17;
  const int64_t columns = points(r.columns);
  return points(r.c.axes) * 4 <= gpu.multiprocessors && columns >= kLong && !is_open(columns);
}

bool reorders_sums(const Rows& r) {
  for (const RowStep& s : r.steps)
    if (s.kind == RowStep::Kind::Reduce && s.tuple.empty() && is_float(s.name->dtype) &&
        (s.op == Op::Add || s.op == Op::Mul))
      return true;
  return false;
}

std::string describe(const RowPlan& p, int64_t columns) {
  std::string s = p.lanes == 1 ? "a thread per row"
                  : p.across ? to_text(p.rows) + " neighbouring rows a block, " + to_text(p.lanes) + " threads per row"
                  : p.lanes > kWarp
                      ? "a block of " + to_text(p.lanes) + " threads per row"
                      : (p.lanes == kWarp ? std::string("a warp") : to_text(p.lanes) + " threads") + " per row, " +
                            to_text(p.rows) + (p.rows == 1 ? " row a block" : " rows a block");
  return s + (p.in_registers && columns > 1 ? ", the row in registers" : "");
}

}  // namespace

int64_t vector_elements(DType t) {
  const bool known = t == DType::F32 || t == DType::F64 || t == DType::F16 || t == DType::BF16 || t == DType::I32 ||
                     t == DType::U32 || t == DType::I64 || t == DType::I8 || t == DType::U8;
  return known ? 16 / info(t).bytes : 1;
}

std::optional<RowPlan> plan_rows(const Rows& r, const CudaModel& gpu, const PlanEntry& plan) {
  const std::vector<Access> list = accesses(r);
  const std::optional<bool> across = goes_across(r, list);
  if (!across || overlap(r, list)) return {};
  RowPlan p;
  p.across = *across;
  if (p.across)
    plan_across(r, gpu, plan, p);
  else
    plan_along(r, list, gpu, plan, p);
  p.iterations = ceil_div(points(r.columns), p.lanes * p.vector);
  const bool fits = p.iterations * p.vector * kept_rows(r) <= (p.threads() > 256 ? kMaxKept / 2 : kMaxKept);
  if (points(r.columns) == 1)
    p.in_registers =
        plan.number(
            "in_registers", [&] { return fits ? 1 : 0; }, KnobValues::only(fits ? 1 : 0, "a row is one element")) == 1;
  else
    p.in_registers = plan.flag("in_registers", fits, fits, "a thread has too few of them");
  return p;
}

std::optional<Scheduled> cuda_rows(const CudaArgs& a) {
  std::optional<Rows> r = match_rows(a.fn, KeptRows::InArrays, RowForm::Any);
  if (!r || points(r->c.axes) == 0 || points(r->columns) == 0 || leaves_idle(*r, a.gpu)) return {};
  if (a.options.strict_fp && reorders_sums(*r)) return {};
  const std::optional<RowPlan> plan = plan_rows(*r, a.gpu, a.plan);
  if (!plan) return {};
  if (!plan->in_registers) r = match_rows(a.fn, KeptRows::Nowhere, RowForm::Any);
  merge_columns(*r);
  Scheduled s;
  const Canonical c = r->c;
  s.description = describe(*plan, points(r->columns));
  s.family = "rows";
  const std::vector<Buffer> outs = r->outs;
  s.body = row_loops(std::move(*r), *plan);
  bind_operands(s, c);
  s.outputs = a.fn.outputs;
  for (size_t i = 1; i < outs.size(); i++) s.views.push_back({outs[i], a.fn.outputs[i]});
  return s;
}

}  // namespace tc
