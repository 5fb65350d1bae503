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
// Where the run chooses how many keys there are, panels, softmax and sums end behind the last of them. Where a row sees the keys up to
// its own position, strips end with the last key that one of their rows sees: half of the work, and no comparison in a product.
#include "templates/cpu/attention.h"

#include "ir/loop/build.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/row_axes.h"

namespace tc {
namespace {

class Builder {
 public:
  Builder(const Attention& t, const TensorFn& fn) : t_(t), fn_(fn), memory_(t.fn) {
    tiles_ = ceil_div(t.rows, t.tile_rows);
    groups_ = t.groups;
    keys_ = panels("keys", t.scores);
    values_ = panels("values", t.result);
    tile_ = make_buffer("scores", DType::F32, {Dim(t.tile_rows * t.columns)}, Scope::Workspace);
    if (t.counted) {
      const Buffer count = memory_.flat(as<Load>(t.counted->count)->buffer);
      n_value_ = max(min(load(count, {Expr(0)}), Expr(t.columns)), Expr(0));
      n_ = Expr(n_name_);
    } else if (t.seen) {
      n_value_ = of_row(t.seen->end, Expr(t.row) + Expr(t.tile_rows - 1), {});
      n_ = Expr(n_name_);
      if (t.seen->by_run) all_ = Expr(all_name_);
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
    Stmt body = seq({scores(), softmax(), result()});
    if (t_.seen) body = let(n_name_, n_value_, body);
    body = let(t_.row, row, body);
    body = tiles_ == 1 ? substitute(body, {{tile.get(), Expr(0)}}) : loop(tile, count, body, ForKind::Serial, begin);
    body = seq({copies(), body});
    const auto in_memory = [&](const Stmt& x) { return alloc(keys_, alloc(values_, alloc(tile_, x))); };
    if (all_) body = let(all_name_, of_row(t_.seen->end, Expr(t_.rows - 1), {}), body);
    const int64_t each = t_.heads_per_chunk, chunks = points(t_.outer) * groups_ / each;
    const Var of_chunk = make_var("own");
    ChunkDigits digits(each > 1 ? Expr(part) * Expr(each) + Expr(of_chunk) : Expr(part));
    if (groups_ > 1) digits.take(group, Expr(groups_), t_.outer.empty());
    for (size_t i = t_.outer.size(); i-- > 0;) digits.take(t_.outer[i].var, Expr(t_.outer[i].extent), i == 0);
    if (each == 1) body = in_memory(body);
    body = digits.around(body);
    if (each > 1) body = in_memory(loop(of_chunk, each, body));
    if (t_.counted) body = let(n_name_, n_value_, body);
    s_.body = chunks == 1 ? substitute(body, {{part.get(), Expr(0)}}) : loop(part, chunks, body, ForKind::Parallel);
    memory_.bind(s_);
    s_.views.back().of = fn_.outputs[0];
    s_.outputs = fn_.outputs;
    s_.family = "attention";
    s_.row_axis = row_axis();
    describe();
    return std::move(s_);
  }

 private:
  /// The axis of the rows of fn's output, which may have fewer axes than that of t.fn.
  int row_axis() const {
    const Dims apart = static_dims(t_.fn.outputs[0]->shape), whole = static_dims(fn_.outputs[0]->shape);
    const auto stride = [](const Dims& dims, size_t axis) {
      return num_elements(Dims(dims.begin() + std::ptrdiff_t(axis) + 1, dims.end()));
    };
    for (const AxisRange& r : t_.out_ranges)
      for (size_t k = 0; k < whole.size() && structurally_equal(r.begin, Expr(t_.row)); k++)
        if (whole[k] == t_.rows && stride(whole, k) == stride(apart, r.axis)) return int(k);
    return -1;
  }
  static Buffer panels(const std::string& name, const AttentionProduct& p) {
    return make_buffer(name, DType::F32, {Dim(p.plan.panels * points(p.m.k) * p.plan.tile.columns)}, Scope::Workspace);
  }

  /// A bound of the keys that a row sees, for the one at `i`, which is the row `in_strip` of a strip.
  Expr of_row(const Expr& bound, const Expr& i, const Var& in_strip) const {
    VarMap to = {{t_.seen->i.get(), i}};
    Ranges ranges = {{t_.row.get(), {0, t_.rows - t_.tile_rows}}};
    if (in_strip) ranges[in_strip.get()] = {0, t_.tile_rows - 1};
    for (size_t d = 0; d < t_.seen->outside.size(); d++) to[t_.seen->outside[d].var.get()] = Expr(0);
    for (const AxisRange& r : t_.tile_ranges)
      if (r.axis < t_.seen->outside.size()) to[t_.seen->outside[r.axis].var.get()] = r.begin;
    const Expr e = rewrite(substitute(bound, to), [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      return l ? load(memory_.flat(l->buffer), {flat_of(l->buffer, l->index)}) : Expr();
    });
    return simplify(e, ranges);
  }

  /// A product up to a column.
  static Contraction ended(Contraction m, bool is_result, const Expr& n) {
    (is_result ? m.k_end : m.n_end) = n;
    return m;
  }

  Stmt copies() {
    const AttentionProduct &s = t_.scores, &r = t_.result;
    const Expr n = t_.counted ? n_ : all_;  // null: all columns
    const Stmt keys =
        memory_.see(copy_to_panels(ended(s.m, false, n), s.plan, keys_), s.tile, s.m.c, t_.tile_ranges, "keys");
    const Stmt values =
        memory_.see(copy_to_panels(ended(r.m, true, n), r.plan, values_), r.tile, r.m.c, t_.out_ranges, "values");
    return seq({comment("keys in panels of " + to_text(int64_t(s.plan.tile.columns)), keys),
                comment("values in panels of " + to_text(int64_t(r.plan.tile.columns)), values)});
  }

  Stmt product(Contraction m, const ContractionPlan& plan, const Buffer& panels, const TileMemory& memory,
               const ResultTile& tile, const std::vector<AxisRange>& ranges) {
    m.right = Contraction::Right::Panels;
    m.q = panels;
    return memory.see(contraction_loops(m, plan, s_), tile, m.c, ranges, "rows");
  }

  Stmt scores() {
    TileMemory memory = memory_;
    memory.keep_in(t_.scores_buffer, tile_);
    ResultTile tile = t_.scores.tile;
    tile.result.step.assign(tile.result.step.size(), 0);
    const Contraction m = ended(t_.scores.m, false, n_);
    return comment("scores", product(m, t_.scores.plan, keys_, memory, tile, t_.tile_ranges));
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

  /// Over the elements of each row that count: the first ones, or those that it sees; those of the strip that it does not see are 0.
  Stmt softmax_of_first() {
    const Var row = make_var("row"), whole = make_var("whole"), rest = make_var("rest"), first = make_var("first"),
              end = make_var("end");
    const auto sized = [&](const Expr& n, const Stmt& body) {
      return let(whole, n / lanes(), let(rest, n - Expr(whole) * lanes(), body));
    };
    const Expr begin = Expr(row) * Expr(t_.columns);
    if (!t_.seen) return sized(n_, loop(row, t_.tile_rows, softmax_of_row(begin, whole, rest)));
    const Expr i = Expr(t_.row) + Expr(row);
    const Var pad = make_var("k");
    const auto zeros = [&](const Expr& from, const Expr& to) {
      return loop(pad, to - from, store(tile_, {begin + Expr(pad)}, zero(DType::F32)), ForKind::Serial, from);
    };
    const Expr end_of_row = of_row(t_.seen->end, i, row);
    if (!t_.seen->begin) {
      const Stmt body = sized(Expr(end), softmax_of_row(begin, whole, rest));
      return loop(row, t_.tile_rows, let(end, end_of_row, seq({body, zeros(Expr(end), n_)})));
    }
    const Stmt body = sized(Expr(end) - Expr(first), softmax_of_row(begin + Expr(first), whole, rest));
    return loop(row, t_.tile_rows,
                let(first, of_row(t_.seen->begin, i, row),
                    let(end, end_of_row, seq({body, zeros(0, Expr(first)), zeros(Expr(end), n_)}))));
  }

  /// Elements from `begin` on: `whole` vectors, and `rest` behind them. Lanes behind the last are 0 where a partial vector is read.
  Stmt softmax_of_row(const Expr& begin, const Var& whole, const Var& rest) {
    const Var top = make_var("top", DType::F32), inverse = make_var("inverse", DType::F32);
    const Buffer high = make_buffer("high", DType::F32, {Dim(kMaxLanes)}, Scope::Register),
                 best = make_buffer("best", DType::F32, {}, Scope::Register),
                 sum = make_buffer("sum", DType::F32, {Dim(kMaxLanes)}, Scope::Register);
    const Expr behind = begin + Expr(whole) * lanes();
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
    const bool or_zero = t_.or_zero;
    // Terms of a row that sees nothing are zeros already, but where NaN counts as nothing, too.
    const Expr one = make_const(DType::F32, 1),
               divisor = t_.seen && or_zero ? select(eq(Expr(total), zero(DType::F32)), one, Expr(total)) : Expr(total);
    const Stmt quotients = let(inverse, one / divisor, shares);
    Stmt body = seq(
        {terms, let(total, apply(Op::ReduceAdd, {load(sum, {ramp(0)})}),
                    t_.counted && or_zero ? if_then(Expr(total) > zero(DType::F32), quotients, nothing) : quotients)});
    body = alloc(sum, seq({store(sum, {ramp(0)}, broadcast(zero(DType::F32))), body}));
    const Expr most = load(best, {}), least = lowest(DType::F32);
    const Expr shift = or_zero ? select(eq(most, least), zero(DType::F32), most) : most;
    return alloc(high, alloc(best, seq({highest, let(top, shift, body)})));
  }

  Stmt result() {
    TileMemory memory = memory_;
    memory.keep_in(t_.weights, tile_);
    ResultTile tile = t_.result.tile;
    for (ResultTile::Operand& o : tile.operands)
      if (o.whole == t_.weights) o.step.assign(o.step.size(), 0);
    return comment("times the values",
                   product(ended(t_.result.m, true, n_), t_.result.plan, values_, memory, tile, t_.out_ranges));
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
  const TensorFn& fn_;
  TileMemory memory_;
  Scheduled s_;
  int64_t tiles_ = 1, groups_ = 1;
  Buffer keys_, values_, tile_;
  Var n_name_ = make_var("num_keys");
  Var all_name_ = make_var("all_keys");
  Expr all_;          // keys that any row sees; null: all
  Expr n_, n_value_;  // keys that there are, or that a strip sees; null: all
};

}  // namespace

std::optional<Scheduled> schedule_attention(const TemplateArgs& a) {
  const auto t = match_attention(a);
  if (!t) return {};
  return Builder(*t, a.fn).build();
}

}  // namespace tc
