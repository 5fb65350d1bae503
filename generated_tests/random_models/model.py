"""The model of a seed: a graph that was grown, its outputs, its names, and how it is compiled."""
import dataclasses
import random

import numpy as np
import onnx
from onnx import helper, numpy_helper

import names
import pictures
from evaluate import DOMAINS, NEWEST, Unfit, onnx_type
from graph import BF16, F16, F32, F64, I8, I32, I64, U8, Graph
from kept import keeping
from open_sizes import NONE, Sizes, opened
from tables import LARGE, draw_row
from wrappings import wrapped

NODES = (1, 14)
FOCUS = [None, None, None, "near_misses", "near_misses", "quantised", "quantised", "products", "control", "rowwise", "moves", "elementwise", "microsoft", "learned"]
WAYS = ("wrapped", "sizes", "states")  # any focus, and the model in another way
NEWER = (*LARGE, "edges", "texts", *WAYS)  # of every fifth seed
COUNTED = {"StringSplit", "NonZero", "Compress", "Unique", "NonMaxSuppression"}  # declare their sizes, which depend on data
TYPES = [(F32,)] * 8 + [(F16,), (F16, F32), (F64,), (BF16, F32), (I64, I32, F32), (I8, U8, I32)]


@dataclasses.dataclass
class Model:
    seed: int
    graph: Graph
    outputs: list  # of Value
    wrapping: bool = False  # parts of it are written otherwise
    sizes: Sizes = NONE  # that are chosen when it runs
    states: dict = dataclasses.field(default_factory=dict)  # {an input: the output that the next run reads there}

    @property
    def inputs(self):
        return [v for v in self.graph.inputs if v.name not in self.states]

    def proto(self):
        """The ONNX model. Inputs that nothing reads stay."""
        g = self.graph
        constants = [numpy_helper.from_array(v.array, v.name) for v in g.constants]
        inputs = [helper.make_tensor_value_info(v.name, onnx_type(v.dtype), self.sizes.shape(v)) for v in g.inputs]
        kept = [r for n in g.nodes for r in n.results if r.name in self.states.values()]
        graph = helper.make_graph([n.proto for n in g.nodes], "random", inputs, [info(v) for v in self.outputs + kept], constants)
        if self.sizes.axes:
            for output in graph.output:
                output.type.tensor_type.ClearField("shape")
        else:
            graph.value_info.extend(info(r) for n in g.nodes if n.proto.op_type in COUNTED for r in n.results)
        domains = {n.domain for n in walk(graph)} - {""}
        imports = [helper.make_opsetid("", g.opset)] + [helper.make_opsetid(d, DOMAINS[d]) for d in sorted(domains)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=8 if g.opset < 19 else 10)
        if not self.wrapping:
            return model
        return wrapped(model, {v.name: v for v in g.inputs + g.constants + [r for n in g.nodes for r in n.results]}, random.Random(self.seed))


def walk(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from walk(attribute.g)


def info(v):
    return helper.make_tensor_value_info(v.name, onnx_type(v.dtype), v.shape)


def draw_opset(rng, focus):
    """Half of the models are of today; the others of all the years before."""
    if rng.random() < 0.5 or focus == "microsoft":
        return rng.choice([17, 18, 21, 22, 23, NEWEST])
    return rng.randrange(1, NEWEST + 1) if rng.random() < 0.6 else rng.randrange(7, NEWEST + 1)


def random_model(seed, focus=None):
    """The model of a seed."""
    rng = random.Random(seed)
    if not focus:
        focus = rng.choice(FOCUS)
        focus = NEWER[seed // 5 % len(NEWER)] if seed % 5 == 0 else focus
    way = focus if focus in WAYS else None
    focus = rng.choice([*FOCUS, *LARGE]) if way else focus
    g = Graph(rng, draw_opset(rng, focus), rng.choice(TYPES), names=names.maker(rng))
    g.shapes.extend(g.draw_shape() for _ in range(2))
    if focus in LARGE:
        g.most = 2 * pictures.MOST
    if focus == "edges":
        g.style = "edges"
    wanted = rng.randint(*NODES)
    for _ in range(4 * wanted):
        if len(g.nodes) >= wanted:
            break
        try:
            draw_row(g, focus)
        except Unfit:
            pass
    while not g.nodes:
        try:
            draw_row(g)
        except Unfit:
            pass
    model = another_way(rng, Model(seed, g, choose_outputs(rng, g)), way)
    model.graph.rng = model.graph.names = g.rng = g.names = None  # a finished graph can be sent to another process
    return model


def another_way(rng, model, way):
    """The model, some of it in functions, branches and loops; or with sizes that are chosen when it runs; or with states."""
    try:
        if way == "states":
            return keeping(rng, model)
        return dataclasses.replace(model, wrapping=way == "wrapped", sizes=opened(rng, model.graph) if way == "sizes" else NONE)
    except Unfit:
        return model


def choose_outputs(rng, g):
    """What nothing reads, now and then a tensor in the middle, an input or a constant; some of it stays dead, or all but one of
    a node's results."""
    read = {name for node in g.nodes for name in node.proto.input} | {v.name for b in [g] for v in b.captured_used()}
    results = [r for node in g.nodes for r in node.results if r.name and comparable(r)]
    leaves = [r for r in results if r.name not in read]
    if len(leaves) > 1 and rng.random() < 0.15:
        leaves.remove(rng.choice(leaves))
    iterated = {id(r) for node in g.nodes if node.proto.op_type in ("Loop", "Scan") for r in node.results}
    for r in [r for r in leaves if id(r) in iterated]:  # nobody reads some of what loops stack
        if len(leaves) > 1 and rng.random() < 0.4:
            leaves = [v for v in leaves if v is not r]
    chosen = leaves + [r for r in results if r.name in read and rng.random() < 0.08]
    if g.inputs and rng.random() < 0.02:
        chosen.append(rng.choice(g.inputs))
    several = [r for node in g.nodes if len(node.results) > 1 for r in node.results if r.name and comparable(r)]
    if several and rng.random() < 0.1:
        return [rng.choice(several)]
    if not chosen:
        chosen = results[-1:] or [g.op("Identity", g.known(g.draw_array(F32, (2,))), kind="move")]
    rng.shuffle(chosen)
    return chosen


def comparable(v):
    """A tensor of numbers that are known."""
    return not v.random and v.array.dtype != object and not np.isnan(v.array.astype(np.float64)).all() if v.array.dtype.kind not in "OU" else False
