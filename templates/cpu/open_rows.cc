// Functions of several stages over an axis that no memory holds (a size without an upper bound): tile by tile of that axis, all
// stages one after the other, so that what lies between them is as large as a tile is.
//
//   for tiles of 16 of the axis:                           shared among threads
//     projection = x[16 of them] * W                       each stage of the definition over the tile, as a function of its own,
//     for each step t: h[t] = f(projection[t], h[t - 1])   by the template that fits it
//     y[16 of them] = h
//
// The last tile reaches beyond the last element, where what it reads is whatever lies there, and what it writes nobody reads.
#include "templates/cpu/open_rows.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/loop/flatten_buffers.h"
#include "support/text.h"
#include "templates/cpu/schedule_cpu.h"

namespace tc {
namespace {

constexpr int64_t kMostRows = 16, kLeastRows = 4;  // of a tile; plan_open_sizes leaves room for more
constexpr int64_t kParts = 32;                     // chunks for threads

bool holds(const std::vector<Buffer>& list, const Buffer& b) {
  return std::find(list.begin(), list.end(), b) != list.end();
}

class OpenRows {
 public:
  explicit OpenRows(const TensorFn& fn) : fn_(fn) {}

  /// Has every stage the axis, and does every result depend on one element of it?
  bool match() {
    if (fn_.stages.size() < 2 || fn_.outputs.empty()) return false;
    bool between = false;
    for (const Stage& s : fn_.stages) {
      if (!add(s)) return false;
      for (const Buffer& b : s.outputs) between = between || !holds(fn_.outputs, b);
    }
    const auto reads = [&](const Stage& s) { return reads_rows(s); };
    return between && std::all_of(fn_.stages.begin(), fn_.stages.end(), reads) &&
           std::all_of(fn_.outputs.begin(), fn_.outputs.end(), [&](const Buffer& b) {
             const auto axis = axes_.find(b.get());
             return axis != axes_.end() && is_outermost(b, axis->second);
           });
  }

  std::optional<Scheduled> schedule(const TemplateArgs& a) {
    rows_ = kMostRows;
    while (rows_ > kLeastRows && rows_ * bytes_between() > int64_t(a.cpu.l2_bytes)) rows_ /= 2;
    if (size_ % (rows_ * kParts) != 0) return {};
    const TensorFn tile = tile_function();
    ScheduleOptions options = a.options;
    options.open_axes.clear();
    options.fetch_ahead = false;  // every tile reads the same weights
    Scheduled part = schedule_cpu(tile, a.constant_input, a.cpu, options);
    Scheduled s = part;
    s.inputs.clear();
    s.views.clear();
    s.outputs = fn_.outputs;
    for (const int i : part.input_index) s.inputs.push_back(fn_.inputs[size_t(i)]);
    s.body = all_tiles(part, tile, s);
    s.family = "open_rows";
    s.description = "tiles of " + to_text(rows_) + " along the axis without an upper bound; each: " + part.description;
    return s;
  }

 private:
  static Dims dims_of(const Buffer& b) { return static_dims(b->shape); }

  bool add(const Stage& s) {
    if (s.nest || s.outputs.empty() || !is_static(s.outputs[0]->shape)) return false;
    const Dims dims = dims_of(s.outputs[0]);
    const auto open = std::find_if(dims.begin(), dims.end(), is_open);
    if (std::count_if(dims.begin(), dims.end(), is_open) != 1 || (size_ != 0 && *open != size_)) return false;
    size_ = *open;
    const auto axis = size_t(open - dims.begin());
    if (s.scan >= 0 && axis == 0) return false;
    for (const Axis& r : s.raxes)
      if (is_open(r.extent.value)) return false;
    for (const Buffer& b : s.outputs) {
      if (!b->strides.empty() || b->offset != 0) return false;
      axes_[b.get()] = axis;
    }
    return true;
  }
  bool reads_rows(const Stage& s) {
    const Var v = s.axes[axes_.at(s.outputs[0].get())].var;
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (bool(e) && !reads_rows(e, v)) return false;
    return true;
  }

  /// Does the variable stand for nothing but the place along the axis in what is read?
  bool reads_rows(const Expr& e, const Var& v) {
    bool ok = !uses_as_value(e, v);
    walk(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      if (!l || !ok) return ok;
      const bool own = !holds(fn_.inputs, l->buffer);
      const auto known = axes_.find(l->buffer.get());
      size_t at = l->index.size();
      for (size_t d = 0; d < l->index.size(); d++) {
        const VarRef* r = as<VarRef>(l->index[d]);
        if (r && r->var == v && at == l->index.size())
          at = d;
        else
          ok = ok && !uses_as_value(l->index[d], v);
      }
      if (own) return ok = ok && known != axes_.end() && at == known->second;
      const bool whole = at == l->index.size();
      if (!whole) ok = ok && is_outermost(l->buffer, at) && l->buffer->shape[at].value == size_;
      ok = ok && (known == axes_.end() || known->second == (whole ? kWhole : at));
      axes_.try_emplace(l->buffer.get(), whole ? kWhole : at);
      return ok;
    });
    return ok;
  }

