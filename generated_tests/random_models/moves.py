"""Operators that move elements, choose among them, or count positions."""
import numpy as np

from evaluate import Draft, Unfit, onnx_type
from graph import ALL, BOOL, F16, F32, F64, FLOATS, I8, I32, I64, NUMBERS, U8, WHOLE, is_float
from rows import Row, attributes_of, axis_of, ints, maybe, partner, pick_axes, trimmed

MOVED = (F32, F16, F64, I64, I32, I8, U8, BOOL)


def reshape(g, op):
    v = g.operand(ALL)
    left, shape = v.size, []
    while left > 1 and len(shape) < 4 and g.rng.random() < 0.8:
        shape.append(g.rng.choice([f for f in range(1, left + 1) if left % f == 0]))
        left //= shape[-1]
    if left != 1 or g.rng.random() < 0.3:
        shape.insert(g.rng.randrange(len(shape) + 1), left)
    if shape and v.size and g.rng.random() < 0.3:
        shape[g.rng.randrange(len(shape))] = -1
    if g.rng.random() < 0.2:
        shape = [0 if k < v.rank and d == v.shape[k] and d > 0 else d for k, d in enumerate(shape)]
    if g.opset >= 14 and not v.size and g.rng.random() < 0.5:
        return g.add(Draft(op, (v, ints(g, v.shape[::-1])), {"allowzero": 1}), "move")
    g.add(Draft(op, (v, ints(g, shape))), "move")


def squeeze(g, op):
    if op == "Unsqueeze":
        v = g.operand(MOVED)
        axes = sorted(g.rng.sample(range(v.rank + 2), g.rng.choice([1, 2])))
        if g.rng.random() < 0.3 and g.opset >= 11:
            axes = [a - v.rank - len(axes) for a in axes]
        if max(axes) >= v.rank + len(axes):
            raise Unfit("axis")
        return g.add(Draft(op, (v, ints(g, axes))), "move")
    v = g.operand(MOVED, where=lambda v: 1 in v.shape)
    ones = [a for a, d in enumerate(v.shape) if d == 1]
    axes = g.rng.sample(ones, g.rng.randrange(1, len(ones) + 1))
    g.add(Draft(op, (v, ints(g, axes)) if g.rng.random() < 0.8 else (v,)), "move")


def transpose(g, op):
    v = g.operand(MOVED, where=lambda v: v.rank > 1)
    perm = g.rng.sample(range(v.rank), v.rank)
    if v.rank > 2 and g.rng.random() < 0.4:
        perm = g.rng.choice([[0, *range(2, v.rank), 1], [0, v.rank - 1, *range(1, v.rank - 1)], [*range(v.rank - 2), v.rank - 1, v.rank - 2]])
    g.add(Draft(op, (v,), {"perm": perm} if g.rng.random() < 0.9 else {}), "move")


def slice_(g, op):
    v = g.operand(MOVED, where=lambda v: v.rank > 0)
    axes = pick_axes(g, v)
    starts, ends, steps = [], [], []
    for a in axes:
        n = v.shape[a]
        step = 1 if g.opset < 10 else g.rng.choice([1, 1, 1, 2, 3, -1, -2])
        if step > 0:
            start, end = g.rng.choice([0, g.rng.randrange(-n, n) if n else 0]), g.rng.choice([n, n, 1 << 31, -1, n - 1])
        else:
            start, end = g.rng.choice([n - 1, -1, n + 3]), g.rng.choice([-n - 1, -(1 << 31), 0])
        starts.append(start), ends.append(end), steps.append(step)
    operands = [v, ints(g, starts), ints(g, ends), ints(g, axes)]
    if any(s != 1 for s in steps) or g.rng.random() < 0.2:
        operands.append(ints(g, steps))
    g.add(Draft(op, tuple(operands)), "move")


def concat(g, op):
    v = g.operand(MOVED, where=lambda v: v.rank > 0)
    axis = axis_of(g, v) if g.opset >= 4 else g.rng.randrange(v.rank)
    at = axis % v.rank
    parts = [v]
    for _ in range(g.rng.choice([1, 1, 2, 3])):
        other = g.pick(lambda o: o.dtype == v.dtype and o.rank == v.rank and all(a == at or o.shape[a] == v.shape[a] for a in range(v.rank)))
        if other is None or g.rng.random() < 0.3:
            other = g.fresh(v.dtype, [g.rng.choice([1, 2, 3, 5]) if a == at else d for a, d in enumerate(v.shape)])
        parts.append(other)
    g.rng.shuffle(parts)
    g.add(Draft(op, tuple(parts), {"axis": axis}), "move")


