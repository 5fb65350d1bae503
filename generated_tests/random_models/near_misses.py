"""Idioms that rewriting rules look for, most of them with one thing out of place: a constant, an axis, a rank, a type, a sign."""
import numpy as np

from evaluate import Draft, Unfit
from graph import F16, F32, F64, BF16, FLOATS, I64
from rows import Row, attributes_of, ints, maybe

CHANCE = 0.25  # that one thing is out of place


def number(g, v, value):
    """A constant of an idiom: sometimes a little off, sometimes of a shape that raises the rank, sometimes an input."""
    chance = g.rng.random()
    if chance < CHANCE / 2:
        value = value * g.rng.choice([1 + 8e-5, 1 - 2e-4, 1.01, -1, 2]) + g.rng.choice([0, 0, 8e-5])
    shape = g.rng.choice([(), (), (), (1,), (1,) * v.rank, (1,) * (v.rank + 1)]) if g.rng.random() < 0.5 else ()
    return g.known(np.full(shape, value, v.dtype), g.rng.random() < 0.95)


def start(g, rank=None, types=(F32, F32, F32, F16), where=lambda v: True):
    return g.operand(types, rank=rank, where=lambda v: v.size > 0 and where(v))


def two(g, op, a, b):
    """A commutative operator, in either order."""
    return g.op(op, a, b, kind="short") if g.rng.random() < 0.6 else g.op(op, b, a, kind="short")


def gelu(g):
    x = start(g)
    if g.rng.random() < 0.6:
        e = g.op("Erf", g.op("Div", x, number(g, x, 2**0.5)) if g.rng.random() < 0.7 else two(g, "Mul", x, number(g, x, 0.5**0.5)))
    else:
        cube = g.op("Pow", x, number(g, x, 3)) if g.rng.random() < 0.6 else two(g, "Mul", two(g, "Mul", x, x), x)
        e = g.op("Tanh", two(g, "Mul", two(g, "Add", x, two(g, "Mul", cube, number(g, x, 0.044715))), number(g, x, (2 / np.pi) ** 0.5)))
    one = two(g, "Add", e, number(g, x, 1))
    if g.rng.random() < 0.5:
        two(g, "Mul", two(g, "Mul", x, one), number(g, x, 0.5))
    else:
        two(g, "Mul", two(g, "Mul", x, number(g, x, 0.5)), one)


def gates(g):
    """HardSwish, HardSigmoid, Swish, ReLU6, Mish, LeakyRelu by hand."""
    x = start(g)
    if g.opset < 11:
        raise Unfit("Clip of operands")
    kind = g.rng.choice(["hard", "hard", "swish", "quick", "leaky", "mish", "softsign"])
    if kind == "hard":
        c = g.op("Clip", two(g, "Add", x, number(g, x, 3)), g.known(np.asarray(0, x.dtype)), g.known(np.asarray(g.rng.choice([6, 6, 6, 5.9995]), x.dtype)), kind="move")
        y = two(g, "Mul", x, c) if g.rng.random() < 0.7 else c
        g.op("Div", y, number(g, x, 6)) if g.rng.random() < 0.6 else two(g, "Mul", y, number(g, x, 1 / 6))
    elif kind == "swish":
        two(g, "Mul", x, g.op("Sigmoid", x))
    elif kind == "quick":
        two(g, "Mul", x, g.op("Sigmoid", two(g, "Mul", x, number(g, x, 1.702))))
    elif kind == "leaky":
        g.op("Max", x, two(g, "Mul", x, number(g, x, 0.1)))
    elif kind == "mish":
        two(g, "Mul", x, g.op("Tanh", g.op("Softplus", x)))
    else:
        g.op("Div", x, two(g, "Add", g.op("Abs", x, kind="move"), number(g, x, 1)))


def mean(g, x, axes, keep=1):
    if g.opset >= 18:
        return g.op("ReduceMean", x, ints(g, axes), keepdims=keep)
    return g.op("ReduceMean", x, ints(g, axes), keepdims=keep)


