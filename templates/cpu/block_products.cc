// Sums of products of bytes in blocks, each with a scale: y[rows, n] = epilogue(sum(b) s[row, b] * scale[b, n] * dot), where
//
//   dot = sum(k) q[row, b, k] * (number[b, k, n] - zero[b, n])
//       = sum(k) q[row, b, k] * number[b, k, n]  -  zero[b, n] * sum(k) q[row, b, k]
//
// is a whole number, and exact. The numbers of few bits are packed from 0 on in words of 32 bits of one column, so that
// the numbers of four steps are the bytes of the word after a shift and a mask (dot_words). Sums of q are computed first, for
// they are the same for all columns.
//
//   row_sums[row, b] = sum(k) q[row, b, k]
//   for panel of columns:                                chunks for threads
//     for rows, MR at a time, block b:
//       dot[v][i] = words[b][v] . q[row i, b]            32 steps of k at a time
//       acc[i][v] += (s[row i, b] * scale[b, v]) * f32(dot[v][i] - zero[b, v] * row_sums[row i, b])
//     y[row i, v] = epilogue(acc[i][v])
//
// Where each row has weights of its own (those of an expert), panels of all experts are packed, and a tile is one row.
#include "templates/cpu/block_products.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"

namespace tc {
namespace {

constexpr int64_t kMostRows = 4;  // that the model takes
constexpr int64_t kMostStatedRows = 8, kMostColumns = 256;
constexpr int64_t kManyRows = 16;  // their sums are shared among threads

struct BlockProductsPlan {
  int64_t rows = 1, columns = 16;  // of a tile
  bool fetches_ahead = false;      // a single tile of rows reads each weight once
  bool parallel = false;
};

BlockProductsPlan decide(const BlockProduct& m, const CpuModel& cpu, const ScheduleOptions& o, const PlanEntry& plan) {
  BlockProductsPlan p;
  const int64_t rows = points(m.rows), all = rows * points(m.outer), n = m.n.extent.value;
  p.rows = plan.in_range(
      "rows", [&] { return std::min(rows, kMostRows); }, 1, std::min(rows, kMostStatedRows));
  const int64_t own = o.panel_columns > 0 ? o.panel_columns : std::max(16, (rows == 1 ? 4 : 2) * cpu.vector_lanes);
  p.columns = plan.packing(
      "columns", [&] { return own; }, KnobValues::range(16, kMostColumns, 16));
  p.fetches_ahead =
      plan.flag("prefetch", rows == p.rows, o.fetch_ahead && rows == p.rows, "weights are read more than once");
  const int64_t panels = ceil_div(n, p.columns);
  const bool pays = all * panels * p.columns * m.block.extent.value * m.k.extent.value >= 4 * kParallelThreshold;
  const bool shares = panels > 1 || (bool(m.zero) && rows >= kManyRows);
  p.parallel = plan.number(
                   "parallel", [&] { return pays ? 1 : 0; },
                   shares ? KnobValues::flag(true) : KnobValues::only(pays ? 1 : 0, "there is one panel")) == 1;
  return p;
}

class BlockProducts {
 public:
  BlockProducts(const BlockProduct& m, const BlockProductsPlan& plan)
      : m_(m),
        rows_(points(m.rows)),
        blocks_(m.block.extent.value),
        height_(plan.rows),
        columns_(plan.columns),
        panels_(ceil_div(m.n.extent.value, columns_)),
        words_(m.k.extent.value * m.bits / 32),
        fetches_ahead_(plan.fetches_ahead),
        parallel_(plan.parallel),
        summed_(m.rows) {
    for (const Axis& a : m.outer)
      if (uses_var(m.s_at, a.var)) summed_.push_back(a);
  }

