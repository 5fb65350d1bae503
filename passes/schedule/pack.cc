// pack: an operand that is known while compiling, in another layout. The loops read the copy, which a prologue computes.
#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/analysis/region.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

// A dimension of the packed operand: a dimension of the operand, the number of its tile, or the place in it.
struct PackedAxis {
  size_t dimension = 0;
  int64_t tile = 1, extent = 1;
  enum class Part { Whole, Tile, InTile } part = Part::Whole;

  Expr of(const Exprs& index) const {
    const Expr& i = index[dimension];
    if (part == Part::Whole) return i;
    return part == Part::Tile ? floor_div(i, tile) : floor_mod(i, tile);
  }
  std::string text() const {
    const std::string d = "d" + to_text(int64_t(dimension));
    return part == Part::Whole ? d : d + (part == Part::Tile ? " / " : " % ") + to_text(tile);
  }
};

std::vector<StepOperand> numbers(const std::vector<int64_t>& list) {
  std::vector<StepOperand> all;
  for (const int64_t n : list) all.push_back({n});
  return all;
}

std::vector<PackedAxis> packed_axes(const StepCheck& step, const Buffer& b, const std::vector<int64_t>& order,
                                    const std::vector<int64_t>& dimensions, const std::vector<int64_t>& tiles) {
  const size_t rank = b->shape.size();
  std::vector<int64_t> sorted = order, all(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  step.require_argument(1, sorted == all, "this is no order of its " + to_text(int64_t(rank)) + " dimensions");
  step.require_argument(3, dimensions.size() == tiles.size(), "there is a tile for each dimension that is cut");
  std::vector<int64_t> tile_of(rank, 0);
  for (size_t k = 0; k < dimensions.size(); k++) {
    const int64_t d = dimensions[k];
    step.require_argument(2, d >= 0 && d < int64_t(rank), "there is no dimension " + to_text(d));
    step.require_argument(2, tile_of[size_t(d)] == 0, "dimension " + to_text(d) + " is cut twice");
    step.require_argument(
        3, tiles[k] >= 1 && tiles[k] <= b->shape[size_t(d)].value,
        "a tile of dimension " + to_text(d) + " has from 1 to " + to_text(b->shape[size_t(d)].value) + " elements");
    tile_of[size_t(d)] = tiles[k];
  }
  std::vector<PackedAxis> axes;
  for (const int64_t d : order) {
    const int64_t tile = tile_of[size_t(d)], n = b->shape[size_t(d)].value;
    using enum PackedAxis::Part;
    axes.push_back({size_t(d), tile, tile == 0 ? n : (n + tile - 1) / tile, tile == 0 ? Whole : Tile});
  }
  for (size_t k = 0; k < tiles.size(); k++)
    axes.push_back({size_t(dimensions[k]), tiles[k], tiles[k], PackedAxis::Part::InTile});
  return axes;
}

// packed[a0, a1, ...] = b[...], and zero behind the end of a dimension whose tiles do not divide it.
Stage packing(const Buffer& b, const Buffer& packed, const std::vector<PackedAxis>& axes) {
  Stage stage;
  stage.name = "packed";
  Exprs at(b->shape.size(), Expr(0));
  for (size_t k = 0; k < axes.size(); k++) {
    const Var v = make_var("p" + to_text(int64_t(k)));
    stage.axes.push_back({v, Dim(axes[k].extent)});
    const Expr part = axes[k].part == PackedAxis::Part::Tile ? Expr(v) * Expr(axes[k].tile) : Expr(v);
    at[axes[k].dimension] = at[axes[k].dimension] + part;
  }
  Expr exists;
  for (const PackedAxis& a : axes) {
    const int64_t n = b->shape[a.dimension].value;
    if (a.part != PackedAxis::Part::Tile || n % a.tile == 0) continue;
    const Expr inside = at[a.dimension] < Expr(n);
    exists = exists ? exists && inside : inside;
  }
  const Expr value = load(b, at);
  stage.values = {exists ? select(exists, value, zero(b->dtype)) : value};
  stage.outputs = {packed};
  return stage;
}

}  // namespace

// An operand that is known while compiling is stored in another layout, as a weight of its own. Its dimensions stand in
// `order`; those of `dimensions` are cut into tiles, whose elements are the last dimensions. Returns the buffer that the loops
// read.
//   y[i] += w[k, i]   ->   y[i] += w_packed[i / 16, k, i % 16]     for pack(w, [1, 0], [1], [16])
// Refused: a buffer that is no operand, or one that the model does not know; what is no order of its dimensions; a tile that is
// longer than its dimension; reads in vectors; elements that are texts or smaller than a byte.
Buffer Schedule::pack(const Buffer& b, const std::vector<int64_t>& order, const std::vector<int64_t>& dimensions,
                      const std::vector<int64_t>& tiles) {
  StepCheck step(*this, "pack", {{b}, {numbers(order)}, {numbers(dimensions)}, {numbers(tiles)}});
  const bool known = std::find(known_.begin(), known_.end(), b) != known_.end();
  step.require_argument(0, known,
                        "\"" + b->name + "\" is no operand that is known while compiling; cache_read copies others");
  step.require_argument(0, b->dtype != DType::String && info(b->dtype).bits % 8 == 0,
                        "elements of \"" + b->name + "\" cannot be packed");
  const std::vector<PackedAxis> axes = packed_axes(step, b, order, dimensions, tiles);
  Shape shape;
  for (const PackedAxis& a : axes) shape.push_back(Dim(a.extent));
  const Buffer packed = make_buffer(b->name + "_packed", b->dtype, shape);
  bool read = false;
  const Stmt body = rewrite(
      body_,
      [&](const Expr& e) {
        const Load* l = as<Load>(e);
        if (!l || l->buffer != b) return Expr();
        step.require(!e->vector, "\"" + b->name + "\" is read in vectors", body_);
        read = true;
        Exprs at;
        for (const PackedAxis& a : axes) at.push_back(a.of(l->index));
        return load(packed, at);
      },
      [&](const Stmt& s) {
        const Intrin* k = as<Intrin>(s);
        step.require(!k || std::find(k->buffers.begin(), k->buffers.end(), b) == k->buffers.end(),
                     "an instruction reads \"" + b->name + "\"", body_);
        const Prefetch* p = as<Prefetch>(s);
        step.require(!p || p->buffer != b, "prefetch asks for \"" + b->name + "\"", body_);
        return Stmt();
      });
  step.require_argument(0, read, "the loops do not read \"" + b->name + "\"", body_);
  prologue_.inputs.push_back(b);
  prologue_.stages.push_back(packing(b, packed, axes));
  prologue_.outputs.push_back(packed);
  std::vector<std::string> texts;
  for (const PackedAxis& a : axes) texts.push_back(a.text());
  prologue_layouts_.push_back("packed: " + join(texts, ", "));
  step.done(tidy(body, {}), {{packed}});
  return packed;
}

}  // namespace tc
