// Windows that lie along the vectors: pooling with the channels first.
//
//   y[.., o] = combine over (across, k)  f(x[.., o * stride + k * dilation])      o, the results of a row, side by side
//
// What a row of results reads is a row of positions p = o * stride + k * dilation. Each position is joined over the taps
// across first, in vectors that lie side by side, whatever the stride; the taps along the row are joined from there:
//
//   for rows of results, a few at a time:             shared among threads
//     row[i][p] = combine over (across)  f(x[.., p])  blocks of positions in registers; taps outside of x are skipped
//     y[i][o] = combine over (k)  row[i][o * stride + k * dilation]
//
// So a window of 13 x 13 takes 26 steps instead of 169. A few rows, because a vector that lies across two others has to
// wait until these have left the processor's queue of stores. Positions that lie in the padding hold what joins to nothing from
// the beginning; the row ends in a few more of them, so that whole vectors may be read.
#include "templates/cpu/window_rows.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/intrin.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/tile.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

constexpr int64_t kStackFloats = 1024;  // a row of so many is a local array
constexpr int64_t kMostRows = 8;
constexpr int64_t kMostColumns = 128;  // of a block
constexpr int64_t kMostUnrolled = 72;  // vectors of an unrolled loop

// Blocks of at most `most` columns, nearly equal ones.
int64_t block_columns(int64_t count, int64_t most) {
  return round_up(ceil_div(count, ceil_div(count, most)), kMaxLanes);
}

struct WindowRowsPlan {
  int64_t rows = 1;      // at once
  int64_t columns = 16;  // of a block of positions, or of results, at most
  int64_t parts = 1;     // of the outermost axis, for threads
};

class Decisions {
 public:
  Decisions(const WindowRows& w, const CpuModel& cpu, const PlanEntry& plan) : w_(w), cpu_(cpu), plan_(plan) {}

  WindowRowsPlan make() const {
    WindowRowsPlan p;
    const int64_t rows = w_.rows.empty() ? 1 : w_.rows.back().extent.value, fit = kStackFloats / w_.row_size();
    p.rows = plan_.in_range(
        "rows", [&] { return rows_at_once(rows, fit); }, 1, std::min({rows, std::max<int64_t>(fit, 1), kMostRows}));
    p.columns = plan_.number(
        "columns", [&] { return least_like(std::max(16, 8 * cpu_.vector_lanes)); }, columns());
    const int64_t outermost = w_.rows.size() > 1 ? w_.rows[0].extent.value : ceil_div(rows, p.rows);
    const int64_t steps = points(w_.across) * (w_.end - w_.begin) + w_.taps() * w_.n.extent.value;
    const bool parallel = points(w_.rows) * steps >= kParallelThreshold;
    p.parts = plan_.in_range(
        "parts", [&] { return parallel ? choose_row_blocks(1, outermost) : 1; }, 1, outermost);
    return p;
  }

 private:
  // A divisor where there is one of three and more.
  static int64_t rows_at_once(int64_t rows, int64_t free_registers) {
    const int64_t most = std::min({rows, free_registers, kMostRows});
    for (int64_t n = most; n >= 3; n--)
      if (rows % n == 0) return n;
    return std::max<int64_t>(most, 1);
  }

  // Several limits give the same blocks: the least of them stands for all.
  int64_t least_like(int64_t most) const {
    auto same = [&](int64_t count, int64_t a, int64_t b) {
      return ceil_div(count, a) == ceil_div(count, b) || block_columns(count, a) == block_columns(count, b);
    };
    int64_t least = most;
    while (least > kMaxLanes && same(w_.end - w_.begin, least - kMaxLanes, most) &&
           same(w_.n.extent.value, least - kMaxLanes, most))
      least -= kMaxLanes;
    return least;
  }
  KnobValues columns() const {
    std::vector<int64_t> list;
    for (int64_t most = kMaxLanes; most <= kMostColumns; most += kMaxLanes)
      if (least_like(most) == most) list.push_back(most);
    return KnobValues::list(std::move(list), "others cut into the same blocks");
  }

  const WindowRows& w_;
  const CpuModel& cpu_;
  const PlanEntry& plan_;
};

class Builder {
 public:
  Builder(const WindowRows& w, const WindowRowsPlan& plan)
      : w_(w), plan_(plan), size_(w.row_size()), count_(plan.rows) {
    row_ =
        make_buffer("row", DType::F32, {Dim(count_ * size_)}, size_ <= kStackFloats ? Scope::Stack : Scope::Workspace);
    for (const Axis& r : w.rows) rows_.push_back({r.var, Expr(r.var)});
  }

