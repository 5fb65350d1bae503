// Winograd's minimal filtering for 3 x 3 convolutions of stride 1: tiles of m x m results from T x T inputs, T = m + 2.
//
//   V[a, b, tile, ic] = sum over the tile's T x T inputs    (B^T d B)         additions and small factors
//   U[a, b, oc, ic]   = sum over the 3 x 3 weights          (G w G^T)         at compile time, in double
//   M[a, b, tile, oc] = sum(ic) V * U                       T^2 matrix products, the register tiles of contraction.cc
//   y[oh, ow, oc]     = epilogue(sum over a, b of M         (A^T M A))
//
// m = 4 takes 2.25 multiplications per result instead of 9, m = 2 takes 4. The constants are those of A. Lavin and S.
// Gray, Fast Algorithms for Convolutional Neural Networks (2016). Errors are about those of the direct sum, but the
// roundings differ: not used under strict floating point. Inputs beyond the edge of the tensor count as zero, results
// are dropped. Weights grow as multiplications get fewer, so that the direct sum may be cheaper: see expected_cycles().
//
// The tiles of several images are the rows of one product, so that weights come from memory once for all of them. There are as many
// images in a group as the memory between the steps may hold; groups follow one another. Where a run may have fewer images than
// there is room for, a group is one image.
#include <algorithm>
#include <vector>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/contraction.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/winograd_transform.h"

namespace tc {
namespace {

struct Shape {
  Contraction m;
  Axis oh, ow, kh, kw, ic;
  int64_t in_h, in_w;  // rows and columns of the input that exist
  Axis image;  // of a batch, or of another axis that the window does not move along; no variable: there is one image
  bool counted = false;  // a run may have fewer images
  int64_t images() const { return image.var ? image.extent.value : 1; }
};

// May a run have fewer images, and nothing else be less? Nothing: something else may be. Behind the last row of a run lies anything, no
// number even, and transforms mix it into results that are needed. The result's axes may be others than those of the sum: a padded
// image's.
std::optional<bool> ends_early(const Axis& image, const TemplateArgs& a) {
  const std::vector<Axis>& axes = a.fn.stages.back().axes;
  for (const int axis : a.options.open_axes)
    if (size_t(axis) >= axes.size() || !image.var || axes[size_t(axis)].var != image.var) return {};
  return !a.options.open_axes.empty();
}

// Two row axes, or three with that of the images, and windows of 3 x 3 that move by one. `k` of a contraction is merged: (kh, kw and ic).
std::optional<Shape> match(const TemplateArgs& a) {
  auto c = match_contraction(a);
  if (!c || c->right != Contraction::Right::Packed || !c->outer.empty() || c->q_k.size() != 3) return {};
  const size_t rows = c->rows.size();
  if (rows != 2 && rows != 3) return {};
  Shape s{.m = *c,
          .oh = c->rows[rows - 2],
          .ow = c->rows[rows - 1],
          .kh = c->q_k[0],
          .kw = c->q_k[1],
          .ic = c->q_k[2],
          .in_h = 0,
          .in_w = 0,
          .image = rows == 3 ? c->rows[0] : Axis{}};
  const auto counted = ends_early(s.image, a);
  if (!counted) return {};
  s.counted = *counted;
  if (c->k.size() != 2 || s.kh.extent != Dim(3) || s.kw.extent != Dim(3) || c->k[0].var != s.kh.var) return {};
  const int64_t channels = s.ic.extent.value, line = c->p_at.of(s.oh.var);
  if (c->p_at.of(s.ow.var) != channels || c->p_at.of(c->k[1].var) != 1 || c->p_at.of(s.kh.var) != line) return {};
  if (channels % kMaxLanes != 0 || c->n.extent.value % kMaxLanes != 0 || channels < 32 || c->n.extent.value < 32)
    return {};
  if (line % channels != 0 || c->p_at.constant != 0) return {};
  s.in_w = line / channels;
  s.in_h = s.oh.extent.value + 2;
  return s;
}

// Of the memory between the steps, for the images of a group; a third-level cache holds it.
constexpr int64_t kMostBytes = 8 << 20;

int64_t bytes_of_image(const Shape& s, int64_t m) {
  const int64_t tiles = ceil_div(s.oh.extent.value, m) * ceil_div(s.ow.extent.value, m);
  return (m + 2) * (m + 2) * tiles * (s.ic.extent.value + s.m.n.extent.value) * info(DType::F32).bytes;
}

// Images of a group: so many that groups are equal.
int64_t group_of_images(const Shape& s, int64_t m) {
  int64_t group = s.counted ? 1 : std::clamp<int64_t>(kMostBytes / bytes_of_image(s, m), 1, s.images());
  while (s.images() % group != 0) group--;
  return group;
}

class Builder {
 public:
  Builder(const Shape& s, const TemplateArgs& a, int64_t m, bool parallel)
      : s_(s), a_(a), t_(winograd_transform(m)), parallel_(parallel), group_(group_of_images(s, m)) {
    const int64_t size = t_.size();
    tiles_h_ = ceil_div(s.oh.extent.value, m);
    tiles_w_ = ceil_div(s.ow.extent.value, m);
    tiles_ = group_ * tiles_h_ * tiles_w_;
    ic_ = s.ic.extent.value;
    oc_ = s.m.n.extent.value;
    v_ = make_buffer("tiles", DType::F32, {Dim(size * size * tiles_ * ic_)}, Scope::Workspace);
    sums_ = make_buffer("sums", DType::F32, {Dim(size * size * tiles_ * oc_)}, Scope::Workspace);
    if (s.images() > group_) first_ = make_var(group_ > 1 ? "images" : "image");
  }

