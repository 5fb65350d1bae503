"""Operators that work element by element."""
import itertools
import math

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from history import const, recipe

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


UNARY = {"Abs": np.abs, "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh, "Atan": np.arctan, "Atanh": np.arctanh,
         "Ceil": np.ceil, "Cos": np.cos, "Cosh": np.cosh, "Erf": erf, "Exp": np.exp, "Floor": np.floor, "Log": np.log, "Neg": np.negative,
         "Reciprocal": lambda x: 1 / x, "Round": np.round, "Sigmoid": sigmoid, "Sign": np.sign, "Sin": np.sin, "Sinh": np.sinh,
         "Softplus": lambda x: np.log1p(np.exp(x)), "Softsign": lambda x: x / (1 + np.abs(x)), "Sqrt": np.sqrt, "Tan": np.tan, "Tanh": np.tanh,
         "Relu": lambda x: np.maximum(x, 0), "Identity": lambda x: x, "Not": np.logical_not, "BitwiseNot": np.invert,
         "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x)))}
DOMAINS = {"Acos": (-1, 1), "Asin": (-1, 1), "Atanh": (-0.9, 0.9), "Acosh": (1, 4), "Log": (0.1, 4), "Sqrt": (0, 4), "Reciprocal": (0.5, 4)}


@recipe(*UNARY)
def unary(o):
    low, high = DOMAINS.get(o.schema.name, (-3, 3))
    function = UNARY[o.schema.name]
    for shape in ((3, 1, 5, 7), (29,)):
        yield o(o.x(*shape, low=low, high=high), expect=lambda x: [np.asarray(function(x)).astype(x.dtype)], bar=2e-3 if o.dtype.itemsize == 2 else 1e-5)


def parameters(**values):
    """A recipe of an operator with float attributes: with all of them, with the first, with none."""
    def run(o):
        known = {key: value for key, value in values.items() if o.has(key)}
        for chosen in (known, dict(list(known.items())[:1]), {}):
            filled = {key: chosen.get(key, helper.get_attribute_value(a.default_value)) for key, a in o.schema.attributes.items() if a.default_value.name}
            function = PARAMETRIC[o.schema.name]
            yield o(o.x(4, 3, 7), **chosen, expect=lambda x, f=filled: [np.asarray(function(x.astype(np.float64), **f)).astype(x.dtype)],
                    bar=2e-3 if o.dtype.itemsize == 2 else 1e-5)
    return run


PARAMETRIC = {"Elu": lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x), "LeakyRelu": lambda x, alpha: np.where(x < 0, alpha * x, x),
              "Selu": lambda x, alpha, gamma: gamma * np.where(x <= 0, alpha * np.expm1(x), x),
              "HardSigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
              "ThresholdedRelu": lambda x, alpha: np.where(x > alpha, x, 0), "Celu": lambda x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)),
              "Shrink": lambda x, bias, lambd: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)),
              "Swish": lambda x, alpha: x * sigmoid(alpha * x)}
for name, values in {"Elu": {"alpha": 0.75}, "LeakyRelu": {"alpha": 0.3}, "Selu": {"alpha": 1.5, "gamma": 2.0}, "HardSigmoid": {"alpha": 0.3, "beta": 0.25},
                     "ThresholdedRelu": {"alpha": 0.5}, "Celu": {"alpha": 0.5}, "Shrink": {"bias": 0.5, "lambd": 1.0}, "Swish": {"alpha": 0.5}}.items():
    recipe(name)(parameters(**values))


@recipe("Gelu")
def gelu(o):
    for approximate in (None, "tanh"):
        yield o(o.x(4, 9), approximate=approximate)


@recipe("IsNaN", "IsInf")
def special(o):
    x = o.x(4, 5)
    x[0, 1], x[2, 3], x[3, 3] = np.nan, np.inf, -np.inf
    yield o(x)
    if o.has("detect_negative"):
        yield o(x, detect_negative=0)
        yield o(x, detect_positive=0)


BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "And": np.logical_and, "Or": np.logical_or,
          "Xor": np.logical_xor, "Equal": np.equal, "Greater": np.greater, "Less": np.less, "GreaterOrEqual": np.greater_equal,
          "LessOrEqual": np.less_equal, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}


def aligned(b, rank, axis):
    """An operand of the old broadcasting: its axes begin at `axis`, or are the last ones."""
    return b if axis is None or b.size == 1 else b.reshape(b.shape + (1,) * (rank - axis - b.ndim))


