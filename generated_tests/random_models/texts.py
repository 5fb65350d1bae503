"""Tensors of strings: chosen by positions that are known at run time, moved, joined, split, compared, read as numbers. What is
compared in the end is numbers and truths that are made of them."""
import numpy as np

from evaluate import Draft, Unfit
from graph import BOOL, F32, F64, I8, I32, I64, U8
from learned import ML
from rows import Row, attributes_of, axis_of, ints

TEXT = np.dtype(object)
WORDS = ["", "a", "b", "ab", "A", "cat", "dog", "new york", " x ", "a,b", ",", "Zoë", "日本", "é", "*/", "\\n", '"', "%s", "??/", "\t", "x" * 70, "a" * 299]
NUMBERS = ["1", "-2", "0.5", "1e3", "-0", "7.25", "+4", "1e-3", "255", "100000", " 8", "12abc", "00017", "3.9"]
WHOLE = ["1", "-2", "0", "17", "+4", "99", " 8", "00017", "12abc"]
PATTERNS = ["a*b?", ".*", "[a-z]+", "(a|b|ab)+", "[^a-z]*", "\\w+", "(?:new|old) york", "日.", ".{2,3}", "x{70}", "a.*"]


def pool(g, words=WORDS, shape=None):
    """A constant tensor of some words."""
    shape = g.rng.choice([(4,), (7,), (2, 3), (1,), ()]) if shape is None else shape
    array = np.empty(shape, object)
    for at in np.ndindex(*shape):
        array[at] = g.rng.choice(words)
    return g.known(array, True)


def strings(g, words=WORDS, **wanted):
    """A tensor of strings: one that is there, or one whose elements the input chooses."""
    if words is WORDS and g.rng.random() < 0.75:
        found = g.pick(lambda v: v.dtype == TEXT and not v.constant and all(getattr(v, k) == n for k, n in wanted.items()))
        if found is not None:
            return found
    table = pool(g, words, (g.rng.choice([3, 8]),))
    shape = g.draw_shape(wanted.get("rank", g.rng.choice([0, 1, 1, 2, 3])))
    if np.prod(shape) > 60 or 0 in shape:
        raise Unfit("too many")
    return g.op("Gather", table, g.known(g.draw_array(I64, shape, low=0, high=table.size - 1), False), kind="move")


def partner(g, v):
    """Strings that v meets: of its shape, or that broadcast to it."""
    found = g.pick(lambda o: o.dtype == TEXT and o.shape == v.shape)
    if found is not None and g.rng.random() < 0.6:
        return found
    return pool(g, WORDS, [d if g.rng.random() < 0.6 else 1 for d in v.shape][g.rng.randrange(v.rank + 1):])


def join(g, op):
    v = strings(g)
    if max((len(s) for s in v.array.ravel()), default=0) > 1000:
        raise Unfit("too long")
    other = v if g.rng.random() < 0.1 else partner(g, v)
    g.op(op, *g.rng.sample([v, other], 2), kind="move")


def equal(g, op):
    v = strings(g)
    r = g.op(op, v, partner(g, v), kind="move")
    if g.rng.random() < 0.4:
        g.op("Where", r, v, partner(g, v), kind="move")


def moved(g, op):
    v = strings(g)
    if op == "Transpose":
        axis_of(g, v)
        return g.op(op, v, kind="move", perm=g.rng.sample(range(v.rank), v.rank))
    if op == "Reshape":
        return g.op(op, v, ints(g, g.rng.choice([[-1], [1, -1], [v.size, 1]])), kind="move")
    if op == "Tile":
        return g.op(op, v, ints(g, [g.rng.choice([1, 2]) for _ in v.shape]), kind="move")
    if op == "Expand":
        return g.op(op, v, ints(g, [2, *v.shape]), kind="move")
    axis = axis_of(g, v)
    if op == "Concat":
        return g.op(op, v, *g.rng.choice([(v,), (pool(g, WORDS, v.shape),), (v, v)]), kind="move", axis=axis)
    if op == "Slice":
        return g.op(op, v, ints(g, [g.rng.choice([0, -1, 1])]), ints(g, [g.rng.choice([1000, -1000, 2])]), ints(g, [axis]), ints(g, [g.rng.choice([1, 2, -1])]), kind="move")
    if op == "Gather":
        return g.op(op, v, g.known(np.asarray([-1, 0]), g.rng.random() < 0.5), kind="move", axis=axis)
    if op == "Unsqueeze":
        return g.op(op, v, ints(g, [axis]), kind="move")
    if op == "ScatterElements" and v.shape[axis] > 0:
        at = g.draw_array(I64, [1 if a == axis % v.rank else d for a, d in enumerate(v.shape)], low=0, high=v.shape[axis] - 1)
        return g.op(op, v, g.known(at, False), pool(g, WORDS, at.shape), kind="move", axis=axis)
    g.op("Identity", v, kind="move")


