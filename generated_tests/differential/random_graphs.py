"""Random valid graphs: chains and diamonds of common operators over several element types, shapes with ones and odd sizes.

A graph grows node by node. Every value knows its type, its shape, a bound of its magnitude, and whether it is exact: made of
inputs by moves, maxima and whole numbers alone. Only exact values are compared, rounded or sorted, so that two right
programs cannot take different sides. Floats that grow are brought back by a Tanh.
"""
import dataclasses
import random

import numpy as np

from case import Case, ints

F32, I64, I32, U8, BOOL = (np.dtype(t) for t in (np.float32, np.int64, np.int32, np.uint8, np.bool_))
ONNX_TYPE = {F32: 1, U8: 2, I32: 6, I64: 7, BOOL: 9}
LARGEST = 64.0  # of a float that is kept as it is
ELEMENTS = 4096


@dataclasses.dataclass(frozen=True)
class Value:
    name: str
    dtype: np.dtype
    shape: tuple
    bound: float = 4.0
    exact: bool = True

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))


class Graph:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.inputs, self.weights, self.lines, self.values, self.used = {}, {}, [], [], set()
        self.count = 0

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def array(self, dtype, shape):
        r = np.random.default_rng(self.rng.randrange(1 << 30))
        if dtype == F32:
            return (r.integers(-16, 17, shape) / 8 + r.standard_normal(shape) * 0.5).astype(F32)
        if dtype == BOOL:
            return r.integers(0, 2, shape).astype(BOOL)
        return r.integers(0 if dtype == U8 else -9, 10, shape).astype(dtype)

    def input(self, dtype, shape):
        value = Value(self.name("x"), dtype, tuple(shape))
        self.inputs[value.name] = self.array(dtype, shape)
        self.values.append(value)
        return value

    def weight(self, array):
        name = self.name("w")
        self.weights[name] = np.asarray(array)
        return name

    def add(self, op, operands, dtype, shape, bound, exact, attributes=""):
        """Appends a node; a result that is too large is brought back."""
        value = Value(self.name("v"), dtype, tuple(int(d) for d in shape), bound, exact)
        names = [v.name if isinstance(v, Value) else v for v in operands]
        self.used.update(names)
        self.lines.append(f"{value.name} = {op} {attributes}({', '.join(names)})")
        if dtype == F32 and bound > LARGEST:
            return self.add("Tanh", [value], F32, shape, 1.0, False)
        self.values.append(value)
        return value

    def pick(self, wanted=lambda v: True):
        fitting = [v for v in self.values if wanted(v)]
        if not fitting:
            return None
        return self.rng.choice(fitting[-6:] if self.rng.random() < 0.7 else fitting)


def is_float(v):
    return v.dtype == F32


def is_whole(v):
    return v.dtype in (I64, I32)


def float_unary(g):
    v = g.pick(is_float)
    op, bound, exact = g.rng.choice([
        ("Relu", v.bound, v.exact), ("Neg", v.bound, v.exact), ("Abs", v.bound, v.exact), ("Sigmoid", 1, False), ("Tanh", 1, False),
        ("Erf", 1, False), ("Softplus", v.bound + 1, False), ("Sin", 1, False), ("Cos", 1, False), ("HardSwish", v.bound, False),
        ("LeakyRelu", v.bound, False), ("Elu", v.bound, False), ("Gelu", v.bound, False), ("Mish", v.bound, False), ("Softsign", 1, False),
        ("Identity", v.bound, v.exact), ("Exp", np.exp(v.bound), False)])
    if op == "Exp" and v.bound > 6:
        return
    g.add(op, [v], F32, v.shape, bound, exact)


def of_positive(g):
    v = g.pick(is_float)
    positive = g.add("Add", [g.add("Abs", [v], F32, v.shape, v.bound, v.exact), g.weight(F32.type(0.5))], F32, v.shape, v.bound + 0.5, False)
    op, bound = g.rng.choice([("Sqrt", positive.bound), ("Log", positive.bound), ("Reciprocal", 2.0)])
    g.add(op, [positive], F32, v.shape, bound, False)


def partner(g, v):
    """Another operand that v broadcasts with: a value of the graph, or a constant."""
    other = g.pick(lambda o: o.dtype == v.dtype and broadcast(o.shape, v.shape) is not None)
    if other and g.rng.random() < 0.7:
        return other, other.shape, other.bound, other.exact
    shape = [d if g.rng.random() < 0.6 else 1 for d in v.shape][g.rng.randrange(v.rank + 1):]
    array = g.array(v.dtype, shape)
    return g.weight(array), shape, float(np.abs(array.astype(np.float64)).max(initial=0)), True


