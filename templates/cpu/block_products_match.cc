// Recognises sums of products of bytes in blocks.
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/cpu/block_products.h"
#include "templates/cpu/lanes.h"
#include "templates/few_bits.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

// Weights of experts have an axis of which each row takes one place: what stands there.
struct Choice {
  Axis expert;
  Expr place;
};

// The only index of constants that is read from other tensors; null: there is none, or there are several.
Choice choice_of(const Expr& value, const TemplateArgs& a) {
  Choice found;
  bool several = false;
  walk(value, [&](const Expr& x) {
    const Load* l = as<Load>(x);
    for (size_t d = 0; l && d < l->index.size(); d++) {
      if (is_constant(l->index[d], a)) continue;
      if (bool(found.place) && !structurally_equal(found.place, l->index[d])) several = true;
      found = {{make_var("expert"), l->buffer->shape[d]}, l->index[d]};
    }
    return true;
  });
  return several || !found.place || !found.expert.extent.is_const() ? Choice() : found;
}

Expr with_expert(const Expr& e, const Choice& c) {
  if (!c.place) return e;
  return rewrite(e, [&](const Expr& x) { return structurally_equal(x, c.place) ? Expr(c.expert.var) : Expr(); });
}

// `place` as it reads flat views: the loads of `flat` from which weights are chosen.
Expr flat_place(const Choice& c, const Expr& flat, const TemplateArgs& a) {
  const auto shaped = loads_of(c.place);
  if (shaped.size() != 1) return {};
  const auto& originals = a.canonical->originals;
  const auto at = std::find(originals.begin(), originals.end(), shaped[0]->buffer);
  if (at == originals.end()) return {};
  const Buffer& view = a.canonical->inputs[size_t(at - originals.begin())];
  Expr read;
  walk(flat, [&](const Expr& x) {
    if (const Load* l = as<Load>(x); l && l->buffer == view) read = x;
    return true;
  });
  if (!read) return {};
  return rewrite(c.place, [&](const Expr& x) { return as<Load>(x) ? read : Expr(); });
}

// The factors of the sum. What is no weight is a load of a flat view, or of what was it before.
struct Parts {
  const Load *q = nullptr, *s = nullptr;
  Expr number, scale;
};

// Does it read weights, perhaps those of the row's expert, and nothing else?
bool is_weight(const Expr& e, const TemplateArgs& a) {
  bool constant = false, other = false;
  walk(e, [&](const Expr& x) {
    const Load* l = as<Load>(x);
    if (!l) return true;
    const Expr first = load(l->buffer, Exprs(l->index.size(), Expr(0)));
    (is_constant(first, a) ? constant : other) = true;
    return false;
  });
  return !other && (constant || loads_of(e).empty());
}

std::optional<Parts> parts_of(const Expr& value, const TemplateArgs& a) {
  Parts p;
  for (const Expr& f : factors_of(value)) {
    const Cast* c = as<Cast>(f);
    if (c && c->value->dtype == DType::I32 && as<Apply>(c->value) && !p.q) {
      for (const Expr& g : factors_of(c->value)) {
        const Cast* byte = as<Cast>(g);
        const Load* l = byte ? as<Load>(byte->value) : nullptr;
        if (l && l->buffer->dtype == DType::I8 && !is_weight(g, a) && !p.q)
          p.q = l;
        else if (is_weight(g, a) && !p.number)
          p.number = g;
        else
          return {};
      }
    } else if (const Load* l = as<Load>(f); l && !is_weight(f, a) && l->buffer->dtype == DType::F32 && !p.s) {
      p.s = l;
    } else if (is_weight(f, a) && f->dtype == DType::F32) {
      p.scale = p.scale ? p.scale * f : f;
    } else {
      return {};
    }
  }
  if (!p.q || !p.s || !p.number || !p.scale) return {};
  return p;
}

// number - zero, both moved so that numbers are from 0 on.
bool take_number(BlockProduct& m, const Expr& e) {
  const Apply* k = as<Apply>(e);
  const bool shifted = k && k->op == Op::Sub;
  const Expr number = shifted ? k->args[0] : e, zero = shifted ? k->args[1] : make_int(DType::I32, 0);
  const auto values = few_values(number), zeros = few_values(zero);
  if (!values || !zeros || number->dtype != DType::I32 || uses_var(zero, m.k.var)) return false;
  if (zeros->min < values->min || zeros->max - values->min > 255) return false;
  m.bits = values->max - values->min < 16 ? 4 : 8;
  auto moved = [&](const Expr& x) -> Expr {
    if (const auto known = as_const_int(x)) return make_int(DType::I32, *known - values->min);
    return values->min == 0 ? x : x - make_int(DType::I32, values->min);
  };
  m.number = moved(number);
  if (const Expr least = moved(zero); !is_const(least, 0)) m.zero = least;
  return true;
}

}  // namespace

std::optional<BlockProduct> match_block_product(const TemplateArgs& a) {
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
  const Choice choice = choice_of(shaped->number, a);
  const Expr number = with_expert(shaped->number, choice);
  m.scale = with_expert(shaped->scale, choice);
  if (!is_constant(number, a) || !is_constant(m.scale, a)) return {};
  if (!take_number(m, number) || uses_var(m.scale, m.k.var)) return {};
  for (const Axis& x : c.axes)
    if (x.var != n->var) m.rows.push_back(x);
  if (uses_any(number, m.rows) || uses_any(m.scale, m.rows)) return {};
  if (choice.place) {
    m.expert = choice.expert;
    m.chosen = flat_place(choice, flat->number, a);
    if (!m.chosen || uses_var(m.chosen, n->var)) return {};
    m.outer.swap(m.rows);
  }
  merge_axes(m.rows, {&m.c.epilogue}, {&m.q_at, &m.s_at, &m.c.out_index});
  std::vector<Axis> all = m.rows;
  all.insert(all.end(), m.outer.begin(), m.outer.end());
  all.insert(all.end(), {m.n, m.block, m.k});
  const auto q = offset_of(m.q_at, vars_of(all)), s = offset_of(m.s_at, vars_of(all));
  const int64_t length = m.k.extent.value, steps = BlockProduct::kSteps;
  if (m.rows.size() > 1 || !q || !s || q->of(m.k.var) != 1 || q->of(m.n.var) != 0 || s->of(m.n.var) != 0) return {};
  if (s->of(m.k.var) != 0 || length * m.bits % 32 != 0 || (length > steps && length % steps != 0)) return {};
  return m;
}

}  // namespace tc