def read(g, op):
    """Text as numbers, and numbers as text."""
    if g.rng.random() < 0.5:
        to = g.rng.choice([1, 11, 7, 6, 3, 9])
        v = strings(g, NUMBERS if to in (1, 11) else WHOLE)
        return g.op(op, v, kind="move", to=to)
    v = g.operand((F32, I64, I32, I8, U8, BOOL, F64), exact=True, where=lambda v: v.size <= 40)
    t = g.op(op, v, kind="move", to=8)
    g.op("Equal", t, g.op("Cast", g.fresh(v.dtype, v.shape), kind="move", to=8), kind="move")


def label(g, op):
    keys = g.rng.sample(WORDS, g.rng.choice([1, 4, 12]))
    if g.rng.random() < 0.3:
        whole = g.operand((I64,), low=-5, high=9, where=lambda v: v.size)
        return g.op(op, whole, kind="move", domain=ML, keys_int64s=[0, 1, 3, -2], values_strings=g.rng.sample(WORDS[1:], 4), default_string=g.rng.choice(WORDS))
    spec = g.rng.choice([{"values_int64s": list(range(len(keys))), "default_int64": -1}, {"values_floats": [k / 2 for k in range(len(keys))], "default_float": -1.5},
                         {"values_strings": [g.rng.choice(WORDS) for _ in keys], "default_string": "?"}])
    g.op(op, strings(g), kind="move", domain=ML, keys_strings=keys, **spec)


def one_hot(g, op):
    g.op(op, strings(g, rank=g.rng.choice([1, 2])), kind="move", domain=ML, cats_strings=g.rng.sample(WORDS, g.rng.choice([1, 3, 9])), zeros=1)


def regex(g, op):
    g.op(op, strings(g), kind="move", pattern=g.rng.choice(PATTERNS))


def split(g, op):
    v = strings(g)
    if not all(v.array.ravel()):
        raise Unfit("ONNX Runtime finds no piece in an empty string")
    attributes = attributes_of(g, {"delimiter": [",", "a", " "], "maxsplit": [1, 2]})
    if "delimiter" not in attributes and any(text.split() != [word for word in text.split(" ") if word] for text in v.array.ravel()):
        raise Unfit("of white space ONNX Runtime knows the blank alone")
    g.op(op, v, kind="move", outputs=2, **attributes)


def choose(g, op):
    v = strings(g)
    other = partner(g, v)
    g.op(op, g.fresh(BOOL, [d if g.rng.random() < 0.7 else 1 for d in v.shape], False), *g.rng.sample([v, other], 2), kind="move")


def distinct(g, op):
    v = strings(g)
    g.add(Draft(op, (v,), attributes_of(g, {"sorted": [0, 1]}), 4), "decides")


def classified(g, op):
    x = g.operand((F32,), rank=2, where=lambda v: v.size > 0 and v.shape[1] < 9, exact=True, low=-50, high=50)
    many = g.rng.choice([2, 3])
    label, _ = g.op(op, x, domain=ML, outputs=2, coefficients=[round(g.rng.uniform(-2, 2) * 64) / 64 for _ in range(many * x.shape[1])], intercepts=[0.25, -0.5, 0.125][:many], classlabels_strings=g.rng.sample(WORDS[1:], many), post_transform="NONE")
    g.op("Equal", label, pool(g, list(label.array.ravel()) + ["a"], ()), kind="move")


ROWS = [
    Row("StringConcat", join, 3), Row("Equal", equal, 4), Row("Transpose Reshape Tile Expand Concat Slice Gather Unsqueeze ScatterElements Identity", moved, 6), Row("Cast", read, 3), Row("LabelEncoder", label, 3, ML),
    Row("OneHotEncoder", one_hot, 1, ML), Row("RegexFullMatch", regex, 2), Row("StringSplit", split, 1.5), Row("Where", choose, 2), Row("Unique", distinct, 1), Row("LinearClassifier", classified, 1, ML),
]
