"""Attention over texts without an upper bound: scores have two such axes, and no memory holds them."""
import attention_models
import cached_models
import numpy as np
from onnx import TensorProto
from open_models import size


def split(b, y, batch, n, heads, depth, perm):
    return b.op("Transpose", b.op("Reshape", y, b.op("Concat", batch, n, b.ints(heads, depth), axis=0)), perm=perm)


def encoder(b, batch=2, layers=2, heads=3, depth=16):
    """BERT's layers, with a mask of the words that are there."""
    width = heads * depth
    x, mask = b.input("x", [batch, "seq", width]), b.input("mask", [batch, "seq"], TensorProto.INT64)
    rows, n = size(b, x, 0), size(b, x, 1)
    far = b.op("Mul", b.op("Sub", b.scalar(1.0), b.op("Cast", b.op("Unsqueeze", mask, b.ints(1, 2)), to=1)), b.scalar(-10000.0))
    for _ in range(layers):
        q, k, v = (split(b, b.op("Add", b.op("MatMul", x, b.weight(width, width)), b.weight(width)), rows, n, heads, depth, perm)
                   for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        p = b.op("Softmax", b.op("Add", b.op("Div", b.op("MatMul", q, k), b.scalar(depth ** 0.5)), far), axis=-1)
        joined = b.op("Reshape", b.op("Transpose", b.op("MatMul", p, v), perm=[0, 2, 1, 3]), b.op("Concat", rows, n, b.ints(width), axis=0))
        y = b.op("LayerNormalization", b.op("Add", x, b.op("MatMul", joined, b.weight(width, width))), b.weight(width), b.weight(width), axis=-1)
        x = b.op("Add", y, b.op("MatMul", b.op("Relu", b.op("MatMul", y, b.weight(width, 80))), b.weight(80, width)))
    b.output(x)


def encoder_of_one(b):
    encoder(b, 1)


def odd_heads(b):
    """Heads that are no whole vectors."""
    encoder(b, 2, 1, 2, 10)


def first_word(b):
    """What is read of the last layer is its first row."""
    x = b.input("x", [2, "seq", 32])
    rows, n = size(b, x, 0), size(b, x, 1)
    q, k, v = (split(b, b.op("MatMul", x, b.weight(32, 32)), rows, n, 2, 16, perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    seen = b.op("MatMul", b.op("Softmax", b.op("Mul", b.op("MatMul", q, k), b.scalar(0.25)), axis=-1), v)
    y = b.op("Reshape", b.op("Transpose", seen, perm=[0, 2, 1, 3]), b.op("Concat", rows, n, b.ints(32), axis=0))
    b.output(b.op("Tanh", b.op("MatMul", b.op("Gather", y, b.scalar(0, np.int64), axis=1), b.weight(32, 32))))


def forbidden_words(b):
    """Rows whose words may all be forbidden, as PyTorch's exporters write them."""
    x, mask = b.input("x", [2, "seq", 32]), b.input("mask", [2, "seq"], TensorProto.INT64)
    rows, n = size(b, x, 0), size(b, x, 1)
    q, k, v = (split(b, b.op("MatMul", x, b.weight(32, 32)), rows, n, 2, 16, perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    seen = b.op("Where", b.op("Cast", b.op("Unsqueeze", mask, b.ints(1, 2)), to=TensorProto.BOOL), b.scalar(0.0), b.scalar(-np.inf))
    p = b.op("Softmax", b.op("Add", b.op("Mul", b.op("MatMul", q, k), b.scalar(0.2)), seen), axis=-1)
    weights = b.op("Where", b.op("IsNaN", p), b.scalar(0.0), p)
    b.output(b.op("Reshape", b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3]), b.op("Concat", rows, n, b.ints(32), axis=0)))


def causal_words(b):
    """Words that see those before them: the mask is made of positions."""
    x = b.input("x", [2, "seq", 32])
    rows, n = size(b, x, 0), size(b, x, 1)
    q, k, v = (split(b, b.op("MatMul", x, b.weight(32, 32)), rows, n, 2, 16, perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    at = b.op("Range", b.scalar(0, np.int64), b.op("Squeeze", n), b.scalar(1, np.int64))
    seen = b.op("LessOrEqual", b.op("Unsqueeze", at, b.ints(0)), b.op("Unsqueeze", at, b.ints(1)))
    p = b.op("Softmax", b.op("Where", seen, b.op("Mul", b.op("MatMul", q, k), b.scalar(0.25)), b.scalar(-1e9)), axis=-1)
    b.output(b.op("Reshape", b.op("Transpose", b.op("MatMul", p, v), perm=[0, 2, 1, 3]), b.op("Concat", rows, n, b.ints(32), axis=0)))


def distances(b):
    """A bias for each pair of words, by how far they are apart, for two layers: T5's."""
    x = b.input("x", [1, "seq", 32])
    rows, n = size(b, x, 0), size(b, x, 1)
    at = b.op("Range", b.scalar(0, np.int64), b.op("Squeeze", n), b.scalar(1, np.int64))
    apart = b.op("Sub", b.op("Unsqueeze", at, b.ints(0)), b.op("Unsqueeze", at, b.ints(1)))
    bucket = b.op("Add", b.op("Max", b.op("Min", apart, b.scalar(7, np.int64)), b.scalar(-8, np.int64)), b.scalar(8, np.int64))
    bias = b.op("Unsqueeze", b.op("Transpose", b.op("Gather", b.weight(16, 2), bucket), perm=[2, 0, 1]), b.ints(0))
    for _ in range(2):
        q, k, v = (split(b, b.op("MatMul", x, b.weight(32, 32)), rows, n, 2, 16, perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        p = b.op("Softmax", b.op("Add", b.op("Mul", b.op("MatMul", q, k), b.scalar(0.05)), bias), axis=-1)
        x = b.op("Add", x, b.op("Reshape", b.op("Transpose", b.op("MatMul", p, v), perm=[0, 2, 1, 3]), b.op("Concat", rows, n, b.ints(32), axis=0)))
    b.output(b.op("Tanh", x))


def of_onnx(b):
    """The operator of ONNX: heads that share keys, and few queries, with a mask."""
    b.imports[""] = 23
    q, k, v, mask = b.input("q", [2, "seq", 64]), b.input("k", [2, "seq", 32]), b.input("v", [2, "seq", 32]), b.input("mask", [2, 1, 3, "seq"])
    b.output(b.op("Attention", q, k, v, q_num_heads=4, kv_num_heads=2))
    b.output(b.op("Attention", b.input("few", [2, 3, 64]), k, v, mask, q_num_heads=4, kv_num_heads=2))


def of_onnx_causal(b):
    b.imports[""] = 23
    q, k, v = b.input("q", [2, "seq", 32]), b.input("k", [2, "seq", 32]), b.input("v", [2, "seq", 32])
    b.output(b.op("Attention", q, k, v, q_num_heads=2, kv_num_heads=2, is_causal=1))


ENDLESS = [
    (build, {"seq": (1, None)}) for build in (encoder, encoder_of_one, odd_heads, first_word, forbidden_words, causal_words, distances, of_onnx, of_onnx_causal)
] + [
    # Caches that no state keeps: past keys come with the run, and so do all of them, with its own.
    (attention_models.batches_with_caches, {"batch": (1, 3), "seq": (1, None), "past": (0, None)}), (attention_models.batches_with_caches, {"batch": (1, 3), "seq": (1, 20), "past": (0, None)}),
    (attention_models.heads_with_caches, {"seq": (1, None), "past": (0, 33)}), (cached_models.one_token, {"past": (0, None)}),
    (attention_models.gated_heads, {"batch": (1, 2), "seq": (1, None), "past": (0, None)}), (attention_models.gated_heads, {"batch": (1, 2), "seq": (1, 9), "past": (0, 20)}),
]
