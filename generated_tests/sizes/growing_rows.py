"""What a graph with symbolic sizes grows by: each row draws operands and attributes, and adds a few nodes or raises Unfit."""
import numpy as np

from growing import BOOL, F32, I64, U8, Unfit, broadcast

EXACT = ("Relu", "Neg", "Abs", "Identity", "Floor", "Sign")


def unary(g):
    kind = g.rng.choice([*EXACT, "Tanh", "Sigmoid", "Erf", "HardSwish", "LeakyRelu", "Softplus"])
    v = g.pick(lambda v: v.exact or kind not in ("Floor", "Sign"))
    g.op(kind, v, exact=kind in EXACT)


def binary(g):
    v = g.pick()
    others = [o for o in g.values if o.dtype == F32 and broadcast(v, o)]
    if not others:
        raise Unfit("no operand")
    shape = [d if d and g.rng.random() < 0.7 else 1 for d in v.shape]
    other = g.rng.choice(others) if g.rng.random() < 0.6 else g.weight(*shape[g.rng.randrange(len(shape) + 1):])
    kind = g.rng.choice(["Add", "Sub", "Mul", "Max", "Min"])
    g.op(kind, *g.rng.sample([v, other], 2), exact=kind in ("Max", "Min"))


def choose(g):
    v = g.pick(lambda v: v.exact)
    g.op("Where", g.op("Less", v, g.number(0.25)), v, g.number(-3))
    if g.rng.random() < 0.3:
        g.op("Cast", g.pick(dtypes=(BOOL,)), to=g.rng.choice([1, 2]))


def product(g):
    v = g.pick(lambda v: v.rank >= 2)
    k = v.shape[-1]
    if k and g.rng.random() < 0.7:
        n = g.rng.choice([1, 3, 8, 15, 16, 17, 33])
        y = g.op("MatMul", v, g.weight(k, n), exact=False)
        return g.op("Add", y, g.weight(n), exact=False) if g.rng.random() < 0.5 else y
    turned = g.op("Transpose", v, perm=[*range(v.rank - 2), v.rank - 1, v.rank - 2])
    scores = g.op("Mul", g.op("MatMul", *g.rng.sample([v, turned], 2), exact=False), g.number(0.25), exact=False)
    if g.rng.random() < 0.5:
        g.op("Softmax", scores, axis=-1, exact=False)


def along(g):
    v = g.pick(lambda v: v.rank > 0)
    g.op(g.rng.choice(["Softmax", "LogSoftmax"]), v, axis=g.either_end(v, g.axis(v)), exact=False)


def normalise(g):
    v = g.pick(lambda v: v.rank >= 3)
    if v.shape[-1] and g.rng.random() < 0.5:
        return g.op("LayerNormalization", v, g.weight(v.shape[-1]), g.weight(v.shape[-1]), axis=-1, epsilon=1e-3, exact=False)
    if not v.shape[1]:
        raise Unfit("channels")
    g.op("InstanceNormalization", v, g.weight(v.shape[1]), g.weight(v.shape[1]), epsilon=1e-3, exact=False)


def reduce(g):
    v = g.pick(lambda v: v.rank > 0)
    kind = g.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"])
    axes = g.rng.sample(range(v.rank), g.rng.randint(1, min(v.rank, 3)))
    if kind == "ReduceMean" and any(v.least(axis) == 0 for axis in axes):
        raise Unfit("the mean of nothing is undefined")
    axes = [g.either_end(v, axis) for axis in axes]
    g.op(kind, v, g.ints(*axes), keepdims=g.rng.randrange(2), exact=kind in ("ReduceMax", "ReduceMin"))


def order(g):
    v = g.pick(lambda v: v.rank > 0 and v.exact, (F32, U8))
    axis = g.axis(v, lambda axis: v.least(axis) > 0)
    along = g.either_end(v, axis)
    way = g.rng.randrange(3) if v.dtype == F32 else 0
    if way == 0:
        g.op(g.rng.choice(["ArgMax", "ArgMin"]), v, axis=along, keepdims=g.rng.randrange(2), select_last_index=g.rng.randrange(2))
    elif way == 1:
        g.op("TopK", v, g.ints(g.rng.randint(1, min(4, v.least(axis)))), outputs=2, axis=along, largest=g.rng.randrange(2))
    else:
        g.op("CumSum", v, g.number(along, I64), exclusive=g.rng.randrange(2), reverse=g.rng.randrange(2))


def transpose(g):
    v = g.pick(lambda v: v.rank > 1)
    g.op("Transpose", v, perm=g.rng.sample(range(v.rank), v.rank))


