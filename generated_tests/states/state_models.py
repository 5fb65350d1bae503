"""Models whose instance keeps states: name, model, states by input, ranges of the sizes that stay, the lengths of the runs.

A growing axis is called `past` (bounds 0..ROOM); what a run appends is called `seq` (bounds 1..MOST); `batch` is BATCH.
"""
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

sys.path.append(str(Path(__file__).resolve().parent.parent / "sizes"))
from sized_models import Builder  # noqa: E402

ROOM, MOST, BATCH, CAPACITY = 20, 8, 3, 8
HEADS, KEYS, SIZE, HIDDEN = 4, 2, 16, 64


def tokens(b):
    return b.op("Gather", b.weight(50, HIDDEN), b.input("ids", [1, "seq"], TensorProto.INT64))


def shape(b, x, *sizes):
    return b.op("Reshape", x, b.ints(*sizes))


def heads(b, x, n):
    return b.op("Transpose", shape(b, b.op("MatMul", x, b.weight(HIDDEN, n * SIZE)), 0, 0, n, SIZE), perm=[0, 2, 1, 3])


def keep(b, name, result):
    b.output(result)
    return name, result


def products(b):
    """As PyTorch writes it: Concat, two products, a mask of positions."""
    x = tokens(b)
    past_k, past_v = (b.input(n, [1, HEADS, "past", SIZE]) for n in ("past_k", "past_v"))
    q, k, v = (heads(b, x, HEADS) for _ in range(3))
    k, v = b.op("Concat", past_k, k, axis=2), b.op("Concat", past_v, v, axis=2)
    before = b.op("Squeeze", b.op("Gather", b.op("Shape", past_k), b.ints(2)), b.ints(0))
    total = b.op("Squeeze", b.op("Gather", b.op("Shape", k), b.ints(2)), b.ints(0))
    rows = b.op("Add", b.op("Range", b.scalar(0, np.int64), b.op("Squeeze", b.op("Gather", b.op("Shape", x), b.ints(1)), b.ints(0)), b.scalar(1, np.int64)), before)
    columns = b.op("Range", b.scalar(0, np.int64), total, b.scalar(1, np.int64))
    allowed = b.op("LessOrEqual", b.op("Unsqueeze", columns, b.ints(0)), b.op("Unsqueeze", rows, b.ints(1)))
    scores = b.op("Mul", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.scalar(0.25))
    scores = b.op("Where", allowed, scores, b.scalar(-1e9))
    y = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    b.output(b.op("MatMul", shape(b, y, 0, 0, HIDDEN), b.weight(HIDDEN, 10)))
    return dict([keep(b, past_k, k), keep(b, past_v, v)])


def standard(b, x=None, **attributes):
    """Attention of operator set 23."""
    x = x or tokens(b)
    past_k, past_v = (b.input(n, [1, KEYS, "past", SIZE]) for n in ("past_k", "past_v"))
    q = b.op("MatMul", x, b.weight(HIDDEN, HEADS * SIZE))
    k, v = (b.op("MatMul", x, b.weight(HIDDEN, KEYS * SIZE)) for _ in range(2))
    y, new_k, new_v = b.op("Attention", q, k, v, "", past_k, past_v, outputs=3, is_causal=1, q_num_heads=HEADS, kv_num_heads=KEYS, **attributes)
    b.output(b.op("MatMul", y, b.weight(HIDDEN, 10)))
    return dict([keep(b, past_k, new_k), keep(b, past_v, new_v)])


def embedded(b):
    """Tokens come as numbers, which may be none."""
    return standard(b, b.input("x", [1, "seq", HIDDEN]))


