// Which functions run row by row, and which threads have which rows, by where neighbours lie in memory.
#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
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

// The most neighbours that a thread can have together: everything that moves along the row begins on 16 bytes.
int64_t vector_along(const Rows& r, const std::vector<Access>& list, int64_t lanes) {
  const int64_t columns = points(r.columns), inner = r.columns.back().extent.value;
  const Var column = r.columns.back().var;
  int64_t most = 1;
  for (const Access& a : list) most = std::max(most, vector_elements(a.type));
  for (int64_t n = most; n > 1; n /= 2) {
    if (inner % n != 0 || columns < lanes * n) continue;
    bool ok = true, some = false;
    for (const Access& a : list) {
      const int64_t part = vector_elements(a.type);
      if (!a.at || a.at->of(column) != 1 || part == 1 || part > n) continue;
      some = true;
      ok = ok && begins_on(*a.at, column, part);
    }
    if (ok && some) return n;
  }
  return 1;
}

int64_t kept_rows(const Rows& r) {
  int64_t n = 1;
  for (const RowStep& s : r.steps) n += s.kind == RowStep::Kind::Keep ? 1 : 0;
  return n;
}

void plan_along(const Rows& r, const std::vector<Access>& list, const CudaModel& gpu, RowPlan& p) {
  const int64_t columns = points(r.columns), rows = points(r.c.axes);
  p.lanes = lanes_along(columns);
  p.vector = p.lanes > 1 ? vector_along(r, list, p.lanes) : 1;
  if (p.lanes > kWarp) return;
  p.rows = p.lanes == 1 ? std::min<int64_t>(kBlockThreads, ceil_div(rows, kWarp) * kWarp) : kBlockThreads / p.lanes;
  while (p.threads() > kWarp && p.lanes > 1 && ceil_div(rows, p.rows) < gpu.multiprocessors) p.rows /= 2;
}

// A warp has as many neighbouring rows as it has threads. Where these are few, or long, several warps share them.
void plan_across(const Rows& r, const CudaModel& gpu, RowPlan& p) {
  const int64_t columns = points(r.columns), rows = points(r.c.axes), kept = kept_rows(r);
  p.rows = kWarp;
  while (p.rows / 2 >= rows) p.rows /= 2;
  while (p.lanes < kWarp && columns >= p.lanes * 8 &&
         (rows * p.lanes < kThreadsToFill * gpu.multiprocessors || ceil_div(columns, p.lanes) * kept > kMaxKept / 2))
    p.lanes *= 2;
  if (p.threads() < kWarp) p.rows = kWarp / p.lanes;
  if (p.lanes == 1) p.rows = std::min<int64_t>(kBlockThreads, ceil_div(rows, kWarp) * kWarp);
}

// Few rows that are so long that a block for each would leave the machine idle.
bool leaves_idle(const Rows& r, const CudaModel& gpu) {
  constexpr int64_t kLong = 1 << 17;
  return points(r.c.axes) * 4 <= gpu.multiprocessors && points(r.columns) >= kLong;
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

std::optional<RowPlan> plan_rows(const Rows& r, const CudaModel& gpu) {
  const std::vector<Access> list = accesses(r);
  const std::optional<bool> across = goes_across(r, list);
  if (!across || overlap(r, list)) return {};
  RowPlan p;
  p.across = *across;
  if (p.across)
    plan_across(r, gpu, p);
  else
    plan_along(r, list, gpu, p);
  p.iterations = ceil_div(points(r.columns), p.lanes * p.vector);
  p.in_registers = p.iterations * p.vector * kept_rows(r) <= (p.threads() > 256 ? kMaxKept / 2 : kMaxKept);
  return p;
}

std::optional<Scheduled> cuda_rows(const CudaArgs& a) {
  std::optional<Rows> r = match_rows(a.fn, KeptRows::InArrays, RowForm::Any);
  if (!r || points(r->c.axes) == 0 || points(r->columns) == 0 || leaves_idle(*r, a.gpu)) return {};
  if (a.options.strict_fp && reorders_sums(*r)) return {};
  const std::optional<RowPlan> plan = plan_rows(*r, a.gpu);
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
