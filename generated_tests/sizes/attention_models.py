"""Models with attention over symbolic sizes, spelled out in operators."""
import numpy as np
import open_models
from onnx import TensorProto


def attention(b, batch="batch", layers=1):
    ids, mask = b.input("ids", [batch, "seq"], TensorProto.INT64), b.input("mask", [batch, "seq"], TensorProto.INT64)
    n = open_models.size(b, ids, 1)
    y = b.op("Add", b.op("Gather", b.weight(40, 32), ids), b.op("Slice", b.weight(64, 32), b.ints(0), n))
    far = b.op("Mul", b.op("Sub", b.scalar(1.0), b.op("Cast", b.op("Unsqueeze", mask, b.ints(1, 2)), to=1)), b.scalar(-10000.0))
    for _ in range(layers):
        x = b.op("LayerNormalization", y, b.weight(32), b.weight(32), axis=-1)
        heads = b.op("Concat", open_models.size(b, ids, 0), n, b.ints(4, 8), axis=0)
        q, k, v = (b.op("Transpose", b.op("Reshape", b.op("MatMul", x, b.weight(32, 32)), heads), perm=perm)
                   for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        weights = b.op("Softmax", b.op("Add", b.op("Div", b.op("MatMul", q, k), b.scalar(8 ** 0.5)), far), axis=-1)
        joined = b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        flat = b.op("Reshape", joined, b.op("Concat", open_models.size(b, ids, 0), n, b.ints(32), axis=0))
        y = b.op("Add", y, b.op("MatMul", flat, b.weight(32, 32)))
    b.output(y)
    b.output(b.op("ReduceMean", y, b.ints(1), keepdims=0))


def attention_of_one(b):
    attention(b, 1, 2)


def masked_attention(b):
    """As PyTorch's exporters write it: keys that may all be forbidden, and layers over rows that are joined for a product."""
    x, mask = b.input("x", ["batch", "seq", 64]), b.input("mask", ["batch", "seq"], TensorProto.INT64)
    rows, n = open_models.size(b, x, 0), open_models.size(b, x, 1)
    norm = b.op("LayerNormalization", x, b.weight(64), b.weight(64), axis=-1)
    flat = b.op("Gemm", b.op("Reshape", norm, b.ints(-1, 64)), b.weight(64, 192), b.weight(192))
    joined = b.op("Reshape", flat, b.op("Concat", rows, n, b.ints(192), axis=0))
    heads = b.op("Concat", rows, n, b.ints(2, 32), axis=0)
    q, k, v = (b.op("Transpose", b.op("Reshape", b.op("Slice", joined, b.ints(at), b.ints(at + 64), b.ints(2)), heads), perm=perm)
               for at, perm in ((0, [0, 2, 1, 3]), (64, [0, 2, 3, 1]), (128, [0, 2, 1, 3])))
    seen = b.op("Where", b.op("Cast", b.op("Unsqueeze", mask, b.ints(1, 2)), to=TensorProto.BOOL), b.scalar(0.0), b.scalar(-np.inf))
    p = b.op("Softmax", b.op("Add", b.op("Mul", b.op("MatMul", q, k), b.scalar(0.2)), seen), axis=-1)
    weights = b.op("Where", b.op("IsNaN", p), b.scalar(0.0), p)
    y = b.op("Reshape", b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3]), b.op("Concat", rows, n, b.ints(64), axis=0))
    b.output(b.op("Add", x, b.op("Reshape", b.op("Tanh", b.op("Gemm", b.op("Reshape", y, b.ints(-1, 64)), b.weight(64, 64), b.weight(64))),
                                 b.op("Concat", rows, n, b.ints(64), axis=0))))