  Scheduled build() {
    Scheduled s;
    pack(s);
    const Var panel = make_var("nb");
    panel_ = panels_ == 1 ? Expr(0) : Expr(panel);
    Stmt body = m_.chosen ? expert_rows() : row_tiles();
    if (panels_ > 1) body = loop(panel, panels_, body, parallel_ ? ForKind::Parallel : ForKind::Serial);
    if (m_.zero) body = alloc(row_sums_, seq({sum_rows(), body}));
    s.body = body;
    bind_operands(s, m_.c);
    s.family = m_.rows.empty() && !m_.chosen ? "matrix_vector" : "matmul";
    s.description = (rows_ > 1 ? to_text(height_) + " rows by " : "") + to_text(columns_) +
                    " columns in registers; weights of " + to_text(m_.bits) + " bits in panels, " +
                    to_text(BlockProduct::kSteps) + " products of bytes at a time" +
                    (m_.chosen ? "; each row reads the weights of its expert" : "");
    return s;
  }

 private:
  using OfTile = std::function<Stmt(const Expr& i, const Expr& column)>;

  // --- packing
  void pack(Scheduled& s) {
    const Axis panel{make_var("nb"), Dim(panels_)}, block{make_var("block"), Dim(blocks_)},
        word{make_var("word"), Dim(words_)}, lane{make_var("ni"), Dim(columns_)};
    const Expr at = Expr(panel.var) * Expr(columns_) + Expr(lane.var);
    const std::string name = m_.n.var->name, k = m_.k.var->name;
    std::vector<Axis> lead = {panel};
    if (m_.chosen) lead.insert(lead.begin(), m_.expert);
    auto with = [&](std::vector<Axis> axes, const Axis& a) {
      axes.push_back(a);
      return axes;
    };
    auto of_column = [&](const Expr& e, const Expr& step) {
      const Expr value =
          substitute(e, {{m_.n.var.get(), at}, {m_.block.var.get(), Expr(block.var)}, {m_.k.var.get(), step}});
      return panels_ * columns_ == m_.n.extent.value ? value
                                                     : select(at < Expr(m_.n.extent), value, zero(value->dtype));
    };
    // Number 4 * j + i of a word is at bit 8 * i + bits * j.
    Expr value;
    for (int64_t number = 0; number < 32 / m_.bits; number++) {
      const Expr x = of_column(m_.number, Expr(word.var) * Expr(32 / m_.bits) + Expr(number));
      const int64_t bit = number % 4 * 8 + number / 4 * m_.bits;
      const Expr there = bit == 0 ? x : apply(Op::Shl, {x, make_int(DType::I32, bit)});
      value = value ? apply(Op::BitOr, {value, there}) : there;
    }
    const std::string first = m_.chosen ? "expert, " + name + " block" : name + " block";
    packed_ = add_packed(s, m_.c, with(with(with(lead, block), word), lane), value,
                         "packed: " + first + ", block, " + k + " / " + to_text(32 / m_.bits) + ", " + name +
                             " in block" + (m_.bits == 4 ? "; the 2 numbers of a byte are 4 " + k + " apart" : ""));
    // Those that are the same for all blocks of a column are stored once.
    auto of_block = [&](const Expr& e, const std::string& what) {
      const bool each = uses_var(e, block.var);
      return add_packed(s, m_.c, with(each ? with(lead, block) : lead, lane), e,
                        what + ": " + first + (each ? ", block, " : ", ") + name + " in block");
    };
    scales_ = of_block(of_column(m_.scale, 0), "scales");
    if (!m_.zero) return;
    row_sums_ = make_buffer("row_sums", DType::I32, {Dim(points(summed_) * blocks_)}, Scope::Workspace);
    if (!as_const_int(m_.zero)) zeros_ = of_block(cast(DType::U8, of_column(m_.zero, 0)), "zero points");
  }

  // --- loops
  Stmt sum_rows() const {
    const Var block = make_var("block"), k = make_var("k");
    std::vector<Axis> axes;
    std::vector<std::pair<Var, Expr>> point = {{m_.block.var, Expr(block)}, {m_.k.var, Expr(k)}};
    for (const Axis& a : summed_) {
      axes.push_back({make_var(a.var->name), a.extent});
      point.push_back({a.var, Expr(axes.back().var)});
    }
    const Expr to = point_number(axes) * Expr(blocks_) + Expr(block);
    const Expr q = cast(DType::I32, load(m_.q, {index_at(m_.q_at, point)}));
    const Buffer sum = make_buffer("sum", DType::I32, {}, Scope::Register);
    const Stmt body =
        alloc(sum, seq({store(sum, {}, make_int(DType::I32, 0)), loop(k, m_.k.extent, store(sum, {}, q, Op::Add)),
                        store(row_sums_, {to}, load(sum, {}))}));
    Stmt all = loop(block, blocks_, body);
    for (size_t i = axes.size(); i-- > 0;) {
      const bool shared = i == 0 && parallel_ && axes[0].extent.value >= kManyRows;
      all = loop(axes[i].var, axes[i].extent, all, shared ? ForKind::Parallel : ForKind::Serial);
    }
    return all;
  }

