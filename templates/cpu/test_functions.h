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

  Buffer input(const std::string& name, const Dims& dims, bool constant = false, DType t = DType::F32) {
    f_.fn.inputs.push_back(make_buffer(name, t, to_shape(dims)));
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
  int64_t images = 1;
};
/// Convolution, bias, residual, ReLU, border; channels last, the input is padded already.
inline TestFunction convolution(const ConvShape& s) {
  FunctionBuilder b;
  const int64_t reach = (s.kernel - 1) * s.dilation + 1;
  const int64_t oh = (s.h - reach) / s.stride + 1, ow = (s.w - reach) / s.stride + 1;
  const int64_t icg = s.c / s.groups, ocg = s.oc / s.groups;
  const Dims dims{s.images, oh, ow, s.oc};
  const Buffer x = b.input("x", {s.images, s.h, s.w, s.c}),
               w = b.input("weight", {s.oc, icg, s.kernel, s.kernel}, true);
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
    y = b.compute("pad", {s.images, oh + 2 * s.border, ow + 2 * s.border, s.oc}, [&, y](const Exprs& i) {
      const Expr inside = i[1] >= p && i[1] < Expr(oh) + p && i[2] >= p && i[2] < Expr(ow) + p;
      return select(inside, load(y, {i[0], i[1] - p, i[2] - p, i[3]}), make_float(DType::F32, 0));
    });
  }
  return b.take(y);
}

struct InvertedResidualShape {
  int64_t images = 1, h = 8, w = 8, c = 4, expanded = 24, oc = 8, kernel = 3, stride = 1, dilation = 1;
  int64_t before = 1, after = 1;  // zeros before and after the rows and columns of the expanded tensor
  bool residual = false;
};
/// 1 x 1 convolution, depthwise convolution, 1 x 1 convolution, with biases, clipping and a residual; channels last.
inline TestFunction inverted_residual(const InvertedResidualShape& s) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {s.images, s.h, s.w, s.c});
  auto dense = [&](const std::string& name, const Buffer& in, const Dims& dims, int64_t k) {
    const Buffer w = b.input(name + "_weight", {dims[3], k, 1, 1}, true),
                 bias = b.input(name + "_bias", {dims[3]}, true);
    const Buffer y = b.reduce(name, Op::Add, dims, {k, 1, 1}, [&](const Exprs& i, const Exprs& r) {
      return load(in, {i[0], i[1] + r[1], i[2] + r[2], r[0]}) * load(w, {i[3], r[0], r[1], r[2]});
    });
    return b.compute(name + "_bias", dims, [&](const Exprs& i) { return load(y, i) + load(bias, {i[3]}); });
  };
  auto clip = [&](const std::string& name, const Buffer& in) {
    return b.compute(name, static_dims(in->shape), [&](const Exprs& i) {
      return min(max(load(in, i), make_float(DType::F32, 0)), make_float(DType::F32, 6));
    });
  };
  Buffer e = clip("clip", dense("expand", x, {s.images, s.h, s.w, s.expanded}, s.c));
  const int64_t h = s.h + s.before + s.after, w = s.w + s.before + s.after;
  if (s.before + s.after > 0)
    e = b.compute("pad", {s.images, h, w, s.expanded}, [&, e](const Exprs& i) {
      const Expr p = s.before;
      const Expr inside = i[1] >= p && i[1] < Expr(s.h) + p && i[2] >= p && i[2] < Expr(s.w) + p;
      return select(inside, load(e, {i[0], i[1] - p, i[2] - p, i[3]}), make_float(DType::F32, 0));
    });
  const int64_t reach = (s.kernel - 1) * s.dilation + 1;
  const Dims filtered{s.images, (h - reach) / s.stride + 1, (w - reach) / s.stride + 1, s.expanded};
  const Buffer taps = b.input("taps", {s.expanded, 1, s.kernel, s.kernel}, true),
               bias = b.input("taps_bias", {s.expanded}, true);
  const Buffer f = b.reduce("filter", Op::Add, filtered, {1, s.kernel, s.kernel}, [&](const Exprs& i, const Exprs& r) {
    const Expr v = i[1] * Expr(s.stride) + r[1] * Expr(s.dilation), u = i[2] * Expr(s.stride) + r[2] * Expr(s.dilation);
    return load(e, {i[0], v, u, i[3]}) * load(taps, {i[3], r[0], r[1], r[2]});
  });
  const Buffer d =
      clip("clip", b.compute("bias", filtered, [&](const Exprs& i) { return load(f, i) + load(bias, {i[3]}); }));
  const Dims out{s.images, filtered[1], filtered[2], s.oc};
  Buffer y = dense("project", d, out, s.expanded);
  if (!s.residual) return b.take(y);
  const Buffer r = b.input("residual", out);
  return b.take(b.compute("add", out, [&, y](const Exprs& i) { return load(y, i) + load(r, i); }));
}