  Scheduled build() {
    Scheduled s;
    const Stmt in = comment("input tiles, transformed",
                            over_tiles(ic_, [&](const Place& at, const Var& v) { return input_tile(at, v); }));
    const Stmt products = comment("a matrix product for each place in a tile", multiply(s));
    const Stmt out = comment("results from the products",
                             over_tiles(oc_, [&](const Place& at, const Var& v) { return output_tile(at, v); }));
    Stmt steps = alloc(v_, alloc(sums_, seq({in, products, out})));
    if (first_) steps = loop(first_, s_.images() / group_, steps);
    s.body = seq({fill_border(s_.m.c), steps});
    bind_operands(s, s_.m.c);
    s.family = "winograd";
    const int64_t macs = t_.size() * t_.size() * tiles_ * ic_ * oc_, groups = s_.images() / group_;
    s.macs = groups > INT64_MAX / macs ? INT64_MAX : groups * macs;
    s.description = "Winograd, " + to_text(t_.m) + " x " + to_text(t_.m) + " results from " + to_text(t_.size()) +
                    " x " + to_text(t_.size()) + " inputs; " + product_description_;
    if (first_) s.description += "; " + (group_ > 1 ? to_text(group_) + " images" : "an image") + " at a time";
    return s;
  }

 private:
  // Of a tile: the image, row and column of tiles in it, and its number in the group.
  struct Place {
    Expr image, h, w, number;
  };

  // Tiles row by row; the rows of tiles are shared among threads.
  Stmt over_tiles(int64_t channels, const std::function<Stmt(const Place&, const Var& v)>& body) {
    const Var h = make_var("tile_h"), w = make_var("tile_w"), v = make_var("v"), row = make_var("row"),
              image = make_var("image");
    const ForKind kind = parallel_ ? ForKind::Parallel : ForKind::Serial;
    const Expr of = first_ ? Expr(first_) : Expr(0);
    const auto tiles_of = [&](const Expr& at, const Expr& rows) {
      const Stmt tile = body({at, Expr(h), Expr(w), rows * Expr(tiles_w_) + Expr(w)}, v);
      return loop(w, tiles_w_, loop(v, Expr(channels) / lanes(), tile));
    };
    if (group_ == 1) return loop(h, tiles_h_, tiles_of(of, Expr(h)), kind);
    const Stmt tiles = tiles_of(Expr(image), Expr(row));
    return loop(row, group_ * tiles_h_,
                let(image, of * Expr(group_) + Expr(row) / Expr(tiles_h_),
                    let(h, apply(Op::Mod, {Expr(row), Expr(tiles_h_)}), tiles)),
                kind);
  }

