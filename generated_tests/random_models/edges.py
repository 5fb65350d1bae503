"""Numbers at the edges of their types, and expressions that are something simpler unless a number is one of those: NaN, infinities,
zeros of both signs, denormals, the largest floats and integers. Ranks of more than five, and axes counted from the end."""
import numpy as np

from evaluate import Draft, Unfit
from graph import BF16, BOOL, F16, F32, F64, FLOATS, I8, I32, I64, NUMBERS, U8, is_float
from rows import Row, attributes_of, axis_of, ints, partner, trimmed

SIZES = [1, 1, 2, 3, 5]


def operand(g, types=(F32, F32, F64, F16, BF16), **wanted):
    """A tensor that has numbers at the edges, where it is a new one."""
    return g.operand(types, fresh=0.4, **wanted)


def known(g, v, number):
    """A scalar of v's type, now and then as a tensor of one element."""
    with np.errstate(all="ignore"):
        return g.known(np.full(g.rng.choice([(), (), (1,)]), number).astype(v.dtype))


def one(g, op, *operands, **attributes):
    return g.op(op, *operands, kind="move" if op in MOVES else "never", **attributes)


MOVES = {"Max", "Min", "Relu", "Neg", "Abs", "Where", "Not", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal", "IsNaN", "IsInf", "Clip", "And", "Or", "Sign", "Identity"}


def chosen(g, op):
    """A comparison chooses between an operand and a constant: Relu, Clip, Abs, Max, unless the operand is no number."""
    x = operand(g, where=lambda v: v.exact)
    c = known(g, x, g.rng.choice([0, 0, 0, -1, 1, np.inf, -np.inf, np.nan, -0.0]))
    test = one(g, g.rng.choice(["Less", "Greater"] + (["LessOrEqual", "GreaterOrEqual"] if g.opset >= 12 else [])), *g.rng.choice([(x, c), (c, x)]))
    if g.rng.random() < 0.4:
        test = one(g, "Not", test)
    other = g.rng.choice([lambda: c, lambda: c, lambda: known(g, x, 0), lambda: one(g, "Neg", x), lambda: x])()
    one(g, "Where", test, *g.rng.choice([(x, other), (other, x)]))


def bounds(g, op):
    """Max and Min of an operand and constants, one after the other, whatever their order."""
    y = operand(g, (F32, F64, F16, BF16, I32, I64, I8, U8))
    for _ in range(g.rng.choice([1, 2, 3])):
        numbers = [0, 1, 6, 100] + ([np.inf, -np.inf, -0.0, -1] if is_float(y.dtype) else [])
        y = extreme(g, y, numbers)


def extreme(g, y, numbers):
    kind = g.rng.choice(["Max", "Min", "Relu", "Clip"] if is_float(y.dtype) else ["Max", "Min", "Clip"])
    if kind == "Relu":
        return one(g, kind, y)
    c = known(g, y, g.rng.choice(numbers))
    if kind == "Clip":
        if g.opset < 12:
            raise Unfit("attributes then")
        low, high = (g.known(np.asarray(g.rng.choice(numbers)).astype(y.dtype)) if g.rng.random() < 0.7 else None for _ in range(2))
        return g.op("Clip", *trimmed(y, low, high), kind="move")
    return one(g, kind, *g.rng.choice([(y, c), (c, y)]))


def nothing(g, op):
    """What is 0, 1 or the operand itself for ordinary numbers."""
    x = operand(g)
    c = g.rng.choice
    y = {"x*0": lambda: one(g, "Mul", x, known(g, x, c([0, -0.0]))), "x-x": lambda: one(g, "Sub", x, x), "x/x": lambda: one(g, "Div", x, x), "0/x": lambda: one(g, "Div", known(g, x, 0), x),
         "x+0": lambda: one(g, "Add", x, known(g, x, c([0, -0.0]))), "0-x": lambda: one(g, "Sub", known(g, x, 0), x), "x*1": lambda: one(g, "Mul", x, known(g, x, c([1, -1]))), "x^0": lambda: one(g, "Pow", x, known(g, x, c([0, 0.5, -0.5, 1, 2, -1, -2, 3]))),
         "1^x": lambda: one(g, "Pow", known(g, x, c([1, 2, 0])), x), "exp(log)": lambda: one(g, "Exp", one(g, "Log", x)), "sqrt(x*x)": lambda: one(g, "Sqrt", one(g, "Mul", x, x)), "1/(1/x)": lambda: one(g, "Reciprocal", one(g, "Reciprocal", x)),
         "x-(x-y)": lambda: one(g, "Sub", x, one(g, "Sub", x, partner(g, x))), "x*y/y": lambda: (lambda y: one(g, "Div", one(g, "Mul", x, y), y))(partner(g, x)), "1/sqrt": lambda: one(g, "Reciprocal", one(g, "Sqrt", x)),
         "x/c": lambda: one(g, "Div", x, known(g, x, c([3, 1e-3, 2.0**-20, np.inf, 0, -0.0, 1e4]))), "x*c*d": lambda: one(g, "Mul", one(g, "Mul", x, known(g, x, c([1e4, 1e-3, 0]))), known(g, x, c([1e4, 1e-4, np.inf]))),
         "x+c+d": lambda: one(g, "Add", one(g, "Add", x, known(g, x, c([1e4, -np.inf]))), known(g, x, c([-1e4, np.inf])))}
    y[g.rng.choice(list(y))]()


def gates(g, op):
    """Activations as exporters spell them: what grows times what vanishes."""
    x = operand(g)
    k = lambda number: known(g, x, number)
    forms = [lambda: one(g, "Mul", x, one(g, "Sigmoid", x)), lambda: one(g, "Mul", x, one(g, "Tanh", one(g, "Softplus", x))),
             lambda: one(g, "Mul", x, one(g, "Div", g.op("Clip", one(g, "Add", x, k(3)), g.known(np.asarray(0, x.dtype)), g.known(np.asarray(6, x.dtype))), k(6))),
             lambda: one(g, "Mul", one(g, "Mul", x, k(0.5)), one(g, "Add", one(g, "Erf", one(g, "Div", x, k(2**0.5))), k(1))),
             lambda: one(g, "Reciprocal", one(g, "Add", one(g, "Exp", one(g, "Neg", x)), k(1))), lambda: one(g, "Log", one(g, "Add", one(g, "Exp", x), k(1))),
             lambda: one(g, "Div", x, one(g, "Add", one(g, "Abs", x), k(1))), lambda: one(g, "Sub", one(g, "Relu", x), one(g, "Relu", one(g, "Neg", x)))]
    if g.opset < 12:
        raise Unfit("Clip has attributes then")
    g.rng.choice(forms)()


def named(g, op):
    g.op(op, operand(g), **attributes_of(g, {"alpha": [0.3, 0.0, -1.0]} if op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu") else {}))


def exact_unary(g, op):
    v = operand(g, (F32, F64, F16, BF16) if op in ("IsNaN", "Ceil", "Floor", "Round") else (F32, F64) if op == "IsInf" else (F32, F64, F16, BF16, I32, I64, I8), where=lambda v: v.exact)
    g.add(Draft(op, (v,), attributes_of(g, {"detect_negative": [0, 1], "detect_positive": [0, 1]} if op == "IsInf" else {})), "decides")


def tested(g, op):
    """What is no number is found out, and replaced."""
    x = operand(g, where=lambda v: v.exact)
    test = g.rng.choice([lambda: one(g, "IsNaN", x), lambda: one(g, "Not", one(g, "Equal", x, x)), lambda: one(g, "IsInf", x) if x.dtype in (F32, F64) else one(g, "IsNaN", x), lambda: one(g, "Equal", x, partner(g, x))])()
    one(g, "Where", test, *g.rng.choice([(known(g, x, g.rng.choice([0, -1, np.inf])), x), (x, known(g, x, 0))]))


def over_axes(g, op):
    v = operand(g, (F32, F32, F64, F16), where=lambda v: v.rank > 0)
    axes = g.rng.sample(range(v.rank), g.rng.randrange(1, v.rank + 1))
    g.add(Draft(op, (v, ints(g, [a - v.rank if g.rng.random() < 0.5 else a for a in axes])), attributes_of(g, {"keepdims": [0, 1]})), "move" if op in ("ReduceMax", "ReduceMin") else "never")


def along(g, op):
    v = operand(g, (F32, F32, F64, F16), where=lambda v: v.rank > 0)
    if op == "CumSum":
        return g.add(Draft(op, (v, ints(g, axis_of(g, v))), attributes_of(g, {"exclusive": [0, 1], "reverse": [0, 1]})), "never")
    g.op(op, v, axis=axis_of(g, v))


def spelled(g, op):
    """Softmax and its logarithm of smaller operators, with or without the maximum."""
    x = operand(g, (F32, F32, F64, F16), where=lambda v: v.rank > 0)
    axes = ints(g, [axis_of(g, x)])
    y = one(g, "Sub", x, g.op("ReduceMax", x, axes, kind="move", keepdims=1)) if g.rng.random() < 0.5 else x
    e = one(g, "Exp", y)
    total = g.op("ReduceSum", e, axes, keepdims=1)
    g.rng.choice([lambda: one(g, "Div", e, total), lambda: one(g, "Log", total), lambda: one(g, "Sub", y, one(g, "Log", total)), lambda: one(g, "Mul", e, one(g, "Reciprocal", total))])()


def product(g, op):
    """Sums of products, some of them of zeros and infinities; sizes that no vector divides."""
    m, k, n = (g.rng.choice([1, 2, 3, 5, 7, 17, 19]) for _ in range(3))
    batch = g.rng.choice([(), (), (2,), (3, 1)])
    a = g.fresh(g.rng.choice([F32, F32, F16, F64]), (*batch, m, k))
    b = g.fresh(a.dtype, g.rng.choice([(k, n), (*batch, k, n)]), style="normal")
    y = g.op("MatMul", *((a, b) if g.rng.random() < 0.7 else (g.op("Identity", a, kind="move"), b)))
    if g.rng.random() < 0.4:
        g.op(g.rng.choice(["Relu", "Sigmoid", "Tanh"]), y)


def picture(g, op):
    """Windows over numbers at the edges."""
    c = g.rng.choice([1, 3, 5, 8])
    x = g.fresh(g.rng.choice([F32, F32, F64]), (g.rng.choice([1, 2]), c, g.rng.choice([5, 7, 9]), g.rng.choice([5, 6, 11])))
    spec = {"strides": [[1, 1], [2, 2], [2, 1]], "pads": [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]]}
    if op == "Conv":
        return g.op(op, x, g.fresh(x.dtype, (g.rng.choice([1, 4, 7]), c, 3, 3), style="normal"), **attributes_of(g, spec))
    if op == "ConvTranspose":
        return g.op(op, x, g.fresh(x.dtype, (c, g.rng.choice([1, 4]), *g.rng.choice([(3, 3), (2, 4), (5, 2)])), style="normal"), **attributes_of(g, spec))
    if op == "AveragePool":
        return g.op(op, x, kernel_shape=[3, 3], **attributes_of(g, spec | {"count_include_pad": [0, 1], "ceil_mode": [0, 1]}))
    if op == "MaxPool":
        return g.op(op, x, kernel_shape=[3, 3], kind="move", **attributes_of(g, spec | {"ceil_mode": [0, 1]}))
    g.op(op, x, kind="move" if op == "GlobalMaxPool" else "never")


def whole(g, op):
    """Integers that wrap."""
    v = operand(g, (I64, I32, I8, U8, np.dtype("i2"), np.dtype("u2"), np.dtype("u4"), np.dtype("u8")))
    if op in ("Abs", "Neg") and v.dtype.kind == "u":
        raise Unfit("no sign")
    if op == "Cast":
        return g.op(op, v, kind="move", to=g.rng.choice([2, 3, 4, 5, 6, 7, 9, 12, 13]))
    g.op(op, *((v,) if op in ("Abs", "Neg", "Sign", "BitwiseNot") else (v, partner(g, v))), kind="move")


def turned(g, op):
    """Tensors of six to eight axes."""
    v = operand(g, (F32, I64, U8, F16), where=lambda v: v.rank > 5) if g.rng.random() < 0.5 else g.fresh(g.rng.choice([F32, F32, I64, U8, F16, BOOL]), [g.rng.choice(SIZES) for _ in range(g.rng.choice([6, 7, 8]))])
    axis = axis_of(g, v)
    if op == "Transpose":
        return g.op(op, v, kind="move", perm=g.rng.sample(range(v.rank), v.rank))
    if op == "Concat":
        return g.op(op, v, g.fresh(v.dtype, v.shape), kind="move", axis=axis)
    if op == "Slice":
        return g.op(op, v, ints(g, [-1]), ints(g, [-1000]), ints(g, [axis]), ints(g, [-1]), kind="move")
    if op == "Gather":
        return g.op(op, v, g.known(np.asarray(-1, I64)), kind="move", axis=axis)
    if op == "Unsqueeze":
        return g.op(op, v, ints(g, [-1]), kind="move")
    if op == "ReduceMax" and v.dtype != BOOL:
        return g.op(op, v, ints(g, [axis]), kind="move", keepdims=g.rng.randrange(2))
    if op == "Add" and v.dtype != BOOL:
        return g.op(op, v, g.fresh(v.dtype, [d if g.rng.random() < 0.5 else 1 for d in v.shape][g.rng.randrange(3):]), kind="move" if not is_float(v.dtype) else "never")
    if op == "Expand":
        return g.op(op, g.fresh(v.dtype, [d if g.rng.random() < 0.5 else 1 for d in v.shape]), ints(g, v.shape), kind="move")
    raise Unfit("another type")


ROWS = [
    Row("Where", chosen, 4), Row("Max Min Clip", bounds, 4), Row("Mul", nothing, 7), Row("Sigmoid", gates, 3), Row("IsNaN", tested, 2),
    Row("Exp Log Sqrt Reciprocal Erf Sigmoid Tanh Softplus Softsign Sin Cos Atan Asinh Mish HardSwish Gelu Elu Celu Selu LeakyRelu HardSigmoid Sinh Cosh Tan Asin Acosh Atanh", named, 5),
    Row("Sign Abs Neg Ceil Floor Round IsNaN IsInf", exact_unary, 4), Row("ReduceMax ReduceMin ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp", over_axes, 5),
    Row("Softmax LogSoftmax CumSum LpNormalization", along, 3), Row("Div", spelled, 2), Row("MatMul", product, 2), Row("Conv ConvTranspose AveragePool MaxPool GlobalMaxPool GlobalAveragePool", picture, 2),
    Row("Add Sub Mul Abs Neg Max Min Sign BitwiseNot BitwiseXor Cast", whole, 3), Row("Transpose Concat Slice Gather Unsqueeze ReduceMax Add Expand", turned, 3),
]
