#include "passes/loop/vector_room.h"

#include <algorithm>
#include <iterator>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/loop/vectorize_loops.h"

namespace tc {

void for_each_access(const Stmt& body, const std::function<void(const Buffer&, const Exprs&)>& look) {
  walk(
      body,
      [&](const Stmt& s) {
        if (const Store* k = as<Store>(s)) look(k->buffer, k->index);
        return true;
      },
      [&](const Expr& e) {
        if (const Load* k = as<Load>(e)) look(k->buffer, k->index);
        return true;
      });
}

namespace {

// `s` with other definitions of the local buffers for which `change` has one.
Stmt with_buffers(const Stmt& s, const std::function<bool(BufferDef& b, const BufferDef* was)>& change) {
  BufferMap to;
  walk(s, [&](const Stmt& x) {
    const Alloc* k = as<Alloc>(x);
    if (!k) return true;
    auto def = std::make_shared<BufferDef>(*k->buffer);
    if (change(*def, k->buffer.get())) to[k->buffer.get()] = def;
    return true;
  });
  return to.empty() ? s : substitute_buffers(s, to);
}

// Whether whole vectors may be stored to `b` in `body` though fewer of their lanes exist: nobody reads the others.
bool lanes_agree(const Stmt& body, const Buffer& b) {
  const For* first = nullptr;
  bool agree = true, whole = true;
  const auto elsewhere = [&](const Buffer& x) { agree = agree && x != b; };
  walk(
      body,
      [&](const Stmt& s) {
        if (const Store* k = as<Store>(s)) elsewhere(k->buffer);
        const For* f = as<For>(s);
        if (!f || f->kind != ForKind::Vector) return true;
        bool touched = false;
        for_each_access(f->body, [&](const Buffer& x, const Exprs& index) {
          if (x != b) return;
          touched = true;
          agree = agree && uses_var(index.back(), f->var);
        });
        if (!touched) return false;
        const auto n = as_const_int(f->extent);
        whole = whole && n && (*n % kMaxLanes == 0 || *n == b->shape.back().value);
        agree = agree && (!first ||
                          (structurally_equal(first->begin, f->begin) && structurally_equal(first->extent, f->extent)));
        first = f;
        return false;
      },
      [&](const Expr& e) {
        if (const Load* k = as<Load>(e)) elsewhere(k->buffer);
        return true;
      });
  return !first || agree || whole;
}

}  // namespace

Stmt settle_unaligned(const Stmt& s) {
  Buffers unaligned;
  walk(s, [&](const Stmt& x) {
    const For* f = as<For>(x);
    if (!f || f->kind != ForKind::Vector) return true;
    for_each_access(f->body, [&](const Buffer& b, const Exprs& index) {
      if (b->scope != Scope::Register || index.empty() || !uses_var(index.back(), f->var)) return;
      const auto at = affine_in(index.back(), {f->var});
      if (!at || multiple_of(at->rest + f->begin, {}) % kMaxLanes != 0) unaligned.insert(b.get());
    });
    return true;
  });
  return with_buffers(s, [&](BufferDef& b, const BufferDef* was) {
    if (unaligned.count(was) == 0) return false;
    b.scope = Scope::Stack;
    return true;
  });
}

Stmt settle_partial(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& x) -> Stmt {
    const Alloc* k = as<Alloc>(x);
    if (!k || k->buffer->scope != Scope::Register || k->buffer->shape.empty() || lanes_agree(k->body, k->buffer))
      return {};
    auto def = std::make_shared<BufferDef>(*k->buffer);
    def->scope = Scope::Stack;
    return alloc(def, substitute_buffers(k->body, {{k->buffer.get(), def}}));
  });
}

Stmt settle_registers(const Stmt& s, const Buffers& kept) {
  Buffers scalars;
  for_each_access(s, [&](const Buffer& b, const Exprs& index) {
    if (!index.empty() && !as<Ramp>(index.back())) scalars.insert(b.get());
  });
  return with_buffers(s, [&](BufferDef& b, const BufferDef* was) {
    if (kept.count(was) == 0) return false;
    b.shape.back() = Dim(round_up(b.shape.back().value));
    if (scalars.count(was) != 0) b.scope = Scope::Stack;
    return b.shape.back().value != was->shape.back().value || b.scope != was->scope;
  });
}

Buffers mixed_registers(const Stmt& s) {
  Buffers reached[2], mixed;
  for_each_access(s, [&](const Buffer& b, const Exprs& index) {
    if (b->scope == Scope::Register && !index.empty()) reached[as<Ramp>(index.back()) ? 1 : 0].insert(b.get());
  });
  std::set_intersection(reached[0].begin(), reached[0].end(), reached[1].begin(), reached[1].end(),
                        std::inserter(mixed, mixed.end()));
  return mixed;
}

}  // namespace tc