def layer_norm(g):
    x = start(g, types=(F32, F32, F16, F64), where=lambda v: v.rank > 1 and v.shape[-1] > 1)
    axes = g.rng.choice([[-1], [-1], [x.rank - 1], [-2, -1], [1]])
    other = axes if g.rng.random() > CHANCE / 2 else [0]
    simple = g.rng.random() < 0.3
    d = x if simple else g.op("Sub", x, mean(g, x, axes))
    square = g.op("Pow", d, number(g, x, 2)) if g.rng.random() < 0.5 else g.op("Mul", d, d)
    deviation = g.op("Sqrt", two(g, "Add", mean(g, square, other), number(g, x, 1e-2 if x.dtype == F16 else 1e-5)))
    y = g.op("Div", d, deviation) if g.rng.random() < 0.7 else two(g, "Mul", d, g.op("Reciprocal", deviation))
    shape = g.rng.choice([x.shape[-1:], x.shape[-1:], x.shape[-2:], (1, *x.shape[-1:]), (1,) * x.rank + x.shape[-1:], (x.shape[-2], 1)])
    if g.rng.random() < 0.8:
        y = two(g, "Mul", y, g.fresh(x.dtype, shape, constant=True))
        if g.rng.random() < 0.7:
            two(g, "Add", y, g.fresh(x.dtype, x.shape[-1:] if g.rng.random() < 0.7 else shape, constant=True))


def softmax(g):
    x = start(g, where=lambda v: v.rank > 0)
    axis = g.rng.choice([-1, -1, 0])
    shifted = g.op("Sub", x, g.op("ReduceMax", x, ints(g, [axis]), kind="move")) if g.rng.random() < 0.7 else g.op("Clip", x, None, g.known(np.asarray(3, x.dtype)), kind="move")
    e = g.op("Exp", shifted)
    g.op("Div", e, g.op("ReduceSum", e, ints(g, [axis if g.rng.random() > CHANCE / 2 else 0])))


def attention(g):
    """As PyTorch writes it: products of scaled factors, a mask, in halves too."""
    dtype = g.rng.choice([F32, F16, F16])
    b, h, s, t, d = g.rng.choice([1, 2, 3]), g.rng.choice([1, 2]), g.rng.choice([1, 3, 5, 17]), g.rng.choice([1, 5, 9, 33]), g.rng.choice([2, 4, 8, 16, 64])
    large = g.rng.choice([1, 1, 8, 40]) if dtype == F16 else 1
    q, k, v = (g.known((g.draw_array(dtype, (b, h, n, d), style="normal").astype(F32) * f).astype(dtype), False) for n, f in ((s, large), (t, large), (t, 1)))
    root = g.known(np.asarray(g.rng.choice([d**-0.25, d**-0.5, 2.0**-3]), dtype))
    key = g.op("Transpose", k, kind="move", perm=[0, 1, 3, 2])
    style = g.rng.choice(["both", "before", "after", "after", "divide"])
    left = two(g, "Mul", q, root) if style in ("both", "before") else q
    right = two(g, "Mul", key, root) if style == "both" else key
    a = g.op("MatMul", left, right)
    if style == "after":
        a = two(g, "Mul", a, root)
    elif style == "divide":
        a = g.op("Div", a, g.known(np.asarray(d**0.5, dtype)))
    if g.rng.random() < 0.4:
        a = two(g, "Add", a, g.fresh(dtype, g.rng.choice([(s, t), (1, 1, 1, t), (b, 1, s, t), (1,)]), style="fractions"))
    p = g.op("Softmax", a, axis=-1 if g.rng.random() < 0.9 else 2)
    y = g.op("MatMul", p, v)
    if g.rng.random() < 0.5:
        g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), ints(g, [b, s, h * d]))


