// Constant operands in the order in which the loops read them, computed before the model runs.
#include "templates/packed.h"

#include <algorithm>
#include <functional>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {

bool is_constant(const Expr& e, const Canonical& c, const std::vector<bool>& constant_input) {
  for (const Load* l : loads_of(e)) {
    bool known = false;
    for (size_t i = 0; i < c.inputs.size(); i++)
      known = known || (constant_input[i] && (l->buffer == c.originals[i] || l->buffer == c.inputs[i]));
    if (!known) return false;
  }
  return true;
}

namespace {

Buffer add_stage(Scheduled& s, const Canonical& c, Stage stage, std::string layout) {
  const Expr value = stage.values[0];
  const auto loads = loads_of(value);
  const std::string name = loads.empty() ? "weight" : loads[0]->buffer->name;
  Shape shape;
  for (const Axis& a : stage.axes) shape.push_back(a.extent);
  const Buffer out = make_buffer(name, value->dtype, std::move(shape));
  const Buffer flat = make_buffer(name, value->dtype, {Dim(points(stage.axes))});
  stage.outputs = {out};
  for (const Buffer& b : c.originals) {
    const bool read = std::any_of(loads.begin(), loads.end(), [&](const Load* l) { return l->buffer == b; });
    const auto& have = s.prologue.inputs;
    if (read && std::find(have.begin(), have.end(), b) == have.end()) s.prologue.inputs.push_back(b);
  }
  s.prologue.stages.push_back(std::move(stage));
  s.prologue.outputs.push_back(out);
  s.prologue_layouts.push_back(std::move(layout));
  s.views.push_back({flat, out});
  return flat;
}

}  // namespace

Buffer add_packed(Scheduled& s, const Canonical& c, std::vector<Axis> axes, const Expr& value, std::string layout) {
  Stage stage;
  stage.name = "packed";
  stage.axes = std::move(axes);
  stage.values = {value};
  return add_stage(s, c, std::move(stage), std::move(layout));
}

Expr read_packed(Scheduled& s, const Canonical& c, const std::vector<Axis>& axes, const Expr& value) {
  std::vector<std::string> names;
  for (const Axis& a : axes) names.push_back(a.var->name);
  return load(add_packed(s, c, axes, value, "packed: " + join(names, ", ")), {point_number(axes)});
}

namespace {

bool depends_on_other(const Expr& e, const Var& v) {
  bool other = false;
  walk(e, [&](const Expr& x) {
    const VarRef* r = as<VarRef>(x);
    other = other || (r && r->var != v);
    return !other;
  });
  return other;
}

// Reads of flat views as reads of the operands.
Expr of_operands(const Canonical& c, const Expr& e) {
  return rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    for (size_t i = 0; l && i < c.inputs.size(); i++) {
      if (l->buffer != c.inputs[i]) continue;
      Exprs at(c.originals[i]->shape.size());
      Expr rest = l->index[0];
      for (size_t d = at.size(); d-- > 0; rest = rest / Expr(c.originals[i]->shape[d]))
        at[d] = d == 0 ? rest : apply(Op::Mod, {rest, Expr(c.originals[i]->shape[d])});
      return load(c.originals[i], at);
    }
    return {};
  });
}

}  // namespace

namespace {

Expr pack_parts(Scheduled& s, const Canonical& c, const std::vector<bool>& constant_input, const Expr& e,
                const Axis& lane, const std::function<bool(const Expr&)>& is_part) {
  std::vector<std::pair<Expr, Expr>> known;
  walk(e, [&](const Expr& x) {
    if (!is_part(x) || !uses_var(x, lane.var) || depends_on_other(x, lane.var) || !is_constant(x, c, constant_input))
      return !as<Load>(x);
    for (const auto& [of, read] : known)
      if (of.same_as(x)) return false;
    known.push_back({x, read_packed(s, c, {lane}, of_operands(c, x))});
    return false;
  });
  return rewrite(e, [&](const Expr& x) -> Expr {
    for (const auto& [of, read] : known)
      if (of.same_as(x)) return read;
    return {};
  });
}

}  // namespace

Expr pack_known(Scheduled& s, const Canonical& c, const std::vector<bool>& constant_input, const Expr& e,
                const Axis& lane) {
  return pack_parts(s, c, constant_input, e, lane,
                    [](const Expr& x) { return as<Apply>(x) != nullptr && !loads_of(x).empty(); });
}

Expr pack_known_loads(Scheduled& s, const Canonical& c, const std::vector<bool>& constant_input, const Expr& e,
                      const Axis& lane) {
  return pack_parts(s, c, constant_input, e, lane, [&](const Expr& x) {
    const Load* l = as<Load>(x);
    return l && l->index.size() == 1 && !offset_of(l->index[0], {lane.var});
  });
}

Buffer add_packed_sums(Scheduled& s, const Canonical& c, std::vector<Axis> axes, std::vector<Axis> raxes,
                       const Expr& value, std::string layout) {
  Stage stage;
  stage.kind = Stage::Kind::Reduce;
  stage.name = "sums";
  stage.axes = std::move(axes);
  stage.raxes = std::move(raxes);
  stage.values = {value};
  stage.combiner.op = Op::Add;
  stage.init = {zero(value->dtype)};
  return add_stage(s, c, std::move(stage), std::move(layout));
}

}  // namespace tc
