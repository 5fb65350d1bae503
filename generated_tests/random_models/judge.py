"""Whether a package's numbers are right: bit for bit where they are exact, else within what its types allow.

Where a float is further off than that, and the model has narrow floats, the graph is evaluated again without rounding anything
to them: a package may round what it stores or keep what it has not stored, so that every number between both results is right.
Else it is evaluated with noise on every rounded result: if that moves the output as far, the model is unstable there, and
nobody can tell.
"""
import copy
import dataclasses

import numpy as np
from onnx import numpy_helper

from evaluate import BF16, F8, F8_2, NARROW, OWN_TYPES, evaluate, narrowed
from forms import MEANING, stands_in, written_then
from graph import F16, F32, F64, free_names_of, is_float, node_of

BARS = {F32: 2e-5, F64: 2e-6, F16: 4e-3, BF16: 3e-2, F8: 0.2, F8_2: 0.3}  # relative, in norm; ten times as much at worst
NOISE = {F32: 1e-6, F64: 1e-11, F16: 1e-3, BF16: 8e-3}
TRIALS = 6
MORE_TRIALS = 48  # in which a number that is near a tie of QuantizeLinear goes to its other side
SIZED = {"Resize", "Upsample", "Range", "MelWeightMatrix"}  # floats say how large the result is
PICTURES = {"Resize", "Upsample"}  # those but the first
SINGLE = {"GroupNormalization", "InstanceNormalization"}  # ONNX Runtime has no doubles here


def wide(array):
    return array.astype(np.float64)


def gap_of(actual, expected, other=None):
    """How far each element is from the expected one, or from the nearest number between both expected ones."""
    a, e = np.atleast_1d(wide(actual)), np.atleast_1d(wide(expected))
    o = e if other is None else np.atleast_1d(wide(other))
    o = np.where(np.isnan(o), e, o)
    with np.errstate(all="ignore"):
        gap = np.maximum(np.minimum(e, o) - a, a - np.maximum(e, o))
    gap = np.where(gap < 0, 0, gap)
    gap[(a == e) | (a == o) | (np.isnan(a) & np.isnan(e))] = 0
    gap[np.isnan(gap)] = np.inf
    return gap


def difference(actual, value, extra=0.0, other=None):
    """"" if the array agrees with the value, or what differs; `extra` is what noise may do to each element, `other` what the
    array may be as well, and everything between."""
    gap = gap_of(actual, value.array, other)
    if value.exact or not gap.any():
        wrong = int((gap > 0).sum())
        return f"{wrong} of {value.size} exact elements differ, by {gap.max():.3g}" if wrong else ""
    if not is_float(value.dtype) and value.dtype not in BARS:
        wrong = int((gap > (1 if value.dtype != bool else 0) + extra).sum())
        return f"{wrong} of {value.size} whole numbers differ by more than a step" if wrong else ""
    e = np.atleast_1d(wide(value.array if other is None else larger(value.array, other)))
    e = np.where(np.isfinite(e), e, 0)
    gap = np.where(gap <= extra, 0, gap - np.where(gap <= extra, 0, extra))
    bar = BARS[value.dtype]
    norm, worst = np.linalg.norm(gap) / max(np.linalg.norm(e), 1e-30), gap.max(initial=0) / max(np.abs(e).max(initial=0), 1e-30)
    if norm < bar and worst < 10 * bar or gap.max(initial=0) < (1e-14 if value.dtype == F64 else 1e-6):
        return ""
    return f"relative error {norm:.2e} in norm, {worst:.2e} at worst"


def larger(array, other):
    """Of both, the larger ones in magnitude that are finite."""
    a, o = wide(array), wide(other)
    return np.where(np.isfinite(o) & (np.abs(o) > np.abs(np.where(np.isfinite(a), a, 0))), o, a)


def shaken(array, rng, rounded, least=0.0):
    """The array with noise on its numbers, if they are rounded ones. A zero may be what is left of a number too small to be one."""
    if not rounded or array.dtype not in NOISE:
        return array
    noise = max(NOISE[array.dtype], least)
    tiny = np.finfo(np.float32).tiny if array.dtype in (np.float32, np.float64) else 0
    with np.errstate(all="ignore"):
        return (wide(array) * (1 + noise * rng.standard_normal(array.shape)) + tiny * rng.standard_normal(array.shape)).astype(array.dtype)


class Plain:
    """Nothing changes."""

    def operand(self, node, value, array):
        return array

    def bodies(self, node, captured):
        """The node, and {name: array} of what its branches or its loop read from outside."""
        return node.proto, captured

    def result(self, node, value, array):
        return array


