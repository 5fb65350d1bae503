// Sums of products of bytes in blocks, each with a scale: y[rows, n] = epilogue(sum(b) s[row, b] * scale[b, n] * dot), where
//
//   dot = sum(k) q[row, b, k] * (number[b, k, n] - zero[b, n])
//       = sum(k) q[row, b, k] * number[b, k, n]  -  zero[b, n] * sum(k) q[row, b, k]
//
// is a whole number, and exact. The numbers of few bits are packed without a sign in words of 32 bits of one column, so that
// the numbers of four steps are the bytes of the word after a shift and a mask (dot_words). Sums of q are computed first, for
// they are the same for all columns.
//
//   row_sums[row, b] = sum(k) q[row, b, k]
//   for panel of columns:                                chunks for threads
//     for rows, MR at a time, block b:
//       dot[v][i] = words[b][v] . q[row i, b]            32 steps of k at a time
//       acc[i][v] += (s[row i, b] * scale[b, v]) * f32(dot[v][i] - zero[b, v] * row_sums[row i, b])
//     y[row i, v] = epilogue(acc[i][v])
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"
#include "templates/few_bits.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

constexpr int64_t kSteps = 32;    // of k that dot_words takes at a time
constexpr int64_t kMostRows = 4;  // that the model takes
constexpr int64_t kMostStatedRows = 8, kMostColumns = 256;
constexpr int64_t kManyRows = 16;  // their sums are shared among threads

struct BlockProduct {
  Canonical c;
  std::vector<Axis> rows;  // one axis at most
  Axis n, block, k;
  Buffer q, s;        // i8, f32
  Expr q_at, s_at;    // of their elements, affine
  Expr number, zero;  // i32; zero: null for 0
  Expr scale;         // f32 over n and block
  int64_t bits = 4;
};

// The factors of the sum, as loads of flat views (p) and as what they read (shaped).
struct Parts {
  const Load *q = nullptr, *s = nullptr;
  Expr number, scale;
};
std::optional<Parts> parts_of(const Expr& value, const TemplateArgs& a) {
  Parts p;
  for (const Expr& f : factors_of(value)) {
    const Cast* c = as<Cast>(f);
    if (c && c->value->dtype == DType::I32 && as<Apply>(c->value) && !p.q) {
      for (const Expr& g : factors_of(c->value)) {
        const Cast* byte = as<Cast>(g);
        const Load* l = byte ? as<Load>(byte->value) : nullptr;
        if (l && l->buffer->dtype == DType::I8 && !is_constant(g, a) && !p.q)
          p.q = l;
        else if (is_constant(g, a) && !p.number)
          p.number = g;
        else
          return {};
      }
    } else if (const Load* l = as<Load>(f); l && !is_constant(f, a) && l->buffer->dtype == DType::F32 && !p.s) {
      p.s = l;
    } else if (is_constant(f, a) && f->dtype == DType::F32) {
      p.scale = p.scale ? p.scale * f : f;
    } else {
      return {};
    }
  }
  if (!p.q || !p.s || !p.number || !p.scale) return {};
  return p;
}

// number - zero, with numbers from 0 on.
bool take_number(BlockProduct& m, const Expr& e) {
  const Apply* k = as<Apply>(e);
  const bool shifted = k && k->op == Op::Sub;
  const Expr number = shifted ? k->args[0] : e, zero = shifted ? k->args[1] : make_int(DType::I32, 0);
  const auto values = few_values(number);
  if (!values || values->min != 0 || number->dtype != DType::I32 || uses_var(zero, m.k.var)) return false;
  m.bits = values->max < 16 ? 4 : 8;
  m.number = number;
  if (!is_const(zero, 0)) m.zero = zero;
  return true;
}

