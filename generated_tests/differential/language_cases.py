"""Layers of newer language models, as ONNX Runtime's builder writes them: sinks, caches of a window, experts, states of a fixed size."""
import dataclasses
import itertools

import numpy as np

from case import Case

HEADS, KEYS, SIZE = 4, 2, 16


def attention(name, queries, past, total, attributes, capacity=None, given=("n",), extra=None, batch=1):
    """GroupQueryAttention over a cache of `past` keys, or of `capacity` rows."""
    rows = past if capacity is None else capacity
    angles = np.outer(np.arange(80), 1e4 ** -(np.arange(SIZE // 2) / (SIZE // 2)))
    weights = {"c": np.cos(angles).astype(np.float32), "d": np.sin(angles).astype(np.float32)} | (extra or {})
    inputs = {"q": (batch, queries, (HEADS + 2 * KEYS) * SIZE), "p": (batch, KEYS, rows, SIZE), "r": (batch, KEYS, rows, SIZE),
              "l": np.full(batch, total - 1, np.int32)}
    (weights if "n" in given else inputs)["n"] = np.array(total, np.int32)
    sink = ", , s" if extra else ""
    return Case(name, f"y, t, u = com.microsoft.GroupQueryAttention <num_heads = {HEADS}, kv_num_heads = {KEYS}, do_rotary = 1{attributes}> "
                f"(q, , , p, r, l, n, c, d{', ' if extra else ''}{sink})", inputs, weights, outputs=("y",) if capacity else ("y", "t", "u"))


def attention_cases():
    sinks = {"s": np.array([0.5, -1, 3, 40], np.float32)}
    for name, queries, past, total, attributes in (("step", 1, 5, 6, ""), ("prompt", 6, 0, 6, ""), ("long", 70, 0, 70, ", local_window_size = 9"),
                                                   ("room", 1, 12, 6, ", local_window_size = 3"), ("capped", 3, 0, 3, ", softcap = 5.0")):
        yield attention(f"sink_{name}", queries, past, total, attributes, extra=sinks)
    yield attention("sink_smooth_room", 1, 12, 6, ", smooth_softmax = 1")
    yield attention("both_directions", 6, 0, 6, ", causal = 0")
    # how many tokens there have been, how many rows there are for a window of 6: the first run, before, at and behind the edge
    for capacity, (queries, total) in itertools.product((6, 8, 11), ((4, 4), (1, 5), (1, 7), (1, 9), (1, 12), (1, 30), (3, 9), (5, 13), (14, 14), (14, 40))):
        for given in (("n",), ()):
            if given or (queries, total) in ((1, 12), (5, 13)):
                yield attention(f"window_cache_{capacity}_{queries}_{total}{'' if given else '_open'}", queries, None, total,
                                ", local_window_size = 6, sliding_window_cache = 1", capacity=capacity, given=given)
    yield attention("window_cache_sink", 1, None, 20, ", local_window_size = 6, sliding_window_cache = 1", capacity=8, extra=sinks)
    yield attention("window_cache_batch", 1, None, 20, ", local_window_size = 6, sliding_window_cache = 1", capacity=8, batch=2)


def packed(numbers, bits):
    """Along the last axis, the lowest bits first."""
    per = 8 // bits
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % per)])
    return sum(numbers[..., k::per] << bits * k for k in range(per)).astype(np.uint8)


