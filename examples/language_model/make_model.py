"""Writes a small language model of Llama's kind with random weights, as exporters of such models write it: decoder.onnx, and
tokenizer.json beside it.

usage: make_model.py [FILE]      (needs numpy and onnx)

A token is a printable character. The caches of keys and values are inputs `past.*` and outputs `present.*`.
"""
import json
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

VOCABULARY, HIDDEN, HEADS, KEY_HEADS, SIZE, INNER, LAYERS, POSITIONS = 96, 128, 8, 2, 16, 352, 4, 1024

random = np.random.default_rng(7)
nodes, weights = [], []


def weight(*shape, scale=None):
    name = f"w{len(weights)}"
    values = random.standard_normal(shape) * (scale or shape[0] ** -0.5)
    weights.append(numpy_helper.from_array(values.astype(np.float32), name))
    return name


def constant(value):
    name = f"c{len(weights)}"
    weights.append(numpy_helper.from_array(np.asarray(value), name))
    return name


def op(kind, *inputs, outputs=None, domain="", **attributes):
    results = outputs or [f"{kind.lower()}_{len(nodes)}"]
    nodes.append(helper.make_node(kind, list(inputs), results, f"{kind.lower()}_{len(nodes)}", domain=domain, **attributes))
    return results[0]


def norm(x):
    return op("SimplifiedLayerNormalization", x, constant(np.ones(HIDDEN, np.float32)), axis=-1, epsilon=1e-6)


def linear(x, rows, columns):
    return op("MatMul", x, weight(rows, columns))


def layer(x, n, last, total, caches):
    h = norm(x)
    streams = [linear(h, HIDDEN, heads * SIZE) for heads in (HEADS, KEY_HEADS, KEY_HEADS)]
    attention = op("GroupQueryAttention", *streams, f"past.{n}.key", f"past.{n}.value", last, total, *caches,
                   outputs=[f"attention_{n}", f"present.{n}.key", f"present.{n}.value"], domain="com.microsoft",
                   num_heads=HEADS, kv_num_heads=KEY_HEADS, do_rotary=1)
    x = op("Add", x, linear(attention, HIDDEN, HIDDEN))
    h = norm(x)
    gate = linear(h, HIDDEN, INNER)
    inner = op("Mul", op("Mul", gate, op("Sigmoid", gate)), linear(h, HIDDEN, INNER))
    return op("Add", x, linear(inner, INNER, HIDDEN))


def main():
    one = constant(np.array([1], np.int64))
    last = op("Cast", op("Sub", op("ReduceSum", "attention_mask", one, keepdims=0), one), to=TensorProto.INT32)
    total = op("Cast", op("Gather", op("Shape", "attention_mask"), constant(np.array(1, np.int64))), to=TensorProto.INT32)
    angles = np.arange(POSITIONS)[:, None] * 10000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2))
    caches = [constant(f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
    x = op("Gather", weight(VOCABULARY, HIDDEN, scale=1), "input_ids")
    for n in range(LAYERS):
        x = layer(x, n, last, total, caches)
    op("MatMul", norm(x), weight(HIDDEN, VOCABULARY, scale=0.3), outputs=["logits"])
    cache = [f"{n}.{kind}" for n in range(LAYERS) for kind in ("key", "value")]
    value = helper.make_tensor_value_info
    inputs = [value("input_ids", TensorProto.INT64, ["batch", "seq"]), value("attention_mask", TensorProto.INT64, ["batch", "total"])]
    inputs += [value(f"past.{c}", TensorProto.FLOAT, ["batch", KEY_HEADS, "past", SIZE]) for c in cache]
    outputs = [value("logits", TensorProto.FLOAT, ["batch", "seq", VOCABULARY])]
    outputs += [value(f"present.{c}", TensorProto.FLOAT, ["batch", KEY_HEADS, "total", SIZE]) for c in cache]
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "decoder.onnx")
    save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
    spaces = {" ": "\u0120", "\x7f": "\u0121"}  # as tokenizers of bytes write them
    characters = {spaces.get(chr(32 + k), chr(32 + k)): k for k in range(VOCABULARY)}
    tokenizer = {"decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": characters, "merges": []}}
    (path.parent / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


main()
