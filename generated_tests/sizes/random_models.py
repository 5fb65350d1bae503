"""Random models with one or two symbolic sizes, and the choices of them that they are run with."""
import random

from growing import Graph, Unfit
from growing_rows import ROWS

BETWEEN = 3


def sizes_of(rng):
    """({name: (least, largest)}, choices): the least and the largest, each of them with the other's, and some between."""
    names = rng.choice([["n"], ["n", "m"]])
    ranges = {}
    for name in names:
        low = rng.choice([1, 1, 1, 2, 3, 4, 8])
        ranges[name] = (low, low + rng.choice([1, 2, 4, 7, 9, 15, 16, 17, 30]))
    choices = [{name: ranges[name][(corner >> k) & 1] for k, name in enumerate(names)} for corner in range(1 << len(names))]
    return ranges, choices + [{name: rng.randint(*ranges[name]) for name in names} for _ in range(BETWEEN)]


def shape_of_input(rng, names):
    n, m = names[0], names[-1]
    few = rng.choice([1, 2, 3, 4, 6, 8, 16])
    return rng.choice([[n], [n, rng.choice([1, 5, 16, 17, 33])], [rng.choice([2, 15, 31]), n], [n, m], [n, m, rng.choice([5, 8, 16, 32])], [2, n, 17], [n, few, m],
                       [n, few, 6, 7], [1, few, n, m], [2, few, n, 8], [n, few, m, 9]])


def grown(rng):
    ranges, choices = sizes_of(rng)
    graph = Graph(rng, choices)
    for _ in range(rng.choice([1, 1, 2])):
        graph.input(shape_of_input(rng, list(ranges)))
    wanted = rng.choice([1, 2, 3, 4, 5, 7])
    for _ in range(5 * wanted):
        try:
            rng.choices(list(ROWS), list(ROWS.values()))[0](graph)
            wanted -= 1
        except Unfit:
            pass
        if wanted == 0:
            break
    read = {name for node in graph.nodes for name in node.input}
    outputs = [v for v in graph.values if v not in graph.inputs and (v.name not in read or rng.random() < 0.1)]
    if not outputs:
        raise Unfit("nothing has grown")
    model = graph.model(rng.sample(outputs, min(len(outputs), 6)))
    named = {d.dim_param for info in model.graph.input for d in info.type.tensor_type.shape.dim}
    return model, {name: ends for name, ends in ranges.items() if name in named}, choices


def random_model(seed):
    """(model, ranges, choices) of a seed, which stays the same as long as rows and packages do."""
    rng = random.Random(seed)
    while True:
        try:
            model, ranges, choices = grown(rng)
            if ranges:
                return model, ranges, choices
        except Unfit:
            pass