  // The number of a row among those whose sums are kept.
  Expr sum_of_row(const Expr& row) const {
    const Expr number = point_number(summed_);
    return m_.rows.empty() ? number : substitute(number, {{m_.rows[0].var.get(), row}});
  }

  // One row after the other, each with its expert's panels for all of them.
  Stmt expert_rows() {
    struct View {
      Buffer base, view;
    };
    std::vector<View> views;
    for (Buffer* b : {&packed_, &scales_, &zeros_}) {
      if (!*b) continue;
      const int64_t size = (*b)->shape[0].value / m_.expert.extent.value;
      views.push_back({*b, make_buffer((*b)->name + "_of_expert", (*b)->dtype, {Dim(size)})});
      *b = views.back().view;
    }
    const Var expert = make_var("expert");
    Stmt body = tile(0, 1);
    for (size_t i = views.size(); i-- > 0;)
      body = alias(views[i].view, views[i].base, Expr(expert) * Expr(views[i].view->shape[0]), body);
    body = let(expert, m_.chosen, body);
    for (size_t i = m_.outer.size(); i-- > 0;) body = loop(m_.outer[i].var, m_.outer[i].extent, body);
    return body;
  }

  Stmt row_tiles() {
    if (rows_ == height_) return tile(0, height_);
    const int64_t whole = rows_ / height_, rest = rows_ % height_;
    const Var t = make_var("m_o");
    const Stmt body = loop(t, whole, tile(Expr(t) * Expr(height_), height_));
    return rest == 0 ? body : seq({body, tile(Expr(whole * height_), rest)});
  }

  Stmt tile(const Expr& row, int64_t height) {
    const Buffer acc = make_buffer("acc", DType::F32, {Dim(height), Dim(columns_)}, Scope::Register);
    const Var block = make_var("block");
    const Stmt start = of_tile(height, [&](const Expr& i, const Expr& column) {
      return store(acc, {i, ramp(column)}, broadcast(make_float(DType::F32, 0)));
    });
    const Stmt finish = of_tile(height, [&](const Expr& i, const Expr& column) {
      const Expr sum = load(acc, {i, ramp(column)});
      return store_lanes(m_.c.out, m_.c.out_index, m_.c.epilogue,
                         panel_point(m_.n, m_.rows, panel_, columns_, row + i, column, sum));
    });
    const auto step = [&](const Expr& b) { return of_block(acc, row, height, b); };
    const Stmt products = blocks_ == 1 ? step(0) : loop(block, blocks_, step(Expr(block)));
    return alloc(acc, seq({start, products, finish}));
  }

  // Weights that come from memory are asked for twice: for the second-level cache 32 KiB ahead, which is as far as memory is away, and for
  // the first one 8 KiB ahead; with each vector a few lines, for more at once would have to wait for each other.
  Stmt ahead(const Expr& block, const Expr& column) const {
    constexpr int64_t kLine = 16, kNear = 128 * kLine, kFar = 4 * kNear;  // words
    if (!fetches_ahead_) return {};
    const Var line = make_var("line");
    const Expr begin = (panel_ * Expr(blocks_) + block) * Expr(words_ * columns_) + column * Expr(words_);
    const Expr at = begin + Expr(line) * Expr(kLine);
    return loop(line, Expr(words_) * lanes() / Expr(kLine),
                seq({prefetch(packed_, {at + Expr(kFar)}, 2), prefetch(packed_, {at + Expr(kNear)})}), ForKind::Unroll);
  }

