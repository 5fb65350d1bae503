"""If, Loop and Scan, whose bodies are graphs that grow from the same tables; sequences; and what is random."""
import dataclasses

import numpy as np
from onnx import helper, numpy_helper

from evaluate import Draft, Unfit, onnx_type
from graph import BOOL, F16, F32, F64, I32, I64, Graph, Value, is_float
from rows import Row, ints, maybe

DEEPEST = 2


def body_of(g):
    if g.depth >= DEEPEST or g.opset < 8:
        raise Unfit("nested too deep")
    return Graph(g.rng, g.opset, g.types, outer=g)


def grow(body, most):
    """Nodes of a body; those that cannot be are left out."""
    from tables import draw_row
    for _ in range(body.rng.randrange(0, most + 1)):
        try:
            draw_row(body)
        except Unfit:
            pass


def parameter(body, value, exact=None):
    """An input of the body, with the value that it has first."""
    made = Value(body.names(), value.array, value.exact if exact is None else exact)
    body.values.append(made)
    return made


def result_like(body, dtype, shape, bounded):
    """A value of the body of this type and shape, other than a parameter where there is one; as a node's result."""
    fitting = [v for v in body.visible() if v.dtype == dtype and v.shape == shape]
    made = [v for v in fitting if any(v is r for n in body.nodes for r in n.results)]
    if not fitting and dtype.kind == "O":
        raise Unfit("no string to give")
    source = body.rng.choice(made or fitting) if fitting else body.fresh(dtype, shape)
    if bounded and is_float(dtype):
        return body.op("Tanh", source)
    return body.op("Identity", source, kind="move")


def handed_on(body, v, same_shape=False):
    """The value as a body hands it on: itself, a copy, or a view of it; of the same shape where that is asked for."""
    way = body.rng.choice(["", "Identity", "Identity", "Unsqueeze", "Reshape", "Flatten", "Concat", "Transpose"])
    if not way:
        return v
    if way == "Unsqueeze" and body.opset >= 13:
        longer = body.op("Unsqueeze", v, ints(body, body.rng.randrange(v.rank + 1)), kind="move")
        return body.op("Reshape", longer, ints(body, list(v.shape)), kind="move") if same_shape and v.size else v if same_shape else longer
    if way == "Reshape" and v.size:
        flat = body.op("Reshape", v, ints(body, -1), kind="move")
        return body.op("Reshape", flat, ints(body, list(v.shape)), kind="move") if same_shape else flat
    if way == "Flatten" and v.rank and not same_shape:
        return body.op("Flatten", v, kind="move")
    if way == "Concat" and v.rank:
        return body.op("Concat", v, kind="move", axis=0)
    if way == "Transpose" and v.rank > 1:
        turned = body.op("Transpose", v, kind="move", perm=[*range(1, v.rank), 0])
        return body.op("Transpose", turned, kind="move", perm=[v.rank - 1, *range(v.rank - 1)]) if same_shape else turned
    return body.op("Identity", v, kind="move")


def all_handed_on(body, following, most, own=()):
    """Next states and what is stacked, often one of the body's `own` inputs; now and then one value is several of them."""
    seen = body.visible() + following
    chosen = [body.rng.choice(own if own and body.rng.random() < 0.3 else seen) for _ in range(body.rng.choice(most))] if seen else []
    stacked = [handed_on(body, v) for v in chosen]
    return [handed_on(body, v, True) if body.rng.random() < 0.3 else v for v in following], stacked


def proto(body, inputs, outputs):
    """The body as ONNX writes it."""
    def info(v):
        return helper.make_tensor_value_info(v.name, onnx_type(v.dtype), v.shape)
    return helper.make_graph([n.proto for n in body.nodes], body.names(), [info(v) for v in inputs], [info(v) for v in outputs],
                             [numpy_helper.from_array(v.array, v.name) for v in body.constants])


