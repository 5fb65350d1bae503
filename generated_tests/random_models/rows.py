"""What a row of the tables is made of: ways to draw the operands and attributes of a family of operators."""
import dataclasses

import numpy as np

from evaluate import Draft, Unfit
from graph import FLOATS, I64, is_float


@dataclasses.dataclass(frozen=True)
class Row:
    """A family: the operators, how one of them is drawn, and how often."""
    ops: str
    draw: object  # (graph, operator) -> None: adds nodes, or raises Unfit
    weight: float = 1.0
    domain: str = ""

    def names(self):
        return self.ops.split()


def attributes_of(g, spec, v=None):
    """Attributes drawn from {name: choices}; a choice that can be called gets (graph, operand); names that end in ! are always there."""
    drawn = {}
    for name, choices in spec.items():
        if name.endswith("!") or g.rng.random() < 0.7:
            value = choices(g, v) if callable(choices) else g.rng.choice(choices)
            if value is not None:
                drawn[name.rstrip("!")] = value
    return drawn


def axis_of(g, v):
    """Any axis, counted from either end."""
    if v.rank == 0:
        raise Unfit("no axis")
    axis = g.rng.randrange(v.rank)
    return axis - v.rank if g.rng.random() < 0.35 else axis


def kind_for(kind, v):
    return kind if is_float(v.dtype) else ("decides" if kind == "decides" else "move")


def unary(types, kind="never", spec=None, domain="", **limits):
    """One operand, a result of its shape."""
    def draw(g, op):
        v = g.operand(types, **limits)
        g.add(Draft(op, (v,), attributes_of(g, spec or {}, v), 1, domain), kind_for(kind, v))
    return draw


def partner(g, v, types=None, **limits):
    """A value of v's type, or of another, that v broadcasts with."""
    types = types or (v.dtype,)
    choice = g.rng.random()
    if choice < 0.55:
        found = g.pick(lambda o: o.dtype in types and broadcasts(o.shape, v.shape) and within_limits(o, limits))
        if found is not None:
            return found
    if choice < 0.7:
        return g.fresh(types[0], v.shape, **limits)
    shape = [d if g.rng.random() < 0.6 else 1 for d in v.shape]
    if g.rng.random() < 0.6:
        shape = shape[g.rng.randrange(v.rank + 1):]
    elif g.rng.random() < 0.15:
        shape = [1] * g.rng.randrange(v.rank + 2)  # a scalar that raises the rank, or not
    return g.fresh(types[0], shape, **limits)


def within_limits(v, limits):
    from graph import within
    return within(v.array, limits)


def broadcasts(a, b):
    try:
        return np.prod(np.broadcast_shapes(a, b)) <= 5000
    except ValueError:
        return False


def binary(types, kind="short", spec=None, left=None, right=None):
    """Two operands that broadcast, in either order; `left` and `right` are limits of theirs, which then keep their places."""
    def draw(g, op):
        v = g.operand(types, **(left or {}))
        other = partner(g, v, **(right or {}))
        operands = (v, other) if left or right or g.rng.random() < 0.6 else (other, v)
        g.add(Draft(op, operands, attributes_of(g, spec or {}, v)), kind_for(kind, v))
    return draw


def several(types, kind):
    """One to four operands that broadcast."""
    def draw(g, op):
        v = g.operand(types)
        g.add(Draft(op, (v, *(partner(g, v) for _ in range(g.rng.randrange(4))))), kind_for(kind, v))
    return draw


def ints(g, values, dtype=I64):
    """A constant of whole numbers; seldom an input."""
    return g.known(np.array(values, dtype), constant=True)


def pick_axes(g, v, least=1):
    if v.rank < least:
        raise Unfit("no axis")
    axes = g.rng.sample(range(v.rank), g.rng.randrange(least, v.rank + 1))
    return [a - v.rank if g.rng.random() < 0.3 else a for a in axes]


def maybe(g, value, chance=0.5):
    """The value, or None: an operand that is absent. `value` makes it."""
    return value() if g.rng.random() < chance else None


def trimmed(*operands):
    """Absent operands at the end are left out."""
    operands = list(operands)
    while operands and operands[-1] is None:
        operands.pop()
    return tuple(operands)


def composite(function):
    """A row that draws several nodes by itself."""
    return lambda g, op: function(g)


def floats_of(g):
    return g.draw_type(FLOATS)
