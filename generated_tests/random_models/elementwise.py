"""Operators that treat each element by itself."""
import numpy as np

from evaluate import I4, U4, Draft, Unfit, onnx_type
from graph import ALL, BF16, BOOL, F16, F32, F64, FLOATS, I8, I16, I32, I64, NUMBERS, U8, U16, U32, U64, WHOLE, is_float
from rows import Row, attributes_of, binary, composite, kind_for, maybe, partner, several, trimmed, unary

SIGNED = FLOATS + (I64, I32, I8)


def old_binary(g, op):
    """Before operator set 7: the second operand's axes lie along some of the first's, from `axis` on."""
    if g.opset >= 7:
        raise Unfit("broadcasts without attributes")
    v = g.operand((F32, F64, I32, I64) if op != "PRelu" else (F32, F64), low=-6)
    begin = g.rng.randrange(v.rank + 1)
    end = g.rng.randrange(begin, v.rank + 1)
    shape = v.shape[begin:end]
    other = g.fresh(v.dtype, shape, **({"low": 1} if op in ("Div", "Pow") else {}))
    whole = dataclass_copy(other, other.array.reshape(shape + (1,) * (v.rank - end)))
    attributes = {"broadcast": 1} | ({"axis": begin} if end < v.rank or g.rng.random() < 0.5 else {})
    g.add(Draft(op, (v, other), attributes), "never" if op in ("Div", "Pow") else "short", meaning=Draft(op, (v, whole)))


def dataclass_copy(value, array):
    import dataclasses
    return dataclasses.replace(value, array=array)


def pow_(g, op):
    v = g.operand((F32, F64, F16), low=0.1, high=6) if g.rng.random() < 0.5 else g.operand(FLOATS, low=-9, high=9)
    if v.array.size and v.array.astype(np.float64).min() > 0:
        power = g.fresh(v.dtype, v.shape if g.rng.random() < 0.4 else (), low=-2, high=2)
    else:
        power = g.known(np.asarray(g.rng.choice([0, 1, 2, 3, 4]), g.rng.choice([v.dtype, v.dtype, np.dtype("f4"), I64, I32])))
    g.add(Draft(op, (v, power)), "never")


def mod(g, op):
    if g.rng.random() < 0.5:
        v = g.operand((I64, I32, I8, U8), exact=True)
        by = g.known(np.asarray(g.rng.choice([1, 2, 3, 5, 7, 16]) * g.rng.choice([1, 1, -1] if v.dtype != U8 else [1]), v.dtype))
        g.add(Draft(op, (v, by), {"fmod": 1} if g.rng.random() < 0.3 else {}), "decides")
    else:
        v = g.operand((F32, F64), exact=True)
        g.add(Draft(op, (v, g.known(np.asarray(g.rng.choice([0.5, 2, 4, -1]), v.dtype))), {"fmod": 1}), "decides")


def divide(g, op):
    v = g.operand(NUMBERS)
    if is_float(v.dtype):
        by = g.rng.choice([lambda: partner(g, v, low=0.25, high=9), lambda: g.known(np.asarray(g.rng.choice([2.0, 0.5, -4.0, 3.0, 2.0**-17, 1e-3, 7]), v.dtype))])()
        g.add(Draft(op, (v, by)), "never")
    else:
        v = g.operand(WHOLE, low=0)  # towards zero or down: only where that is the same
        g.add(Draft(op, (v, partner(g, v, low=1, high=9))), "move")


def where(g, op):
    test = g.operand((BOOL,), constant=True if g.rng.random() < 0.2 else None)
    v = g.operand(ALL)
    other = partner(g, v)
    operands = (test, v, other) if g.rng.random() < 0.5 else (test, other, v)
    g.add(Draft(op, operands), "move")


def clip(g, op):
    v = g.operand(NUMBERS)
    unsigned = v.dtype.kind == "u"
    low = maybe(g, lambda: g.known(np.asarray(g.rng.choice([0, 1] if unsigned else [-2, -1, 0, 0, 1]), v.dtype), g.rng.random() < 0.9), 0.8)
    high = maybe(g, lambda: g.known(np.asarray(g.rng.choice([1, 2, 3, 6, 6]), v.dtype), g.rng.random() < 0.9), 0.8)
    g.add(Draft(op, trimmed(v, low, high)), "move")


def between_ties(g, dtype, to):
    """Floats that have one nearest integer, within the range of `to`: ONNX Runtime rounds a tie away from zero."""
    low, high = (-8, 7) if to == I4 else (0, 15)
    r = np.random.default_rng(g.rng.randrange(1 << 30))
    shape = g.draw_shape()
    return np.clip(r.integers(low, high + 1, shape) + r.choice([-0.375, -0.25, 0, 0.25, 0.375], shape), low, high).astype(dtype)


def cast(g, op):
    v = g.operand(ALL)
    to = g.rng.choice([*ALL, I4, U4] if g.opset >= 21 and v.dtype in (F16, F32, F64) else ALL)
    kind = "move"
    if to in (I4, U4):
        v = g.known(between_ties(g, v.dtype, to), False)
    elif is_float(v.dtype) and not is_float(to):
        v = g.operand((v.dtype,), exact=True, low=0 if to.kind == "u" else -100, high=100)
        kind = "decides"
    elif not is_float(v.dtype) and is_float(to):
        v = g.operand((v.dtype,), low=-1000, high=1000) if v.dtype != BOOL else v
    attributes = {"to": onnx_type(to)}
    if op == "CastLike":
        g.add(Draft(op, (v, g.operand((to,)))), kind)
    else:
        g.add(Draft(op, (v,), attributes), kind)


