#include "templates/result_tile.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/row_major.h"

namespace tc {
namespace {

bool holds(const std::vector<Buffer>& list, const Buffer& b) {
  return std::find(list.begin(), list.end(), b) != list.end();
}

Exprs expressions(const Stage& s) {
  Exprs list = s.values;
  list.insert(list.end(), s.init.begin(), s.init.end());
  return list;
}

class Restriction {
 public:
  Restriction(const TensorFn& fn, const std::vector<AxisRange>& ranges) : fn_(fn), ranges_(ranges) {}

  std::optional<ResultTile> run() {
    const Buffer& out = fn_.outputs[0];
    if (fn_.outputs.size() != 1 || fn_.stages.empty() || fn_.stages.back().outputs[0] != out) return {};
    AxisToRange& whole = axes_[out.get()];
    for (size_t p = 0; p < ranges_.size(); p++) whole.push_back({ranges_[p].axis, p});
    for (size_t i = fn_.stages.size(); i-- > 0;)
      if (!propagate(fn_.stages[i])) return {};
    for (const Stage& s : fn_.stages)
      if (!add(s)) return {};
    tile_.fn.outputs = {made_.at(out.get())};
    tile_.result.part = tile_.fn.outputs[0];
    tile_.result.whole = out;
    const std::vector<int64_t> strides = row_major(static_dims(out->shape));
    for (const AxisRange& p : ranges_) tile_.result.step.push_back(strides[p.axis]);
    return std::move(tile_);
  }

 private:
  using AxisToRange = std::vector<std::pair<size_t, size_t>>;  // axis of a buffer, index of the range

  // The range that variable v of a stage runs over; -1: everything.
  int range_of(const Stage& s, const VarDef* v) const {
    const auto it = axes_.find(s.outputs[0].get());
    if (it == axes_.end()) return -1;
    for (const auto& [axis, p] : it->second)
      if (s.axes[axis].var.get() == v) return int(p);
    return -1;
  }

  // The variables of a stage that ranges restrict, and the numbers of these ranges.
  struct RangedVars {
    std::vector<Var> vars;
    std::vector<size_t> range;
  };
  RangedVars ranged_vars(const Stage& s) const {
    RangedVars r;
    for (const auto& [axis, p] : axes_.at(s.outputs[0].get())) {
      r.vars.push_back(s.axes[axis].var);
      r.range.push_back(p);
    }
    return r;
  }

