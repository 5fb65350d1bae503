// Test functions of bytes.
#pragma once
#include <functional>
#include <map>

#include "templates/cuda/test_exact.h"

namespace tc::testing {

// A factor of bytes and its zero point: a number, or an operand.
struct Bytes {
  DType type = DType::I8;
  int zero = 0;
  bool zero_is_operand = false;
};

// The same function of bytes: the first two operands are x - zero and w - zero in i32, and so is everything else.
inline TestFunction of_bytes(const TestFunction& f, const Bytes& x, const Bytes& w) {
  TestFunction r{{}, f.constant};
  BufferMap to;
  std::map<const BufferDef*, Expr> zeros;
  for (size_t i = 0; i < f.fn.inputs.size(); i++) {
    const Buffer& b = f.fn.inputs[i];
    const Bytes& t = i == 0 ? x : w;
    to[b.get()] = make_buffer(b->name, i < 2 ? t.type : DType::I32, b->shape);
    r.fn.inputs.push_back(to[b.get()]);
    if (i < 2 && t.zero != 0) zeros[b.get()] = cast(DType::I32, make_int(t.type, t.zero));
  }
  for (size_t i = 0; i < 2; i++) {
    const Bytes& t = i == 0 ? x : w;
    if (!t.zero_is_operand) continue;
    const Buffer z = make_buffer(i == 0 ? "x_zero" : "w_zero", t.type, {});
    zeros[f.fn.inputs[i].get()] = cast(DType::I32, load(z, {}));
    r.fn.inputs.push_back(z);
    r.constant.push_back(false);
  }
  std::function<Expr(const Expr&)> retyped = [&](const Expr& e) -> Expr {
    if (e->dtype != DType::F32) return e;
    if (const Load* l = as<Load>(e)) {
      const Expr v = cast(DType::I32, load(to.at(l->buffer.get()), l->index));
      return zeros.contains(l->buffer.get()) ? v - zeros.at(l->buffer.get()) : v;
    }
    if (const Select* k = as<Select>(e)) return select(k->condition, retyped(k->yes), retyped(k->no));
    if (const Apply* k = as<Apply>(e)) {
      Exprs args;
      for (const Expr& a : k->args) args.push_back(retyped(a));
      return apply(k->op, args);
    }
    return make_int(DType::I32, int64_t(*as_const_number(e)));
  };
  for (Stage s : f.fn.stages) {
    for (Expr& e : s.values) e = retyped(e);
    for (Expr& e : s.init) e = retyped(e);
    to[s.outputs[0].get()] = make_buffer(s.outputs[0]->name, DType::I32, s.outputs[0]->shape);
    s.outputs = {to[s.outputs[0].get()]};
    r.fn.stages.push_back(s);
  }
  r.fn.outputs = {to.at(f.fn.outputs[0].get())};
  return r;
}

}  // namespace tc::testing
