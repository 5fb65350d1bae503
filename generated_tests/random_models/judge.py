"""Whether a package's numbers are right: bit for bit where they are exact, else within what its types allow.

Where a float is further off than that, the graph is evaluated again with noise on every rounded result: if that moves the
output as far, the model is unstable there, and nobody can tell.
"""
import dataclasses

import numpy as np

from evaluate import BF16, F8, F8_2, evaluate
from forms import MEANING, stands_in, written_then
from model import free_names_of
from graph import F16, F32, F64, is_float, node_of

BARS = {F32: 2e-5, F64: 2e-6, F16: 4e-3, BF16: 3e-2, F8: 0.2, F8_2: 0.3}  # relative, in norm; ten times as much at worst
NOISE = {F32: 1e-6, F64: 1e-11, F16: 1e-3, BF16: 8e-3}
TRIALS = 6
SIZED = {"Resize", "Upsample", "Range", "MelWeightMatrix"}  # floats say how large the result is


def wide(array):
    return array.astype(np.float64)


def gap_of(actual, expected):
    a, e = np.atleast_1d(wide(actual)), np.atleast_1d(wide(expected))
    with np.errstate(all="ignore"):
        gap = np.abs(a - e)
    gap[(a == e) | (np.isnan(a) & np.isnan(e))] = 0
    gap[np.isnan(gap)] = np.inf
    return gap


def difference(actual, value, extra=0.0):
    """"" if the array agrees with the value, or what differs; `extra` is what noise may do to each element."""
    gap = gap_of(actual, value.array)
    if value.exact or not gap.any():
        wrong = int((gap > 0).sum())
        return f"{wrong} of {value.size} exact elements differ, by {gap.max():.3g}" if wrong else ""
    if not is_float(value.dtype) and value.dtype not in BARS:
        wrong = int((gap > (1 if value.dtype != bool else 0) + extra).sum())
        return f"{wrong} of {value.size} whole numbers differ by more than a step" if wrong else ""
    e = np.atleast_1d(wide(value.array))
    e = np.where(np.isfinite(e), e, 0)
    gap = np.maximum(gap - extra, 0)
    bar = BARS[value.dtype]
    norm, worst = np.linalg.norm(gap) / max(np.linalg.norm(e), 1e-30), gap.max(initial=0) / max(np.abs(e).max(initial=0), 1e-30)
    if norm < bar and worst < 10 * bar or gap.max(initial=0) < 1e-6 and value.dtype != F64:
        return ""
    return f"relative error {norm:.2e} in norm, {worst:.2e} at worst"


def shaken(array, rng, rounded):
    """The array with noise on its numbers, if they are rounded ones."""
    if not rounded or array.dtype not in NOISE:
        return array
    with np.errstate(all="ignore"):
        return (wide(array) * (1 + NOISE[array.dtype] * rng.standard_normal(array.shape))).astype(array.dtype)


def replay(model, rng):
    """{name: array} of every value, when each rounded result has noise."""
    g, env = model.graph, {v.name: v.array for v in model.graph.inputs + model.graph.constants}
    for node in g.nodes:
        if node.draft.op != node.proto.op_type or not node.results or len(node.results) != len(node.proto.output):
            env.update({v.name: v.array for v in node.results})
            continue
        # What is rounded inside of a node moves its result as rounded operands do: a sum may cancel all but its last bits.
        rounds = any(not v.exact for v in node.results) and node.draft.op not in SIZED
        operands = tuple(v if v is None else dataclasses.replace(v, array=shaken(env.get(v.name, v.array), rng, rounds)) for v in node.draft.operands)
        draft = dataclasses.replace(node.draft, operands=operands)
        captured = {name: env[name] for name in free_names_of(node.proto) if name in env}
        try:
            then = written_then(draft, g.opset)
            arrays = evaluate(then, node.proto, captured | {v.name: v.array for v in then.operands if v is not None}, g.opset)
        except Exception:
            if not stands_in(draft, g.opset):
                raise
            arrays = evaluate(draft, node_of(draft, list(node.proto.output)), captured | {v.name: v.array for v in operands if v is not None}, MEANING)
        for v, array in zip(node.results, arrays):
            env[v.name] = shaken(array, rng, not v.exact)
    return env


def noise(model):
    """{name: how far noise moves each element of an output}."""
    rng, most = np.random.default_rng(1), {v.name: 0.0 for v in model.outputs}
    for _ in range(TRIALS):
        env = replay(model, rng)
        for v in model.outputs:
            most[v.name] = np.maximum(most[v.name], gap_of(env[v.name], v.array))
    return most


def verdict(model, arrays):
    """("passed" | "unstable" | "failed", text)."""
    told = {v.name: difference(a, v) for a, v in zip(arrays, model.outputs)}
    wrong = {name: text for name, text in told.items() if text}
    if not wrong:
        return "passed", ""
    name, text = next(iter(wrong.items()))
    if any(v.exact and v.name in wrong for v in model.outputs):
        return "failed", f"output {name}: {text}"
    try:
        moved = noise(model)
    except Exception as error:
        return "unstable", f"{text}; noise: {str(error)[:80]}"
    if all(not difference(a, v, 4 * np.max(moved[v.name], initial=0)) for a, v in zip(arrays, model.outputs) if v.name in wrong):
        return "unstable", f"output {name}: {text}"
    return "failed", f"output {name}: {text}"
