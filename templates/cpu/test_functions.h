// Small fused functions for the tests of schedules.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/loop/build.h"
#include "ir/tensor_fn.h"

namespace tc::testing {

struct TestFunction {
  TensorFn fn;
  std::vector<bool> constant;
};

/// Collects stages; axis names are single letters.
class FunctionBuilder {
 public:
  using Point = std::function<Expr(const Exprs& i)>;
  using ReducePoint = std::function<Expr(const Exprs& i, const Exprs& r)>;

  Buffer input(const std::string& name, const Dims& dims, bool constant = false) {
    f_.fn.inputs.push_back(make_buffer(name, DType::F32, to_shape(dims)));
    f_.constant.push_back(constant);
    return f_.fn.inputs.back();
  }
  Buffer compute(const std::string& name, const Dims& dims, const Point& f) {
    Stage s;
    s.axes = axes("i", dims);
    s.values = {f(vars(s.axes))};
    return add(std::move(s), name, dims);
  }
  Buffer reduce(const std::string& name, Op op, const Dims& dims, const Dims& over, const ReducePoint& f) {
    Stage s;
    s.kind = Stage::Kind::Reduce;
    s.axes = axes("i", dims);
    s.raxes = axes("r", over);
    s.values = {f(vars(s.axes), vars(s.raxes))};
    s.combiner.op = op;
    s.init = {op == Op::Max ? lowest(DType::F32) : make_float(DType::F32, 0)};
    return add(std::move(s), name, dims);
  }
  TestFunction take(const Buffer& out) {
    f_.fn.outputs = {out};
    return std::move(f_);
  }

 private:
  static std::vector<Axis> axes(const std::string& name, const Dims& dims) {
    std::vector<Axis> a;
    for (size_t d = 0; d < dims.size(); d++) a.push_back({make_var(name + std::to_string(d)), Dim(dims[d])});
    return a;
  }
  static Exprs vars(const std::vector<Axis>& axes) {
    Exprs v;
    for (const Axis& a : axes) v.push_back(Expr(a.var));
    return v;
  }
  Buffer add(Stage s, const std::string& name, const Dims& dims) {
    s.name = name;
    s.outputs = {make_buffer(name, DType::F32, to_shape(dims))};
    f_.fn.stages.push_back(std::move(s));
    return f_.fn.stages.back().outputs[0];
  }
  TestFunction f_;
};

struct ConvShape {
  int64_t h = 8, w = 8, c = 4, oc = 16, kernel = 3, stride = 1, dilation = 1, groups = 1;
  bool residual = false;
  int64_t border = 0;  // zeros around the result
};
/// Convolution, bias, residual, ReLU, border; channels last, the input is padded already.
inline TestFunction convolution(const ConvShape& s) {
  FunctionBuilder b;
  const int64_t reach = (s.kernel - 1) * s.dilation + 1;
  const int64_t oh = (s.h - reach) / s.stride + 1, ow = (s.w - reach) / s.stride + 1;
  const int64_t icg = s.c / s.groups, ocg = s.oc / s.groups;
  const Dims dims{1, oh, ow, s.oc};
  const Buffer x = b.input("x", {1, s.h, s.w, s.c}), w = b.input("weight", {s.oc, icg, s.kernel, s.kernel}, true);
  const Buffer bias = b.input("bias", {s.oc}, true), res = s.residual ? b.input("residual", dims) : nullptr;
  Buffer y = b.reduce("conv2d", Op::Add, dims, {icg, s.kernel, s.kernel}, [&](const Exprs& i, const Exprs& r) {
    const Expr c = s.groups == 1 ? r[0] : floor_div(i[3], Expr(ocg)) * Expr(icg) + r[0];
    const Expr h = i[1] * Expr(s.stride) + r[1] * Expr(s.dilation), v = i[2] * Expr(s.stride) + r[2] * Expr(s.dilation);
    return load(x, {i[0], h, v, c}) * load(w, {i[3], r[0], r[1], r[2]});
  });
  y = b.compute("bias", dims, [&, y](const Exprs& i) { return load(y, i) + load(bias, {i[3]}); });
  if (res) y = b.compute("add", dims, [&, y](const Exprs& i) { return load(y, i) + load(res, i); });
  y = b.compute("relu", dims, [&, y](const Exprs& i) { return max(load(y, i), make_float(DType::F32, 0)); });
  if (s.border > 0) {
    const Expr p = s.border;
    y = b.compute("pad", {1, oh + 2 * s.border, ow + 2 * s.border, s.oc}, [&, y](const Exprs& i) {
      const Expr inside = i[1] >= p && i[1] < Expr(oh) + p && i[2] >= p && i[2] < Expr(ow) + p;
      return select(inside, load(y, {i[0], i[1] - p, i[2] - p, i[3]}), make_float(DType::F32, 0));
    });
  }
  return b.take(y);
}

/// a [batch, m, k] times b [batch, k, n] (or [batch, n, k]); b may be a constant.
inline TestFunction product(int64_t batch, int64_t m, int64_t n, int64_t k, bool transposed, bool constant) {
  FunctionBuilder b;
  const Buffer x = b.input("a", {batch, m, k}),
               y = b.input("b", transposed ? Dims{batch, n, k} : Dims{batch, k, n}, constant);
  return b.take(b.reduce("matmul", Op::Add, {batch, m, n}, {k}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], i[1], r[0]}) * load(y, transposed ? Exprs{i[0], i[2], r[0]} : Exprs{i[0], r[0], i[2]});
  }));
}

inline TestFunction pool(Op op, int64_t h, int64_t w, int64_t c, int64_t kernel, int64_t stride) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {1, h, w, c});
  const Dims dims{1, (h - kernel) / stride + 1, (w - kernel) / stride + 1, c};
  return b.take(b.reduce("pool", op, dims, {kernel, kernel}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], i[1] * Expr(stride) + r[0], i[2] * Expr(stride) + r[1], i[3]});
  }));
}

/// Rows minus their largest value, over the sum of these: the shape of a softmax with exact arithmetic.
inline TestFunction row_statistics(int64_t rows, int64_t columns) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {rows, columns});
  auto whole = [](const Buffer& t) { return [t](const Exprs& i, const Exprs& r) { return load(t, {i[0], r[0]}); }; };
  const Buffer top = b.reduce("max", Op::Max, {rows, 1}, {columns}, whole(x));
  const Buffer d = b.compute("shifted", {rows, columns}, [&](const Exprs& i) {
    return load(x, i) - load(top, {i[0], 0});
  });
  const Buffer e =
      b.compute("rounded", {rows, columns}, [&](const Exprs& i) { return apply(Op::Floor, {load(d, i)}); });
  const Buffer sum = b.reduce("sum", Op::Add, {rows, 1}, {columns}, whole(e));
  return b.take(b.compute("y", {rows, columns}, [&](const Exprs& i) { return load(e, i) * load(sum, {i[0], 0}); }));
}

}  // namespace tc::testing