  // Element `index` of a Register array of vectors.
  static Exprs vector_index(const Expr& i, const Expr& j) { return {i, j, ramp(Expr(0))}; }
  Buffer square(const std::string& name, int64_t h, int64_t w) const {
    return make_buffer(name, DType::F32, {Dim(h), Dim(w), Dim(kMaxLanes)}, Scope::Register);
  }
  static Exprs row_of(const Buffer& b, const Expr& i, int64_t n, bool transposed) {
    Exprs x;
    for (int64_t j = 0; j < n; j++)
      x.push_back(load(b, transposed ? vector_index(Expr(j), i) : vector_index(i, Expr(j))));
    return x;
  }
  static Stmt unrolled(const std::string& name, int64_t n, const std::function<Stmt(const Expr&)>& body) {
    const Var i = make_var(name);
    return loop(i, n, body(Expr(i)), ForKind::Unroll);
  }

  Stmt input_tile(const Place& at, const Var& v) {
    const int64_t size = t_.size();
    const Buffer d = square("d", size, size), r = square("r", size, size);
    const Expr h = at.h * Expr(t_.m), w = at.w * Expr(t_.m);
    const bool cut_h = tiles_h_ * t_.m + 2 > s_.in_h, cut_w = tiles_w_ * t_.m + 2 > s_.in_w;
    const Stmt read = unrolled("i", size, [&](const Expr& i) {
      return unrolled("j", size, [&](const Expr& j) {
        Expr index = ((h + i) * Expr(s_.in_w) + w + j) * Expr(ic_) + Expr(v) * lanes();
        if (s_.image.var) index = at.image * Expr(s_.m.p_at.of(s_.image.var)) + index;
        Expr x = load(s_.m.p, {ramp(index)});
        Expr inside = make_int(DType::Bool, 1);
        if (cut_h) inside = inside && h + i < Expr(s_.in_h);
        if (cut_w) inside = inside && w + j < Expr(s_.in_w);
        if (cut_h || cut_w) x = select(inside, x, broadcast(make_float(DType::F32, 0)));
        return store(d, vector_index(i, j), x);
      });
    });
    const Stmt rows = unrolled("i", size, [&](const Expr& i) {
      Stmts list;
      for (int64_t b = 0; b < size; b++)
        list.push_back(store(r, vector_index(i, Expr(b)), combination(t_.bt[size_t(b)], row_of(d, i, size, false))));
      return seq(list);
    });
    const Stmt columns = unrolled("j", size, [&](const Expr& j) {
      Stmts list;
      for (int64_t b = 0; b < size; b++)
        list.push_back(store(v_, {ramp(element_offset(Expr(b), j, at, ic_, v))},
                             combination(t_.bt[size_t(b)], row_of(r, j, size, true))));
      return seq(list);
    });
    return alloc(d, alloc(r, seq({read, rows, columns})));
  }

  // Where element (a, b) of a tile lies in `tiles` and `sums`.
  Expr element_offset(const Expr& a, const Expr& b, const Place& at, int64_t channels, const Var& v) const {
    return (a * Expr(t_.size()) + b) * Expr(tiles_ * channels) + at.number * Expr(channels) + Expr(v) * lanes();
  }

  Stmt output_tile(const Place& at, const Var& v) {
    const int64_t size = t_.size(), m = t_.m;
    const Buffer r = square("r", m, size), d = square("d", size, size);
    const Stmt read = unrolled("i", size, [&](const Expr& i) {
      return unrolled("j", size, [&](const Expr& j) {
        return store(d, vector_index(i, j), load(sums_, {ramp(element_offset(i, j, at, oc_, v))}));
      });
    });
    const Stmt columns = unrolled("j", size, [&](const Expr& j) {
      Stmts list;
      for (int64_t i = 0; i < m; i++)
        list.push_back(store(r, vector_index(Expr(i), j), combination(t_.at[size_t(i)], row_of(d, j, size, true))));
      return seq(list);
    });
    const Stmt rows = unrolled("i", m, [&](const Expr& i) {
      Stmts list;
      for (int64_t j = 0; j < m; j++)
        list.push_back(result(at, i, j, combination(t_.at[size_t(j)], row_of(r, i, size, false)), v));
      const bool cut = s_.oh.extent.value % m > 0;
      return cut ? if_then(at.h * Expr(m) + i < Expr(s_.oh.extent), seq(list)) : seq(list);
    });
    return alloc(d, alloc(r, seq({read, columns, rows})));
  }