def broadcast(a, b):
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        return None
    return shape if np.prod(shape, dtype=np.int64) <= ELEMENTS else None


def binary(g):
    v = g.pick(lambda v: is_float(v) or is_whole(v))
    other, shape, bound, exact = partner(g, v)
    result = broadcast(v.shape, shape)
    op = g.rng.choice(["Add", "Sub", "Mul", "Max", "Min", "Add", "Mul"])
    if result is None:
        return
    limit = {"Mul": v.bound * bound, "Add": v.bound + bound, "Sub": v.bound + bound}.get(op, max(v.bound, bound))
    keeps = not is_float(v) or op in ("Max", "Min")
    operands = [v, other] if g.rng.random() < 0.7 else [other, v]
    g.add(op, operands, v.dtype, result, limit, keeps and v.exact and exact)


def whole_unary(g):
    v = g.pick(is_whole)
    if not v:
        return
    op = g.rng.choice(["Abs", "Neg", "Sign", "Mod", "Div", "BitwiseAnd", "BitwiseXor"])
    operands = [v]
    if op in ("Mod", "Div", "BitwiseAnd", "BitwiseXor"):
        operands.append(g.weight(v.dtype.type(g.rng.choice([2, 3, 5, 7, 16]))))
    if op == "Div":  # rounds to zero in one runtime and down in another: only positive numbers
        operands[0] = g.add("Abs", [v], v.dtype, v.shape, v.bound, True)
    g.add(op, operands, v.dtype, v.shape, v.bound + 16, True)


def compare(g):
    v = g.pick(lambda v: v.exact and (is_float(v) or is_whole(v)))
    other, shape, _, exact = partner(g, v) if v else (None, None, 0, False)
    result = broadcast(v.shape, shape) if exact else None
    if result is not None:
        g.add(g.rng.choice(["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"]), [v, other], BOOL, result, 1, True)


def logic(g):
    v = g.pick(lambda v: v.dtype == BOOL)
    if not v:
        return
    if g.rng.random() < 0.3:
        g.add("Not", [v], BOOL, v.shape, 1, True)
        return
    other, shape, _, _ = partner(g, v)
    result = broadcast(v.shape, shape)
    if result is not None:
        g.add(g.rng.choice(["And", "Or", "Xor"]), [v, other], BOOL, result, 1, True)


def where(g):
    test = g.pick(lambda v: v.dtype == BOOL)
    a = g.pick(lambda v: is_float(v) or is_whole(v))
    if not test:
        return
    other, shape, bound, exact = partner(g, a)
    half = broadcast(a.shape, shape)
    result = broadcast(half, test.shape) if half is not None else None
    if result is not None:
        g.add("Where", [test, a, other], a.dtype, result, max(a.bound, bound), a.exact and exact)


def cast(g):
    v = g.pick(lambda v: v.exact)
    to = g.rng.choice([F32, F32, I64, I32, U8, BOOL])
    if not v or to == v.dtype or (to == U8 and v.dtype != BOOL) or (to == F32 and v.bound > LARGEST):
        return
    g.add("Cast", [v], to, v.shape, max(v.bound, 1), True, f"<to = {ONNX_TYPE[to]}>")


def transpose(g):
    v = g.pick(lambda v: v.rank > 1)
    if v:
        order = g.rng.sample(range(v.rank), v.rank)
        g.add("Transpose", [v], v.dtype, [v.shape[a] for a in order], v.bound, v.exact, f"<perm = {order}>")


def reshape(g):
    v = g.pick()
    left, shape = v.size, []
    while left > 1 and len(shape) < 3:
        factors = [f for f in range(2, left + 1) if left % f == 0]
        shape.append(g.rng.choice(factors))
        left //= shape[-1]
    shape = [*shape, left] if left > 1 or g.rng.random() < 0.3 else shape
    g.add("Reshape", [v, g.weight(ints(*shape))], v.dtype, shape, v.bound, v.exact)


