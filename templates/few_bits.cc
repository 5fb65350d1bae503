#include "templates/few_bits.h"

#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/error.h"

namespace tc {
namespace {

constexpr int64_t kWordBits = 32;

// n, where `e` is k / n of a constant n; null: it is something else.
std::optional<int64_t> divisor_of(const Expr& e, const Var& k) {
  const Apply* a = as<Apply>(e);
  const VarRef* v = a && (a->op == Op::FloorDiv || a->op == Op::Div) ? as<VarRef>(a->args[0]) : nullptr;
  const auto n = v && v->var == k ? as_const_int(a->args[1]) : std::nullopt;
  return n && *n > 0 ? n : std::nullopt;
}

bool is_constant_along(const Expr& e, const Var& k, int64_t block) { return bool(at_block(e, k, block, Expr(0))); }

// The distance of a number from its zero point: f32(x) - z, f32(x - z), f32(x).
struct Distance {
  Expr x, zero;
};
std::optional<Distance> distance_of(const Expr& e) {
  auto difference = [](const Expr& of) -> const Apply* {
    const Apply* k = as<Apply>(of);
    return k && k->op == Op::Sub ? k : nullptr;
  };
  const Apply* outer = difference(e);
  const Cast* c = as<Cast>(outer ? outer->args[0] : e);
  if (!c || e->dtype != DType::F32 || !is_int(c->value->dtype)) return {};
  const Apply* inner = difference(c->value);
  if (inner && outer) return {};
  if (inner) return Distance{inner->args[0], inner->args[1]};
  return Distance{c->value, outer ? outer->args[1] : Expr()};
}

constexpr int64_t kTableSize = 16;

// table[x] of a table with 16 elements.
const Load* lookup_of(const Expr& e) {
  const Load* l = as<Load>(e);
  if (!l || l->buffer->dtype != DType::F32 || l->index.size() != 1 || !l->buffer->shape[0].is_const()) return nullptr;
  const auto values = few_values(l->index[0]);
  return l->buffer->shape[0].value == kTableSize && values && values->min >= 0 && values->max < kTableSize ? l
                                                                                                           : nullptr;
}

// zero - middle, as an integer of i8 where it is one.
Expr shifted_zero(Expr zero, int64_t middle) {
  const Cast* c = zero ? as<Cast>(zero) : nullptr;
  if (c && zero->dtype == DType::F32 && is_int(c->value->dtype) && few_values(c->value)) zero = c->value;
  if (!zero) zero = make_int(DType::I32, 0);
  if (const auto n = as_const_number(zero); n && *n == double(int64_t(*n))) {
    const int64_t rest = int64_t(*n) - middle;
    return rest == 0 ? Expr() : make_float(DType::F32, double(rest));
  }
  if (!is_int(zero->dtype)) return zero - make_float(DType::F32, double(middle));
  const Expr rest = cast(DType::I32, zero) - make_int(DType::I32, middle);
  const auto values = few_values(zero);
  const bool small = values && values->min - middle >= -128 && values->max - middle <= 127;
  return small ? rest : cast(DType::F32, rest);
}

std::optional<FewBits> with_block(const Exprs& factors, const Var& k, int64_t block) {
  FewBits w;
  w.block = block;
  Expr varying;
  for (const Expr& f : factors) {
    if (!is_constant_along(f, k, block)) {
      if (varying) return {};
      varying = f;
    } else {
      w.scale = w.scale ? w.scale * f : f;
    }
  }
  if (const Load* l = varying ? lookup_of(varying) : nullptr) {
    w.bits = 4;
    w.number = cast(DType::I32, l->index[0]);
    w.table = l->buffer;
    return w;
  }
  const auto d = varying ? distance_of(varying) : std::nullopt;
  const auto values = d ? few_values(d->x) : std::nullopt;
  if (!values || (d->zero.get() && !is_constant_along(d->zero, k, block))) return {};
  // An integer zero point that is no number of few bits might overflow where a float would not.
  if (d->zero.get() && is_int(d->zero->dtype) && !few_values(d->zero)) return {};
  const int64_t count = values->max - values->min + 1;
  w.bits = count <= 4 ? 2 : count <= 16 ? 4 : 8;
  const int64_t middle = values->min + (int64_t(1) << (w.bits - 1));
  w.number = cast(DType::I32, d->x);
  if (middle != 0) w.number = w.number - make_int(DType::I32, middle);
  w.zero = shifted_zero(d->zero, middle);
  return w;
}

}  // namespace

std::optional<Range> few_values(const Expr& e) {
  if (const auto n = as_const_int(e)) return Range{*n, *n};
  if (const Apply* k = as<Apply>(e); k && k->op == Op::BitAnd) {
    const auto mask = as_const_int(k->args[1]);
    if (mask && *mask >= 0 && *mask < 256) return Range{0, *mask};
  }
  if (const Select* s = as<Select>(e)) {
    const auto yes = few_values(s->yes), no = few_values(s->no);
    return yes && no ? std::optional<Range>({std::min(yes->min, no->min), std::max(yes->max, no->max)}) : std::nullopt;
  }
  const DType t = e->dtype;
  if (is_int(t) && info(t).bits <= 8) return Range{*as_const_int(lowest(t)), *as_const_int(highest(t))};
  const Cast* c = as<Cast>(e);
  if (!c || !is_int(c->value->dtype)) return {};
  const auto inner = few_values(c->value);
  const bool fits = inner && is_int(t) && info(t).bits >= 32;
  return fits ? inner : std::nullopt;
}

Exprs factors_of(const Expr& e) {
  const Apply* k = as<Apply>(e);
  if (!k || k->op != Op::Mul) return {e};
  Exprs all = factors_of(k->args[0]);
  for (const Expr& f : factors_of(k->args[1])) all.push_back(f);
  return all;
}

Expr at_block(const Expr& e, const Var& k, int64_t block, const Expr& index) {
  const Expr found = rewrite(e, [&](const Expr& x) -> Expr {
    const auto by = divisor_of(x, k);
    if (!by || *by % block != 0) return {};
    return *by == block ? index : floor_div(index, Expr(*by / block));
  });
  return uses_var(found, k) ? Expr() : found;
}

std::optional<FewBits> few_bits_form(const Expr& e, const Axis& k) {
  if (e->dtype != DType::F32 || !k.extent.is_const()) return {};
  const Exprs factors = factors_of(e);
  std::set<int64_t, std::greater<>> blocks = {k.extent.value};
  walk(e, [&](const Expr& x) {
    const auto by = divisor_of(x, k.var);
    if (by && *by < k.extent.value) blocks.insert(*by);
    return true;
  });
  for (const int64_t block : blocks) {
    const auto w = with_block(factors, k.var, block);
    if (!w) continue;
    const bool whole = block * w->bits % kWordBits == 0 || block >= k.extent.value;
    return whole ? w : std::nullopt;
  }
  return {};
}

Expr word_of(const FewBits& w, const std::function<Expr(int64_t j)>& number) {
  Expr word;
  for (int64_t j = 0; j < w.per_word(); j++) {
    const Expr kept = apply(Op::BitAnd, {number(j), make_int(DType::I32, (int64_t(1) << w.bits) - 1)});
    const Expr there = j == 0 ? kept : apply(Op::Shl, {kept, make_int(DType::I32, j * w.bits)});
    word = word ? apply(Op::BitOr, {word, there}) : there;
  }
  return word;
}

}  // namespace tc
