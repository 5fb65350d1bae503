"""Reductions, normalisations, and what looks along an axis."""
import numpy as np

from history import const, recipe

REDUCE = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod,
          "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k), "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
          "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k), "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
          "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k))}


@recipe(*REDUCE)
def reduce(o):
    low = 1 if o.schema.name in ("ReduceLogSum", "ReduceProd") else -2
    for axes, keep in (([1], 0), ([0, 2], 1), (None, 0), (None, None)) + ((([-1, 1], 0),) if o.version >= 11 else ()):
        def calculate(x, *_, axes=axes, keep=keep):
            y = REDUCE[o.schema.name](x.astype(np.float64), axis=None if axes is None else tuple(axes), keepdims=keep != 0)
            return [np.asarray(y).astype(x.dtype)]
        x = o.x(3, 4, 5, low=low, high=2)
        yield o(x, axes=axes, keepdims=keep, expect=calculate) if o.has("axes") else o(x, None if axes is None else const(axes), keepdims=keep, expect=calculate)
    if o.has("noop_with_empty_axes"):
        yield o(o.x(3, 4, low=1), noop_with_empty_axes=1)
        yield o(o.x(3, 4, low=1), const([]), noop_with_empty_axes=0)


@recipe("ArgMax", "ArgMin")
def arg(o):
    pick = np.argmax if o.schema.name == "ArgMax" else np.argmin
    for axis, keep, last in ((None, 1, 0), (1, 0, 0), (2, 1, 1)) + (((-2, 0, 1),) if o.version >= 11 else ()):
        def calculate(x, axis=axis, keep=keep, last=last):
            k = axis or 0
            y = x.shape[k] - 1 - pick(np.flip(x, k), k) if last and o.has("select_last_index") else pick(x, k)
            return [(np.expand_dims(y, k) if keep else y).astype(np.int64)]
        yield o(o.x(3, 4, 5, low=0, high=1), axis=axis, keepdims=keep, select_last_index=last if o.has("select_last_index") else None, expect=calculate)


@recipe("CumSum", "CumProd")
def cumulative(o):
    for axis, exclusive, reverse in ((1, 0, 0), (0, 1, 0), (-1, 1, 1)):
        yield o(o.x(3, 4, 5, low=1, high=2), const(axis, np.int32 if axis else np.int64), exclusive=exclusive, reverse=reverse)


def nan_in(o, x, axis, more, calculate):
    """TopK of numbers some of which are none, by its definition: to ONNX Runtime their place depends on where they stand."""
    if o.is_float:
        x = x.copy()
        x[0, :2], x[1, 1:, 2], x[2, ::2, 3] = np.nan, np.nan, np.nan
        yield o(x, k=2, axis=axis, outputs=2, expect=calculate, decided=True) if o.has("k") else o(x, const([2]), axis=axis, outputs=2, **more, expect=calculate, decided=True)


@recipe("TopK")
def top_k(o):
    for axis, more in ((1, {}), (None, {}), (0, {"largest": 0}), (2, {"sorted": 1, "largest": 1})):
        if more and not o.has("largest"):
            more = {}

        def calculate(x, *_, axis=axis, small=more.get("largest") == 0):
            k = -1 if axis is None else axis
            wide, what = x.astype(float), np.isnan(x.astype(float))  # NaN is larger than any number
            order = np.lexsort((wide, what) if small else (-wide, ~what), k).take(range(2), k)
            return [np.take_along_axis(x, order, k), order.astype(np.int64)]
        x = o.x(3, 5, 4, low=0, high=50)
        yield from nan_in(o, x, axis, more, calculate)
        yield o(x, k=2, axis=axis, outputs=2, expect=calculate) if o.has("k") else o(x, const([2]), axis=axis, outputs=2, **more, expect=calculate)


@recipe("Softmax", "LogSoftmax", "Hardmax")
def softmax(o):
    def calculate(x, axis):
        flat = x.astype(np.float64)
        if o.version < 13:
            k = 1 if axis is None else axis % x.ndim if axis != x.ndim else axis
            flat, along = flat.reshape(int(np.prod(x.shape[:k])), -1), 1
        else:
            along = -1 if axis is None else axis
        if o.schema.name == "Hardmax":
            y = np.zeros_like(flat)
            np.put_along_axis(y, np.expand_dims(flat.argmax(along), along), 1, along)
        else:
            e = np.exp(flat - flat.max(along, keepdims=True))
            y = e / e.sum(along, keepdims=True)
            y = np.log(y) if o.schema.name == "LogSoftmax" else y
        return [y.reshape(x.shape).astype(x.dtype)]

    bar = 2e-3 if o.dtype.itemsize == 2 else 1e-5
    for axis in (None, 0, 1, 2, 3) + ((-1, -3) if o.version >= 11 else ()):
        yield o(o.x(2, 3, 5, 4), axis=axis, expect=lambda x, k=axis: calculate(x, k), bar=bar)
    yield o(o.x(3, 7), expect=lambda x: calculate(x, None), bar=bar)


@recipe("LpNormalization")
def lp_normalization(o):
    for p, axis in ((1, 1), (2, 0), (None, None)):
        yield o(o.x(3, 4, 5), p=p, axis=axis)