def grouped(b, packed=True, dtype=np.float32, sinks=False, windowed=(), **attributes):
    """As ONNX Runtime's builder of language models writes it. Layers in `windowed` have caches of CAPACITY rows."""
    def weight(*shape):
        return b.constant((b.random.standard_normal(shape) * 0.3).astype(dtype))

    x, held = tokens(b), helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    if dtype != np.float32:
        x = b.op("Cast", x, to=held)
    mask = b.input("mask", [1, "total"], TensorProto.INT64)
    last = b.op("Cast", b.op("Sub", b.op("ReduceSum", mask, b.ints(1), keepdims=0), b.ints(1)), to=TensorProto.INT32)
    total = b.op("Cast", b.op("Gather", b.op("Shape", mask), b.scalar(1, np.int64)), to=TensorProto.INT32)
    for layer in range(2):
        slides = layer in windowed
        past = [b.input(f"{'window' if slides else 'past'}_{layer}_{n}", [1, KEYS, CAPACITY if slides else "past", SIZE], held) for n in "kv"]
        own = dict(local_window_size=6, sliding_window_cache=1) if slides else {}
        if packed:
            streams = [b.op("MatMul", x, weight(HIDDEN, (HEADS + 2 * KEYS) * SIZE)), "", ""]
        else:
            streams = [b.op("MatMul", x, weight(HIDDEN, n * SIZE)) for n in (HEADS, KEYS, KEYS)]
        angles = np.arange(64)[:, None] * 0.7 ** np.arange(SIZE // 2)[None]
        caches = [b.constant(f(angles).astype(dtype)) for f in (np.cos, np.sin)]
        sink = ["", "", b.constant(np.array([0.5, -2, 3, 0], dtype))] if sinks else []
        y, k, v = b.op("GroupQueryAttention", *streams, *past, last, total, *caches, *sink, outputs=3, domain="com.microsoft",
                       num_heads=HEADS, kv_num_heads=KEYS, do_rotary=1, **attributes, **own)
        x = b.op("Add", x, b.op("MatMul", y, weight(HIDDEN, HIDDEN)))
        for name, result in zip(past, (k, v)):
            b.kept[name] = result
    y = b.op("MatMul", x, weight(HIDDEN, 10))
    b.output(y if dtype == np.float32 else b.op("Cast", y, to=TensorProto.FLOAT))
    for result in b.kept.values():
        b.output(result, held)
    return b.kept


def window(b):
    return grouped(b, packed=False, local_window_size=6)


def halves(b):
    """Weights and caches of float16."""
    return grouped(b, dtype=np.float16)


def capped(b):
    return grouped(b, softcap=3.0)


def sinks(b):
    return grouped(b, sinks=True)


def windows(b):
    """A layer whose cache holds the last keys alone, and one that holds all."""
    return grouped(b, sinks=True, windowed=(0,))


def recurrences(b):
    """As Qwen3.5 has it: causal convolution and attention, both with a state of a fixed size."""
    def ms(kind, *inputs, outputs, **attributes):
        return b.op(kind, *inputs, outputs=outputs, domain="com.microsoft", **attributes)

    x = b.input("x", [1, "seq", HIDDEN])
    steps, state = b.input("steps", [1, 3 * 32, 3]), b.input("matrix", [1, 2, SIZE, SIZE])
    mixed = b.op("Transpose", b.op("MatMul", x, b.weight(HIDDEN, 3 * 32)), perm=[0, 2, 1])
    mixed, new_steps = ms("CausalConvWithState", mixed, b.weight(3 * 32, 1, 4), b.weight(3 * 32), steps, outputs=2, activation="silu")
    q, k, v = b.op("Split", b.op("Transpose", mixed, perm=[0, 2, 1]), outputs=3, axis=2, num_outputs=3)
    k = shape(b, b.op("LpNormalization", shape(b, k, 0, 0, 2, SIZE), axis=-1, p=2), 0, 0, 32)
    decay, rate = ms("LinearAttentionGate", b.op("MatMul", x, b.weight(HIDDEN, 2)), b.weight(2), b.constant(np.array([-0.3, -0.7], np.float32)),
                     b.op("MatMul", x, b.weight(HIDDEN, 2)), outputs=2)
    y, new_state = ms("LinearAttention", q, k, v, state, decay, rate, outputs=2, q_num_heads=2, kv_num_heads=2)
    y = ms("GatedRMSNorm", y, b.weight(SIZE), b.op("MatMul", x, b.weight(HIDDEN, 32)), outputs=1)
    b.output(b.op("MatMul", y, b.weight(32, 10)))
    return dict([keep(b, steps, new_steps), keep(b, state, new_state)])


def scattered(b):
    """Caches of a fixed size that TensorScatter writes: from a position on, and around the end."""
    x, at = b.input("x", [1, KEYS, "seq", SIZE]), b.input("at", [1], TensorProto.INT64)
    line, ring = b.input("line", [1, KEYS, 40, SIZE]), b.input("ring", [1, KEYS, 16, SIZE])
    new_line = b.op("TensorScatter", line, x, at)
    new_ring = b.op("TensorScatter", ring, x, at, mode="circular")
    b.output(b.op("ReduceSum", b.op("Concat", new_line, new_ring, axis=2), b.ints(2), keepdims=0))
    return dict([keep(b, line, new_line), keep(b, ring, new_ring)])


def recurrent(b):
    """A cell that streams."""
    x = b.input("x", [5, 1, 6])
    h, c = b.input("h", [1, 1, 16]), b.input("c", [1, 1, 16])
    y, new_h, new_c = b.op("LSTM", x, b.weight(1, 64, 6), b.weight(1, 64, 16), b.weight(1, 128), "", h, c, outputs=3, hidden_size=16)
    b.output(y)
    return dict([keep(b, h, new_h), keep(b, c, new_c)])


def moving(b):
    """States that swap, stay as they are, add up, and shift."""
    x = b.input("x", [8])
    a, c, e, total, line = b.input("a", [8]), b.input("c", [8]), b.input("e", [8]), b.input("total", [8]), b.input("line", [20])
    b.output(b.op("Add", b.op("Add", x, a), b.op("Mul", c, b.op("Add", e, total))))
    results = {a: b.op("Add", b.op("Identity", c), x), c: b.op("Identity", a), e: b.op("Identity", e), total: b.op("Add", total, x)}
    results[line] = b.op("Concat", b.op("Slice", line, b.ints(8), b.ints(20)), x, axis=0)
    b.output(b.op("ReduceMax", line, keepdims=1))
    for result in results.values():
        b.output(result)
    return results


def updated(b):
    """Buffers of a fixed size, written at a position that the caller says."""
    x, at = b.input("x", [1, 4]), b.input("at", [1, 1], TensorProto.INT64)
    buffer = b.input("buffer", [24, 4])
    result = b.op("ScatterND", buffer, at, x)
    b.output(b.op("ReduceSum", result, b.ints(0), keepdims=0))
    other = b.input("other", [24, 4])
    elements = b.op("ScatterElements", other, b.op("Expand", at, b.ints(1, 4)), x, axis=0)
    b.output(b.op("ReduceMax", elements, b.ints(0), keepdims=0))
    return dict([keep(b, buffer, result), keep(b, other, elements)])


def twice(b, rows="seq"):
    """Two that grow, one twice as fast."""
    x = b.input("x", [1, rows, 8])
    first, second = b.input("first", [1, "past", 8]), b.input("second", [1, "more", 8])
    new = b.op("Concat", first, x, axis=1)
    more = b.op("Concat", second, x, b.op("Mul", x, b.scalar(0.5)), axis=1)
    b.output(b.op("ReduceSum", new, b.ints(1), keepdims=0))
    b.output(b.op("ReduceMean", more, b.ints(1), keepdims=0))
    return dict([keep(b, first, new), keep(b, second, more)])


def one_by_one(b):
    """The same, with a run for each element."""
    return twice(b, 1)


def marked(b):
    """A mark behind what each run brings: rewinding could not tell how many there are."""
    x, past = b.input("x", [1, "seq", 8]), b.input("rows", [1, "past", 8])
    new = b.op("Concat", past, x, b.weight(1, 1, 8), axis=1)
    b.output(b.op("ReduceSum", new, b.ints(1), keepdims=0))
    return dict([keep(b, past, new)])


def both(b):
    """One that grows, one that adds up."""
    x = b.input("x", [1, "seq", 8])
    past, total = b.input("rows", [1, "past", 8]), b.input("total", [1, 8])
    new = b.op("Concat", past, x, axis=1)
    added = b.op("Add", total, b.op("ReduceSum", x, b.ints(1), keepdims=0))
    b.output(b.op("Add", b.op("ReduceSum", new, b.ints(1), keepdims=0), added))
    return dict([keep(b, past, new), keep(b, total, added)])


def renamed(b):
    """Exporters give a cache another name on its way out, and read it under both."""
    x, past = b.input("x", [1, "seq", 8]), b.input("rows", [1, "past", 8])
    new = b.op("Concat", past, x, axis=1)
    handed = b.op("Identity", b.op("Identity", new))
    b.output(b.op("ReduceSum", new, b.ints(1), keepdims=0))
    b.output(b.op("ReduceMax", handed, b.ints(1), keepdims=0))
    return dict([keep(b, past, handed)])


def wide(b):
    """Rows of more elements than a GPU copies at once."""
    x, past = b.input("x", [1, "seq", 10000]), b.input("past_rows", [1, "past", 10000])
    new = b.op("Concat", past, x, axis=1)
    b.output(b.op("ReduceMax", new, b.ints(1), keepdims=0))
    return dict([keep(b, past, new)])


def several(b):
    """Sequences side by side, as many as the caller chooses."""
    x = b.input("x", ["batch", "seq", 8])
    past, total = b.input("rows", ["batch", "past", 8]), b.input("total", ["batch", 8])
    new = b.op("Concat", past, x, axis=1)
    added = b.op("Add", total, b.op("ReduceSum", x, b.ints(1), keepdims=0))
    b.output(b.op("Add", b.op("ReduceMax", new, b.ints(1), keepdims=0), added))
    return dict([keep(b, past, new), keep(b, total, added)])


MODELS = [products, standard, grouped, window, halves, capped, sinks, windows, recurrences, scattered, recurrent, moving, updated, twice, one_by_one, marked, both, renamed, embedded, wide, several]


NEWER = {standard: 23, embedded: 23, scattered: 24}  # operator sets


def cases():
    """(name, model, {input: output}, words of the command line)."""
    for number, make in enumerate(MODELS):
        b = Builder(number)
        b.kept = {}
        kept = make(b)
        graph = helper.make_graph(b.nodes, make.__name__, b.inputs, b.outputs, b.weights)
        imports = [helper.make_opsetid("", NEWER.get(make, 18)), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        names = {d.dim_param for i in b.inputs for d in i.type.tensor_type.shape.dim if d.dim_param}
        words = [f"--dim=seq=1..{MOST}"] * ("seq" in names) + [f"--dim=past=0..{ROOM}"] * ("past" in names)
        words += [f"--dim=batch=1..{BATCH + 1}"] * ("batch" in names)
        words += [f"--dim=more=0..{2 * ROOM}"] * ("more" in names) + ["--dim=total=past+seq"] * ("total" in names)
        yield make.__name__, model, kept, words


def decoder():
    """The one of docs/states.md."""
    b = Builder(0)
    b.kept = {}
    kept = grouped(b)
    nodes = [helper.make_node("Identity", [result], ["present" + name[len("past"):]]) for name, result in kept.items()]
    outputs = [b.outputs[0], *(helper.make_tensor_value_info(n.output[0], TensorProto.FLOAT, [1, KEYS, "total", SIZE]) for n in nodes)]
    graph = helper.make_graph([*b.nodes, *nodes], "decoder", b.inputs, outputs, b.weights)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)
