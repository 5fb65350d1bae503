// Det and Inverse: elimination with row exchange, in f64 so that cancellation does not show in single precision.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// The row from k on with the largest element in column k goes to `pivot`, and changes places with row k; then `also`.
Stmt exchange_rows(const Buffer& m, const Buffer& pivot, const Var& k, int64_t n, int64_t columns,
                   const std::vector<Stmt>& also = {}) {
  const Var row = make_var("row"), col = make_var("col"), kept = make_var("kept", DType::F64);
  const Expr best = load(pivot, {0});
  const Stmt larger = if_then(abs(load(m, {row, k})) > abs(load(m, {best, k})), store(pivot, {0}, row));
  std::vector<Stmt> swap = {
      loop(col, columns,
           let(kept, load(m, {k, col}), seq({store(m, {k, col}, load(m, {best, col})), store(m, {best, col}, kept)})))};
  swap.insert(swap.end(), also.begin(), also.end());
  return seq({store(pivot, {0}, k), loop(row, Expr(n) - Expr(k) - 1, larger, ForKind::Serial, Expr(k) + 1),
              if_then(ne(best, k), seq(swap))});
}

/// lu (n x n) is turned into a triangle; det collects the product of its diagonal.
Stmt eliminate(const Buffer& lu, const Buffer& det, const Buffer& pivot, int64_t n) {
  const Var k = make_var("k"), r = make_var("r"), c = make_var("c");
  const Expr diagonal = load(lu, {k, k}), zero_value = zero(DType::F64);
  const Stmt exchange = exchange_rows(lu, pivot, k, n, n, {store(det, {0}, -load(det, {0}))});
  const Var factor = make_var("factor", DType::F64);
  const Stmt subtract =
      loop(c, Expr(n) - Expr(k) - 1, store(lu, {r, c}, load(lu, {r, c}) - Expr(factor) * load(lu, {k, c})),
           ForKind::Serial, Expr(k) + 1);
  const Stmt reduce = if_then(
      ne(diagonal, zero_value),
      loop(r, Expr(n) - Expr(k) - 1, let(factor, load(lu, {r, k}) / diagonal, subtract), ForKind::Serial, Expr(k) + 1));
  return loop(k, n, seq({exchange, store(det, {0}, load(det, {0}) * diagonal), reduce}));
}

void define_det(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2)) b.reject("square matrices are needed", 0);
  const int64_t n = x.dim(-1);
  const Dims d = x.dims(), dims(d.begin(), d.end() - 2);
  const auto y = b.nest("det", {ValueType::tensor(x.dtype(), to_shape(dims))}, [&](const std::vector<Buffer>& out) {
    const Buffer lu = make_buffer("lu", DType::F64, to_shape({n, n}), Scope::Workspace);
    const Buffer det = make_buffer("product", DType::F64, {Dim(1)}, Scope::Stack);
    const Buffer pivot = make_buffer("pivot", DType::I64, {Dim(1)}, Scope::Stack);
    const Var row = make_var("row"), col = make_var("col");
    std::vector<Var> vars;
    for (size_t a = 0; a < dims.size(); a++) vars.push_back(make_var("i" + to_text(int64_t(a))));
    const Exprs i(vars.begin(), vars.end());
    const Stmt copy =
        loop(row, n, loop(col, n, store(lu, {row, col}, cast(DType::F64, x(concat(i, {Expr(row), Expr(col)}))))));
    Stmt body = seq({copy, store(det, {0}, make_float(DType::F64, 1)), eliminate(lu, det, pivot, n),
                     store(out[0], i, cast(x.dtype(), load(det, {0})))});
    body = alloc(lu, alloc(det, alloc(pivot, body)));
    for (size_t a = dims.size(); a-- > 0;) body = loop(vars[a], dims[a], body);
    return body;
  });
  b.output(0, y[0]);
}

/// m = [x | 1] (n x 2 n) becomes [1 | inverse of x]: Gauss and Jordan.
Stmt invert(const Buffer& m, const Buffer& pivot, int64_t n) {
  const Var k = make_var("k"), r = make_var("r"), c = make_var("c"), e = make_var("e");
  const Var diagonal = make_var("diagonal", DType::F64), factor = make_var("factor", DType::F64);
  const Stmt scale = let(diagonal, load(m, {k, k}), loop(e, 2 * n, store(m, {k, e}, load(m, {k, e}) / Expr(diagonal))));
  const Stmt subtract = loop(c, 2 * n, store(m, {r, c}, load(m, {r, c}) - Expr(factor) * load(m, {k, c})));
  const Stmt others = loop(r, n, if_then(ne(r, k), let(factor, load(m, {r, k}), subtract)));
  return loop(k, n, seq({exchange_rows(m, pivot, k, n, 2 * n), scale, others}));
}

void define_inverse(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (!is_float(x.dtype())) b.reject("the matrices must be of floats", 0);
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2)) b.reject("square matrices are needed", 0);
  const int64_t n = x.dim(-1);
  const Dims d = x.dims(), batch(d.begin(), d.end() - 2);
  const auto y = b.nest("inverse", {ValueType::tensor(x.dtype(), to_shape(d))}, [&](const std::vector<Buffer>& out) {
    const Buffer m = make_buffer("both", DType::F64, to_shape({n, 2 * n}), Scope::Workspace);
    const Buffer pivot = make_buffer("pivot", DType::I64, {Dim(1)}, Scope::Stack);
    const Var row = make_var("row"), col = make_var("col"), to = make_var("to"), at = make_var("at");
    std::vector<Var> vars;
    for (size_t a = 0; a < batch.size(); a++) vars.push_back(make_var("i" + to_text(int64_t(a))));
    const Exprs i(vars.begin(), vars.end());
    const Stmt copy = loop(
        row, n,
        loop(col, n,
             seq({store(m, {row, col}, cast(DType::F64, x(concat(i, {Expr(row), Expr(col)})))),
                  store(m, {row, Expr(col) + n}, select(eq(row, col), make_float(DType::F64, 1), zero(DType::F64)))})));
    const Stmt take =
        loop(to, n,
             loop(at, n, store(out[0], concat(i, {Expr(to), Expr(at)}), cast(x.dtype(), load(m, {to, Expr(at) + n})))));
    Stmt body = seq({copy, invert(m, pivot, n), take});
    body = alloc(m, alloc(pivot, body));
    for (size_t a = batch.size(); a-- > 0;) body = loop(vars[a], batch[a], body);
    return body;
  });
  b.output(0, y[0]);
}

}  // namespace

OpFamily determinant_ops() {
  return {{"Det", 22, {}, define_det}, {"Inverse", 1, {}, define_inverse, "", "", "com.microsoft"}};
}

}  // namespace tc