def expert_cases():
    """`hidden` features, 2 of 5 experts of `inner` features."""
    rng = np.random.default_rng(12)
    tokens, hidden, inner, experts = 7, 32, 48, 5
    gated = ', activation_type = "swiglu", swiglu_fusion = 1, activation_alpha = 1.7, activation_beta = 1.0, swiglu_limit = 1.5'
    for name, attributes, columns in (("relu", "", inner), ("gelu", ', activation_type = "gelu", normalize_routing_weights = 1', inner),
                                      ("silu", ', activation_type = "silu"', inner), ("identity", ', activation_type = "identity"', inner),
                                      ("swiglu", gated + ", normalize_routing_weights = 1", 2 * inner), ("swiglu_all", gated, 2 * inner)):
        weights = {"w": (rng.standard_normal((experts, columns, hidden)) * 0.2).astype(np.float32), "b": (experts, columns),
                   "u": (rng.standard_normal((experts, hidden, inner)) * 0.2).astype(np.float32), "c": (experts, hidden)}
        shape = (1, tokens, hidden) if "swiglu" in name else (tokens, hidden)
        biased = name != "silu"
        yield Case(f"experts_{name}", f"y = com.microsoft.MoE <k = 2{attributes}> (x, r, w, {'b' if biased else ''}, u{', c' if biased else ''})",
                   {"x": shape, "r": (tokens, experts)}, {k: v for k, v in weights.items() if biased or k in "wu"})
    # Of experts with equal scores ONNX Runtime takes the last.
    scores = np.array([[0, 0, 0, 0, 0], [1, 0, 0, 1, 0], [0, 1, 1, 0, 1], [2, 1, 1, 1, 1], [-1, -1, -2, -1, -2]], np.float32)
    weights = {"w": rng.standard_normal((experts, inner, hidden)).astype(np.float32), "u": rng.standard_normal((experts, hidden, inner)).astype(np.float32)}
    for k, normalized in ((1, 0), (3, 1)):
        yield Case(f"experts_equal_{k}", f"y = com.microsoft.MoE <k = {k}, normalize_routing_weights = {normalized}> (x, r, w, , u)", {"x": (5, hidden), "r": scores}, weights)
    for bits, block, zeros, own in itertools.product((2, 4, 8), (0, 16, 32), (False, True), (False, True)):  # the last of blocks of 32 is short
        def few(columns, depth):
            q = rng.integers(0, 2**bits, (experts, columns, depth))
            z = rng.integers(0, 2**bits, (experts, columns, -(-depth // block)) if block else (experts, columns))
            scales = (rng.random(z.shape) + 0.2) * 0.2 / 2 ** (bits - 1)
            return packed(q, bits), scales.astype(np.float32), packed(z, bits)
        w, s, z = few(2 * inner, hidden)
        u, t, n = few(hidden, inner)
        weights = {"w": w, "s": s, "b": (experts, 2 * inner), "u": u, "t": t} | ({"z": z, "n": n} if zeros else {})
        inputs = {"x": (1, tokens, hidden), "r": (tokens, experts)} | ({"o": rng.random((tokens, experts)).astype(np.float32)} if own else {})
        block_size = f", block_size = {block}" if block else ""
        case = Case(f"experts_{bits}_bits{('_blocks' if block == 16 else '_short_blocks') * (block > 0)}{'_zeros' * zeros}{'_own' * own}",
                   f"y = com.microsoft.QMoE <k = 2, expert_weight_bits = {bits}{block_size}{gated}, normalize_routing_weights = {int(zeros)}> "
                   f"(x, r, w, s, b, u, t, , , , , {'z, n' if zeros else ', '}, , {'o' if own else ''})", inputs, weights,
                   # ONNX Runtime rounds what meets blocks of bytes to bytes
                   bar=2e-2 if bits == 8 and block else 2e-5)
        yield case
        if bits == 4 and block:
            yield dataclasses.replace(case, name=f"{case.name}_level", body=case.body.replace("k = 2", "k = 2, accuracy_level = 4"), bar=1e-3 if block == 16 else 2e-2, only_in_c=True)  # ONNX Runtime computes short blocks in floats
        if bits != 2 and not own:
            yield dataclasses.replace(case, name=f"{case.name}_bytes", words=("--activations", "int8"), bar=1e-3 if bits == 8 and block == 16 else 2e-2, only_in_c=True)


def state_cases():
    """Recurrent attention, causal convolution, and what stands around them."""
    tokens, size, width = 6, 8, 16
    for rule, (queries, keys, heads), by_row, steps in itertools.chain(
            itertools.product(("linear", "gated", "delta", "gated_delta"), ((2, 2, 2),), (False,), (tokens,)),
            (("gated_delta", (2, 4, 4), False, tokens), ("gated_delta", (4, 2, 2), True, tokens), ("gated_delta", (2, 2, 2), False, 1), ("gated", (2, 2, 2), True, 1))):
        inputs = {"q": (2, steps, queries * size), "k": (2, steps, keys * size), "v": (2, steps, heads * width), "s": (2, heads, size, width)}
        names = ["", ""]
        if "gated" in rule:
            inputs["g"] = -np.random.default_rng(3).random((2, steps, heads * size if by_row else heads)).astype(np.float32)
            names[0] = "g"
        if "delta" in rule:
            inputs["e"] = np.random.default_rng(4).random((2, steps, heads)).astype(np.float32)
            names[1] = "e"
        yield Case(f"recurrent_{rule}_{queries}_{heads}{'_rows' * by_row}_{steps}", f'y, t = com.microsoft.LinearAttention <q_num_heads = {queries}, kv_num_heads = {heads}, '
                   f'update_rule = "{rule}"> (q, k, v, s, {", ".join(names)})', inputs, outputs=("y", "t"))
    half = {name: np.random.default_rng(5).standard_normal((1, 3, 16)).astype(np.float16) for name in "qkv"}
    yield Case("recurrent_halves_from_nothing", "y, t = com.microsoft.LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = \"linear\"> (q, k, v)", half, outputs=("y", "t"), bar=1e-3)
    for name, attributes, steps, state in (("plain", "", 7, True), ("short", ', activation = "silu"', 1, True), ("two", ', activation = "swish"', 2, True),
                                           ("first", "", 5, False), ("dilated", ", dilation = 2", 4, True)):
        before = 3 * (2 if "dilation" in attributes else 1)
        yield Case(f"causal_conv_{name}", f"y, t = com.microsoft.CausalConvWithState <ndim = 1{attributes}> (x, w, b{', p' if state else ''})",
                   {"x": (2, 6, steps)} | ({"p": (2, 6, before)} if state else {}), {"w": (6, 1, 4), "b": (6,)}, outputs=("y", "t"))
    yield Case("causal_conv_last", "y, t = com.microsoft.CausalConvWithState <channels_last = 1> (x, w, , p)", {"x": (2, 5, 6), "p": (2, 3, 6)},
               {"w": (6, 1, 4)}, outputs=("y", "t"))
    yield Case("recurrent_gate", "y, z = com.microsoft.LinearAttentionGate (a, b, s, c)", {"a": (2, 5, 4), "c": (2, 5, 4)}, {"b": (4,), "s": (4,)}, outputs=("y", "z"))
    for activation in ("silu", "sigmoid"):
        yield Case(f"gated_norm_{activation}", f'y = com.microsoft.GatedRMSNorm <activation = "{activation}"> (x, s, g)', {"x": (2, 5, 24), "g": (2, 5, 24)}, {"s": (8,)})
    yield Case("gated_add", "y = com.microsoft.GatedAdd (x, z, g)", {"x": (2, 5, 6), "z": (2, 5, 6), "g": (2, 5, 1)})
    angles = np.outer(np.arange(9), 0.7 ** np.arange(6))
    tables = {"c": np.cos(angles).astype(np.float32), "d": np.sin(angles).astype(np.float32)}
    positions = np.random.default_rng(5).integers(0, 9, (3, 2, 5))
    for layout in (0, 1):
        yield Case(f"sections_{layout}", f"y = com.microsoft.MRotaryEmbedding <mrope_section = [2, 2, 2], mrope_layout = {layout}, num_heads = 2, rotary_embedding_dim = 12> "
                   "(x, p, c, d)", {"x": (2, 5, 32), "p": positions}, tables)


def cases():
    return [*attention_cases(), *expert_cases(), *state_cases()]
