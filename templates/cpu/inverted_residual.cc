// Inverted residuals, row by row: a 1 x 1 convolution that expands the channels, a depthwise convolution, a 1 x 1
// convolution that projects them back, each with its bias, activation or residual.
//
//   for bands of rows:                                     shared among threads
//     for rows y:
//       expanded[row mod k] = expand(x[row])               the rows that y needs and that are not there yet
//       filtered = depthwise(expanded[k rows])             a row of zeros stands for what lies beyond the edge
//       out[y] = project(filtered)
//
// The expanded tensor, the largest of the three, never leaves the caches: k of its rows exist at a time, with the zeros
// left and right that the depthwise convolution wants. A band expands the rows between itself and the next one again.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/contraction.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/regions.h"
#include "templates/strip.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

constexpr int64_t kColumns = 16;  // channels of a block of the depthwise convolution

// One of the two dense convolutions, as a product for one row.
struct Dense {
  Strip strip;
  Contraction m;
};

// The depthwise convolution of one row: sum over (kh, kw) of x[line * kh + pixel * (ow * stride + kw * dilation) + c].
struct Depthwise {
  Strip strip;
  Canonical c;
  Axis ow, channel;
  int64_t kh = 1, kw = 1;
  int64_t row_step = 1, row_dilation = 1;        // rows of x
  int64_t column_step = 1, column_dilation = 1;  // columns of x
  Expr weight;                                   // the factor, over kh, kw and channel, before buffers were made flat
  Axis kh_axis, kw_axis;
};

struct Region {
  Dense expand, project;
  Depthwise depthwise;
  Buffer expanded, interior, filtered;  // results of stages: with the border, without it, and of the depthwise part
  int64_t images = 1, height = 1, width = 1;    // of the expanded tensor, without its border
  int64_t top = 0, left = 0, padded_width = 1;  // its border
  int64_t channels = 1, out_height = 1, out_width = 1;
  Var image = make_var("image"), source = make_var("source"), y = make_var("y");
  std::vector<Place> row(const Var& at) const {
    if (images == 1) return {{1, Expr(at), 1}};
    return {{1, Expr(at), 1}, {0, Expr(image), 1}};
  }
  std::vector<Place> source_row() const { return row(source); }
  std::vector<Place> result_row() const { return row(y); }
};

std::vector<bool> constants_of(const TensorFn& part, const TemplateArgs& a) {
  std::vector<bool> flags;
  for (const Buffer& b : part.inputs) {
    const auto at = std::find(a.fn.inputs.begin(), a.fn.inputs.end(), b);
    flags.push_back(at != a.fn.inputs.end() && a.constant_input[size_t(at - a.fn.inputs.begin())]);
  }
  return flags;
}

// Stage numbers: the parts end behind the stages that make the operand of the next reduction.
struct Cuts {
  size_t expand = 0, depthwise = 0;
};
std::optional<Cuts> find_cuts(const TensorFn& fn) {
  std::vector<size_t> sums;
  for (size_t i = 0; i < fn.stages.size(); i++)
    if (fn.stages[i].kind == Stage::Kind::Reduce) sums.push_back(i);
  if (sums.size() != 3 || fn.outputs.size() != 1) return {};
  auto last_read = [&](size_t sum) -> size_t {
    size_t end = 0;
    for (const Load* l : loads_of(fn.stages[sum].values[0]))
      for (size_t i = 0; i < sum; i++)
        if (fn.stages[i].outputs[0] == l->buffer) end = std::max(end, i + 1);
    return end;
  };
  const Cuts c{last_read(sums[1]), last_read(sums[2])};
  if (c.expand <= sums[0] || c.depthwise <= sums[1] || c.expand > sums[1]) return {};
  return c;
}

// The one stage that a part reads is `only` (null: none).
bool reads_only(const TensorFn& part, const TensorFn& whole, const Buffer& only) {
  return std::all_of(part.inputs.begin(), part.inputs.end(),
                     [&](const Buffer& b) { return b == only || !producer(whole, b); });
}