def if_(g, op):
    condition = g.operand((BOOL,), shape=(), constant=True if g.rng.random() < 0.15 else None, fresh=0.3)
    branches, wanted = [], None
    for _ in range(2):
        body = body_of(g)
        grow(body, 4)
        if wanted is None:
            candidates = body.visible() or [body.fresh(F32, g.draw_shape())]
            chosen = g.rng.sample(candidates, min(len(candidates), g.rng.choice([1, 1, 2])))
            wanted = [(v.dtype, v.shape) for v in chosen]
        results = [result_like(body, dtype, shape, False) for dtype, shape in wanted]
        branches.append((body, results))
    attributes = {name: proto(body, [], results) for name, (body, results) in zip(("then_branch", "else_branch"), branches)}
    exact = all(v.exact for _, results in branches for v in results)
    g.add(Draft(op, (condition,), attributes, len(wanted)), "move" if exact else "never", bodies=[b for b, _ in branches])


def loop(g, op):
    trips = g.rng.choice([0, 1, 1, 2, 3, 4])
    body = body_of(g)
    states = [g.operand((F32, F32, F16, I64, I32, BOOL)) for _ in range(g.rng.choice([0, 1, 1, 2, 3]))]
    number, going = parameter(body, Value("", np.asarray(0, I64)), True), parameter(body, Value("", np.asarray(True)), True)
    body.values.remove(going)  # ONNX Runtime gives it a rank of its own
    inner = [parameter(body, v, exact=not is_float(v.dtype)) for v in states]
    if g.rng.random() < 0.6:
        body.op("Cast", number, kind="move", to=1)
    grow(body, 5)
    on = body.op("Identity", going, kind="move")
    if g.rng.random() < 0.2:
        on = body.op("Less", number, ints(body, g.rng.choice([1, 2])), kind="move")
    following = [result_like(body, v.dtype, v.shape, True) for v in states]
    if len(following) > 1 and following[0].dtype == following[1].dtype and following[0].shape == following[1].shape and g.rng.random() < 0.5:
        following[:2] = [inner[1], inner[0]]
    following, scanned = all_handed_on(body, following, [0, 1, 2, 3], inner)
    if not following and not scanned:
        raise Unfit("no result")
    known = True if scanned else None
    count = g.known(np.asarray(trips, I64), g.rng.random() < 0.6 or bool(scanned))
    start = maybe(g, lambda: g.known(np.asarray(g.rng.random() < 0.9), known or g.rng.random() < 0.6), 0.6)
    attributes = {"body": proto(body, [number, going, *inner], [on, *following, *scanned])}
    g.add(Draft(op, (count, start, *states), attributes, len(following) + len(scanned)), "never", bodies=[body])


def scan(g, op):
    if g.opset < 9:
        raise Unfit("batches then")
    body = body_of(g)
    states = [g.operand((F32, F32, I64), fresh=0.3) for _ in range(g.rng.choice([0, 1, 2]))]
    first = g.operand((F32, F32, F16, I64), where=lambda v: v.rank > 0 and 0 < v.size and max(v.shape) < 12)
    axis = g.rng.randrange(first.rank)
    many = first.shape[axis]
    parts = [first]
    second = g.pick(lambda v: v.rank > 0 and v.shape[0] == many)
    axes = [axis]
    if second is not None and g.rng.random() < 0.7:
        parts.append(second), axes.append(0)
    backwards = [g.rng.random() < 0.3 for _ in parts]
    inner = [parameter(body, v, exact=not is_float(v.dtype)) for v in states]
    slices = [parameter(body, Value("", np.take(v.array, many - 1 if b else 0, axis=a), v.exact)) for v, a, b in zip(parts, axes, backwards)]
    grow(body, 5)
    following = [result_like(body, v.dtype, v.shape, True) for v in states]
    following, scanned = all_handed_on(body, following, [1, 1, 2, 3], slices)
    if not scanned:
        raise Unfit("nothing to stack")
    attributes = {"body": proto(body, [*inner, *slices], [*following, *scanned]), "num_scan_inputs": len(parts), "scan_input_axes": axes, "scan_input_directions": [int(b) for b in backwards]}
    if g.rng.random() < 0.5:
        attributes["scan_output_axes"] = [g.rng.randrange(v.rank + 1) for v in scanned]
        attributes["scan_output_directions"] = [g.rng.randrange(2) for _ in scanned]
    g.add(Draft(op, (*states, *parts), attributes, len(following) + len(scanned)), "never", bodies=[body])


