#include "templates/match/prefix.h"

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// Is it out[i - 1, the same indices]?
bool is_before(const Expr& e, const Stage& s) {
  const Load* l = as<Load>(e);
  if (!l || l->buffer != s.outputs[0]) return false;
  for (size_t k = 0; k < s.axes.size(); k++) {
    const Linear index = linear_form(l->index[k] - Expr(s.axes[k].var));
    if (!index.is_constant() || index.constant != (k == 0 ? -1 : 0)) return false;
  }
  return true;
}

}  // namespace

std::optional<Prefix> match_prefix(const Stage& s) {
  if (s.scan < 0 || s.kind != Stage::Kind::Compute || s.outputs.size() != 1 || s.axes.empty()) return {};
  const Select* choice = as<Select>(s.values[0]);
  const Apply* begins = choice ? as<Apply>(choice->condition) : nullptr;
  const VarRef* step = begins && begins->op == Op::Eq ? as<VarRef>(begins->args[0]) : nullptr;
  const Apply* join = choice ? as<Apply>(choice->no) : nullptr;
  if (!step || step->var != s.axes[0].var || !is_const(begins->args[1], 0) || !join || join->args.size() != 2)
    return {};
  const Buffer& out = s.outputs[0];
  if (!identity_of(join->op, out->dtype) || !is_before(join->args[0], s)) return {};
  if (uses_buffer(choice->yes, out) || uses_buffer(join->args[1], out)) return {};
  return Prefix{join->op, choice->yes, join->args[1]};
}

}  // namespace tc