std::optional<Dense> match_dense(const TensorFn& part, const std::vector<Place>& row, const TemplateArgs& a) {
  auto strip = strip_of(part, row);
  const auto c = strip ? canonicalize(strip->fn) : std::nullopt;
  if (!c || c->border) return {};
  const std::vector<bool> constant = constants_of(strip->fn, a);
  const auto m = match_contraction({strip->fn, &*c, constant, a.cpu, a.options});
  if (!m || m->right != Contraction::Right::Packed || !m->outer.empty() || m->rows.size() > 1 || m->k.size() != 1)
    return {};
  return Dense{std::move(*strip), *m};
}

// The steps of the pixel's load, and the other factor.
bool match_factors(Depthwise& d, const Buffer& pixels, int64_t line, const TemplateArgs& a) {
  const Canonical& c = d.c;
  const Apply *k = as<Apply>(c.value), *shaped = as<Apply>(c.shaped_value);
  if (!k || !shaped || k->op != Op::Mul || shaped->op != Op::Mul) return false;
  for (size_t i = 0; i < 2; i++) {
    const Load* l = as<Load>(k->args[i]);
    if (!l || l->buffer != pixels) continue;
    std::vector<Var> vars = vars_of(c.axes);
    for (const Axis& r : c.raxes) vars.push_back(r.var);
    const auto at = offset_of(l->index[0], vars);
    const std::vector<bool> constant = constants_of(d.strip.fn, a);
    if (!at || at->constant != 0 || !is_constant(k->args[1 - i], c, constant)) return false;
    const int64_t channels = d.channel.extent.value, rows = at->of(d.kh_axis.var);
    if (at->of(d.channel.var) != 1 || rows % line != 0 || at->of(d.kw_axis.var) % channels != 0) return false;
    if (d.ow.var && at->of(d.ow.var) % channels != 0) return false;
    d.row_dilation = rows / line;
    d.column_dilation = at->of(d.kw_axis.var) / channels;
    if (d.ow.var) d.column_step = at->of(d.ow.var) / channels;
    d.weight = shaped->args[1 - i];
    return d.row_dilation > 0 && d.column_dilation > 0 && d.column_step > 0;
  }
  return false;
}

std::optional<Depthwise> match_depthwise(const TensorFn& part, const Region& r, const TemplateArgs& a) {
  auto strip = strip_of(part, r.result_row());
  const auto c = strip ? canonicalize(strip->fn) : std::nullopt;
  if (!c || !c->value || c->border || c->combine != Op::Add || c->raxes.size() != 2) return {};
  if (c->axes.empty() || c->axes.size() > 2 || c->out->dtype != DType::F32) return {};
  Depthwise d;
  d.strip = std::move(*strip);
  d.c = *c;
  d.channel = c->axes.back();
  if (c->axes.size() == 2) d.ow = c->axes[0];
  d.kh_axis = c->raxes[0];
  d.kw_axis = c->raxes[1];
  d.kh = d.kh_axis.extent.value;
  d.kw = d.kw_axis.extent.value;
  const auto out = offset_of(c->out_index, vars_of(c->axes));
  if (!out || out->of(d.channel.var) != 1 || d.channel.extent.value != r.channels || r.channels < 4) return {};
  if (!has_vector_form(c->epilogue, d.channel.var) || !has_vector_form(c->init, d.channel.var)) return {};
  const int64_t line = r.padded_width * r.channels;
  for (size_t i = 0; i < d.strip.operands.size(); i++) {
    const Strip::Operand& o = d.strip.operands[i];
    if (o.whole != r.expanded) continue;
    if (o.step[0] % line != 0 || !match_factors(d, c->inputs[i], line, a)) return {};
    d.row_step = o.step[0] / line;
    if (d.row_step > 0) return d;
  }
  return {};
}

