"""Double precision: vectors that fill two registers. Results are exact to fourteen digits, so that nothing of them was a float."""
import numpy as np

from case import Case, ints

EXACT = 1e-13


def doubles(seed, *shape, scale=1.0):
    return np.random.default_rng(seed).standard_normal(shape) * scale


def products():
    for rows, depth, columns in ((7, 33, 61), (1, 100, 37), (40, 64, 48), (3, 5, 4)):
        name, x, w = f"{rows}_{depth}_{columns}", doubles(1, rows, depth), doubles(2, depth, columns)
        yield Case(f"double_product_{name}", "y = MatMul (x, w)", {"x": x}, {"w": w}, bar=EXACT)
        yield Case(f"double_product_of_inputs_{name}", "y = MatMul (x, w)", {"x": x, "w": w}, bar=EXACT)
    yield Case("double_gemm", "t = Gemm <transB = 1, alpha = 0.5> (x, w, b) y = Relu (t)", {"x": doubles(1, 9, 20)},
               {"w": doubles(2, 35, 20), "b": doubles(3, 35)}, bar=1e-7)  # ONNX Runtime's alpha is a float
    yield Case("double_batches", "y = MatMul (x, w)", {"x": doubles(1, 3, 5, 18), "w": doubles(2, 3, 18, 21)}, bar=EXACT)
    yield Case("double_transposed", "t = Transpose <perm = [1, 0]> (w) m = MatMul (x, t) y = Tanh (m)", {"x": doubles(1, 6, 40), "w": doubles(2, 19, 40, scale=0.2)}, bar=EXACT)
    yield Case("double_einsum", 'y = Einsum <equation = "bij,bjk,bk->bi"> (x, w, z)', {"x": doubles(1, 2, 9, 17), "w": doubles(2, 2, 17, 33), "z": doubles(3, 2, 33)}, bar=EXACT)


def reductions():
    for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceSumSquare", "ReduceL2", "ReduceLogSumExp"):
        for axes in ((-1,), (0,), (1,), (0, 2)):
            name = f"double_{op.lower()}_{'_'.join(str(a % 3) for a in axes)}"
            yield Case(name, f"y = {op} <keepdims = 0> (x, a)", {"x": doubles(5, 6, 40, 19)}, {"a": ints(*axes)}, bar=1e-12)
    for axis in (1, 2):
        yield Case(f"double_softmax_{axis}", f"y = Softmax <axis = {axis}> (x)", {"x": doubles(6, 3, 37, 41, scale=30)}, bar=EXACT)
        yield Case(f"double_log_softmax_{axis}", f"y = LogSoftmax <axis = {axis}> (x)", {"x": doubles(7, 3, 37, 41, scale=30)}, bar=EXACT)
    yield Case("double_layer_norm", "y = LayerNormalization (x, g, b)", {"x": doubles(8, 5, 77)}, {"g": doubles(9, 77), "b": doubles(10, 77)}, bar=1e-9)
    yield Case("double_max_pool", "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)", {"x": doubles(11, 1, 5, 21, 23)}, bar=EXACT)
    yield Case("double_argmax", "y = ArgMax <axis = 1> (x)", {"x": doubles(12, 4, 50, 7)})


def elements():
    """Every function of vectors, near zero and where it over- and underflows; what has none beside them."""
    wide = np.concatenate([doubles(13, 200, scale=300), doubles(14, 100), doubles(15, 100, scale=1e-9), [0.0, -0.0, -745.1, -745.2, np.inf, -np.inf]])
    yield Case("double_exp", "y = Exp (x)", {"x": np.minimum(wide, 300)}, bar=EXACT, nothing=True)
    for op in ("Tanh", "Sigmoid", "Abs", "Neg", "Floor"):
        yield Case(f"double_{op.lower()}", f"y = {op} (x)", {"x": wide}, bar=EXACT, nothing=True)
    yield Case("double_sqrt", "y = Sqrt (x)", {"x": np.abs(wide)}, bar=EXACT, nothing=True)
    yield Case("double_arithmetic", "a = Add (x, z) b = Mul (a, x) c = Sub (b, z) d = Max (c, x) e = Min (d, z) f = Div (e, w) y = Abs (f)",
               {"x": doubles(16, 5, 37), "z": doubles(17, 5, 1), "w": 2 + np.abs(doubles(18, 37))}, bar=EXACT)
    yield Case("double_where", "c = Greater (x, z) y = Where (c, x, z)", {"x": doubles(19, 5, 37), "z": doubles(20, 5, 37)}, bar=EXACT)
    yield Case("double_clip", "y = Clip (x, l, h)", {"x": doubles(21, 5, 37, scale=3)}, {"l": np.float64(-1), "h": np.float64(2)}, bar=EXACT)
    yield Case("double_and_float", "a = Cast <to = 11> (x) b = Mul (a, z) c = Exp (b) y = Cast <to = 1> (c)", {"x": (5, 37), "z": doubles(22, 37)})
    yield Case("double_mask", "m = Cast <to = 11> (c) a = Mul (m, x) y = ReduceSum <keepdims = 0> (a, i)", {"c": doubles(23, 6, 40) > 0, "x": doubles(24, 6, 40)}, {"i": ints(1)}, bar=EXACT)


def cases():
    yield from products()
    yield from reductions()
    yield from elements()