  // From a stage's ranges to those of the stages that it reads.
  bool propagate(const Stage& s) {
    const auto it = axes_.find(s.outputs[0].get());
    if (it == axes_.end()) return false;
    // A reduction that some range does not restrict would be computed again for each tile.
    if (s.kind == Stage::Kind::Reduce && it->second.size() != ranges_.size()) return false;
    const std::vector<Var> vars = ranged_vars(s).vars;
    for (const Expr& e : expressions(s)) {
      for (const Var& v : vars)
        if (uses_as_value(e, v)) return false;
      for (const Load* l : loads_of(e)) {
        if (!producer(fn_, l->buffer)) continue;
        AxisToRange at;
        for (size_t d = 0; d < l->index.size(); d++) {
          const VarRef* v = as<VarRef>(l->index[d]);
          const int p = v ? range_of(s, v->var.get()) : -1;
          if (p >= 0) at.push_back({d, size_t(p)});
          for (const Var& x : vars)
            if (p < 0 && uses_var(l->index[d], x)) return false;
        }
        std::sort(at.begin(), at.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        const auto [known, fresh] = axes_.emplace(l->buffer.get(), at);
        if (!fresh && known->second != at) return false;
      }
    }
    return true;
  }

  bool add(const Stage& s) {
    Stage part = s;
    const RangedVars at = ranged_vars(s);
    for (const auto& [axis, p] : axes_.at(s.outputs[0].get())) part.axes[axis].extent = Dim(ranges_[p].extent);
    bool ok = true;
    auto local = [&](const Expr& e) {
      return rewrite(e, [&](const Expr& x) -> Expr {
        const Load* l = as<Load>(x);
        if (!l) return {};
        const auto it = made_.find(l->buffer.get());
        if (it != made_.end()) return load(it->second, l->index);
        const Buffer view = operand(*l, at);
        ok = ok && bool(view);
        return view && view != l->buffer ? load(view, l->index) : Expr();
      });
    };
    for (Expr& e : part.values) e = local(e);
    for (Expr& e : part.init) e = local(e);
    if (!ok) return false;
    auto b = std::make_shared<BufferDef>(*s.outputs[0]);
    for (size_t d = 0; d < part.axes.size(); d++) b->shape[d] = part.axes[d].extent;
    if (s.outputs[0] == fn_.outputs[0]) b->strides = row_major(static_dims(s.outputs[0]->shape));
    part.outputs = {b};
    made_[s.outputs[0].get()] = b;
    tile_.fn.stages.push_back(std::move(part));
    return true;
  }

  // The operand as this load sees it; null if the index is not affine in the ranges.
  Buffer operand(const Load& l, const RangedVars& at) {
    const std::vector<int64_t> strides = row_major(static_dims(l.buffer->shape));
    std::vector<int64_t> step(ranges_.size(), 0);
    for (size_t d = 0; d < l.index.size(); d++) {
      const auto f = affine_in(l.index[d], at.vars);
      if (!f) return nullptr;
      for (size_t k = 0; k < at.vars.size(); k++) step[at.range[k]] += f->coefficients[k] * strides[d];
    }
    for (const ResultTile::Operand& o : tile_.operands)
      if (o.whole == l.buffer && o.step == step) return o.part;
    const bool everywhere = std::all_of(step.begin(), step.end(), [](int64_t n) { return n == 0; });
    const Buffer part = everywhere ? l.buffer : std::make_shared<const BufferDef>(*l.buffer);
    tile_.operands.push_back({part, l.buffer, std::move(step)});
    tile_.fn.inputs.push_back(part);
    return part;
  }

  const TensorFn& fn_;
  const std::vector<AxisRange>& ranges_;
  ResultTile tile_;
  std::map<const BufferDef*, AxisToRange> axes_;  // looked up only
  std::map<const BufferDef*, Buffer> made_;       // looked up only
};

}  // namespace

TensorFn stages_of(const TensorFn& fn, size_t begin, size_t end) {
  TensorFn part;
  std::vector<Buffer> made;
  for (size_t i = begin; i < end; i++) {
    const Stage& s = fn.stages[i];
    if (s.kind == Stage::Kind::Nest || s.scan >= 0 || s.outputs.size() != 1 || !is_static(s.outputs[0]->shape))
      return {};
    for (const Expr& e : expressions(s))
      for (const Load* l : loads_of(e))
        if (!holds(made, l->buffer) && !holds(part.inputs, l->buffer)) part.inputs.push_back(l->buffer);
    part.stages.push_back(s);
    made.push_back(s.outputs[0]);
  }
  if (!made.empty()) part.outputs = {made.back()};
  return part;
}

Expr ResultTile::Operand::offset(const std::vector<AxisRange>& ranges) const {
  Expr e = 0;
  for (size_t p = 0; p < ranges.size(); p++) e = e + ranges[p].begin * Expr(step[p]);
  return e;
}

std::optional<ResultTile> result_tile(const TensorFn& fn, const std::vector<AxisRange>& ranges) {
  return Restriction(fn, ranges).run();
}

TileMemory::TileMemory(const TensorFn& whole) : fn_(whole) {
  for (const auto* list : {&whole.inputs, &whole.outputs})
    for (const Buffer& b : *list)
      memory_[b.get()] = {make_buffer(b->name, b->dtype, {Dim(num_elements(static_dims(b->shape)))}), 0};
}

void TileMemory::keep_in(const Buffer& result, const Buffer& scratch, const Expr& offset) {
  memory_[result.get()] = {scratch, offset};
}

Stmt TileMemory::see_operand(const Stmt& body, const Buffer& view, const ResultTile::Operand& o,
                             const std::vector<AxisRange>& ranges, const std::string& suffix) const {
  const auto it = memory_.find(o.whole.get());
  check(it != memory_.end(), "every operand of a strip has memory");
  const Memory& m = it->second;
  const Expr offset = m.offset + o.offset(ranges);
  if (is_const(offset, 0)) return substitute_buffers(body, {{view.get(), m.flat}});
  auto named = std::make_shared<BufferDef>(*view);
  named->name = m.flat->name + "_" + suffix;
  named->scope = m.flat->scope == Scope::Global ? Scope::Global : Scope::Workspace;
  return alias(named, m.flat, offset, substitute_buffers(body, {{view.get(), named}}));
}

Stmt TileMemory::see(Stmt body, const ResultTile& tile, const Canonical& c, const std::vector<AxisRange>& ranges,
                     const std::string& suffix) const {
  std::map<const BufferDef*, bool> used;
  walk(
      body,
      [&](const Stmt& s) {
        if (const Store* k = as<Store>(s)) used[k->buffer.get()] = true;
        if (const Intrin* k = as<Intrin>(s))
          for (const Buffer& b : k->buffers) used[b.get()] = true;
        return true;
      },
      [&](const Expr& e) {
        if (const Load* l = as<Load>(e)) used[l->buffer.get()] = true;
        return true;
      });
  for (size_t i = 0; i < c.inputs.size(); i++)
    if (used[c.inputs[i].get()]) body = see_operand(body, c.inputs[i], tile.operands[i], ranges, suffix);
  return used[c.out.get()] ? see_operand(body, c.out, tile.result, ranges, suffix) : body;
}

void TileMemory::bind(Scheduled& s) const {
  std::map<const BufferDef*, bool> used;
  walk(
      s.body,
      [&](const Stmt& x) {
        if (const Alias* a = as<Alias>(x)) used[a->base.get()] = true;
        if (const Intrin* k = as<Intrin>(x))
          for (const Buffer& b : k->buffers) used[b.get()] = true;
        return true;
      },
      [&](const Expr& x) {
        if (const Load* l = as<Load>(x)) used[l->buffer.get()] = true;
        return true;
      });
  for (size_t i = 0; i < fn_.inputs.size(); i++) {
    const Buffer& flat = memory_.at(fn_.inputs[i].get()).flat;
    if (!used[flat.get()]) continue;
    s.inputs.push_back(fn_.inputs[i]);
    s.input_index.push_back(int(i));
    s.views.push_back({flat, fn_.inputs[i]});
  }
  s.outputs = fn_.outputs;
  s.views.push_back({memory_.at(fn_.outputs[0].get()).flat, fn_.outputs[0]});
}

}  // namespace tc