def reshape(g):
    v = g.pick(lambda v: v.rank > 1)
    if g.rng.random() < 0.3:
        return g.op("Flatten", v, axis=g.rng.randrange(v.rank + 1))
    parts = [g.size(v, axis) for axis in range(v.rank)]
    way = g.rng.randrange(3)
    if way == 0:
        g.rng.shuffle(parts)
    elif way == 1:
        at = g.rng.randrange(v.rank - 1)
        parts[at:at + 2] = [g.op("Mul", *parts[at:at + 2])]
    parts[g.rng.randrange(len(parts))] = g.ints(-1)
    g.op("Reshape", v, g.op("Concat", *parts, axis=0))


def concat(g):
    v = g.pick(lambda v: v.rank > 0)
    axis = g.axis(v)
    beside = [k for k in range(v.rank) if k != axis]
    parts = [v, g.rng.choice([o for o in g.values if o.dtype == F32 and o.rank == v.rank and all(o.sizes(k) == v.sizes(k) for k in beside)])]
    if None not in [v.shape[k] for k in beside] and g.rng.random() < 0.5:
        parts.append(g.weight(*[2 if k == axis else v.shape[k] for k in range(v.rank)]))
    g.rng.shuffle(parts)
    g.op("Concat", *parts, axis=g.either_end(v, axis))


def cut(g):
    v = g.pick(lambda v: v.rank > 0)
    axis = g.axis(v, lambda axis: v.least(axis) > 1)
    along, far = g.ints(g.either_end(v, axis)), g.rng.choice([2**63 - 1, 2**31 - 1, 10**6])
    way = g.rng.randrange(5)
    if way == 0:
        g.op("Slice", v, g.ints(g.rng.choice([-2, -1, 0, 1])), g.ints(g.rng.choice([-1, far])), along)
    elif way == 1:
        g.op("Slice", v, g.ints(g.rng.choice([-1, -2, far])), g.ints(g.rng.choice([-2**63, -10**6])), along, g.ints(g.rng.choice([-1, -2])))
    elif way == 2:
        g.op("Slice", v, g.ints(g.rng.choice([0, 1])), g.ints(far), along, g.ints(g.rng.choice([2, 3])))
    elif way == 3:
        g.op("Slice", v, g.ints(0), g.op("Sub", g.size(v, axis), g.ints(1)), along)
    else:
        half = g.op("Div", g.size(v, axis), g.ints(2))
        g.op("Slice", v, half, g.ints(far), along) if g.rng.random() < 0.5 else g.op("Slice", v, g.ints(0), half, along)


def pad(g):
    v = g.pick(lambda v: v.rank > 0)
    mode, pads = g.rng.choice(["constant", "constant", "edge", "reflect"]), [0] * (2 * v.rank)
    for axis in range(v.rank):
        most = 3 if mode == "constant" else min(3, v.least(axis) - 1)
        if most > 0 and g.rng.random() < 0.5:
            pads[axis], pads[axis + v.rank] = g.rng.randint(0, most), g.rng.randint(0, most)
    g.op("Pad", v, g.ints(*pads), g.number(1.5) if mode == "constant" else None, mode=mode)


def pad_to(g):
    """To a multiple of a number, in front, behind or on both sides."""
    v = g.pick(lambda v: v.rank > 0)
    axis = g.axis(v, lambda axis: v.least(axis) > 0)
    number, mode = g.rng.choice([2, 3, 4]), g.rng.choice(["constant", "constant", "edge", "reflect"])
    if mode == "reflect" and v.least(axis) < number:
        raise Unfit("nothing to mirror")
    whole = g.ints(number)
    more = g.op("Mod", g.op("Sub", whole, g.op("Mod", g.size(v, axis), whole)), whole)
    begin = g.rng.choice([g.ints(0), more, g.op("Div", more, g.ints(2))])
    rest = [g.ints(*[0] * axis)] * (axis > 0), [g.ints(*[0] * (v.rank - 1 - axis))] * (axis + 1 < v.rank)
    pads = g.op("Concat", *rest[0], begin, *rest[1], *rest[0], g.op("Sub", more, begin), *rest[1], axis=0)
    g.op("Pad", v, pads, g.number(1.5) if mode == "constant" else None, mode=mode)


def gather(g):
    v = g.pick(lambda v: v.rank > 0)
    axis = g.axis(v, lambda axis: v.least(axis) > 0)
    n = v.least(axis)
    g.op("Gather", v, g.constant(g.random.integers(-n, n, g.rng.choice([(), (1,), (3,), (2, 2)]))), axis=g.either_end(v, axis))