def slice_(g):
    v = g.pick(lambda v: v.rank > 0 and max(v.shape) > 1)
    if not v:
        return
    axis = g.rng.choice([a for a in range(v.rank) if v.shape[a] > 1])
    n = v.shape[axis]
    if g.rng.random() < 0.3:
        begin, end, step = n - 1, -n - 1, -g.rng.randrange(1, 3)
    else:
        begin, step = g.rng.randrange(n), g.rng.randrange(1, 3)
        end = g.rng.randrange(begin + 1, n + 2)
    length = len(range(*slice(begin, end if end >= 0 else None, step).indices(n)))
    operands = [v, *(g.weight(ints(x)) for x in (begin, end, axis, step))]
    g.add("Slice", operands, v.dtype, [*v.shape[:axis], length, *v.shape[axis + 1:]], v.bound, v.exact)


def concat(g):
    v = g.pick(lambda v: v.rank > 0)
    if not v:
        return
    axis = g.rng.randrange(v.rank)
    other = g.pick(lambda o: o.dtype == v.dtype and o.rank == v.rank and all(
        a == axis or o.shape[a] == v.shape[a] for a in range(v.rank))) or v
    shape = [*v.shape[:axis], v.shape[axis] + other.shape[axis], *v.shape[axis + 1:]]
    if np.prod(shape) <= ELEMENTS:
        g.add("Concat", [v, other], v.dtype, shape, max(v.bound, other.bound), v.exact and other.exact, f"<axis = {axis - g.rng.choice([0, v.rank])}>")


