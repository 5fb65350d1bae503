"""A graph that grows node by node, each of which is evaluated as it is added, so that shapes, types, ranges and whether a
result is exact are facts, not rules.

A value is exact if every right program gives its bits: it is made of the inputs by moves, by whole numbers, or by sums and
products of short fractions. Only exact values are compared, rounded, sorted or used as positions.
"""
import dataclasses

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from evaluate import BF16, I4, U4, Draft, Unfit, check, evaluate, rounds_a_tie, same_in_halves
from forms import MEANING, schema_of, stands_in, written_then

F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
I8, U8, I16, U16, I32, U32, I64, U64, BOOL = (np.dtype(t) for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"))
FLOATS, WHOLE = (F32, F16, BF16, F64), (I64, I32, I16, I8, U8, U16, U32, U64)
NUMBERS = FLOATS + WHOLE
ALL = NUMBERS + (BOOL,)
MOST_ELEMENTS = 6000  # of a tensor
STEP = {F32: 32.0, F64: 32.0, F16: 2.0, BF16: 1.0}       # operands that are multiples of 1 / STEP
EXACT_BELOW = {F32: 4096.0, F64: 4096.0, F16: 256.0, BF16: 64.0}  # and sums and products below this are exact
LARGEST = {F32: 1e4, F64: 1e6, F16: 3e4, BF16: 1e4}


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    name: str
    array: np.ndarray
    exact: bool = True
    constant: bool = False  # known while compiling
    random: bool = False  # nobody can tell its numbers

    def __post_init__(self):
        if isinstance(self.array, str):  # ONNX Runtime gives a text of rank 0 so
            object.__setattr__(self, "array", np.array(self.array, object))

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def size(self):
        return self.array.size

    @property
    def most(self):
        return magnitude(self.array)


def magnitude(array):
    """The largest absolute value; infinite if any is not finite."""
    if array.size == 0:
        return 0.0
    wide = array.astype(np.float64)
    return float(np.abs(wide).max()) if np.isfinite(wide).all() else np.inf


def is_float(dtype):
    return dtype in STEP


def short(array):
    """Sums and products of such numbers are exact."""
    if not is_float(array.dtype):
        return True
    with np.errstate(all="ignore"):
        scaled = array.astype(np.float64) * STEP[array.dtype]
        return bool((scaled == np.round(scaled)).all()) and magnitude(array) < EXACT_BELOW[array.dtype]


@dataclasses.dataclass
class Node:
    proto: onnx.NodeProto
    draft: Draft
    kind: str
    results: tuple  # of Value


class Graph:
    """`outer` is the graph around a body."""

    def __init__(self, rng, opset, types, outer=None, names=None):
        self.rng, self.opset, self.types, self.outer = rng, opset, types, outer
        self.names = outer.names if outer else names
        self.shapes = outer.shapes if outer else []
        self.nodes, self.inputs, self.constants, self.values = [], [], [], []
        self.captured = list(outer.values[-6:]) if outer else []
        self.depth = outer.depth + 1 if outer else 0
        self.most = outer.most if outer else MOST_ELEMENTS
        self.style = outer.style if outer else rng.choice(["fractions", "normal", "ties", "normal", "large"])

    # --- values ---

    def draw_array(self, dtype, shape, low=None, high=None, style=None):
        """Numbers of a type; floats within [low, high] where these are given."""
        r = np.random.default_rng(self.rng.randrange(1 << 40))
        shape, style = tuple(int(d) for d in shape), style or self.style
        if dtype == BOOL:
            return r.integers(0, 2, shape).astype(BOOL)
        if not is_float(dtype):
            if style == "edges" and low is None and high is None and dtype not in (I4, U4):
                return self.edges(r, dtype, shape)
            info = (-8, 8) if dtype == I4 else (0, 16) if dtype == U4 else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
            span = (-9, 10) if style != "large" else (-120, 256)
            low, high = (info[0] if span[0] < info[0] else span[0]) if low is None else low, (min(span[1], info[1]) if high is None else high + 1)
            return r.integers(low, high, shape).astype(dtype)
        if low is not None or high is not None:
            low, high = (-4.0 if low is None else low), (4.0 if high is None else high)
            return (np.round(r.uniform(low, high, shape) * 64) / 64).clip(low, high).astype(dtype)
        if style == "edges":
            return self.edges(r, dtype, shape)
        if style == "normal":
            return r.standard_normal(shape).astype(dtype)
        if style == "ties":
            return r.integers(-2, 3, shape).astype(dtype)
        if style == "large":
            return (r.standard_normal(shape) * (1000 if dtype == F16 else 30)).astype(dtype)
        return (r.integers(-16, 17, shape) / (2 if dtype in (F16, BF16) else 8)).astype(dtype)

    def edges(self, r, dtype, shape):
        """Numbers at the edges of a type among others: some tensors have many of them, others one kind."""
        if is_float(dtype):
            info = ml_dtypes.finfo(dtype)
            most = float(info.max) if dtype in (F16, BF16) else float(info.max)**0.4  # of which products are finite
            odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, most, -most, float(info.tiny), float(info.smallest_subnormal), -float(info.tiny) / 2, 2.5, -2.5, 0.5, 88.8, -104.0, 65504.0, 2.0**31, -2.0**63]
            usual = r.standard_normal(shape) * 2
        else:
            info = np.iinfo(dtype)
            odd = [info.max, info.min, info.max - 1, info.min + 1, *(n for n in (2**53 + 1, 2**31, -2**31, 2**24 + 1) if info.min <= n <= info.max)]
            usual = r.integers(0, 9, shape)
        few = self.rng.sample(odd, self.rng.choice([1, 1, 2, len(odd)]))
        with np.errstate(all="ignore"):
            return np.where(r.random(shape) < self.rng.choice([0.1, 0.5]), np.array(few, np.asarray(odd, None).dtype if is_float(dtype) else dtype)[r.integers(0, len(few), shape)], usual).astype(dtype)

    def fresh(self, dtype, shape, constant=None, **limits):
        return self.known(self.draw_array(dtype, shape, **limits), constant)

    def known(self, array, constant=True):
        """A new input or constant of the graph, which has this value."""
        constant = self.rng.random() < 0.5 if constant is None else constant
        array = np.asarray(array)
        value = Value(self.names(), array, constant=constant or self.depth > 0)
        (self.constants if value.constant else self.inputs).append(value)
        self.values.append(value)
        return value

    def visible(self):
        return self.captured + self.values

    def pick(self, fits, default=None):
        """One of the values that fit, a recent one rather; or None."""
        fitting = [v for v in self.visible() if fits(v)]
        if not fitting:
            return default
        return self.rng.choice(fitting[-5:] if self.rng.random() < 0.75 else fitting)

    def draw_type(self, types):
        preferred = [t for t in self.types if t in types]
        return self.rng.choice(preferred) if preferred and self.rng.random() < 0.85 else self.rng.choice(types)

    def draw_shape(self, rank=None):
        fitting = [s for s in self.shapes if rank is None or len(s) == rank]
        if fitting and self.rng.random() < 0.75:
            return self.rng.choice(fitting)
        rank = self.rng.choice([0, 1, 2, 2, 3, 3, 4, 4, 5]) if rank is None else rank
        sizes = [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 65] if rank < 3 else [1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17]
        while True:
            shape = tuple(0 if self.rng.random() < 0.006 else self.rng.choice(sizes) for _ in range(rank))
            if np.prod(shape) <= 2500:
                return shape

    def operand(self, types=NUMBERS, rank=None, where=lambda v: True, exact=False, shape=None, fresh=0.15, constant=None, **limits):
        """A value of one of the types: one that is there, or a new one."""
        def fits(v):
            return (v.dtype in types and (rank is None or v.rank == rank) and (shape is None or v.shape == tuple(shape)) and (v.exact or not exact)
                    and (constant is None or v.constant == constant) and within(v.array, limits) and where(v))
        found = self.pick(fits) if self.rng.random() >= fresh else None
        if found is not None:
            return found
        for _ in range(12):
            made = self.fresh(self.draw_type(types), self.draw_shape(rank) if shape is None else shape, constant, **limits)
            if where(made):
                return made
            self.forget(made)
        raise Unfit("no operand")

    def forget(self, value):
        for values in (self.values, self.inputs, self.constants):
            values[:] = [v for v in values if v is not value]

    # --- nodes ---

    def constants_of(self, draft, bodies=()):
        values = {v.name: v.array for v in draft.operands if v is not None}
        for body in bodies:
            values.update({v.name: v.array for v in body.captured_used()})
        return values

    def add(self, draft, kind="never", bodies=(), meaning=None):
        """Appends a node and returns its results; raises Unfit where it cannot be. `kind` says which results are exact:
        move (if the operands are), short (and short fractions), whole, never, or decides (and operands have to be exact);
        `meaning` is what the node says in operator set 17."""
        operands = [v for v in draft.operands if v is not None]
        exact = all(v.exact for v in operands)
        if kind == "decides" and not exact:
            raise Unfit("decided by rounded values")
        if rounds_a_tie(draft):
            raise Unfit("a tie, which ONNX Runtime rounds away from zero")
        outputs = [self.names() for _ in range(draft.outputs)]
        then = written_then(draft, self.opset)
        node, arrays = node_of(then, outputs), None
        try:
            arrays = evaluate(then, node, self.constants_of(then, bodies), self.opset)
        except Unfit:
            if not stands_in(draft, self.opset):
                raise
            today = meaning or draft
            arrays = evaluate(today, node_of(today, outputs), self.constants_of(today), MEANING)
            check(node, self.constants_of(then), self.opset)
        if kind == "short":
            steps = max([1, *(v.size for v in operands)]) if draft.op in SUMS else 1
            most = np.prod([max(1.0, v.most) for v in operands]) ** (2 if draft.op == "ReduceSumSquare" else 1) * steps
            if draft.op.startswith("Reduce") and not is_float(operands[0].dtype) and most > np.iinfo(operands[0].dtype).max:
                raise Unfit("may overflow")
            exact = exact and all(short(v.array) for v in operands) and most < EXACT_BELOW.get(operands[0].dtype, np.inf)
        elif kind == "never" or draft.op == "QuantizeLinear" and not same_in_halves(draft):
            exact = False
        random = draft.op in RANDOM or any(v.random for v in operands) or any(body.is_random() for body in bodies)
        results = tuple(Value(name, array, exact or (kind == "whole" and not is_float(array.dtype)), all(v.constant for v in operands), random)
                        for name, array in zip(outputs, arrays))
        if len(results) != draft.outputs or any(v.size > self.most for v in results):
            raise Unfit("too large")
        for v in results:
            if is_float(v.dtype) and self.style != "edges" and not v.most <= LARGEST[v.dtype]:
                raise Unfit("too large a number")
        self.nodes.append(Node(node, draft, kind, results))
        self.values.extend(results)
        return results

    def op(self, op, *operands, kind="never", outputs=1, domain="", **attributes):
        """Appends a node; one result or a tuple."""
        results = self.add(Draft(op, operands, attributes, outputs, domain), kind)
        return results[0] if outputs == 1 else results

    def append_known(self, nodes, array, exact, reads):
        """Appends nodes whose last result, named {}, has a value that is known without evaluating them: sequences."""
        value = Value(self.names(), np.asarray(array), exact)
        nodes[-1].output[:] = [name.replace("{}", value.name) if name == "{}" else name for name in nodes[-1].output]
        for proto in nodes:
            schema_of(proto.op_type, "", self.opset)
            self.nodes.append(Node(proto, Draft(proto.op_type, tuple(reads)), "move", ()))
        self.nodes[-1].results = (value,)
        self.values.append(value)

    def is_random(self):
        return any(r.random for node in self.nodes for r in node.results) or any(v.random for v in self.captured_used())

    def captured_used(self):
        """Values of the graphs around that this body reads."""
        own = {v.name for v in self.values}
        names = {name for node in self.nodes for name in node.proto.input}
        for node in self.nodes:
            for attribute in node.proto.attribute:
                if attribute.HasField("g"):
                    names |= free_names(attribute.g)
        around, result = self.outer, []
        while around:
            result += [v for v in around.values if v.name in names and v.name not in own]
            around = around.outer
        return result


def node_of(draft, outputs):
    return helper.make_node(draft.op, [v.name if v is not None else "" for v in draft.operands], outputs, domain=draft.domain, **draft.attributes)


def free_names(graph):
    """Names that a body reads and does not define."""
    defined = {v.name for v in graph.input} | {t.name for t in graph.initializer} | {name for node in graph.node for name in node.output}
    read = {name for node in graph.node for name in node.input if name} | {v.name for v in graph.output}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                read |= free_names(attribute.g)
    return read - defined


def free_names_of(proto):
    """Names that the bodies of a node read from outside."""
    return {name for a in proto.attribute if a.HasField("g") for name in free_names(a.g)}


RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
SUMS = {"MatMul", "Gemm", "Conv", "ReduceSum", "ReduceSumSquare", "ReduceL1", "CumSum", "Einsum", "Sum", "ReduceProd", "CumProd"}


def within(array, limits):
    if not limits:
        return True
    if array.size == 0:
        return True
    wide = array.astype(np.float64)
    return bool(np.isfinite(wide).all() and wide.min() >= limits.get("low", -np.inf) and wide.max() <= limits.get("high", np.inf))
