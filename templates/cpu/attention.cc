// Attention, tile by tile: scores = f(Q * K^T), a softmax over each row of them, times V.
//
//   for heads, groups of tiles:                        shared among threads
//     keys, values = K and V of the head in panels     once for all tiles of the chunk
//     for tiles of rows:
//       scores = f(q[rows] * keys)                     f: the scale and the mask
//       scores = softmax(scores)                       in place
//       out[rows] = scores * values
//
// The scores of one tile stay in the first-level cache or near it; the matrix of all scores never exists. The last
// tile begins early enough to be a whole one: it computes some rows a second time, with the same results.
//
// Where the run chooses how many keys there are, panels, softmax and sums end behind the last of them.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "support/text.h"
#include "templates/cpu/contraction.h"
#include "templates/cpu/regions.h"
#include "templates/match/counted.h"
#include "templates/result_tile.h"

namespace tc {
namespace {

constexpr int64_t kTileBytes = 24 << 10;  // of scores: with a panel of keys in the first-level cache, or nearly
constexpr int64_t kMaxTileRows = 32;      // rows that the model takes
constexpr int64_t kMostTileRows = 128;    // that may be stated

struct Product {
  ResultTile tile;
  Contraction m;
  ContractionPlan plan;
};

struct Attention {
  Product scores, result;
  Scheduled softmax;
  std::optional<CountedSoftmax> counted;  // none: the softmax is of all columns
  Buffer scores_buffer, weights;          // results of stages: before and after the softmax
  Buffer softmax_in, softmax_out;         // of the tile's function
  std::vector<AxisRange> tile_ranges, out_ranges;
  std::vector<Axis> outer;  // batches and heads
  int64_t rows = 1, columns = 1, tile_rows = 1;
  int64_t groups = 1;  // chunks of a head's tiles
  Var row = make_var("row");
};

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

std::optional<Product> match_product(const TensorFn& part, const std::vector<AxisRange>& ranges,
                                     const TemplateArgs& a) {
  auto tile = result_tile(part, ranges);
  const auto c = tile ? canonicalize(tile->fn) : std::nullopt;
  if (!c || c->border) return {};
  const std::vector<bool> constant(tile->fn.inputs.size(), false);
  auto m = match_contraction({tile->fn, &*c, constant, a.cpu, a.options});
  if (!m || m->right == Contraction::Right::Packed || !m->outer.empty() || m->rows.size() != 1) return {};
  const ContractionPlan plan = plan_part(*m, a.cpu, a.options);
  return Product{std::move(*tile), std::move(*m), plan};
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
    if (!is_row) t.outer.push_back({make_var(dims.size() == 4 && d == 0 ? "batch" : "head"), Dim(dims[d])});
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

std::optional<Attention> match(const TemplateArgs& a) {
  if (a.options.strict_fp || a.fn.outputs.size() != 1) return {};
  const auto cuts = find_cuts(a.fn);
  if (!cuts) return {};
  const TensorFn scores = stages_of(a.fn, 0, cuts->scores), softmax = stages_of(a.fn, cuts->scores, cuts->softmax),
                 last = stages_of(a.fn, cuts->softmax, a.fn.stages.size());
  if (scores.stages.empty() || softmax.stages.empty() || last.stages.empty()) return {};
  Attention t;
  t.scores_buffer = scores.outputs[0];
  t.weights = softmax.outputs[0];
  t.counted = counted_softmax(softmax, t.scores_buffer);
  if (!reads_only(scores, a.fn, nullptr) || (!t.counted && softmax.inputs != std::vector<Buffer>{t.scores_buffer}) ||
      !reads_only(last, a.fn, t.weights) || last.outputs[0] != a.fn.outputs[0] || !find_ranges(last, t, a.plan))
    return {};
  // In place: what comes after the exponentials does not read the scores.
  for (size_t i = 2; i < 4; i++)
    for (const Load* l : loads_of(softmax.stages[i].values[0]))
      if (l->buffer == t.scores_buffer) return {};
  const auto first = match_product(scores, t.tile_ranges, a), second = match_product(last, t.out_ranges, a);
  if (!first || !second || second->m.p_at.of(second->m.rows[0].var) != t.columns) return {};
  t.scores = *first;
  t.result = *second;
  if (bool(t.counted) != bool(second->m.k_end)) return {};
  if (t.counted) return t;
  const auto rows = result_tile(softmax, t.tile_ranges);
  if (!rows) return {};
  const auto inner =
      schedule_rows({rows->fn, nullptr, {false}, a.cpu, a.options, false, PlanEntry(a.options.planner, "rows")});
  if (!inner) return {};
  t.softmax = *inner;
  t.softmax_in = rows->fn.inputs[0];
  t.softmax_out = rows->fn.outputs[0];
  return t;
}

class Builder {
 public:
  Builder(const Attention& t, const TemplateArgs& a) : t_(t), memory_(a.fn) {
    tiles_ = ceil_div(t.rows, t.tile_rows);
    groups_ = t.groups;
    keys_ = panels("keys", t.scores);
    values_ = panels("values", t.result);
    tile_ = make_buffer("scores", DType::F32, {Dim(t.tile_rows * t.columns)}, Scope::Workspace);
    if (t.counted) {
      const Buffer count = memory_.flat(as<Load>(t.counted->count)->buffer);
      n_value_ = max(min(load(count, {Expr(0)}), Expr(t.columns)), Expr(0));
      n_ = Expr(n_name_);
    }
  }

  Scheduled build() {
    const Var part = make_var("part"), group = make_var("group"), tile = make_var("strip");
    Expr begin = 0, count = tiles_;
    if (groups_ > 1) {
      begin = Expr(group) * Expr(tiles_) / Expr(groups_);
      count = (Expr(group) + Expr(1)) * Expr(tiles_) / Expr(groups_) - begin;
    }
    Expr row = Expr(tile) * Expr(t_.tile_rows);
    if (t_.rows % t_.tile_rows != 0) row = min(row, Expr(t_.rows - t_.tile_rows));
    Stmt body = let(t_.row, row, seq({scores(), softmax(), result()}));
    body = tiles_ == 1 ? substitute(body, {{tile.get(), Expr(0)}}) : loop(tile, count, body, ForKind::Serial, begin);
    body = alloc(keys_, alloc(values_, alloc(tile_, seq({copies(), body}))));
    Expr rest = Expr(part);
    std::vector<std::pair<Var, Expr>> lets;
    if (groups_ > 1) {
      lets.push_back({group, t_.outer.empty() ? rest : apply(Op::Mod, {rest, Expr(groups_)})});
      rest = rest / Expr(groups_);
    }
    for (size_t i = t_.outer.size(); i-- > 0;) {
      lets.push_back({t_.outer[i].var, i == 0 ? rest : apply(Op::Mod, {rest, Expr(t_.outer[i].extent)})});
      rest = rest / Expr(t_.outer[i].extent);
    }
    for (const auto& [v, value] : lets) body = let(v, value, body);
    if (n_) body = let(n_name_, n_value_, body);
    const int64_t chunks = points(t_.outer) * groups_;
    s_.body = chunks == 1 ? substitute(body, {{part.get(), Expr(0)}}) : loop(part, chunks, body, ForKind::Parallel);
    memory_.bind(s_);
    s_.family = "attention";
    describe();
    return std::move(s_);
  }

 private:
  static Buffer panels(const std::string& name, const Product& p) {
    return make_buffer(name, DType::F32, {Dim(p.plan.panels * points(p.m.k) * p.plan.tile.columns)}, Scope::Workspace);
  }

  /// The product up to the columns that there are.
  Contraction ended(Contraction m) const {
    if (m.k_end)
      m.k_end = n_;
    else
      m.n_end = n_;
    return m;
  }

  Stmt copies() {
    const Product &s = t_.scores, &r = t_.result;
    const Stmt keys = memory_.see(copy_to_panels(ended(s.m), s.plan, keys_), s.tile, s.m.c, t_.tile_ranges, "keys");
    const Stmt values =
        memory_.see(copy_to_panels(ended(r.m), r.plan, values_), r.tile, r.m.c, t_.out_ranges, "values");
    return seq({comment("keys in panels of " + to_text(int64_t(s.plan.tile.columns)), keys),
                comment("values in panels of " + to_text(int64_t(r.plan.tile.columns)), values)});
  }

  Stmt product(const Product& p, const Buffer& panels, const TileMemory& memory, const ResultTile& tile,
               const std::vector<AxisRange>& ranges) {
    Contraction m = ended(p.m);
    m.right = Contraction::Right::Panels;
    m.q = panels;
    return memory.see(contraction_loops(m, p.plan, s_), tile, m.c, ranges, "rows");
  }

  Stmt scores() {
    TileMemory memory = memory_;
    memory.keep_in(t_.scores_buffer, tile_);
    ResultTile tile = t_.scores.tile;
    tile.result.step.assign(tile.result.step.size(), 0);
    return comment("scores", product(t_.scores, keys_, memory, tile, t_.tile_ranges));
  }

  // The tile of the softmax, in place, by this chunk alone.
  Stmt softmax() {
    if (n_) return comment("softmax", softmax_of_first());
    BufferMap to;
    for (const auto& [flat, of] : t_.softmax.views) to[flat.get()] = tile_;
    const Stmt serial = rewrite(t_.softmax.body, {}, [](const Stmt& s) -> Stmt {
      const For* f = as<For>(s);
      return f && f->kind == ForKind::Parallel ? loop(f->var, f->extent, f->body, ForKind::Serial, f->begin) : Stmt();
    });
    return comment("softmax", substitute_buffers(serial, to));
  }

  /// Over the first n elements of each row. Lanes behind the last are 0 where a partial vector is read.
  Stmt softmax_of_first() {
    const Var row = make_var("row"), top = make_var("top", DType::F32), inverse = make_var("inverse", DType::F32);
    const Buffer high = make_buffer("high", DType::F32, {Dim(kMaxLanes)}, Scope::Register),
                 best = make_buffer("best", DType::F32, {}, Scope::Register),
                 sum = make_buffer("sum", DType::F32, {Dim(kMaxLanes)}, Scope::Register);
    const Var whole = make_var("whole"), rest = make_var("rest");  // of the keys: vectors, and elements behind them
    const Expr begin = Expr(row) * Expr(t_.columns), behind = begin + Expr(whole) * lanes();
    const auto each = [&](const std::function<Stmt(const Exprs& at, const Expr& count)>& body) {
      const Var v = make_var("v");
      return seq({loop(v, Expr(whole), body({ramp(begin + Expr(v) * lanes())}, {})), body({ramp(behind)}, Expr(rest))});
    };
    const auto score = [&](const Exprs& at, const Expr& count) {
      return count ? partial(load(tile_, at), count) : load(tile_, at);
    };
    const Var v = make_var("v"), r = make_var("r");
    const Stmt highest =
        seq({store(high, {ramp(0)}, broadcast(lowest(DType::F32))),
             loop(v, Expr(whole), store(high, {ramp(0)}, load(tile_, {ramp(begin + Expr(v) * lanes())}), Op::Max)),
             store(best, {}, apply(Op::ReduceMax, {load(high, {ramp(0)})})),
             loop(r, Expr(rest), store(best, {}, load(tile_, {behind + Expr(r)}), Op::Max))});
    const Stmt terms = each([&](const Exprs& at, const Expr& count) {
      return seq({store(tile_, at, exp(score(at, count) - broadcast(Expr(top))), std::nullopt, count),
                  store(sum, {ramp(0)}, score(at, count), Op::Add)});
    });
    const Stmt shares = each([&](const Exprs& at, const Expr& count) {
      return store(tile_, at, score(at, count) * broadcast(Expr(inverse)), std::nullopt, count);
    });
    const Stmt nothing = each([&](const Exprs& at, const Expr& count) {
      return store(tile_, at, broadcast(zero(DType::F32)), std::nullopt, count);
    });
    const Var total = make_var("total", DType::F32);
    const Stmt quotients = let(inverse, make_const(DType::F32, 1) / Expr(total), shares);
    const bool or_zero = t_.counted->or_zero;
    Stmt body = seq({terms, let(total, apply(Op::ReduceAdd, {load(sum, {ramp(0)})}),
                                or_zero ? if_then(Expr(total) > zero(DType::F32), quotients, nothing) : quotients)});
    body = alloc(sum, seq({store(sum, {ramp(0)}, broadcast(zero(DType::F32))), body}));
    const Expr most = load(best, {}), least = lowest(DType::F32);
    const Expr shift = or_zero ? select(eq(most, least), zero(DType::F32), most) : most;
    body = alloc(high, alloc(best, seq({highest, let(top, shift, body)})));
    body = loop(row, t_.tile_rows, body);
    return let(whole, n_ / lanes(), let(rest, n_ - Expr(whole) * lanes(), body));
  }

  Stmt result() {
    TileMemory memory = memory_;
    memory.keep_in(t_.weights, tile_);
    ResultTile tile = t_.result.tile;
    for (ResultTile::Operand& o : tile.operands)
      if (o.whole == t_.weights) o.step.assign(o.step.size(), 0);
    return comment("times the values", product(t_.result, values_, memory, tile, t_.out_ranges));
  }

  void describe() {
    auto tile = [](const ContractionPlan& p) {
      return to_text(int64_t(p.tile.rows)) + " by " + to_text(int64_t(p.tile.columns));
    };
    s_.description = "strips of " + to_text(t_.tile_rows) + " rows: their scores never leave the caches; products " +
                     tile(t_.scores.plan) + " and " + tile(t_.result.plan) + " in registers, keys and values in panels";
    if (groups_ > 1) s_.description += "; each head's strips in " + to_text(groups_) + " chunks";
  }

  const Attention& t_;
  TileMemory memory_;
  Scheduled s_;
  int64_t tiles_ = 1, groups_ = 1;
  Buffer keys_, values_, tile_;
  Var n_name_ = make_var("num_keys");
  Expr n_, n_value_;  // keys that there are; null: all
};

}  // namespace

// The matrix of all scores has to be larger than the second-level cache, twice over: below that the three kernels find
// it there, and copying the values into panels costs more than is gained. Measured on Zen 4 (L2 1 MiB), 12 heads of 64,
// new time over old: 128 rows (0.8 MB of scores) 1.04, 197 rows (1.9 MB) 1.01, 256 rows (3.1 MB) 0.99, 512 rows
// (12.6 MB) 0.85, and less while others use the third-level cache. Where the run chooses how many keys there are, it ends
// with them, which the three kernels do for some of their loops only.
bool attention_pays(const TemplateArgs& a) {
  const auto t = match(a);
  if (t && t->counted) return true;
  return t && 4 * num_elements(static_dims(t->scores_buffer->shape)) >= 2 * int64_t(a.cpu.l2_bytes);
}

std::optional<Scheduled> schedule_attention(const TemplateArgs& a) {
  const auto t = match(a);
  if (!t) return {};
  return Builder(*t, a).build();
}

}  // namespace tc
