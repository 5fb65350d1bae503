// No reduction: every point of the result on its own.
//
// Neighbouring axes which all operands walk as one are merged, so that most functions are one flat loop; the innermost
// axis runs over vectors, the outermost is shared among threads in chunks of a fixed number of elements.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

constexpr int64_t kChunk = 8192;  // elements: 32 KiB, a first-level cache

using Point = std::vector<std::pair<Var, Expr>>;

bool vectorizable(const Canonical& c) {
  if (c.axes.empty() || c.out->dtype != DType::F32 || c.axes.back().extent.value < 8) return false;
  const Var lane = c.axes.back().var;
  const auto f = affine_in(c.out_index, {lane});
  return f && f->coefficients[0] == 1 && has_vector_form(c.epilogue, lane);
}

// Elements [begin, begin + n) of the innermost axis.
Stmt strip(const Canonical& c, const Point& outer, const Expr& begin, int64_t n, bool vector) {
  const Var inner = c.axes.back().var;
  if (vector)
    return over_lanes("v", n, [&](const Expr& offset, const Expr& count) {
      return store_lanes(c.out, c.out_index, c.epilogue, {outer, inner, begin + offset, count, {}});
    });
  const Var i = make_var(inner->name);
  Point at = outer;
  at.push_back({inner, begin + Expr(i)});
  return loop(i, n, store(c.out, {index_at(c.out_index, at)}, scalar_form(c.epilogue, at)));
}

// One flat axis: whole chunks in parallel, then the rest.
Stmt flat(const Canonical& c, bool vector) {
  const int64_t n = c.axes[0].extent.value;
  if (n < 2 * kChunk) return strip(c, {}, 0, n, vector);
  int64_t size = kChunk;
  for (int64_t s = kChunk; s >= kChunk / 4; s -= kMaxLanes)
    if (n % s == 0) {
      size = s;
      break;
    }
  const Var chunk = make_var("part");
  return seq({loop(chunk, n / size, strip(c, {}, Expr(chunk) * Expr(size), size, vector), ForKind::Parallel),
              n % size == 0 ? Stmt() : strip(c, {}, n / size * size, n % size, vector)});
}

Stmt nest(const Canonical& c, bool vector) {
  Point outer;
  for (size_t i = 0; i + 1 < c.axes.size(); i++) outer.push_back({c.axes[i].var, Expr(c.axes[i].var)});
  Stmt body = strip(c, outer, 0, c.axes.back().extent.value, vector);
  const bool parallel = points(c.axes) >= kParallelThreshold;
  for (size_t i = c.axes.size() - 1; i-- > 0;)
    body = loop(c.axes[i].var, c.axes[i].extent, body, parallel && i == 0 ? ForKind::Parallel : ForKind::Serial);
  return body;
}

}  // namespace

std::optional<Scheduled> schedule_elementwise(const TemplateArgs& a) {
  if (!a.canonical || bool(a.canonical->value)) return {};
  Canonical c = *a.canonical;
  merge_axes(c.axes, {&c.epilogue}, {&c.out_index});
  const bool vector = vectorizable(c);
  Scheduled s;
  if (c.axes.empty())
    s.body = store(c.out, {index_at(c.out_index, {})}, scalar_form(c.epilogue, {}));
  else
    s.body = c.axes.size() == 1 ? flat(c, vector) : nest(c, vector);
  s.body = seq({fill_border(c), s.body});
  bind_operands(s, c);
  s.family = "elementwise";
  s.words = vector ? "vectors along " + std::string(c.axes.size() == 1 ? "the flat tensor" : "the innermost axis")
                   : "one element at a time";
  if (c.axes.size() > 1) s.words += ", outer axes merged where memory allows";
  return s;
}

}  // namespace tc