def scales(g):
    """Products and sums with constants in a row, around a matrix product or not: where a rule may move roundings."""
    x = start(g, types=(F16, F32, F16, F32, BF16))
    large, small = [1000.0, 100.0, 256.0, 2.0**10], [1e-3, 2.0**-10, 0.01, 2.0**-17]
    for _ in range(g.rng.choice([1, 2, 3])):
        c = g.known(np.asarray(g.rng.choice(large + small + [3.0, -0.5]), x.dtype))
        x = g.op(g.rng.choice(["Mul", "Mul", "Div", "Add", "Sub"]), x, c) if c.most >= 2.0**-17 and c.most > 0 else x
    if g.rng.random() < 0.5 and x.rank > 1:
        x = g.op("MatMul", x, g.fresh(x.dtype, (x.shape[-1], g.rng.choice([1, 3, 8])), style="fractions"))
        g.op(g.rng.choice(["Mul", "Div"]), x, g.known(np.asarray(g.rng.choice([0.125, 2.0, 1e-3 if x.dtype != F16 else 0.01]), x.dtype)))


def folded(g):
    """A convolution or product, then a scale and a shift by channel, BatchNormalization, or padding before."""
    if g.rng.random() < 0.35:
        v = g.operand((F32, F16), rank=4, where=lambda v: v.size > 0 and v.size < 600)
        mode = g.rng.choice(["constant", "constant", "edge", "reflect" if min(v.shape[2:]) > 2 else "edge"])
        pads = g.rng.choice([[0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 2, 0, 0, 1, 0], [0, 1, 1, 1, 0, 0, 1, 1], [1, 0, 0, 0, 0, 0, 1, 1]])
        value = maybe(g, lambda: g.known(np.asarray(g.rng.choice([0, 0, 1, -1]), v.dtype)), 0.6) if mode == "constant" else None
        g.op("Pad", *[o for o in (v, ints(g, pads), value) if o is not None], kind="move", mode=mode)
    draw_product(g)
    y = g.values[-1]
    if y.rank == 0:
        raise Unfit("no channel")
    c = y.shape[1] if y.rank > 2 else y.shape[-1]
    if y.rank > 2 and g.rng.random() < 0.5 and y.dtype != BF16:
        g.op("BatchNormalization", y, *(g.fresh(y.dtype, (c,), low=l, high=h, constant=True) for l, h in ((0.25, 2), (-2, 2), (-2, 2), (0.5, 2))))
        return
    for op in g.rng.sample(["Mul", "Add", "Relu", "Sub", "Div"], g.rng.choice([1, 2])):
        y = g.op(op, y) if op == "Relu" else g.op(op, y, g.fresh(y.dtype, g.rng.choice([(c, *[1] * (y.rank - 2)), (1, c, *[1] * (y.rank - 2)), (), y.shape[-1:], (y.shape[0], *[1] * (y.rank - 1))]), low=0.25, high=3, constant=True))


def draw_product(g):
    from products import conv, deconv, gemm, matmul
    op, draw = g.rng.choice([("Conv", conv), ("Conv", conv), ("ConvTranspose", deconv), ("MatMul", matmul), ("Gemm", gemm)])
    draw(g, op)


def transposes(g):
    """Transposes around operators, some of which have unit axes that make them moves of nothing."""
    x = start(g, types=FLOATS, where=lambda v: v.rank in (2, 3, 4))
    perm = g.rng.sample(range(x.rank), x.rank) if g.rng.random() < 0.4 else {2: [1, 0], 3: [0, 2, 1], 4: g.rng.choice([[0, 2, 3, 1], [0, 3, 1, 2]])}[x.rank]
    y = g.op("Transpose", x, kind="move", perm=perm)
    if g.rng.random() < 0.7:
        y = g.op(g.rng.choice(["Relu", "Tanh", "Neg", "Sigmoid"]), y)
    if g.rng.random() < 0.5:
        y = g.op("Add", y, g.fresh(y.dtype, g.rng.choice([y.shape[-1:], (), y.shape])))
    if g.rng.random() < 0.3:
        y = g.op("Softmax", y, axis=g.rng.randrange(y.rank)) if g.opset >= 13 else y
    back = [perm.index(k) for k in range(len(perm))] if g.rng.random() > CHANCE else g.rng.sample(perm, len(perm))
    g.op("Transpose", y, perm=back)