def half_attention(b):
    """Attention of halves: what a run needs of it is filled between layers that compute in single precision."""
    x = b.input("x", ["batch", "seq", 32], TensorProto.FLOAT16)
    weight = lambda *shape: b.constant((b.random.standard_normal(shape) * 0.2).astype(np.float16))
    rows, n = open_models.size(b, x, 0), open_models.size(b, x, 1)
    heads = b.op("Concat", rows, n, b.ints(2, 16), axis=0)
    q, k, v = (b.op("Transpose", b.op("Reshape", b.op("MatMul", x, weight(32, 32)), heads), perm=perm)
               for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    p = b.op("Softmax", b.op("Mul", b.op("MatMul", q, k), b.constant(np.array(0.25, np.float16))), axis=-1)
    y = b.op("Reshape", b.op("Transpose", b.op("MatMul", p, v), perm=[0, 2, 1, 3]), b.op("Concat", rows, n, b.ints(32), axis=0))
    b.output(b.op("MatMul", y, weight(32, 32)), TensorProto.FLOAT16)
    b.output(b.op("ReduceMax", b.op("Gemm", b.op("Reshape", y, b.ints(-1, 32)), weight(32, 8)), b.ints(0)), TensorProto.FLOAT16)


def many_scores(b):
    """Softmaxes that threads share, with something between them and the product that follows."""
    x = b.input("x", [4, "n", 16])
    scores = b.op("Add", b.op("MatMul", x, b.op("Transpose", x, perm=[0, 2, 1])), b.op("Tanh", b.op("ReduceMax", x, b.ints(2))))
    p = b.op("Softmax", scores, axis=-1)
    n = open_models.size(b, x, 1)
    apart = b.op("Reshape", p, b.op("Concat", b.ints(2, 2), n, n, axis=0))
    b.output(b.op("MatMul", apart, b.op("Reshape", x, b.op("Concat", b.ints(2, 2), n, b.ints(16), axis=0))))
    b.output(b.op("ReduceMax", apart, b.ints(0, 2), keepdims=0))


def pooled_by_attention(b):
    """A softmax that no product of matrices follows, and a product of one query."""
    x = b.input("x", ["n", 32])
    p = b.op("Softmax", b.op("MatMul", b.weight(3, 32), b.op("Transpose", x, perm=[1, 0])), axis=-1)
    b.output(b.op("MatMul", p, x))
    b.output(b.op("ReduceMax", p, b.ints(1), keepdims=0))
    b.output(p)


def heads_side_by_side(b, batch=1, **attributes):
    """ONNX Runtime's own form: as many rows as words, of which a run may have one only."""
    q, k, v = (b.input(name, [batch, "seq", 48]) for name in "qkv")
    b.output(b.op("MultiHeadAttention", q, k, v, num_heads=3, domain="com.microsoft", **attributes))


def causal_heads_side_by_side(b):
    heads_side_by_side(b, unidirectional=1)


def batches_of_heads(b):
    heads_side_by_side(b, "batch", unidirectional=1)


def narrow_heads(b):
    """Heads that fill no vector."""
    q, k, v = (b.input(name, ["batch", "seq", 24]) for name in "qkv")
    b.output(b.op("MultiHeadAttention", q, k, v, num_heads=3, domain="com.microsoft"))


def batches_with_caches(b, batch="batch", heads=3, size=16):
    """Batches whose queries lie apart, in a cache of any number of keys: a run has many queries, or one."""
    b.imports[""] = 23
    q, k, v = (b.input(name, [batch, "seq", heads * size]) for name in "qkv")
    caches = [b.input(name, [batch, heads, "past", size]) for name in ("past_k", "past_v")]
    for y in b.op("Attention", q, k, v, "", *caches, q_num_heads=heads, kv_num_heads=heads, is_causal=1, outputs=3):
        b.output(y)


def heads_with_caches(b):
    """The same of one batch, whose heads come first."""
    b.imports[""] = 23
    q, k, v = (b.input(name, [1, 3, "seq", 16]) for name in "qkv")
    caches = [b.input(name, [1, 3, "past", 16]) for name in ("past_k", "past_v")]
    for y in b.op("Attention", q, k, v, "", *caches, is_causal=1, outputs=3):
        b.output(y)


def sums_of_sizes(b):
    """An operand of as many elements as two sizes are together."""
    q, p, m = b.input("q", [2, "seq"]), b.input("p", [2, "past"]), b.input("m", [2, "past + seq"])
    b.output(b.op("Neg", m))
    b.output(b.op("Add", q, q))
    b.output(b.op("Add", p, p))


def gated_heads(b):
    """Something becomes of the result in the same kernel, heads apart and side by side."""
    b.imports[""] = 23
    q, k, v, gate = (b.input(name, ["batch", "seq", 24]) for name in ("q", "k", "v", "gate"))
    caches = [b.input(name, ["batch", 3, "past", 8]) for name in ("past_k", "past_v")]
    y = b.op("Attention", q, k, v, "", *caches, q_num_heads=3, kv_num_heads=3, is_causal=1, outputs=3)
    b.output(b.op("Mul", y[0], gate))
    apart = b.op("Attention", *(b.op("Transpose", b.op("Reshape", x, b.ints(0, 0, 2, 12)), perm=[0, 2, 1, 3]) for x in (q, k, v)), is_causal=1)
    b.output(b.op("Relu", b.op("Add", apart, b.weight(2, 1, 12))))
    for x in y[1:]:
        b.output(x)
