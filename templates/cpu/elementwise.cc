// No reduction: every point of the result on its own.
//
// Neighbouring axes which all operands walk as one are merged, so that most functions are one flat loop; the innermost
// axis runs over vectors, the outermost is shared among threads in chunks of a fixed number of elements.
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/schedule/primitives.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

constexpr int64_t kChunk = 8192;  // elements: 32 KiB, a first-level cache

bool vectorizable(const Canonical& c) {
  if (c.axes.empty() || c.out->dtype != DType::F32 || c.axes.back().extent.value < 8) return false;
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
  std::vector<Var> strips;
  if (n % size != 0) {
    const std::vector<Var> parts = s.partition(v, {n / size * size});
    v = parts[0];
    strips = {parts[1]};
  }
  const auto [part, strip] = s.split(v, size);
  s.parallel(s.rename(part, "part"));
  strips.push_back(strip);
  return strips;
}

Schedule loops_of(const Canonical& c, bool vector, const ScheduleOptions& options) {
  std::vector<std::pair<Var, Expr>> point;  // the axes themselves: indices with larger strides first
  for (const Axis& a : c.axes) point.push_back({a.var, Expr(a.var)});
  Stmt nest = store(c.out, {index_at(c.out_index, point)}, scalar_form(c.epilogue, point));
  for (size_t i = c.axes.size(); i-- > 0;) nest = loop(c.axes[i].var, c.axes[i].extent, nest);
  Schedule s(nest, options);
  if (c.axes.empty()) return s;
  std::vector<Var> strips = {c.axes.back().var};
  if (c.axes.size() == 1)
    strips = share_flat(s, c.axes[0].var, c.axes[0].extent.value);
  else if (points(c.axes) >= kParallelThreshold)
    s.parallel(c.axes[0].var);
  for (const Var& v : strips)
    if (vector) s.vectorize(v);
  return s;
}

}  // namespace

std::optional<Scheduled> schedule_elementwise(const TemplateArgs& a) {
  if (!a.canonical || bool(a.canonical->value)) return {};
  Canonical c = *a.canonical;
  merge_axes(c.axes, {&c.epilogue}, {&c.out_index});
  const bool vector = vectorizable(c);
  const Schedule loops = loops_of(c, vector, a.options);
  Scheduled s;
  s.body = seq({fill_border(c), loops.body()});
  s.steps = loops.steps();
  bind_operands(s, c);
  s.family = "elementwise";
  s.words = vector ? "vectors along " + std::string(c.axes.size() == 1 ? "the flat tensor" : "the innermost axis")
                   : "one element at a time";
  if (c.axes.size() > 1) s.words += ", outer axes merged where memory allows";
  return s;
}

}  // namespace tc
