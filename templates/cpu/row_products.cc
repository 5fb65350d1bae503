// Products of rows with rows: what is summed lies side by side in both factors, of which none is known while compiling (a matrix times
// another one transposed; the scores of one query). And other sums over rows of two operands: distances.
//
//   for batches, parts of the columns:                         shared among threads
//     for columns, NR at a time; for rows, MR at a time:
//       acc[MR][NR] = 0                                        a vector of partial sums each
//       for pieces of the sum: for v in vectors of a piece:
//         acc[i][n] += x[row i, piece, v] * w[column n, piece, v]
//       y[row i, column n] = epilogue(the lanes of acc[i][n] joined)
//
// Vectors of columns would need w turned into panels first, which takes longer than all products where there are few rows.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "support/text.h"
#include "templates/cpu/lane_sums.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

// To join the lanes of a sum takes as long as to turn twelve terms of a column, which are then turned for all rows. Measured on Zen 4,
// new time over that of panels: 512 terms, 8 rows 0.63, 16 rows 0.80, 24 rows 0.89, 32 rows 0.94; 64 terms, 8 rows 1.29.
constexpr int64_t kMostRows = 24, kTermsPerRow = 12;
constexpr int64_t kFewestLanes = 16, kMostTileRows = 4, kMostTileColumns = 8, kMostParts = 32;

struct RowProducts {
  Canonical c;
  std::vector<Axis> outer;   // of the result: those that both factors have
  std::vector<Axis> rows;    // those of the one
  Axis column;               // that of the other
  std::vector<Axis> pieces;  // of the sum, around `lane`
  Axis lane;
  Expr term;               // of a load of each
  bool is_product = true;  // there are other forms, which many rows are for
};