def same_again(g):
    """The same operator once more, with one attribute or operand changed: kernels that must not be merged."""
    nodes = [n for n in g.nodes if n.draft.op == n.proto.op_type and not any(word in n.draft.op for word in ("If", "Loop", "Scan", "Random", "Bernoulli", "Multinomial", "Sequence", "Optional"))]
    if not nodes:
        raise Unfit("no node")
    node = g.rng.choice(nodes)
    attributes, operands = dict(node.draft.attributes), list(node.draft.operands)
    names = [name for name in attributes if name in CHANGES]
    if names and g.rng.random() < 0.7:
        name = g.rng.choice(names)
        attributes[name] = CHANGES[name](g, attributes[name])
    elif len(operands) > 1:
        index = g.rng.randrange(len(operands))
        old = operands[index]
        found = g.pick(lambda v: old is not None and v.dtype == old.dtype and v.shape == old.shape and v is not old)
        if found is None and old is not None and old.dtype in FLOATS:
            found = g.fresh(old.dtype, old.shape, **({"low": 0.25, "high": 3}))
        operands[index] = found
    if operands and operands[0] is None and node.draft.operands[0] is not None:
        raise Unfit("needed")
    if node.draft.op in ("TopK", "Gather", "NonZero", "Where") and any(o is None for o in operands):
        raise Unfit("needed")
    g.add(Draft(node.draft.op, tuple(operands), attributes, node.draft.outputs, node.draft.domain), node.kind)


def other_size(g, value):
    return [max(1, v + g.rng.choice([-1, 1])) if g.rng.random() < 0.5 else v for v in value]


CHANGES = {name: lambda g, v: 1 - v for name in ("keepdims", "select_last_index", "largest", "exclusive", "reverse", "transA", "transB", "count_include_pad", "ceil_mode", "align_corners",
                                                 "upper", "is_causal", "interleaved", "inverse", "linear_before_reset", "exclude_outside", "antialias", "unidirectional", "detect_negative")}
CHANGES |= {name: lambda g, v: v[::-1] if isinstance(v, list) else v * g.rng.choice([0.5, 2.0, 3.0]) for name in ("alpha", "beta", "epsilon", "bias", "lambd", "gamma", "scale", "softcap")}
CHANGES |= {name: other_size for name in ("strides", "dilations", "pads")}
CHANGES |= {"axis": lambda g, v: v - 1 if v > 0 else v + 1, "k": lambda g, v: v + 1, "p": lambda g, v: 3 - v if v < 3 else 1, "perm": lambda g, v: g.rng.sample(v, len(v)),
            "mode": lambda g, v: g.rng.choice({"DCR": ["CRD"], "CRD": ["DCR"], "constant": ["edge"], "edge": ["constant"], "nearest": ["linear"], "linear": ["nearest", "cubic"]}.get(v, [v])),
            "coordinate_transformation_mode": lambda g, v: {"align_corners": "asymmetric", "asymmetric": "align_corners"}.get(v, v), "nearest_mode": lambda g, v: g.rng.choice(["floor", "ceil", "round_prefer_ceil"]),
            "direction": lambda g, v: {"forward": "reverse", "reverse": "forward", "LEFT": "RIGHT", "RIGHT": "LEFT"}.get(v, v), "approximate": lambda g, v: "tanh" if v == "none" else "none",
            "reduction": lambda g, v: {"add": "mul", "mul": "add", "max": "min", "min": "max", "sum": "mean", "mean": "sum"}.get(v, v), "num_groups": lambda g, v: 1}

ROWS = [Row("", lambda g, op, draw=draw: draw(g), weight) for draw, weight in ((gelu, 2), (gates, 2), (layer_norm, 2), (softmax, 0.6), (attention, 2), (scales, 2), (folded, 2.5), (transposes, 2), (same_again, 7))]
