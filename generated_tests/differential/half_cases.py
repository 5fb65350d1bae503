"""Halves: vectors that are widened as they are loaded and rounded as they are stored; weights that are stored as they are."""
import numpy as np

from case import Case, ints

HALF = 1.5e-3  # a rounding more or less: ONNX Runtime computes some operators in halves


def halves(seed, *shape, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float16)


def products():
    """Weights of 4,096 elements and more, odd sizes, one row and many; f32 models whose weights were rounded before."""
    for rows, depth, columns in ((1, 131, 77), (37, 64, 65), (5, 300, 16)):
        x, w = halves(1, rows, depth), halves(2, depth, columns, scale=depth ** -0.5)
        name = f"{rows}_{depth}_{columns}"
        yield Case(f"half_product_{name}", "y = MatMul (x, w)", {"x": x}, {"w": w}, bar=HALF)
        yield Case(f"float_product_of_halves_{name}", "y = MatMul (x, w)", {"x": x.astype(np.float32)}, {"w": w.astype(np.float32)})
        brain = (w.astype(np.float32).view(np.uint32) & 0xffff0000).view(np.float32)
        yield Case(f"float_product_of_brain_floats_{name}", "y = MatMul (x, w)", {"x": x.astype(np.float32)}, {"w": brain})
    yield Case("half_gemm", "t = Gemm <transB = 1> (x, w, b) y = Relu (t)", {"x": halves(1, 9, 70)}, {"w": halves(2, 75, 70, scale=0.1), "b": halves(3, 75)}, bar=HALF)
    for group, stride in ((1, 1), (1, 2), (4, 1), (24, 1)):
        w = halves(5, 48, 24 // group, 3, 3, scale=0.1).astype(np.float32)
        yield Case(f"conv_of_half_weights_{group}_{stride}", f"t = Conv <group = {group}, strides = [{stride}, {stride}], pads = [1, 1, 1, 1]> (x, w, b) y = Sigmoid (t)",
                   {"x": (1, 24, 13, 11)}, {"w": w, "b": (48,)})
    yield Case("winograd_of_half_weights", "y = Conv <pads = [1, 1, 1, 1]> (x, w)", {"x": (1, 32, 16, 16)}, {"w": halves(6, 32, 32, 3, 3, scale=0.06).astype(np.float32)})
    tied = halves(7, 80, 64).astype(np.float32)
    yield Case("tied_half_weights", "g = Gather (w, i) t = Transpose <perm = [1, 0]> (w) y = MatMul (g, t)", {"i": np.array([3, 79, 0, 3])}, {"w": tied})
    pair = halves(8, 64, 64, scale=0.1).astype(np.float32)
    yield Case("half_weights_twice", "a = MatMul (x, w) y = MatMul (a, w)", {"x": (3, 64)}, {"w": pair})


def elements():
    wide = np.concatenate([halves(9, 200, scale=20), np.array([0, -0.0, 65504, -65504, 6e-8, -6e-8, 3e-5], np.float16)])
    for op in ("Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Exp"):
        yield Case(f"half_{op.lower()}", f"y = {op} (x)", {"x": np.minimum(wide, 10).astype(np.float16) if op == "Exp" else wide}, bar=HALF)
    yield Case("half_from_float", "y = Cast <to = 10> (x)", {"x": wide.astype(np.float32) * np.float32(1.0009765)}, nothing=True)
    yield Case("float_from_half", "y = Cast <to = 1> (x)", {"x": wide})
    yield Case("half_rounds_between", "a = Cast <to = 10> (x) b = Cast <to = 1> (a) y = Mul (b, x)", {"x": (7, 33)})
    yield Case("brain_rounds_between", "a = Cast <to = 16> (x) b = Cast <to = 1> (a) y = Mul (b, x)", {"x": (7, 33)})
    yield Case("half_add", "y = Add (x, z)", {"x": halves(10, 5, 37), "z": halves(11, 5, 1)}, bar=HALF)
    yield Case("half_max_pool", "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)", {"x": halves(12, 1, 18, 14, 10)})


def rows():
    for size in (7, 33, 200, 1100):
        yield Case(f"half_softmax_{size}", "y = Softmax (x)", {"x": halves(13, 4, size, scale=4)}, bar=HALF)
        yield Case(f"half_layer_norm_{size}", "y = LayerNormalization (x, g, b)", {"x": halves(14, 4, size)}, {"g": halves(15, size), "b": halves(16, size)}, bar=HALF)
    # sums of one element are copies
    yield Case("half_sum_of_one", "y = ReduceSum <keepdims = 0> (x, a)", {"x": halves(19, 5, 1, 37)}, {"a": ints(1)})
    yield Case("half_mean_of_one", "y = ReduceMean <axes = [1]> (x)", {"x": halves(18, 5, 1, 37)}, opset=13)
    yield Case("half_softmax_columns", "y = Softmax <axis = 1> (x)", {"x": halves(17, 3, 37, 18)}, bar=HALF)
    for axes in ((-1,), (0,), (0, 1)):
        yield Case(f"half_mean_{'_'.join(str(a % 2) for a in axes)}", "y = ReduceMean <keepdims = 0> (x, a)", {"x": halves(18, 30, 41)}, {"a": ints(*axes)}, bar=HALF)


def cases():
    yield from products()
    yield from elements()
    yield from rows()
