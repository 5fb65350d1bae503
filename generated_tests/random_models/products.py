"""Matrix products, convolutions, pooling, recurrent cells, attention, and what samples pictures."""
import numpy as np

from evaluate import Draft, Unfit
from graph import F16, F32, F64, BF16, FLOATS, I8, I32, I64, U8
from rows import Row, attributes_of, axis_of, ints, maybe, pick_axes, trimmed

SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33]
MULTIPLIED = (F32, F32, F16, F64, BF16)


def matmul(g, op):
    v = g.operand(MULTIPLIED, where=lambda v: v.rank > 0 and v.size > 0)
    k, n = v.shape[-1], g.rng.choice(SIZES)
    other = g.pick(lambda o: o.dtype == v.dtype and o.rank > 1 and o.shape[-2] == k and o.size)
    if other is None or g.rng.random() < 0.5:
        other = g.fresh(v.dtype, g.rng.choice([(k, n), (k, n), (k,), (*v.shape[:-2], k, n), (3, *[1] * max(0, v.rank - 3), k, n)]), constant=g.rng.random() < 0.7)
    if v.size // k * other.size // k > 6000:
        raise Unfit("large")
    g.add(Draft(op, (v, other)), "short")


def gemm(g, op):
    m, k, n = (g.rng.choice(SIZES) for _ in range(3))
    dtype = g.draw_type((F32, F16, F64))
    ta, tb = g.rng.randrange(2), g.rng.randrange(2)
    found = g.pick(lambda o: o.dtype == dtype and o.rank == 2 and o.size)
    a = found if found is not None else g.fresh(dtype, (k, m) if ta else (m, k))
    m, k = a.shape[::-1] if ta else a.shape
    b = g.fresh(dtype, (n, k) if tb else (k, n), constant=g.rng.random() < 0.75)
    c = maybe(g, lambda: g.fresh(dtype, g.rng.choice([(n,), (m, n), (1, n), (m, 1), (), (1,)]) if g.opset >= 7 else (m, n), constant=g.rng.random() < 0.8), 0.8 if g.opset >= 11 else 1)
    attributes = attributes_of(g, {"alpha": [0.5, 1.0, 2.0, 0.25], "beta": [0.5, 1.0, 0.0, 2.0]}) | {"transA": ta, "transB": tb}
    if g.opset < 7 and g.rng.random() < 0.5:
        c = g.fresh(dtype, (n,))
        attributes["broadcast"] = 1
    today = {name: value for name, value in attributes.items() if name != "broadcast"}
    g.add(Draft(op, trimmed(a, b, c), attributes), "short", meaning=Draft(op, trimmed(a, b, c), today))


def einsum(g, op):
    b, i, j, k = (g.rng.choice([1, 2, 3, 5, 8]) for _ in range(4))
    size = dict(b=b, i=i, j=j, k=k)
    equation = g.rng.choice(["ij,jk->ik", "bij,bjk->bik", "bij,bkj->bik", "ij->ji", "bij->b", "ij,ij->i", "ii->i", "ij,k->ijk", "...ij,...jk->...ik", "bij,bij->", "ij,jk"])
    sides = equation.split("->")[0].split(",")
    if "ii" in equation:
        size["i"] = i
    operands = tuple(g.operand((F32, F64), shape=[size[c] for c in s.replace("...", "b")]) for s in sides)
    g.add(Draft(op, operands, {"equation": equation}), "short")


def picture(g, types=(F32, F32, F16, F64), rank=None):
    return g.operand(types, where=lambda v: v.rank == (rank or v.rank) and 3 <= v.rank <= 5 and v.size > 0, rank=rank or g.rng.choice([3, 4, 4, 4, 4, 5]))