def pad(g):
    v = g.pick(lambda v: v.dtype in (F32, I64, I32) and 0 < v.rank and min(v.shape, default=0) > 2 and v.size < ELEMENTS // 4)
    if not v:
        return
    before, after = ([g.rng.randrange(3) for _ in v.shape] for _ in range(2))
    mode = g.rng.choice(["constant", "reflect", "edge"])
    g.add("Pad", [v, g.weight(ints(*before, *after))], v.dtype, np.add(np.add(v.shape, before), after), v.bound, v.exact, f'<mode = "{mode}">')


def expand(g):
    v = g.pick(lambda v: v.size < ELEMENTS // 8)
    if v:
        shape = [g.rng.choice([2, 3]) if d == 1 else d for d in v.shape]
        if g.rng.random() < 0.4:
            shape = [g.rng.choice([1, 2, 3]), *shape]
        g.add("Expand", [v, g.weight(ints(*shape))], v.dtype, shape, v.bound, v.exact)


def gather(g):
    v = g.pick(lambda v: v.rank > 0 and min(v.shape) > 0)
    if not v:
        return
    axis = g.rng.randrange(v.rank)
    places = g.array(I64, [g.rng.randrange(1, 5)] * g.rng.randrange(3)) % v.shape[axis]
    shape = [*v.shape[:axis], *places.shape, *v.shape[axis + 1:]]
    if np.prod(shape) <= ELEMENTS:
        g.add("Gather", [v, g.weight(places)], v.dtype, shape, v.bound, v.exact, f"<axis = {axis}>")


def reduce_(g):
    v = g.pick(lambda v: (is_float(v) or is_whole(v)) and v.rank > 0 and v.size > 0)
    if not v:
        return
    axes = sorted(g.rng.sample(range(v.rank), g.rng.randrange(1, v.rank + 1)))
    keep = g.rng.randrange(2)
    op = g.rng.choice(["ReduceSum", "ReduceMax", "ReduceMin"] + (["ReduceMean", "ReduceL2", "ReduceSumSquare"] if is_float(v) else []))
    n = int(np.prod([v.shape[a] for a in axes]))
    bound = {"ReduceSum": v.bound * n, "ReduceL2": v.bound * n**0.5, "ReduceSumSquare": v.bound**2 * n}.get(op, v.bound)
    shape = [1 if a in axes else d for a, d in enumerate(v.shape) if keep or a not in axes]
    g.add(op, [v, g.weight(ints(*axes))], v.dtype, shape, bound, v.exact and (not is_float(v) or op in ("ReduceMax", "ReduceMin")),
          f"<keepdims = {keep}>")


def rows(g):
    v = g.pick(lambda v: is_float(v) and v.rank > 0 and v.size > 0)
    if not v:
        return
    axis = g.rng.randrange(v.rank)
    op = g.rng.choice(["Softmax", "LogSoftmax", "LayerNormalization", "CumSum", "ArgMax", "LpNormalization"])
    if op == "LayerNormalization":
        if np.prod(v.shape[axis:]) > 1:
            scale = g.weight(g.array(F32, v.shape[axis:]))
            g.add(op, [v, scale], F32, v.shape, 20.0, False, f"<axis = {axis}, epsilon = 0.01>")
    elif op == "CumSum":
        g.add(op, [v, g.weight(np.int64(axis))], F32, v.shape, v.bound * v.shape[axis], False, f"<reverse = {g.rng.randrange(2)}>")
    elif op == "ArgMax":
        if v.exact:
            g.add(op, [v], I64, [*v.shape[:axis], *v.shape[axis + 1:]], max(v.shape), True, f"<axis = {axis}, keepdims = 0>")
    elif op != "LpNormalization" or g.rng.random() < 0.3:
        g.add(op, [v], F32, v.shape, 1.0 if op != "LogSoftmax" else 2 * v.bound + 9, False, f"<axis = {axis}>")


def matmul(g):
    v = g.pick(lambda v: is_float(v) and v.rank > 1)
    if not v:
        return
    k = v.shape[-1]
    other = g.pick(lambda o: is_float(o) and o.rank > 1 and o.shape[-2] == k and broadcast(o.shape[:-2], v.shape[:-2]) is not None)
    if other and g.rng.random() < 0.5:
        batch, n, bound, right = broadcast(v.shape[:-2], other.shape[:-2]), other.shape[-1], other.bound, other
    else:
        n = g.rng.choice([1, 3, 8, 17, 33])
        array = (g.array(F32, (k, n)) / max(1, k)).astype(F32)
        batch, bound, right = v.shape[:-2], float(np.abs(array).max(initial=0)), g.weight(array)
    shape = [*batch, v.shape[-2], n]
    if np.prod(shape) <= ELEMENTS:
        g.add("MatMul", [v, right], F32, shape, v.bound * bound * k, False)


def conv(g):
    v = g.pick(lambda v: is_float(v) and v.rank == 4 and min(v.shape) > 0)
    if not v:
        return
    c, k = v.shape[1], g.rng.choice([1, 2, 3])
    if min(v.shape[2:]) < k:
        return
    groups = g.rng.choice([1, 1, c])
    out = c * g.rng.choice([1, 2]) if groups > 1 else g.rng.choice([1, 5, 16])
    w = (g.array(F32, (out, c // groups, k, k)) / (c // groups * k * k)).astype(F32)
    p, s = g.rng.randrange(k), g.rng.choice([1, 1, 2])
    size = [(d + 2 * p - k) // s + 1 for d in v.shape[2:]]
    if v.shape[0] * out * np.prod(size) <= ELEMENTS:
        g.add("Conv", [v, g.weight(w), g.weight(g.array(F32, [out]))], F32, [v.shape[0], out, *size], v.bound * 4 + 4, False,
              f"<pads = [{p},{p},{p},{p}], strides = [{s},{s}], group = {groups}>")


def pool(g):
    v = g.pick(lambda v: is_float(v) and v.rank == 4 and min(v.shape[2:]) > 1)
    if v:
        op, s = g.rng.choice(["MaxPool", "AveragePool"]), g.rng.choice([1, 2])
        g.add(op, [v], F32, [*v.shape[:2], *((d - 2) // s + 1 for d in v.shape[2:])], v.bound, v.exact and op == "MaxPool",
              f"<kernel_shape = [2,2], strides = [{s},{s}]>")


STEPS = [float_unary] * 5 + [of_positive] + [binary] * 6 + [whole_unary, compare, logic, where, cast, transpose, transpose, reshape,
         reshape, slice_, concat, pad, expand, gather, reduce_, reduce_, rows, rows, matmul, matmul, conv, pool]
SHAPES = [(2, 3, 8, 7), (1, 16, 6, 6), (1, 5, 9, 4), (4, 17), (3, 1, 33), (7,), (1, 1), (2, 12, 16), (), (1, 8, 1, 5)]


def random_case(seed):
    """The graph of a seed, as a case of the differential test."""
    g = Graph(seed)
    g.input(F32, g.rng.choice(SHAPES))
    for _ in range(g.rng.randrange(3)):
        g.input(g.rng.choice([F32, F32, I64, I32, BOOL]), g.rng.choice(SHAPES))
    wanted = g.rng.randrange(4, 28)
    for _ in range(10 * wanted):
        if len(g.lines) >= wanted:
            break
        g.rng.choice(STEPS)(g)
    results = [v for v in g.values if v.name not in g.used and v.name not in g.inputs][-4:] or [g.values[-1]]
    if results[0].name in g.inputs:
        results = [g.add("Identity", [results[0]], results[0].dtype, results[0].shape, results[0].bound, True)]
    return Case(f"random_{seed}", "\n".join(g.lines), g.inputs, g.weights, tuple(v.name for v in results), bar=2e-5)