std::vector<Axis> joined(std::vector<Axis> a, const std::vector<Axis>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The two loads that terms are made of; null where there are others, or where a term depends on its position.
struct Factors {
  Expr x, w;
  bool is_product;
};
std::optional<Factors> factors(const TemplateArgs& a) {
  const Canonical& c = *a.canonical;
  const auto loads = loads_of(c.value);
  if (loads.size() != 2) return {};
  for (const Load* l : loads)
    if (l->buffer->dtype != DType::F32) return {};
  const Apply* k = as<Apply>(c.value);
  const bool product = k && k->op == Op::Mul && as<Load>(k->args[0]) && as<Load>(k->args[1]);
  if (product) {
    const bool known = is_constant(k->args[0], c, a.constant_input) || is_constant(k->args[1], c, a.constant_input);
    return known || is_costly(c.epilogue) ? std::nullopt : std::optional(Factors{k->args[0], k->args[1], true});
  }
  for (const auto* list : {&c.axes, &c.raxes})
    for (const Axis& x : *list)
      if (uses_as_value(c.value, x.var)) return {};
  return Factors{load(loads[0]->buffer, loads[0]->index), load(loads[1]->buffer, loads[1]->index), false};
}

// `e` with other indices for its two loads.
Expr read_at(const Expr& e, const Factors& f, const Expr& x_index, const Expr& w_index) {
  return rewrite(e, [&](const Expr& v) -> Expr {
    if (!as<Load>(v)) return {};
    const bool is_x = structurally_equal(v, f.x);
    return load(as<Load>(v)->buffer, {is_x ? x_index : w_index});
  });
}

std::optional<RowProducts> match(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value || a.options.strict_fp) return {};
  RowProducts r{*a.canonical, {}, {}, {}, {}, {}, {}};
  Canonical& c = r.c;
  if (c.combine != Op::Add || c.raxes.empty() || c.value->dtype != DType::F32 || c.out->dtype != DType::F32 || c.border)
    return {};
  auto f = factors(a);
  if (!f) return {};
  std::vector<Var> vars = vars_of(c.axes);
  for (const Axis& k : c.raxes) vars.push_back(k.var);
  auto x_at = offset_of(as<Load>(f->x)->index[0], vars), w_at = offset_of(as<Load>(f->w)->index[0], vars);
  if (!x_at || !w_at) return {};
  // The columns are those of the operand with more of them.
  const auto own = [&](const Offset& of, const Offset& other) {
    int64_t n = 1;
    for (const Axis& axis : c.axes)
      if (of.of(axis.var) != 0 && other.of(axis.var) == 0) n *= axis.extent.value;
    return n;
  };
  if (own(*x_at, *w_at) > own(*w_at, *x_at)) std::swap(f->x, f->w), std::swap(x_at, w_at);
  std::vector<Axis> columns;
  for (const Axis& axis : c.axes) {
    const bool in_x = x_at->of(axis.var) != 0, in_w = w_at->of(axis.var) != 0;
    if (!in_x && !in_w) return {};
    (in_x && in_w ? r.outer : in_x ? r.rows : columns).push_back(axis);
  }
  Expr x_index = as<Load>(f->x)->index[0], w_index = as<Load>(f->w)->index[0];
  std::vector<Axis> sum = c.raxes;
  std::stable_sort(sum.begin(), sum.end(),
                   [&](const Axis& p, const Axis& q) { return w_at->of(p.var) > w_at->of(q.var); });
  merge_axes(sum, {}, {&x_index, &w_index});
  if (a.options.open_axes.empty()) {
    merge_axes(columns, {&c.epilogue, &c.init}, {&w_index, &c.out_index});
    merge_axes(r.rows, {&c.epilogue, &c.init}, {&x_index, &c.out_index});
  }
  if (columns.size() != 1 || r.rows.size() > 1 ||
      !offset_of(c.out_index, vars_of(joined(r.outer, joined(r.rows, columns)))))
    return {};
  r.column = columns[0];
  r.lane = sum.back();
  r.pieces.assign(sum.begin(), sum.end() - 1);
  const auto steps_by_one = [&](const Expr& index) {
    const auto at = offset_of(index, vars_of(joined(joined(r.outer, r.rows), joined(columns, sum))));
    return at && at->of(r.lane.var) == 1;
  };
  r.term = read_at(c.value, *f, x_index, w_index);
  r.is_product = f->is_product;
  if (!steps_by_one(x_index) || !steps_by_one(w_index) || !has_vector_form(r.term, r.lane.var)) return {};
  return r;
}

// Is it faster than to turn one of them first?
bool pays(const RowProducts& r) {
  const auto open = [](const Axis& x) { return is_open(x.extent.value); };
  const bool any_open = std::any_of(r.outer.begin(), r.outer.end(), open) ||
                        std::any_of(r.rows.begin(), r.rows.end(), open) ||
                        std::any_of(r.pieces.begin(), r.pieces.end(), open) || open(r.column) || open(r.lane);
  const int64_t rows = points(r.rows), terms = points(r.pieces) * r.lane.extent.value;
  const bool few = r.rows.empty() || !r.is_product || (rows <= kMostRows && rows * kTermsPerRow <= terms);
  return !any_open && few && r.lane.extent.value >= kFewestLanes;
}

struct Plan {
  int64_t rows = 1, columns = 1;  // of a tile
  int64_t parts = 1;              // of the tiles of columns
};

// Sums, and a load of each row and column, in registers; eight sums at least, since each waits for the one before it.
Plan decide(const RowProducts& r, const TemplateArgs& a) {
  const int64_t all = r.column.extent.value, most_rows = points(r.rows);
  Plan p;
  p.rows = a.plan.in_range(
      "rows", [&] { return std::min(kMostTileRows, most_rows); }, 1, most_rows);
  p.columns = a.plan.in_range(
      "columns",
      [&] {
        return std::min(
            {std::max<int64_t>((a.cpu.vector_registers - p.rows - 1) / (p.rows + 1), 1), kMostTileColumns, all});
      },
      1, std::min<int64_t>(all, 64));
  const int64_t work = points(r.outer) * most_rows * all * points(r.pieces) * r.lane.extent.value,
                tiles = all / p.columns;
  p.parts = a.plan.in_range(
      "parts",
      [&]() -> int64_t {
        if (work < kParallelThreshold) return 1;
        return std::clamp<int64_t>(kMostParts / points(r.outer), 1, tiles);
      },
      1, tiles);
  return p;
}