struct AttentionShape {
  int64_t batch = 1, heads = 2, rows = 16, columns = 16, size = 8;
  bool combined = true;  // Q, K and V side by side in one tensor [batch, row, 3, head, size]
  bool mask = false;
};
/// Scores, the shape of a softmax with exact arithmetic, times V, written as [batch, row, head, size].
inline TestFunction attention(const AttentionShape& s) {
  FunctionBuilder b;
  const Dims scores{s.batch, s.heads, s.rows, s.columns}, rows{s.batch, s.heads, s.rows, 1};
  const int64_t line = s.heads * s.size;
  const Buffer x = b.input("x", {s.batch, s.rows, s.combined ? 3 * line : line});
  const Buffer k = s.combined ? x : b.input("k", {s.batch, s.columns, line});
  const Buffer v = s.combined ? x : b.input("v", {s.batch, s.columns, line});
  auto element = [&](const Buffer& t, int64_t which, const Expr& n, const Expr& h, const Expr& row, const Expr& d) {
    return load(t, {n, row, h * Expr(s.size) + d + Expr(s.combined ? which * line : 0)});
  };
  Buffer y = b.reduce("matmul", Op::Add, scores, {s.size}, [&](const Exprs& i, const Exprs& r) {
    return element(x, 0, i[0], i[1], i[2], r[0]) * element(k, 1, i[0], i[1], i[3], r[0]);
  });
  y = b.compute("scale", scores, [&, y](const Exprs& i) { return load(y, i) * make_float(DType::F32, 0.5); });
  if (s.mask) {
    const Buffer m = b.input("mask", {s.batch, 1, s.rows, s.columns});
    y = b.compute("add", scores, [&, y](const Exprs& i) { return load(y, i) + load(m, {i[0], 0, i[2], i[3]}); });
  }
  const Buffer top = b.reduce("max", Op::Max, rows, {s.columns}, [&](const Exprs& i, const Exprs& r) {
    return load(y, {i[0], i[1], i[2], r[0]});
  });
  const Buffer e = b.compute("floor", scores, [&](const Exprs& i) {
    return apply(Op::Floor, {(load(y, i) - load(top, {i[0], i[1], i[2], 0})) * make_float(DType::F32, 0.0625)});
  });
  const Buffer sum = b.reduce("sum", Op::Add, rows, {s.columns}, [&](const Exprs& i, const Exprs& r) {
    return load(e, {i[0], i[1], i[2], r[0]});
  });
  const Buffer p = b.compute("weights", scores, [&](const Exprs& i) {
    return load(e, i) + load(sum, {i[0], i[1], i[2], 0});
  });
  const Buffer o =
      b.reduce("times", Op::Add, {s.batch, s.heads, s.rows, s.size}, {s.columns}, [&](const Exprs& i, const Exprs& r) {
        return load(p, {i[0], i[1], i[2], r[0]}) * element(v, 2, i[0], i[1], r[0], i[3]);
      });
  return b.take(b.compute("transpose", {s.batch, s.rows, s.heads, s.size}, [&](const Exprs& i) {
    return load(o, {i[0], i[2], i[1], i[3]});
  }));
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
