"""Sums of products of bytes: every combination of signs and zero points, and what quantisers write around them.

Weights have seven bits where ONNX Runtime's kernels without dot products of bytes would saturate.
"""
import numpy as np

from case import Case


U8, I8, I32, F32 = np.uint8, np.int8, np.int32, np.float32


def some(rng, dtype, shape, narrow=False):
    low, high = (-128, 128) if dtype == I8 else (0, 256)
    if narrow:
        low, high = (-63, 64) if dtype == I8 else (64, 191)
    return rng.integers(low, high, shape).astype(dtype)


def conv_cases(rng):
    """QLinearConv and ConvInteger: odd channels, strides, groups, depthwise, zero points in the border."""
    shapes = {"plain": ((2, 5, 9, 8), (37, 5, 3, 3), 1, "kernel_shape = [3,3], pads = [1,1,1,1]"),
              "stride": ((1, 16, 12, 11), (24, 16, 3, 3), 1, "kernel_shape = [3,3], strides = [2,2], pads = [1,0,1,2]"),
              "points": ((1, 33, 7, 7), (20, 33, 1, 1), 1, "kernel_shape = [1,1]"),
              "groups": ((1, 12, 8, 8), (20, 3, 3, 3), 4, "kernel_shape = [3,3], pads = [1,1,1,1], group = 4"),
              "depth": ((1, 21, 9, 10), (21, 1, 3, 3), 21, "kernel_shape = [3,3], pads = [1,1,1,1], group = 21"),
              "one": ((1, 20, 9, 10), (1, 20, 3, 3), 1, "kernel_shape = [3,3], pads = [1,1,1,1]"),
              "one_point": ((3, 18, 6, 7), (1, 18, 1, 1), 1, "kernel_shape = [1,1]")}
    for name, (x, w, _, attributes) in shapes.items():
        for signs, xt, wt, zx, zw in (("u8s8", U8, I8, 7, 0), ("s8s8", I8, I8, -9, 0), ("u8u8", U8, U8, 131, 120)):
            n = w[0]
            weights = {"s": F32(0.02), "z": xt(zx), "w": some(rng, wt, w, True), "t": rng.uniform(0.005, 0.02, n).astype(F32), "n": np.full(n, zw, wt),
                       "u": F32(0.31), "v": xt(zx), "b": rng.integers(-2000, 2000, n).astype(I32)}
            if signs == "u8u8":
                weights.update(t=F32(0.01), n=wt(zw))
            yield Case(f"qconv_{name}_{signs}", f"y = QLinearConv <{attributes}> (x, s, z, w, t, n, u, v, b)", {"x": some(rng, xt, x)}, weights)
        yield Case(f"conv_integer_{name}", f"y = ConvInteger <{attributes}> (x, w, z)", {"x": some(rng, U8, x)},
                   {"w": some(rng, U8, w, True), "z": U8(100)})


def matmul_cases(rng):
    for name, m, k, n in (("rows", 19, 67, 35), ("vector", 1, 130, 70), ("short", 5, 3, 16), ("column", 40, 67, 1)):
        for signs, at, bt, za, zb in (("u8s8", U8, I8, 12, 0), ("u8u8", U8, U8, 12, 77), ("s8s8", I8, I8, -3, 0)):
            yield Case(f"matmul_integer_{name}_{signs}", "y = MatMulInteger (x, w, a, b)", {"x": some(rng, at, (m, k))},
                       {"w": some(rng, bt, (k, n), True), "a": at(za), "b": bt(zb)})
    yield Case("matmul_integer_columns", "y = MatMulInteger (x, w, a, b)", {"x": some(rng, U8, (9, 30))},
               {"w": some(rng, U8, (30, 21), True), "a": U8(3), "b": some(rng, U8, 21)})
    yield Case("qlinear_matmul", "y = QLinearMatMul (x, s, z, w, t, n, u, v)", {"x": some(rng, U8, (3, 11, 29))},
               {"s": F32(0.02), "z": U8(128), "w": some(rng, I8, (29, 18), True), "t": F32(0.01), "n": I8(0), "u": F32(0.1), "v": U8(128)})
    yield Case("dynamic_dense", "q, s, z = DynamicQuantizeLinear (x)\n p = MatMulInteger (q, w, z, n)\n f = Cast <to = 1> (p)\n"
               " t = Mul (s, u)\n d = Mul (f, t)\n e = Add (d, b)\n y = Relu (e)", {"x": (13, 50)},
               {"w": some(rng, I8, (50, 37), True), "n": I8(0), "u": F32(0.01), "b": (37,)})
    yield Case("dynamic_conv", "q, s, z = DynamicQuantizeLinear (x)\n p = ConvInteger <pads = [1,1,1,1]> (q, w, z)\n f = Cast <to = 1> (p)\n y = Mul (f, s)",
               {"x": (1, 6, 9, 9)}, {"w": some(rng, U8, (10, 6, 3, 3), True)})


