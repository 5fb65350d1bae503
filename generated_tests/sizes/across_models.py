"""Models that look across axes of symbolic sizes as a whole: what is distinct, spectra, statistics of rows; and computed pads of nothing."""
import numpy as np
from onnx import TensorProto
from open_models import size


def distinct(b):
    """Elements and rows, each once; from a size of 0 on there may be none."""
    x, rows = b.input("x", ["n"]), b.input("rows", ["n", "m"])
    coarse = b.op("Round", b.op("Mul", x, b.scalar(1.5)))
    for keep in (range(4), (0, 3), (1, 2), (3,), (2,)):
        lists = b.op("Unique", coarse, outputs=4, sorted=len(keep) % 2)
        for k in keep:
            b.output(lists[k], TensorProto.INT64 if k else TensorProto.FLOAT)
    signs = b.op("Sign", rows)
    for axis in (0, 1):
        values, first, like, many = b.op("Unique", signs, outputs=4, axis=axis)
        b.output(values)
        b.output(b.op("Gather", signs, first, axis=axis))
        b.output(b.op("Gather", values, like, axis=axis))  # all of them again
        b.output(many, TensorProto.INT64)
    b.output(b.op("Unique", signs, outputs=4)[0])
    b.output(b.op("ReduceSum", b.op("Unique", signs, outputs=4, sorted=0)[3], keepdims=0), TensorProto.INT64)


def gathered_by_row(b):
    """Positions of each row's own, from the end, too; the rows may be counted as well."""
    x, z, k = b.input("x", ["n", "m"]), b.input("z", ["n", "m", 3]), b.input("k", ["n"], TensorProto.INT64)
    m = size(b, x, 1)
    at = b.op("Unsqueeze", b.op("Sub", b.op("Mod", k, m), m), b.ints(1))
    b.output(b.op("GatherND", x, at, batch_dims=1))
    b.output(b.op("GatherND", z, at, batch_dims=1))
    both = b.op("Concat", at, b.op("Mod", at, b.ints(3)), axis=1)
    b.output(b.op("GatherND", z, both, batch_dims=1))
    b.output(b.op("GatherND", z, b.op("Reshape", b.op("Concat", at, b.op("ArgMax", x, axis=1), axis=1), b.op("Concat", size(b, x, 0), b.ints(2, 1), axis=0)), batch_dims=1))
    y = b.input("y", [2, "m"])
    b.output(b.op("GatherND", y, b.constant(np.array([[[0], [-1]], [[-1], [0]]])), batch_dims=1))


def normalized(b):
    """Rows as wide as the caller's, and what they have been divided by."""
    x = b.input("x", ["n", "m", 3])
    for axis in (1, 2):
        for used in ((1, 2), (2,), (0, 1, 2)):
            results = b.op("LayerNormalization", x, b.weight(3), b.weight(3), outputs=3, axis=axis, epsilon=1e-2)
            for k in used:
                b.output(results[k])


def padded_by_nothing(b):
    """Pads that are computed, and none: the operand itself, an input as well as what others read."""
    x = b.input("x", ["n", 5])
    n = size(b, x, 0)
    none = b.op("Concat", b.op("Sub", n, n), b.ints(0, 0, 0), axis=0)
    b.output(b.op("Pad", x, none))
    y = b.op("Relu", x)
    b.output(y)
    b.output(b.op("Tanh", b.op("Pad", y, none, mode="edge")))


def transformed(b, kinds=range(2)):
    """Signals as long as the caller's, real and complex, there and back; to another length, known or not."""
    b.imports[""] = 20
    x, m = b.input("x", [2, "n", 3, 1]), b.op("Shape", b.input("like", ["m"]))
    z = b.op("Concat", x, b.op("Sin", x), axis=-1)
    length, axis = b.op("Squeeze", size(b, x, 1)), b.scalar(1, np.int64)
    for signal in (x, z):
        for inverse in kinds:
            b.output(b.op("DFT", signal, "", axis, inverse=inverse))
            b.output(b.op("DFT", signal, b.op("Squeeze", m), axis, inverse=inverse))
            b.output(b.op("DFT", signal, b.scalar(7, np.int64), axis, inverse=inverse))
    bins = b.op("DFT", x, "", axis, onesided=1)
    b.output(bins)
    b.output(b.op("DFT", x, b.op("Squeeze", m), axis, onesided=1))
    b.output(b.op("Mul", b.op("DFT", b.op("Transpose", x, perm=[1, 0, 2, 3]), "", b.scalar(0, np.int64)), b.scalar(0.5)))
    flat = b.op("Reshape", b.op("Slice", x, b.ints(0), b.ints(1), b.ints(0)), b.ints(-1, 3, 1))
    b.output(b.op("DFT", b.op("DFT", flat, "", b.scalar(0, np.int64)), "", b.scalar(1, np.int64)))  # both axes, as an FNet


ALL = [
    (distinct, {"n": (1, 40), "m": (1, 3)}), (distinct, {"n": (0, 9), "m": (1, 8)}), (gathered_by_row, {"n": (1, 7), "m": (1, 9)}), (gathered_by_row, {"n": (1, None), "m": (1, 9)}),
    (transformed, {"n": (1, 12), "m": (1, 15)}), (normalized, {"n": (1, 3), "m": (1, 30)}), (padded_by_nothing, {"n": (1, 30)}),
]