  Stmt result(const Place& at, const Expr& i, int64_t j, Expr sum, const Var& v) {
    const Expr oh = at.h * Expr(t_.m) + i, ow = at.w * Expr(t_.m) + Expr(j);
    LanePoint p{{{s_.oh.var, oh}, {s_.ow.var, ow}}, s_.m.n.var, Expr(v) * lanes(), {}, {}};
    if (s_.image.var) p.at.push_back({s_.image.var, at.image});
    const auto start = as_const_number(s_.m.start);
    if (!start || *start != 0) sum = sum + vector_form(s_.m.start, p);
    p.acc = sum;
    Stmt s = store_lanes(s_.m.c.out, s_.m.c.out_index, s_.m.c.epilogue, p);
    const int64_t rest = s_.ow.extent.value % t_.m;
    return rest > 0 && j >= rest ? if_then(ow < Expr(s_.ow.extent), s) : s;
  }

  // The products as a contraction: outer axes (a, b), rows of tiles, columns oc, sum over ic.
  Stmt multiply(Scheduled& s) {
    const int64_t size = t_.size();
    const Axis a{make_var("a"), Dim(size)}, b{make_var("b"), Dim(size)}, tile{make_var("tile"), Dim(tiles_)};
    Contraction c;
    c.c = s_.m.c;
    c.c.out = sums_;
    c.c.epilogue = load(c.c.reduced, {});
    auto offset = [&](const Axis& channel, int64_t channels) {
      Offset o;
      o.coefficient = {{a.var.get(), size * tiles_ * channels},
                       {b.var.get(), tiles_ * channels},
                       {tile.var.get(), channels},
                       {channel.var.get(), 1}};
      return o;
    };
    const Axis ic{make_var("ic"), s_.ic.extent}, oc{make_var("oc"), s_.m.n.extent};
    c.c.out_index =
        offset_expr(offset(oc, oc_),
                    {{a.var, Expr(a.var)}, {b.var, Expr(b.var)}, {tile.var, Expr(tile.var)}, {oc.var, Expr(oc.var)}});
    c.p = v_;
    c.p_at = offset(ic, ic_);
    c.outer = c.q_outer = {a, b};
    c.rows = {tile};
    c.n = oc;
    c.k = c.q_k = {ic};
    c.start = make_float(DType::F32, 0);
    c.right = Contraction::Right::Packed;
    c.q_value = weights(s, a, b, ic, oc);
    const ContractionPlan plan = plan_contraction(c, a_.cpu, a_.options);
    product_description_ = "products of " + to_text(int64_t(plan.tile.rows)) + " tiles by " +
                           to_text(int64_t(plan.tile.columns)) + " channels in registers";
    return contraction_loops(c, plan, s);
  }

  // sum(r) g[a][r] * x(r), a chosen by an axis.
  Expr chosen(const Axis& a, const std::function<Expr(int64_t r)>& x) const {
    const Exprs taps{x(0), x(1), x(2)};
    Expr e = combination(t_.g.back(), taps);
    for (size_t i = t_.g.size() - 1; i-- > 0;)
      e = select(eq(Expr(a.var), Expr(int64_t(i))), combination(t_.g[i], taps), e);
    return e;
  }

  // U over (a, b, ic, oc), in double until the last step: one stage for the rows, the caller's for the columns.
  Expr weights(Scheduled& s, const Axis& a, const Axis& b, const Axis& ic, const Axis& oc) {
    const Axis sa{make_var("a"), a.extent}, ss{make_var("s"), Dim(3)}, si{make_var("ic"), ic.extent},
        so{make_var("oc"), oc.extent};
    auto weight = [&](int64_t r) {
      return cast(DType::F64, substitute(s_.m.q_value, {{s_.kh.var.get(), Expr(r)},
                                                        {s_.kw.var.get(), Expr(ss.var)},
                                                        {s_.ic.var.get(), Expr(si.var)},
                                                        {s_.m.n.var.get(), Expr(so.var)}}));
    };
    Stage stage;
    stage.name = "rows_of_weights";
    stage.axes = {sa, ss, so, si};
    stage.values = {chosen(sa, weight)};
    const Buffer half = make_buffer("weight", DType::F64, {sa.extent, ss.extent, so.extent, si.extent});
    stage.outputs = {half};
    for (const Buffer& x : s_.m.c.originals)
      for (const Load* l : loads_of(s_.m.q_value))
        if (l->buffer == x && (s.prologue.inputs.empty() || s.prologue.inputs.back() != x))
          s.prologue.inputs.push_back(x);
    s.prologue.stages.push_back(std::move(stage));
    return cast(DType::F32, chosen(b, [&](int64_t r) {
                  return load(half, {Expr(a.var), Expr(r), Expr(oc.var), Expr(ic.var)});
                }));
  }

