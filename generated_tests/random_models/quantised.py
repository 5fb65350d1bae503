"""Bytes: quantised products, chains between DequantizeLinear and QuantizeLinear, and what stands in them."""
import numpy as np

from evaluate import I4, U4, Draft, Unfit
from graph import BOOL, F16, F32, I8, I32, I64, U8
from rows import Row, attributes_of, axis_of, ints, maybe, trimmed

BYTES = (I8, U8)
DEPTHS = [1, 2, 3, 4, 5, 6, 7, 9, 13, 16, 17, 31, 33, 66]


def scale(g, shape=(), exact=False, dtype=F32):
    """Steps of quantisation: powers of two where what follows has to be exact."""
    choices = [2.0**-k for k in range(2, 7)] if exact else [0.02, 0.05, 0.1, 0.3, 2.0**-4, 0.007]
    return g.known(np.array([g.rng.choice(choices) for _ in range(int(np.prod(shape)))], dtype).reshape(shape))


def zero(g, dtype, shape=(), none=0.3):
    """A zero point; often none."""
    if g.rng.random() < none:
        return g.known(np.zeros(shape, dtype))
    low, high = (-128, 127) if dtype == I8 else (0, 255) if dtype == U8 else (-8, 7) if dtype == I4 else (0, 15)
    return g.known(g.draw_array(dtype, shape, low=low, high=high))


def byte_array(g, dtype, shape, constant=None, narrow=True):
    """Bytes over their whole range; weights over half of it, where kernels of 16-bit sums would saturate."""
    low, high = (-128, 127) if dtype == I8 else (0, 255)
    if narrow:
        low, high = (-63, 63) if dtype == I8 else (64, 190)
    return g.fresh(dtype, shape, constant=constant, low=low, high=high)


def bytes_of(g, dtype, shape):
    found = g.pick(lambda v: v.dtype == dtype and v.shape == tuple(shape))
    return found if found is not None and g.rng.random() < 0.6 else byte_array(g, dtype, shape, narrow=False, constant=g.rng.random() < 0.15)


def quantise(g, op):
    if op == "DynamicQuantizeLinear":
        v = g.operand((F32,), exact=True, where=lambda v: v.size > 0)
        return g.add(Draft(op, (v,), {}, 3), "never")
    v = g.operand((F32, F16) if g.opset >= 19 else (F32,), where=lambda v: v.size > 0)
    kind = g.rng.choice(BYTES) if g.opset < 21 or g.rng.random() < 0.8 else g.rng.choice([np.dtype("i2"), np.dtype("u2"), I4, U4])
    axis = axis_of(g, v) if v.rank and g.opset >= 13 and g.rng.random() < 0.4 else None
    shape = () if axis is None else (v.shape[axis],)
    point = zero(g, kind, shape) if kind in (I8, U8, I4, U4) else g.known(np.zeros(shape, kind))
    if kind == U8 and g.rng.random() < 0.3:
        point = None
    s = scale(g, shape, v.exact, v.dtype)
    q = g.op(op, *trimmed(v, s, point), kind="never" if not v.exact else "decides", **({"axis": axis} if axis is not None else {}))
    if g.rng.random() < 0.6:
        g.op("DequantizeLinear", *trimmed(q, s, point), kind="move", **({"axis": axis} if axis is not None else {}))


def dequantise(g, op):
    v = g.operand((I8, U8, I32) if g.opset < 21 else (I8, U8, I32, I4, U4), where=lambda v: v.size > 0)
    axis = axis_of(g, v) if v.rank and g.opset >= 13 and g.rng.random() < 0.4 else None
    shape = () if axis is None else (v.shape[axis],)
    g.add(Draft(op, trimmed(v, scale(g, shape), None if v.dtype == I32 else maybe(g, lambda: zero(g, v.dtype, shape), 0.7)), {"axis": axis} if axis is not None else {}), "never")


def product_operands(g):
    a, b = g.rng.choice(BYTES), g.rng.choice(BYTES)
    m, k, n = g.rng.choice([1, 2, 3, 5, 8, 17]), g.rng.choice(DEPTHS), g.rng.choice([1, 2, 3, 5, 8, 16, 17, 33])
    lead = g.rng.choice([(), (), (2,), (3, 2)])
    x = bytes_of(g, a, (*lead, m, k))
    w = byte_array(g, b, (k, n), constant=g.rng.random() < 0.85)
    return x, w