// The expanded tensor's place in its border of zeros.
bool match_border(const TensorFn& part, Region& r, size_t& end) {
  const auto c = canonicalize(part);
  const Dims dims = static_dims(r.expanded->shape);
  if (!c || dims.size() != 4) return false;
  r.interior = r.expanded;
  r.images = dims[0];
  r.height = dims[1];
  r.width = r.padded_width = dims[2];
  r.channels = dims[3];
  if (!c->border) return true;
  const Border& b = *c->border;
  const Select* pad = as<Select>(part.stages.back().values[0]);
  if (!pad || !as_const_number(b.value) || *as_const_number(b.value) != 0) return false;
  if (b.interior[0] != dims[0] || b.interior[3] != dims[3]) return false;
  r.interior = as<Load>(pad->yes)->buffer;
  r.top = b.begin[1];
  r.left = b.begin[2];
  r.height = b.interior[1];
  r.width = b.interior[2];
  end--;
  return end > 0;
}

std::optional<Region> match(const TemplateArgs& a) {
  if (a.options.strict_fp || a.fn.outputs.size() != 1) return {};
  const auto cuts = find_cuts(a.fn);
  if (!cuts) return {};
  Region r;
  const TensorFn expand = stages_of(a.fn, 0, cuts->expand), depthwise = stages_of(a.fn, cuts->expand, cuts->depthwise),
                 project = stages_of(a.fn, cuts->depthwise, a.fn.stages.size());
  if (expand.stages.empty() || depthwise.stages.empty() || project.stages.empty()) return {};
  r.expanded = expand.outputs[0];
  r.filtered = depthwise.outputs[0];
  if (!reads_only(expand, a.fn, nullptr) || !reads_only(depthwise, a.fn, r.expanded) ||
      !reads_only(project, a.fn, r.filtered) || project.outputs[0] != a.fn.outputs[0])
    return {};
  size_t end = cuts->expand;
  if (!match_border(expand, r, end)) return {};
  const Dims out = static_dims(a.fn.outputs[0]->shape), filtered = static_dims(r.filtered->shape);
  if (out.size() != 4 || filtered.size() != 4 || filtered[1] != out[1] || filtered[2] != out[2]) return {};
  r.out_height = out[1];
  r.out_width = out[2];
  const TensorFn inner = stages_of(a.fn, 0, end);
  if (inner.stages.empty() || inner.outputs[0] != r.interior) return {};
  const auto first = match_dense(inner, r.source_row(), a), last = match_dense(project, r.result_row(), a);
  const auto middle = first && last ? match_depthwise(depthwise, r, a) : std::nullopt;
  if (!middle) return {};
  r.expand = *first;
  r.project = *last;
  r.depthwise = *middle;
  return r;
}

// Rows that two bands expand are work done twice: at most a twentieth of all rows, but two bands at least.
int64_t choose_bands(const Region& r) {
  const Depthwise& d = r.depthwise;
  const int64_t again = std::max<int64_t>(0, (d.kh - 1) * d.row_dilation + 1 - d.row_step);
  int64_t bands = 1;
  while (bands < 16 && bands * 2 <= r.out_height && (bands == 1 || (bands * 2 - 1) * again * 20 <= r.height))
    bands *= 2;
  return bands;
}

class Builder {
 public:
  Builder(const Region& r, const TemplateArgs& a) : r_(r), d_(r.depthwise), a_(a), memory_(a.fn) {
    slots_ = (d_.kh - 1) * d_.row_dilation + 1;
    line_ = r.padded_width * r.channels;
    const int64_t lowest = (r.out_height - 1) * d_.row_step - r.top + (d_.kh - 1) * d_.row_dilation;
    has_zero_row_ = r.top > 0 || lowest >= r.height;
    ring_ = make_buffer("expanded", DType::F32, {Dim((slots_ + (has_zero_row_ ? 1 : 0)) * line_)}, Scope::Workspace);
    row_ = make_buffer("filtered", DType::F32, {Dim(r.out_width * r.channels)}, Scope::Workspace);
    bands_ = choose_bands(r);
    keep_taps_ = d_.kh * d_.kw + 5 <= a.cpu.vector_registers * a.cpu.vector_lanes / kColumns;
  }

