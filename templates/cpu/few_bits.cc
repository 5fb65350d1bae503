// Few rows take the numbers from registers, and scale the sum of each block once:
//
//   for panel of columns, block of k:                    panels are chunks for threads
//     sums = 0
//     for word in block, j in word:
//       x[v] = number j of word - zero             or what it stands for in a table
//       sums[i][v] += p[row i, k] * x[v]
//     acc[i][v] += sums[i][v] * scale[block, v]
#include "templates/cpu/few_bits.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "support/text.h"

namespace tc {

FewBitsLoops::FewBitsLoops(const FewBitsProduct& p, const FewBitsPlan& plan)
    : p_(p),
      m_(p.m),
      w_(p.w),
      plan_(plan),
      rows_(p.rows()),
      depth_(p.depth()),
      columns_(plan.tile.columns),
      panels_(p, columns_, round_up(depth_, plan.stretch ? plan.stretch : p.w.per_word())) {}

Stmt FewBitsLoops::with_numbers(const Expr& word, int64_t numbers, const OfNumber& use) const {
  const Buffer words = make_buffer("words", DType::I32, {Dim(columns_)}, Scope::Register), x = registers("x");
  const Stmt fetch =
      of_vectors([&](const Expr& column) { return store(words, {ramp(column)}, panels_.words(panel_, word, column)); });
  const Var j = make_var("j");
  const Stmt number = of_vectors([&](const Expr& column) {
    if (panels_.table())
      return intrin("lookup_bits", {{x, {}}, {words, {}}, {panels_.table(), {Expr(0)}}}, {column, Expr(j)});
    return intrin("unpack_bits", {{x, {}}, {words, {}}}, {column, Expr(j), Expr(w_.bits)});
  });
  Stmt distance;
  if (zero_)
    distance = of_vectors([&](const Expr& column) {
      return store(x, {ramp(column)}, load(x, {ramp(column)}) - load(zero_, {ramp(column)}));
    });
  return alloc(words,
               seq({fetch, loop(j, numbers, alloc(x, seq({number, distance, use(Expr(j), x)})), ForKind::Unroll)}));
}

Stmt FewBitsLoops::with_zero(const Expr& block, const std::function<Stmt()>& make) {
  if (!panels_.has_zero()) return make();
  zero_ = registers("zero");
  const Stmt fetch =
      of_vectors([&](const Expr& column) { return store(zero_, {ramp(column)}, panels_.zero(panel_, block, column)); });
  return alloc(zero_, seq({fetch, make()}));
}

Buffer FewBitsLoops::registers(const char* name, int64_t rows) const {
  Shape shape = {Dim(columns_)};
  if (rows > 0) shape.insert(shape.begin(), Dim(rows));
  return make_buffer(name, DType::F32, std::move(shape), Scope::Register);
}

Stmt FewBitsLoops::of_vectors(const OfVector& body) const {
  const Var v = make_var("v");
  const int64_t used = panels_.count() == 1 ? m_.n.extent.value : columns_;
  return loop(v, vectors(used), body(Expr(v) * lanes()), ForKind::Unroll);
}

Stmt FewBitsLoops::of_tile(int64_t height, const OfTile& body) const {
  const Var i = make_var("i");
  if (height == 1) return of_vectors([&](const Expr& column) { return body(Expr(0), column); });
  return loop(i, height, of_vectors([&](const Expr& column) { return body(Expr(i), column); }), ForKind::Unroll);
}

LanePoint FewBitsLoops::point(const Expr& row, const Expr& column, Expr acc) const {
  return panel_point(m_.n, m_.rows, panel_, columns_, row, column, std::move(acc));
}

Expr FewBitsLoops::left(const Expr& row, const Expr& k) const {
  std::vector<std::pair<Var, Expr>> at = {{m_.k[0].var, k}};
  if (!m_.rows.empty()) at.push_back({m_.rows[0].var, row});
  return load(m_.p, {offset_expr(m_.p_at, at)});
}

namespace {

constexpr int64_t kFewRows = 4;
constexpr int64_t kStackFloats = 1024;   // of what is unpacked for many rows: 4 KiB
constexpr int64_t kLongestStretch = 64;  // steps of k
constexpr int64_t kGroupColumns = 128;   // of many rows
constexpr int64_t kMostParts = 64;       // each has scratch memory of its own
constexpr int64_t kRowBlock = 128;       // of copied rows: 32 KiB
// What may be stated:
constexpr int64_t kMostColumns = 256, kMostStretch = 64, kMostRowBlock = 512;
constexpr int64_t kMostTileRows = 32, kMostTileColumns = 128;

class FewRows : FewBitsLoops {
 public:
  using FewBitsLoops::FewBitsLoops;

