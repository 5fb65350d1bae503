"""Large tensors of every type whose elements move: transpositions in tiles with choices, pads, cuts and sums around them, and what
ranks, counts or looks up along axes that are longer than a tile, a vector or a thread block."""
import numpy as np

from evaluate import Draft, Unfit, onnx_type
from graph import ALL, BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, is_float
from rows import Row, attributes_of, axis_of, ints, maybe, trimmed

LEAST, MOST = 700, 24000
SIZES = [1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 129, 257, 1025]
RANKED = (F32, F64, F16, I32, I64, U8, I8, I16, U16, U32, U64)


def large(g, types=ALL, rank=None, where=lambda v: True, **limits):
    """A large tensor that is there, or a new input."""
    found = g.pick(lambda v: LEAST <= v.size <= MOST and v.dtype in types and (rank is None or v.rank == rank) and not v.constant and where(v) and (v.exact or not limits)) if g.rng.random() < 0.8 else None
    if found is not None and not limits:
        return found
    for _ in range(40):
        shape = [g.rng.choice(SIZES) for _ in range(rank or g.rng.choice([2, 2, 3, 3, 4, 5]))]
        if LEAST <= np.prod(shape) <= MOST:
            made = g.fresh(g.rng.choice(types), shape, constant=False, **limits)
            if where(made):
                return made
            g.forget(made)
    raise Unfit("nothing large")


def turn(g, op):
    v = large(g, where=lambda v: v.rank > 1)
    g.op(op, v, kind="move", perm=g.rng.sample(range(v.rank), v.rank))


def beside(g, v):
    """An operand as large as v, or one that is spread along some of its axes."""
    found = g.pick(lambda o: o.shape == v.shape and o.dtype == v.dtype and o is not v)
    if found is not None and g.rng.random() < 0.6:
        return found
    return g.fresh(v.dtype, [d if g.rng.random() < 0.6 else 1 for d in v.shape])


def choice(g, op):
    """Where, between tensors that lie in other orders."""
    v = large(g)
    test = g.pick(lambda o: o.dtype == BOOL and o.shape == v.shape)
    if test is None:
        test = g.fresh(BOOL, [d if g.rng.random() < 0.7 else 1 for d in v.shape], constant=False)
    other = beside(g, v)
    g.add(Draft(op, (test, v, other) if g.rng.random() < 0.5 else (test, other, v)), "move")


def binary(g, op):
    v = large(g, (F32, F32, F16, F64, I32, I64, U8, BF16) if op != "Sub" else (F32, F16, F64, I32, I64))
    other = beside(g, v)
    g.op(op, *((v, other) if g.rng.random() < 0.6 else (other, v)), kind="short" if is_float(v.dtype) else "move")


def unary(g, op):
    v = large(g, (F32, F16, F64, BF16))
    g.op(op, v, kind="move" if op in ("Neg", "Abs", "Relu") else "never")


def compare(g, op):
    v = large(g, RANKED, where=lambda v: v.exact)
    other = beside(g, v)
    if not other.exact:
        raise Unfit("rounded")
    g.add(Draft(op, (v, other)), "decides")


def cast(g, op):
    v = large(g, (F32, F16, I8, U8, I32, BOOL, I64), where=lambda v: v.exact and v.most < 120)
    to = g.rng.choice([F32, F16, F64, I32, I64, BF16, BOOL])
    g.add(Draft(op, (v,), {"to": onnx_type(to)}), "decides" if not is_float(to) else "move")