std::optional<BlockProduct> match(const TemplateArgs& a) {
  if (a.options.strict_fp || !a.canonical || a.canonical->border || !a.canonical->value) return {};
  const Canonical& c = *a.canonical;
  if (c.combine != Op::Add || c.raxes.empty() || c.raxes.size() > 2 || c.out->dtype != DType::F32) return {};
  if (c.value->dtype != DType::F32 || !as_const_number(c.init) || *as_const_number(c.init) != 0) return {};
  const auto n = unit_axis(c);
  const auto flat = parts_of(c.value, a), shaped = parts_of(c.shaped_value, a);
  if (!n || n->extent.value < 4 || !flat || !shaped || !has_vector_form(c.epilogue, n->var)) return {};
  BlockProduct m;
  m.c = c;
  m.n = *n;
  m.k = c.raxes.back();
  m.block = c.raxes.size() == 2 ? c.raxes[0] : Axis{make_var("block"), Dim(1)};
  m.q = flat->q->buffer;
  m.s = flat->s->buffer;
  m.q_at = flat->q->index[0];
  m.s_at = flat->s->index[0];
  m.scale = shaped->scale;
  if (!take_number(m, shaped->number) || uses_var(m.scale, m.k.var)) return {};
  for (const Axis& x : c.axes)
    if (x.var != n->var) m.rows.push_back(x);
  if (uses_any(shaped->number, m.rows) || uses_any(m.scale, m.rows)) return {};
  merge_axes(m.rows, {&m.c.epilogue}, {&m.q_at, &m.s_at, &m.c.out_index});
  std::vector<Axis> all = m.rows;
  all.insert(all.end(), {m.n, m.block, m.k});
  const auto q = offset_of(m.q_at, vars_of(all)), s = offset_of(m.s_at, vars_of(all));
  const int64_t length = m.k.extent.value;
  if (m.rows.size() > 1 || !q || !s || q->of(m.k.var) != 1 || q->of(m.n.var) != 0 || s->of(m.n.var) != 0) return {};
  if (s->of(m.k.var) != 0 || length * m.bits % 32 != 0 || (length > kSteps && length % kSteps != 0)) return {};
  return m;
}

struct BlockProductsPlan {
  int64_t rows = 1, columns = 16;  // of a tile
  bool fetches_ahead = false;      // a single tile of rows reads each weight once
  bool parallel = false;
};