def dequantised_cases(rng):
    """Products between DequantizeLinear and QuantizeLinear, as quantisers write them today."""
    for activation in ("", "Relu", "Clip"):
        for signs, xt, zero in (("u8", U8, 0), ("s8", I8, -128)):
            act = {"": "r = Identity (c)", "Relu": "r = Relu (c)", "Clip": "r = Clip (c, lo, hi)"}[activation]
            n = 22
            st = rng.uniform(0.005, 0.02, n).astype(F32)
            yield Case(f"qdq_conv_{activation or 'plain'}_{signs}".lower(),
                       "a = DequantizeLinear (x, s, z)\n f = DequantizeLinear <axis = 0> (w, t, n)\n g = DequantizeLinear <axis = 0> (b, st, zb)\n"
                       f" c = Conv <pads = [1,1,1,1]> (a, f, g)\n {act}\n y = QuantizeLinear (r, u, v)", {"x": some(rng, xt, (1, 9, 8, 7))},
                       {"s": F32(0.02), "z": xt(zero), "w": some(rng, I8, (n, 9, 3, 3), True), "t": st, "n": np.zeros(n, I8), "st": (F32(0.02) * st).astype(F32),
                        "zb": np.zeros(n, I32), "b": rng.integers(-4000, 4000, n).astype(I32), "u": F32(6 / 255), "v": xt(zero), "lo": F32(0), "hi": F32(6)})
    yield Case("qdq_gemm", "a = DequantizeLinear (x, s, z)\n f = DequantizeLinear (w, t)\n y = Gemm <transB = 1> (a, f, b)", {"x": some(rng, U8, (9, 31))},
               {"s": F32(0.02), "z": U8(110), "w": some(rng, I8, (27, 31), True), "t": F32(0.01), "b": (27,)})


def byte_cases(rng):
    """Bytes and whole numbers without products: pools, limits, sums."""
    yield Case("max_pool_u8", "y = MaxPool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]> (x)", {"x": some(rng, U8, (1, 21, 9, 8))})
    yield Case("max_pool_s8", "y = MaxPool <kernel_shape = [2,2], pads = [0,0,1,1]> (x)", {"x": some(rng, I8, (1, 16, 7, 7))})
    yield Case("whole_numbers", "a = Add (x, w)\n b = Mul (a, x)\n c = Max (b, w)\n y = Sub (c, x)", {"x": rng.integers(-(2**31), 2**31, (5, 43)).astype(I32)},
               {"w": rng.integers(-(2**31), 2**31, (43,)).astype(I32)})
    yield Case("requantise_sum", "a = DequantizeLinear (x, s, z)\n b = DequantizeLinear (u, t, n)\n c = Add (a, b)\n y = QuantizeLinear (c, v, w)",
               {"x": some(rng, U8, (3, 37)), "u": some(rng, I8, (3, 37))},
               {"s": F32(0.0625), "z": U8(100), "t": F32(0.125), "n": I8(-4), "v": F32(0.25), "w": U8(120)})
    # Whatever byte NaN becomes, it is one.
    holes = np.where(np.arange(64) % 5 == 0, np.nan, rng.uniform(-20, 300, 64)).astype(F32)
    for name, to in (("u8", 2), ("s8", 3)):
        for rounded in ("Identity", "Round"):
            yield Case(f"bytes_of_nan_{name}_{rounded.lower()}", f"r = {rounded} (x)\n c = Clip (r, low, high)\n b = Cast <to = {to}> (c)\n f = Cast <to = 1> (b)\n"
                       " over = Max (f, low)\n inside = Min (over, high)\n same = Equal (inside, f)\n n = IsNaN (x)\n y = Where (n, low, f)", {"x": holes},
                       {"low": F32(0), "high": F32(100)}, outputs=("y", "same"))
    yield Case("numbers_of_bytes", "a = Cast <to = 1> (x)\n b = Mul (a, h)\n c = Cast <to = 6> (b)\n y = Add (c, c)", {"x": some(rng, I8, (4, 50))}, {"h": F32(1.5)})


