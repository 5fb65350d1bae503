"""A model of many attentions, each an output of its own: head sizes and lengths that are no multiple of anything, masks of
every kind, heads that share keys, one row of queries and many keys, rows without any key."""

import numpy as np
import onnx
from onnx import TensorProto, helper

MINUS_INFINITY = float("-inf")


class Builder:
    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.constants, self.values = [], [], [], [], {}
        self.random = np.random.default_rng(5)

    def constant(self, name, value):
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def op(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.values[name] = self.random.uniform(-1, 1, shape).astype(np.float32)
        return name

    def output(self, name, shape):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))


def masked(b, name, scores, mask, shape):
    """The scores with one kind of mask."""
    batch, _, rows, keys = shape
    if mask == "added":
        m = b.input(name + "_mask", [batch, 1, rows, keys])
        b.values[m][b.values[m] < -0.5] = MINUS_INFINITY
        b.values[m][..., 0] = 0
        return b.op("Add", [scores, m], name + "_masked")
    if mask == "per_key":
        m = b.input(name + "_mask", [batch, 1, 1, keys])
        b.values[m][b.values[m] < 0] = -10000
        return b.op("Add", [scores, m], name + "_masked")
    if mask in ("causal", "none_first"):  # none_first: the first rows see no key
        offset = keys - rows if mask == "causal" else -2
        allowed = np.tril(np.ones((rows, keys), bool), offset)
        if mask == "none_first":
            return b.op("Add", [scores, b.constant(name + "_tril", np.where(allowed, 0, MINUS_INFINITY).astype(np.float32))], name + "_masked")
        return b.op("Where", [b.constant(name + "_tril", allowed), scores, b.constant(name + "_no", np.float32(MINUS_INFINITY))], name + "_masked")
    return scores


def attention(b, name, batch=1, heads=2, kv_heads=None, rows=16, keys=None, size=16, value_size=None, mask=None):
    """q, k and v as [batch, rows, heads * size]; the result likewise."""
    keys, kv_heads, value_size = keys or rows, kv_heads or heads, value_size or size

    def split(what, length, count, width, perm):
        x = b.input(f"{name}_{what}", [batch, length, count * width])
        x = b.op("Reshape", [x, b.constant(f"{name}_{what}_heads", np.int64([batch, length, count, width]))], f"{name}_{what}_split")
        x = b.op("Transpose", [x], f"{name}_{what}_turned", perm=perm)
        if count == heads:
            return x
        last = [length, width] if perm[2] == 1 else [width, length]
        x = b.op("Unsqueeze", [x, b.constant(f"{name}_{what}_axis", np.int64([2]))], f"{name}_{what}_groups")
        x = b.op("Expand", [x, b.constant(f"{name}_{what}_wide", np.int64([batch, count, heads // count, *last]))], f"{name}_{what}_repeated")
        return b.op("Reshape", [x, b.constant(f"{name}_{what}_all", np.int64([batch, heads, *last]))], f"{name}_{what}_shared")

    q = split("q", rows, heads, size, [0, 2, 1, 3])
    k = split("k", keys, kv_heads, size, [0, 2, 3, 1])
    v = split("v", keys, kv_heads, value_size, [0, 2, 1, 3])
    scores = b.op("MatMul", [q, k], name + "_products")
    scores = b.op("Mul", [scores, b.constant(name + "_scale", np.float32(size**-0.5))], name + "_scores")
    weights = b.op("Softmax", [masked(b, name, scores, mask, (batch, heads, rows, keys))], name + "_weights")
    y = b.op("Transpose", [b.op("MatMul", [weights, v], name + "_values")], name + "_back", perm=[0, 2, 1, 3])
    b.op("Reshape", [y, b.constant(name + "_flat", np.int64([batch, rows, heads * value_size]))], name)
    b.output(name, [batch, rows, heads * value_size])


def model(path):
    """Writes the model; returns (path, inputs by name)."""
    b = Builder()
    attention(b, "square", rows=37, size=64, mask="added")
    attention(b, "causal", batch=2, rows=70, size=40, mask="causal")
    attention(b, "cross", rows=33, keys=77, size=128, value_size=72, mask="per_key")
    attention(b, "grouped", heads=4, kv_heads=2, rows=5, keys=33, size=16, mask="causal")
    attention(b, "odd", rows=19, keys=21, size=5, value_size=3)
    attention(b, "decoding", heads=4, kv_heads=1, rows=1, keys=1500, size=32, mask="per_key")
    attention(b, "decoding_all_heads", heads=3, rows=1, keys=700, size=64)
    attention(b, "long", heads=1, rows=130, keys=260, size=24, mask="added")
    attention(b, "large", heads=1, rows=9, keys=50, size=256)
    attention(b, "empty_rows", rows=18, size=8, mask="none_first")
    graph = helper.make_graph(b.nodes, "attentions", b.inputs, b.outputs, b.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path, b.values
