#include "passes/loop/vector_form.h"

#include "ir/loop/visit.h"
#include "passes/loop/lower_lanes.h"

namespace tc {
namespace {

bool depends_on_lane(const Expr& e, const Var& lane, bool accumulators) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const VarRef* v = as<VarRef>(x);
    const Load* l = accumulators ? as<Load>(x) : nullptr;
    found = found || (v && v->var == lane) || (l && l->index.empty());
    return !found;
  });
  return found;
}

// Of a half: as it lies in memory, or rounded to one.
bool widens_lanes(const Expr& half, const Var& lane, bool accumulators) {
  const Load* l = as<Load>(half);
  return l ? !l->index.empty() && lane_step(l->index, lane) == 1
           : has_stored_form(half, half->dtype, lane, accumulators);
}

}  // namespace

bool has_stored_form(const Expr& e, DType to, const Var& lane, bool accumulators) {
  const Cast* k = as<Cast>(e);
  const bool of_floats = k && k->value->dtype == DType::F32, of_integers = k && k->value->dtype == DType::I32;
  const bool is_byte = to == DType::I8 || to == DType::U8;
  if (is_half(to) ? of_floats : is_byte && (of_floats || of_integers))
    return has_vector_form(k->value, lane, accumulators);
  return (has_lanes(to) || to == DType::Bool) && has_vector_form(e, lane, accumulators);
}

std::optional<int> lane_step(const Exprs& index, const Var& lane) {
  for (size_t d = 0; d + 1 < index.size(); d++)
    if (uses_var(index[d], lane)) return {};
  if (index.empty() || !uses_var(index.back(), lane)) return 0;
  const auto f = affine_in(index.back(), {lane});
  return f && f->coefficients[0] == 1 && !index.back()->vector ? std::optional<int>(1) : std::nullopt;
}

bool has_vector_form(const Expr& e, const Var& lane, bool accumulators) {
  if (e->vector) return false;
  if (!depends_on_lane(e, lane, accumulators)) return true;
  auto all = [&](const Exprs& list) {
    for (const Expr& x : list)
      if (!has_vector_form(x, lane, accumulators)) return false;
    return true;
  };
  if (const Apply* k = as<Apply>(e)) return all(k->args) && op_has_lanes(k->op, k->args[0]->dtype);
  if (const Select* k = as<Select>(e)) {
    if (e->dtype == DType::F64 && depends_on_lane(k->condition, lane, accumulators))
      return false;  // masks are narrower
    return (has_lanes(e->dtype) || e->dtype == DType::Bool) && all({k->condition, k->yes, k->no});
  }
  if (const Cast* k = as<Cast>(e)) {
    if (e->dtype == DType::F32 && is_half(k->value->dtype)) return widens_lanes(k->value, lane, accumulators);
    return cast_has_lanes(k->value, e->dtype) && all({k->value});
  }
  const Load* k = as<Load>(e);
  if (!k) return false;
  if (k->index.empty()) return has_lanes(e->dtype);
  return (has_lanes(e->dtype) || e->dtype == DType::Bool) && lane_step(k->index, lane) == 1;
}

bool is_costly(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const Apply* k = as<Apply>(x);
    if (k && info(k->op).precedence == 0 && k->op != Op::Min && k->op != Op::Max && k->op != Op::Abs) found = true;
    return !found && !as<Load>(x);
  });
  return found;
}

int64_t fewest_lanes(const Expr& value) { return is_costly(value) ? 3 : 8; }

}  // namespace tc