@recipe("MeanVarianceNormalization")
def mean_variance(o):
    yield o(o.x(2, 3, 4, 5), bar=1e-4)
    yield o(o.x(2, 3, 4, 5), axes=[1, 3], bar=1e-4)


def batch_norm(o, x, spatial, epsilon):
    """Inference; where `spatial` is 0 every place has statistics of its own."""
    shape = (x.shape[1],) if spatial else x.shape[1:]
    s, b, m, v = o.x(*shape), o.x(*shape), o.x(*shape), o.x(*shape, low=0.5, high=2)

    def run(x, s, b, m, v, *_):
        s, b, m, v = (p.astype(np.float64).reshape(shape + (1,) * (x.ndim - 1 - len(shape))) for p in (s, b, m, v))
        return [(s * (x - m) / np.sqrt(v + epsilon) + b).astype(x.dtype)]
    return (x, s, b, m, v), run


@recipe("BatchNormalization")
def batch_normalization(o):
    test = {"is_test": 1} if o.has("is_test") else {}
    bar = 2e-3 if o.dtype.itemsize == 2 else 1e-5
    for shape in ((2, 3, 5, 4), (4, 5), (2, 3, 7)):
        operands, run = batch_norm(o, o.x(*shape), True, 0.01)
        yield o(*operands, epsilon=0.01, momentum=0.8, **test, expect=run, bar=bar)
    operands, run = batch_norm(o, o.x(2, 3, 5, 4), True, 1e-5)
    if test:  # one output is inference, whatever is_test says
        yield o(*operands, expect=run)
    if o.has("spatial"):
        for shape in ((2, 3, 5, 4), (3, 6)):
            operands, run = batch_norm(o, o.x(*shape), False, 1e-5)
            yield o(*operands, spatial=0, **test, expect=run, decided=True)
    if o.version >= 14:
        yield o(*operands, training_mode=1, momentum=0.75, outputs=3, expect=lambda *v: trained(*v, 0.75)[:3], bar=bar)
    else:
        # With five outputs it trains; the last two are for gradients.
        yield o(*[o.x(2, 3, 5, 4), o.x(3), o.x(3), o.x(3), o.x(3, low=0.5, high=2)], momentum=0.75, outputs=5, used=(0, 1, 2),
                expect=lambda *v: trained(*v, 0.75), bar=bar)


def trained(x, s, b, m, v, momentum):
    axes = (0,) + tuple(range(2, x.ndim))
    shape = (1, -1) + (1,) * (x.ndim - 2)
    mean, var = x.mean(axes), x.var(axes)
    y = s.reshape(shape) * (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + 1e-5) + b.reshape(shape)
    return [y.astype(x.dtype), (m * momentum + mean * (1 - momentum)).astype(x.dtype), (v * momentum + var * (1 - momentum)).astype(x.dtype)]


@recipe("InstanceNormalization")
def instance_normalization(o):
    def calculate(x, s, b, e=1e-5):
        axes, shape = tuple(range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
        y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + e)
        return [(y * s.reshape(shape) + b.reshape(shape)).astype(x.dtype)]
    bar = 2e-3 if o.dtype.itemsize == 2 else 1e-5
    yield o(o.x(2, 3, 5, 4), o.x(3), o.x(3), epsilon=0.02, expect=lambda *v: calculate(*v, 0.02), bar=bar)
    yield o(o.x(2, 3, 7), o.x(3), o.x(3), expect=calculate, bar=bar)


@recipe("LayerNormalization")
def layer_normalization(o):
    yield o(o.x(2, 3, 5), o.x(3, 5), o.x(3, 5), axis=1, epsilon=0.01, outputs=3)
    yield o(o.x(2, 3, 5), o.x(5))


@recipe("GroupNormalization")
def group_normalization(o):
    def calculate(x, s, b, groups=2):
        g = x.reshape(x.shape[0], groups, -1).astype(np.float64)
        y = ((g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + 0.01))
        if s.size == groups:
            s, b = np.repeat(s, x.shape[1] // groups), np.repeat(b, x.shape[1] // groups)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return [(y.reshape(x.shape) * s.reshape(shape) + b.reshape(shape)).astype(x.dtype)]
    n = 2 if o.version < 21 else 6
    bar = 2e-3 if o.dtype.itemsize == 2 else 1e-5
    yield o(o.x(2, 6, 5, 4), o.x(n), o.x(n), num_groups=2, epsilon=0.01, expect=calculate, bar=bar)
    yield o(o.x(2, 6, 5), const(o.x(n), o.dtype), const(o.x(n), o.dtype), num_groups=2, epsilon=0.01, expect=calculate, bar=bar)


@recipe("RMSNormalization")
def rms_normalization(o):
    yield o(o.x(2, 3, 5), o.x(3, 5), axis=1, epsilon=0.01)


@recipe("LRN")
def lrn(o):
    yield o(o.x(2, 7, 3, 4), size=3, alpha=0.01, beta=0.5, bias=2.0)
    yield o(o.x(2, 7, 3, 4), size=5)
