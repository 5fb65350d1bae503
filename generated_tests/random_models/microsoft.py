"""Operators of com.microsoft that ONNX Runtime runs on processors."""
import numpy as np

from evaluate import Draft, Unfit
from graph import F16, F32, I8, I32, I64, U8, BOOL
from quantised import BYTES, byte_array, bytes_of, scale, zero
from rows import Row, attributes_of, axis_of, ints, maybe, partner, pick_axes, trimmed

MS = "com.microsoft"


def ms(g, op, *operands, kind="never", outputs=1, **attributes):
    return g.op(op, *trimmed(*operands), kind=kind, outputs=outputs, domain=MS, **attributes)


def activations(g, op):
    v = g.operand((F32,), where=lambda v: v.rank > 0 and v.size > 0)
    if op == "QuickGelu":
        return ms(g, op, v, **attributes_of(g, {"alpha": [1.702, 1.0, -0.5]}))
    bias = g.fresh(F32, v.shape[-1:]) if op == "BiasGelu" or op == "FastGelu" and g.rng.random() < 0.5 else None
    ms(g, op, v, bias)


def fused_product(g, op):
    ta, tb = g.rng.randrange(2), g.rng.randrange(2)
    m, k, n = (g.rng.choice([1, 2, 3, 5, 8, 17]) for _ in range(3))
    a, b = g.fresh(F32, (2, k, m) if ta else (2, m, k)) if op == "FusedMatMul" else g.fresh(F32, (k, m) if ta else (m, k)), g.fresh(F32, (n, k) if tb else (k, n))
    if op == "FusedMatMul":
        return ms(g, op, a, b, transA=ta, transB=tb, alpha=g.rng.choice([1.0, 0.5]))
    c = maybe(g, lambda: g.fresh(F32, g.rng.choice([(n,), (m, n), ()])))
    name = g.rng.choice(["Relu", "LeakyRelu", "Tanh", "Sigmoid"])
    ms(g, op, a, b, c, activation=name, transA=ta, transB=tb, **({"activation_alpha": 0.1} if name == "LeakyRelu" else {}), **attributes_of(g, {"alpha": [0.5, 1.0], "beta": [2.0, 1.0]}))


def fused_conv(g, op):
    x = g.fresh(F32, (g.rng.choice([1, 2]), g.rng.choice([1, 3, 4]), 6, 7))
    c = g.rng.choice([1, 3, 8])
    name = g.rng.choice(["Relu", "LeakyRelu", "Tanh", "Sigmoid", "Clip", "HardSigmoid"])
    parameters = {"LeakyRelu": [0.1], "Clip": [0.0, 2.0], "HardSigmoid": [0.2, 0.5]}.get(name)
    attributes = {"pads": [1, 1, 1, 1], "activation": name} | ({"activation_params": parameters} if parameters else {})
    ms(g, op, x, g.fresh(F32, (c, x.shape[1], 3, 3)), g.fresh(F32, (c,)), **attributes)


def skip_norm(g, op):
    n = g.rng.choice([4, 7, 16, 33])
    x, skip = g.operand((F32,), shape=(2, 3, n)), g.fresh(F32, (2, 3, n))
    gamma, beta, bias = g.fresh(F32, (n,)), maybe(g, lambda: g.fresh(F32, (n,))), maybe(g, lambda: g.fresh(F32, (n,)))
    operands = (x, skip, gamma, beta, bias) if op == "SkipLayerNormalization" else (x, skip, gamma, bias)
    ms(g, op, *operands, epsilon=g.rng.choice([1e-5, 1e-12, 1e-2]))


