"""Models of which some sizes are chosen when they run: axes of inputs get names, whose bounds lie around the sizes that they have.

The model runs at these sizes alone, as the one whose sizes are fixed does, so that its numbers are known. Many are refused.
"""
import dataclasses

from evaluate import Unfit
from graph import is_float

NAMES = ("rows", "n")


@dataclasses.dataclass(frozen=True)
class Sizes:
    axes: dict    # {(name of an input, axis): name of the size}
    values: dict  # {name of the size: what it is}
    bounds: dict  # {name of the size: (least, most)}

    def words(self):
        """The options that say so."""
        return [f"--dim={name}={low}..{high}" for name, (low, high) in self.bounds.items()]

    def shape(self, v):
        """The shape of an input, with names."""
        return [self.axes.get((v.name, axis), size) for axis, size in enumerate(v.shape)]


NONE = Sizes({}, {}, {})


def bounds_of(rng, size):
    return rng.choice([0, 1, 1, size, max(1, size - 2)]), size + rng.choice([0, 1, 3, size, 13])


def opened(rng, g):
    """Sizes of a grown graph. Constants that have them become inputs."""
    found = sorted({d for v in g.inputs for d in v.shape if d > 0})
    if not found:
        raise Unfit("no size")
    values = dict(zip(NAMES, rng.sample(found, min(len(found), rng.choice([1, 1, 2])))))
    moved = [v for v in g.constants if is_float(v.dtype) and set(v.shape) & set(values.values()) and rng.random() < 0.7]
    g.constants = [v for v in g.constants if v not in moved]
    g.inputs = g.inputs + moved
    axes = {(v.name, axis): name for v in g.inputs for axis, size in enumerate(v.shape) for name, value in values.items() if size == value and rng.random() < 0.9}
    values = {name: value for name, value in values.items() if name in axes.values()}
    return Sizes(axes, values, {name: bounds_of(rng, value) for name, value in values.items()})