  static bool is_outermost(const Buffer& b, size_t axis) {
    return b->strides.empty() && b->offset == 0 &&
           std::all_of(b->shape.begin(), b->shape.begin() + std::ptrdiff_t(axis),
                       [](const Dim& d) { return d.value == 1; });
  }
  int64_t row_of(const Buffer& b) const { return num_elements(dims_of(b)) / size_; }
  int64_t bytes_between() const {
    int64_t n = 0;
    for (const Stage& s : fn_.stages)
      for (const Buffer& b : s.outputs)
        if (!holds(fn_.outputs, b)) n = checked_add(n, checked_mul(row_of(b), info(b->dtype).bytes));
    return n;
  }

  TensorFn tile_function() {
    const auto of_tile = [&](const Buffer& b) {
      const auto axis = axes_.find(b.get());
      if (axis == axes_.end() || axis->second == kWhole) return b;
      auto d = std::make_shared<BufferDef>(*b);
      d->shape[axis->second] = Dim(rows_);
      return tiles_[b.get()] = d;
    };
    TensorFn tile;
    for (const Buffer& b : fn_.inputs) tile.inputs.push_back(of_tile(b));
    for (const Stage& s : fn_.stages)
      for (const Buffer& b : s.outputs) of_tile(b);
    for (Stage s : fn_.stages) {
      s.axes[axes_.at(s.outputs[0].get())].extent = Dim(rows_);
      for (Exprs* list : {&s.values, &s.init})
        for (Expr& e : *list)
          if (e) e = substitute_buffers(e, tiles_);
      for (Buffer& b : s.outputs) b = tiles_.at(b.get());
      tile.stages.push_back(std::move(s));
    }
    for (const Buffer& b : fn_.outputs) tile.outputs.push_back(tiles_.at(b.get()));
    return tile;
  }

  /// The loops over one tile become those over all of them.
  Stmt all_tiles(const Scheduled& part, const TensorFn& tile, Scheduled& s) const {
    BufferMap flat;
    Stmt body = flatten_buffers(part.body, flat);
    body = rewrite(body, {}, [](const Stmt& x) -> Stmt {
      const For* f = as<For>(x);
      return f && f->kind == ForKind::Parallel ? loop(f->var, f->extent, f->body, ForKind::Serial, f->begin) : Stmt();
    });
    std::vector<Scheduled::View> views = part.views;
    for (auto& [view, of] : views)
      if (const auto it = flat.find(view.get()); it != flat.end()) view = it->second;
    for (const auto* list : {&tile.inputs, &tile.outputs})
      for (const Buffer& b : *list)
        if (const auto it = flat.find(b.get()); it != flat.end()) views.push_back({it->second, b});
    const Var part_of = make_var("part"), at = make_var("tile");
    for (const auto& [view, of] : views) {
      const Buffer whole = whole_of(of);
      if (!whole) {
        s.views.push_back({view, of});
        continue;
      }
      const Buffer all = memory(s, whole);
      auto named = std::make_shared<BufferDef>(*view);
      named->name = whole->name + "_tile";
      body = alias(named, all, Expr(at) * Expr(rows_ * row_of(whole)), substitute_buffers(body, {{view.get(), named}}));
    }
    const int64_t each = size_ / rows_ / kParts;
    return loop(part_of, kParts, loop(at, each, body, ForKind::Serial, Expr(part_of) * Expr(each)), ForKind::Parallel);
  }
  /// What a buffer of the tile is part of; null: all of it is read.
  Buffer whole_of(const Buffer& b) const {
    for (const auto* list : {&fn_.inputs, &fn_.outputs})
      for (const Buffer& whole : *list)
        if (const auto it = tiles_.find(whole.get()); it != tiles_.end() && it->second == b) return whole;
    return nullptr;
  }
  static Buffer memory(Scheduled& s, const Buffer& whole) {
    for (const auto& [flat, of] : s.views)
      if (of == whole) return flat;
    s.views.push_back({make_buffer(whole->name, whole->dtype, {Dim(num_elements(dims_of(whole)))}), whole});
    return s.views.back().flat;
  }

  static constexpr size_t kWhole = SIZE_MAX;
  const TensorFn& fn_;
  int64_t size_ = 0, rows_ = 1;
  std::map<const BufferDef*, size_t>
      axes_;  // where the axis is; kWhole: of an operand that is read everywhere. Looked up only
  BufferMap tiles_;
};

}  // namespace

std::optional<Scheduled> schedule_open_rows(const TemplateArgs& a) {
  OpenRows r(a.fn);
  return r.match() ? r.schedule(a) : std::nullopt;
}

}  // namespace tc
