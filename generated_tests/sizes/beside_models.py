"""Operators beside an axis of such a size: what they do along the others, what has no elements there, and what is chosen there."""
import numpy as np
from onnx import TensorProto


def one_size(b, x, axis=0):
    return b.op("Shape", x, start=axis, end=axis + 1)


def rolled(b):
    """By nothing and by everything, as torch.roll is exported: one of the two parts has no elements."""
    x = b.input("x", ["batch", 8])
    for at in (0, -8, 3):
        front, back = b.op("Slice", x, b.ints(at), b.ints(2 ** 62), b.ints(1)), b.op("Slice", x, b.ints(0), b.ints(at), b.ints(1))
        b.output(b.op("Concat", front, back, axis=1))
        b.output(b.op("Relu", b.op("Concat", back, b.op("Neg", front), axis=1)))


def without_elements(b):
    x, none = b.input("x", ["batch", 8]), b.input("none", [3, "batch", 0])
    nothing = b.op("Slice", x, b.ints(4), b.ints(2), b.ints(1))
    b.output(nothing)
    b.output(b.op("Concat", nothing, b.op("Neg", nothing), axis=0))
    b.output(b.op("Gemm", nothing, b.weight(0, 5), b.weight(5)))
    b.output(b.op("MatMul", nothing, b.weight(0, 3)))
    b.output(b.op("ReduceProd", nothing, b.ints(1), keepdims=0))
    b.output(b.op("Pad", nothing, b.ints(0, 1, 0, 2)))
    b.output(b.op("Softmax", b.op("Transpose", none, perm=[2, 1, 0])))
    b.output(b.op("Reshape", none, b.ints(0, 0, 0, 4)))
    b.output(b.op("Tile", x, b.ints(1, 0)))
    b.output(b.op("Shape", b.op("Flatten", none, axis=1)), TensorProto.INT64)
    first, all_of_it = b.op("Split", x, b.ints(0, 8), outputs=2, axis=1)
    b.output(first)
    b.output(all_of_it)


def alike(b):
    """Results that have the size of an operand and none of its elements."""
    b.imports[""] = 20
    x = b.input("x", ["batch", 6])
    y, mask = b.op("Dropout", b.op("Tanh", x), outputs=2)
    b.output(y)
    b.output(mask, TensorProto.BOOL)
    b.output(b.op("EyeLike", x, k=1))
    matrices = b.op("Reshape", x, b.ints(-1, 2, 3))
    b.output(b.op("AffineGrid", matrices, b.op("Concat", one_size(b, x), b.ints(3, 4, 5), axis=0)))


def matrices(b):
    x, y = b.input("x", ["batch", 4, 4]), b.input("y", [2, "n", "batch", 3, 3])
    b.output(b.op("Det", x))
    b.output(b.op("Det", y))
    b.output(b.op("Inverse", b.op("Add", x, b.constant(4 * np.eye(4, dtype=np.float32))), domain="com.microsoft"))


def words(b):
    ids = b.input("ids", ["batch", 6], TensorProto.INT64)
    grams = {"pool_int64s": [1, 2, 1, 2, 3, 1], "ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2, 3]}
    b.output(b.op("TfIdfVectorizer", b.op("Mod", ids, b.scalar(4, np.int64)), mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1, **grams))


def chosen(b):
    """Along another axis and along this one."""
    x, mask = b.input("x", ["batch", 6]), b.input("mask", [6], TensorProto.INT64)
    b.output(b.op("Compress", x, b.op("Cast", mask, to=TensorProto.BOOL), axis=1))
    b.output(b.op("Compress", x, b.constant(np.array([True, False, True])), axis=-1))
    b.output(b.op("Compress", x, b.constant(np.zeros(6, bool)), axis=1))
    rows = b.op("Greater", b.op("ReduceSum", x, b.ints(1), keepdims=0), b.scalar(0.0))
    b.output(b.op("Compress", x, rows, axis=0))
    b.output(b.op("Compress", x, b.op("Greater", b.op("Reshape", x, b.ints(-1)), b.scalar(0.0))))


def boxes(b):
    """Of several images."""
    corners, scores = b.input("corners", ["batch", 7, 4]), b.input("scores", ["batch", "classes", 7])
    sides = b.op("Concat", b.op("Slice", corners, b.ints(0), b.ints(2), b.ints(2)), b.op("Abs", b.op("Slice", corners, b.ints(2), b.ints(4), b.ints(2))), axis=2)
    b.output(b.op("NonMaxSuppression", sides, scores, b.ints(3), b.constant(np.float32([0.5])), center_point_box=1), TensorProto.INT64)
    least = b.op("ReduceMin", b.op("Neg", b.op("Abs", corners)), b.ints(0, 1, 2), keepdims=0)
    b.output(b.op("NonMaxSuppression", sides, scores, b.ints(2), b.constant(np.float32([0.5])), b.op("Reshape", least, b.ints(1)), center_point_box=1), TensorProto.INT64)


def masked(b):
    """y[mask] = v by places and rows, as exporters write it."""
    x, z = b.input("x", ["batch", 6]), b.input("z", ["batch", 6])

    def number(mask):
        return b.op("ReduceSum", b.op("Cast", b.op("Reshape", mask, b.ints(-1)), to=TensorProto.INT64))

    mask = b.op("Greater", x, z)
    places = b.op("Transpose", b.op("NonZero", mask), perm=[1, 0])
    b.output(b.op("ScatterND", x, places, b.op("Expand", b.scalar(1.5), number(mask))))
    b.output(b.op("ScatterND", x, places, b.op("Expand", b.op("GatherND", z, places), number(mask)), reduction="add"))
    rows = b.op("Greater", b.op("ReduceSum", x, b.ints(1), keepdims=0), b.scalar(0.0))
    wide = b.op("Expand", b.op("Unsqueeze", rows, b.ints(-1)), b.op("Shape", x))
    values = b.op("Expand", b.weight(6), b.op("Concat", number(rows), b.ints(6), axis=0))
    b.output(b.op("ScatterND", x, b.op("Transpose", b.op("NonZero", wide), perm=[1, 0]), b.op("Reshape", values, b.ints(-1))))


ALL = [(masked, {"batch": (1, 9)}), (rolled, {"batch": (1, 5)}), (without_elements, {"batch": (1, 5)}), (alike, {"batch": (1, 5)}), (matrices, {"batch": (1, 5), "n": (1, 3)}),
       (words, {"batch": (1, 5)}), (chosen, {"batch": (1, 5)}), (boxes, {"batch": (1, 4), "classes": (1, 3)})]