def cut(g, op):
    v = large(g)
    axes = g.rng.sample(range(v.rank), g.rng.choice([1, 1, 2]) if v.rank > 1 else 1)
    if g.opset < 10:
        raise Unfit("attributes then")
    starts, ends, steps = [], [], []
    for a in axes:
        n = v.shape[a]
        backwards = g.rng.random() < 0.3
        starts.append(n - 1 if backwards else g.rng.choice([0, 0, 1, n // 3]))
        ends.append(-n - 1 if backwards else g.rng.choice([n, n, n - 1]))
        steps.append(-g.rng.choice([1, 1, 2]) if backwards else g.rng.choice([1, 1, 1, 2, 3]))
    g.add(Draft(op, (v, ints(g, starts), ints(g, ends), ints(g, axes), ints(g, steps))), "move")


def pad(g, op):
    v = large(g, (F32, F16, F64, I32, I64, I8, U8))
    if g.opset < 13:
        raise Unfit("floats then")
    mode = g.rng.choice(["constant", "constant", "edge", "reflect"])
    pads = [min(g.rng.choice([0, 0, 1, 3]), d - 1 if mode == "reflect" else 3) for d in v.shape * 2]
    g.add(Draft(op, trimmed(v, ints(g, pads), maybe(g, lambda: g.fresh(v.dtype, (), constant=True)) if mode == "constant" else None), {"mode": mode}), "move")


def join(g, op):
    v = large(g)
    axis = g.rng.randrange(v.rank)
    parts = [v]
    for _ in range(g.rng.choice([1, 1, 2, 3])):
        n = g.rng.choice([0, 1, 3, 16])
        parts.append(v if g.rng.random() < 0.3 else g.fresh(v.dtype, [n if a == axis else d for a, d in enumerate(v.shape)]))
    g.rng.shuffle(parts)
    if sum(p.size for p in parts) > 2 * MOST:
        raise Unfit("large")
    g.add(Draft(op, tuple(parts), {"axis": axis}), "move")


def gather(g, op):
    v = large(g)
    axis = g.rng.randrange(v.rank)
    n = v.shape[axis]
    where = g.fresh(g.rng.choice([I32, I64]), g.rng.choice([(), (1,), (3,), (2, 2), (min(n, 17),)]), low=-n, high=n - 1)
    g.add(Draft(op, (v, where), {"axis": axis}), "move")


def along(g, op):
    """GatherElements, ScatterElements with indices that are all different along the axis."""
    v = large(g, (F32, I64, I32, F16, U8, F64))
    axis = g.rng.randrange(v.rank)
    order = np.argsort(g.draw_array(F32, v.shape, style="normal"), axis)[tuple(slice(0, max(1, d - g.rng.randrange(3))) if a != axis or g.rng.random() < 0.5 else slice(None) for a, d in enumerate(v.shape))]
    where = g.known(order.astype(g.rng.choice([I32, I64])), g.rng.random() < 0.3)
    g.add(Draft(op, (v, where) if op == "GatherElements" else (v, where, g.fresh(v.dtype, where.shape)), {"axis": axis}), "move")


def top(g, op):
    v = large(g, RANKED[:5] if g.rng.random() < 0.5 else (F32,), where=lambda v: v.exact and max(v.shape) > 1)
    axis = g.rng.choice([a for a in range(v.rank) if v.shape[a] > 1])
    n = v.shape[axis]
    k = min(n, g.rng.choice([1, 2, 5, 8, 16, 17, 40, n, n - 1, n // 2 + 1]))
    g.add(Draft(op, (v, ints(g, [max(1, k)])), {"axis": axis - (v.rank if g.rng.random() < 0.3 else 0)} | (attributes_of(g, {"largest": [0, 1], "sorted": [1]}) if g.opset >= 11 else {}), 2), "decides")


def arg(g, op):
    v = large(g, RANKED[:7], where=lambda v: v.exact)
    spec = {"keepdims": [0, 1]} | ({"select_last_index": [0, 1]} if g.opset >= 12 else {})
    g.add(Draft(op, (v,), attributes_of(g, spec) | {"axis": g.rng.randrange(v.rank)}), "decides")


def running(g, op):
    v = large(g, (F32, I32, I64, F64))
    g.add(Draft(op, (v, ints(g, g.rng.randrange(v.rank))), attributes_of(g, {"exclusive": [0, 1], "reverse": [0, 1]})), "short" if is_float(v.dtype) else "move")


def reduce(g, op):
    v = large(g, (F32, F32, F16, I32, F64) if op != "ReduceMax" else (F32, F16, I32, I8, U8, F64, I64))
    axes = g.rng.sample(range(v.rank), g.rng.randrange(1, v.rank + 1))
    r = g.add(Draft(op, (v, ints(g, axes)), attributes_of(g, {"keepdims": [0, 1]})),
              "move" if op in ("ReduceMax", "ReduceMin") else "short" if op == "ReduceSum" else "never")[0]
    if r.rank == v.rank and v.dtype != U8 and g.rng.random() < 0.6:
        g.op("Sub", v, r, kind="short")


def rows(g, op):
    v = large(g, (F32, F16, F64))
    g.op(op, v, axis=g.rng.randrange(v.rank))


def distinct(g, op):
    v = large(g, (F32, I64, I32, U8, I8, F64), where=lambda v: v.exact and v.size < 4000)
    spec = {"sorted": [0, 1]} | ({"axis": axis_of} if g.rng.random() < 0.6 else {})
    g.add(Draft(op, (v,), attributes_of(g, spec, v), 4), "decides")


def reshaped(g, op):
    v = large(g)
    left, shape = v.size, []
    for _ in range(g.rng.choice([0, 1, 2, 3])):
        shape.append(g.rng.choice([f for f in range(1, min(left, 300) + 1) if left % f == 0]))
        left //= shape[-1]
    shape.insert(g.rng.randrange(len(shape) + 1), left)
    g.add(Draft(op, (v, ints(g, shape))), "move")


def spread(g, op):
    v = large(g, where=lambda v: v.size < MOST // 3)
    if op == "Tile":
        return g.add(Draft(op, (v, ints(g, [g.rng.choice([1, 1, 2]) for _ in v.shape]))), "move")
    narrow = g.fresh(v.dtype, [d if g.rng.random() < 0.5 else 1 for d in v.shape], constant=False)
    g.add(Draft(op, (narrow, ints(g, v.shape))), "move")


def triangle(g, op):
    v = large(g, (F32, I64, F16, F64, BOOL, U8))
    g.add(Draft(op, trimmed(v, maybe(g, lambda: ints(g, g.rng.choice([-40, -1, 0, 1, 33])))), attributes_of(g, {"upper": [0, 1]})), "move")


ROWS = [
    Row("Transpose", turn, 8), Row("Where", choice, 4), Row("Add Mul Sub Max", binary, 5), Row("Relu Neg Abs Sigmoid", unary, 3), Row("Greater Less Equal", compare, 2),
    Row("Cast", cast, 2), Row("Slice", cut, 4), Row("Pad", pad, 3), Row("Concat", join, 3), Row("Gather", gather, 2), Row("GatherElements ScatterElements", along, 2), Row("TopK", top, 4),
    Row("ArgMax ArgMin", arg, 2), Row("CumSum", running, 2), Row("ReduceMax ReduceMin ReduceSum ReduceMean", reduce, 3), Row("Softmax LogSoftmax", rows, 2), Row("Unique", distinct, 1.5),
    Row("Reshape", reshaped, 4), Row("Tile Expand", spread, 1.5), Row("Trilu", triangle, 1),
]
