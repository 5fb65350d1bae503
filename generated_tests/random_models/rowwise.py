"""Operators that sum, rank or normalise along axes."""
import numpy as np

from evaluate import Draft, Unfit
from graph import BF16, F16, F32, F64, FLOATS, I8, I32, I64, NUMBERS, U8, is_float
from rows import Row, attributes_of, axis_of, ints, kind_for, maybe, pick_axes, trimmed

SUMMED = (F32, F16, F64, BF16, I32, I64)


def reduction(kind, types=SUMMED, **limits):
    def draw(g, op):
        v = g.operand(types, where=lambda v: v.rank > 0 and v.size > 0, **limits)
        axes = None if g.rng.random() < 0.12 else pick_axes(g, v)
        attributes = attributes_of(g, {"keepdims": [0, 1]})
        if axes is None and g.rng.random() < 0.3 and g.opset >= (13 if op == "ReduceSum" else 18):
            attributes["noop_with_empty_axes"] = 1
        if axes is not None and g.opset < 11:
            axes = [a % v.rank for a in axes]
        g.add(Draft(op, trimmed(v, ints(g, axes) if axes else None), attributes), kind)
    return draw


def arg(g, op):
    v = g.operand((F32, F64, I32, U8, I8, F16), exact=True, where=lambda v: v.rank > 0 and v.size > 0 and np.isfinite(v.array).all())
    spec = {"keepdims": [0, 1]} | ({"select_last_index": [0, 1]} if g.opset >= 12 else {})
    axis = axis_of(g, v) if g.opset >= 11 else g.rng.randrange(v.rank)
    drawn = attributes_of(g, spec) | {"axis": axis}
    g.add(Draft(op, (v,), drawn), "decides")
    if g.opset >= 12 and g.rng.random() < 0.5:  # ties at both ends
        g.add(Draft(op, (v,), drawn | {"select_last_index": 1 - drawn.get("select_last_index", 0)}), "decides")


def softmax(g, op):
    v = g.operand((F32, F64, F16) if op != "Hardmax" else (F32, F64), exact=op == "Hardmax",
                  where=lambda v: v.rank > 0 and v.size > 0 and (op != "Hardmax" or np.isfinite(v.array).all()))  # runtimes part over NaN
    axis = axis_of(g, v) if g.opset >= 11 else g.rng.randrange(v.rank)
    g.add(Draft(op, (v,), {"axis": axis} if g.rng.random() < 0.7 else {}), "decides" if op == "Hardmax" else "never")


def running(g, op):
    v = g.operand((F32, F64, I64, I32), where=lambda v: v.rank > 0, **({"low": -2, "high": 2} if op == "CumProd" else {}))
    g.add(Draft(op, (v, g.known(np.asarray(axis_of(g, v), g.rng.choice([I64, I32])))), attributes_of(g, {"exclusive": [0, 1], "reverse": [0, 1]})), "short")


def norm_rows(g, op):
    v = g.operand((F32, F16, F64, BF16), where=lambda v: v.rank > 0 and v.size > 0)
    axis = axis_of(g, v)
    inner = v.shape[axis % v.rank:]
    if np.prod(inner) < 2:
        raise Unfit("one number")
    # Parameters that broadcast are allowed, and seldom
    shape = inner if g.rng.random() < 0.8 else inner[-1:]
    scale = g.fresh(v.dtype, shape, style="fractions")
    bias = maybe(g, lambda: g.fresh(v.dtype, shape, style="fractions")) if op == "LayerNormalization" else None
    g.add(Draft(op, trimmed(v, scale, bias), {"axis": axis, "epsilon": g.rng.choice([1e-5, 1e-2, 1e-3])}))


def norm_channels(g, op):
    v = g.operand((F32, F16, F64), where=lambda v: v.rank > 2 and v.size > 0 and np.prod(v.shape[2:]) > 1)
    c = v.shape[1]
    attributes = {"epsilon": g.rng.choice([1e-5, 1e-2])}
    if op == "GroupNormalization":
        attributes["num_groups"] = g.rng.choice([k for k in range(1, c + 1) if c % k == 0])
        if g.opset < 21:
            return g.add(Draft(op, (v, *(g.fresh(v.dtype, (attributes["num_groups"],), low=-2, high=2) for _ in "ab")), attributes))
    g.add(Draft(op, (v, g.fresh(v.dtype, (c,), low=-2, high=2), g.fresh(v.dtype, (c,), low=-2, high=2)), attributes))


