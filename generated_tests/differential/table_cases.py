"""Rows of the operator table that no other case has, on odd sizes: tails of vectors, negative axes, nothing along an axis."""
import numpy as np

from case import Case, ints

F32 = np.float32
ODD, EMPTY = (3, 5, 7), (3, 0, 7)  # 105 elements: no vector length divides them


def between(low, high, shape=ODD, seed=3):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(F32)


def elementwise_cases():
    unit, wide = between(-0.99, 0.99), between(-4, 4)
    above = between(1.01, 5)
    for op, x in (("Acos", unit), ("Asin", unit), ("Atanh", unit), ("Acosh", above), ("Ceil", wide), ("Cosh", wide), ("Sign", np.round(wide)), ("Tan", unit)):
        yield Case(f"row_{op.lower()}", f"y = {op} (x)", {"x": x})
        yield Case(f"row_{op.lower()}_of_nothing", f"e = {op} (x)\n y = Concat <axis = 1> (e, z)", {"x": EMPTY, "z": (3, 2, 7)})
    yield Case("row_is_inf", "y = IsInf <detect_negative = 0> (x)", {"x": np.where(wide > 2, np.inf, np.where(wide < -2, -np.inf, wide)).astype(F32)})
    for op in ("Celu <alpha = 0.7>", "LeakyRelu <alpha = 0.2>", "ThresholdedRelu <alpha = 0.8>", "Shrink <lambd = 0.9, bias = 0.3>", "HardSigmoid <alpha = 0.3>"):
        yield Case(f"row_{op.split()[0].lower()}", f"y = {op} (x)", {"x": ODD})
    yield Case("row_prelu", "y = PRelu (x, s)", {"x": ODD, "s": (5, 1)})
    yield Case("row_sum", "y = Sum (a, b, c)", {"a": ODD, "b": (5, 1), "c": (1,)})
    yield Case("row_mean", "y = Mean (a, b)", {"a": ODD, "b": (7,)})
    rng = np.random.default_rng(4)
    small = {"a": rng.integers(0, 250, ODD).astype(np.uint8), "b": rng.integers(0, 7, (5, 1)).astype(np.uint8)}
    for op in ('BitShift <direction = "LEFT">', 'BitShift <direction = "RIGHT">', "BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield Case(f"row_{op.split()[0].lower()}{'_right' if 'RIGHT' in op else ''}", f"y = {op} (a, b)", small)
    yield Case("row_bitwise_not", "y = BitwiseNot (a)", {"a": small["a"]})
    whole = {"a": np.round(wide), "b": np.round(between(-4, 4, (5, 7), 5))}
    for op in ("Equal", "GreaterOrEqual", "LessOrEqual"):
        yield Case(f"row_{op.lower()}", f"y = {op} (a, b)", whole)
    yield Case("row_xor", "y = Xor (a, b)", {"a": wide > 0, "b": np.round(wide) > 0})
    yield Case("row_cast_like", "y = CastLike (x, t)", {"x": wide * 30, "t": np.int32([1])})


def corner_number_cases():
    """Functions of vectors where their formulas change, end, or have no value; remainders of multiples and what is next to them."""
    near_one = [1, 0.5, 1.0000001, 0.99999994, 0.50000006]
    corners = F32([0, np.nan, np.inf, 1e-45, 1e-40, 1e9, 1.0000001e9, 3e38, 89.2, 89.5, 12000, 12001, 1e6, *near_one])
    corners = np.concatenate([corners, -corners, np.linspace(-1.5, 1.5, 61, dtype=F32), np.linspace(-90, 90, 45, dtype=F32)])
    for op in ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan"):
        yield Case(f"row_{op.lower()}_of_corners", f"y = {op} (x)", {"x": corners}, nothing=True)
        yield Case(f"row_{op.lower()}_of_zeros", f"t = {op} (x)\n y = Reciprocal (t)", {"x": np.tile(F32([0, -0.0, 0]), 7)}, nothing=True)
    y = np.exp2(np.random.default_rng(7).uniform(-140, 96, (1, 301))).astype(F32) * between(-1, 1, (1, 301))
    multiples = (np.round(np.exp2(np.linspace(0, 31, 24))).astype(np.float64)[:, None] * y).astype(F32)
    x = np.concatenate([multiples, np.nextafter(multiples, F32(0)), np.nextafter(multiples, F32(np.inf)), np.broadcast_to(corners[:24, None], (24, 301))])
    yield Case("row_fmod", "r = Mod <fmod = 1> (x, z)\n y = Div (r, z)", {"x": x, "z": np.abs(y)}, bar=1e-9, nothing=True)
    yield Case("row_fmod_of_corners", "y = Mod <fmod = 1> (x, z)", {"x": corners[:, None], "z": corners}, bar=1e-9, nothing=True)
    yield Case("row_fmod_of_zeros", "t = Mod <fmod = 1> (x, z)\n y = Reciprocal (t)", {"x": F32([0, -0.0, 4, -4, 3]), "z": F32([[2], [-2]])}, nothing=True)


def along_axis_cases():
    for op in ("ReduceL1", "ReduceLogSum", "ReduceL2", "ReduceSumSquare"):
        yield Case(f"row_{op.lower()}", f"y = {op} <keepdims = 0> (x, a)", {"x": between(0.1, 3)}, {"a": ints(-2)})
    for op in ("ArgMin", "ArgMax"):
        yield Case(f"row_{op.lower()}", f"y = {op} <axis = -2, select_last_index = 1> (x)", {"x": np.round(between(-2, 2))})
    yield Case("row_lp_normalization", "y = LpNormalization <axis = -2, p = 1> (x)", {"x": ODD})
    yield Case("row_hardmax", "y = Hardmax <axis = -2> (x)", {"x": ODD})
    yield Case("row_mean_variance", "y = MeanVarianceNormalization <axes = [0, -1]> (x)", {"x": (2, 3, 5, 7)})
    yield Case("row_group_normalization", "y = GroupNormalization <num_groups = 3> (x, s, b)", {"x": (2, 9, 5, 7)}, {"s": (9,), "b": (9,)})
    target = np.random.default_rng(6).integers(0, 5, (3, 7))
    yield Case("row_nll", "y = NegativeLogLikelihoodLoss (x, t, w)", {"x": ODD, "t": target}, {"w": between(0.5, 2, (5,))})
    yield Case("row_cross_entropy", "y, p = SoftmaxCrossEntropyLoss <reduction = \"none\", ignore_index = 2> (x, t)", {"x": ODD, "t": target}, outputs=("y", "p"))


def movement_cases():
    rng = np.random.default_rng(7)
    yield Case("row_flatten", "y = Flatten <axis = -1> (x)", {"x": ODD})
    yield Case("row_flatten_of_nothing", "e = Flatten <axis = 2> (x)\n y = Concat <axis = 0> (e, z)", {"x": EMPTY, "z": (2, 7)})
    yield Case("row_space_to_depth", "y = SpaceToDepth <blocksize = 3> (x)", {"x": (2, 5, 9, 15)})
    yield Case("row_reverse_sequence", "y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, n)", {"x": (3, 5, 7), "n": ints(5, 1, 3)})
    yield Case("row_reverse_sequence_of_one", "y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, n)", {"x": (3, 1, 7), "n": ints(1, 0, 1)})
    yield Case("row_scatter_elements", 'y = ScatterElements <axis = -2, reduction = "add"> (x, i, u)', {"x": ODD, "i": rng.integers(-5, 5, (3, 4, 7)), "u": (3, 4, 7)})
    yield Case("row_constant_of_shape", "s = Shape (x)\n c = ConstantOfShape (s)\n y = Add (c, x)", {"x": ODD})
    yield Case("row_eye_like", "y = EyeLike <k = -1> (x)", {"x": (5, 7)})
    yield Case("row_one_hot", "y = OneHot <axis = -2> (i, n, v)", {"i": rng.integers(-9, 9, (3, 7))}, {"n": ints(9), "v": F32([-1, 2])})
    yield Case("row_det", "y = Det (x)", {"x": (3, 5, 5)})
    yield Case("row_dft", "y = DFT <onesided = 1> (x, , a)", {"x": (3, 15, 1)}, {"a": np.int64(-2)})
    # Powers of two: ONNX Runtime is off by 3e-5 at other lengths, where this transform is off by 1e-7.
    yield Case("row_dft_long", "y = DFT <onesided = 1> (x, , a)", {"x": (3, 512, 1)}, {"a": np.int64(-2)})
    yield Case("row_dft_long_inverse", "y = DFT <inverse = 1> (x, , a)", {"x": (1024, 2, 2)}, {"a": np.int64(0)})
    yield Case("row_stft_without_parts", "y = STFT (x, s, w)", {"x": (2, 61)}, {"s": ints(7), "w": (15,)})
    yield Case("row_stft_long_without_parts", "y = STFT <onesided = 0> (x, s, , n)", {"x": (1, 300)}, {"s": ints(50), "n": np.int64(128)})
    yield Case("row_stft", "y = STFT (x, s, w)", {"x": (2, 61, 1)}, {"s": ints(7), "w": (15,)})
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield Case(f"row_{op.lower()}", f"w = {op} <periodic = 0> (n)\n y = Mul (w, x)", {"x": (13,)}, {"n": np.int64(13)})
        yield Case(f"row_{op.lower()}_of_one", f"w = {op} <periodic = 0> (n)\n y = Mul (w, x)", {"x": (1,)}, {"n": np.int64(1)}, nothing=True)
    yield Case("row_mel_weights", "w = MelWeightMatrix (a, b, c, d, e)\n y = MatMul (x, w)", {"x": (3, 33)}, {
        "a": np.int64(11), "b": np.int64(64), "c": np.int64(8000), "d": F32(20), "e": F32(4000)})
    yield Case("row_affine_grid", "y = AffineGrid <align_corners = 1> (t, s)", {"t": (2, 2, 3)}, {"s": ints(2, 3, 5, 7)})
    yield Case("row_max_unpool", "m, i = MaxPool <kernel_shape = [2,2], strides = [2,2]> (x)\n y = MaxUnpool <kernel_shape = [2,2], strides = [2,2]> (m, i)", {"x": (1, 3, 10, 14)})
    yield Case("row_max_roi_pool", "y = MaxRoiPool <pooled_shape = [2,3], spatial_scale = 0.5> (x, r)", {"x": (2, 3, 9, 11), "r": F32([[0, 0, 0, 9, 9], [1, 3, 2, 18, 13]])})
    yield Case("row_roi_align", 'y = RoiAlign <output_height = 3, output_width = 5, sampling_ratio = 2> (x, r, b)', {"x": (2, 3, 9, 11), "r": F32([[0.3, 1, 7, 8], [1, 3, 9, 8.5]]), "b": ints(1, 0)})
    yield Case("row_global_lp_pool", "y = GlobalLpPool <p = 3> (x)", {"x": (2, 3, 5, 7)})


def other_cases():
    yield Case("row_dropout", "y, m = Dropout (x)", {"x": ODD}, outputs=("y", "m"))
    yield Case("row_binarizer", "y = ai.onnx.ml.Binarizer <threshold = 0.3> (x)", {"x": (3, 7)})
    yield Case("row_array_feature_extractor", "y = ai.onnx.ml.ArrayFeatureExtractor (x, i)", {"x": (3, 7)}, {"i": ints(6, 0, 3)})
    yield Case("row_tf_idf", "y = TfIdfVectorizer <mode = \"TFIDF\", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1, ngram_counts = [0, 3], "
               "ngram_indexes = [0, 1, 2, 3, 4], pool_int64s = [1, 2, 3, 1, 3, 2, 2], weights = [0.5, 1, 2, 3, 4]> (x)", {"x": ints(1, 3, 2, 2, 1, 3, 3, 2, 2, 2, 1)})
    yield Case("row_deform_conv", "y = DeformConv <pads = [1,1,1,1], offset_group = 2> (x, w, o, b, m)", {"x": (1, 4, 7, 9), "o": (1, 36, 7, 9), "m": (1, 18, 7, 9)},
               {"w": (5, 4, 3, 3), "b": (5,)})


def overlap_cases():
    """Blocks that overlap, lie apart or beyond the image: Col2Im."""
    for image, block, strides, dilations, pads in (((9, 21), (3, 3), (1, 1), (1, 1), (0, 0, 0, 0)), ((9, 21), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
                                                   ((12, 37), (2, 5), (2, 1), (1, 2), (0, 3, 1, 2)), ((33, 33), (3, 3), (2, 2), (1, 1), (0, 0, 0, 0)),
                                                   ((8, 8), (2, 2), (2, 2), (1, 1), (0, 0, 0, 0)), ((45, 260), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
                                                   ((7, 19), (3, 4), (3, 3), (2, 2), (2, 1, 0, 2)), ((40,), (5,), (2,), (1,), (1, 2)), ((4, 5, 18), (2, 2, 3), (1, 2, 1), (1, 1, 1), (0, 1, 1, 0, 0, 1))):
        rank = len(image)
        places = [(image[d] + pads[d] + pads[rank + d] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1 for d in range(rank)]
        name = f"row_col2im_{'x'.join(map(str, image))}_by_{'x'.join(map(str, block + strides + pads))}"
        attributes = f"strides = {list(strides)}, dilations = {list(dilations)}, pads = {list(pads)}"
        x, sizes = {"x": (2, 3 * int(np.prod(block)), int(np.prod(places)))}, {"i": ints(*image), "b": ints(*block)}
        yield Case(name, f"y = Col2Im <{attributes}> (x, i, b)", x, sizes)
        yield Case(f"{name}_used", f"c = Col2Im <{attributes}> (x, i, b)\n y = Sigmoid (c)", x, sizes)


def microsoft_cases():
    for op, inputs in (("BiasGelu (x, b)", {"x": ODD, "b": (7,)}), ("FastGelu (x, b)", {"x": ODD, "b": (7,)}), ("QuickGelu <alpha = 1.5> (x)", {"x": ODD})):
        yield Case(f"row_{op.split()[0].lower()}", f"y = com.microsoft.{op}", inputs)
    norm = {"x": ODD, "s": ODD}, {"g": (7,), "b": (7,)}
    yield Case("row_skip_layer_norm", "y = com.microsoft.SkipLayerNormalization (x, s, g, b)", *norm)
    yield Case("row_skip_rms_norm", "y = com.microsoft.SkipSimplifiedLayerNormalization (x, s, g)", norm[0], {"g": (7,)})
    yield Case("row_fused_conv", 'y = com.microsoft.FusedConv <activation = "Relu", pads = [1,1,1,1]> (x, w, b)', {"x": (1, 3, 9, 7)}, {"w": (5, 3, 3, 3), "b": (5,)})
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 255, ODD).astype(np.uint8), rng.integers(0, 255, (5, 7)).astype(np.uint8)
    # of no common measure: a tie is decided by the last bit
    scales = {"s": F32(0.0317), "t": F32(0.0523), "u": F32(0.0719), "z": np.uint8(120), "v": np.uint8(131)}
    for op in ("QLinearAdd", "QLinearMul"):
        yield Case(f"row_{op.lower()}", f"y = com.microsoft.{op} (a, s, z, b, t, v, u, z)", {"a": a, "b": b}, scales)
    for op in ("QLinearLeakyRelu <alpha = 0.2>", "QLinearSigmoid"):
        yield Case(f"row_{op.split()[0].lower()}", f"y = com.microsoft.{op} (a, s, z, u, v)", {"a": a}, {k: scales[k] for k in "szuv"})
    picture = {"a": rng.integers(0, 255, (1, 3, 9, 7)).astype(np.uint8)}
    yield Case("row_qlinear_average_pool", "y = com.microsoft.QLinearAveragePool <kernel_shape = [3,2]> (a, s, z, u, v)", picture, {k: scales[k] for k in "szuv"})
    yield Case("row_qlinear_global_average_pool", "y = com.microsoft.QLinearGlobalAveragePool (a, s, z, u, v)", picture, {k: scales[k] for k in "szuv"})
    yield Case("row_matmul_integer_to_float", "y = com.microsoft.MatMulIntegerToFloat (a, w, s, t, z, v, c)", {"a": a}, {k: scales[k] for k in "stzv"} | {
        "w": rng.integers(0, 255, (7, 9)).astype(np.uint8), "c": (9,)})
    yield Case("row_qgemm", "y = com.microsoft.QGemm (a, s, z, w, t, v, c, u, z)", {"a": a[0]}, scales | {"w": rng.integers(0, 255, (7, 9)).astype(np.uint8), "c": rng.integers(-99, 99, 9).astype(np.int32)})
    yield Case("row_qlinear_softmax", "y = com.microsoft.QLinearSoftmax <axis = -1, opset = 13> (a, s, z, r, n)", {"a": a}, {"s": scales["s"], "z": scales["z"], "r": F32(1 / 256), "n": np.uint8(0)})
    yield Case("row_dynamic_quantize_matmul", "y = com.microsoft.DynamicQuantizeMatMul (x, w, t, v, c)", {"x": ODD}, {"t": scales["t"], "v": scales["v"], "c": (9,), "w": rng.integers(0, 255, (7, 9)).astype(np.uint8)})
    yield Case("row_qlinear_concat", "y = com.microsoft.QLinearConcat <axis = -1> (u, z, a, s, z, a, t, v)", {"a": a}, scales)


def cases():
    for family in (elementwise_cases, corner_number_cases, along_axis_cases, movement_cases, overlap_cases, other_cases, microsoft_cases):
        yield from family()