def split(g, op):
    v = g.operand(MOVED, where=lambda v: v.rank > 0 and max(v.shape) > 1)
    axis = g.rng.choice([a for a in range(v.rank) if v.shape[a] > 1])
    n = v.shape[axis]
    first = g.rng.randrange(0 if g.rng.random() < 0.1 else 1, n)
    parts = [first, n - first] if g.rng.random() < 0.7 or n - first < 2 else [first, 1, n - first - 1]
    if g.opset >= 18 and g.rng.random() < 0.4:
        count = g.rng.randrange(1, min(4, n) + 1)
        return g.add(Draft(op, (v,), {"axis": axis, "num_outputs": count}, count), "move")
    g.add(Draft(op, (v, ints(g, parts)), {"axis": axis}, len(parts)), "move")


def expand(g, op):
    v = g.operand(MOVED, where=lambda v: v.size < 400)
    shape = [g.rng.choice([1, 2, 3]) if d == 1 else g.rng.choice([d, 1]) for d in v.shape]
    if g.rng.random() < 0.4:
        shape = [g.rng.choice([1, 2, 3]), *shape]
    g.add(Draft(op, (v, ints(g, shape))), "move")


def tile(g, op):
    v = g.operand(MOVED, where=lambda v: 0 < v.rank and v.size < 400)
    g.add(Draft(op, (v, ints(g, [g.rng.choice([1, 1, 2, 3]) for _ in v.shape]))), "move")


