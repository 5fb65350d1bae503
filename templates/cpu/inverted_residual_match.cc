// Matching of inverted residuals: where the three parts of the function end, and whether each of them is of the form
// that inverted_residual.cc computes row by row.
#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/graph/region.h"
#include "templates/cpu/inverted_residual.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/regions.h"

namespace tc {
namespace {

using Dense = InvertedResidual::Dense;
using Depthwise = InvertedResidual::Depthwise;

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
  if (sums.size() != 3 || fn.outputs.size() != 1 || !sums_a_window(fn.stages[sums[1]])) return {};
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

std::optional<Dense> match_dense(const TensorFn& part, const std::vector<AxisRange>& row, const TemplateArgs& a) {
  auto tile = result_tile(part, row);
  const auto c = tile ? canonicalize(tile->fn) : std::nullopt;
  if (!c || c->border) return {};
  const std::vector<bool> constant = constants_of(tile->fn, a);
  const auto m = match_contraction({tile->fn, &*c, constant, a.cpu, a.options});
  if (!m || m->right != Contraction::Right::Packed || !m->outer.empty() || m->rows.size() > 1 || m->k.size() != 1)
    return {};
  return Dense{std::move(*tile), *m};
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
    const std::vector<bool> constant = constants_of(d.tile.fn, a);
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

std::optional<Depthwise> match_depthwise(const TensorFn& part, const InvertedResidual& r, const TemplateArgs& a) {
  auto tile = result_tile(part, r.result_row());
  const auto c = tile ? canonicalize(tile->fn) : std::nullopt;
  if (!c || !c->value || c->border || c->combine != Op::Add || c->raxes.size() != 2) return {};
  if (c->axes.empty() || c->axes.size() > 2 || c->out->dtype != DType::F32) return {};
  Depthwise d;
  d.tile = std::move(*tile);
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
  for (size_t i = 0; i < d.tile.operands.size(); i++) {
    const ResultTile::Operand& o = d.tile.operands[i];
    if (o.whole != r.expanded) continue;
    if (o.step[0] % line != 0 || !match_factors(d, c->inputs[i], line, a)) return {};
    d.row_step = o.step[0] / line;
    if (d.row_step > 0) return d;
  }
  return {};
}

// The expanded tensor's offset in its border of zeros.
bool match_border(const TensorFn& part, InvertedResidual& r, size_t& end) {
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

}  // namespace

std::optional<InvertedResidual> match_inverted_residual(const TemplateArgs& a) {
  if (a.options.strict_fp || a.fn.outputs.size() != 1) return {};
  const auto cuts = find_cuts(a.fn);
  if (!cuts) return {};
  InvertedResidual r;
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

}  // namespace tc
