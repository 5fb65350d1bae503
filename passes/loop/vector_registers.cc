// vector_registers: which registers hold vectors (C).
//
//   alloc acc: f32[4, 32] register             vectors: acc            tc_vf acc[4][32 / TC_VL];
//   alloc x: f32[16] register            ->    single_vectors: x       tc_vf x;
//   acc[i, VL:VL] += x[0:VL]
//
// Those that are stored or loaded as vectors; of single ones, whose last axis then needs no subscript, only vector 0 is. A place that has
// got a name is said by its formula, which shows that it is a multiple of VL:
//
//   let whole = 18 / VL * VL
//   acc[whole:VL] = ..                   ->   acc[18 / VL * VL:VL] = ..    acc[18 / TC_VL]
//
// Needs: the body as it is printed.
#include "passes/loop/vector_registers.h"

#include <map>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

class VectorRegisters {
 public:
  void find(const Stmt& body) {
    walk(
        body,
        [&](const Stmt& s) {
          if (const Alloc* k = as<Alloc>(s); k && k->buffer->scope == Scope::Register) declare(k->buffer);
          if (const Store* k = as<Store>(s)) touch(k->buffer, k->index, k->value->vector);
          return true;
        },
        [&](const Expr& e) {
          if (const Load* k = as<Load>(e)) touch(k->buffer, k->index, false);
          return true;
        });
  }

  void keep(Kernel& k) const {
    k.vectors.clear();
    k.single_vectors.clear();
    for (const Register& r : registers_) {
      if (r.vectors) k.vectors.push_back(r.buffer);
      if (r.vectors && r.single) k.single_vectors.push_back(r.buffer);
    }
  }

 private:
  struct Register {
    Buffer buffer;
    bool vectors = false, single = true;
  };

  void declare(const Buffer& b) {
    if (!number_.try_emplace(b.get(), registers_.size()).second) return;
    registers_.push_back({.buffer = b, .single = !b->shape.empty()});
  }

  void touch(const Buffer& b, const Exprs& index, bool vector) {
    const auto it = number_.find(b.get());
    if (it == number_.end()) return;
    Register& r = registers_[it->second];
    const Ramp* ramp = index.empty() ? nullptr : as<Ramp>(index.back());
    r.vectors = r.vectors || ramp || vector;
    r.single = r.single && ramp && is_const(ramp->base, 0);
  }

  std::vector<Register> registers_;            // in order of declaration
  std::map<const BufferDef*, size_t> number_;  // looked up only
};

bool has_lanes(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { return !(found = found || as<Lanes>(x)); });
  return found;
}

// The places of vectors in registers without the names of `values`.
class PlacesByFormula {
 public:
  explicit PlacesByFormula(const Stmt& body) {
    walk(body, [&](const Stmt& s) {
      const Let* k = as<Let>(s);
      if (k && !k->value->vector && has_lanes(k->value)) values_[k->var.get()] = substitute(k->value, values_);
      return true;
    });
  }

  Stmt of(const Stmt& body) const {
    if (values_.empty()) return body;
    return rewrite(
        body,
        [&](const Expr& e) -> Expr {
          const Load* k = as<Load>(e);
          const Expr place = k ? said(k->buffer, k->index) : Expr();
          return place ? load(k->buffer, with_last(k->index, place)) : Expr();
        },
        [&](const Stmt& s) -> Stmt {
          if (const Let* k = as<Let>(s); k && values_.count(k->var.get()) != 0 && !uses_var(k->body, k->var))
            return k->body;
          const Store* k = as<Store>(s);
          const Expr place = k ? said(k->buffer, k->index) : Expr();
          return place ? store(k->buffer, with_last(k->index, place), k->value, k->reduce, k->count) : s;
        });
  }

 private:
  // Null where it is said already.
  Expr said(const Buffer& b, const Exprs& index) const {
    const Ramp* ramp = index.empty() || b->scope != Scope::Register ? nullptr : as<Ramp>(index.back());
    if (!ramp) return {};
    const Expr base = substitute(ramp->base, values_);
    return base.same_as(ramp->base) ? Expr() : tc::ramp(base);
  }
  static Exprs with_last(Exprs index, const Expr& last) {
    index.back() = last;
    return index;
  }

  VarMap values_;
};

}  // namespace

Stmt with_places_by_formula(const Stmt& body) { return PlacesByFormula(body).of(body); }

void find_vector_registers(Kernel& k) {
  VectorRegisters found;
  found.find(k.body);
  found.keep(k);
}

}  // namespace tc
