// flatten_buffers: y[h, w, c] of a [8,8,16] buffer becomes y[(h * 8 + w) * 16 + c].
//
// What emitted C and CUDA can say without nested array types: one pointer and one index, strides and offset of the
// buffer applied. Horner's form is kept for row-major buffers, since it shows the shape to the reader, but where quotients and
// remainders of one number meet again: y[p / 64, p % 64] becomes y[p].
// Needs: static shapes. Leaves: rank 1 everywhere but in Register and Shared buffers, which are printed as arrays; a Shared one
// whose rows lie apart (storage_align) has rank 1, too.
#include "passes/loop/flatten_buffers.h"

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// Local arrays of the text keep their shape.
bool keeps_shape(const Buffer& b) {
  return b->scope == Scope::Register || (b->scope == Scope::Shared && b->strides.empty()) || b->scope == Scope::Warp ||
         b->scope == Scope::Fragment;
}

int64_t quotients(const Expr& e) {
  int64_t n = 0;
  walk(e, [&](const Expr& x) {
    const Apply* a = as<Apply>(x);
    n += a && (a->op == Op::FloorDiv || a->op == Op::FloorMod) ? 1 : 0;
    return true;
  });
  return n;
}

Expr without_quotients(const Expr& e) {
  const int64_t n = quotients(e);
  if (n < 2) return e;
  const Expr joined = simplify(e, {});
  return quotients(joined) < n ? joined : e;
}

// The scalar linear index; a Ramp in the last index is handled by the caller.
Expr linear(const BufferDef& b, const Exprs& index) {
  Expr e = b.offset;
  if (b.strides.empty()) {
    Expr h = 0;
    for (size_t i = 0; i < index.size(); i++) h = h * Expr(b.shape[i]) + index[i];
    h = without_quotients(h);
    return b.offset == 0 ? h : h + e;
  }
  Expr sum = 0;
  for (size_t i = 0; i < index.size(); i++) sum = sum + index[i] * Expr(b.strides[i]);
  return b.offset == 0 ? sum : sum + e;
}

// Elements from the first to behind the last one, gaps between rows included.
int64_t extent_of(const BufferDef& b) {
  const Dims dims = static_dims(b.shape);
  if (b.strides.empty() || has_no_elements(dims)) return num_elements(dims);
  int64_t last = b.offset;
  for (size_t d = 0; d < dims.size(); d++) last = checked_add(last, checked_mul(dims[d] - 1, b.strides[d]));
  return last + 1;
}

class Flattener {
 public:
  explicit Flattener(BufferMap& flat) : flat_(flat) {}

  Buffer twin(const Buffer& b) {
    Buffer& f = flat_[b.get()];
    if (!f) {
      auto d = std::make_shared<BufferDef>(*b);
      d->shape = {extent_of(*b)};
      d->strides.clear();
      d->offset = 0;
      f = d;
      keep_.push_back(b);
      flat_[f.get()] = f;
    }
    return f;
  }

  Exprs index(const Buffer& b, Exprs index) {
    if (!index.empty() && as<Ramp>(index.back())) {
      check(b->strides.empty() || b->strides.back() == 1, "a vector access needs a unit stride");
      index.back() = as<Ramp>(index.back())->base;
      return {ramp(linear(*b, index))};
    }
    return {linear(*b, index)};
  }

  Stmt instruction(const Intrin& k) {
    IntrinCall c = parse(k);
    bool changed = false;
    for (IntrinOperand& o : c.operands) {
      const bool array = o.buffer->scope == Scope::Stack && o.buffer->shape.size() == 1;  // operands have no index
      if (o.buffer->scope != Scope::Global && o.buffer->scope != Scope::Workspace && !array) continue;
      if (is_flat(o.buffer)) continue;
      o = {twin(o.buffer), array ? o.index : index(o.buffer, o.index)};
      changed = true;
    }
    return changed ? intrin(k.name, c.operands, c.scalars) : Stmt();
  }

  bool is_flat(const Buffer& b) const {
    const auto it = flat_.find(b.get());
    return it != flat_.end() && it->second == b;
  }

 private:
  BufferMap& flat_;
  std::vector<Buffer> keep_;
};

}  // namespace

Stmt flatten_buffers(const Stmt& s, BufferMap& flat) {
  Flattener f(flat);
  auto on_expr = [&](const Expr& e) -> Expr {
    const Load* l = as<Load>(e);
    if (!l || keeps_shape(l->buffer) || f.is_flat(l->buffer)) return {};
    return load(f.twin(l->buffer), f.index(l->buffer, l->index));
  };
  auto on_stmt = [&](const Stmt& x) -> Stmt {
    if (const Store* k = as<Store>(x); k && !keeps_shape(k->buffer) && !f.is_flat(k->buffer))
      return store(f.twin(k->buffer), f.index(k->buffer, k->index), k->value, k->reduce, k->count);
    if (const Prefetch* k = as<Prefetch>(x); k && !f.is_flat(k->buffer))
      return prefetch(f.twin(k->buffer), f.index(k->buffer, k->index), k->level);
    if (const Alloc* k = as<Alloc>(x); k && !keeps_shape(k->buffer) && !f.is_flat(k->buffer))
      return alloc(f.twin(k->buffer), k->body);
    // A view is flat already; what it is a view of must stay the buffer that everybody else reads.
    if (const Alias* k = as<Alias>(x); k && !keeps_shape(k->base) && (!f.is_flat(k->view) || !f.is_flat(k->base)))
      return alias(f.is_flat(k->view) ? k->view : f.twin(k->view), f.is_flat(k->base) ? k->base : f.twin(k->base),
                   k->offset, k->body);
    if (const Intrin* k = as<Intrin>(x)) return f.instruction(*k);
    return {};
  };
  return rewrite(s, on_expr, on_stmt);
}

}  // namespace tc