class Builder {
 public:
  Builder(const RowProducts& r, const Plan& p, bool parallel)
      : r_(r), p_(p), kind_(parallel ? ForKind::Parallel : ForKind::Serial) {
    for (const auto* list : {&r.outer, &r.pieces})
      for (const Axis& a : *list) at_.push_back({a.var, Expr(a.var)});
  }

  Stmt build() const {
    const int64_t all = r_.column.extent.value, whole = all / p_.columns, rest = all % p_.columns;
    const Var part = make_var("part"), t = make_var(r_.column.var->name + "_o");
    Stmt body = rows(p_.columns, Expr(t) * Expr(p_.columns));
    if (p_.parts == 1) {
      body = loop(t, whole, body);
    } else {
      const Expr begin = Expr(part) * Expr(whole) / Expr(p_.parts),
                 end = (Expr(part) + Expr(1)) * Expr(whole) / Expr(p_.parts);
      body = loop(t, end - begin, body, ForKind::Serial, begin);
    }
    body = chunks(body, part, p_.parts);
    return rest > 0 ? seq({body, chunks(rows(rest, Expr(whole * p_.columns)), part, 1)}) : body;
  }

 private:
  // For all batches, in parts.
  Stmt chunks(Stmt body, const Var& part, int64_t parts) const {
    const int64_t total = points(r_.outer) * parts;
    if (total == 1) return body;
    const Var chunk = make_var("chunk");
    ChunkDigits digits{Expr(chunk)};
    if (parts > 1) digits.take(part, Expr(parts), r_.outer.empty());
    for (size_t i = r_.outer.size(); i-- > 0;) digits.take(r_.outer[i].var, Expr(r_.outer[i].extent), i == 0);
    body = digits.around(body);
    return loop(chunk, total, body, kind_);
  }

  Stmt rows(int64_t columns, const Expr& column) const {
    if (r_.rows.empty()) return tile(1, {}, columns, column);
    const Axis& row = r_.rows[0];
    const int64_t whole = row.extent.value / p_.rows, rest = row.extent.value % p_.rows;
    const Var t = make_var(row.var->name + "_o");
    const Stmt full = loop(t, whole, tile(p_.rows, Expr(t) * Expr(p_.rows), columns, column));
    return rest > 0 ? seq({full, tile(rest, Expr(whole * p_.rows), columns, column)}) : full;
  }

  // The sums of `count` rows from `first` on with `columns` from `column` on.
  Stmt tile(int64_t count, const Expr& first, int64_t columns, const Expr& column) const {
    LaneTile t{at_, {}, r_.column.var, first, column, count, columns};
    if (first) t.row = r_.rows[0].var;
    return lane_sums({r_.c, r_.pieces, r_.lane, r_.term}, t);
  }

  const RowProducts& r_;
  const Plan p_;
  const ForKind kind_;
  Point at_;
};

}  // namespace

std::optional<Scheduled> schedule_row_products(const TemplateArgs& a) {
  const auto r = match(a);
  if (!r || !pays(*r)) return {};
  const Plan p = decide(*r, a);
  Scheduled s;
  const int64_t work =
      points(r->outer) * points(r->rows) * r->column.extent.value * points(r->pieces) * r->lane.extent.value;
  s.body = Builder(*r, p, work >= kParallelThreshold).build();
  bind_operands(s, r->c);
  s.family = "row_products";
  s.description = to_text(p.rows) + " rows by " + to_text(p.columns) +
                  " columns, a vector of partial sums each; both are read along the sum";
  return s;
}

}  // namespace tc