def self_attention(g, op):
    b, s, heads, w = g.rng.choice([1, 2]), g.rng.choice([1, 3, 5]), g.rng.choice([1, 2]), g.rng.choice([2, 4])
    h = heads * w
    attributes = {"num_heads": heads} | attributes_of(g, {"unidirectional": [0, 1]})
    if op == "QAttention":
        x = byte_array(g, U8, (b, s, h), narrow=False, constant=False)
        return ms(g, op, x, byte_array(g, I8, (h, 3 * h), constant=True), g.fresh(F32, (3 * h,)), g.known(F32.type(0.02)), g.known(F32.type(0.02)), None, g.known(U8.type(120)), g.known(I8.type(0)), **attributes)
    if op == "MultiHeadAttention":
        return streams(g, op, (b, s, heads, w))
    past = maybe(g, lambda: g.fresh(F32, (2, b, heads, 3, w), style="normal"), 0.3)
    keys = s + (3 if past is not None else 0)
    mask = maybe(g, lambda: key_mask(g, b, s, keys, ("rows", "squares", "ends", "places")), 0.6)
    bias = maybe(g, lambda: g.fresh(F32, (g.rng.choice([1, b]), heads, s, keys))) if past is None else None
    ms(g, op, g.fresh(F32, (b, s, h)), g.fresh(F32, (h, 3 * h)), g.fresh(F32, (3 * h,)), mask, past, bias, outputs=1 if past is None else 2,
       **attributes, **attributes_of(g, {"mask_filter_value": [-10000.0, -1e9]}))


def streams(g, op, sizes):
    """MultiHeadAttention; with more keys than queries ONNX Runtime lets the last query see all of them."""
    b, s, heads, w = sizes
    keys, past = g.rng.choice([s, 4]), maybe(g, lambda: g.fresh(F32, (b, heads, 2, w), style="normal"), 0.3)
    q, k, v = (g.fresh(F32, (b, n, heads * w)) for n in (s, keys, keys))
    all_keys = keys + (2 if past is not None else 0)
    mask = maybe(g, lambda: key_mask(g, b, s, all_keys, ("rows", "squares", "ends")))
    scores = maybe(g, lambda: g.fresh(F32, (g.rng.choice([1, b]), g.rng.choice([1, heads]), s, all_keys)))
    causal = attributes_of(g, {"unidirectional": [0, 1]}) if keys <= s or s == 1 else {}
    ms(g, op, q, k, v, maybe(g, lambda: g.fresh(F32, (3 * heads * w,))), mask, scores, past, past and g.fresh(F32, past.shape, style="normal"),
       outputs=1 if past is None else 3, num_heads=heads, **causal, **attributes_of(g, {"scale": [0.3]}))


def key_mask(g, b, s, keys, forms):
    """Which keys there are: in rows, for each query, as many of each batch, or from one place to another; each query sees one."""
    form, rng = g.rng.choice(forms), np.random.default_rng(g.rng.randrange(1 << 30))
    ends = rng.integers(1, keys + 1, b)
    if form in ("ends", "places"):
        begins = rng.integers(0, ends)
        return g.known(np.concatenate([ends, begins] if form == "places" else [ends]).astype(I32), False)
    mask = rng.integers(0, 2, (b, keys) if form == "rows" else (b, s, keys))
    mask[..., 0] = 1
    return g.known(mask.astype(I32), False)


def grouped(g, op):
    heads, kv, size, s, past = 4, 2, 16, g.rng.choice([1, 3]), g.rng.choice([0, 5])
    if past:
        s = 1
    total = past + s
    attributes = {"num_heads": heads, "kv_num_heads": kv} | attributes_of(g, {"softcap": [0.0, 2.0], "local_window_size": [-1, 2]})
    q, k, v = (g.fresh(F32, (1, s, n * size), constant=False, style="normal") for n in (heads, kv, kv))
    pk, pv = (g.fresh(F32, (1, kv, past, size), constant=False, style="normal") for _ in "kv")
    ms(g, op, q, k, v, pk, pv, g.known(np.array([total - 1], I32), False), g.known(np.asarray(total, I32)), outputs=3, **attributes)