  // acc[i][v] += (s * scale) * f32(dot - zero * row sum)
  Stmt of_block(const Buffer& acc, const Expr& row, int64_t height, const Expr& block) const {
    const auto first = [&](const Expr& column) { return ahead(block, column); };
    const auto sums = [&](const Expr& i, const Expr& column) {
      const Buffer dot = make_buffer("dot", DType::I32, {Dim(kMaxLanes)}, Scope::Register);
      Expr sum = load(dot, {ramp(0)});
      if (m_.zero) {
        const Expr of_row = load(row_sums_, {sum_of_row(row + i) * Expr(blocks_) + block});
        const Expr zero =
            zeros_ ? cast(DType::I32, load(zeros_, {ramp(of_panel(zeros_, block) + column)})) : broadcast(m_.zero);
        sum = sum - (zeros_ ? zero * broadcast(of_row) : broadcast(m_.zero * of_row));
      }
      const Expr scale = broadcast(load(m_.s, {at(m_.s_at, row + i, block, 0)})) *
                         load(scales_, {ramp(of_panel(scales_, block) + column)});
      return alloc(dot, seq({store(dot, {ramp(0)}, broadcast(make_int(DType::I32, 0))),
                             dot_products(dot, row + i, block, column),
                             store(acc, {i, ramp(column)}, cast(DType::F32, sum) * scale, Op::Add)}));
    };
    return of_tile(height, sums, first);
  }

  // Where the columns of a panel begin in scales or zero points, which may be the same for all blocks.
  Expr of_panel(const Buffer& packed, const Expr& block) const {
    const bool each = packed->shape[0].value != panels_ * columns_;
    return (each ? panel_ * Expr(blocks_) + block : panel_) * Expr(columns_);
  }

  Stmt dot_products(const Buffer& dot, const Expr& row, const Expr& block, const Expr& column) const {
    const int64_t length = m_.k.extent.value, steps = std::min(length, BlockProduct::kSteps),
                  count = steps * m_.bits / 32;
    const Var part = make_var("k_o");
    const Expr p = length == steps ? Expr(0) : Expr(part);
    const Expr word = ((panel_ * Expr(blocks_) + block) * Expr(words_) + p * Expr(count)) * Expr(columns_) + column;
    const Stmt body =
        intrin("dot_words", {{dot, {}}, {packed_, {word}}, {m_.q, {at(m_.q_at, row, block, p * Expr(steps))}}},
               {0, Expr(columns_), Expr(count), Expr(m_.bits)});
    return length == steps ? body : loop(part, length / steps, body);
  }

  Expr at(const Expr& index, const Expr& row, const Expr& block, const Expr& k) const {
    std::vector<std::pair<Var, Expr>> point = {{m_.block.var, block}, {m_.k.var, k}};
    if (!m_.rows.empty()) point.push_back({m_.rows[0].var, row});
    return index_at(index, point);
  }

  // Vectors outside, so that the numbers of one serve all rows.
  Stmt of_tile(int64_t height, const OfTile& body, const std::function<Stmt(const Expr& column)>& first = {}) const {
    const Var i = make_var("i"), v = make_var("v");
    const int64_t used = panels_ == 1 ? m_.n.extent.value : columns_;
    const Expr column = Expr(v) * lanes();
    const Stmt rows = height == 1 ? body(Expr(0), column) : loop(i, height, body(Expr(i), column), ForKind::Unroll);
    return loop(v, vectors(used), first ? seq({first(column), rows}) : rows, ForKind::Unroll);
  }

  const BlockProduct& m_;
  const int64_t rows_, blocks_, height_, columns_, panels_, words_;
  const bool fetches_ahead_, parallel_;
  std::vector<Axis> summed_;  // the rows of q
  Buffer packed_, scales_, zeros_, row_sums_;
  Expr panel_;  // at which the loops are
};

}  // namespace

std::optional<Scheduled> schedule_block_products(const TemplateArgs& a) {
  const auto m = match_block_product(a);
  if (!m) return {};
  return BlockProducts(*m, decide(*m, a.cpu, a.options, a.plan)).build();
}

}  // namespace tc
