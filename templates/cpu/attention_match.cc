// Finds the products and the softmax between them, and what the mask says of the keys that a row sees.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "templates/cpu/attention.h"
#include "templates/cpu/regions.h"
#include "templates/match/key_bounds.h"
#include "templates/match/split_axes.h"

namespace tc {
namespace {

constexpr int64_t kTileBytes = 24 << 10;  // of scores: with a panel of keys in the first-level cache, or nearly
constexpr int64_t kMaxTileRows = 32;      // rows that the model takes
constexpr int64_t kMostTileRows = 128;    // that may be stated

// Stages [0, scores), [scores, softmax) and the rest.
struct Cuts {
  size_t scores = 0, softmax = 0;
};
std::optional<Cuts> find_cuts(const TensorFn& fn) {
  std::vector<size_t> sums;
  for (size_t i = 0; i < fn.stages.size(); i++)
    if (fn.stages[i].kind == Stage::Kind::Reduce) sums.push_back(i);
  if (sums.size() != 4 || fn.outputs.size() != 1) return {};
  const auto combines = [&](size_t k, Op op) { return fn.stages[sums[k]].combiner.op == op; };
  if (!combines(0, Op::Add) || !combines(1, Op::Max) || !combines(2, Op::Add) || !combines(3, Op::Add)) return {};
  // The last stage before `end` that needs stage `from`.
  auto last_dependent = [&](size_t from, size_t end) {
    std::vector<bool> depends(end, false);
    size_t last = from;
    depends[from] = true;
    for (size_t i = from + 1; i < end; i++) {
      for (const Expr& e : fn.stages[i].values)
        for (const Load* l : loads_of(e))
          for (size_t j = from; j < i; j++)
            if (depends[j] && fn.stages[j].outputs[0] == l->buffer) depends[i] = true;
      if (depends[i]) last = i;
    }
    return last;
  };
  const Cuts c{last_dependent(sums[0], sums[1]) + 1, last_dependent(sums[1], sums[3]) + 1};
  // maximum, exponentials, their sum, quotients
  if (c.scores != sums[1] || c.softmax != c.scores + 4 || sums[2] != c.scores + 2) return {};
  return c;
}

// The operator between the products where it is of the first columns, as many as an operand's only element says.
std::optional<CountedSoftmax> counted_softmax(const TensorFn& softmax, const Buffer& scores) {
  const Stage &top = softmax.stages[0], &y = softmax.stages[3];
  auto found = match_counted_softmax(top, softmax.stages[1], softmax.stages[2], y.values[0], y.axes);
  const Load *score = found ? as<Load>(found->scores) : nullptr, *count = found ? as<Load>(found->count) : nullptr;
  if (!score || score->buffer != scores || !count || !count->index.empty()) return {};
  std::vector<Axis> point = top.axes;
  point.push_back(top.raxes[0]);
  return reads_own(score->index, point) ? found : std::nullopt;
}

// The axis of `operand` along which the result's axis d of fn runs; -1: none.
int operand_axis(const TensorFn& fn, size_t d, const Buffer& operand) {
  const Stage* s = producer(fn, fn.outputs[0]);
  size_t axis = d;
  for (size_t guard = 0; s && guard <= fn.stages.size(); guard++) {
    const Var v = s->axes[axis].var;
    const Stage* next = nullptr;
    for (const Load* l : loads_of(s->values[0])) {
      const Stage* from = producer(fn, l->buffer);
      if (l->buffer != operand && !from) continue;
      for (size_t k = 0; k < l->index.size(); k++) {
        const VarRef* r = as<VarRef>(l->index[k]);
        if (!r || r->var != v) continue;
        if (l->buffer == operand) return int(k);
        next = from;
        axis = k;
      }
      if (next) break;
    }
    s = next;
  }
  return -1;
}

// Rows per tile: few rows computed twice, then many.
int64_t choose_tile_rows(int64_t rows, int64_t columns) {
  const int64_t most = std::clamp<int64_t>(kTileBytes / (4 * columns), 8, kMaxTileRows);
  if (rows <= most) return rows;
  int64_t best = most, least = rows;
  for (int64_t n = most; n >= 8; n--) {
    const int64_t twice = ceil_div(rows, n) * n - rows;
    if (twice >= least) continue;
    best = n;
    least = twice;
  }
  return best;
}

std::optional<AttentionProduct> match_product(const TensorFn& part, const std::vector<AxisRange>& ranges,
                                              const TemplateArgs& a) {
  auto tile = result_tile(part, ranges);
  const auto c = tile ? canonicalize(tile->fn) : std::nullopt;
  if (!c || c->border) return {};
  const std::vector<bool> constant(tile->fn.inputs.size(), false);
  auto m = match_contraction({tile->fn, &*c, constant, a.cpu, a.options});
  if (!m || m->right == Contraction::Right::Packed || !m->outer.empty() || m->rows.size() != 1) return {};
  const ContractionPlan plan = plan_part(*m, a.cpu, a.options);
  return AttentionProduct{std::move(*tile), std::move(*m), plan};
}

bool reads_only(const TensorFn& part, const TensorFn& whole, const Buffer& only) {
  return std::all_of(part.inputs.begin(), part.inputs.end(),
                     [&](const Buffer& b) { return b == only || !producer(whole, b); });
}

int64_t choose_groups(int64_t heads, int64_t tiles) {
  int64_t groups = 1;
  while (heads * groups < 8 && tiles >= groups * 4) groups *= 2;
  return groups;
}

// Of the axes of batches and heads: where heads share keys, these come first.
std::string outer_name(size_t d, size_t count) {
  if (d == 0 && count > 1) return "batch";
  return d == 1 && count > 2 ? "group" : "head";
}

// Heads and rows as ranges of the scores, and of the result, whose axes may be permuted.
bool find_ranges(const TensorFn& last, Attention& t, const PlanEntry& plan) {
  const Dims dims = static_dims(t.weights->shape), out = static_dims(last.outputs[0]->shape);
  if (dims.size() < 2 || static_dims(t.scores_buffer->shape) != dims) return false;
  t.rows = dims[dims.size() - 2];
  t.columns = dims.back();
  if (t.rows < 2 || is_open(t.columns)) return false;  // scores and panels of a tile lie in memory of constant size
  t.tile_rows = plan.in_range(
      "rows", [&] { return choose_tile_rows(t.rows, t.columns); }, 2, std::min(t.rows, kMostTileRows));
  for (size_t d = 0; d + 1 < dims.size(); d++) {
    if (dims[d] == 1) continue;
    const bool is_row = d + 2 == dims.size();
    if (!is_row) t.outer.push_back({make_var(outer_name(d, dims.size() - 2)), Dim(dims[d])});
    const Var v = is_row ? t.row : t.outer.back().var;
    const int64_t extent = is_row ? t.tile_rows : 1;
    t.tile_ranges.push_back({d, Expr(v), extent});
    for (size_t o = 0; o < out.size(); o++)
      if (out[o] > 1 && operand_axis(last, o, t.weights) == int(d)) t.out_ranges.push_back({o, Expr(v), extent});
  }
  const int64_t tiles = ceil_div(t.rows, t.tile_rows), heads = points(t.outer);
  // Each group copies keys and values for itself; it has two tiles at least, since the last two may overlap.
  t.groups = plan.in_range(
      "groups", [&] { return choose_groups(heads, tiles); }, 1, std::max<int64_t>(1, tiles / 2));
  return t.out_ranges.size() == t.tile_ranges.size();
}

// Does `e` read what is known when a strip begins: operands of fn, at points of the axes `outside`?
bool reads_operands_at(const TensorFn& fn, const Expr& e, const std::vector<Axis>& outside) {
  const std::vector<Var> vars = vars_of(outside);
  for (const Load* l : loads_of(e)) {
    if (producer(fn, l->buffer)) return false;
    for (const Expr& i : l->index) {
      const auto f = affine_in(i, vars);
      if (!f || !as_const_int(f->rest)) return false;
    }
  }
  const Expr rest = rewrite(e, [](const Expr& x) { return as<Load>(x) ? make_int(x->dtype, 0) : Expr(); });
  bool known = true;
  walk(rest, [&](const Expr& x) { return known = known && !as<VarRef>(x); });
  return known;
}

// Numbers of the keys that a row sees, from the bounds of a mask, if the last row of a strip sees the last of them. `axes`: of the scores.
std::optional<SeenKeys> seen_keys(const TensorFn& fn, const KeyBounds& bounds, const std::vector<Axis>& axes) {
  const Axis &i = axes[axes.size() - 2], &j = axes.back();
  const std::vector<Axis> outside(axes.begin(), axes.end() - 2);
  const auto is_known = [&](const Expr& e) {
    const auto f = affine_in(e, {i.var});
    return f && f->coefficients[0] >= 0 && reads_operands_at(fn, f->rest, outside);
  };
  if (bounds.ends.empty() || !std::all_of(bounds.ends.begin(), bounds.ends.end(), is_known) ||
      !std::all_of(bounds.begins.begin(), bounds.begins.end(), is_known))
    return {};
  const Ranges ranges = {{i.var.get(), {0, i.extent.value - 1}}};
  SeenKeys seen{outside, i.var, {}, Expr(j.extent.value), false};
  for (const auto* list : {&bounds.begins, &bounds.ends})
    for (const Expr& e : *list) seen.by_run = seen.by_run || !loads_of(e).empty();
  for (const Expr& e : bounds.ends) seen.end = min(seen.end, e);
  for (const Expr& e : bounds.begins) seen.begin = seen.begin ? max(seen.begin, e) : max(e, Expr(0));
  seen.end = simplify(max(seen.end, Expr(0)), ranges);
  if (seen.begin) seen.begin = simplify(min(seen.begin, seen.end), ranges);
  return seen;
}

// The least number of keys that a row sees is that of the first one, where no key is too old.
bool every_row_sees(const SeenKeys& seen) {
  const auto least = as_const_int(simplify(substitute(seen.end, {{seen.i.get(), Expr(0)}})));
  return !seen.begin && least && *least > 0;
}

// Where the mask of the scores forbids keys by their positions: the scores lose that condition, since the softmax looks at the others
// only. `scores`, `softmax`: parts of t.fn.
void take_seen_keys(Attention& t, TensorFn& scores, const TensorFn& softmax) {
  Stage& last = scores.stages.back();
  const Select* masked = last.kind == Stage::Kind::Compute ? as<Select>(last.values[0]) : nullptr;
  const size_t rank = last.axes.size();
  if (!masked || rank < 2 || last.outputs[0]->dtype != DType::F32 ||
      !structurally_equal(masked->no, lowest(DType::F32)))
    return;
  const Stage& weight = softmax.stages[3];
  const auto plain =
      match_plain_softmax(softmax.stages[0], softmax.stages[1], softmax.stages[2], weight.values[0], weight.axes);
  if (!plain) return;
  const KeyBounds bounds = key_bounds(masked->condition, last.axes[rank - 1].var);
  const auto seen = seen_keys(t.fn, bounds, last.axes);
  if (!seen || !(plain->or_zero || (!bounds.rest && every_row_sees(*seen)))) return;
  t.seen = seen;
  t.or_zero = plain->or_zero;
  last.values[0] = bounds.rest ? select(bounds.rest, masked->yes, masked->no) : masked->yes;
}

// Where the run says how many keys there are, a bound may be far from it, and memory has room for all: then chunks take several heads.
bool share_memory(Attention& t) {
  constexpr int64_t kMostBytes = 32 << 20, kFewestChunks = 4;
  const auto panels = [](const AttentionProduct& p) { return p.plan.panels * points(p.m.k) * p.plan.tile.columns; };
  const int64_t bytes = 4 * (panels(t.scores) + panels(t.result) + t.tile_rows * t.columns),
                heads = points(t.outer) * t.groups;
  // Chunks of batches without an upper bound become shares of what there is.
  if (is_open(heads)) return true;
  for (int64_t each = 1; each <= heads; each++) {
    if (heads % each != 0 || heads / each * bytes > kMostBytes) continue;
    t.heads_per_chunk = each;
    return heads / each >= std::min(kFewestChunks, heads);
  }
  return false;
}

// The softmax of whole rows of a strip, in place: what comes after the exponentials does not read the scores.
bool find_softmax(const TensorFn& softmax, Attention& t, const TemplateArgs& a) {
  constexpr int64_t kFewestKeys = 8;  // panels of fewer are mostly empty
  if (t.columns < kFewestKeys) return false;
  const auto rows = result_tile(softmax, t.tile_ranges);
  if (!rows) return false;
  const auto inner =
      schedule_rows({rows->fn, nullptr, {false}, a.cpu, a.options, false, PlanEntry(a.options.planner, "rows")});
  if (!inner) return false;
  t.softmax = *inner;
  return true;
}

}  // namespace

std::optional<Attention> match_attention(const TemplateArgs& a) {
  if (a.options.strict_fp || a.fn.outputs.size() != 1 || !find_cuts(a.fn)) return {};
  Attention t;
  t.fn = split_axes(a.fn);
  const Cuts cuts = *find_cuts(t.fn);
  TensorFn scores = stages_of(t.fn, 0, cuts.scores);
  const TensorFn softmax = stages_of(t.fn, cuts.scores, cuts.softmax),
                 last = stages_of(t.fn, cuts.softmax, t.fn.stages.size());
  if (scores.stages.empty() || softmax.stages.empty() || last.stages.empty()) return {};
  t.scores_buffer = scores.outputs[0];
  t.weights = softmax.outputs[0];
  t.counted = counted_softmax(softmax, t.scores_buffer);
  if (t.counted) t.or_zero = t.counted->or_zero;
  if (!reads_only(scores, t.fn, nullptr) || (!t.counted && softmax.inputs != std::vector<Buffer>{t.scores_buffer}) ||
      !reads_only(last, t.fn, t.weights) || last.outputs[0] != t.fn.outputs[0] || !find_ranges(last, t, a.plan))
    return {};
  for (size_t i = 2; i < 4; i++)
    for (const Load* l : loads_of(softmax.stages[i].values[0]))
      if (l->buffer == t.scores_buffer) return {};
  if (!t.counted) take_seen_keys(t, scores, softmax);
  const auto first = match_product(scores, t.tile_ranges, a), second = match_product(last, t.out_ranges, a);
  if (!first || !second || second->m.p_at.of(second->m.rows[0].var) != t.columns) return {};
  t.scores = *first;
  t.result = *second;
  if (bool(t.counted) != bool(second->m.k_end)) return {};
  if (!t.counted && !t.seen && !find_softmax(softmax, t, a)) return {};
  if (t.seen && t.seen->by_run && !share_memory(t)) return {};
  return t;
}

// The matrix of all scores has to be larger than the second-level cache, twice over: below that the three kernels find
// it there, and copying the values into panels costs more than is gained. Measured on Zen 4 (L2 1 MiB), 12 heads of 64,
// new time over old: 128 rows (0.8 MB of scores) 1.04, 197 rows (1.9 MB) 1.01, 256 rows (3.1 MB) 0.99, 512 rows
// (12.6 MB) 0.85, and less while others use the third-level cache. Where the run chooses how many keys there are, it ends
// with them, which the three kernels do for some of their loops only.
bool attention_pays(const TemplateArgs& a) {
  const auto t = match_attention(a);
  if (t && t->counted) return true;
  return t && 4 * num_elements(static_dims(t->scores_buffer->shape)) >= 2 * int64_t(a.cpu.l2_bytes);
}

}  // namespace tc
