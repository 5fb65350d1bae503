// Sums of products as register tiles.
//
//   for outer, panel of NR columns:                      chunks for threads; a panel's rows may be cut into blocks
//     for rows, MR at a time:                            (the last tile is smaller and has its own constants)
//       acc[MR][NR] = start                              a bias, or zero
//       for k: acc[i][v] += p[row i, k] * q[k, v]        one broadcast times vectors of the panel
//       y[row i, v] = epilogue(acc[i][v])                activation, residual: on registers
//
// Text that is compiled for vectors of several lengths walks a panel in strips of so many vectors, around the rows, so that
// the sums of a tile fill the registers of each processor, while all read one panel.
//
// The panel is outermost so that weights stream from memory once, while the left operand stays in the caches. Weights
// that are known are packed at compile time as [panel][k][column in panel], padded with zeros to whole panels; at run
// time only vectors of y that stick out of the tensor are cut. A convolution is the same thing: its rows are pixels,
// and its sum runs over (kernel row, kernel column and channel), which lie side by side in memory. The tile itself is in
// contraction_tile.cc.
#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/contraction_builder.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/row_blocks.h"

namespace tc {

namespace {

/// ceil(n / size)
Expr blocks_of(const Expr& n, int64_t size) { return (n + Expr(size - 1)) / Expr(size); }

}  // namespace

ContractionBuilder::ContractionBuilder(const Contraction& m, const ContractionPlan& plan)
    : m_(plan.images_outside ? with_images_outside(m) : m), plan_(plan), columns_(plan.tile.columns) {
  steps_ = m.bytes ? points(m.k) / m.k.back().extent.value * quads_per_run(m) : points(m.k);
}

Stmt ContractionBuilder::build(Scheduled& s) {
  if (m_.bytes)
    pack_quads(s);
  else if (m_.right == Contraction::Right::Packed)
    pack(s);
  if (m_.right == Contraction::Right::Panels) packed_ = m_.q;
  return chunks();
}

// --- the packed right factor
void ContractionBuilder::pack(Scheduled& s) {
  const Var panel = make_var("nb"), column = make_var("ni");
  const Expr at = Expr(panel) * Expr(columns_) + Expr(column);
  Expr value = substitute(m_.q_value, {{m_.n.var.get(), at}});
  if (m_.n.extent.value % columns_ != 0) value = select(at < Expr(m_.n.extent), value, zero(value->dtype));
  std::vector<Axis> axes = m_.q_outer;
  axes.push_back({panel, Dim(plan_.panels)});
  axes.insert(axes.end(), m_.q_k.begin(), m_.q_k.end());
  axes.push_back({column, Dim(columns_)});
  std::string layout = "packed: ";
  for (const Axis& a : m_.q_outer) layout += a.var->name + ", ";
  layout += m_.n.var->name + " block, ";
  for (const Axis& a : m_.q_k) layout += a.var->name + ", ";
  packed_ = add_packed(s, m_.c, std::move(axes), value, layout + m_.n.var->name + " in block");
}

// --- chunks: outer axes, panels, row blocks, in this order
Stmt ContractionBuilder::chunks() {
  if ((can_turn(m_) && !has_shared_rows(m_)) || should_copy(m_, plan_)) return panel_by_panel();
  const Var chunk = make_var("part");
  const bool per_panel = m_.right != Contraction::Right::Repacked;
  const int64_t inner = per_panel ? plan_.panels * plan_.row_blocks : 1;
  const int64_t total = points(m_.outer) * inner;
  const bool plain_panel = m_.outer.empty() && plan_.row_blocks == 1;
  const Var panel_var = plain_panel ? chunk : make_var("nb");
  ChunkDigits digits{Expr(chunk)};
  if (per_panel && !plain_panel) {
    const bool several = plan_.panels > 1, outermost = m_.outer.empty();
    if (plan_.row_blocks > 1) block_ = make_var("rows");
    if (several && plan_.panels_inside) digits.take(panel_var, Expr(plan_.panels), outermost && !block_);
    if (block_) digits.take(block_, Expr(plan_.row_blocks), outermost && (!several || plan_.panels_inside));
    if (several && !plan_.panels_inside) digits.take(panel_var, Expr(plan_.panels), outermost);
  }
  for (size_t i = m_.outer.size(); i-- > 0;) {
    const Axis& a = m_.outer[i];
    const Var v = make_var(a.var->name);
    at_.push_back({a.var, Expr(v)});
    digits.take(v, Expr(a.extent.value), i == 0);
  }
  const Expr one_panel = plan_.panels > 1 ? Expr(panel_var) : Expr(0);
  Stmt body = per_panel ? panel_rows(one_panel, chunk) : repacked();
  body = digits.around(body);
  if (total == 1) return substitute(body, {{chunk.get(), Expr(0)}});
  const Var shown = plain_panel ? make_var("nb") : chunk;
  body = substitute(body, {{chunk.get(), Expr(shown)}});
  if (bool(m_.n_end) && plain_panel && !plan_.parallel) return loop(shown, blocks_of(m_.n_end, columns_), body);
  return loop(shown, total, body, plan_.parallel ? ForKind::Parallel : ForKind::Serial);
}

// Each panel is copied when its turn comes; chunks have several, in the same memory.
Stmt ContractionBuilder::panel_by_panel() {
  constexpr int64_t kMostChunks = 16;  // each has memory of its own
  one_panel_ = true;
  packed_ = make_buffer(m_.q->name + "_panel", m_.type, {Dim(steps_ * columns_)}, Scope::Workspace);
  const int64_t groups = plan_.parallel ? std::clamp<int64_t>(kMostChunks / points(m_.outer), 1, plan_.panels) : 1,
                total = points(m_.outer) * groups;
  const Var chunk = make_var("part"), panel = make_var("nb"), group = make_var("group");
  ChunkDigits digits{Expr(chunk)};
  if (groups > 1) digits.take(group, Expr(groups), m_.outer.empty());
  for (size_t i = m_.outer.size(); i-- > 0;) {
    const Axis& a = m_.outer[i];
    const Var v = make_var(a.var->name);
    at_.push_back({a.var, Expr(v)});
    digits.take(v, Expr(a.extent.value), i == 0);
  }
  const Expr one = plan_.panels > 1 ? Expr(panel) : Expr(0);
  const std::string what = "a panel of " + m_.q->name;
  const Stmt copy = m_.right == Contraction::Right::Direct
                        ? comment(what, copied_panel(m_, columns_, at_, one, packed_))
                        : comment(what + ", turned", turned_panel(m_, columns_, at_, one, packed_, 0));
  m_.right = Contraction::Right::Repacked;
  Stmt body = seq({copy, panel_rows(one, nullptr)});
  if (groups > 1) {
    const Expr begin = Expr(group) * Expr(plan_.panels) / Expr(groups),
               end = (Expr(group) + Expr(1)) * Expr(plan_.panels) / Expr(groups);
    body = loop(panel, end - begin, body, ForKind::Serial, begin);
  } else if (plan_.panels > 1) {
    body = loop(panel, plan_.panels, body);
  }
  body = alloc(packed_, body);
  body = digits.around(body);
  if (total == 1) return substitute(body, {{chunk.get(), Expr(0)}});
  return loop(chunk, total, body, plan_.parallel ? ForKind::Parallel : ForKind::Serial);
}

// q of one outer point copied to rows along n first.
Stmt ContractionBuilder::in_shared_rows() {
  const SharedRows rows = shared_rows(m_, columns_, at_);
  m_.q = rows.buffer;
  m_.q_at = rows.at;
  m_.right = Contraction::Right::Direct;
  whole_vectors_ = true;
  return alloc(rows.buffer, seq({rows.copy, all_panels()}));
}

// q of one outer point copied to [panel][k][column] first.
Stmt ContractionBuilder::repacked() {
  if (has_shared_rows(m_)) return in_shared_rows();
  packed_ = make_buffer(m_.q->name + "_packed", m_.type, {Dim(plan_.panels * steps_ * columns_)}, Scope::Workspace);
  const int64_t n = m_.n.extent.value;
  const Var column = make_var("n");
  Point at = at_;
  at.push_back({m_.n.var, Expr(column)});
  std::vector<Var> ks;
  const Expr k = along_sum(at, ks);
  const Expr to = (Expr(column) / Expr(columns_) * Expr(steps_) + k) * Expr(columns_) +
                  apply(Op::Mod, {Expr(column), Expr(columns_)});
  Stmt copy = store(packed_, {to}, load(m_.q, {offset_expr(m_.q_at, at)}));
  for (size_t i = ks.size(); i-- > 0;) copy = loop(ks[i], m_.k[i].extent, copy);
  copy = loop(column, n, copy);
  Stmt zeros;
  if (n % columns_ != 0) {
    const Var row = make_var("k"), pad = make_var("n");
    const int64_t used = n % columns_;
    const Expr where = (Expr((plan_.panels - 1) * steps_) + Expr(row)) * Expr(columns_) + Expr(used) + Expr(pad);
    zeros = loop(row, steps_, loop(pad, columns_ - used, store(packed_, {where}, zero(m_.type))));
  }
  const std::string what = m_.q->name + " in panels of " + to_text(int64_t(columns_)) + " columns";
  return alloc(packed_, seq({comment(what, seq({copy, zeros})), all_panels()}));
}

Stmt ContractionBuilder::all_panels() {
  const Var panel = make_var("nb");
  const Stmt rows = panel_rows(plan_.panels > 1 ? Expr(panel) : Expr(0), nullptr);
  return plan_.panels > 1 ? loop(panel, plan_.panels, rows) : rows;
}

// --- rows of one panel
Stmt ContractionBuilder::panel_rows(const Expr& panel, const Var& chunk) {
  panel_ = panel;
  if (plan_.prefetch > 0 && chunk)
    next_panel_ = min((Expr(chunk) + Expr(1)) / Expr(plan_.row_blocks), Expr(points(m_.outer) * plan_.panels - 1));
  if (m_.rows.empty()) return tile(1, {});
  if (plan_.tile_step > 0) return seq({tile_rows(), intrin("byte_tiles_end", {})});
  return in_strips([&] { return tile_rows(); });
}

Stmt ContractionBuilder::tile_rows() {
  const size_t tiled_at = tiled_axis();
  const Axis& tiled = m_.rows[tiled_at];
  const int64_t mr = plan_.row_pairs ? 2 : plan_.tile.rows, whole = tiled.extent.value / mr,
                rest = tiled.extent.value % mr;
  const bool flat = tiled_at == 0;
  // A block is a run of the outermost row axis, or a run of tiles where there is only one.
  const int64_t count = flat ? whole : m_.rows[0].extent.value;
  Expr begin = 0, extent = count;
  if (block_) {
    const int64_t blocks = plan_.row_blocks;
    if (count % blocks == 0) {
      begin = Expr(block_) * Expr(count / blocks);
      extent = count / blocks;
    } else {
      begin = Expr(block_) * Expr(count) / Expr(blocks);
      extent = (Expr(block_) + Expr(1)) * Expr(count) / Expr(blocks) - begin;
    }
  }
  const Var t = make_var(tiled.var->name + "_o");
  std::vector<Var> loops;
  const size_t mark = at_.size();
  for (size_t i = 0; i < tiled_at; i++) {
    loops.push_back(make_var(m_.rows[i].var->name));
    at_.push_back({m_.rows[i].var, Expr(loops.back())});
  }
  Expr index = Expr(t);  // tiles so far in this panel
  if (!flat) {
    index = Expr(loops[0]) - begin;
    for (size_t i = 1; i < loops.size(); i++) index = index * Expr(m_.rows[i].extent) + Expr(loops[i]);
    index = index * Expr(std::max<int64_t>(whole, 1)) + Expr(t);
  } else {
    index = Expr(t) - begin;
  }
  const bool in_ranges = has_ranges_of_tiles(m_);
  const auto steps = name_row_steps();
  Stmt full, tail;
  if (in_ranges) {
    full = tiles_in_ranges(tiled);
  } else if (whole > 0) {
    full = with_prefetch(index, [&] { return tile(mr, Expr(t) * Expr(mr)); });
    full = whole == 1 && !(flat && block_)
               ? substitute(full, {{t.get(), Expr(0)}})
               : loop(t, flat ? extent : Expr(whole), full, ForKind::Serial, flat ? begin : Expr(0));
  }
  if (rest > 0 && !in_ranges) tail = tile(rest, Expr(whole * mr));
  const bool one_shape = in_ranges || whole == 0 || rest == 0;
  if (!one_shape) full = with_tiles(mr, full), tail = with_tiles(rest, tail);
  if (rest > 0 && flat && block_) tail = if_then(eq(Expr(block_), Expr(plan_.row_blocks - 1)), tail);
  Stmt body = seq({full, tail});
  for (size_t i = steps.size(); i-- > 0;) body = let(steps[i].first, steps[i].second, body);
  for (size_t i = loops.size(); i-- > 0;)
    body = loop(loops[i], i == 0 ? extent : Expr(m_.rows[i].extent), body, ForKind::Serial, i == 0 ? begin : Expr(0));
  at_.resize(mark);
  return one_shape ? with_tiles(whole > 0 ? mr : rest, body) : body;
}

bool has_ranges_of_tiles(const Contraction& m) {
  return std::any_of(m.ranges.begin(), m.ranges.end(), [&](const TapRange& r) { return r.row == m.rows.back().var; });
}

// Tiles of rows that have the same steps: they end where a step begins or ends.
Stmt ContractionBuilder::tiles_in_ranges(const Axis& tiled) {
  std::set<int64_t> ends = {0, tiled.extent.value};
  for (const TapRange& r : m_.ranges) {
    if (r.row != tiled.var) continue;
    const Axis& k = *std::find_if(m_.k.begin(), m_.k.end(), [&](const Axis& a) { return a.var == r.k; });
    for (int64_t step = 0; step < k.extent.value; step++)
      for (const int64_t row : {r.first_row(step), r.behind_row(step)})
        if (row < tiled.extent.value) ends.insert(row);
  }
  Stmts list;
  for (auto it = ends.begin(); std::next(it) != ends.end(); ++it) {
    const int64_t begin = *it, count = *std::next(it) - begin,
                  height = ceil_div(count, ceil_div(count, plan_.tile.rows)), whole = count / height;
    const Var t = make_var(tiled.var->name + "_o");
    ranged_row_ = begin;
    const Stmt body = tile(height, Expr(t) * Expr(height) + Expr(begin));
    list.push_back(whole == 1 ? substitute(body, {{t.get(), Expr(0)}}) : loop(t, whole, body));
    if (count % height > 0) list.push_back(tile(count % height, Expr(begin + whole * height)));
  }
  return seq(std::move(list));
}

// The tiles of a panel share the work of fetching the next one: each k step asks for the next few elements.
Stmt ContractionBuilder::with_prefetch(const Expr& index, const std::function<Stmt()>& make) {
  if (next_panel_) prefetch_ = next_panel_ * Expr(steps_ * columns_) + index * Expr(steps_ * plan_.prefetch);
  const Stmt body = make();
  prefetch_ = {};
  return body;
}

namespace {

std::string count_of_vectors(const Tile& t) {
  return to_text(int64_t(t.vectors)) + (t.vectors == 1 ? " vector" : " vectors");
}

std::string describe(const Contraction& m, const ContractionPlan& p) {
  std::string s;
  const std::string n = to_text(int64_t(p.tile.columns)), name = m.n.var->name;
  if (m.rows.empty()) {
    s = n + " columns of " + name + " in registers";
    if (p.unroll_k > 1) s += ", " + to_text(p.unroll_k) + " partial sums each";
  } else {
    s = (p.row_pairs ? "twice " : "") + to_text(int64_t(p.tile.rows)) + " rows by " +
        (p.tile.vectors > 0 ? count_of_vectors(p.tile) : n + " columns") + (p.tile_step > 0 ? "" : " in registers");
  }
  if (m.right == Contraction::Right::Packed)
    s += p.panels_inside ? "; weights in panels" : "; weights in panels, read once";
  if (m.right == Contraction::Right::Repacked)
    s += "; " + m.q->name +
         (has_shared_rows(m) ? " copied to rows along " + name + " first" : " copied to panels first");
  if (m.bytes)
    s += p.tile_step > 0 ? "; tiles of bytes, " + to_text(p.tile_step) + " of a sum at a time"
                         : "; four products of bytes at a time";
  if (p.panels_inside && p.row_blocks > 1)
    s += "; rows in " + to_text(p.row_blocks) + " blocks, each with all panels";
  else if (p.panels_inside)
    s += "; image by image with all panels";
  else if (p.row_blocks > 1)
    s += "; each panel's rows in " + to_text(p.row_blocks) + " chunks";
  if (p.prefetch > 0) s += "; the next panel is fetched ahead";
  return s;
}

}  // namespace

Stmt contraction_loops(const Contraction& m, const ContractionPlan& plan, Scheduled& s) {
  return ContractionBuilder(m, plan).build(s);
}

Stmt copy_to_panels(const Contraction& m, const ContractionPlan& plan, const Buffer& panels) {
  const int64_t columns = plan.tile.columns, n = m.n.extent.value;
  const Var panel = make_var("nb"), column = make_var("ni");
  const Expr panels_used = m.n_end ? blocks_of(m.n_end, columns) : Expr(plan.panels);
  if (can_turn(m)) {
    const Expr one = plan.panels > 1 ? Expr(panel) : Expr(0);
    const Stmt copy = turned_panel(m, columns, {}, one, panels, one * Expr(points(m.k) * columns));
    return plan.panels > 1 ? loop(panel, panels_used, copy) : copy;
  }
  const Expr at_n = (plan.panels > 1 ? Expr(panel) * Expr(columns) : Expr(0)) + Expr(column);
  std::vector<std::pair<Var, Expr>> at = {{m.n.var, at_n}};
  std::vector<std::pair<Var, Expr>> loops;
  Expr k = 0;
  for (const Axis& a : m.k) {
    const Var v = make_var(a.var->name);
    loops.push_back({v, m.k_end ? m.k_end : Expr(a.extent)});
    at.push_back({a.var, Expr(v)});
    k = k * Expr(a.extent) + Expr(v);
  }
  // What lies side by side in memory is read in the innermost loop.
  loops.insert(m.q_at.of(m.n.var) == 1 ? loops.end() : loops.begin(), {column, Expr(columns)});
  const Expr to = ((plan.panels > 1 ? Expr(panel) * Expr(points(m.k)) : Expr(0)) + k) * Expr(columns) + Expr(column);
  Expr value = load(m.q, {offset_expr(m.q_at, at)});
  if (n % columns != 0) value = select(at_n < Expr(n), value, zero(value->dtype));
  Stmt copy = store(panels, {to}, value);
  for (size_t i = loops.size(); i-- > 0;) copy = loop(loops[i].first, loops[i].second, copy);
  return plan.panels > 1 ? loop(panel, panels_used, copy) : copy;
}

namespace {

/// Multiplications that the ranges leave.
int64_t macs_in_ranges(const Contraction& m) {
  const auto extent = [](const std::vector<Axis>& axes, const Var& v) {
    return std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.var == v; })->extent.value;
  };
  double macs = double(points(m.outer)) * double(points(m.rows)) * double(points(m.k)) * double(m.n.extent.value);
  for (const TapRange& r : m.ranges) {
    const int64_t rows = extent(m.rows, r.row), steps = extent(m.k, r.k);
    int64_t inside = 0;
    for (int64_t k = 0; k < steps; k++) inside += std::min(r.behind_row(k), rows) - std::min(r.first_row(k), rows);
    macs *= double(inside) / (double(rows) * double(steps));
  }
  return int64_t(macs);
}

}  // namespace

std::optional<Scheduled> schedule_contraction(const TemplateArgs& a) {
  auto m = match_contraction(a, false, true);
  if (!m) m = match_double_contraction(a);
  if (!m) m = match_byte_contraction(a);
  if (!m) return {};
  const ContractionPlan plan = plan_contraction(*m, a.cpu, a.options);
  Scheduled s;
  if (m->bytes) {
    fold_zero_points(*m, s, plan.tile_step == 0);
    m->c.epilogue = pack_known(s, m->c, a.constant_input, m->c.epilogue, m->n);
  }
  s.body = seq({fill_border(m->c), contraction_loops(*m, plan, s)});
  bind_operands(s, m->c);
  s.family = m->rows.empty() ? "matrix_vector" : "matmul";
  s.description = describe(*m, plan);
  if (!m->ranges.empty()) {
    s.macs = macs_in_ranges(*m);
    s.description += "; no products with what lies outside of the image";
  }
  return s;
}

}  // namespace tc