  Stmt build(Scheduled& s) {
    panels_.pack(s);
    const Var panel = make_var("nb");
    panel_ = panels_.count() == 1 ? Expr(0) : Expr(panel);
    const Stmt body = of_panel();
    if (panels_.count() == 1) return body;
    return loop(panel, panels_.count(), body, plan_.parallel ? ForKind::Parallel : ForKind::Serial);
  }

 private:
  Stmt of_panel() {
    const Buffer acc = registers("acc", rows_);
    const Stmt start = of_tile(rows_, [&](const Expr& i, const Expr& column) {
      return store(acc, {i, ramp(column)}, broadcast(vector_form(m_.start, point(i, column))));
    });
    const Var block = make_var("block");
    const int64_t whole = depth_ / w_.block, rest = depth_ % w_.block;
    Stmt sums;
    if (whole > 0) sums = loop(block, whole, block_sums(acc, whole == 1 ? Expr(0) : Expr(block), w_.block));
    if (rest > 0) sums = seq({sums, block_sums(acc, Expr(whole), rest)});
    const Stmt finish = of_tile(rows_, [&](const Expr& i, const Expr& column) {
      return store_lanes(m_.c.out, m_.c.out_index, m_.c.epilogue, point(i, column, load(acc, {i, ramp(column)})));
    });
    return alloc(acc, seq({start, sums, finish}));
  }

  // acc += scale * sum of the first `length` products of a block.
  Stmt block_sums(const Buffer& acc, const Expr& block, int64_t length) {
    const Buffer sums = registers("sums", rows_);
    const Stmt start = of_tile(rows_, [&](const Expr& i, const Expr& column) {
      return store(sums, {i, ramp(column)}, broadcast(make_float(DType::F32, 0)));
    });
    const Stmt add = of_tile(rows_, [&](const Expr& i, const Expr& column) {
      const Expr sum = load(sums, {i, ramp(column)});
      return store(acc, {i, ramp(column)}, panels_.has_scale() ? sum * panels_.scale(panel_, block, column) : sum,
                   Op::Add);
    });
    return with_zero(block, [&] { return alloc(sums, seq({start, products(sums, block, length), add})); });
  }

