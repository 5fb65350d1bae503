// Det: elimination with row exchange, in f64 so that cancellation does not show in single precision.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// lu (n x n) is turned into a triangle; det collects the product of its diagonal.
Stmt eliminate(const Buffer& lu, const Buffer& det, const Buffer& pivot, int64_t n) {
  const Var k = make_var("k"), row = make_var("row"), col = make_var("col"), r = make_var("r"), c = make_var("c");
  const Expr best = load(pivot, {0});
  const Expr diagonal = load(lu, {k, k}), zero_value = zero(DType::F64);
  const Stmt find = seq(
      {store(pivot, {0}, k), loop(row, Expr(n) - Expr(k) - 1,
                                  if_then(abs(load(lu, {row, k})) > abs(load(lu, {best, k})), store(pivot, {0}, row)),
                                  ForKind::Serial, Expr(k) + 1)});
  const Var kept = make_var("kept", DType::F64);
  const Stmt exchange = if_then(
      ne(best, k), seq({loop(col, n,
                             let(kept, load(lu, {k, col}),
                                 seq({store(lu, {k, col}, load(lu, {best, col})), store(lu, {best, col}, kept)}))),
                        store(det, {0}, -load(det, {0}))}));
  const Var factor = make_var("factor", DType::F64);
  const Stmt subtract =
      loop(c, Expr(n) - Expr(k) - 1, store(lu, {r, c}, load(lu, {r, c}) - Expr(factor) * load(lu, {k, c})),
           ForKind::Serial, Expr(k) + 1);
  const Stmt reduce = if_then(
      ne(diagonal, zero_value),
      loop(r, Expr(n) - Expr(k) - 1, let(factor, load(lu, {r, k}) / diagonal, subtract), ForKind::Serial, Expr(k) + 1));
  return loop(k, n, seq({find, exchange, store(det, {0}, load(det, {0}) * diagonal), reduce}));
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
    for (size_t a = dims.size(); a-- > 0;) body = loop(vars[a], dims[a], body);
    return alloc(lu, alloc(det, alloc(pivot, body)));
  });
  b.output(0, y[0]);
}

}  // namespace

OpFamily determinant_ops() { return {{"Det", 22, {}, define_det}}; }

}  // namespace tc