def batch_norm(g, op):
    v = g.operand((F32, F16, F64), where=lambda v: v.rank > 1 and v.size > 0)
    c = v.shape[1]
    mean_size, small = g.rng.choice([2.0, 2.0, 300.0 if v.dtype == F16 else 20.0]), g.rng.choice([0.5, 0.5, 2.0**-12])
    parameters = [g.fresh(v.dtype, (c,), low=l, high=h, constant=g.rng.random() < 0.85) for l, h in ((0.25, 2), (-2, 2), (-mean_size, mean_size), (small, 2))]
    attributes = {"epsilon": g.rng.choice([1e-5, 1e-3])}
    if g.opset < 7:
        attributes["is_test"] = 1
    if g.opset < 9 and g.rng.random() < 0.2 and not any(d == 0 for d in v.shape):
        attributes["spatial"] = 0
        parameters = [g.fresh(v.dtype, v.shape[1:], low=l, high=h) for l, h in ((0.25, 2), (-2, 2), (-2, 2), (0.5, 2))]
    g.add(Draft(op, (v, *parameters), attributes))


def lrn(g, op):
    v = g.operand((F32,), where=lambda v: v.rank > 2)
    g.add(Draft(op, (v,), {"size": g.rng.choice([1, 3, 5, 2])} | attributes_of(g, {"alpha": [1e-4, 0.1], "beta": [0.75, 0.5], "bias": [1.0, 2.0]})))


def lp(g, op):
    v = g.operand((F32, F64), where=lambda v: v.rank > 0 and v.size > 0 and not (v.array == 0).any())
    g.add(Draft(op, (v,), attributes_of(g, {"axis": axis_of, "p": [1, 2]}, v)))


def losses(g, op):
    n, c, more = g.rng.choice([2, 5]), g.rng.choice([3, 7]), g.rng.choice([(), (3,), (2, 3)])
    scores = g.operand((F32,), shape=(n, c, *more))
    classes = g.fresh(I64, (n, *more), low=0, high=c - 1)
    weight = maybe(g, lambda: g.fresh(F32, (c,), low=0.5, high=2))
    attributes = attributes_of(g, {"reduction": ["none", "sum", "mean"], "ignore_index": [1, 0]})
    g.add(Draft(op, trimmed(scores, classes, weight), attributes))


def mean_variance(g, op):
    v = g.operand((F32,), where=lambda v: v.rank == 4 and v.size > 0)
    axes = g.rng.choice([[0, 2, 3], [2, 3], [1], [0, 1, 2, 3]])
    if v.array.astype(np.float64).std(tuple(axes)).min(initial=1) < 1e-3:
        raise Unfit("ONNX Runtime adds nothing to the deviation, where ONNX adds 1e-9")
    g.add(Draft(op, (v,), {"axes": axes} if axes != [0, 2, 3] or g.rng.random() < 0.5 else {}))


def square(g, op):
    n = g.rng.choice([1, 2, 3, 5])
    v = g.fresh(F32, (g.rng.choice([1, 2, 3]), n, n), style="normal")
    g.add(Draft(op, (v,), {}, 1, "com.microsoft" if op == "Inverse" else ""))


ROWS = [
    Row("ReduceSum", reduction("short"), 2), Row("ReduceMean ReduceL2", reduction("never", (F32, F16, F64, BF16)), 1.6), Row("ReduceMax ReduceMin", reduction("move", NUMBERS), 1.6),
    Row("ReduceL1 ReduceSumSquare", reduction("short", (F32, F16, F64, I32)), 1), Row("ReduceProd", reduction("never", (F32, F64), low=-2, high=2), 0.5),
    Row("ReduceLogSum", reduction("never", (F32, F64), low=0.1), 0.5), Row("ReduceLogSumExp", reduction("never", (F32, F64)), 0.6), Row("ArgMax ArgMin", arg, 1.5),
    Row("Softmax LogSoftmax Hardmax", softmax, 2.5), Row("CumSum CumProd", running, 1), Row("LayerNormalization RMSNormalization", norm_rows, 1.5),
    Row("InstanceNormalization GroupNormalization", norm_channels, 1), Row("BatchNormalization", batch_norm, 1.6), Row("LRN", lrn, 0.4), Row("LpNormalization", lp, 0.5),
    Row("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", losses, 0.5), Row("MeanVarianceNormalization", mean_variance, 0.3), Row("Det Inverse", square, 0.3),
]