  Scheduled build() {
    const Var part = make_var("part"), first = make_var("first"), end = make_var("end");
    first_ = Expr(first);
    const Expr band = r_.images == 1 ? Expr(part) : apply(Op::Mod, {Expr(part), Expr(bands_)});
    Stmt body = seq({zeros(), loop(r_.y, Expr(end) - first_, row(first), ForKind::Serial, first_)});
    body = alloc(ring_, alloc(row_, body));
    body = let(end, (band + Expr(1)) * Expr(r_.out_height) / Expr(bands_), body);
    body = let(first, band * Expr(r_.out_height) / Expr(bands_), body);
    if (r_.images > 1) body = let(r_.image, Expr(part) / Expr(bands_), body);
    const int64_t chunks = r_.images * bands_;
    if (chunks == 1)
      s_.body = substitute(body, {{part.get(), Expr(0)}});
    else
      s_.body = loop(part, chunks, body, ForKind::Parallel);
    memory_.bind(s_);
    s_.family = "inverted_residual";
    describe();
    return std::move(s_);
  }

 private:
  // The zeros around the rows are written once; rows change between them.
  Stmt zeros() {
    const Expr zero = make_float(DType::F32, 0);
    const int64_t right = r_.padded_width - r_.left - r_.width;
    auto columns = [&](int64_t from, int64_t count) -> Stmt {
      if (count == 0) return {};
      const Var slot = make_var("slot"), i = make_var("i");
      const Expr at = Expr(slot) * Expr(line_) + Expr(from * r_.channels) + Expr(i);
      return loop(slot, slots_, loop(i, count * r_.channels, store(ring_, {at}, zero)));
    };
    Stmt below;
    if (has_zero_row_) {
      const Var i = make_var("i");
      below = loop(i, line_, store(ring_, {Expr(slots_ * line_) + Expr(i)}, zero));
    }
    const Stmt all = seq({columns(0, r_.left), columns(r_.left + r_.width, right), below});
    return all ? comment("zeros left and right of the rows, and a row of zeros", all) : all;
  }

  Stmt row(const Var& first) {
    const Expr y = Expr(r_.y), reach = Expr(slots_ - r_.top), step = Expr(d_.row_step);
    const Var from = make_var("from"), to = make_var("to");
    const Expr begin = select(eq(y, Expr(first)), y * step - Expr(r_.top), y * step + reach - step);
    Stmt fill = loop(r_.source, Expr(to) - Expr(from), expand(), ForKind::Serial, Expr(from));
    fill = let(to, min(y * step + reach, Expr(r_.height)), fill);
    fill = let(from, max(begin, Expr(0)), fill);
    return seq({comment("expand the rows that are missing", fill), comment("filter each channel", depthwise()),
                comment("project", project())});
  }

  Stmt expand() {
    const ContractionPlan plan = plan_of(r_.expand.m);
    StripMemory memory = memory_;
    const Expr slot = apply(Op::Mod, {Expr(r_.source), Expr(slots_)});
    memory.place(r_.interior, ring_, slot * Expr(line_) + Expr(r_.left * r_.channels));
    Strip strip = r_.expand.strip;
    strip.result.step.assign(strip.result.step.size(), 0);
    return memory.see(contraction_loops(r_.expand.m, plan, s_), strip, r_.expand.m.c, r_.source_row(), "row");
  }

  Stmt project() {
    const ContractionPlan plan = plan_of(r_.project.m);
    StripMemory memory = memory_;
    memory.place(r_.filtered, row_);
    Strip strip = r_.project.strip;
    for (Strip::Operand& o : strip.operands)
      if (o.whole == r_.filtered) o.step.assign(o.step.size(), 0);
    return memory.see(contraction_loops(r_.project.m, plan, s_), strip, r_.project.m.c, r_.result_row(), "row");
  }

  ContractionPlan plan_of(const Contraction& m) const {
    ContractionPlan p = plan_contraction(m, a_.cpu, a_.options);
    p.parallel = false;
    p.row_blocks = 1;
    p.prefetch = 0;
    return p;
  }

  // --- the depthwise convolution of one row
  int64_t pixels() const {
    const int64_t nv = std::max<int64_t>(1, kColumns / a_.cpu.vector_lanes), w = r_.out_width;
    const int64_t room = (a_.cpu.vector_registers - 4) / nv - (keep_taps_ ? d_.kh * d_.kw : 0);
    const int64_t most = std::min(std::clamp<int64_t>(room, 1, 8), w);
    for (int64_t p = most; p * 2 > most; p--)
      if (w % p == 0) return p;
    return most;
  }

