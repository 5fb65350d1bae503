"""Networks of pictures and rows, large enough that their tensors lie inside of others, change their layout and share memory:
Concat, Split, Slice, Pad and sums around convolutions and normalisations, with the same tensor more than once."""
import numpy as np

from evaluate import Draft, Unfit
from graph import F16, F32, FLOATS, I8, I32, I64, U8, is_float
from rows import Row, ints, maybe, trimmed

LEAST, MOST = 1024, 24000  # elements; less is copied in no time
MOVED = (F32, F16, I32, I8, U8)


def picture(g, rank=4, types=FLOATS, where=lambda v: True):
    """A large tensor that is there, or a new input."""
    found = g.pick(lambda v: v.rank == rank and LEAST // 2 <= v.size <= MOST and v.dtype in types and not v.constant and where(v)) if g.rng.random() < 0.93 else None
    for _ in range(8):
        if found is not None:
            return found
        n, c = g.rng.choice([1, 1, 1, 2]), g.rng.choice([4, 8, 8, 12, 16, 16, 24, 32, 20])
        sizes = [g.rng.choice([5, 7, 8, 9, 12, 14, 16, 20]) for _ in range(rank - 2)] if rank > 2 else []
        shape = (n, c, *sizes) if rank > 3 else (n, g.rng.choice([7, 16, 25, 49]), g.rng.choice([8, 16, 24, 40, 64])) if rank == 3 else (g.rng.choice([8, 32, 49]), g.rng.choice([16, 48, 64]))
        made = g.fresh(g.draw_type(types), shape, constant=False)
        if where(made):
            found = made
        else:
            g.forget(made)
    if found is None:
        raise Unfit("no picture")
    return found


def weights(g, dtype, shape, spread=0.25):
    return g.fresh(dtype, shape, constant=g.rng.random() < 0.95, low=-spread, high=spread)


def activation(g, v):
    choice = g.rng.random()
    if choice < 0.35:
        return g.op("Relu", v, kind="move")
    if choice < 0.45:
        return g.op("Mul", v, g.op("Sigmoid", v))
    if choice < 0.55:
        return g.op("Clip", v, g.known(v.dtype.type(0)), g.known(v.dtype.type(6)), kind="move") if g.opset >= 11 else v
    if choice < 0.6 and g.opset >= 20:
        return g.op("Gelu", v)
    return v


def conv(g, v, channels=None, k=None, stride=None, group=None):
    c = v.shape[1]
    k = k or g.rng.choice([1, 1, 3, 3, 3, 5, 7])
    group = group or g.rng.choice([1, 1, 1, 1, c, *[x for x in (2, 4) if c % x == 0]])
    out = channels or (c * g.rng.choice([1, 1, 2]) if group > 1 else g.rng.choice([4, 8, 8, 12, 16, 16, 24, 32, 17]))
    if group > 1 and out % group:
        group = 1
    stride = stride or g.rng.choice([1, 1, 1, 1, 2])
    pads = [k // 2] * 4 if g.rng.random() < 0.85 else [g.rng.randrange(0, k) for _ in range(4)]
    if any(v.shape[2 + a] + pads[a] + pads[a + 2] < k for a in (0, 1)):
        raise Unfit("larger than the picture")
    attributes = {"pads": pads} | ({"strides": [stride] * 2} if stride > 1 else {}) | ({"group": group} if group > 1 else {})
    bias = maybe(g, lambda: weights(g, v.dtype, (out,), 2), 0.6)
    return g.add(Draft("Conv", trimmed(v, weights(g, v.dtype, (out, c // group, k, k), 1 / max(1, c // group) ** 0.5), bias), attributes), "never")[0]


def conv_row(g, op):
    v = conv(g, picture(g, types=(F32, F16)))
    activation(g, v)


def deconv_row(g, op):
    v = picture(g, types=(F32, F16), where=lambda v: v.size < 6000)
    c = v.shape[1]
    g.add(Draft(op, (v, weights(g, v.dtype, (c, g.rng.choice([4, 8, 16]), 2, 2))), {"strides": [2, 2]}))


def same_but(v, axis):
    return lambda o: o.dtype == v.dtype and o.rank == v.rank and all(a == axis or o.shape[a] == v.shape[a] for a in range(v.rank))


def concat(g, op):
    v = picture(g, g.rng.choice([4, 4, 4, 3, 2]), MOVED)
    axis = g.rng.choice([1, 1, 1, *range(v.rank)])
    parts = [v]
    for _ in range(g.rng.choice([1, 1, 2, 3, 4])):
        choice = g.rng.random()
        other = g.pick(same_but(v, axis))
        if choice < 0.12:
            other = g.rng.choice(parts)
        elif other is None or choice < 0.3:
            n = g.rng.choice([0, 1, 3, 8, 16]) if choice < 0.25 else v.shape[axis]
            other = g.fresh(v.dtype, [n if a == axis else d for a, d in enumerate(v.shape)])
        parts.append(other)
    if sum(p.size for p in parts) > 2 * MOST:
        raise Unfit("large")
    g.rng.shuffle(parts)
    g.add(Draft(op, tuple(parts), {"axis": axis - (v.rank if g.rng.random() < 0.2 and g.opset >= 11 else 0)}), "move")


def dense_block(g, op):
    """Each layer reads all before it."""
    x = picture(g, types=(F32, F16), where=lambda v: v.size < 8000)
    for _ in range(g.rng.choice([2, 3])):
        y = activation(g, conv(g, x, g.rng.choice([4, 8, 12, 16]), g.rng.choice([1, 3]), 1, 1))
        if y.shape[2:] != x.shape[2:] or x.size + y.size > MOST:
            raise Unfit("another size")
        x = g.op("Concat", *g.rng.choice([(x, y), (x, y), (y, x), (x, y, y)]), kind="move", axis=1)


def split(g, op):
    v = picture(g, g.rng.choice([4, 4, 4, 3, 2]), MOVED)
    axis = g.rng.choice([a for a in [1, 1, 1, *range(v.rank)] if v.shape[a] > 1])
    n = v.shape[axis]
    if n % 2 == 0 and g.rng.random() < 0.5:
        sizes = [n // 2] * 2
    else:
        first = g.rng.randrange(0 if g.rng.random() < 0.1 else 1, n)
        sizes = [first, n - first] if n - first < 2 or g.rng.random() < 0.5 else [first, 1, n - first - 1]
    parts = g.add(Draft(op, (v, ints(g, sizes)), {"axis": axis}, len(sizes)), "move")
    for p in parts:
        if g.rng.random() < 0.4 and is_float(p.dtype):
            activation(g, p)
    if g.rng.random() < 0.3:  # and together again, in another order
        mixed = list(parts) + [g.rng.choice(parts)] * g.rng.randrange(2)
        g.rng.shuffle(mixed)
        g.op("Concat", *mixed, kind="move", axis=axis)


def slice_row(g, op):
    v = picture(g, g.rng.choice([4, 4, 3, 2]), MOVED)
    axes = g.rng.sample(range(v.rank), g.rng.choice([1, 1, 2]))
    starts, ends, steps = [], [], []
    for a in axes:
        n = v.shape[a]
        start = g.rng.choice([0, 0, 1, n // 2])
        starts.append(start), ends.append(g.rng.choice([n, n, n - 1, start + max(1, n // 2)])), steps.append(g.rng.choice([1] * 6 + [2]))
        if g.rng.random() < 0.05:
            starts[-1], ends[-1], steps[-1] = n - 1, -n - 1, -1
    if g.opset < 10:
        raise Unfit("attributes then")
    g.add(Draft(op, (v, ints(g, starts), ints(g, ends), ints(g, axes), ints(g, steps))), "move")


def pad(g, op):
    v = picture(g, g.rng.choice([4, 4, 4, 3]), MOVED)
    mode = g.rng.choice(["constant", "constant", "constant", "edge", "reflect"])
    pads = [0] * (2 * v.rank)
    for a in g.rng.choice([(2, 3), (2, 3), (1,), (0,), (v.rank - 1,)]):
        if a < v.rank:
            pads[a], pads[a + v.rank] = g.rng.choice([(1, 1), (1, 1), (0, 1), (2, 1), (3, 3), (0, 8), (-1, 1)] if mode == "constant" and v.shape[a] > 3 else [(0, 1)] if v.shape[a] > 1 else [(0, 0)])
    value = maybe(g, lambda: g.fresh(v.dtype, (), constant=True), 0.4) if mode == "constant" else None
    g.add(Draft(op, trimmed(v, ints(g, pads), value), {"mode": mode}), "move")


def residual(g, op):
    v = picture(g, g.rng.choice([4, 4, 4, 3, 2]), (F32, F16, I32))
    other = g.pick(lambda o: o.shape == v.shape and o.dtype == v.dtype, v)
    g.op(op, *((v, other) if g.rng.random() < 0.5 else (other, v)), kind="short")


def by_channel(g, op):
    v = picture(g, types=(F32, F16))
    scale = g.fresh(v.dtype, g.rng.choice([(v.shape[1], 1, 1), (1, v.shape[1], 1, 1), (1,), (), (v.shape[3],), v.shape]), low=-2, high=2)
    g.op(op, *((v, scale) if g.rng.random() < 0.8 else (scale, v)), kind="short")


def unary(g, op):
    v = picture(g, g.rng.choice([4, 4, 3, 2]), (F32, F16))
    g.op(op, v, kind="move" if op in ("Relu", "Neg", "Abs") else "never")


def norm_channels(g, op):
    v = picture(g, types=(F32, F16))
    c = v.shape[1]
    parameters = [g.fresh(v.dtype, (c,), low=-2, high=2, constant=True) for _ in "ab"]
    if op == "GroupNormalization" and g.opset < 21 or g.rng.random() < 0.3:  # as torch exports it
        groups = g.rng.choice([x for x in range(1, c + 1) if c % x == 0])
        flat = g.op("Reshape", v, ints(g, [0, groups, -1]), kind="move")
        ones, zeros = (g.known(np.full(groups, x, v.dtype)) for x in (1, 0))
        back = g.op("Reshape", g.op("InstanceNormalization", flat, ones, zeros, epsilon=1e-2), ints(g, v.shape), kind="move")
        scaled = g.op("Mul", back, g.known(parameters[0].array.reshape(c, 1, 1)))
        return activation(g, g.op("Add", scaled, g.known(parameters[1].array.reshape(c, 1, 1))))
    attributes = {"epsilon": 1e-2} | ({"num_groups": g.rng.choice([x for x in range(1, c + 1) if c % x == 0])} if op == "GroupNormalization" else {})
    activation(g, g.op(op, v, *parameters, **attributes))


def batch_norm(g, op):
    v = picture(g, types=(F32, F16))
    activation(g, g.op(op, v, *(g.fresh(v.dtype, (v.shape[1],), low=l, high=h, constant=True) for l, h in ((0.25, 2), (-2, 2), (-2, 2), (0.5, 2)))))


def rows_norm(g, v):
    """LayerNormalization of the last axis, as an operator or written out."""
    c = v.shape[-1]
    scale, bias = (g.fresh(v.dtype, (c,), low=-2, high=2, constant=True) for _ in "ab")
    if g.opset >= 17 and g.rng.random() < 0.7:
        return g.op("LayerNormalization", v, scale, bias, epsilon=1e-2, axis=-1)
    axes = {"axes": [-1]} if g.opset < 18 else {}
    mean = g.op("ReduceMean", v, *([] if axes else [ints(g, [-1])]), **axes)
    apart = g.op("Sub", v, mean)
    variance = g.op("ReduceMean", g.op("Mul", apart, apart), *([] if axes else [ints(g, [-1])]), **axes)
    root = g.op("Sqrt", g.op("Add", variance, g.known(v.dtype.type(1e-2))))
    return g.op("Add", g.op("Mul", g.op("Div", apart, root), scale), bias)


def layer_norm(g, op):
    rows_norm(g, picture(g, g.rng.choice([3, 3, 4, 2]), (F32, F16)))


def convnext(g, op):
    """Depthwise, rows of channels, two products, and back, added."""
    x = picture(g, types=(F32, F16), where=lambda v: v.size < 8000)
    y = conv(g, x, x.shape[1], g.rng.choice([3, 5, 7]), 1, x.shape[1])
    if y.shape != x.shape:
        raise Unfit("another size")
    rows = rows_norm(g, g.op("Transpose", y, kind="move", perm=[0, 2, 3, 1])) if g.rng.random() < 0.85 else g.op("Transpose", y, kind="move", perm=[0, 2, 3, 1])
    c, wide = x.shape[1], x.shape[1] * g.rng.choice([1, 2])
    hidden = g.op("Add", g.op("MatMul", rows, weights(g, x.dtype, (c, wide))), weights(g, x.dtype, (wide,), 1))
    hidden = activation(g, hidden)
    back = g.op("MatMul", hidden, weights(g, x.dtype, (wide, c)))
    if g.rng.random() < 0.5:
        back = g.op("Mul", back, weights(g, x.dtype, (c,), 1))
    back = g.op("Transpose", back, kind="move", perm=[0, 3, 1, 2])
    g.op("Add", *((x, back) if g.rng.random() < 0.7 else (back, x)))


def shuffle(g, op):
    """Channels of groups mixed, or moved into the picture, by Reshape and Transpose."""
    v = picture(g, types=MOVED)
    n, c, h, w = v.shape
    groups = g.rng.choice([x for x in range(1, c + 1) if c % x == 0])
    if g.rng.random() < 0.5:
        apart = g.op("Reshape", v, ints(g, [n, groups, c // groups, h, w]), kind="move")
        mixed = g.op("Transpose", apart, kind="move", perm=[0, 2, 1, 3, 4])
        return g.op("Reshape", mixed, ints(g, g.rng.choice([[n, -1, h, w], [0, c, h, w]])), kind="move")
    if c % 4 == 0 and g.rng.random() < 0.6:
        apart = g.op("Reshape", v, ints(g, g.rng.choice([[n, c // 4, 2, 2, h, w], [n, 2, 2, c // 4, h, w]])), kind="move")
        perm = [0, 1, 4, 2, 5, 3] if apart.shape[1] == c // 4 else [0, 3, 4, 1, 5, 2]
        return g.op("Reshape", g.op("Transpose", apart, kind="move", perm=perm), ints(g, [n, c // 4, 2 * h, 2 * w]), kind="move")
    if h % 2 or w % 2:
        raise Unfit("odd")
    apart = g.op("Reshape", v, ints(g, [n, c, h // 2, 2, w // 2, 2]), kind="move")
    perm = g.rng.choice([[0, 1, 3, 5, 2, 4], [0, 3, 5, 1, 2, 4], [0, 2, 4, 3, 5, 1]])
    moved = g.op("Transpose", apart, kind="move", perm=perm)
    g.op("Reshape", moved, ints(g, [n, 4 * c, h // 2, w // 2] if perm[1] != 2 else [-1, 4 * c]), kind="move")


def depth_to_space(g, op):
    v = picture(g, types=(F32, F16))
    if op == "SpaceToDepth":
        if v.shape[2] % 2 or v.shape[3] % 2:
            raise Unfit("odd")
        return g.op(op, v, kind="move", blocksize=2)
    if v.shape[1] % 4:
        raise Unfit("channels")
    g.op(op, v, kind="move", blocksize=2, **({"mode": g.rng.choice(["DCR", "CRD"])} if g.opset >= 11 else {}))


def turned(g, op):
    v = picture(g, g.rng.choice([4, 4, 3]), MOVED)
    g.op("Transpose", v, kind="move", perm=g.rng.choice([[0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2], [1, 0, 2, 3], g.rng.sample(range(4), 4)] if v.rank == 4 else [[0, 2, 1], [1, 0, 2]]))


def reshaped(g, op):
    """Pictures as rows and back."""
    v = picture(g, g.rng.choice([4, 4, 3]), MOVED)
    if v.rank == 4:
        n, c, h, w = v.shape
        return g.op("Reshape", v, ints(g, g.rng.choice([[n, c, -1], [n * c, -1], [n, -1, w], [n, c * h, 1, w], [n, h, w, c], [-1, 16], [1, n, c, -1]])), kind="move") if v.size % 16 == 0 else None
    n, t, d = v.shape
    side = [k for k in range(2, t) if t % k == 0]
    g.op("Reshape", v, ints(g, [n, t, d // 4, 4] if d % 4 == 0 and (not side or g.rng.random() < 0.5) else [n, g.rng.choice(side), -1, d] if side else [n * t, d]), kind="move")


def pool(g, op):
    v = picture(g, types=(F32, F16))
    k, stride = g.rng.choice([(2, 2), (3, 1), (3, 2), (3, 1)])
    pads = [1] * 4 if k == 3 and g.rng.random() < 0.8 else [0] * 4
    if min(v.shape[2:]) < k:
        raise Unfit("small")
    g.op(op, v, kind="move" if op == "MaxPool" else "never", kernel_shape=[k, k], strides=[stride] * 2, pads=pads)


def squeeze_excite(g, op):
    v = picture(g, types=(F32, F16))
    c = v.shape[1]
    s = g.op("GlobalAveragePool", v)
    s = g.op("Relu", conv(g, s, 4, 1, 1, 1), kind="move")
    s = g.op("Sigmoid", conv(g, s, c, 1, 1, 1))
    if s.shape[2:] != (1, 1):
        raise Unfit("padded")
    g.op("Mul", *((v, s) if g.rng.random() < 0.8 else (s, v)))


def product(g, op):
    v = picture(g, g.rng.choice([3, 3, 2, 4]), (F32, F16))
    if g.rng.random() < 0.15:
        other = g.pick(lambda o: o.dtype == v.dtype and o.rank == v.rank and o.shape[:-2] == v.shape[:-2] and o.shape[-2] == v.shape[-1])
        if other is None:
            raise Unfit("nothing to multiply")
        return g.op("MatMul", v, other)
    n = g.rng.choice([8, 16, 24, 32, 17])
    if v.size // v.shape[-1] * n > MOST:
        raise Unfit("large")
    r = g.op("MatMul", v, weights(g, v.dtype, (v.shape[-1], n), 1 / v.shape[-1] ** 0.5))
    if g.rng.random() < 0.6:
        r = g.op("Add", r, weights(g, v.dtype, (n,), 1))
    activation(g, r)


def attention(g, op):
    """Heads out of one product, and together again."""
    x = picture(g, 3, (F32, F16), where=lambda v: v.shape[2] % 8 == 0 and v.shape[1] < 64)
    n, t, d = x.shape
    heads = g.rng.choice([2, 4])
    qkv = g.op("MatMul", x, weights(g, x.dtype, (d, 3 * d), 1 / d**0.5))
    three = g.add(Draft("Split", (qkv, ints(g, [d] * 3)), {"axis": -1}, 3), "move")
    q, k, v = (g.op("Transpose", g.op("Reshape", a, ints(g, [n, t, heads, d // heads]), kind="move"), kind="move", perm=perm) for a, perm in zip(three, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
    scores = g.op("Softmax", g.op("Mul", g.op("MatMul", q, k), g.known(x.dtype.type(0.25))), axis=-1)
    together = g.op("Reshape", g.op("Transpose", g.op("MatMul", scores, v), kind="move", perm=[0, 2, 1, 3]), ints(g, [n, t, d]), kind="move")
    g.op("Add", x, g.op("MatMul", together, weights(g, x.dtype, (d, d), 1 / d**0.5)))


def softmax(g, op):
    v = picture(g, g.rng.choice([4, 3, 2]), (F32, F16))
    g.op(op, v, axis=g.rng.choice([-1, 1]))


def reduction(g, op):
    v = picture(g, g.rng.choice([4, 4, 3]), (F32, F16))
    axes = g.rng.choice([[1], [2, 3], [-1], [0, 2, 3]] if v.rank == 4 else [[1], [2]])
    keep = g.rng.randrange(2)
    late = g.opset >= 18
    r = g.op(op, v, *([ints(g, axes)] if late else []), keepdims=keep, **({} if late else {"axes": axes}), kind="move" if op == "ReduceMax" else "never")
    if keep and g.rng.random() < 0.5:
        g.op(g.rng.choice(["Sub", "Mul", "Add"]), v, r)


def resize(g, op):
    v = picture(g, types=(F32, F16), where=lambda v: v.size < 6000)
    if g.opset < 11:
        raise Unfit("then otherwise")
    g.add(Draft(op, (v, g.known(np.zeros(0, F32)), g.known(np.array([1, 1, 2, 2], F32))), {"mode": g.rng.choice(["nearest", "nearest", "linear"]), "coordinate_transformation_mode": g.rng.choice(["asymmetric", "half_pixel"])}))


def quantised(g, op):
    """Bytes and back, exact or by one step."""
    v = picture(g, types=(F32,))
    scale, zero = g.known(F32.type(g.rng.choice([0.25, 0.125]))), g.known(g.rng.choice([np.uint8(128), np.int8(0), np.uint8(0)]))
    q = g.op("QuantizeLinear", v, scale, zero, kind="decides")
    g.op("DequantizeLinear", q, scale, zero, kind="move")


def narrow(g, op):
    v = picture(g, g.rng.choice([4, 3]), (F32, F16))
    g.op("Cast", v, to=1 if v.dtype == F16 else 10, kind="never" if v.dtype == F32 else "move")


ROWS = [
    Row("Conv", conv_row, 9), Row("Concat", concat, 8), Row("", dense_block, 3), Row("Split", split, 5), Row("Slice", slice_row, 4), Row("Pad", pad, 4), Row("Add Add Sub Mul Max", residual, 5),
    Row("Add Mul Div", by_channel, 3), Row("Relu Sigmoid Neg Tanh Abs", unary, 3), Row("InstanceNormalization GroupNormalization", norm_channels, 4), Row("BatchNormalization", batch_norm, 2),
    Row("LayerNormalization", layer_norm, 2.5), Row("", convnext, 3), Row("", shuffle, 4), Row("DepthToSpace SpaceToDepth", depth_to_space, 2), Row("Transpose", turned, 3), Row("Reshape", reshaped, 3),
    Row("MaxPool AveragePool", pool, 3), Row("", squeeze_excite, 1.5), Row("MatMul", product, 3), Row("", attention, 1.5), Row("Softmax", softmax, 1), Row("ReduceMean ReduceMax ReduceSum", reduction, 2), Row("Resize", resize, 1.5),
    Row("QuantizeLinear", quantised, 1), Row("Cast", narrow, 0.7), Row("ConvTranspose", deconv_row, 1.5),
]
