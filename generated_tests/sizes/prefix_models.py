"""Along a size: sums from the front and of all, positions that are counted by them, the last element, what is longer and what has a border."""
import numpy as np
from onnx import TensorProto


def counted_words(b):
    """RoBERTa's positions: the words that are there are counted, and the others have a place of their own."""
    ids = b.input("ids", [1, "seq"], TensorProto.INT64)
    there = b.op("Cast", b.op("Not", b.op("Equal", ids, b.scalar(1, np.int64))), to=TensorProto.INT32)
    at = b.op("Cast", b.op("Mul", b.op("CumSum", there, b.scalar(1, np.int64)), there), to=TensorProto.INT64)
    words = b.op("Gather", b.weight(40, 24), ids)
    b.output(b.op("LayerNormalization", b.op("Add", words, b.op("Gather", b.weight(300, 24), b.op("Add", at, b.scalar(1, np.int64)))), b.weight(24), axis=-1))


def prefix_sums(b):
    """Along the words: rows, columns, one before, products."""
    x = b.input("x", [3, "n"])
    b.output(b.op("CumSum", x, b.scalar(1, np.int64)))
    b.output(b.op("CumSum", b.op("Tanh", x), b.scalar(-1, np.int64), exclusive=1))
    columns = b.input("columns", ["n", 9])
    b.output(b.op("Exp", b.op("CumSum", columns, b.scalar(0, np.int64))))
    b.output(b.op("CumSum", b.op("Cast", b.op("Greater", columns, b.scalar(0.0)), to=TensorProto.INT32), b.scalar(0, np.int64), exclusive=1), TensorProto.INT32)
    b.output(b.op("CumSum", b.input("line", ["n"]), b.scalar(0, np.int64)))


def behind_the_last(b):
    """Along another axis, and from the last element on."""
    x = b.input("x", ["n", 5])
    b.output(b.op("CumSum", x, b.scalar(1, np.int64), reverse=1))
    b.output(b.op("CumSum", b.op("Relu", x), b.scalar(0, np.int64), reverse=1))


def means_of_words(b):
    """One vector for a text: the mean of the words that are there."""
    x, mask = b.input("x", [1, "seq", 24]), b.input("mask", [1, "seq"], TensorProto.INT64)
    weights = b.op("Cast", b.op("Unsqueeze", mask, b.ints(2)), to=1)
    y = b.op("Tanh", b.op("MatMul", x, b.weight(24, 24)))
    total = b.op("ReduceSum", b.op("Mul", y, weights), b.ints(1), keepdims=0)
    mean = b.op("Div", total, b.op("Clip", b.op("ReduceSum", weights, b.ints(1), keepdims=0), b.scalar(1e-9)))
    b.output(b.op("LpNormalization", mean, axis=1, p=2))


def longer_and_shorter(b):
    """Outputs of n + 1, n + 3, n - 1 and 2 n rows."""
    x = b.input("x", ["n", 8])
    b.output(b.op("Concat", b.weight(1, 8), x, axis=0))
    b.output(b.op("Pad", b.op("Tanh", x), b.ints(1, 0, 2, 0)))
    b.output(b.op("Relu", b.op("Slice", x, b.ints(1), b.ints(2**31 - 1), b.ints(0))))
    b.output(b.op("Tile", x, b.ints(2, 1)))
    b.output(b.op("Reshape", x, b.ints(-1)))


def ends(b):
    """The last row, the last two, and norms of all."""
    x = b.input("x", ["n", 8])
    y = b.op("MatMul", b.op("Tanh", x), b.weight(8, 8))
    b.output(b.op("Gather", y, b.scalar(-1, np.int64), axis=0))
    b.output(b.op("Slice", y, b.ints(-2), b.ints(2**31 - 1), b.ints(0)))
    for norm in ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceMax"):
        b.output(b.op(norm, b.input(norm.lower(), [2, "n", 3]), b.ints(1), keepdims=0))
    b.output(b.op("GlobalAveragePool", b.input("image", [1, 4, "n", 6])))


def bordered(b):
    """Convolutions that keep the size: zeros lie in front of the first element and behind the last that there is."""
    line = b.op("Relu", b.op("Conv", b.input("x", [1, 4, "n"]), b.weight(8, 4, 3), b.weight(8), pads=[1, 1]))
    b.output(b.op("Conv", line, b.weight(4, 8, 5), pads=[2, 2]))
    image = b.op("Relu", b.op("Conv", b.input("image", [1, 3, "n", 9]), b.weight(6, 3, 3, 3), pads=[1, 1, 1, 1]))
    b.output(b.op("Conv", image, b.weight(5, 6, 3, 3), pads=[1, 1, 1, 1]))


BOUNDED = [(longer_and_shorter, {"n": (1, 12)}), (ends, {"n": (2, 19)}), (bordered, {"n": (1, 17)}), (counted_words, {"seq": (1, 40)}), (prefix_sums, {"n": (0, 21)}), (behind_the_last, {"n": (1, 9)}), (means_of_words, {"seq": (1, 40)})]
ENDLESS = [(prefix_sums, {"n": (0, None)}), (longer_and_shorter, {"n": (1, None)}), (ends, {"n": (2, None)}), (bordered, {"n": (1, None)}), (counted_words, {"seq": (1, None)}), (prefix_sums, {"n": (1, None)}), (means_of_words, {"seq": (1, None)})]
NEEDS_BOUND = [(behind_the_last, {"n": (1, None)})]