def integer_product(g, op):
    x, w = product_operands(g)
    per = (w.shape[-1],) if g.rng.random() < 0.4 else ()
    if op == "MatMulInteger":
        return g.add(Draft(op, trimmed(x, w, maybe(g, lambda: zero(g, x.dtype), 0.7), maybe(g, lambda: zero(g, w.dtype, per), 0.5))), "move")
    y = g.rng.choice(BYTES) if g.opset >= 21 else x.dtype
    g.add(Draft(op, (x, scale(g), zero(g, x.dtype), w, scale(g, per), zero(g, w.dtype, per), g.known(np.asarray(g.rng.choice([0.5, 2.0, 9.0]), F32)), zero(g, x.dtype))), "never")


def byte_conv(g, op):
    from products import window
    x = bytes_of(g, g.rng.choice(BYTES), (g.rng.choice([1, 2, 3]), g.rng.choice([1, 2, 3, 4, 5, 6, 8]), *g.rng.choice([(5, 6), (7, 7), (4, 9), (1, 8)])))
    kernel, attributes = window(g, x)
    c = x.shape[1]
    group = g.rng.choice([1, 1, 1, c, *([2] if c % 2 == 0 else [])])
    out = group * g.rng.choice([1, 2, 3] if group > 1 else [1, 3, 5, 8, 17])
    b = g.rng.choice(BYTES) if x.dtype == U8 else I8
    w = byte_array(g, b, (out, c // group, *kernel), constant=True)
    attributes |= {"group": group} if group > 1 else {}
    per = (out,) if g.rng.random() < 0.4 and b == I8 else ()
    wz = g.known(np.zeros(per, b)) if b == I8 and g.rng.random() < 0.7 else zero(g, b, ()) if not per else g.known(np.zeros(per, b))
    if op == "ConvInteger":
        return g.add(Draft(op, trimmed(x, w, maybe(g, lambda: zero(g, x.dtype), 0.7), maybe(g, lambda: zero(g, b), 0.4)), attributes), "move")
    bias = maybe(g, lambda: g.fresh(I32, (out,), low=-900, high=900, constant=True))
    g.add(Draft(op, trimmed(x, scale(g), zero(g, x.dtype), w, scale(g, per), wz, g.known(np.asarray(g.rng.choice([0.5, 2.0]), F32)), zero(g, x.dtype), bias), attributes), "never")


def chain(g):
    """DequantizeLinear, something, QuantizeLinear: as quantisers write it, with one thing or another out of place."""
    from products import window
    kind, wkind = g.rng.choice(BYTES), g.rng.choice((I8, I8, U8))
    sx, zx = scale(g), zero(g, kind)
    what = g.rng.choice(["conv", "conv", "matmul", "gemm", "pool", "relu", "add", "move", "average", "table"])
    picture = what in ("conv", "pool", "average")
    x = bytes_of(g, kind, (g.rng.choice([1, 2]), g.rng.choice([1, 3, 4, 5, 6]), g.rng.choice([5, 6]), g.rng.choice([4, 7]))) if picture else bytes_of(g, kind, (g.rng.choice([1, 2, 5]), g.rng.choice(DEPTHS)))
    if g.rng.random() < 0.06:
        sx = g.known(-sx.array)  # seldom, and allowed
    a = g.op("DequantizeLinear", x, sx, zx)
    if what == "conv":
        kernel, attributes = window(g, x)
        c, out = x.shape[1], g.rng.choice([1, 3, 5, 8, 17])
        w = byte_array(g, wkind, (out, c, *kernel), constant=True)
        y = g.op("Conv", a, *weights(g, sx, w, 0, out), **attributes)
    elif what in ("matmul", "gemm"):
        k, n = x.shape[1], g.rng.choice([1, 2, 5, 17])
        if what == "matmul":
            y = g.op("MatMul", a, *weights(g, sx, byte_array(g, wkind, (k, n), constant=True), 1, 0))
        else:
            tb = g.rng.randrange(2)
            y = g.op("Gemm", a, *weights(g, sx, byte_array(g, wkind, (n, k) if tb else (k, n), constant=True), 1 - tb, n), transB=tb, **attributes_of(g, {"alpha": [1.0, 0.5], "beta": [1.0, 2.0]}))
    elif what == "pool":
        y = g.op("MaxPool", a, kernel_shape=[2, 2], strides=[g.rng.choice([1, 2])] * 2)
    elif what == "average":
        y = g.op(g.rng.choice(["GlobalAveragePool", "GlobalMaxPool"]), a)
    elif what == "relu":
        y = g.op(g.rng.choice(["Relu", "LeakyRelu", "Sigmoid", "HardSwish", "Neg", "Abs"] if g.opset >= 14 else ["Relu", "LeakyRelu", "Neg"]), a)
    elif what == "add":
        other = g.rng.choice(BYTES)
        b = g.op("DequantizeLinear", bytes_of(g, other, g.rng.choice([x.shape, x.shape[1:], (1, x.shape[1])])), scale(g), zero(g, other))
        y = g.op(g.rng.choice(["Add", "Mul", "Concat" if b.shape == a.shape else "Add", "Sub", "Max"]), a, b) if b.shape != a.shape or g.rng.random() < 0.7 else g.op("Concat", a, b, axis=g.rng.choice([0, 1]))
    elif what == "move":
        y = g.op("Transpose", a, perm=[1, 0]) if g.rng.random() < 0.5 else g.op("Reshape", a, ints(g, [-1]))
    else:
        y = g.op(g.rng.choice(["Exp", "Tanh", "Erf"]), g.op("Clip", a, g.known(F32.type(-2)), g.known(F32.type(2))) if g.opset >= 11 else a)
    if what in ("conv", "matmul", "gemm") and g.rng.random() < 0.5:
        y = g.op("Relu", y) if g.rng.random() < 0.6 or g.opset < 11 else g.op("Clip", y, g.known(F32.type(g.rng.choice([0, -1]))), g.known(F32.type(6)))
    if g.rng.random() < 0.8:
        sy = scale(g) if what != "pool" or g.rng.random() < 0.5 else sx
        q = g.op("QuantizeLinear", y, sy, zero(g, g.rng.choice(BYTES)))
        if g.rng.random() < 0.3:
            g.op("DequantizeLinear", q, sy, zero(g, q.dtype))


def weights(g, sx, w, axis, n):
    """Dequantised weights, and a bias of 0, n numbers: int32 of the product of the scales, or of another scale, or floats."""
    many = w.shape[axis]
    per = (many,) if g.rng.random() < 0.5 and g.opset >= 13 else ()
    s = scale(g, per)
    zeros = g.known(np.zeros(per, w.dtype)) if w.dtype == I8 and g.rng.random() < 0.7 else zero(g, w.dtype, per)
    attributes = {"axis": axis} if per else {}
    result = [g.op("DequantizeLinear", w, s, zeros, **attributes)]
    if n and g.rng.random() < 0.6:
        style = g.rng.choice(["product", "product", "other", "floats"])
        if style == "floats":
            result.append(g.fresh(F32, (n,)))
        else:
            array = sx.array * s.array if style == "product" else np.abs(s.array) * F32.type(0.03)
            shaped = np.broadcast_to(array, (n,)).astype(F32) if per else np.asarray(array, F32)
            result.append(g.op("DequantizeLinear", g.fresh(I32, (n,), low=-900, high=900, constant=True), g.known(shaped), **({"axis": 0} if per else {})))
    return result


def not_numbers(g):
    """NaN and infinities reach a QuantizeLinear: the result stays within the type's range."""
    v = g.known(np.array(g.rng.sample([np.nan, np.inf, -np.inf, 1.0, -3.0, 1e30], 5), F32), False)
    kind = g.rng.choice(BYTES)
    s, z = scale(g), zero(g, kind)
    wide = g.op("QuantizeLinear", g.op("Where", g.op("IsNaN", v, kind="move"), g.known(F32.type(0)), v, kind="move"), s, z, kind="never")
    g.op("DequantizeLinear", wide, s, z, kind="never")


ROWS = [
    Row("QuantizeLinear DynamicQuantizeLinear", quantise, 2), Row("DequantizeLinear", dequantise, 1.5), Row("MatMulInteger QLinearMatMul", integer_product, 2.5),
    Row("ConvInteger QLinearConv", byte_conv, 2.5), Row("", lambda g, op: chain(g), 4), Row("", lambda g, op: not_numbers(g), 0.2),
]
