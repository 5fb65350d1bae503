// No reduction: every point of the result on its own.
//
// Neighbouring axes which all operands walk as one are merged, so that most functions are one flat loop; the innermost
// axis runs over vectors, the outermost is shared among threads in chunks of a fixed number of elements. A
// transposition goes tile by tile: what is read lies side by side along one axis, what is written along another.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/schedule/primitives.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

constexpr int64_t kChunk = 8192;  // elements: 32 KiB, a first-level cache

bool vectorizable(const Canonical& c) {
  if (c.axes.empty() || !has_lanes(c.out->dtype) || c.axes.back().extent.value < 8) return false;
  const Var lane = c.axes.back().var;
  const auto f = affine_in(c.out_index, {lane});
  return f && f->coefficients[0] == 1 && has_vector_form(c.epilogue, lane);
}

// A chunk that divides n, where there is one not much smaller.
int64_t chunk_of(int64_t n) {
  for (int64_t size = kChunk; size >= kChunk / 4; size -= kMaxLanes)
    if (n % size == 0) return size;
  return kChunk;
}

// One flat axis: whole chunks in parallel, then the rest. The loops that are left for vectors.
std::vector<Var> share_flat(Schedule& s, Var v, int64_t n) {
  if (n < 2 * kChunk) return {v};
  const int64_t size = chunk_of(n);
  std::vector<Var> inner_loops;
  if (n % size != 0) {
    const std::vector<Var> parts = s.partition(v, {n / size * size});
    v = parts[0];
    inner_loops = {parts[1]};
  }
  const auto [part, inner] = s.split(v, size);
  s.parallel(s.rename(part, "part"));
  inner_loops.push_back(inner);
  return inner_loops;
}

constexpr int64_t kTileRead = 8, kTileWritten = 16;  // rows that fall into one set of a cache are eight at most; a line

// The axis along which an operand lies side by side that the innermost axis walks with a stride; null if there is none.
Var crossing_axis(const Canonical& c) {
  if (c.axes.size() < 2 || c.axes.back().extent.value < kTileWritten) return nullptr;
  for (const Load* l : loads_of(c.epilogue)) {
    for (size_t i = 0; l->index.size() == 1 && i + 1 < c.axes.size(); i++) {
      const auto f = affine_in(l->index[0], {c.axes[i].var, c.axes.back().var});
      const bool side_by_side = f && f->coefficients[0] == 1 && f->coefficients[1] > 1;
      if (side_by_side && c.axes[i].extent.value >= kTileRead) return c.axes[i].var;
    }
  }
  return nullptr;
}

// The loops of a transposition; what is read lies side by side along `read`.
Stmt tiles(const Canonical& c, const Var& read) {
  const Axis& last = c.axes.back();
  const Axis& across = *std::find_if(c.axes.begin(), c.axes.end(), [&](const Axis& a) { return a.var == read; });
  const Var read_o = make_var(read->name + "_o"), read_i = make_var(read->name + "_i"),
            last_o = make_var(last.var->name + "_o"), last_i = make_var(last.var->name + "_i");
  std::vector<std::pair<Var, Expr>> point;
  for (const Axis& a : c.axes)
    point.push_back({a.var, a.var == read       ? Expr(read_o) * Expr(kTileRead) + Expr(read_i)
                            : a.var == last.var ? Expr(last_o) * Expr(kTileWritten) + Expr(last_i)
                                                : Expr(a.var)});
  auto inside = [](const Axis& a, const Var& outer, int64_t size) {
    return a.extent.value % size == 0 ? Expr(size) : min(Expr(size), Expr(a.extent) - Expr(outer) * Expr(size));
  };
  Stmt nest = store(c.out, {index_at(c.out_index, point)}, scalar_form(c.epilogue, point));
  nest = loop(read_i, inside(across, read_o, kTileRead), nest);
  nest = loop(last_i, inside(last, last_o, kTileWritten), nest);
  nest = loop(last_o, (last.extent.value + kTileWritten - 1) / kTileWritten, nest);
  std::vector<std::pair<Var, Expr>> outer;
  for (const Axis& a : c.axes)
    if (a.var != read && a.var != last.var) outer.push_back({a.var, Expr(a.extent)});
  outer.push_back({read_o, Expr((across.extent.value + kTileRead - 1) / kTileRead)});
  const bool parallel = points(c.axes) >= kParallelThreshold;
  for (size_t i = outer.size(); i-- > 0;)
    nest = loop(outer[i].first, outer[i].second, nest, parallel && i == 0 ? ForKind::Parallel : ForKind::Serial);
  return nest;
}

Schedule loops_of(const Canonical& c, bool vector, const ScheduleOptions& options) {
  std::vector<std::pair<Var, Expr>> point;  // the axes themselves: indices with larger strides first
  for (const Axis& a : c.axes) point.push_back({a.var, Expr(a.var)});
  Stmt nest = store(c.out, {index_at(c.out_index, point)}, scalar_form(c.epilogue, point));
  for (size_t i = c.axes.size(); i-- > 0;) nest = loop(c.axes[i].var, c.axes[i].extent, nest);
  Schedule s(nest, options);
  if (c.axes.empty()) return s;
  std::vector<Var> inner_loops = {c.axes.back().var};
  if (c.axes.size() == 1)
    inner_loops = share_flat(s, c.axes[0].var, c.axes[0].extent.value);
  else if (points(c.axes) >= kParallelThreshold)
    s.parallel(c.axes[0].var);
  for (const Var& v : inner_loops)
    if (vector) s.vectorize(v);
  return s;
}

}  // namespace

std::optional<Scheduled> schedule_elementwise(const TemplateArgs& a) {
  if (!a.canonical || bool(a.canonical->value)) return {};
  Canonical c = *a.canonical;
  merge_axes(c.axes, {&c.epilogue}, {&c.out_index});
  const bool vector = vectorizable(c);
  const Var read = vector ? nullptr : crossing_axis(c);
  Scheduled s;
  if (read) {
    s.body = seq({fill_border(c), tiles(c, read)});
    s.steps = {"tile(" + read->name + ", " + c.axes.back().var->name + ", " + to_text(kTileRead) + ", " +
               to_text(kTileWritten) + ")"};
  } else {
    const Schedule loops = loops_of(c, vector, a.options);
    s.body = seq({fill_border(c), loops.body()});
    s.steps = loops.steps();
  }
  bind_operands(s, c);
  s.family = "elementwise";
  s.description = vector ? "vectors along " + std::string(c.axes.size() == 1 ? "the flat tensor" : "the innermost axis")
                  : read ? "tiles of " + to_text(kTileRead) + " by " + to_text(kTileWritten) + " elements"
                         : "one element at a time";
  if (c.axes.size() > 1) s.description += ", outer axes merged where memory allows";
  return s;
}

}  // namespace tc