def random_numbers(g, op):
    """Numbers that nobody can compare: times nothing, and added. The nodes around them are what is tried."""
    v = g.operand((F32,), where=lambda v: v.size > 0)
    if op in ("RandomNormal", "RandomUniform"):
        r = g.op(op, shape=list(v.shape) or [1], seed=1.0)
    elif op == "Bernoulli":
        r = g.op("Cast", g.op(op, g.op("Sigmoid", v)), to=1)
    elif op == "Multinomial":
        r = g.op("Cast", g.op(op, g.fresh(F32, (2, 4), style="normal"), sample_size=3), to=1)
    else:
        r = g.op(op, v)
    if g.rng.random() < 0.2:
        return
    nothing = g.op("Mul", g.op("Clip", r, g.known(F32.type(0)), g.known(F32.type(1)), kind="move") if g.opset >= 11 else g.op("Sigmoid", r), g.known(F32.type(0)), kind="move")
    known = dataclasses.replace(nothing, random=False, exact=True)  # whatever the numbers were
    g.nodes[-1].results = (known,)
    g.values[-1] = known
    if g.rng.random() < 0.7 and r.shape == v.shape:
        g.op("Add", v, known, kind="move")


def sequences(g, op):
    """Tensors in a sequence, all known while compiling, and out of it again."""
    v = g.operand((F32, I64, F16), where=lambda v: v.rank > 0 and v.size > 0)
    parts = (v, *(g.fresh(v.dtype, v.shape) for _ in range(g.rng.randrange(1, 3))))
    at = ints(g, g.rng.randrange(len(parts)))
    names = [g.names() for _ in range(3)]
    if op == "SequenceAt":
        steps = [helper.make_node("SequenceConstruct", [p.name for p in parts], [names[0]]), helper.make_node("SequenceAt", [names[0], at.name], ["{}"])]
        array = parts[int(at.array)].array
    elif op == "ConcatFromSequence":
        new = g.rng.randrange(2)
        axis = g.rng.randrange(v.rank)
        steps = [helper.make_node("SequenceConstruct", [p.name for p in parts], [names[0]]), helper.make_node("ConcatFromSequence", [names[0]], ["{}"], axis=axis, new_axis=new)]
        array = np.stack([p.array for p in parts], axis) if new else np.concatenate([p.array for p in parts], axis)
    elif op == "SequenceErase":
        steps = [helper.make_node("SequenceConstruct", [p.name for p in parts], [names[0]]), helper.make_node("SequenceErase", [names[0], at.name], [names[1]]), helper.make_node("SequenceLength", [names[1]], ["{}"])]
        array = np.asarray(len(parts) - 1, I64)
    elif op == "SequenceInsert":
        steps = [helper.make_node("SequenceEmpty", [], [names[0]], dtype=onnx_type(v.dtype)), helper.make_node("SequenceInsert", [names[0], v.name], [names[1]]), helper.make_node("SequenceAt", [names[1], ints(g, 0).name], ["{}"])]
        array = v.array
    elif op == "SplitToSequence":
        axis = g.rng.randrange(v.rank)
        steps = [helper.make_node("SplitToSequence", [v.name], [names[0]], axis=axis, keepdims=1), helper.make_node("SequenceAt", [names[0], ints(g, 0).name], ["{}"])]
        array = np.take(v.array, [0], axis)
    else:
        steps = [helper.make_node("Optional", [v.name], [names[0]]), helper.make_node("OptionalGetElement", [names[0]], ["{}"])] if op == "Optional" else []
        array = v.array
        if op == "OptionalHasElement":
            steps, array = [helper.make_node("Optional", [v.name], [names[0]]), helper.make_node("OptionalHasElement", [names[0]], ["{}"])], np.asarray(True)
    g.append_known(steps, array, all(p.exact for p in parts), parts)


ROWS = [
    Row("If", if_, 2), Row("Loop", loop, 3), Row("Scan", scan, 2), Row("RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial", random_numbers, 0.5),
    Row("SequenceAt ConcatFromSequence SequenceErase SequenceInsert SplitToSequence Optional OptionalHasElement", sequences, 0.6),
]