def expand(g):
    v = g.pick()
    others = [o for o in g.values if broadcast(v, o)]
    if not others:
        raise Unfit("no size")
    other = g.rng.choice(others)
    g.op("Expand", v, g.op("Shape", other))
    if g.rng.random() < 0.3:
        g.op("ConstantOfShape", g.op("Shape", other))


def count(g):
    """Sizes as data: known ones among others, too."""
    v = g.pick(lambda v: v.rank > 0)
    size = g.size(v, g.axis(v))
    if g.rng.random() < 0.5:
        size = g.op("Range", g.number(0, I64), g.op("Squeeze", size, g.ints(0)), g.number(1, I64))
    numbers = g.op("Cast", size, to=1)
    others = [o for o in g.values if o.dtype == F32 and broadcast(o, numbers)]
    if others:
        g.op(g.rng.choice(["Add", "Mul"]), g.rng.choice(others), numbers, exact=False)


def window(g, v):
    """kernel, strides, dilations and pads of a window that fits."""
    n = v.rank - 2
    kernel, strides, dilations = ([g.rng.choice(of) for _ in range(n)] for of in ([1, 2, 3, 3, 4], [1, 1, 2, 3], [1, 1, 1, 2]))
    pads = [g.rng.randint(0, (kernel[k % n] - 1) * dilations[k % n] // 2) for k in range(2 * n)]
    if any(v.least(k + 2) + pads[k] + pads[k + n] <= (kernel[k] - 1) * dilations[k] for k in range(n)):
        raise Unfit("window")
    return kernel, {"strides": strides, "dilations": dilations, "pads": pads}


def image(g):
    return g.pick(lambda v: v.rank in (3, 4) and v.shape[1])


def conv(g):
    v = image(g)
    channels, (kernel, attributes) = v.shape[1], window(g, v)
    group = g.rng.choice([1, 1, channels])
    many = group * g.rng.choice([1, 2]) if group > 1 else g.rng.choice([1, 3, 8, 16, 17, 33])
    if g.rng.random() < 0.2:
        attributes = {"strides": attributes["strides"], "auto_pad": g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])}
    y = g.op("Conv", v, g.weight(many, channels // group, *kernel), g.weight(many), group=group, exact=False, **attributes)
    if g.rng.random() < 0.4:
        g.op("Relu", y)


def conv_transpose(g):
    v = image(g)
    kernel, attributes = window(g, v)
    g.op("ConvTranspose", v, g.weight(v.shape[1], g.rng.choice([1, 3, 16]), *kernel), exact=False, **attributes)


def pool(g):
    v = image(g)
    kind = g.rng.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    if kind.startswith("Global"):
        return g.op(kind, v, exact=False)
    kernel, attributes = window(g, v)
    attributes["pads"] = [min(pad, kernel[k % len(kernel)] - 1) for k, pad in enumerate(attributes["pads"])]
    if kind == "AveragePool":
        attributes["dilations"], attributes["count_include_pad"] = None, g.rng.randrange(2)
    g.op(kind, v, kernel_shape=kernel, ceil_mode=g.rng.choice([0, 0, 1]), exact=kind == "MaxPool", **attributes)


def resize(g):
    v = image(g)
    mode = g.rng.choice(["nearest", "linear", "cubic"] if v.rank == 4 else ["nearest", "linear"])
    scales = [g.rng.choice([1, 2, 2, 3, 0.5, 1.5, 0.75]) for _ in range(v.rank - 2)]
    if any(v.least(k + 2) * scale < 1 for k, scale in enumerate(scales)):
        raise Unfit("nothing is left")
    g.op("Resize", v, None, g.constant(np.array([1, 1, *scales], np.float32)), mode=mode, exact=mode == "nearest",
         coordinate_transformation_mode=g.rng.choice(["half_pixel", "asymmetric"]), nearest_mode=g.rng.choice(["floor", "round_prefer_floor"]) if mode == "nearest" else None)


def resize_to(g):
    """To the sizes of another image, or by a scale that positions depend on."""
    v = image(g)
    mode = g.rng.choice(["nearest", "linear", "cubic"] if v.rank == 4 else ["nearest", "linear"])
    coordinates = g.rng.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "exact": mode == "nearest" and v.exact}
    if mode == "nearest":  # of ties the last bit decides
        attributes |= {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    if g.rng.random() < 0.4:
        scales = [g.rng.choice([1, 2, 0.5, 1.3, 0.7]) for _ in range(v.rank - 2)]
        if any(v.least(k + 2) * scale < 1 for k, scale in enumerate(scales)):
            raise Unfit("nothing is left")
        return g.op("Resize", v, None, g.constant(np.array([1, 1, *scales], np.float32)), **attributes)
    other = g.pick(lambda o: o.rank == v.rank and all(o.least(k) > 0 for k in range(2, o.rank)))
    parts = [g.op("Slice", g.op("Shape", v), g.ints(0), g.ints(2)), g.op("Slice", g.op("Shape", other), g.ints(2), g.ints(v.rank))]
    g.op("Resize", v, None, None, g.op("Concat", *parts, axis=0), **attributes)


def sample(g):
    v = g.pick(lambda v: v.rank == 4 and v.least(2) > 0 and v.least(3) > 0)
    grids = [o for o in g.values if o.dtype == F32 and o.rank == 4 and o.sizes(0) == v.sizes(0) and o.shape[3] == 2]
    if grids and g.rng.random() < 0.5:
        grid = g.rng.choice(grids)
    elif v.shape[0]:
        grid = g.constant(g.random.uniform(-1.2, 1.2, (v.shape[0], 3, 4, 2)).astype(np.float32))
    else:
        raise Unfit("grid")
    g.op("GridSample", v, grid, mode="bilinear", padding_mode=g.rng.choice(["zeros", "border", "reflection"]), align_corners=g.rng.randrange(2), exact=False)


def roll(g):
    v = g.pick(lambda v: v.rank > 0)
    axis = g.axis(v, lambda axis: v.least(axis) > 1)
    along, far, by = g.ints(axis), g.ints(2**63 - 1), g.ints(g.rng.choice([1, -1]))
    turned = g.op("Concat", g.op("Slice", v, by, far, along), g.op("Slice", v, g.ints(0), by, along), axis=axis)
    g.op("Add", v, turned, exact=False)


def arithmetic(g):
    """Sizes that are remainders, lesser ones, multiples."""
    v = g.pick(lambda v: v.rank > 0)
    size, number = g.size(v, g.axis(v)), g.ints(g.rng.choice([2, 3, 4]))
    kind = g.rng.choice(["Mod", "Min", "Max", "Div", "up"])
    if kind == "up":
        more = g.op("Mod", g.op("Sub", number, g.op("Mod", size, number)), number)
        size = g.op("Div", g.op("Add", size, more), number)
    else:
        size = g.op(kind, size, number)
    g.op("Expand", g.weight(1, 3), g.op("Concat", size, g.ints(3), axis=0))


def blocks(g):
    v = g.pick(lambda v: v.rank == 4 and v.shape[1])
    if v.shape[1] % 4 == 0 and g.rng.random() < 0.5:
        return g.op("DepthToSpace", v, blocksize=2, mode=g.rng.choice(["DCR", "CRD"]))
    if any(size % 2 for axis in (2, 3) for size in v.sizes(axis)):
        raise Unfit("odd")
    g.op("SpaceToDepth", v, blocksize=2)


def recur(g):
    v = g.pick(lambda v: v.rank == 3 and v.shape[2])
    kind, gates = g.rng.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    hidden, direction = g.rng.choice([1, 3, 16, 17]), g.rng.choice(["forward", "reverse", "bidirectional"])
    many = 2 if direction == "bidirectional" else 1
    y, *_ = g.op(kind, v, g.weight(many, gates * hidden, v.shape[2]), g.weight(many, gates * hidden, hidden), outputs=3 if kind == "LSTM" else 2,
                 hidden_size=hidden, direction=direction, exact=False)
    if g.rng.random() < 0.5:
        g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))


def attend(g):
    v = g.pick(lambda v: v.rank == 3 and v.shape[2] in (8, 16, 32))
    heads, width = g.rng.choice([1, 2, 4]), v.shape[2]
    split = [g.op("Transpose", g.op("Reshape", g.op("MatMul", v, g.weight(width, width), exact=False), g.ints(0, 0, heads, width // heads)), perm=perm)
             for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
    scores = g.op("Mul", g.op("MatMul", *split[:2], exact=False), g.number(0.25), exact=False)
    joined = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1, exact=False), split[2], exact=False), perm=[0, 2, 1, 3])
    g.op("Reshape", joined, g.ints(0, 0, width))


ROWS = {unary: 8, binary: 9, choose: 3, product: 8, along: 3, normalise: 3, reduce: 5, order: 4, transpose: 5, reshape: 6, concat: 4, cut: 5, pad: 4, pad_to: 3, gather: 3,
        expand: 3, count: 6, conv: 6, conv_transpose: 2, pool: 4, resize: 4, resize_to: 3, sample: 2, roll: 2, arithmetic: 2, blocks: 3, recur: 2, attend: 2}