  Stmt products(const Buffer& sums, const Expr& block, int64_t length) const {
    const int64_t n = w_.per_word();
    auto of_word = [&](const Expr& word, int64_t numbers) {
      return with_numbers(block * Expr(w_.block / n) + word, numbers, [&](const Expr& j, const Buffer& x) {
        const Expr k = block * Expr(w_.block) + word * Expr(n) + j;
        return of_tile(rows_, [&](const Expr& i, const Expr& column) {
          return store(sums, {i, ramp(column)}, left(i, k) * load(x, {ramp(column)}), Op::Add);
        });
      });
    };
    const Var word = make_var("word");
    Stmt body;
    if (length >= n) body = loop(word, length / n, of_word(Expr(word), n));
    if (length % n != 0) body = seq({body, of_word(Expr(length / n), length % n)});
    return body;
  }
};

std::string describe(const FewBitsProduct& p, const FewBitsPlan& plan) {
  std::string s = to_text(int64_t(plan.tile.columns)) + " columns in registers; weights of " + to_text(p.w.bits) +
                  " bits in panels, " + (p.w.table ? "looked up in a table, " : "");
  if (p.rows() > 1) s = to_text(int64_t(plan.tile.rows)) + " rows by " + s;
  if (plan.stretch == 0) return s + "unpacked in registers";
  return s + "unpacked for " + to_text(plan.stretch) + " steps of " + p.m.k[0].var->name + " at a time";
}

}  // namespace

namespace {

// Steps of k that are unpacked at a time: whole words, and whole blocks or equal parts of one; they fit the stack.
KnobValues stretches(const FewBitsProduct& p, int64_t columns) {
  const int64_t block = p.w.block >= p.depth() ? kLongestStretch : p.w.block;
  std::vector<int64_t> values;
  for (int64_t n = 1; n <= kStackFloats / columns && n <= kMostStretch; n *= 2)
    if (n % p.w.per_word() == 0 && (n % block == 0 || block % n == 0)) values.push_back(n);
  return KnobValues::list(std::move(values), to_text(kStackFloats) + " numbers are unpacked at most, for whole words " +
                                                 "and whole scales");
}

int64_t choose_stretch(const FewBitsProduct& p, int64_t columns) {
  const int64_t block = p.w.block >= p.depth() ? kLongestStretch : p.w.block;
  int64_t n = kLongestStretch;
  while (n * columns > kStackFloats || (n % block != 0 && block % n != 0)) n /= 2;
  return n;
}

// Copied rows: whole tiles, or all.
KnobValues row_blocks(int64_t rows, int64_t of_tile) {
  std::vector<int64_t> values;
  for (int64_t n = of_tile; n < std::min(rows, kMostRowBlock); n += of_tile) values.push_back(n);
  if (rows <= kMostRowBlock) values.push_back(rows);
  return KnobValues::list(std::move(values), "whole tiles, or all " + to_text(rows) + " rows");
}

void plan_few_rows(FewBitsPlan& p, int64_t rows, const CpuModel& cpu, int64_t columns, const PlanEntry& plan) {
  const int64_t own = columns > 0 ? columns : std::max(16, (rows == 1 ? 4 : 2) * cpu.vector_lanes);
  p.tile.rows = int(rows);
  p.tile.columns = int(plan.packing(
      "columns", [&] { return own; }, KnobValues::range(16, kMostColumns, 16)));
}

void plan_many_rows(FewBitsPlan& p, const FewBitsProduct& f, const CpuModel& cpu, const PlanEntry& plan) {
  const int64_t rows = f.rows(), n = f.m.n.extent.value;
  const int64_t widest = std::min(kMostTileColumns, kStackFloats / f.w.per_word() / 16 * 16);  // a word fits the stack
  const Tile tile = choose_tile(cpu, rows, n, 1);
  p.tile.rows = int(plan.in_range(
      "rows", [&] { return std::min<int64_t>(tile.rows, rows); }, 1, std::min(rows, kMostTileRows)));
  p.tile.columns = int(plan.packing(
      "columns", [&] { return std::min<int64_t>(tile.columns, widest); }, KnobValues::range(16, widest, 16)));
  p.stretch = plan.packing(
      "stretch", [&] { return choose_stretch(f, p.tile.columns); }, stretches(f, p.tile.columns));
  const int64_t panels = ceil_div(n, p.tile.columns);
  p.group = plan.in_range(
      "group", [&] { return std::min(ceil_div(kGroupColumns, p.tile.columns), std::max<int64_t>(1, panels / 16)); }, 1,
      panels);
  const int64_t groups = ceil_div(panels, p.group);
  p.part = plan.in_range(
      "part", [&] { return ceil_div(groups, kMostParts); }, ceil_div(groups, kMostParts), groups);
  p.block = plan.number(
      "row_block", [&] { return rows <= kRowBlock ? rows : kRowBlock / p.tile.rows * p.tile.rows; },
      row_blocks(rows, p.tile.rows));
}

}  // namespace

FewBitsPlan plan_few_bits(const FewBitsProduct& p, const CpuModel& cpu, int64_t columns, const PlanEntry& plan) {
  FewBitsPlan made;
  const int64_t rows = p.rows(), n = p.m.n.extent.value;
  if (rows <= kFewRows)
    plan_few_rows(made, rows, cpu, columns, plan);
  else
    plan_many_rows(made, p, cpu, plan);
  const int64_t panels = ceil_div(n, made.tile.columns);
  const int64_t chunks = made.stretch == 0 ? panels : ceil_div(ceil_div(panels, made.group), made.part);
  const bool pays = rows * round_up(n, made.tile.columns) * p.depth() >= kParallelThreshold;
  made.parallel = plan.number(
                      "parallel", [&] { return pays ? 1 : 0; },
                      chunks > 1 ? KnobValues::flag(true) : KnobValues::only(pays ? 1 : 0, "there is one chunk")) == 1;
  return made;
}

std::optional<Scheduled> schedule_few_bits(const TemplateArgs& a) {
  const auto p = match_few_bits(a);
  if (!p) return {};
  const FewBitsPlan plan = plan_few_bits(*p, a.cpu, a.options.panel_columns, a.plan);
  Scheduled s;
  s.body = plan.stretch == 0 ? FewRows(*p, plan).build(s) : many_rows(*p, plan, s);
  bind_operands(s, p->m.c);
  s.family = p->m.rows.empty() ? "matrix_vector" : "matmul";
  s.description = describe(*p, plan);
  return s;
}

}  // namespace tc