BlockProductsPlan decide(const BlockProduct& m, const CpuModel& cpu, const ScheduleOptions& o, const PlanEntry& plan) {
  BlockProductsPlan p;
  const int64_t rows = points(m.rows), n = m.n.extent.value;
  p.rows = plan.in_range(
      "rows", [&] { return std::min(rows, kMostRows); }, 1, std::min(rows, kMostStatedRows));
  const int64_t own = o.panel_columns > 0 ? o.panel_columns : std::max(16, (rows == 1 ? 4 : 2) * cpu.vector_lanes);
  p.columns = plan.packing(
      "columns", [&] { return own; }, KnobValues::range(16, kMostColumns, 16));
  p.fetches_ahead =
      plan.flag("prefetch", rows == p.rows, o.fetch_ahead && rows == p.rows, "weights are read more than once");
  const int64_t panels = ceil_div(n, p.columns);
  const bool pays = rows * panels * p.columns * m.block.extent.value * m.k.extent.value >= 4 * kParallelThreshold;
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
        parallel_(plan.parallel) {}

  Scheduled build() {
    Scheduled s;
    pack(s);
    const Var panel = make_var("nb");
    panel_ = panels_ == 1 ? Expr(0) : Expr(panel);
    Stmt body = row_tiles();
    if (panels_ > 1) body = loop(panel, panels_, body, parallel_ ? ForKind::Parallel : ForKind::Serial);
    if (m_.zero) body = alloc(row_sums_, seq({sum_rows(), body}));
    s.body = body;
    bind_operands(s, m_.c);
    s.family = m_.rows.empty() ? "matrix_vector" : "matmul";
    s.description = (rows_ > 1 ? to_text(height_) + " rows by " : "") + to_text(columns_) +
                    " columns in registers; weights of " + to_text(m_.bits) + " bits in panels, " + to_text(kSteps) +
                    " products of bytes at a time";
    const std::string n = m_.n.var->name;
    s.steps = {"cache_read(right factor, words of " + to_text(32 / m_.bits) + " numbers)",
               "split(" + n + ", " + to_text(columns_) + ")", "tensorize(" + m_.k.var->name + ", dot_words)",
               "cache_write(acc, registers)", "vectorize(" + n + "_i)"};
    if (fetches_ahead_) s.steps.push_back("prefetch(right factor)");
    if (parallel_) s.steps.push_back("parallel(panels)");
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
    packed_ = add_packed(s, m_.c, {panel, block, word, lane}, value,
                         "packed: " + name + " block, block, " + k + " / " + to_text(32 / m_.bits) + ", " + name +
                             " in block; the " + to_text(8 / m_.bits) + " numbers of a byte are 4 " + k + " apart");
    const std::string rest = ": " + name + " block, block, " + name + " in block";
    scales_ = add_packed(s, m_.c, {panel, block, lane}, of_column(m_.scale, 0), "scales" + rest);
    if (!m_.zero) return;
    row_sums_ = make_buffer("row_sums", DType::I32, {Dim(rows_ * blocks_)}, Scope::Workspace);
    if (!as_const_int(m_.zero))
      zeros_ = add_packed(s, m_.c, {panel, block, lane}, cast(DType::U8, of_column(m_.zero, 0)), "zero points" + rest);
  }

  // --- loops
  Stmt sum_rows() const {
    const Var row = make_var("m"), block = make_var("block"), k = make_var("k");
    const Expr to = Expr(row) * Expr(blocks_) + Expr(block);
    const Expr q = cast(DType::I32, load(m_.q, {at(m_.q_at, Expr(row), Expr(block), Expr(k))}));
    const Buffer sum = make_buffer("sum", DType::I32, {}, Scope::Register);
    const Stmt body =
        alloc(sum, seq({store(sum, {}, make_int(DType::I32, 0)), loop(k, m_.k.extent, store(sum, {}, q, Op::Add)),
                        store(row_sums_, {to}, load(sum, {}))}));
    return loop(row, rows_, loop(block, blocks_, body),
                parallel_ && rows_ >= kManyRows ? ForKind::Parallel : ForKind::Serial);
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
    const auto step = [&](const Expr& b) {
      const int64_t count = words_ * columns_;
      const Stmt ahead =
          fetches_ahead_ ? fetch_ahead(packed_, (panel_ * Expr(blocks_) + b) * Expr(count), count) : Stmt();
      return seq({ahead, of_block(acc, row, height, b)});
    };
    const Stmt products = blocks_ == 1 ? step(0) : loop(block, blocks_, step(Expr(block)));
    return alloc(acc, seq({start, products, finish}));
  }

  // acc[i][v] += (s * scale) * f32(dot - zero * row sum)
  Stmt of_block(const Buffer& acc, const Expr& row, int64_t height, const Expr& block) const {
    const Expr in_panel = (panel_ * Expr(blocks_) + block) * Expr(columns_);
    return of_tile(height, [&](const Expr& i, const Expr& column) {
      const Buffer dot = make_buffer("dot", DType::I32, {Dim(kMaxLanes)}, Scope::Register);
      Expr sum = load(dot, {ramp(0)});
      if (m_.zero) {
        const Expr of_row = load(row_sums_, {(row + i) * Expr(blocks_) + block});
        const Expr zero = zeros_ ? cast(DType::I32, load(zeros_, {ramp(in_panel + column)})) : broadcast(m_.zero);
        sum = sum - (zeros_ ? zero * broadcast(of_row) : broadcast(m_.zero * of_row));
      }
      const Expr scale =
          broadcast(load(m_.s, {at(m_.s_at, row + i, block, 0)})) * load(scales_, {ramp(in_panel + column)});
      return alloc(dot, seq({store(dot, {ramp(0)}, broadcast(make_int(DType::I32, 0))),
                             dot_products(dot, row + i, block, column),
                             store(acc, {i, ramp(column)}, cast(DType::F32, sum) * scale, Op::Add)}));
    });
  }

  Stmt dot_products(const Buffer& dot, const Expr& row, const Expr& block, const Expr& column) const {
    const int64_t length = m_.k.extent.value, steps = std::min(length, kSteps), count = steps * m_.bits / 32;
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
  Stmt of_tile(int64_t height, const OfTile& body) const {
    const Var i = make_var("i"), v = make_var("v");
    const int64_t used = panels_ == 1 ? m_.n.extent.value : columns_;
    const Expr column = Expr(v) * lanes();
    const Stmt rows = height == 1 ? body(Expr(0), column) : loop(i, height, body(Expr(i), column), ForKind::Unroll);
    return loop(v, vectors(used), rows, ForKind::Unroll);
  }

  const BlockProduct& m_;
  const int64_t rows_, blocks_, height_, columns_, panels_, words_;
  const bool fetches_ahead_, parallel_;
  Buffer packed_, scales_, zeros_, row_sums_;
  Expr panel_;
};

}  // namespace

std::optional<Scheduled> schedule_block_products(const TemplateArgs& a) {
  const auto m = match(a);
  if (!m) return {};
  return BlockProducts(*m, decide(*m, a.cpu, a.options, a.plan)).build();
}

}  // namespace tc
