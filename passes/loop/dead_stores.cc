// dead_stores: where partition_loops decides a condition, one side of it may not need a sum that is computed before.
//   alloc acc: acc = 0; for k: acc += x[k] * y[k]; s[j] = -inf    ->    s[j] = -inf
// A buffer is dead if it is the kernel's own and nothing reads it but its own sums: the largest values beside the places of
// an ArgMax are in scratch memory, and a tile is loaded where there is nothing but padding. What only a dead buffer reads
// is dead once that is gone: a sum that would go into a recurrence's scratch memory, in steps behind the end of a sequence.
// Where something raises the status word, makes text, or repeats until a condition fails, all stays. Needs: nothing.
// Leaves: no such buffer.
#include "passes/loop/dead_stores.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// An instruction of one thread that fills b from elsewhere, and does nothing else.
bool fills(const Intrin& k, const Buffer& b) {
  const Instruction& row = instruction(k);
  if (row.collective != Collective::No || row.async != AsyncCopy::No) return false;
  for (size_t i = 0; i < k.buffers.size(); i++)
    if ((k.buffers[i] == b) != (row.operand(i).use != OperandUse::Read) || row.operand(i).use == OperandUse::Both)
      return false;
  return true;
}

bool is_dead(const Buffer& b, const Stmt& body) {
  if (b->scope == Scope::Global) return false;
  bool dead = true;
  walk(
      body,
      [&](const Stmt& s) {
        if (const Intrin* k = as<Intrin>(s); k && std::count(k->buffers.begin(), k->buffers.end(), b) > 0)
          dead = dead && fills(*k, b);
        return dead = dead && !as<While>(s) && !as<Alias>(s) && !as<Prefetch>(s);
      },
      [&](const Expr& e) {
        const Load* l = as<Load>(e);
        const Apply* a = as<Apply>(e);
        return dead = dead && !(l && l->buffer == b) && !(a && (a->op == Op::Index || is_text_op(a->op)));
      });
  return dead;
}

// x[i] = x[i], or x[i] = x[i] || false, where a condition says so.
bool changes_nothing(const Store& k) {
  if (k.reduce == Op::Or || k.reduce == Op::And) return is_const(k.value, k.reduce == Op::And ? 1 : 0);
  const Load* l = as<Load>(k.value);
  return l && !k.reduce && l->buffer == k.buffer &&
         std::equal(l->index.begin(), l->index.end(), k.index.begin(), k.index.end(), structurally_equal);
}

// Without what is stored to `b`, and without dead buffers inside: where there is no `b`, all of them, else those that only these stores
// read. Loops and conditions around nothing go, too; null where nothing is left.
Stmt without_stores(const Stmt& s, const Buffer& b) {
  if (!s) return s;
  if (const Store* k = as<Store>(s)) return (b && k->buffer == b) || changes_nothing(*k) ? Stmt() : s;
  if (const Intrin* k = as<Intrin>(s)) return b && std::count(k->buffers.begin(), k->buffers.end(), b) > 0 ? Stmt() : s;
  if (const Seq* k = as<Seq>(s)) return rewrite_each(*k, s, [&](const Stmt& x) { return without_stores(x, b); });
  if (const For* k = as<For>(s)) {
    const Stmt body = without_stores(k->body, b);
    return !body ? Stmt() : body.same_as(k->body) ? s : loop(k->var, k->extent, body, k->kind, k->begin);
  }
  if (const If* k = as<If>(s)) {
    const Stmt then = without_stores(k->then, b), otherwise = without_stores(k->otherwise, b);
    if (!then && !otherwise) return {};
    if (then && then.same_as(k->then) && (!otherwise || otherwise.same_as(k->otherwise)) &&
        bool(otherwise) == bool(k->otherwise))
      return s;
    return then ? if_then(k->condition, then, otherwise) : if_then(logical_not(k->condition), otherwise);
  }
  if (const Let* k = as<Let>(s)) {
    const Stmt body = without_stores(k->body, b);
    return !body ? Stmt() : body.same_as(k->body) ? s : let(k->var, k->value, body);
  }
  if (const Alloc* k = as<Alloc>(s)) {
    const Stmt body = without_stores(k->body, b);
    const bool same = body && body.same_as(k->body);
    if (!body || (same && b)) return body ? s : body;
    if (is_dead(k->buffer, body)) return without_stores(body, k->buffer);
    return same ? s : alloc(k->buffer, body);
  }
  if (const Alias* k = as<Alias>(s)) {
    const Stmt body = without_stores(k->body, b);
    return !body ? Stmt() : body.same_as(k->body) ? s : alias(k->view, k->base, k->offset, body);
  }
  if (const While* k = as<While>(s)) {  // ends by its condition
    const Stmt body = without_stores(k->body, b);
    return !body || body.same_as(k->body) ? s : while_loop(k->condition, body);
  }
  if (const Comment* k = as<Comment>(s)) {
    const Stmt body = without_stores(k->body, b);
    return !body ? Stmt() : body.same_as(k->body) ? s : comment(k->text, body);
  }
  return s;
}

}  // namespace

Stmt dead_stores(const Stmt& s) {
  const Stmt left = without_stores(s, nullptr);
  return left ? left : s;
}

}  // namespace tc
