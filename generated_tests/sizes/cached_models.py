"""Models whose results say more than their operands' sizes: lengths without a mask, caches of keys that are as long as a number says, large images."""
import numpy as np
from onnx import TensorProto
from open_models import size

HEAD = 8


def embedded(b):
    """The lengths of rows that no mask gives are zeros."""
    ids, segments = (b.input(name, ["batch", "seq"], TensorProto.INT32) for name in ("ids", "mask"))
    norm = b.weight(16), b.weight(16)
    for tables in ([ids, "", b.weight(40, 16), b.weight(64, 16), ""], [ids, segments, b.weight(40, 16), b.weight(64, 16), b.weight(2, 16)]):
        y, lengths = b.op("EmbedLayerNormalization", *tables, *norm, domain="com.microsoft", outputs=2)
        b.output(y)
        b.output(lengths, TensorProto.INT32)


def attention_over(b, past, total):
    """GroupQueryAttention of 4 heads, 2 of the keys, in a cache of `past` rows; total: of the queries, how many tokens there are with the run's own."""
    streams = [b.input(name, [1, "seq", heads * HEAD]) for name, heads in (("q", 4), ("k", 2), ("v", 2))]
    caches = [b.input(name, [1, 2, past, HEAD]) for name in ("past_k", "past_v")]
    number = b.op("Cast", total(streams[0]), to=TensorProto.INT32)
    last = b.op("Sub", number, b.constant(np.array([1], np.int32)))
    for y in b.op("GroupQueryAttention", *streams, *caches, last, number, num_heads=4, kv_num_heads=2, domain="com.microsoft", outputs=3):
        b.output(y)


def longer_cache(b):
    """The present has more rows than the past."""
    attention_over(b, 5, lambda x: b.op("Add", size(b, x, 1), b.ints(5)))


def one_token(b):
    """A run adds one token to a cache that any number of them is in."""
    b.imports[""] = 23
    streams = [b.input(name, [1, 2, 1, HEAD]) for name in ("q", "k", "v")]
    caches = [b.input(name, [1, 2, "past", HEAD]) for name in ("past_k", "past_v")]
    for y in b.op("Attention", *streams, "", *caches, outputs=3):
        b.output(y)
    flat = [b.input(name, [1, 1, 2 * HEAD]) for name in ("p", "r", "s")]
    for y in b.op("MultiHeadAttention", *flat, "", "", "", *caches, num_heads=2, domain="com.microsoft", outputs=3):
        b.output(y)


def enlarged(b):
    """The other axes of pictures, as many as there are."""
    x = b.input("x", ["batch", 3, 5, 7])
    b.output(b.op("Resize", x, "", b.constant(np.float32([1, 1, 2, 1.5])), mode="linear"))


def same_cache(b):
    """The present has the past's rows, more than are filled."""
    attention_over(b, 9, lambda x: b.ints(6))


def without_past(b):
    """The first run of a language model: no batch has tokens before."""
    streams = [b.input(name, ["batch", 3, heads * HEAD]) for name, heads in (("q", 4), ("k", 2), ("v", 2))]
    last = b.op("Expand", b.constant(np.array([2], np.int32)), size(b, streams[0], 0))
    for y in b.op("GroupQueryAttention", *streams, "", "", last, b.constant(np.array(3, np.int32)), num_heads=4, kv_num_heads=2, domain="com.microsoft", outputs=3):
        b.output(y)


def one_class(b):
    """The leaves say something of one of two classes; the scores of the other are zeros."""
    b.imports["ai.onnx.ml"] = 1
    leaves = dict(class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[1, 1], class_weights=[0.25, 0.75], classlabels_int64s=[4, 7])
    nodes = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_featureids=[1, 0, 0], nodes_values=[0.1, 0.0, 0.0],
                 nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0])
    label, scores = b.op("TreeEnsembleClassifier", b.input("x", ["batch", 2]), outputs=2, domain="ai.onnx.ml", post_transform="NONE", **leaves, **nodes)
    b.output(label, TensorProto.INT64)
    b.output(scores)


def large_images(b):
    """Filters of 3 by 3 and 32 channels, as Winograd's transforms are for: what lies behind the last row must not be mixed in."""
    x = b.input("x", [1, 32, "h", "w"])
    y = b.op("Conv", x, b.weight(32, 32, 3, 3, scale=0.05), b.weight(32), pads=[1, 1, 1, 1])
    y = b.op("Mul", y, b.op("Sigmoid", y))
    b.output(b.op("Conv", b.op("Sqrt", b.op("Abs", y)), b.weight(32, 32, 3, 3, scale=0.05), pads=[1, 1, 1, 1]))


def many_images(b):
    """The same of a batch: images one by one, whatever lies where there are none."""
    x = b.input("x", ["batch", 32, 14, 13])
    y = b.op("Relu", b.op("Conv", x, b.weight(64, 32, 3, 3, scale=0.05), b.weight(64), pads=[1, 1, 1, 1]))
    b.output(b.op("Add", y, b.op("Conv", y, b.weight(64, 64, 3, 3, scale=0.05), pads=[1, 1, 1, 1])))


ALL = [
    (one_token, {"past": (0, 20)}), (enlarged, {"batch": (1, None)}), (enlarged, {"batch": (0, 5)}),
    (embedded, {"batch": (0, 5), "seq": (1, 6)}), (embedded, {"batch": (1, None), "seq": (3, 3)}), (longer_cache, {"seq": (1, 5)}), (same_cache, {"seq": (1, 6)}),
    (without_past, {"batch": (1, 3)}), (without_past, {"batch": (1, None)}), (one_class, {"batch": (0, 5)}), (one_class, {"batch": (1, None)}),
    (large_images, {"h": (1, 17), "w": (1, 17)}), (many_images, {"batch": (0, 5)}), (many_images, {"batch": (1, None)}),
]