  LanePoint at(const Point& p, const Var& v, const Expr& acc = {}) const {
    const Expr lane = base_ + Expr(v) * lanes();
    return {p, d_.channel.var, lane, r_.channels % kColumns == 0 ? Expr() : Expr(r_.channels) - lane, acc};
  }
  Stmt over_vectors(const std::function<Stmt(const Var& v)>& body) const {
    const Var v = make_var("v");
    return loop(v, vectors(std::min(r_.channels, kColumns)), body(v), ForKind::Unroll);
  }
  Stmt over_tile(int64_t height, const std::function<Stmt(const Expr& i, const Var& v)>& body) const {
    if (height == 1) return over_vectors([&](const Var& v) { return body(0, v); });
    const Var i = make_var("i");
    return loop(i, height, over_vectors([&](const Var& v) { return body(Expr(i), v); }), ForKind::Unroll);
  }
  static Exprs cell(const Expr& i, const Var& v) { return {i, ramp(Expr(v) * lanes())}; }

  Stmt depthwise() {
    const Var block = make_var(d_.channel.var->name + "_o");
    const int64_t blocks = ceil_div(r_.channels, kColumns);
    base_ = blocks > 1 ? Expr(block) * Expr(kColumns) : Expr(0);
    weights_ = pack_taps();
    for (int64_t k = 0; k < d_.kh; k++)
      rows_.push_back(make_buffer("row" + to_text(k), DType::F32, {Dim(line_)}, Scope::Workspace));
    taps_ = make_buffer("taps", DType::F32, {Dim(d_.kh * d_.kw), Dim(kColumns)}, Scope::Register);
    Stmt body = columns();
    if (keep_taps_) {
      const Var tap = make_var("tap");
      const Stmt fill =
          loop(tap, d_.kh * d_.kw,
               over_vectors([&](const Var& v) { return store(taps_, cell(Expr(tap), v), weight(Expr(tap), v)); }),
               ForKind::Unroll);
      body = alloc(taps_, seq({fill, body}));
    }
    if (blocks > 1) body = loop(block, blocks, body);
    StripMemory memory = memory_;
    memory.place(r_.filtered, row_);
    Strip strip = d_.strip;
    strip.result.step.assign(strip.result.step.size(), 0);
    body = memory.see(body, strip, d_.c, r_.result_row(), "row");
    for (size_t k = rows_.size(); k-- > 0;) body = alias(rows_[k], ring_, slot_of(int64_t(k)) * Expr(line_), body);
    return body;
  }

  // Where the k-th of the rows around y is kept: beyond the edges, the row of zeros.
  Expr slot_of(int64_t k) const {
    const int64_t shift = k * d_.row_dilation - r_.top;
    const Expr source = Expr(r_.y) * Expr(d_.row_step) + Expr(shift), slot = apply(Op::Mod, {source, Expr(slots_)});
    const bool above = shift < 0, below = (r_.out_height - 1) * d_.row_step + shift >= r_.height;
    if (!above && !below) return slot;
    const Expr in_front = source >= Expr(0), in_back = source < Expr(r_.height);
    return select(above && below ? in_front && in_back : above ? in_front : in_back, slot, Expr(slots_));
  }

  Buffer pack_taps() {
    const std::vector<Axis> axes = {d_.kh_axis, d_.kw_axis, d_.channel};
    const std::string words =
        "packed: " + d_.kh_axis.var->name + ", " + d_.kw_axis.var->name + ", " + d_.channel.var->name;
    return add_packed(s_, d_.c, axes, d_.weight, words);
  }

  Expr weight(const Expr& tap, const Var& v) const {
    const LanePoint p = at({}, v);
    const Expr w = load(weights_, {ramp(tap * Expr(r_.channels) + p.base)});
    return p.count ? partial(w, p.count) : w;
  }

