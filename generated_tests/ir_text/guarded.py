"""Reads behind a condition: where it does not hold, the place may be anything. No template reads, or tests, what is not chosen."""
import functools

from checks import TOOL, run

V, K, M, N = 16, 64, 33, 64

# By the template that a GPU takes: places of rows that `w` says, or that lie before the first.
OPS = """
op my.Rows(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M]
  t[i: M, k: K] = where(w[i] < V, x[index(w[i], V), k], 0)
  y[i] = sum(k: K) t[i, k] * t[i, k]
op my.Norm(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M, K]
  t[i: M, k: K] = where(w[i] < V, x[index(w[i], V), k], 0)
  s[i: M] = max(k: K) t[i, k]
  y[i, k] = t[i, k] - s[i]
op my.Soft(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M, K]
  t[i: M, k: K] = where(w[i] < V, x[index(w[i], V), k], 0)
  s[i: M] = max(k: K) t[i, k]
  e[i: M, k: K] = exp(t[i, k] - s[i])
  q[i: M] = sum(k: K) e[i, k]
  y[i, k] = e[i, k] / q[i]
op my.Product(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M, N]
  y[i, j] = sum(k: K) where(w[i] < V, x[index(w[i], V), k], 0) * v[k, j]
op my.Before(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M, N]
  y[i, j] = sum(k: K) where(i >= 1, x[index(min(w[i - 1], 15), V), k], 0) * v[k, j]
op my.Columns(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[K, M]
  y[i, j] = sum(n: N) v[i, n] * where(w[j] < V, x[index(w[j], V), n], 0)
op my.One(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M]
  y[i] = sum(k: K) where(w[i] < V, x[index(w[i], V), k], 0) * v[k, 0]
op my.Pairs(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[K, K]
  y[i, j] = sum(m: M) where(w[m] < V, x[index(w[m], V), i], 0) * where(w[m] < V, x[index(w[m], V), j], 0)
op my.Each(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M, K]
  y[i, k] = where(w[i] < V, x[index(w[i], V), k], 0) + 1
op my.Turned(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[K, M]
  y[k, i] = where(w[i] < V, x[index(w[i], V), k], 0) + 1
op my.Sums(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[K]
  y[k] = sum(i: M) where(w[i] < V, x[index(w[i], V), k], 0)
op my.Window(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M - 2, K]
  y[i, k] = max(q: 3) where(w[i + q] < V, x[index(w[i + q], V), k], 0)
op my.Steps(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M, K]
  scan {
    y[i, k] = where(i > 0, y[i - 1, k] * 0.5, 0) + where(w[i] < V, x[index(w[i], V), k], 0)
  }
op my.Best(x: f32[V, K], w: i32[M], v: f32[K, N]) -> y: f32[M], p: i64[M]
  (y, p)[i] as best = fold(k: K) (where(w[i] < V, x[index(w[i], V), k], 0), k) from (-100, 0) by (a, i0), (b, j0) => (max(a, b), where(b > a || b == a && j0 < i0, j0, i0))
"""
SHAPES = {"Rows": [M], "Norm": [M, K], "Soft": [M, K], "Product": [M, N], "Before": [M, N], "Columns": [K, M], "One": [M], "Pairs": [K, K], "Each": [M, K],
          "Turned": [K, M], "Sums": [K], "Window": [M - 2, K], "Steps": [M, K], "Best": [M]}


def model():
    """All of them, with places of which many are beyond the last."""
    outputs = ", ".join(f"float[{', '.join(map(str, shape))}] {name}" for name, shape in SHAPES.items())
    nodes = "\n".join(f"  {name}{', place' if name == 'Best' else ''} = my.{name}(x, w, v)" for name in SHAPES)
    return (f'<ir_version: 10, opset_import: ["" : 21, "my" : 1]>\ng (float[{V}, {K}] x, float[{M}] u, float[{K}, {N}] v) => ({outputs}, int64[{M}] place) <float thirty = {{30}}> {{\n'
            f"  a = Abs(u)\n  far = Mul(a, thirty)\n  w = Cast <to = 6> (far)\n{nodes}\n}}\n")


def cases(check, tmp, processors):
    tmp.mkdir()
    (tmp / "ops.tc").write_text(OPS)
    path = tmp / "guarded.onnxtxt"
    path.write_text(model())

    def agrees(target, flags):
        told = run(TOOL, "verify", path, *processors[target], *flags, "--ops", tmp / "ops.tc", "--against", "interpreter", "--verify-each")
        check(f"{target} {' '.join(flags)}: what is not chosen is not read", told.returncode == 0, told.stdout + told.stderr)

    return [functools.partial(agrees, target, flags) for target in processors for flags in ([], ["--fp", "strict"])]