def window(g, v, largest=3, dilate=True):
    """(kernel, attributes): a window that fits into the picture v."""
    n = v.rank - 2
    kernel = [g.rng.randrange(1, largest + 1) for _ in range(n)] if g.rng.random() < 0.3 else [g.rng.choice([1, 2, 3, 3, largest])] * n
    attributes = {}
    if g.rng.random() < 0.5:
        attributes["strides"] = [g.rng.choice([1, 2, 2, 3]) for _ in range(n)]
    if dilate and g.rng.random() < 0.2:
        attributes["dilations"] = [g.rng.choice([1, 2]) for _ in range(n)]
    if g.rng.random() < 0.6:
        attributes["pads"] = [g.rng.randrange(0, kernel[a % n]) for a in range(2 * n)] if g.rng.random() < 0.4 else [(k - 1) // 2 for k in kernel] * 2
    elif g.rng.random() < 0.25 and "dilations" not in attributes:
        attributes["auto_pad"] = g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    pads = attributes.get("pads", [0] * 2 * n)
    if any(d + p + q < (k - 1) * s + 1 for d, p, q, k, s in zip(v.shape[2:], pads, pads[n:], kernel, attributes.get("dilations", [1] * n))):
        raise Unfit("larger than the picture")
    return kernel, attributes


def conv(g, op):
    v = picture(g)
    kernel, attributes = window(g, v)
    c = v.shape[1]
    group = g.rng.choice([1, 1, 1, c, *[k for k in (2, 3) if c % k == 0]])
    out = group * g.rng.choice([1, 1, 2, 3] if group > 1 else [1, 2, 3, 5, 8, 16, 17])
    w = g.fresh(v.dtype, (out, c // group, *kernel), constant=g.rng.random() < 0.85)
    bias = maybe(g, lambda: g.fresh(v.dtype, (out,)), 0.6)
    if group > 1:
        attributes["group"] = group
    if g.rng.random() < 0.5:
        attributes["kernel_shape"] = kernel
    g.add(Draft(op, trimmed(v, w, bias), attributes), "never")


def deconv(g, op):
    v = picture(g, (F32, F32, F16))
    n, c = v.rank - 2, v.shape[1]
    group = g.rng.choice([1, 1, 1, *[k for k in (2, c) if c % k == 0]])
    kernel = [g.rng.choice([1, 2, 2, 3, 4])] * n if g.rng.random() < 0.7 else [g.rng.randrange(1, 5) for _ in range(n)]
    strides = [g.rng.choice([1, 2, 2, 3])] * n if g.rng.random() < 0.7 else [g.rng.choice([1, 2, 3]) for _ in range(n)]
    attributes = {"strides": strides} | ({"group": group} if group > 1 else {})
    if g.rng.random() < 0.3:
        attributes["dilations"] = [g.rng.choice([1, 2]) for _ in range(n)]
    if g.rng.random() < 0.4:
        attributes["pads"] = [g.rng.randrange(0, k) for k in kernel] * 2
    if g.rng.random() < 0.35:
        attributes["output_padding"] = [g.rng.randrange(0, max(s, d)) for s, d in zip(strides, attributes.get("dilations", [1] * n))]
    w = g.fresh(v.dtype, (c, g.rng.choice([1, 2, 3, 8, 16]), *kernel), constant=g.rng.random() < 0.85)
    bias = maybe(g, lambda: g.fresh(v.dtype, (w.shape[1] * group,)), 0.5)
    g.add(Draft(op, trimmed(v, w, bias), attributes), "never")


def pool(g, op):
    whole = op == "MaxPool" and g.opset >= 12
    v = picture(g, (F32, F16, F64, I8, U8) if whole else (F32, F16))
    kernel, attributes = window(g, v, dilate=op == "MaxPool" and g.opset >= 10 or op == "AveragePool" and g.opset >= 19)
    attributes["kernel_shape"] = kernel
    if g.opset >= 10 and "auto_pad" not in attributes and g.rng.random() < 0.3 and op != "LpPool":
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and g.opset >= 7:
        attributes |= attributes_of(g, {"count_include_pad": [0, 1]})
    if op == "LpPool":
        attributes |= attributes_of(g, {"p": [1, 2, 3]})
    outputs = 2 if op == "MaxPool" and g.opset >= 8 and v.exact and g.rng.random() < 0.25 else 1
    g.add(Draft(op, (v,), attributes, outputs), "move" if op == "MaxPool" else "never")


def global_pool(g, op):
    v = picture(g, (F32, F16))
    g.add(Draft(op, (v,), {"p": g.rng.choice([1, 2, 3])} if op == "GlobalLpPool" else {}), "move" if op == "GlobalMaxPool" else "never")


def resize(g, op):
    v = g.operand((F32, F32, F16, U8), where=lambda v: v.rank in (3, 4) and v.size > 0, rank=g.rng.choice([3, 4, 4, 4]))
    if op == "Upsample":
        if g.opset > 9:
            raise Unfit("gone")
        scales = [1.0, 1.0, *(g.rng.choice([1.0, 2.0, 3.0]) for _ in v.shape[2:])]
        return g.add(Draft(op, (v, g.known(np.array(scales, F32))), {"mode": g.rng.choice(["nearest", "linear"])}))
    mode = g.rng.choice(["nearest", "linear", "cubic"])
    scales = [1.0, 1.0, *(g.rng.choice([1.0, 2.0, 3.0, 0.5, 0.6, 1.7, 2.5, 0.3]) for _ in v.shape[2:])]
    if g.opset < 11:
        if mode == "cubic" or min(scales) < 1:
            raise Unfit("not then")
        return g.add(Draft(op, (v, g.known(np.array(scales, F32))), {"mode": mode}))
    spec = {"coordinate_transformation_mode": ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]}
    if mode == "nearest":
        spec["nearest_mode"] = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
    if mode == "cubic":
        spec |= {"cubic_coeff_a": [-0.75, -0.5], "exclude_outside": [0, 1]}
    if g.opset >= 18 and mode != "nearest":
        spec["antialias"] = [0, 0, 1]
    attributes = {"mode": mode} | attributes_of(g, spec)
    if g.rng.random() < 0.5:
        return g.add(Draft(op, (v, g.known(np.zeros(0, F32)) if g.opset < 13 else None, g.known(np.array(scales, F32))), attributes))
    sizes = [*v.shape[:2], *(g.rng.choice([0] if g.rng.random() < 0.03 else [1, 2, 3, 5, 8, 11]) for _ in v.shape[2:])]
    empty = g.known(np.zeros(0, F32)) if g.opset < 13 else None
    g.add(Draft(op, (v, empty, empty, ints(g, sizes)), attributes))


def grid_sample(g, op):
    v = g.fresh(F32, (2, g.rng.choice([1, 3, 8]), g.rng.choice([3, 5]), g.rng.choice([4, 7])))
    grid = g.known(g.draw_array(F32, (2, 3, 5, 2), style="normal") * F32.type(0.6), False)
    names = ["bilinear", "bicubic"] if g.opset < 20 else ["linear", "cubic"]
    g.add(Draft(op, (v, grid), attributes_of(g, {"mode": names, "padding_mode": ["zeros", "border", "reflection"], "align_corners": [0, 1]})))


def affine_grid(g, op):
    size = g.rng.choice([(2, 3, 4, 5), (1, 1, 2, 3, 4)])
    n = len(size) - 2
    g.add(Draft(op, (g.fresh(F32, (size[0], n, n + 1)), ints(g, size)), attributes_of(g, {"align_corners": [0, 1]})))


def rois(g, op):
    v = g.fresh(F32, (2, g.rng.choice([1, 3]), 9, 8))
    corner = np.round(g.draw_array(F32, (3, 2), low=0, high=4))
    boxes = np.concatenate([corner, corner + np.round(g.draw_array(F32, (3, 2), low=1, high=4))], -1).astype(F32)
    if op == "MaxRoiPool":
        return g.add(Draft(op, (v, g.known(np.concatenate([g.draw_array(F32, (3, 1), low=0, high=1).round(), boxes], -1).astype(F32))), {"pooled_shape": [2, 3]}))
    attributes = {"output_height": 2, "output_width": 3, "sampling_ratio": 2} | attributes_of(g, {"mode": ["avg", "max"] if g.opset >= 20 else ["avg"]})
    if g.opset >= 16:
        attributes["coordinate_transformation_mode"] = g.rng.choice(["half_pixel", "output_half_pixel"])
    g.add(Draft(op, (v, g.known(boxes), g.fresh(I64, (3,), low=0, high=1)), attributes))


def col2im(g, op):
    k, size = g.rng.choice([(2, 2), (3, 2)]), (5, 4)
    places = (size[0] - k[0] + 1) * (size[1] - k[1] + 1)
    g.add(Draft(op, (g.fresh(F32, (2, 3 * k[0] * k[1], places)), ints(g, size), ints(g, k))), "short")


def unpool(g, op):
    v = g.fresh(F32, (2, 3, 6, 4), style="normal")
    y, where = g.op("MaxPool", v, kind="move", outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    g.add(Draft(op, (y, where), {"kernel_shape": [2, 2], "strides": [2, 2]}), "move")


def deform(g, op):
    v = g.fresh(F32, (2, 2, 5, 6))
    w = g.fresh(F32, (3, 2, 2, 2))
    offset = g.known(g.draw_array(F32, (2, 8, 4, 5), style="normal"), False)
    g.add(Draft(op, trimmed(v, w, offset, maybe(g, lambda: g.fresh(F32, (3,)))), {"kernel_shape": [2, 2]}))


def recurrent(g, op):
    s, b, i, h = g.rng.choice([1, 3, 5]), g.rng.choice([1, 2, 3]), g.rng.choice([1, 4, 5]), g.rng.choice([1, 3, 8])
    direction = g.rng.choice(["forward", "reverse", "bidirectional"])
    d, gates = 1 + (direction == "bidirectional"), {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    small = dict(low=-0.75, high=0.75)
    x = g.operand((F32,), shape=(s, b, i), low=-5, high=5)
    operands = [x, g.fresh(F32, (d, gates * h, i), constant=True, **small), g.fresh(F32, (d, gates * h, h), constant=True, **small),
                maybe(g, lambda: g.fresh(F32, (d, 2 * gates * h), **small)), maybe(g, lambda: g.fresh(I32, (b,), low=1, high=s), 0.25),
                maybe(g, lambda: g.fresh(F32, (d, b, h), **small))]
    attributes = {"hidden_size": h, "direction": direction}
    if op == "LSTM":
        operands += [maybe(g, lambda: g.fresh(F32, (d, b, h), **small)), maybe(g, lambda: g.fresh(F32, (d, 3 * h), **small), 0.3)]
    if op == "GRU":
        attributes |= attributes_of(g, {"linear_before_reset": [0, 1]})
    if g.rng.random() < 0.2:
        attributes["clip"] = g.rng.choice([0.5, 3.0])
    g.add(Draft(op, trimmed(*operands), attributes, g.rng.randrange(1, 4 if op == "LSTM" else 3)))


def attention(g, op):
    heads, kv = g.rng.choice([(1, 1), (2, 2), (4, 2)])
    b, s, t, w = g.rng.choice([1, 2, 3]), g.rng.choice([1, 5, 9]), g.rng.choice([1, 5, 9, 17]), g.rng.choice([2, 4, 8])
    dtype = g.draw_type((F32, F16))
    q, k, v = (g.fresh(dtype, (b, n, rows, w), constant=False, style="normal") for n, rows in ((heads, s), (kv, t), (kv, t)))
    mask = maybe(g, lambda: g.fresh(g.rng.choice([dtype, np.dtype(bool)]), g.rng.choice([(s, t), (b, 1, s, t)]), style="fractions"), 0.4)
    if mask is not None and mask.dtype == bool:
        mask.array[..., 0] = True
    g.add(Draft(op, trimmed(q, k, v, mask), attributes_of(g, {"is_causal": [0, 1], "scale": [0.3, 1.0], "softcap": [0.0, 2.0]})))


def rotary(g, op):
    heads, s, w = g.rng.choice([1, 2]), g.rng.choice([1, 3]), g.rng.choice([4, 8])
    x = g.fresh(F32, (2, heads, s, w))
    g.add(Draft(op, (x, *(g.fresh(F32, (6, w // 2), low=-1, high=1) for _ in "ab"), g.fresh(I64, (2, s), low=0, high=5)), attributes_of(g, {"interleaved": [0, 1]})))


def dft(g, op):
    n = g.rng.choice([3, 4, 5, 8])
    if op == "STFT":
        return g.add(Draft(op, (g.fresh(F32, (2, 20, 1), style="normal"), g.known(np.asarray(4, I64)), g.fresh(F32, (8,), low=0, high=1), g.known(np.asarray(8, I64))), attributes_of(g, {"onesided": [0, 1]})))
    v = g.fresh(F32, (2, n, 3, g.rng.choice([1, 2])), style="normal")
    if g.opset < 20:
        return g.add(Draft(op, (v,), {"axis": 1} | ({"inverse": 1} if g.rng.random() < 0.3 else {})))
    g.add(Draft(op, (v, None, g.known(np.asarray(1, I64))), attributes_of(g, {"inverse": [0, 1]})))


def windows(g, op):
    if op == "MelWeightMatrix":
        return g.add(Draft(op, tuple(g.known(np.asarray(x, d)) for x, d in ((8, I64), (16, I64), (8192, I64), (0, F32), (4096, F32)))))
    g.add(Draft(op, (g.known(np.asarray(g.rng.choice([1, 5, 8]), I64)),), attributes_of(g, {"periodic": [0, 1]})))


ROWS = [
    Row("MatMul", matmul, 5), Row("Gemm", gemm, 2.5), Row("Einsum", einsum, 0.8), Row("Conv", conv, 5), Row("ConvTranspose", deconv, 2.5), Row("MaxPool AveragePool LpPool", pool, 3),
    Row("GlobalAveragePool GlobalMaxPool GlobalLpPool", global_pool, 0.8), Row("Resize Upsample", resize, 2.5), Row("GridSample", grid_sample, 0.5), Row("AffineGrid", affine_grid, 0.2),
    Row("MaxRoiPool RoiAlign", rois, 0.4), Row("Col2Im", col2im, 0.2), Row("MaxUnpool", unpool, 0.2), Row("DeformConv", deform, 0.2), Row("RNN GRU LSTM", recurrent, 1.2),
    Row("Attention", attention, 0.7), Row("RotaryEmbedding", rotary, 0.3), Row("DFT STFT", dft, 0.4), Row("HannWindow HammingWindow BlackmanWindow MelWeightMatrix", windows, 0.3),
]