def pad(g, op):
    v = g.operand(MOVED[:6], where=lambda v: v.rank > 0 and v.size < 1500)
    mode = g.rng.choice(["constant", "constant", "reflect", "edge", "wrap"])
    low = -1 if g.rng.random() < 0.2 else 0
    room = [min(3, d - 1) if mode != "constant" else 3 for d in v.shape]
    if min(room) < 0:
        raise Unfit("nothing to reflect")
    pads = [g.rng.randrange(max(low, -d // 2 + 1) if d > 2 and mode == "constant" else 0, r + 1) if g.rng.random() < 0.6 else 0 for d, r in zip(v.shape * 2, room * 2)]
    value = maybe(g, lambda: g.fresh(v.dtype, (), constant=True if g.rng.random() < 0.9 else None), 0.5) if mode == "constant" else None
    operands = trimmed(v, ints(g, pads), value)
    if g.opset >= 18 and g.rng.random() < 0.25:
        axes = pick_axes(g, v)
        chosen = [pads[a % v.rank] for a in axes] + [pads[a % v.rank + v.rank] for a in axes]
        operands = (v, ints(g, chosen), value, ints(g, axes))
    g.add(Draft(op, operands, {"mode": mode}), "move")


def gather(g, op):
    v = g.operand(MOVED, where=lambda v: v.rank > 0 and min(v.shape) > 0)
    axis = axis_of(g, v)
    n = v.shape[axis]
    shape = g.draw_shape(g.rng.choice([0, 1, 1, 2])) if op == "Gather" else [d if a == axis % v.rank else g.rng.randrange(1, d + 1) for a, d in enumerate(v.shape)]
    low = -n if g.opset >= 11 and g.rng.random() < 0.4 else 0
    if np.prod(shape) * v.size / n > 5000:
        raise Unfit("large")
    where = g.fresh(g.rng.choice([I64, I64, I32]), shape, low=low, high=n - 1)
    g.add(Draft(op, (v, where), {"axis": axis} if axis or g.rng.random() < 0.5 else {}), "move")


def gather_nd(g, op):
    v = g.operand(MOVED, where=lambda v: v.rank > 0 and min(v.shape) > 0)
    batch = g.rng.randrange(0, min(2, v.rank)) if g.opset >= 12 else 0
    depth = g.rng.randrange(1, v.rank - batch + 1)
    lead = [*v.shape[:batch], *[g.rng.randrange(1, 5) for _ in range(g.rng.randrange(0, 3))]]
    columns = [g.draw_array(I64, lead, low=-v.shape[batch + k], high=v.shape[batch + k] - 1) for k in range(depth)]
    g.add(Draft(op, (v, g.known(np.stack(columns, -1))), {"batch_dims": batch} if batch else {}), "move")


def scatter(g, op):
    v = g.operand((F32, I64, I32, F64, BOOL), where=lambda v: v.rank > 0 and min(v.shape) > 0)
    axis = axis_of(g, v) if g.opset >= 11 else g.rng.randrange(v.rank)
    at = axis % v.rank
    n = g.rng.randrange(1, v.shape[at] + 1)
    shape = [n if a == at else g.rng.randrange(1, d + 1) for a, d in enumerate(v.shape)]
    reduction = g.rng.choice(reductions(g, v)[: 1 if op == "Scatter" else None])
    order = np.argsort(g.draw_array(F64, [*shape[:at], v.shape[at], *shape[at + 1:]], style="normal"), axis=at).take(range(n), axis=at)  # none twice
    where = g.known(order if reduction == "none" else g.draw_array(I64, shape, low=-v.shape[at], high=v.shape[at] - 1))
    g.add(Draft(op, (v, where, g.fresh(v.dtype, shape)), {"axis": axis} | ({"reduction": reduction} if reduction != "none" else {})), "move" if reduction in ("none", "max", "min") else "short")


def reductions(g, v):
    """Ways to scatter; ONNX Runtime has no larger one of truth values."""
    return ["none", "add", "mul", "max", "min"][: 1 if g.opset < 16 else 3 if g.opset < 18 or v.dtype == BOOL else 5]


def scatter_nd(g, op):
    v = g.operand((F32, I64, I32, F64, BOOL), where=lambda v: v.rank > 0 and min(v.shape) > 0)
    depth = g.rng.randrange(1, v.rank + 1)
    places = int(np.prod(v.shape[:depth]))
    n = g.rng.randrange(1, min(places, 9) + 1)
    flat = g.rng.sample(range(places), n)
    where = g.known(np.stack(np.unravel_index(flat, v.shape[:depth]), -1).astype(I64))
    reduction = g.rng.choice(reductions(g, v))
    g.add(Draft(op, (v, where, g.fresh(v.dtype, [n, *v.shape[depth:]])), {"reduction": reduction} if reduction != "none" else {}), "move" if reduction in ("none", "max", "min") else "short")


def one_hot(g, op):
    v = g.operand((I64, I32), low=-3, high=8)
    values = g.known(np.array(g.rng.choice([[0, 1], [1, 0], [-2, 3]]), g.rng.choice([F32, I64, I32])))
    g.add(Draft(op, (v, g.known(np.asarray(g.rng.choice([2, 5, 8]), I64)), values), attributes_of(g, {"axis": [-1, 0]})), "move")


def reverse(g, op):
    v = g.operand((F32, I64, F64), where=lambda v: v.rank > 1 and min(v.shape) > 0)
    batch, time = g.rng.choice([(1, 0), (0, 1)])
    g.add(Draft(op, (v, g.fresh(I64, [v.shape[batch]], low=1, high=v.shape[time])), {"batch_axis": batch, "time_axis": time}), "move")


def depth(g, op):
    b = g.rng.choice([1, 2, 2, 3])
    c, h, w = g.rng.choice([1, 2, 3]), g.rng.choice([1, 2, 3]), g.rng.choice([1, 2, 4])
    shape = (2, c * b * b, h, w) if op == "DepthToSpace" else (2, c, h * b, w * b)
    v = g.operand((F32, F16, F64), shape=shape)
    g.add(Draft(op, (v,), {"blocksize": b} | ({"mode": g.rng.choice(["DCR", "CRD"])} if op == "DepthToSpace" and g.opset >= 11 else {})), "move")


def trilu(g, op):
    v = g.operand((F32, I64, I32, F16), where=lambda v: v.rank > 1)
    g.add(Draft(op, trimmed(v, maybe(g, lambda: ints(g, g.rng.choice([-2, -1, 0, 1, 3])))), attributes_of(g, {"upper": [0, 1]})), "move")


def shape_like(g, op):
    v = g.operand(ALL)
    if op == "Shape":
        g.add(Draft(op, (v,), attributes_of(g, {"start": [0, 1, -1], "end": [1, 2, -1]}) if g.opset >= 15 else {}), "move")
    elif op == "Size":
        g.add(Draft(op, (v,)), "move")
    elif op == "ConstantOfShape":
        from onnx import numpy_helper
        value = g.draw_array(g.rng.choice([F32, I64, I32, F64, BOOL]), (1,))
        g.add(Draft(op, (ints(g, g.draw_shape()),), {"value": numpy_helper.from_array(value)} if g.rng.random() < 0.8 else {}), "move")
    else:
        v = g.operand((F32, I64, I32, F64), rank=2)
        g.add(Draft(op, (v,), attributes_of(g, {"k": [-1, 0, 2], "dtype": [1, 6, 7]})), "move")


def range_(g, op):
    dtype = g.rng.choice([F32, I64, I32])
    start, step, count = g.rng.randrange(-4, 5), g.rng.choice([1, 2, 3, -1, -2]), g.rng.randrange(0, 9)
    g.add(Draft(op, tuple(g.known(np.asarray(x, dtype)) for x in (start, start + step * count - (step > 0) + (step < 0), step))), "move")


def center(g, op):
    v = g.operand((F32, I32, I64), where=lambda v: v.rank > 1)
    axes = sorted({a % v.rank for a in pick_axes(g, v)})
    g.add(Draft(op, (v, ints(g, [g.rng.choice([1, 2, 5, 8]) for _ in axes])), {"axes": axes}), "move")


def top_k(g, op):
    v = g.operand((F32, I64, F64, I32), exact=True, where=lambda v: v.rank > 0 and min(v.shape) > 0)
    axis = axis_of(g, v)
    attributes = {"axis": axis} | (attributes_of(g, {"largest": [0, 1]}) if g.opset >= 11 else {})
    g.add(Draft(op, (v, ints(g, [g.rng.randrange(1, v.shape[axis] + 1)])), attributes, 2), "decides")


def counted(g, op):
    """Results whose number depends on data: known here, and declared where they reach an output."""
    v = g.operand((F32, I64, I32, BOOL) if op == "NonZero" else (F32, I64, I32), exact=True, where=lambda v: v.rank > 0 and 0 < v.size < 300)
    if op == "NonZero":
        g.add(Draft(op, (v,)), "decides")
    elif op == "Compress":
        axis = axis_of(g, v)
        g.add(Draft(op, (v, g.fresh(BOOL, [v.shape[axis]])), {"axis": axis}), "decides")
    else:
        g.add(Draft(op, (v,), attributes_of(g, {"axis": axis_of, "sorted": [1]}, v), 4), "decides")


def suppress(g, op):
    n = g.rng.choice([3, 5, 8])
    corner = np.round(g.draw_array(F32, (1, n, 2), low=0, high=20))
    boxes = g.known(np.concatenate([corner, corner + np.round(g.draw_array(F32, (1, n, 2), low=1, high=9))], -1).astype(F32), False)
    order = np.array(g.rng.sample(range(2 * n), 2 * n), F32).reshape(1, 2, n) / 16
    g.add(Draft(op, (boxes, g.known(order, False), ints(g, [g.rng.choice([1, 3])]), g.known(F32.type(0.375)), g.known(F32.type(0.1)))), "decides")


def tensor_scatter(g, op):
    v = g.operand((F32, F16), shape=(2, 3, 7, 4))
    g.add(Draft(op, trimmed(v, g.fresh(v.dtype, (2, 3, 2, 4)), maybe(g, lambda: g.fresh(I64, (2,), low=0, high=5))), attributes_of(g, {"mode": ["linear", "circular"]})), "move")


ROWS = [
    Row("Reshape", reshape, 4), Row("Flatten", lambda g, op: flatten(g, op), 0.8), Row("Squeeze Unsqueeze", squeeze, 2), Row("Transpose", transpose, 4), Row("Expand", expand, 1.5),
    Row("Tile", tile), Row("Concat", concat, 2.5), Row("Split", split, 1.5), Row("Slice", slice_, 3), Row("DepthToSpace SpaceToDepth", depth, 0.8), Row("Pad", pad, 2.5),
    Row("CenterCropPad", center, 0.3), Row("Gather GatherElements", gather, 2), Row("GatherND", gather_nd, 0.7), Row("ReverseSequence", reverse, 0.4), Row("ScatterElements Scatter", scatter),
    Row("ScatterND", scatter_nd, 0.7), Row("TensorScatter", tensor_scatter, 0.2), Row("Compress NonZero Unique", counted, 0.5), Row("NonMaxSuppression", suppress, 0.2),
    Row("Range", range_, 0.4), Row("ConstantOfShape EyeLike Shape Size", shape_like), Row("OneHot", one_hot, 0.6), Row("Trilu", trilu, 0.6), Row("TopK", top_k),
]


def flatten(g, op):
    v = g.operand(MOVED)
    g.add(Draft(op, (v,), {"axis": g.rng.randrange(0 if g.opset < 11 else -v.rank, v.rank + 1)} if v.rank else {"axis": 0}), "move")