def row_cases(rng):
    """Rows between bytes: what is dequantised in front of them and quantised behind, also into parts of a tensor."""
    scales = {"s": F32(0.05), "z": I8(-3), "u": F32(0.004), "v": I8(-128), "h": F32(0.9)}  # without h, ONNX Runtime takes e^x from a table
    for n in (9, 67, 300, 1500):
        yield Case(f"softmax_bytes_{n}", "a = DequantizeLinear (x, s, z)\n f = Mul (a, h)\n b = Softmax (f)\n y = QuantizeLinear (b, u, v)", {"x": some(rng, I8, (2, 5, n))}, scales)
        yield Case(f"norm_bytes_{n}", "a = LayerNormalization (x, w, b)\n y = QuantizeLinear (a, s, z)", {"x": (7, n)}, {"w": (n,), "b": (n,), "s": F32(0.03), "z": U8(120)})
    yield Case("softmax_bytes_joined", "a = Softmax (x)\n b = QuantizeLinear (a, u, v)\n c = Softmax (t)\n d = QuantizeLinear (c, u, v)\n y = Concat <axis = 1> (b, d)",
               {"x": (3, 4, 40), "t": (3, 2, 40)}, {"u": F32(0.004), "v": I8(-128)})
    conv = "q = QuantizeLinear (x, s, z)\n p = QLinearConv <pads = [1,1,1,1]> (q, s, z, w, t, o, u, v)\n d = DequantizeLinear (p, u, v)\n "
    known = {"s": F32(0.05), "z": I8(-3), "w": some(rng, I8, (20, 6, 3, 3), True), "t": F32(0.02), "o": I8(0), "u": F32(0.1), "v": I8(5)}
    axis = {"k": np.array([1])}
    yield Case("mean_of_bytes", conv + "m = GlobalAveragePool (d)\n y = QuantizeLinear (m, s, z)", {"x": (2, 6, 9, 7)}, known)
    yield Case("sum_with_bytes", conv + "r = Mul (x, s)\n e = ReduceMax (r, k)\n h = Add (d, e)\n y = QuantizeLinear (h, u, v)", {"x": (2, 6, 9, 7)}, {**known, **axis})
    quantised = "\n ".join(f"q{k} = QuantizeLinear (t{k}, s{k}, z{k})\n d{k} = DequantizeLinear (q{k}, s{k}, z{k})\n {then}"
                            for k, then in enumerate(("t1 = Add (d0, b)", "t2 = Erf (d1)", "t3 = Add (d2, one)", "t4 = Mul (d1, d3)", "y = Mul (d4, half)")))
    steps = {f"{kind}{k}": value for k, (scale, zero) in enumerate(((0.05, U8(121)), (0.06, U8(118)), (1 / 127, I8(0)), (2 / 255, U8(0)), (0.05, I8(-100))))
             for kind, value in (("s", F32(scale)), ("z", zero))}
    yield Case("bytes_between_all", "t0 = MatMul (x, w)\n " + quantised, {"x": (13, 40)}, {"w": (40, 37), "b": (37,), "one": F32(1), "half": F32(0.5), **steps})
    yield Case("bytes_have_no_negative_zero", "q = QuantizeLinear (x, s, z)\n d = DequantizeLinear (q, s, z)\n i = Div (one, d)\n y = Clip (i, low, high)", {"x": np.linspace(-0.4, 0.4, 37, dtype=F32)},
               {"s": F32(1), "z": I8(0), "one": F32(1), "low": F32(-2), "high": F32(2)})
    yield Case("bytes_that_wrap", "r = Round (x)\n q = Cast <to = 2> (r)\n y = Cast <to = 1> (q)", {"x": np.linspace(0, 255, 53, dtype=F32)})
    yield Case("floats_of_bytes_twice", conv + "m = GlobalAveragePool (d)\n y = Sub (d, m)", {"x": (2, 6, 9, 7)}, known)


def cases():
    rng = np.random.default_rng(12)
    for family in (row_cases, conv_cases, matmul_cases, dequantised_cases, byte_cases):
        yield from family(rng)