def blocks(g, op):
    r = np.random.default_rng(g.rng.randrange(1 << 30))
    bits, block = g.rng.choice([4, 4, 8]), g.rng.choice([16, 32])
    if op == "GatherBlockQuantized":
        table = g.known(r.integers(0, 256, (9, 32 * bits // 8)).astype(U8))
        return ms(g, op, table, g.fresh(I64, (2, 3), low=0, high=8), g.known((r.random((9, 32 // block)) * 0.1).astype(F32)), maybe(g, lambda: g.known(r.integers(0, 256, (9, -(-32 // block * bits // 8))).astype(U8))) if bits == 4 else None,
                  gather_axis=0, quantize_axis=1, block_size=block, bits=bits)
    n, k = g.rng.choice([1, 5, 16, 17]), g.rng.choice([16, 20, 33, 50])
    if op == "MatMulBnb4":
        return ms(g, op, g.fresh(F32, (2, g.rng.choice([1, 3]), k), style="normal"), g.known(r.integers(0, 256, -(-n * k // 2)).astype(U8)),
                  g.known((r.random(-(-n * k // block)) + 0.01).astype(F32)), K=k, N=n, block_size=block, quant_type=g.rng.randrange(2))
    count = -(-k // block)
    zeros = maybe(g, lambda: g.known(r.integers(0, 256, n * -(-count * bits // 8)).astype(U8)))
    ms(g, op, g.fresh(F32, (2, g.rng.choice([1, 3]), k), style="normal"), g.known(r.integers(0, 256, (n, count, block * bits // 8)).astype(U8)),
       g.known((r.random(n * count) * 0.1 + 0.01).astype(F32)), zeros, K=k, N=n, bits=bits, block_size=block)


def quantised_pair(g, op):
    kind = g.rng.choice(BYTES)
    shape = g.rng.choice([(3, 5), (2, 3, 7), (1, 17)])
    a, b = bytes_of(g, kind, shape), bytes_of(g, kind, g.rng.choice([shape, shape[-1:], (1,) * len(shape)]))
    ms(g, op, a, scale(g), zero(g, kind), b, scale(g), zero(g, kind), g.known(F32.type(0.25)), zero(g, kind))


def quantised_single(g, op):
    kind = g.rng.choice(BYTES)
    last = (g.known(F32.type(0.02)), zero(g, kind))
    if "Pool" in op:
        x = bytes_of(g, kind, (2, 3, 5, 6))
        last_channels = g.rng.randrange(2)
        attributes = {"channels_last": last_channels}
        if op == "QLinearAveragePool":
            attributes |= {"kernel_shape": [2, 3], "strides": [g.rng.choice([1, 2])] * 2} | attributes_of(g, {"count_include_pad": [0, 1], "pads": [[0, 1, 1, 0]]})
        return ms(g, op, x, scale(g), zero(g, kind), *last, **attributes)
    x = bytes_of(g, kind, g.rng.choice([(3, 5), (2, 3, 7)]))
    attributes = {"alpha": 0.1} if op == "QLinearLeakyRelu" else {"axis": -1, "opset": 13} if op == "QLinearSoftmax" else {}
    last = (g.known(F32.type(1 / 256)), g.known(kind.type(0 if kind == U8 else -128))) if op != "QLinearLeakyRelu" else last
    ms(g, op, x, scale(g), zero(g, kind), *last, **attributes)


def quantised_more(g, op):
    a, b = g.rng.choice(BYTES), g.rng.choice(BYTES)
    m, k, n = g.rng.choice([1, 3, 5]), g.rng.choice([1, 3, 4, 5, 6, 17]), g.rng.choice([1, 3, 8, 17])
    if op == "QLinearConcat":
        parts = [(bytes_of(g, a, (2, w)), scale(g), zero(g, a)) for w in (3, 5)]
        return ms(g, op, g.known(F32.type(0.05)), zero(g, a), *[v for p in parts for v in p], axis=1)
    if op == "QLinearWhere":
        return ms(g, op, g.fresh(BOOL, (3, 5)), bytes_of(g, a, (3, 5)), scale(g), zero(g, a), bytes_of(g, a, (3, 5)), scale(g), zero(g, a), g.known(F32.type(0.05)), zero(g, a))
    w = byte_array(g, b, (k, n), constant=True)
    if op == "DynamicQuantizeMatMul":
        return ms(g, op, g.fresh(F32, (m, k), style="fractions"), w, scale(g), maybe(g, lambda: zero(g, b)), maybe(g, lambda: g.fresh(F32, (n,))))
    x = bytes_of(g, a, (m, k))
    if op == "MatMulIntegerToFloat":
        per = g.rng.choice([(), (n,)])
        return ms(g, op, x, w, scale(g), scale(g, per), maybe(g, lambda: zero(g, a), 0.7), maybe(g, lambda: zero(g, b, per), 0.7), maybe(g, lambda: g.fresh(F32, (n,))))
    ms(g, op, x, scale(g), zero(g, a), w, scale(g), zero(g, b), maybe(g, lambda: g.fresh(I32, (n,), low=-900, high=900)), g.known(F32.type(0.5)), zero(g, a))


def channels_last(g, op):
    x = bytes_of(g, U8, (2, 7, 6, 4))
    if op == "NhwcMaxPool":
        return ms(g, op, x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], kind="move")
    ms(g, op, x, scale(g), zero(g, U8), byte_array(g, I8, (6, 4, 3, 3), constant=True), scale(g), g.known(I8.type(0)), g.known(F32.type(0.5)), zero(g, U8), kernel_shape=[3, 3], pads=[1, 1, 1, 1], channels_last=1)


def old_forms(g, op):
    v = g.operand((F32,), rank=2, where=lambda v: v.size > 0)
    if op == "Trilu":
        return ms(g, op, v, upper=g.rng.randrange(2), kind="move")
    if op == "ExpandDims":
        return ms(g, op, v, g.known(np.asarray(g.rng.choice([0, 1, 2, -1]), I32)), kind="move")
    if op == "Pad":
        return ms(g, op, v, ints(g, [1, 0, 0, 2]), kind="move")
    if op == "GatherND":
        return ms(g, op, v, g.known(np.array([[v.shape[0] - 1], [0]], I64)), kind="move")
    if op == "CDist":
        return ms(g, op, g.fresh(F32, (3, 5), style="normal"), g.fresh(F32, (4, 5), style="normal"), metric=g.rng.choice(["sqeuclidean", "euclidean"]))
    if op == "GridSample":
        return ms(g, op, g.fresh(F32, (2, 2, 4, 5)), g.known(g.draw_array(F32, (2, 3, 3, 2), style="normal") * F32.type(0.6), False))
    if op == "RotaryEmbedding":
        return ms(g, op, g.fresh(F32, (2, 2, 3, 8)), g.fresh(I64, (2, 3), low=0, high=5), *(g.fresh(F32, (6, 4), low=-1, high=1) for _ in "cs"), **attributes_of(g, {"interleaved": [0, 1]}))
    ms(g, op, g.fresh(I32, (2, 3), low=0, high=5), g.fresh(I32, (2, 3), low=0, high=1), g.fresh(F32, (6, 8)), g.fresh(F32, (4, 8)), g.fresh(F32, (2, 8)), g.fresh(F32, (8,)), g.fresh(F32, (8,)), outputs=2, epsilon=0.01)


ROWS = [
    Row("Gelu BiasGelu FastGelu QuickGelu", activations, 0.8, MS), Row("FusedMatMul FusedGemm", fused_product, 0.6, MS), Row("FusedConv", fused_conv, 0.4, MS),
    Row("SkipLayerNormalization SkipSimplifiedLayerNormalization", skip_norm, 0.6, MS), Row("Attention MultiHeadAttention QAttention", self_attention, 0.7, MS), Row("GroupQueryAttention", grouped, 0.3, MS),
    Row("MatMulNBits GatherBlockQuantized MatMulBnb4", blocks, 0.6, MS), Row("QLinearAdd QLinearMul", quantised_pair, 0.8, MS),
    Row("QLinearLeakyRelu QLinearSigmoid QLinearAveragePool QLinearGlobalAveragePool QLinearSoftmax", quantised_single, 0.8, MS),
    Row("QLinearConcat QLinearWhere QGemm MatMulIntegerToFloat DynamicQuantizeMatMul", quantised_more, 1.4, MS), Row("NhwcMaxPool QLinearConv", channels_last, 0.3, MS),
    Row("Trilu ExpandDims Pad GatherND CDist GridSample RotaryEmbedding EmbedLayerNormalization", old_forms, 0.6, MS),
]
