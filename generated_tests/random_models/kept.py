"""Models that keep states: results that take the place of inputs of their shapes in the next run.

A package runs twice, from states of zeros. What its second run gives is what the model gives with the states that the first one
leaves, so the values of the graph become those.
"""
import copy
import dataclasses

import numpy as np

from evaluate import Unfit
from graph import LARGEST, is_float
from judge import Plain, replay


def with_inputs(model, arrays):
    """The model, its inputs and all that follows from them for other values of some inputs; raises Unfit where that is another model."""
    g = copy.copy(model.graph)
    g.inputs = [dataclasses.replace(v, array=arrays.get(v.name, v.array)) for v in g.inputs]
    with np.errstate(all="ignore"):
        try:
            env = replay(dataclasses.replace(model, graph=g), Plain())
        except Exception as error:  # each class of ONNX Runtime's errors derives from Exception alone
            raise Unfit(str(error)) from None
    rounded = any(is_float(array.dtype) for array in arrays.values())

    def now(v):
        array = env[v.name]
        if array.shape != v.shape or array.dtype != v.dtype or is_float(v.dtype) and array.size and not np.abs(array.astype(np.float64)).max() <= LARGEST[v.dtype]:
            raise Unfit("another model")
        return dataclasses.replace(v, array=array, exact=v.exact and not rounded)
    nodes = [dataclasses.replace(node, results=tuple(now(v) for v in node.results)) for node in g.nodes]
    g.nodes = nodes
    values = {v.name: v for v in g.inputs + g.constants + [r for n in nodes for r in n.results]}
    return dataclasses.replace(model, graph=g, outputs=[values[v.name] for v in model.outputs])


def keeping(rng, model):
    """The model with pairs of inputs and results that are states."""
    g = model.graph
    if any(node.kind == "decides" or any(r.random for r in node.results) or not node.results for node in g.nodes):
        raise Unfit("what is rounded decides")
    results = [r for node in g.nodes for r in node.results if r.size]
    pairs = {}
    for x in rng.sample(g.inputs, len(g.inputs)):
        fitting = [r for r in results if r.dtype == x.dtype and r.shape == x.shape and r.name not in pairs.values()]
        if fitting and x.rank and rng.random() < 0.8:
            pairs[x.name] = rng.choice(fitting).name
    outputs = [v for v in model.outputs if v.name not in pairs.values() and v.name not in pairs]
    if not pairs or not outputs:
        raise Unfit("no pair")
    first = with_inputs(model, {v.name: np.zeros_like(v.array) for v in g.inputs if v.name in pairs})
    values = {r.name: r.array for node in first.graph.nodes for r in node.results}
    second = with_inputs(dataclasses.replace(model, outputs=outputs), {x: values[y] for x, y in pairs.items()})
    return dataclasses.replace(second, states=pairs)
