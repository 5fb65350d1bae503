"""Models of com.microsoft: what ONNX Runtime's optimiser, quantisers and builders of language models write."""
import numpy as np

from case import Case


def weight_cases():
    """Weights of few bits with scales of blocks."""
    rng = np.random.default_rng(9)
    for bits, block, columns, depth, zeros in ((4, 32, 24, 96, True), (4, 16, 17, 50, True), (8, 32, 24, 64, False),
                                               (8, 16, 5, 40, True), (2, 32, 16, 64, True), (4, 64, 40, 64, False)):
        blocks = -(-depth // block)
        weights = {"w": rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
                   "s": (rng.random(columns * blocks) * 0.1 + 0.01).astype(np.float32)}
        if zeros:
            weights["z"] = rng.integers(0, 256, columns * -(-blocks * bits // 8)).astype(np.uint8)
        yield Case(f"nbits_{bits}_{block}_{columns}x{depth}", f"y = com.microsoft.MatMulNBits <K = {depth}, N = {columns}, bits = {bits}, "
                   f"block_size = {block}> (x, w, s{', z' if zeros else ''})", {"x": (2, 3, depth)}, weights)
    for kind, block, columns, depth in ((0, 16, 24, 96), (1, 64, 17, 50), (1, 32, 1, 33)):  # blocks go on across columns
        weights = {"w": rng.integers(0, 256, -(-columns * depth // 2)).astype(np.uint8), "s": (rng.random(-(-columns * depth // block)) + 0.1).astype(np.float32)}
        yield Case(f"bnb4_{kind}_{block}_{columns}x{depth}", f"y = com.microsoft.MatMulBnb4 <K = {depth}, N = {columns}, block_size = {block}, quant_type = {kind}> (x, w, s)",
                   {"x": (2, 3, depth)}, weights)
    for bits in (4, 8):
        table = {"d": rng.integers(0, 256, (20, 64 * bits // 8)).astype(np.uint8), "s": (rng.random((20, 2)) * 0.1).astype(np.float32),
                 "z": rng.integers(0, 256, (20, 2 * bits // 8)).astype(np.uint8)}
        yield Case(f"gather_blocks_{bits}", f"y = com.microsoft.GatherBlockQuantized <gather_axis = 0, quantize_axis = 1, "
                   f"block_size = 32, bits = {bits}> (d, i, s, z)", {"i": rng.integers(0, 20, (2, 3))}, table)


def language_cases():
    """Attention over a cache of keys and rotated positions, as builders of language models write them."""
    heads, kv, size = 4, 2, 16
    angles = np.outer(np.arange(20), 1e4 ** -(np.arange(size // 2) / (size // 2)))
    caches = {"c": np.cos(angles).astype(np.float32), "d": np.sin(angles).astype(np.float32)}
    common = f"num_heads = {heads}, kv_num_heads = {kv}"
    for name, s, past, total, attributes, in (("step", 1, 5, 6, ""), ("prompt", 6, 0, 6, ""), ("rotated_step", 1, 5, 6, "do_rotary = 1"),
                                              ("rotated_prompt", 6, 0, 6, "do_rotary = 1, rotary_interleaved = 1"),
                                              ("room", 1, 12, 6, "do_rotary = 1"), ("room_prompt", 5, 12, 5, "do_rotary = 1"),
                                              ("window", 6, 0, 6, "local_window_size = 3"), ("softcap", 1, 5, 6, "softcap = 5.0"),
                                              ("smooth", 3, 0, 3, "smooth_softmax = 1")):
        inputs = {"q": (1, s, heads * size), "k": (1, s, kv * size), "v": (1, s, kv * size), "p": (1, kv, past, size), "r": (1, kv, past, size),
                  "l": np.array([total - 1], np.int32)}
        yield Case(f"group_query_{name}", f"y, t, u = com.microsoft.GroupQueryAttention <{', '.join(filter(None, (common, attributes)))}> "
                   f"(q, k, v, p, r, l, n{', c, d' if 'rotary' in attributes else ''})", inputs,
                   {"n": np.int32(total)} | (caches if "rotary" in attributes else {}), outputs=("y", "t", "u"))
    packed = {"q": (1, 1, (heads + 2 * kv) * size), "p": (1, kv, 5, size), "r": (1, kv, 5, size), "l": np.array([5], np.int32)}
    yield Case("group_query_packed", f"y, t, u = com.microsoft.GroupQueryAttention <{common}, do_rotary = 1> (q, , , p, r, l, n, c, d)", packed,
               caches | {"n": np.int32(6)}, outputs=("y", "t", "u"))
    for name, total in (("given", {"n": np.int32(5)}), ("open", {})):  # the first position of a prompt counts
        inputs = {"q": (2, 5, heads * size), "k": (2, 5, kv * size), "v": (2, 5, kv * size), "p": (2, kv, 12, size), "r": (2, kv, 12, size),
                  "l": np.array([4, 4], np.int32), "o": np.array([[3, 4, 5, 6, 7], [9, 8, 7, 6, 5]])} | ({} if total else {"n": np.array([5], np.int32)})
        yield Case(f"group_query_positions_{name}", f"y, t, u = com.microsoft.GroupQueryAttention <{common}, do_rotary = 1> (q, k, v, p, r, l, n, c, d, o)",
                   inputs, caches | total, outputs=("y", "t", "u"))
    positions = np.tile(np.arange(3, 8), (2, 1))
    yield Case("ms_rotary", "y = com.microsoft.RotaryEmbedding (x, p, c, d)", {"x": (2, heads, 5, size), "p": positions}, caches)
    yield Case("ms_rotary_first", "y = com.microsoft.RotaryEmbedding <interleaved = 1> (x, p, c, d)",
               {"x": (2, 5, heads * size), "p": np.array([3])}, caches)


def layout_cases():
    """Channels last and old forms, as far as ONNX Runtime has them on processors."""
    rng = np.random.default_rng(10)
    yield Case("nhwc_max_pool", "y = com.microsoft.NhwcMaxPool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]> (x)",
               {"x": rng.integers(0, 256, (1, 9, 7, 8)).astype(np.uint8)})
    yield Case("nhwc_qconv", "y = com.microsoft.QLinearConv <kernel_shape = [3,3], pads = [1,1,1,1], channels_last = 1> (x, s, z, w, t, n, u, v, b)",
               {"x": rng.integers(0, 256, (1, 7, 7, 4)).astype(np.uint8)},
               {"s": np.float32(0.02), "z": np.uint8(120), "w": rng.integers(-64, 64, (6, 4, 3, 3)).astype(np.int8), "t": np.float32(0.02),
                "n": np.int8(0), "u": np.float32(0.5), "v": np.uint8(100), "b": rng.integers(-100, 100, 6).astype(np.int32)})
    yield Case("ms_trilu", "y = com.microsoft.Trilu <upper = 0> (x)", {"x": (4, 7)})
    yield Case("ms_pad", "y = com.microsoft.Pad (x, p)", {"x": (4, 7)}, {"p": np.array([1, 0, 0, 2])})
    yield Case("ms_expand_dims", "y = com.microsoft.ExpandDims (x, a)", {"x": (4, 7)}, {"a": np.int32(1)})
    yield Case("ms_grid_sample", "y = com.microsoft.GridSample (x, g)", {"x": (1, 2, 4, 7), "g": (1, 3, 3, 2)})
    yield Case("ms_distances", 'y = com.microsoft.CDist <metric = "euclidean"> (a, b)', {"a": (4, 8), "b": (5, 8)}, bar=1e-3)
    yield Case("ms_inverse", "y = com.microsoft.Inverse (x)", {"x": (3, 5, 5)}, bar=1e-4)
    # Weights of seven bits: without VNNI, ONNX Runtime's own products here saturate in 16 bits.
    lstm = {"w": rng.integers(-64, 64, (2, 5, 32)).astype(np.int8), "r": rng.integers(-64, 64, (2, 8, 32)).astype(np.int8), "b": (2, 64),
            "s": (rng.random((2, 32)) * 0.02).astype(np.float32), "z": np.zeros((2, 32), np.int8)}
    yield Case("ms_quantized_lstm", 'y, h, c = com.microsoft.DynamicQuantizeLSTM <hidden_size = 8, direction = "bidirectional"> '
               "(x, w, r, b, , , , , s, z, s, z)", {"x": (7, 2, 5)}, lstm, outputs=("y", "h", "c"), bar=2e-2)


def fused_cases():
    """Operators that ONNX Runtime's optimiser for transformers writes."""
    b, s, h, heads = 2, 5, 12, 3
    rng = np.random.default_rng(8)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], np.int32)
    packed, weights = {"x": (b, s, h)}, {"w": (h, 3 * h), "c": (3 * h,)}
    attention = "com.microsoft.Attention <num_heads = 3"
    yield Case("ms_attention", f"y = {attention}> (x, w, c)", packed, weights)
    yield Case("ms_attention_causal", f"y = {attention}, unidirectional = 1, scale = 0.3> (x, w, c)", packed, weights)
    yield Case("ms_attention_mask", f"y = {attention}> (x, w, c, m)", packed, weights | {"m": mask})
    yield Case("ms_attention_lengths", f"y = {attention}> (x, w, c, m)", packed, weights | {"m": np.array([3, 5], np.int32)})
    yield Case("ms_attention_places", f"y = {attention}> (x, w, c, m)", packed, weights | {"m": np.array([4, 5, 1, 0], np.int32)})
    yield Case("ms_attention_past", f"y, z = {attention}, unidirectional = 1> (x, w, c, , p)",
               packed | {"p": (2, b, heads, 4, h // heads)}, weights, outputs=("y", "z"))
    yield Case("ms_attention_bias", f"y = {attention}> (x, w, c, , , a)", packed | {"a": (b, heads, s, s)}, weights)
    streams = {"q": (b, s, h), "k": (b, 7, h), "v": (b, 7, h)}
    multi = "com.microsoft.MultiHeadAttention <num_heads = 3"
    yield Case("ms_multi_head", f"y = {multi}> (q, k, v, c)", streams, {"c": (3 * h,)})
    yield Case("ms_multi_head_mask", f"y = {multi}> (q, k, v, , m)", streams, {"m": np.array([[1] * 6 + [0], [1] * 4 + [0] * 3], np.int32)})
    yield Case("ms_multi_head_one_query", f"y = {multi}, unidirectional = 1> (q, k, v)", streams | {"q": (b, 1, h)})
    yield Case("ms_multi_head_fewer_keys", f"y = {multi}, unidirectional = 1> (q, k, v)", {"q": (b, s, h), "k": (b, 3, h), "v": (b, 3, h)})
    past = {"p": (b, heads, 3, h // heads), "r": (b, heads, 3, h // heads)}
    yield Case("ms_multi_head_past", f"y, z, t = {multi}> (q, k, v, c, , , p, r)", {"q": (b, s, h), "k": (b, s, h), "v": (b, s, h)} | past,
               {"c": (3 * h,)}, outputs=("y", "z", "t"))
    tables = {"w": (20, h), "p": (9, h), "t": (2, h), "g": (h,), "c": (h,)}
    ids = {"i": rng.integers(0, 20, (b, s)).astype(np.int32), "k": rng.integers(0, 2, (b, s)).astype(np.int32)}
    yield Case("ms_embedding", "y, n, e = com.microsoft.EmbedLayerNormalization <epsilon = 0.001> (i, k, w, p, t, g, c, m)", ids,
               tables | {"m": mask}, outputs=("y", "n", "e"))
    yield Case("ms_matmul_batches", "y = com.microsoft.FusedMatMul <transBatchA = 1, transB = 1, alpha = 0.5> (a, b)",
               {"a": (5, 2, 3, 4), "b": (2, 3, 6, 4)})
    packed = {"x": rng.integers(0, 256, (b, s, h)).astype(np.uint8)}
    weights = {"w": rng.integers(-128, 128, (h, 3 * h)).astype(np.int8), "c": (3 * h,), "t": np.float32(0.02),
               "u": np.float32(0.02), "z": np.uint8(120), "n": np.int8(0), "m": mask}
    yield Case("ms_quantized_attention", "y = com.microsoft.QAttention <num_heads = 3> (x, w, c, t, u, m, z, n)", packed, weights)
    yield Case("ms_quantized_attention_past",
               "y, k = com.microsoft.QAttention <num_heads = 3, unidirectional = 1> (x, w, c, t, u, , z, n, p)",
               packed | {"p": (2, b, heads, 4, h // heads)}, weights, outputs=("y", "k"))
    yield Case("ms_fused_gemm", 'y = com.microsoft.FusedGemm <activation = "LeakyRelu", activation_alpha = 0.1, transB = 1> (x, w, c)',
               {"x": (5, 9)}, {"w": (7, 9), "c": (7,)})
    yield Case("ms_quantized_where", "q = QuantizeLinear (x, s, z)\n r = QuantizeLinear (u, t, n)\n"
               " y = com.microsoft.QLinearWhere (k, q, s, z, r, t, n, v, w)", {"x": (4, 6), "u": (4, 6), "k": rng.random((4, 6)) < 0.5},
               {"s": np.float32(0.02), "z": np.uint8(120), "t": np.float32(0.03), "n": np.uint8(130), "v": np.float32(0.025), "w": np.uint8(128)})


def cases():
    """All of them."""
    return [case for family in (fused_cases, weight_cases, language_cases, layout_cases) for case in family()]