  Stmt build() {
    if (w_.rows.empty()) return with_rows(seq({join_across(0), join_along(0)}));
    const Axis& last = w_.rows.back();
    Expr count = last.extent;
    Var number = last.var;
    if (count_ > 1) {
      const int64_t groups = ceil_div(last.extent.value, count_);
      number = make_var(last.var->name + "_o");
      count = groups;
    }
    Stmt body = seq({over_rows(number, [&](const Expr& i) { return join_across(i); }),
                     over_rows(number, [&](const Expr& i) { return join_along(i); })});
    if (w_.rows.size() > 1) body = loop(number, count, body);
    for (size_t i = w_.rows.size() - 1; i-- > 1;) body = loop(w_.rows[i].var, w_.rows[i].extent, body);
    const Var outer = w_.rows.size() > 1 ? w_.rows[0].var : number;
    return shared(outer, w_.rows.size() > 1 ? w_.rows[0].extent.value : *as_const_int(count), body);
  }

 private:
  Stmt shared(const Var& outer, int64_t count, const Stmt& body) const {
    const int64_t parts = plan_.parts;
    if (parts == 1) return with_rows(loop(outer, count, body));
    const Var part = make_var("part");
    const bool even = count % parts == 0;
    const Expr begin = even ? Expr(part) * Expr(count / parts) : Expr(part) * Expr(count) / Expr(parts);
    const Expr extent = even ? Expr(count / parts) : (Expr(part) + Expr(1)) * Expr(count) / Expr(parts) - begin;
    return loop(part, parts, with_rows(loop(outer, extent, body, ForKind::Serial, begin)), ForKind::Parallel);
  }

  // The rows of a group one after the other; `number` is the group's.
  Stmt over_rows(const Var& number, const std::function<Stmt(const Expr& i)>& body) {
    if (count_ == 1) return body(0);
    const int64_t rows = w_.rows.back().extent.value;
    const Var i = make_var("i");
    rows_.back().second = Expr(number) * Expr(count_) + Expr(i);
    const Expr here = rows % count_ == 0 ? Expr(count_) : min(Expr(count_), Expr(rows) - Expr(number) * Expr(count_));
    return loop(i, here, body(Expr(i)));
  }

  using Block = std::function<Stmt(const Expr& begin, int64_t size)>;

  Stmt over_blocks(const std::string& name, int64_t count, const Block& body) const {
    const int64_t columns = block_columns(count, plan_.columns);
    if (count <= plan_.columns) return body(0, count);
    const Var b = make_var(name);
    const int64_t whole = count / columns, rest = count % columns;
    return seq({loop(b, whole, body(Expr(b) * Expr(columns), columns)),
                rest > 0 ? body(Expr(whole * columns), rest) : Stmt()});
  }
  static Stmt over_vectors(int64_t size, const std::function<Stmt(const Var& v)>& body) {
    const Var v = make_var("v");
    return loop(v, vectors(size), body(v), ForKind::Unroll);
  }
  // Lanes v * VL .. of a block.
  LanePoint at(const Point& p, const Var& axis, const Expr& begin, int64_t size, const Var& v,
               const Expr& acc = {}) const {
    const Expr offset = Expr(v) * lanes();
    return {p, axis, begin + offset, size % kMaxLanes == 0 ? Expr() : Expr(size) - offset, acc};
  }
  static Buffer accumulators(int64_t size) {
    return make_buffer("acc", DType::F32, {Dim(round_up(size, kMaxLanes))}, Scope::Register);
  }
  static Exprs vector_index(const Var& v) { return {ramp(Expr(v) * lanes())}; }

  // The ends of the rows, which no position writes.
  Stmt with_rows(const Stmt& body) const {
    const Var i = make_var("i");
    auto fill = [&](int64_t begin, int64_t end) {
      const Var p = make_var("p");
      const Expr none = identity_of(w_.c.combine, DType::F32);
      const Expr index = Expr(i) * Expr(size_) + (Expr(p) + Expr(begin));
      return begin < end ? loop(p, end - begin, store(row_, {index}, none)) : Stmt();
    };
    const Stmt ends = loop(i, count_, seq({fill(0, w_.begin), fill(w_.end, size_)}));
    return alloc(row_, seq({comment("what lies outside joins to nothing", ends), body}));
  }

  Stmt join_across(const Expr& i) const {
    return over_blocks("block", w_.end - w_.begin, [&](const Expr& offset, int64_t size) {
      const Expr begin = Expr(w_.begin) + offset, position = i * Expr(size_) + Expr(w_.position);
      const Stmt only = over_vectors(size, [&](const Var& v) {
        return store_lanes(row_, position, w_.value, at(rows_, w_.position, begin, size, v));
      });
      if (w_.across.empty() && w_.conditions.empty()) return only;
      const Buffer acc = accumulators(size);
      const Stmt start = over_vectors(size, [&](const Var& v) {
        return store(acc, vector_index(v), broadcast(identity_of(w_.c.combine, DType::F32)));
      });
      const Stmt finish = over_vectors(size, [&](const Var& v) {
        return store_lanes(row_, position, load(w_.c.reduced, {}),
                           at(rows_, w_.position, begin, size, v, load(acc, vector_index(v))));
      });
      return alloc(acc, seq({start, taps_across(acc, begin, size), finish}));
    });
  }