  Stmt columns() {
    const int64_t px = pixels(), whole = r_.out_width / px, rest = r_.out_width % px;
    const Var t = make_var("ow_o");
    Stmt full = whole == 1 ? tile(px, 0) : loop(t, whole, tile(px, Expr(t) * Expr(px)));
    return seq({full, rest > 0 ? tile(rest, whole * px) : Stmt()});
  }

  Stmt tile(int64_t px, const Expr& column) {
    const Buffer acc = make_buffer("acc", DType::F32, {Dim(px), Dim(kColumns)}, Scope::Register);
    auto point = [&](const Expr& i) { return d_.ow.var ? Point{{d_.ow.var, column + i}} : Point{}; };
    Stmts list = {over_tile(px, [&](const Expr& i, const Var& v) {
      return store(acc, cell(i, v), broadcast(vector_form(d_.c.init, at(point(i), v))));
    })};
    for (int64_t k = 0; k < d_.kh; k++) {
      const Var kw = make_var(d_.kw_axis.var->name);
      const Stmt sum = over_tile(px, [&](const Expr& i, const Var& v) {
        const LanePoint p = at(point(i), v);
        const Expr pixel = (column + i) * Expr(d_.column_step) + Expr(kw) * Expr(d_.column_dilation);
        const Expr read = load(rows_[size_t(k)], {ramp(pixel * Expr(r_.channels) + p.base)});
        const Expr tap = Expr(k * d_.kw) + Expr(kw);
        const Expr w = keep_taps_ ? load(taps_, cell(tap, v)) : weight(tap, v);
        return store(acc, cell(i, v), (p.count ? partial(read, p.count) : read) * w, Op::Add);
      });
      list.push_back(loop(kw, d_.kw, sum, ForKind::Unroll));
    }
    list.push_back(over_tile(px, [&](const Expr& i, const Var& v) {
      return store_lanes(d_.c.out, d_.c.out_index, d_.c.epilogue, at(point(i), v, load(acc, cell(i, v))));
    }));
    return alloc(acc, seq(list));
  }

  void describe() {
    auto tile = [](const ContractionPlan& p) {
      return to_text(int64_t(p.tile.rows)) + " pixels by " + to_text(int64_t(p.tile.columns)) + " channels";
    };
    s_.words = "row by row: " + to_text(slots_) + " expanded rows are kept, with their zeros; expand " +
               tile(plan_of(r_.expand.m)) + ", filter " + to_text(pixels()) + " by " + to_text(kColumns) +
               ", project " + tile(plan_of(r_.project.m)) + " in registers";
    if (bands_ > 1) s_.words += "; " + to_text(bands_) + " bands of rows";
  }

  const Region& r_;
  const Depthwise& d_;
  const TemplateArgs& a_;
  StripMemory memory_;
  Scheduled s_;
  int64_t slots_ = 1, line_ = 1, bands_ = 1;
  bool has_zero_row_ = false, keep_taps_ = false;
  Expr first_, base_;
  Buffer ring_, row_, weights_, taps_;
  std::vector<Buffer> rows_;
};

}  // namespace

// The expanded tensor has to come from beyond the second-level cache; then the depthwise convolution waits for it, and
// with stride 2, where it computes least for what it reads, most of all. Where half of it is still there, the rows that
// bands expand twice cost as much as is gained. Measured on Zen 4 (L2 1 MiB), new time over old, in MobileNetV2:
// 112 x 112 x 96 (4.9 MB) 0.92; 56 x 56 x 144 (1.9 MB) 1.02 with stride 1, 1.01 with stride 2; 28 x 28 x 192 1.04;
// 14 x 14 x 384 0.98 to 1.05; 7 x 7 x 960 1.0 to 1.1.
bool inverted_residual_pays(const TemplateArgs& a) {
  const auto r = match(a);
  return r && 4 * num_elements(static_dims(r->expanded->shape)) >= 2 * int64_t(a.cpu.l2_bytes);
}

std::optional<Scheduled> schedule_inverted_residual(const TemplateArgs& a) {
  const auto r = match(a);
  if (!r) return {};
  return Builder(*r, a).build();
}

}  // namespace tc