def bits(g, op):
    v = g.operand((np.dtype("u1"), np.dtype("u4"), np.dtype("u8"), np.dtype("u2")))
    by = partner(g, v, low=0, high=7)
    g.add(Draft(op, (v, by), {"direction": g.rng.choice(["LEFT", "RIGHT"])}), "move")


def bit_cast(g, op):
    kinds = (F32, F64, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8)
    v = g.operand(kinds, exact=True)
    to = g.rng.choice([t for t in kinds if t.itemsize == v.dtype.itemsize])
    g.add(Draft(op, (v,), {"to": onnx_type(to)}), "move")


def prelu(g, op):
    v = g.operand((F32, F64, F16))
    slope = g.fresh(v.dtype, g.rng.choice([v.shape, v.shape[-1:], (v.shape[1], *[1] * (v.rank - 2)) if v.rank > 1 else (), ()]))
    g.add(Draft(op, (v, slope)), "short")


def dropout(g, op):
    v = g.operand((F32, F64, F16))
    ratio = maybe(g, lambda: g.known(np.float32(0.3)), 0.5)
    outputs = 2 if g.opset >= 12 and g.rng.random() < 0.3 else 1
    g.add(Draft(op, trimmed(v, ratio), {}, outputs), "move")


def swiglu(g, op):
    v = g.operand((F32, F16))
    g.add(Draft(op, (v, partner(g, v)), attributes_of(g, {"alpha": [1.0, 1.5]})))


ALPHA = {"alpha": [0.01, 0.3, 1.0, 1.5]}
DECIDED = dict(kind="decides", exact=True)
ROWS = [
    Row("Abs Neg Identity", unary(SIGNED, "move"), 3), Row("Relu", unary((F32, F64, F16, BF16, I32, I8), "move"), 3),
    Row("Sign", unary(NUMBERS, **DECIDED)), Row("Ceil Floor Round", unary(FLOATS, **DECIDED), 0.6),
    Row("Exp Sinh Cosh", unary(FLOATS, low=-6, high=5)), Row("Log Sqrt Reciprocal", unary(FLOATS, low=0.05), 1.2), Row("Erf Sigmoid Tanh Softplus Softsign", unary(FLOATS), 3),
    Row("Sin Cos", unary(FLOATS, low=-50, high=50)), Row("Tan", unary(FLOATS, low=-1.3, high=1.3), 0.4), Row("Asin Acos Atanh", unary(FLOATS, low=-0.95, high=0.95), 0.6),
    Row("Acosh", unary(FLOATS, low=1.1), 0.3), Row("Asinh Atan", unary(FLOATS), 0.5), Row("IsNaN IsInf", unary(FLOATS, "decides", exact=True), 0.4),
    Row("Add Sub Mul", binary(NUMBERS), 6), Row("Div", divide, 2), Row("Pow", pow_, 1.2), Row("Mod", mod, 0.8),
    Row("Max Min", several(NUMBERS, "move"), 2), Row("Sum", several(FLOATS, "short")), Row("Mean", several(FLOATS, "never"), 0.6),
    Row("BitShift", bits, 0.4), Row("BitwiseAnd BitwiseOr BitwiseXor", binary(WHOLE, "decides"), 0.6), Row("BitwiseNot", unary(WHOLE, "decides"), 0.3),
    Row("Equal Greater Less GreaterOrEqual LessOrEqual", lambda g, op: compare(g, op), 2), Row("And Or Xor", binary((BOOL,), "move"), 1.2), Row("Not", unary((BOOL,), "move"), 0.6),
    Row("Clip", clip, 1.5), Row("Where", where, 2.5), Row("Cast CastLike", cast, 2.5), Row("BitCast", bit_cast, 0.3), Row("PRelu", prelu), Row("Dropout", dropout, 0.5),
    Row("Mish HardSwish", unary(FLOATS), 1.2), Row("Gelu", unary(FLOATS, spec={"approximate": ["none", "tanh"]})),
    Row("Elu Celu ThresholdedRelu", unary((F32, F64, F16), spec=ALPHA, exact=True)), Row("LeakyRelu", unary(FLOATS, spec=ALPHA), 1.2), Row("Swish", unary(FLOATS, spec=ALPHA), 0.5),
    Row("Selu", unary((F32, F64, F16), spec=ALPHA | {"gamma": [0.5, 1.05, 2.0]}), 0.6), Row("Shrink", unary((F32, I32, F16), spec={"bias": [0.0, 0.5], "lambd": [0.5, 1.0]}, exact=True), 0.5),
    Row("HardSigmoid", unary(FLOATS, spec={"alpha": [0.2, 1 / 6, 0.5], "beta": [0.5, 0.25]})), Row("SwiGLU", swiglu, 0.2),
    Row("Add Sub Mul Div Pow PRelu", old_binary, 3),
]


def compare(g, op):
    v = g.operand(NUMBERS, exact=True)
    other = partner(g, v)
    g.add(Draft(op, (v, other)), "decides")
