"""Models whose axis of a size without an upper bound is not the outermost one."""
import numpy as np
from onnx import TensorProto
from open_models import size


def times(b, n, factor):
    return b.op("Mul", n, b.ints(factor))


def many_heads(b, words=6, features=16, heads=2):
    """An encoder's layer as torch.nn.MultiheadAttention is exported, [words, batch, features]."""
    x = b.input("x", [words, "batch", features])
    n, depth = size(b, x, 1), features // heads
    packed = b.op("Add", b.op("MatMul", x, b.weight(features, 3 * features)), b.weight(3 * features))
    packed = b.op("Reshape", packed, b.op("Concat", b.ints(words), n, b.ints(3, features), axis=0))
    packed = b.op("Squeeze", b.op("Transpose", b.op("Unsqueeze", packed, b.ints(0)), perm=[3, 1, 2, 0, 4]), b.ints(3))
    parts = []
    for k in range(3):
        part = b.op("Gather", packed, b.scalar(k, np.int64), axis=0)
        part = b.op("Reshape", part, b.op("Concat", b.ints(words), times(b, n, heads), b.ints(depth), axis=0))
        part = b.op("Transpose", part, perm=[1, 0, 2])
        parts.append(b.op("Reshape", part, b.op("Concat", n, b.ints(heads, words, depth), axis=0)))
    q, k, v = parts
    scores = b.op("Div", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.scalar(depth ** 0.5))
    seen = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[2, 0, 1, 3])
    flat = b.op("Gemm", b.op("Reshape", seen, b.op("Concat", times(b, n, words), b.ints(features), axis=0)), b.weight(features, features), b.weight(features))
    y = b.op("Reshape", flat, b.op("Concat", b.ints(words), n, b.ints(features), axis=0))
    y = b.op("LayerNormalization", b.op("Add", x, y), b.weight(features), b.weight(features), axis=-1)
    z = b.op("MatMul", b.op("Relu", b.op("MatMul", y, b.weight(features, 40))), b.weight(40, features))
    b.output(b.op("LayerNormalization", b.op("Add", y, z), b.weight(features), b.weight(features), axis=-1))


def tagger(b, words=7):
    """[words, batch]: a table of words, an LSTM in both directions, tags."""
    ids = b.input("ids", [words, "batch"], TensorProto.INT64)
    x = b.op("Gather", b.weight(40, 12), ids)
    y, h, c = b.op("LSTM", x, b.weight(2, 36, 12), b.weight(2, 36, 9), b.weight(2, 72), outputs=3, hidden_size=9, direction="bidirectional")
    y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.ints(0, 0, -1))
    tags = b.op("Add", b.op("MatMul", y, b.weight(18, 5)), b.weight(5))
    b.output(b.op("LogSoftmax", tags, axis=-1))
    b.output(b.op("ArgMax", tags, axis=2, keepdims=0), TensorProto.INT64)
    b.output(h)
    b.output(c)


def states(b):
    """A GRU in both directions from states of the caller's, [directions, batch, hidden], over as many words as each text has."""
    x, h0 = b.input("x", [5, "batch", 4]), b.input("h0", [2, "batch", 8])
    lengths = b.op("Cast", b.op("Add", b.op("Clip", b.input("lengths", ["batch"], TensorProto.INT32), b.scalar(0, np.int32), b.scalar(4, np.int32)), b.scalar(1, np.int32)), to=TensorProto.INT32)
    y, h = b.op("GRU", x, b.weight(2, 24, 4), b.weight(2, 24, 8), b.weight(2, 48), lengths, h0, outputs=2, hidden_size=8, direction="bidirectional", linear_before_reset=1)
    b.output(y)
    b.output(h)
    b.output(b.op("Concat", b.op("Squeeze", b.op("Slice", h, b.ints(0), b.ints(1)), b.ints(0)), b.op("Squeeze", b.op("Slice", h, b.ints(1), b.ints(2)), b.ints(0)), axis=1))


def from_zeros(b):
    """States as exporters begin them: zeros of the batch's size."""
    x = b.input("x", [3, "batch", 6])
    zeros = b.op("Expand", b.scalar(0.0), b.op("Concat", b.ints(1), size(b, x, 1), b.ints(10), axis=0))
    for inputs in (6, 10):
        y, h, c = b.op("LSTM", x, b.weight(1, 40, inputs), b.weight(1, 40, 10), b.weight(1, 80), "", zeros, zeros, outputs=3, hidden_size=10)
        x = b.op("Squeeze", y, b.ints(1))
        b.output(h)
    b.output(x)


def mixed_words(b):
    """[4, words, features]: all but attention over an open number of words."""
    x = b.input("x", [4, "words", 24])
    y = b.op("LayerNormalization", x, b.weight(24), b.weight(24), axis=-1)
    y = b.op("MatMul", b.op("Gelu", b.op("MatMul", y, b.weight(24, 50)), domain="com.microsoft"), b.weight(50, 24))
    y = b.op("Add", x, y)
    b.output(y)
    b.output(b.op("Transpose", y, perm=[2, 1, 0]))
    b.output(b.op("ReduceMean", y, b.ints(0), keepdims=0))
    b.output(b.op("Softmax", b.op("MatMul", b.op("Transpose", y, perm=[0, 1, 2]), b.weight(24, 3)), axis=-1))


def joined(b):
    """[5, n, 8] as [5 * n, 8]: row by row, in other sizes behind it, and where the number of a row counts."""
    x = b.input("x", [5, "n", 8])
    flat = b.op("Reshape", x, b.ints(-1, 8))
    y = b.op("Relu", b.op("Gemm", flat, b.weight(8, 6), b.weight(6)))
    b.output(b.op("Reshape", y, b.op("Concat", b.ints(5), size(b, x, 1), b.ints(2, 3), axis=0)))
    b.output(b.op("Reshape", b.op("Relu", b.op("Reshape", flat, b.ints(-1, 4))), b.ints(5, -1, 8)))
    numbers = b.op("Range", b.scalar(0, np.int64), b.op("Squeeze", size(b, flat, 0)), b.scalar(1, np.int64))
    numbered = b.op("Add", flat, b.op("Unsqueeze", b.op("Cast", numbers, to=1), b.ints(1)))
    b.output(b.op("Reshape", numbered, b.ints(5, -1, 8)))


ENDLESS = [
    (many_heads, {"batch": (1, None)}), (tagger, {"batch": (1, None)}), (states, {"batch": (1, None)}), (from_zeros, {"batch": (1, None)}),
    (mixed_words, {"words": (1, None)}), (joined, {"n": (1, None)}),
]
