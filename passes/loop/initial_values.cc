// initial_values: which registers of a function of the device begin with what the statement behind their declaration
// says (CUDA).
//
//   alloc acc: f32[4, 8] register       initialised: acc          float acc[4][8] = {};
//   unroll i in 0 .. 4:
//     unroll j in 0 .. 8:          ->
//       acc[i, j] = 0
//   alloc left: f32 register            initialised: left         float left = tc_shuffle_up(sum, 1);
//   shuffle_up(left, sum, 1)
//
// An array does where that statement sets all of it to zero, whatever its loops are; a scalar does where it is a shuffle.
// (That a scalar begins with the value of its first store is C's spelling, as on the C target.) Needs: the body as it is
// printed. Changes no statement.
#include "passes/loop/initial_values.h"

#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

bool is_shuffle_to(const Stmt& s, const Buffer& b) {
  const Intrin* k = as<Intrin>(s);
  return k && meaning_as<WarpShuffle>(*k) && k->buffers.at(0) == b;
}

bool is_plus_zero(const Expr& e) {
  const auto value = as_const_number(e);
  return value && *value == 0 && !std::signbit(*value);
}

// unroll i: unroll j: b[i, j] = 0, over all of b. Axes of one element need no loop.
bool sets_to_zero(Stmt s, const Buffer& b) {
  std::vector<const For*> loops;
  while (const For* f = as<For>(s)) {
    loops.push_back(f);
    s = f->body;
  }
  const Store* k = as<Store>(s);
  if (!k || k->buffer != b || k->reduce || !is_plus_zero(k->value)) return false;
  size_t at = 0;
  for (size_t i = 0; i < k->index.size(); i++) {
    if (is_const(k->index[i], 0) && b->shape[i].value == 1) continue;
    const VarRef* v = as<VarRef>(k->index[i]);
    const For* f = at < loops.size() ? loops[at++] : nullptr;
    if (!v || !f || v->var != f->var || !is_const(f->begin, 0) || !is_const(f->extent, b->shape[i].value)) return false;
  }
  return true;
}

}  // namespace

void set_initial_values(DeviceFunction& f) {
  f.initialised.clear();
  walk(f.body, [&](const Stmt& s) {
    const Alloc* k = as<Alloc>(s);
    const Seq* q = k ? as<Seq>(k->body) : nullptr;
    if (!q || k->buffer->scope != Scope::Register) return true;
    const Stmt& first = q->list[0];
    if (k->buffer->shape.empty() ? is_shuffle_to(first, k->buffer) : sets_to_zero(first, k->buffer))
      f.initialised.push_back(k->buffer);
    return true;
  });
}

}  // namespace tc