  Expr at_rows(const Expr& e) const {
    VarMap to;
    for (const auto& [v, value] : rows_) to[v.get()] = value;
    return simplify(substitute(e, to));
  }

  Stmt taps_across(const Buffer& acc, const Expr& begin, int64_t size) const {
    Point p = rows_;
    for (const Axis& r : w_.across) p.push_back({r.var, Expr(r.var)});
    Stmt body = over_vectors(size, [&](const Var& v) {
      return store(acc, vector_index(v), broadcast(vector_form(w_.value, at(p, w_.position, begin, size, v))),
                   w_.c.combine);
    });
    Expr all;
    for (const Expr& e : w_.conditions) all = both(all, at_rows(e));
    if (all) body = if_then(all, body);
    int64_t copies = ceil_div(size, kMaxLanes);
    bool unrolled = !all;
    for (size_t i = w_.across.size(); i-- > 0;) {
      const Axis& r = w_.across[i];
      copies *= r.extent.value;
      unrolled = unrolled && copies <= kMostUnrolled;
      body = loop(r.var, r.extent, body, unrolled ? ForKind::Unroll : ForKind::Serial);
    }
    return body;
  }

  Stmt join_along(const Expr& i) const {
    return over_blocks("block", w_.n.extent.value, [&](const Expr& begin, int64_t size) {
      const Buffer acc = accumulators(size);
      const Stmt start = over_vectors(size, [&](const Var& v) {
        return store(acc, vector_index(v), broadcast(vector_form(w_.c.init, at(rows_, w_.n.var, begin, size, v))));
      });
      const Stmt finish = over_vectors(size, [&](const Var& v) {
        return store_lanes(w_.c.out, w_.c.out_index, w_.c.epilogue,
                           at(rows_, w_.n.var, begin, size, v, load(acc, vector_index(v))));
      });
      return alloc(acc, seq({start, taps_along(acc, i * Expr(size_) + begin * Expr(w_.stride), size), finish}));
    });
  }

  // `begin`: in the rows.
  Stmt taps_along(const Buffer& acc, const Expr& begin, int64_t size) const {
    const Expr tap = w_.k.var ? Expr(w_.k.var) * Expr(w_.dilation) : Expr(0);
    const Stmt body = over_vectors(size, [&](const Var& v) {
      const Expr first = begin + Expr(v) * lanes() * Expr(w_.stride) + tap;
      if (w_.stride == 1) return store(acc, vector_index(v), load(row_, {ramp(first)}), w_.c.combine);
      const Buffer taken = make_buffer("taken", DType::F32, {Dim(kMaxLanes)}, Scope::Register);
      const Exprs memory = row_->scope == Scope::Stack ? Exprs() : Exprs{0};
      return alloc(taken, seq({intrin("load_strided", {{taken, {}}, {row_, memory}}, {first, Expr(w_.stride)}),
                               store(acc, vector_index(v), load(taken, {ramp(0)}), w_.c.combine)}));
    });
    if (!w_.k.var) return body;
    const bool unrolled = ceil_div(size, kMaxLanes) * w_.taps() <= kMostUnrolled;
    return loop(w_.k.var, w_.k.extent, body, unrolled ? ForKind::Unroll : ForKind::Serial);
  }

  const WindowRows& w_;
  const WindowRowsPlan plan_;
  const int64_t size_, count_;  // of a row, and rows at once
  Buffer row_;
  Point rows_;  // where the row is among the axes around it
};

}  // namespace

std::optional<Scheduled> schedule_window_rows(const TemplateArgs& a) {
  const auto w = match_window_rows(a);
  if (!w) return {};
  const WindowRowsPlan plan = Decisions(*w, a.cpu, a.plan).make();
  Scheduled s;
  s.body = seq({fill_border(w->c), Builder(*w, plan).build()});
  bind_operands(s, w->c);
  s.family = "window_rows";
  std::string across;
  for (const Axis& r : w->across) across += (across.empty() ? "" : ", ") + r.var->name;
  s.description = plan.rows == 1 ? "a row" : to_text(plan.rows) + " rows";
  s.description += across.empty() ? " at a time" : " at a time, joined over " + across + " in vectors";
  if (w->k.var) s.description += ", then over " + w->k.var->name;
  if (w->stride > 1)
    s.description += " from every " + to_text(w->stride) +
                     (w->stride == 2   ? "nd"
                      : w->stride == 3 ? "rd"
                                       : "th") +
                     " position";
  return s;
}

}  // namespace tc