  const Shape& s_;
  const TemplateArgs& a_;
  const WinogradTransform& t_;
  const bool parallel_;                          // the transforms
  const int64_t group_;                          // images
  Var first_;                                    // the number of the group; null: there is one
  int64_t tiles_h_, tiles_w_, tiles_, ic_, oc_;  // tiles_: of a group
  Buffer v_, sums_;
  std::string product_description_;
};

constexpr int64_t kDirect = 0;     // no tiles: the sum over the window
constexpr int64_t kLeastSide = 7;  // of an image
constexpr int64_t kLeastSideForFour = 12;
constexpr double kTransformCycles = 12;  // for a vector of an input tile or of a tile of sums
// Of products and weights, the part of the shorter that does not hide behind the longer.
constexpr double kOverlap = 0.3;

// Cycles by m x m results a tile. Every weight comes from memory once: 36 instead of 9 for m = 4, which a core with little
// bandwidth feels more than the multiplications that it saves.
double expected_cycles(const Shape& s, const CpuModel& cpu, int64_t m) {
  const int64_t oh = s.oh.extent.value, ow = s.ow.extent.value, ic = s.ic.extent.value, oc = s.m.n.extent.value;
  // Of a size that a run chooses, the largest says nothing about what it is.
  const int64_t images = s.counted ? 1 : s.images();
  const auto of = [&](int64_t rows, int64_t repeated, int64_t weights, int64_t times) {
    const double compute =
        tile_cycles(cpu, rows, oc, choose_tile(cpu, rows, oc, ic)) * double(repeated) * double(weights * ic);
    const double memory = double(times * weights * ic * oc * 4) / (cpu.dram_gbs / cpu.ghz);
    return std::max(compute, memory) + kOverlap * std::min(compute, memory);
  };
  if (m == kDirect) return of(ow, oh * images, 9, 1);
  const int64_t size = (m + 2) * (m + 2), tiles = ceil_div(oh, m) * ceil_div(ow, m), group = group_of_images(s, m),
                groups = ceil_div(images, group);
  return of(tiles * group, groups, size, groups) +
         double(images * tiles * size * (ic + oc)) / cpu.vector_lanes * kTransformCycles;
}

// Which of these is cheapest; for a text that is compiled for another processor as well, on both.
int64_t cheapest(const Shape& s, const CpuModel& cpu, bool with_direct) {
  std::vector<int64_t> list = {2};
  if (std::min(s.oh.extent.value, s.ow.extent.value) >= kLeastSideForFour) list.push_back(4);
  if (with_direct) list.push_back(kDirect);
  std::vector<double> cost(list.size());
  const auto add = [&](const CpuModel& on) {
    std::vector<double> cycles;
    for (const int64_t m : list) cycles.push_back(expected_cycles(s, on, m));
    const double least = *std::min_element(cycles.begin(), cycles.end());
    for (size_t i = 0; i < list.size(); i++) cost[i] += cycles[i] / least;
  };
  add(cpu);
  if (!cpu.best_variant.empty()) add(*find_cpu(cpu.best_variant));
  return list[size_t(std::min_element(cost.begin(), cost.end()) - cost.begin())];
}

}  // namespace

std::optional<Scheduled> schedule_winograd(const TemplateArgs& a) {
  if (a.options.strict_fp || !a.options.winograd) return {};
  const auto s = match(a);
  if (!s) return {};
  if (std::min(s->oh.extent.value, s->ow.extent.value) < kLeastSide) return {};
  const bool stated = a.options.planner && a.options.planner->applies();
  const int64_t best = cheapest(*s, a.cpu, !stated);
  if (best == kDirect) return {};
  // Tiles of 6 x 6 and of 4 x 4 inputs.
  const int64_t outputs = a.plan.packing(
      "outputs", [&] { return best; }, KnobValues::range(2, 4, 2));
  return Builder(*s, a, outputs, a.plan.flag("parallel", true)).build();
}

}  // namespace tc