@recipe(*BINARY)
def binary(o):
    function, name = BINARY[o.schema.name], o.schema.name
    low = {"Div": 1, "Pow": 1}.get(name, -3)

    def calculate(a, b, axis=None):
        b = aligned(b, a.ndim, axis)
        if name == "Div" and a.dtype.kind in "iu":
            return [(a // b).astype(a.dtype)]
        y = function(a, b)
        return [y if y.dtype == bool else y.astype(a.dtype)]

    x = o.x(3, 4, 5, 2, low=low)
    yield o(x, o.x(3, 4, 5, 2, low=low), expect=calculate)
    if o.has("broadcast"):
        for shape, axis in (((4, 5), 1), ((4,), 1), ((3,), 0), ((5, 2), None), ((2,), None), ((1,), None), ((), None), ((3, 4, 5), 0), ((5,), 2), ((1,), 2),
                            ((4, 5), -3)):
            yield o(x, o.x(*shape, low=low), broadcast=1, axis=axis, expect=lambda a, b, k=axis: calculate(a, b, k if k is None or k >= 0 else k + 4))
        yield o(o.x(4, 4, 4, low=low), const(o.x(4, low=low), o.dtype), broadcast=1, axis=0, expect=lambda a, b: calculate(a, b, 0))
    else:
        yield o(x, o.x(4, 1, 2, low=low), expect=calculate)
        yield o(o.x(5, 1, low=low), o.x(3, 1, 1, 4, low=low), expect=calculate)


@recipe("PRelu")
def prelu(o):
    def calculate(x, slope):
        if o.version < 7 and slope.size > 1:
            slope = slope.reshape(slope.shape + (1,) * (x.ndim - 1 - slope.ndim))
        return [np.where(x < 0, x * slope, x).astype(x.dtype)]

    slopes = [(5,), (1,)] if o.version < 7 else [(5, 1, 1), (3,), (1,), (2, 5, 4, 3)]
    for shape in slopes:
        yield o(o.x(2, 5, 4, 3), o.x(*shape), expect=calculate)
    if o.version < 7:
        yield o(o.x(4, 5), o.x(5), expect=calculate)
        yield o(o.x(2, 4, 4), const(o.x(4), o.dtype), expect=calculate)


@recipe("Max", "Min", "Sum", "Mean")
def variadic(o):
    def calculate(*values):
        fold = {"Max": np.maximum, "Min": np.minimum}.get(o.schema.name, np.add)
        total = values[0]
        for value in values[1:]:
            total = fold(total, value)
        return [(total / len(values) if o.schema.name == "Mean" else total).astype(values[0].dtype)]

    yield o(o.x(3, 7), o.x(3, 7), o.x(3, 7), expect=calculate)
    yield o(o.x(3, 7), expect=calculate)
    if o.version >= 8:
        yield o(o.x(3, 1, 5), o.x(4, 1), o.x(5), expect=calculate)


@recipe("Mod")
def mod(o):
    if o.dtype.kind in "iu":
        yield o(o.x(5, 7, low=-9, high=9), o.x(7, low=1, high=5))
    yield o(o.x(5, 7, low=-9, high=9), o.x(5, 1, low=1, high=5), fmod=1)


@recipe("BitShift")
def shift(o):
    for direction in ("LEFT", "RIGHT"):
        yield o(o.x(5, 7, low=0, high=100), o.x(7, low=0, high=3), direction=direction)


@recipe("Clip")
def clip(o):
    def calculate(x, low=None, high=None, **limits):
        low, high = limits.get("min", low), limits.get("max", high)
        x = x if low is None else np.maximum(x, x.dtype.type(low))
        return [x if high is None else np.minimum(x, x.dtype.type(high))]

    if o.has("min"):
        largest = float(np.finfo(np.float32).max)
        for limits in ({"min": -1.25, "max": 0.5}, {"max": 0.5}, {"min": -0.25}, {}):
            x = o.x(3, 5, 7)
            x.flat[:2] = np.inf, -np.inf  # are cut to the largest floats where no bound is given
            yield o(x, **limits, expect=lambda x, kept={"min": -largest, "max": largest, **limits}: calculate(x, **kept))
    else:
        low, high = const(1, o.dtype), const(2, o.dtype)
        for operands in ((low, high), (None, high), (low,), ()):
            yield o(o.x(3, 5, 7), *operands, expect=calculate)


@recipe("Where")
def where(o):
    o.dtype = o.dtype if o.suffix else np.dtype(np.float32)
    yield o(o.x(3, 1, 5, dtype=bool), o.x(4, 1), o.x(3, 4, 5))


TYPES = {"FLOAT": np.float32, "INT32": np.int32, "DOUBLE": np.float64, "BOOL": np.bool_, "INT64": np.int64, "UINT8": np.uint8, "FLOAT16": np.float16}


@recipe("Cast")
def cast(o):
    x = o.x(4, 9, low=0, high=100) if o.dtype != object else o.rng.choice(np.array(["1.5", "-2", "37"], object), (4, 9))
    for name, kind in TYPES.items():
        if np.dtype(kind) != o.dtype and (o.dtype != object or name in ("FLOAT", "INT64")):
            yield o(x, to=name if o.version < 6 else onnx.TensorProto.DataType.Value(name),
                    expect=lambda v, k=kind: [(v.astype(float) if v.dtype == object else v).astype(k)])
    if o.version >= 19 and not o.suffix:
        cases = [{"saturate": 0}, {}] + ([{"round_mode": "down"}] if o.has("round_mode") else [])
        for more in cases:  # there and back, for files of NumPy have no 8-bit floats
            to = onnx.TensorProto.FLOAT8E4M3FN
            nodes = [helper.make_node("Cast", ["x"], ["t"], to=to, **{k: v for k, v in more.items() if k != "round_mode"}),
                     helper.make_node("Cast", ["t"], ["y"], to=onnx.TensorProto.FLOAT)]
            def narrowed(x, clip=more.get("saturate") != 0):  # ONNX Runtime keeps some numbers finite that are out of range
                return [(np.clip(x, -448, 448) if clip else x).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)]
            yield o.graph(nodes, {"x": o.x(5, 9, low=-600, high=600)}, ["y"], expect=narrowed, decided=True)


@recipe("CastLike")
def cast_like(o):
    for kind in (np.int32, np.float16, np.float32):
        if np.dtype(kind) != o.dtype and o.dtype != object:
            yield o(o.x(4, 9, low=0, high=9), const([1], kind))


SAME_WIDTH = [[np.dtype(t) for t in kinds] for kinds in
              ((np.float64, np.int64, np.uint64), (np.float32, np.int32, np.uint32), (np.float16, ml_dtypes.bfloat16, np.int16, np.uint16),
               (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int8, np.uint8, bool))]


@recipe("BitCast")
def bit_cast(o):
    for kinds in SAME_WIDTH:
        for kind, to in itertools.permutations(kinds, 2):
            # Whole numbers whose bits are no NaN of any float.
            x = o.x(4, 9, low=0, high=100 if to != bool else 1, dtype=kind) if kind.kind in "iub" else o.x(4, 9, low=0.25 if to == bool else -3, dtype=kind)
            if to == bool:
                x = np.where(o.rng.random(x.shape) < 0.5, x, np.zeros((), kind))
            yield o(x, to=helper.np_dtype_to_tensor_dtype(to), expect=lambda x, to=to: [x.view(np.uint8) != 0 if to == bool else x.view(to)])


@recipe("Dropout")
def dropout(o):
    data = o.x(4, 9)
    for ratio in (0.0, 0.4):
        if o.version < 12:
            # The ratio does not matter where nothing is dropped.
            yield o(data, ratio=ratio, is_test=1 if o.has("is_test") else None, expect=lambda x: [x])
        else:
            yield o(data, const(ratio, np.float32), const(False, np.bool_), outputs=2, expect=lambda x, *_: [x, np.ones(x.shape, bool)])
    if o.has("is_test"):  # training, with nothing dropped
        yield o(data, ratio=0.0, outputs=2, expect=lambda x: [x, np.ones_like(x)])
        yield o(np.ones((40, 50), o.dtype), ratio=0.25, check=lambda y: dropped(y[0], 0.25), expect=lambda x: [x])
    if o.version >= 12:
        yield o(np.ones((40, 50), o.dtype), const(0.25, np.float32), const(True, np.bool_), check=lambda y: dropped(y[0], 0.25))
        yield o(data)


def dropped(y, ratio):
    """What is wrong with ones after Dropout."""
    share, kept = np.mean(y == 0), y[y != 0].astype(float)
    return "" if abs(share - ratio) < 0.06 and np.allclose(kept, 1 / (1 - ratio), rtol=2e-3) else f"{share:.2f} are zero, {kept[:3]} are kept"
