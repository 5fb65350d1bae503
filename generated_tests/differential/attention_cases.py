"""Attention that is long enough for several tiles: masks that leave whole tiles out, heads side by side, and tensors of halves."""
import numpy as np

from case import Case


def cases():
    heads, kv, size = 4, 2, 16
    for name, s, past, total, attributes in (("long", 140, 0, 140, ""), ("long_window", 140, 0, 140, ", local_window_size = 30"),
                                             ("long_room", 70, 300, 130, ""), ("long_step", 1, 300, 150, ""),
                                             ("long_step_window", 1, 300, 260, ", local_window_size = 40")):
        streams = {"q": (1, s, heads * size), "k": (1, s, kv * size), "v": (1, s, kv * size), "p": (1, kv, past, size), "r": (1, kv, past, size),
                   "l": np.array([total - 1], np.int32)}
        yield Case(f"group_query_{name}", f"y, t, u = com.microsoft.GroupQueryAttention <num_heads = {heads}, kv_num_heads = {kv}{attributes}> "
                   "(q, k, v, p, r, l, n)", streams, {"n": np.int32(total)}, outputs=("y", "t", "u"))
    yield from side_by_side()
    rng = np.random.default_rng(11)

    def halves(*shape):
        return rng.standard_normal(shape).astype(np.float16)

    chain = "a = MatMul (q, k)\n b = Mul (a, c)\n d = Add (b, m)\n e = Softmax <axis = -1> (d)\n f = MatMul (e, v)\n"
    for rows, keys, width in ((70, 70, 32), (37, 90, 40), (2, 65, 24)):
        mask = np.where(np.arange(keys) % 7 == 3, -np.inf, 0).astype(np.float16).reshape(1, 1, 1, keys)
        yield Case(f"attention_halves_{rows}x{keys}", chain + " y = Transpose <perm = [0,2,1,3]> (f)",
                   {"q": halves(1, 2, rows, width), "k": halves(1, 2, width, keys), "v": halves(1, 2, keys, width)},
                   {"c": np.float16(width**-0.5), "m": mask}, bar=2e-3)


def side_by_side():
    """Heads that lie beside each other, share keys, and see those in front of them."""
    for name, rows, keys, heads, kv, attributes in (("all", 50, 50, 6, 2, ""), ("causal", 50, 50, 6, 3, ", is_causal = 1"), ("more_keys", 37, 90, 4, 4, ", is_causal = 1"),
                                                    ("more_rows", 90, 37, 4, 1, ", is_causal = 1"), ("cap", 50, 50, 4, 2, ", is_causal = 1, softcap = 3.0")):
        streams = {"q": (2, rows, heads * 16), "k": (2, keys, kv * 16), "v": (2, keys, kv * 24)}
        yield Case(f"side_by_side_{name}", f"y = Attention <q_num_heads = {heads}, kv_num_heads = {kv}{attributes}> (q, k, v)", streams, opset=23)
        mask = {"m": np.arange(rows * keys).reshape(rows, keys) % 5 != 2}
        yield Case(f"side_by_side_{name}_mask", f"y = Attention <q_num_heads = {heads}, kv_num_heads = {kv}{attributes}> (q, k, v, m)", streams | mask, opset=23)
    streams = {"q": (2, 45, 48), "k": (2, 45, 48), "v": (2, 45, 48)}
    yield Case("side_by_side_ms", "y = com.microsoft.MultiHeadAttention <num_heads = 3, unidirectional = 1> (q, k, v)", streams)
