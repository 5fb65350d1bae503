"""As PyTorch exports them: masks indexed by numbers in order, layers that join batch and words, products of bytes by their own range, images
of a size that is given."""
import numpy as np
from onnx import TensorProto


def numbers(b, size, *axes):
    """0, 1, ... size - 1, with more axes of one element."""
    y = b.op("Range", b.scalar(0, np.int64), size, b.scalar(1, np.int64))
    for axis in axes:
        y = b.op("Unsqueeze", y, b.ints(axis))
    return y


def sizes_of(b, x):
    shape = b.op("Shape", x)
    return [b.op("Gather", shape, b.scalar(k, np.int64)) for k in range(2)]


def masked_by_index(b):
    """mask[i, j] of every image i and word j, added to scores."""
    x, mask = b.input("x", ["batch", "seq", 16]), b.input("mask", ["batch", "seq"], TensorProto.INT64)
    batch, seq = sizes_of(b, x)
    there = b.op("Flatten", b.op("Cast", mask, to=TensorProto.BOOL), axis=2)
    step = b.op("Gather", b.op("Shape", mask), b.ints(1))
    at = b.op("Add", numbers(b, seq, 0, 1, 2), b.op("Mul", numbers(b, batch, 1, 2, 3), step))
    taken = b.op("Gather", there, at, axis=0)
    taken = b.op("Reshape", b.op("Reshape", taken, b.ints(-1)), b.op("Concat", b.op("Shape", at), axis=0))
    parts = [b.op("Transpose", b.op("Reshape", b.op("MatMul", x, b.weight(16, 16)), b.ints(0, 0, 2, 8)), perm=perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
    scores = b.op("Add", b.op("MatMul", parts[0], parts[1]), b.op("Where", taken, b.scalar(0.0), b.scalar(-3e38)))
    b.output(b.op("MatMul", b.op("Softmax", scores, axis=-1), parts[2]))


def indexed(b):
    """x[i, j] and x[i, j, k]."""
    x = b.input("x", ["n", "m", 3])
    n, m = sizes_of(b, x)
    at = b.op("Add", b.op("Mul", numbers(b, n, 1), b.op("Reshape", m, b.ints(1))), numbers(b, m, 0))
    b.output(b.op("Gather", b.op("Reshape", x, b.ints(-1, 3)), at))
    at = b.op("Add", b.op("Mul", b.op("Unsqueeze", at, b.ints(2)), b.scalar(3, np.int64)), b.ints(0, 1, 2))
    b.output(b.op("Tanh", b.op("Gather", b.op("Reshape", x, b.ints(-1)), at)))


def indexed_elsewhere(b):
    """x[j, i], x[i, j + 1] and x[i, m - 1], by positions in a view that joins both axes."""
    x = b.input("x", ["n", "m", 3])
    n, m = sizes_of(b, x)
    rows, step = b.op("Reshape", x, b.ints(-1, 3)), b.op("Reshape", m, b.ints(1))
    b.output(b.op("Gather", rows, b.op("Add", b.op("Mul", numbers(b, n, 0), step), numbers(b, m, 1))))
    last = b.op("Sub", b.op("Mul", n, m), b.scalar(1, np.int64))
    after = b.op("Add", numbers(b, m, 0), b.scalar(1, np.int64))
    b.output(b.op("Gather", rows, b.op("Min", b.op("Add", b.op("Mul", numbers(b, n, 1), step), after), last)))
    b.output(b.op("Gather", rows, b.op("Add", b.op("Mul", numbers(b, n), m), b.op("Sub", m, b.scalar(1, np.int64)))))


def by_range(b):
    """Two layers of bytes, each quantised by what the whole batch holds."""
    y = b.input("x", ["batch", "seq", 24])
    for size in (24, 9):
        values, scale, zero = b.op("DynamicQuantizeLinear", y, outputs=3)
        weights = b.constant(b.random.integers(-100, 100, [24, size]).astype(np.int8))
        product = b.op("Cast", b.op("MatMulInteger", values, weights, zero), to=1)
        y = b.op("Relu", b.op("Mul", product, b.op("Mul", scale, b.scalar(0.01))))
    b.output(y)
    b.output(scale)
    b.output(zero, TensorProto.UINT8)


def joined_rows(b):
    """OPT's layer behind the attention: all words of all texts as rows, normalised, and back."""
    x = b.input("x", ["batch", "seq", 24])
    rows = b.op("Reshape", b.op("Add", x, b.weight(24)), b.ints(-1, 24))
    y = b.op("LayerNormalization", rows, b.weight(24), b.weight(24), axis=-1)
    y = b.op("Relu", b.op("Add", b.op("MatMul", y, b.weight(24, 40)), b.weight(40)))
    y = b.op("Add", rows, b.op("MatMul", y, b.weight(40, 24)))
    b.output(b.op("Reshape", b.op("Softmax", y, axis=1), b.op("Shape", x)))


def extremes(b):
    """Where the extremes are along a size, the first and the last of equal ones."""
    x = b.input("x", ["n", 5])
    rounded = b.op("Round", x)
    b.output(b.op("ArgMax", x, axis=0), TensorProto.INT64)
    b.output(b.op("ArgMin", rounded, axis=0, keepdims=0, select_last_index=1), TensorProto.INT64)
    b.output(b.op("ArgMax", b.op("Cast", rounded, to=TensorProto.INT32), axis=-2, keepdims=0), TensorProto.INT64)


def exponents(b):
    """What is made of sums of exponents along a size."""
    x = b.input("x", ["n", 5])
    b.output(b.op("LogSoftmax", x, axis=0))
    b.output(b.op("ReduceLogSumExp", b.op("Mul", x, b.scalar(50.0)), b.ints(0), keepdims=0))
    b.output(b.op("Hardmax", x, axis=0))


def warped(b):
    """Samples at positions that the caller gives, of any number of pictures; of few channels and of many."""
    x, grid = b.input("x", ["n", 3, 5, 6]), b.input("grid", ["n", 4, 3, 2])
    b.output(b.op("GridSample", x, b.op("Mul", grid, b.scalar(0.7))))
    many = b.op("Reshape", b.input("y", ["n", 4, 16, 4, 4]), b.ints(-1, 16, 4, 4))
    at = b.op("Reshape", b.input("at", ["n", 4, 6, 4, 2]), b.ints(-1, 6, 4, 2))
    b.output(b.op("GridSample", many, at, align_corners=1, padding_mode="border"))


def heads_from_rows(b):
    """A product that reads another's rows as heads: LeViT's keys, which a batch normalisation has seen as rows."""
    x = b.input("x", ["n", 4, 24])
    rows = b.op("Mul", b.op("Reshape", b.op("MatMul", x, b.weight(24, 40)), b.ints(-1, 40)), b.weight(40))
    heads = b.op("Transpose", b.op("Reshape", rows, b.ints(-1, 4, 2, 20)), perm=[0, 2, 3, 1])
    query = b.op("Reshape", b.input("q", ["n", 40]), b.ints(-1, 2, 1, 20))
    b.output(b.op("Softmax", b.op("Add", b.op("Mul", b.op("MatMul", query, heads), b.scalar(0.25)), b.weight(2, 1, 4)), axis=-1))


def recurrent(b):
    """Recurrent layers along a size: all outputs, and the last one."""
    x = b.input("x", ["n", 2, 6])
    y, last, _ = b.op("LSTM", x, b.weight(1, 20, 6), b.weight(1, 20, 5), b.weight(1, 40), outputs=3, hidden_size=5)
    b.output(y)
    b.output(b.op("GRU", x, b.weight(1, 15, 6), b.weight(1, 15, 5), outputs=2, hidden_size=5)[1])
    b.output(b.op("Add", last, b.op("RNN", b.op("Squeeze", y, b.ints(1)), b.weight(1, 5, 5), b.weight(1, 5, 5), outputs=2, hidden_size=5)[1]))
    y, last, _ = b.op("LSTM", x, b.weight(2, 20, 6), b.weight(2, 20, 5), b.weight(2, 40), "", b.weight(2, 2, 5), outputs=3, hidden_size=5, direction="bidirectional")
    b.output(y)
    b.output(last)
    b.output(b.op("RNN", x, b.weight(1, 5, 6), b.weight(1, 5, 5), outputs=2, hidden_size=5, direction="reverse", activations=["Relu"])[0])


def joined_triangle(b):
    """All words of all texts as rows of one triangle: which elements are zero depends on how many texts there are."""
    x = b.input("x", ["batch", "seq", 8])
    rows = b.op("Reshape", x, b.ints(-1, 8))
    y = b.op("MatMul", b.op("Trilu", b.op("MatMul", rows, b.weight(8, 8))), b.weight(8, 8))
    y = b.op("Add", b.op("Einsum", y, y, equation="ij,ij->ij"), rows)
    b.output(b.op("Softmax", b.op("Reshape", y, b.op("Shape", x)), axis=1))


def sums_of_rows(b):
    """Sums from the front of each row, of any number of rows."""
    x = b.input("x", ["n", 9])
    b.output(b.op("CumSum", x, b.scalar(1, np.int64)))
    b.output(b.op("Tanh", b.op("CumSum", b.op("Relu", x), b.scalar(-1, np.int64), exclusive=1, reverse=1)))
    b.output(b.op("CumSum", b.op("Cast", b.op("Greater", x, b.scalar(0.0)), to=TensorProto.INT32), b.scalar(1, np.int64)), TensorProto.INT32)
    b.output(b.op("CumSum", b.input("three", ["n", 4, 5]), b.scalar(1, np.int64)))


def interpolated(b):
    """To a size that the model says, of as many images as there are."""
    x = b.input("x", ["n", 3, 7, 6])
    sizes = b.op("Concat", b.op("Slice", b.op("Shape", x), b.ints(0), b.ints(2)), b.ints(9, 11), axis=0)
    y = b.op("Conv", x, b.weight(4, 3, 3, 3), pads=[1, 1, 1, 1])
    b.output(b.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="align_corners"))
    fours = b.op("Concat", b.op("Slice", b.op("Shape", y), b.ints(0), b.ints(2)), b.ints(9, 11), axis=0)
    b.output(b.op("Resize", y, "", "", fours, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))


def looked_up_rows(b):
    """Positions that are counted in the text, as I-BERT and MarkupLM have them: tests of indices in kernels whose threads wait for each other."""
    mask = b.op("Greater", b.input("x", ["batch", "seq"]), b.scalar(-0.5))
    counted = b.op("Cast", mask, to=TensorProto.INT64)
    position = b.op("Mul", b.op("CumSum", counted, b.scalar(1, np.int64)), counted)
    rows = b.op("Gather", b.weight(20, 32), position, axis=0)
    b.output(b.op("LayerNormalization", b.op("Add", rows, b.weight(32)), b.weight(32), b.weight(32), axis=-1))
    b.output(b.op("Add", b.op("MatMul", b.input("y", ["batch", "seq", 128]), b.weight(128, 32)), rows))


def cut_across(b):
    """Rows that begin in one part of a tensor and end in another."""
    for k, (front, width) in enumerate(((2, 2), (3, 3), (4, 2), (2, 4), (6, 4))):
        x = b.input(f"x{k}", [front, "n"])
        if front % width == 0:
            rows = b.op("Reshape", b.op("Tanh", x), b.ints(-1, width))
        else:
            rows = b.op("Reshape", b.op("Concat", b.op("Tanh", x), x, axis=0), b.ints(-1, width))
        b.output(b.op("MatMul", rows, b.weight(width, 3)) if k % 2 else rows)
    y = b.input("y", [4, "n", 6])
    b.output(b.op("Relu", b.op("Reshape", y, b.ints(-1, 8))))
    b.output(b.op("Reshape", y, b.ints(-1, 3)))


BOUNDED = [(masked_by_index, {"batch": (1, 3), "seq": (1, 19)}), (indexed, {"n": (1, 5), "m": (1, 6)}), (indexed_elsewhere, {"n": (1, 5), "m": (1, 6)}), (by_range, {"batch": (1, 3), "seq": (1, 9)}),
           (joined_rows, {"batch": (1, 4), "seq": (1, 7)}), (joined_triangle, {"batch": (1, 4), "seq": (1, 7)}), (sums_of_rows, {"n": (0, 9)}), (extremes, {"n": (1, 9)}), (recurrent, {"n": (1, 9)}), (exponents, {"n": (1, 9)}), (warped, {"n": (1, 4)}), (heads_from_rows, {"n": (1, 5)}), (interpolated, {"n": (1, 4)}), (looked_up_rows, {"batch": (1, 4), "seq": (1, 19)}), (cut_across, {"n": (1, 9)})]
ENDLESS = [(masked_by_index, {"batch": (1, None), "seq": (1, 19)}), (masked_by_index, {"batch": (2, 2), "seq": (1, None)}), (indexed, {"n": (1, None), "m": (1, 6)}), (indexed, {"n": (2, 3), "m": (1, None)}),
           (by_range, {"batch": (1, None), "seq": (1, 9)}), (by_range, {"batch": (2, 2), "seq": (1, None)}),
           (joined_rows, {"batch": (1, None), "seq": (1, 7)}), (joined_rows, {"batch": (2, 2), "seq": (1, None)}), (sums_of_rows, {"n": (1, None)}), (extremes, {"n": (1, None)}), (recurrent, {"n": (1, None)}), (exponents, {"n": (1, None)}), (warped, {"n": (1, None)}), (heads_from_rows, {"n": (1, None)}), (interpolated, {"n": (1, None)}), (looked_up_rows, {"batch": (1, None), "seq": (1, 19)}), (cut_across, {"n": (1, None)})]
NEEDS_BOUND_ON_CUDA = [(masked_by_index, {"batch": (2, 2), "seq": (1, None)}),  # attention over a text
                       (exponents, {"n": (1, None)}), (recurrent, {"n": (1, None)})]
