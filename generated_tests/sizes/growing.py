"""A graph with symbolic sizes that grows node by node. ONNX Runtime evaluates each node at several choices of the sizes as it is added: so
which axes are alike, and which are the same whatever is chosen, are facts and no rules."""
import numpy as np
import onnx
from answers import session as session_of
from onnx import helper, numpy_helper

OPSET = 18
MOST_ELEMENTS, LARGEST = 40000, 1e4
F32, I64, U8, BOOL = (np.dtype(t) for t in ("f4", "i8", "u1", "?"))


class Unfit(Exception):
    """What was drawn makes no sense here."""


class Value:
    """A tensor, with what it is at each choice. It is exact if every right program gives its bits: only then may it be compared, rounded or sorted."""

    def __init__(self, name, arrays, exact, constant=False, symbols=None):
        self.name, self.arrays, self.exact, self.constant, self.symbols = name, arrays, exact, constant, symbols

    @property
    def dtype(self):
        return self.arrays[0].dtype

    @property
    def rank(self):
        return self.arrays[0].ndim

    @property
    def shape(self):
        """Sizes; None: it depends on the choice."""
        return [self.sizes(axis)[0] if len(set(self.sizes(axis))) == 1 else None for axis in range(self.rank)]

    def sizes(self, axis):
        return tuple(array.shape[axis] for array in self.arrays)

    def least(self, axis):
        return min(self.sizes(axis))


def shapes_of(v):
    return [array.shape for array in v.arrays]


def broadcast(a, b):
    """Whether sizes are alike, or 1 whatever is chosen."""
    for k in range(1, min(a.rank, b.rank) + 1):
        pair = a.sizes(a.rank - k), b.sizes(b.rank - k)
        if pair[0] != pair[1] and {1} not in (set(pair[0]), set(pair[1])):
            return False
    return all(np.prod(np.broadcast_shapes(*pair)) <= MOST_ELEMENTS for pair in zip(shapes_of(a), shapes_of(b)))


class Graph:
    """`rng` draws; `choices` are sizes by symbol."""

    def __init__(self, rng, choices):
        self.rng, self.choices = rng, choices
        self.random = np.random.default_rng(rng.randrange(1 << 40))
        self.nodes, self.values, self.inputs, self.constants, self.named = [], [], [], [], 0

    def name(self):
        self.named += 1
        return f"t{self.named}"

    # --- values ---

    def eighths(self, shape):
        return (self.random.integers(-24, 25, shape) / 8).astype(np.float32)

    def input(self, symbols):
        arrays = [self.eighths([d if isinstance(d, int) else choice[d] for d in symbols]) for choice in self.choices]
        value = Value(self.name(), arrays, True, symbols=symbols)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def constant(self, array):
        value = Value(self.name(), [np.asarray(array)] * len(self.choices), True, constant=True)
        self.constants.append(value)
        return value

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def number(self, value, dtype=F32):
        return self.constant(np.array(value, dtype))

    def weight(self, *shape):
        return self.constant((self.random.standard_normal(shape) * 0.4).astype(np.float32))

    def pick(self, fits=lambda v: True, dtypes=(F32,)):
        """A value that fits, a recent one rather."""
        fitting = [v for v in self.values if v.dtype in dtypes and fits(v)]
        if not fitting:
            raise Unfit("no operand")
        return self.rng.choice(fitting[-4:] if self.rng.random() < 0.7 else fitting)

    def axis(self, v, fits=lambda axis: True):
        fitting = [axis for axis in range(v.rank) if fits(axis)]
        if not fitting:
            raise Unfit("no axis")
        return self.rng.choice(fitting)

    def either_end(self, v, axis):
        return axis - v.rank if self.rng.random() < 0.35 else axis

    def size(self, v, axis):
        """The size as a list of one number, as exporters ask for it."""
        shape, way = self.op("Shape", v), self.rng.randrange(3)
        if way == 0:
            return self.op("Gather", shape, self.ints(self.either_end(v, axis)), axis=0)
        if way == 1:
            return self.op("Slice", shape, self.ints(axis), self.ints(axis + 1))
        return self.op("Unsqueeze", self.op("Gather", shape, self.number(axis, I64), axis=0), self.ints(0))

    # --- nodes ---

    def op(self, kind, *operands, outputs=1, exact=True, **attributes):
        """Appends a node: its result, or a list of them. Raises Unfit where ONNX Runtime does, and where numbers or tensors become large."""
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(kind, [v.name if v else "" for v in operands], names, **{k: a for k, a in attributes.items() if a is not None})
        given = {v.name: v for v in operands if v}
        fed = [v for v in given.values() if not v.constant]
        graph = helper.make_graph([node], "node", [declared(v, [None] * v.rank) for v in fed], [onnx.ValueInfoProto(name=name) for name in names],
                                  [numpy_helper.from_array(v.arrays[0], v.name) for v in given.values() if v.constant])
        try:
            session = session_of(proto(graph).SerializeToString(), optimised=False)
            results = list(zip(*(session.run(None, {v.name: v.arrays[k] for v in fed}) for k in range(len(self.choices)))))
        except Exception as error:
            raise Unfit(str(error)) from None
        for array in (np.asarray(array) for arrays in results for array in arrays):
            if array.size > MOST_ELEMENTS or array.dtype == F32 and not np.abs(array).max(initial=0) < LARGEST:
                raise Unfit("too large")
        made = [Value(name, [np.asarray(a) for a in arrays], exact and all(v.exact for v in given.values())) for name, arrays in zip(names, results)]
        self.nodes.append(node)
        self.values += made
        return made[0] if outputs == 1 else made

    def model(self, outputs):
        """What the outputs need, as a model."""
        needed, nodes = {v.name for v in outputs}, []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                nodes.insert(0, node)
                needed |= set(node.input)
        inputs = [declared(v, v.symbols) for v in self.inputs if v.name in needed]
        if not inputs:
            raise Unfit("nothing is read")
        return proto(helper.make_graph(nodes, "grown", inputs, [declared(v, None) for v in outputs],
                                       [numpy_helper.from_array(v.arrays[0], v.name) for v in self.constants if v.name in needed]))


def declared(v, shape):
    return helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.dtype), shape)


def proto(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