class Noise(Plain):
    """Rounded numbers have noise."""

    def __init__(self, rng):
        self.rng = rng

    def operand(self, node, value, array):
        # What is rounded inside of a node moves its result as rounded operands do: a sum may cancel all but its last bits.
        says_size = node.draft.op in SIZED and not (node.draft.op in PICTURES and value is node.draft.operands[0])
        return shaken(array, self.rng, any(not v.exact for v in node.results) and not says_size, NOISE[F32] if node.draft.op in SINGLE else 0)

    def bodies(self, node, captured):
        # Constants of a branch or a loop, and what it reads from outside, are operands of what is rounded there.
        if all(v.exact for v in node.results) or not any(a.HasField("g") for a in node.proto.attribute):
            return node.proto, captured
        proto, sizes = copy.deepcopy(node.proto), set()
        graphs = [a.g for a in proto.attribute if a.HasField("g")]
        for graph in graphs:
            graphs.extend(a.g for n in graph.node for a in n.attribute if a.HasField("g"))
            sizes.update(name for n in graph.node if n.op_type in SIZED for k, name in enumerate(n.input) if k > 0 or n.op_type not in PICTURES)
        for graph in graphs:
            for constant in graph.initializer:
                array = numpy_helper.to_array(constant)
                if array.dtype in NOISE and constant.name not in sizes:
                    constant.CopyFrom(numpy_helper.from_array(shaken(array, self.rng, True), constant.name))
        return proto, {name: array if name in sizes else shaken(array, self.rng, True) for name, array in captured.items()}

    def result(self, node, value, array):
        if node.draft.op in SIZED and not value.exact and np.issubdtype(array.dtype, np.integer):
            return array + self.rng.integers(0, 2, array.shape).astype(array.dtype)  # ONNX Runtime cuts fractions off
        return shaken(array, self.rng, not value.exact)


class Unrounded(Plain):
    """What are narrow floats in the model have single precision, except where a node says its types itself."""

    def operand(self, node, value, array):
        if node.draft.op in OWN_TYPES - {"QuantizeLinear", "DequantizeLinear"}:
            return narrowed(array, value.dtype)
        return array.astype(np.float32) if array.dtype in NARROW else array


def has_narrow(graph):
    return any(v.dtype in NARROW for v in graph.inputs + graph.constants + [r for n in graph.nodes for r in n.results])


def cast_without_rounding(node, env):
    """The result of a Cast to a narrow float; None if it is another node."""
    source = node.draft.operands[0] if node.draft.operands else None
    if node.draft.op not in ("Cast", "CastLike") or source is None or node.results[0].dtype not in NARROW or not is_float(source.dtype):
        return None
    return env.get(source.name, source.array).astype(np.float32)


def replay(model, change):
    """{name: array} of every value, when operands and results are changed."""
    g, env = model.graph, {v.name: v.array for v in model.graph.inputs + model.graph.constants}
    types = {v.name: v.dtype for v in g.inputs + g.constants + [r for n in g.nodes for r in n.results]}
    for node in g.nodes:
        if node.draft.op != node.proto.op_type or not node.results or len(node.results) != len(node.proto.output):
            env.update({v.name: v.array for v in node.results})
            continue
        unrounded = cast_without_rounding(node, env) if isinstance(change, Unrounded) else None
        if unrounded is not None:
            env[node.results[0].name] = unrounded
            continue
        operands = tuple(v if v is None else dataclasses.replace(v, array=change.operand(node, v, env.get(v.name, v.array))) for v in node.draft.operands)
        draft = dataclasses.replace(node.draft, operands=operands)
        proto, captured = change.bodies(node, {name: narrowed(env[name], types[name]) for name in free_names_of(node.proto) if name in env})
        try:
            then = written_then(draft, g.opset)
            arrays = evaluate(then, proto, captured | {v.name: v.array for v in then.operands if v is not None}, g.opset)
        except Exception:
            if not stands_in(draft, g.opset):
                raise
            arrays = evaluate(draft, node_of(draft, list(node.proto.output)), captured | {v.name: v.array for v in operands if v is not None}, MEANING)
        for v, array in zip(node.results, arrays):
            env[v.name] = change.result(node, v, array)
    return env


def noises(model):
    """Again and again {name: how far noise has moved each element of an output so far}."""
    rng, most = np.random.default_rng(1), {v.name: 0.0 for v in model.outputs}
    for trial in range(MORE_TRIALS):
        env = replay(model, Noise(rng))
        for v in model.outputs:
            most[v.name] = np.maximum(most[v.name], gap_of(env[v.name], v.array))
        if trial + 1 >= TRIALS:
            yield most


def verdict(model, arrays):
    """("passed" | "unstable" | "failed", text)."""
    told = {v.name: difference(a, v) for a, v in zip(arrays, model.outputs)}
    wrong = {name: text for name, text in told.items() if text}
    if not wrong:
        return "passed", ""
    name, text = next(iter(wrong.items()))
    if any(v.exact and v.name in wrong for v in model.outputs):
        return "failed", f"output {name}: {text}"
    pairs = [(a, v) for a, v in zip(arrays, model.outputs) if v.name in wrong]
    try:
        unrounded = replay(model, Unrounded()) if has_narrow(model.graph) else {}
        if unrounded and all(not difference(a, v, other=unrounded[v.name]) for a, v in pairs):
            return "passed", ""
        for moved in noises(model):
            if all(not difference(a, v, 4 * np.max(moved[v.name], initial=0), unrounded.get(v.name)) for a, v in pairs):
                return "unstable", f"output {name}: {text}"
    except Exception as error:
        return "unstable", f"{text}; noise: {str(error)[:80]}"
    return "failed", f"output {name}: {text}"
