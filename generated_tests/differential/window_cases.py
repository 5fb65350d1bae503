"""Models of windows, edges and masks: what a vector meets at the border of a picture."""
import zlib

import numpy as np

from case import Case, ints


def mask_cases():
    """Conditions from memory: whole vectors of them, one a row, both."""
    rng = np.random.default_rng(9)
    rows, columns, all_of_them = (rng.random(shape) < 0.5 for shape in ((37, 1), (1, 45), (37, 45)))
    yield Case("mask_of_each", "y = Where (m, x, v)", {"m": all_of_them, "x": (37, 45), "v": (37, 45)})
    yield Case("mask_of_rows_and_columns", "m = And (r, c)\n n = Not (m)\n a = Where (m, x, v)\n b = Or (r, n)\n y = Where (b, a, v)",
               {"r": rows, "c": columns, "x": (37, 45), "v": (37, 45)})
    yield Case("mask_of_a_comparison", "m = Greater (x, v)\n n = And (m, r)\n y = Where (n, x, v)", {"r": rows, "x": (37, 45), "v": (37, 45)})


def part_cases():
    """Tensors that lie inside of others: concatenations, slices, what is padded; and what channels last makes of shuffles and normalisations."""
    x, conv = {"x": (2, 16, 13, 11)}, "Conv <pads = [1,1,1,1]>"
    for name, (p, q) in {"even": (32, 16), "odd": (19, 13), "short": (3, 40)}.items():
        w = {"v": (p, 16, 3, 3), "w": (q, 16, 1, 1), "b": (p,)}
        two = f"a = {conv} (x, v, b)\n c = Relu (a)\n d = Conv (x, w)\n"
        yield Case(f"concat_of_convolutions_{name}", f"{two} e = Concat <axis = 1> (c, d)\n y = Sigmoid (e)", x, w)
        yield Case(f"concat_padded_{name}", f"{two} e = Concat <axis = 1> (c, d)\n y = {conv} (e, u)", x, {**w, "u": (8, p + q, 3, 3)})
        yield Case(f"concat_and_pool_{name}", f"{two} z = MaxPool <kernel_shape = [2,2], strides = [2,2]> (c)\n e = Concat <axis = 1> (d, c, d)\n y = {conv} (e, u)", x, {**w, "u": (8, p + 2 * q, 3, 3)}, outputs=("y", "z"))
        yield Case(f"concat_rows_{name}", f"{two} e = Concat <axis = 2> (c, c)\n y = Sigmoid (e)", x, w)
        yield Case(f"concat_of_input_{name}", f"{two} e = Concat <axis = 1> (x, d, c)\n f = Relu (e)\n y = Conv (f, u)", x, {**w, "u": (8, p + q + 16, 1, 1)})
        yield Case(f"concat_residual_{name}", f"{two} r = {conv} (c, r1)\n s = Add (r, c)\n e = Concat <axis = 1> (s, d)\n t = {conv} (s, r1)\n f = Softmax <axis = 1> (e)\n y = Conv (f, u)\n z = Neg (t)", x,
                   {**w, "u": (8, p + q, 1, 1), "r1": (p, p, 3, 3)}, outputs=("y", "z"))
        yield Case(f"slices_of_convolution_{name}", f"a = Conv (x, v, b)\n c, d = Split <axis = 1> (a, s)\n y = {conv} (c, u)\n z = MaxPool <kernel_shape = [3,2]> (d)\n g = Add (d, d)\n q = ReduceMean (g, k)", x,
                   {"v": (p + q, 16, 1, 1), "b": (p + q,), "s": ints(p, q), "u": (7, p, 3, 3), "k": ints(2, 3)}, outputs=("y", "z", "q"))
        yield Case(f"slice_into_concat_{name}", f"a = Conv (x, v)\n c, d = Split <axis = 1> (a, s)\n e = {conv} (d, u)\n f = Concat <axis = 1> (c, e)\n y = Sigmoid (f)", x, {"v": (p + q, 16, 1, 1), "s": ints(p, q), "u": (q, q, 3, 3)})
    dense = {"u": (12, 16, 3, 3), "v": (12, 28, 3, 3), "w": (12, 40, 3, 3)}
    yield Case("dense_block", f"a = Relu (x)\n b = {conv} (a, u)\n c = Concat <axis = 1> (a, b)\n c1 = Relu (c)\n d = {conv} (c1, v)\n e = Concat <axis = 1> (a, b, d)\n e1 = Relu (e)\n f = {conv} (e1, w)\n"
               " h = Concat <axis = 1> (a, b, d, f)\n y = AveragePool <kernel_shape = [2,2], strides = [2,2]> (h)", x, dense)
    yield Case("dense_block_of_pairs", f"a = Relu (x)\n b = {conv} (a, u)\n c = Concat <axis = 1> (a, b)\n d = {conv} (c, v)\n e = Concat <axis = 1> (c, d)\n f = {conv} (e, w)\n h = Concat <axis = 1> (e, f)\n y = Sigmoid (h)", x, dense)
    yield Case("u_net", f"a = {conv} (x, u)\n b = Relu (a)\n c = MaxPool <kernel_shape = [2,2], strides = [2,2]> (b)\n d = {conv} (c, v)\n e = Relu (d)\n f = ConvTranspose <strides = [2,2]> (e, t)\n g = Concat <axis = 1> (f, b)\n y = {conv} (g, w)",
               {"x": (1, 16, 14, 10)}, {"u": (24, 16, 3, 3), "v": (32, 24, 3, 3), "t": (32, 24, 2, 2), "w": (9, 48, 3, 3)})
    yield Case("concat_of_winograd", f"a = {conv} (x, u)\n b = Relu (a)\n c = {conv} (b, v)\n d = Concat <axis = 1> (c, b)\n e = {conv} (d, w)\n f, g = Split <axis = 1, num_outputs = 2> (e)\n h = {conv} (g, t)\n i = MaxPool <kernel_shape = [2,2]> (f)\n y = Relu (h)", {"x": (1, 32, 16, 18)},
               {"u": (32, 32, 3, 3), "v": (48, 32, 3, 3), "w": (64, 80, 3, 3), "t": (32, 32, 3, 3)}, outputs=("y", "i"), bar=3e-5)
    # One column of two is read, and padded along the other axis only.
    for side, image, taps, words in (("below", (3, 1, 2, 2), (1, 1, 3, 1), "pads = [0,0,1,0], strides = [2,2]"), ("above", (1, 1, 4, 2), (1, 1, 3, 1), "pads = [1,0,0,0], strides = [1,2]"),
                                   ("behind", (2, 1, 2, 3), (1, 1, 1, 3), "pads = [0,0,0,1], strides = [2,2]"), ("some_channels", (2, 3, 2, 2), (4, 3, 3, 1), "pads = [0,0,1,0], strides = [2,2]")):
        yield Case(f"conv_of_one_column_{side}", f"y = Conv <kernel_shape = [{taps[2]},{taps[3]}], {words}> (x, w)", {"x": image}, {"w": taps})
    yield Case("pool_of_one_column", "y = MaxPool <kernel_shape = [3,1], pads = [1,0,1,0], strides = [1,2]> (x)", {"x": (1, 1, 4, 2)})
    yield Case("pad_of_one_column", "c = Slice (x, zero, one, last)\n y = Pad (c, pads)", {"x": (3, 4, 2)}, {"zero": ints(0), "one": ints(1), "last": ints(2), "pads": ints(0, 1, 0, 0, 2, 0)})
    yield Case("class_token", "p = Conv <strides = [4,4]> (x, w)\n q = Reshape (p, s)\n r = Transpose <perm = [0,2,1]> (q)\n t = Concat <axis = 1> (k, r)\n y = Add (t, e)", {"x": (1, 3, 32, 32)},
               {"w": (48, 3, 4, 4), "s": ints(1, 48, 64), "k": (1, 1, 48), "e": (1, 65, 48)})
    two = f"a = {conv} (x, v)\n"
    for c, g in ((24, 3), (24, 24), (20, 5), (16, 1)):
        w = {"v": (c, 16, 3, 3), "k": (c,), "b": (c,), "u": (9, c, 3, 3)}
        yield Case(f"group_norm_{c}_{g}", f"{two} n = GroupNormalization <num_groups = {g}> (a, k, b)\n r = Relu (n)\n y = {conv} (r, u)", x, w, bar=3e-5)
        spelled = {"v": (c, 16, 3, 3), "k": (c, 1, 1), "b": (c, 1, 1), "u": (9, c, 3, 3), "s": ints(0, g, -1), "o": np.ones(g, np.float32), "z": np.zeros(g, np.float32), "t": ints(2, c, 13, 11)}
        yield Case(f"group_norm_spelled_{c}_{g}", f"{two} i = Reshape (a, s)\n j = InstanceNormalization (i, o, z)\n l = Reshape (j, t)\n m = Mul (l, k)\n n = Add (b, m)\n r = Relu (n)\n y = {conv} (r, u)", x, spelled, bar=3e-5)
        yield Case(f"instance_norm_{c}_{g}", f"{two} n = InstanceNormalization (a, k, b)\n r = LeakyRelu (n)\n y = {conv} (r, u)", x, w, bar=3e-5)
        shuffled = {"v": (c, 16, 3, 3), "u": (9, c, 3, 3), "s": ints(2, g, c // g, 13, 11), "t": ints(2, c, 13, 11)}
        yield Case(f"channel_shuffle_{c}_{g}", f"{two} p = Reshape (a, s)\n q = Transpose <perm = [0,2,1,3,4]> (p)\n r = Reshape (q, t)\n y = {conv} (r, u)", x, shuffled)
    for mode in ("DCR", "CRD"):
        yield Case(f"pixel_shuffle_{mode}", f'{two} d = DepthToSpace <blocksize = 2, mode = "{mode}"> (a)\n r = Relu (d)\n y = {conv} (r, u)', x, {"v": (64, 16, 3, 3), "u": (5, 16, 3, 3)})
    yield Case("pixel_unshuffle", f"{two} d = SpaceToDepth <blocksize = 2> (a)\n r = Relu (d)\n y = {conv} (r, u)", {"x": (2, 16, 12, 10)}, {"v": (24, 16, 3, 3), "u": (5, 96, 3, 3)})
    yield Case("convnext_block", "d = Conv <pads = [3,3,3,3], group = 16> (x, w)\n t = Transpose <perm = [0,2,3,1]> (d)\n n = LayerNormalization <axis = -1> (t, k, b)\n p = MatMul (n, m1)\n g = Gelu (p)\n q = MatMul (g, m2)\n"
               " u = Transpose <perm = [0,3,1,2]> (q)\n s = Mul (u, l)\n y0 = Add (x, s)\n e = Conv <pads = [3,3,3,3], group = 16> (y0, w)\n y = Add (e, y0)", x,
               {"w": (16, 1, 7, 7), "k": (16,), "b": (16,), "m1": (16, 64), "m2": (64, 16), "l": (16, 1, 1)}, opset=20)


def cases():
    """Pooling, resizing, padding, conditions from memory."""
    yield from mask_cases()
    yield from part_cases()
    for kind in ("MaxPool", "AveragePool"):
        for name, attributes in {"k3s2p1": "kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]", "ceil": "kernel_shape = [2,2], strides = [2,2], ceil_mode = 1",
                                 "uneven": "kernel_shape = [3,2], pads = [1,0,0,1]", "row": "kernel_shape = [1,5]"}.items():
            yield Case(f"{kind.lower()}_{name}", f"y = {kind} <{attributes}> (x)", {"x": (2, 19, 13, 17)})
    for name, kind, attributes, shape in (
            ("stride_2", "MaxPool", "kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]", (1, 24, 40, 56)),
            ("stride_3", "MaxPool", "kernel_shape = [3,3], strides = [3,3], ceil_mode = 1", (2, 3, 20, 25)),
            ("stride_5", "AveragePool", "kernel_shape = [2,7], strides = [1,5], pads = [0,3,0,3]", (1, 3, 9, 90)),
            ("wide", "MaxPool", "kernel_shape = [13,13], pads = [6,6,6,6]", (1, 3, 20, 20)),
            ("dilated", "MaxPool", "kernel_shape = [3,3], strides = [2,1], dilations = [2,3], pads = [2,2,1,0]", (1, 3, 21, 40)),
            ("signal", "MaxPool", "kernel_shape = [3], strides = [2], pads = [1,1]", (2, 5, 3001)),
            ("volume", "MaxPool", "kernel_shape = [3,3,3], strides = [2,2,2], pads = [1,1,1,1,1,1]", (1, 3, 6, 10, 19)),
            ("volume_mean", "AveragePool", "kernel_shape = [1,2,3], strides = [1,2,2], pads = [0,1,1,0,1,1]", (1, 3, 6, 10, 19)),
            ("lp", "LpPool", "kernel_shape = [3,2], strides = [2,2], p = 2", (1, 3, 15, 22)),
            ("upper", "MaxPool", 'kernel_shape = [4,4], strides = [3,2], auto_pad = "SAME_UPPER"', (1, 4, 14, 31))):
        yield Case(f"pool_rows_{name}", f"y = {kind} <{attributes}> (x)", {"x": shape})
    # Rounded up, one window that reaches beyond the input is a result.
    for kind, more in (("MaxPool", ""), ("AveragePool", ""), ("AveragePool", ", count_include_pad = 1")):
        for name, attributes, shape in (("row", "kernel_shape = [3], strides = [2]", (2, 3, 2)), ("padded", "kernel_shape = [7,3], strides = [4,2], pads = [1,0,1,0]", (1, 17, 3, 2))):
            yield Case(f"{kind.lower()}_of_less_than_a_window_{name}{'_counting' if more else ''}", f"y = {kind} <{attributes}, ceil_mode = 1{more}> (x)", {"x": shape})
        # A window far larger than its image, which has its channels last behind a convolution; and one with taps that no result has.
        for name, attributes, shape in (("whole", "kernel_shape = [900,1100], strides = [900,1100], ceil_mode = 1", (1, 24, 3, 5)), ("pads", "kernel_shape = [11,9], pads = [5,4,5,4], strides = [2,3]", (1, 20, 4, 5))):
            yield Case(f"{kind.lower()}_far_larger_{name}{'_counting' if more else ''}", f"c = Conv (x, w) y = {kind} <{attributes}{more}> (c)", {"x": shape, "w": (24, shape[1], 1, 1)})
    yield Case("average_counting_pads", "y = AveragePool <kernel_shape = [3,3], pads = [1,1,1,1], count_include_pad = 1> (x)", {"x": (1, 5, 9, 9)})
    yield Case("max_pool_indices", "y, i = MaxPool <kernel_shape = [2,3], strides = [2,2]> (x)", {"x": (1, 3, 10, 11)}, outputs=("y", "i"))
    yield Case("global_max", "y = GlobalMaxPool (x)", {"x": (2, 21, 6, 7)})
    for mode, transform in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel")):
        near = ', nearest_mode = "floor"' if mode == "nearest" else ""
        yield Case(f"resize_{mode}_{transform}", f'y = Resize <mode = "{mode}", coordinate_transformation_mode = "{transform}"{near}> (x, , scales)',
                   {"x": (1, 5, 9, 7)}, {"scales": np.float32([1, 1, 2, 3])})
    for transform, near in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("align_corners", "ceil")):
        # 30 / 1.7f and 30 * 3.3f fall on whole numbers in f32 only
        yield Case(f"resize_nearest_in_single_precision_{transform}",
                   f'y = Resize <mode = "nearest", coordinate_transformation_mode = "{transform}", nearest_mode = "{near}"> (x, , scales)',
                   {"x": (1, 2, 30, 30)}, {"scales": np.float32([1, 1, 1.7, 3.3])})
    for times, size in ((2, 28), (2, 33), (4, 16), (3, 20)):
        yield Case(f"resize_nearest_{times}_{size}", 'y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (x, , s)',
                   {"x": (1, 5, 9, size)}, {"s": np.float32([1, 1, times, times])})
    for c in (3, 8, 15):
        yield Case(f"deconvolution_blocks_{c}", "a = ConvTranspose <strides = [4,8]> (x, w, b)\n y = Tanh (a)", {"x": (2, 6, 5, 9)}, {"w": (6, c, 4, 8), "b": (c,)})
        yield Case(f"deconvolution_sigmoid_{c}", "a = ConvTranspose <strides = [2,2]> (x, w, b)\n y = Sigmoid (a)", {"x": (2, 6, 5, 9)}, {"w": (6, c, 2, 2), "b": (c,)})
    for strides in (1, 2, 3):  # nothing between the elements, or beside them, is multiplied by what times zero is no zero
        w = np.float32([[[1, np.inf, 1, -2]]])
        yield Case(f"deconvolution_infinite_{strides}", f"y = ConvTranspose <strides = [{strides}]> (x, w)", {"x": np.ones((1, 1, 5), np.float32)}, {"w": w}, nothing=True)
        yield Case(f"deconvolution_of_infinity_{strides}", f"y = ConvTranspose <strides = [{strides}], output_padding = [{strides - 1}]> (x, w)",
                   {"x": np.float32([[[np.inf]]])}, {"w": (1, 1, 4)}, nothing=True)
    # Taps that lie far above and below the image, or for some rows all of them.
    for name, image, k, attributes in (("far", (13, 17), (3, 3), "dilations = [6,6], pads = [6,6,6,6]"), ("farther", (9, 40), (3, 3), "dilations = [7,2], pads = [7,2,7,2]"),
                                       ("strided", (24, 20), (5, 3), "strides = [2,1], dilations = [5,1], pads = [9,1,11,0]"), ("nowhere", (3, 9), (2, 2), "dilations = [5,1], pads = [5,1,5,0]"),
                                       ("uneven", (8, 11), (3, 2), "strides = [3,2], dilations = [4,3], pads = [2,3,9,0]")):
        yield Case(f"conv_taps_{name}", f"c = Conv <{attributes}> (x, w, b)\n y = Relu (c)", {"x": (2, 8, *image)}, {"w": (20, 8, *k), "b": (20,)})
    # One channel, or one of a group: results of different taps side by side.
    for name, more, x, w in (("twice", "strides = [2,2], pads = [1,1,1,1]", (1, 1, 9, 40), (1, 1, 4, 4)), ("groups", "strides = [2,2], pads = [1,0,0,1], group = 3", (2, 3, 5, 33), (3, 1, 3, 3)),
                             ("thirds", "strides = [3,3], pads = [1,1,1,1]", (1, 2, 6, 47), (2, 1, 3, 3)), ("row", "strides = [4], pads = [1,2], output_padding = [2]", (1, 1, 70), (1, 1, 5)), ("short", "strides = [2,2]", (1, 1, 3, 4), (1, 1, 3, 3))):
        yield Case(f"deconvolution_in_turn_{name}", f"a = ConvTranspose <{more}> (x, w, b)\n y = Relu (a)", {"x": x}, {"w": w, "b": (w[1] * (3 if name == "groups" else 1),)})
    for op, w in (("ConvTranspose", (4, 1, 2)), ("Conv", (1, 4, 2))):  # every tap lies in the padding: nobody reads x
        yield Case(f"{op.lower()}_of_padding", f"y = {op} <dilations = [2], kernel_shape = [2], pads = [1,1]> (x, w, b)", {"x": (2, 4, 1)}, {"w": w, "b": (1,)})
    for name, x, outputs in (("numbers", (1, 2, 13, 26), ("y", "i")), ("infinite", np.full((1, 1, 6, 7), -np.inf, np.float32), ("i",))):
        yield Case(f"pool_positions_{name}", "y, i = MaxPool <kernel_shape = [3,3], strides = [2,2], pads = [1,0,1,1], ceil_mode = 1> (x)", {"x": x}, outputs=outputs)
    # Before operator set 11: element index / scale, the next one where an axis shrinks.
    for opset, op in ((9, "Upsample"), (10, "Resize")):
        for mode, scales in (("linear", (1, 1, 2, 3)), ("linear", (1, 1, 1.5, 2.4)), ("nearest", (1, 1, 1.6, 2.7)), ("nearest", (1, 1, 2, 2)),
                             *((("nearest", (1, 1, 0.6, 0.3)), ("nearest", (1, 1, 0.9, 1.7)), ("linear", (1, 1, 0.5, 1.4))) if opset == 10 else ())):
            yield Case(f"{op.lower()}_{opset}_{mode}_{scales[2]}_{scales[3]}".replace(".", "_"), f'y = {op} <mode = "{mode}"> (x, s)', {"x": (1, 3, 10, 13)},
                       {"s": np.float32(scales)}, opset=opset)
        yield Case(f"{op.lower()}_{opset}_at_run_time", f'y = {op} <mode = "nearest"> (x, s)', {"x": (1, 2, 5, 7), "s": np.float32([1, 1, 1.6, 2])}, opset=opset)
    yield Case("upsample_7", 'y = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0, 3.0]> (x)', {"x": (1, 3, 4, 5)}, opset=7)
    yield Case("upsample_between_convolutions", 'a = Conv (x, v)\n b = Upsample <mode = "nearest"> (a, s)\n y = Conv (b, w)', {"x": (1, 8, 6, 7)},
               {"v": (16, 8, 1, 1), "w": (8, 16, 3, 3), "s": np.float32([1, 1, 2, 2])}, opset=9)
    for channels, size in ((3, 20), (7, 20), (8, 300)):
        yield Case(f"grid_sample_channels_{channels}", "y = GridSample (x, g)", {"x": (2, channels, 9, 11), "g": np.random.default_rng(channels).uniform(-1.2, 1.2, (2, 3, size, 2)).astype(np.float32)})
        yield Case(f"roi_align_channels_{channels}", "y = RoiAlign <output_height = 3, output_width = 5, sampling_ratio = 2> (x, r, i)",
                   {"x": (2, channels, 12, 13), "r": np.float32([[0, 0, 5, 5], [-3, 2, 20, 7], [1, 1, 1, 1]])}, {"i": ints(1, 0, 1)})
        boxes = np.float32([[0, 0, 5, 5], [-3, 2, 20, 7], [1, 1, 1, 1], [4, 5, 30, 26]])
        for mode, pixel in (("avg", "half_pixel"), ("max", "output_half_pixel"), ("max", "half_pixel")):  # the box decides how many samples
            yield Case(f"roi_align_adaptive_{mode}_{pixel}_{channels}", f'y = RoiAlign <output_height = 3, output_width = 2, mode = "{mode}", coordinate_transformation_mode = "{pixel}"> (x, r, i)',
                       {"x": (2, channels, 12, 13), "r": boxes}, {"i": ints(1, 0, 1, 0)})
        yield Case(f"max_roi_pool_channels_{channels}", "y = MaxRoiPool <pooled_shape = [3,2], spatial_scale = 0.5> (x, r)",
                   {"x": (2, channels, 12, 13), "r": np.concatenate([np.float32([[1], [0], [1], [0]]), np.abs(boxes)], axis=1)})
        yield Case(f"resize_aligned_channels_{channels}", 'y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, , , s)',
                   {"x": (1, channels, 7, 11)}, {"s": ints(1, channels, 12, size)})
    for c in (40, 72, 120):
        yield Case(f"depthwise_5_{c}", f"t = Conv <group = {c}, pads = [2,2,2,2]> (x, w, b)\n y = Relu (t)", {"x": (1, c, 9, 10)}, {"w": (c, 1, 5, 5), "b": (c,)})
    # To few channels, behind a layer that leaves the channels last: as an output of the model, and with what networks end in.
    for c, kernel, out in ((16, 3, 1), (16, 3, 3), (5, 3, 2), (40, 1, 3), (3, 5, 4), (2, 7, 1), (64, 3, 7)):
        for end in ("Identity", "Sigmoid", "Clip"):
            bounds = ", zero, one" if end == "Clip" else ""
            yield Case(f"to_few_channels_{c}_{kernel}_{out}_{end.lower()}", f"a = Conv (x, v)\n t = Conv <pads = {[kernel // 2] * 4}> (a, w, b)\n y = {end} (t{bounds})", {"x": (2, 6, 9, 21)},
                       {"v": (c, 6, 1, 1), "w": (out, c, kernel, kernel), "b": (out,), "zero": np.float32(0), "one": np.float32(1)})
    for c, out, more in ((16, 3, "strides = [2,2], pads = [1,1,1,1]"), (24, 1, "strides = [2,3]"), (8, 4, "strides = [3,2], pads = [0,1,2,0], output_padding = [1,0], dilations = [1,2]"),
                         (24, 6, "strides = [2,2], pads = [1,1,1,1], group = 3"), (40, 2, "pads = [1,1,1,1]")):
        shape = (c, out // (3 if "group" in more else 1), 4, 4)
        yield Case(f"deconvolution_to_{out}_of_{c}", f"a = Conv (x, v)\n t = ConvTranspose <{more}> (a, w, b)\n y = Tanh (t)", {"x": (2, 6, 5, 7)},
                   {"v": (c, 6, 1, 1), "w": shape, "b": (out,)})
    for rank, c, out, k, more in ((2, 24, 3, (4, 4), "strides = [2,2], pads = [1,1,1,1]"), (2, 24, 5, (2, 2), "strides = [2,2]"), (2, 24, 4, (3, 3), "strides = [2,2], pads = [1,1,1,1], output_padding = [1,1]"),
                                  (2, 32, 6, (3, 5), "strides = [2,3], pads = [0,1,2,0], group = 2"), (2, 48, 2, (5, 4), "strides = [3,2], pads = [4,1,4,1]"), (1, 16, 3, (16,), "strides = [8], pads = [4,4]"),
                                  (1, 40, 4, (5,), "strides = [3], output_padding = [2], group = 2"), (3, 24, 2, (2, 2, 2), "strides = [2,2,2]"), (2, 24, 3, (4, 4), "strides = [2,2], pads = [1,1,3,2]"),
                                  (2, 16, 3, (6, 6), "strides = [2,2], auto_pad = \"SAME_UPPER\""), (2, 16, 3, (6, 6), "strides = [2,2], auto_pad = \"VALID\""), (2, 16, 3, (6, 6), "strides = [2,2], output_shape = [11,12]")):
        g = 2 if "group" in more else 1
        yield Case(f"subpixels_{rank}_{c}_{out}_{'x'.join(map(str, k))}_{zlib.crc32(more.encode()) % 1000}", f"a = Relu (x)\n t = ConvTranspose <{more}> (a, w, b)\n y = HardSwish (t)", {"x": (2, c, *(5, 7, 3)[:rank])}, {"w": (c, out // g, *k), "b": (out,)})
    yield Case("groups_to_few_channels", "a = Conv (x, v)\n y = Conv <pads = [1,1,1,1], group = 4> (a, w)", {"x": (1, 6, 9, 21)}, {"v": (96, 6, 1, 1), "w": (8, 24, 3, 3)})
    yield Case("signal_to_one_channel", "a = Conv <pads = [3,3]> (x, v)\n t = Conv <pads = [3,3]> (a, w, b)\n y = Tanh (t)", {"x": (1, 4, 131)}, {"v": (32, 4, 7), "w": (1, 32, 7), "b": (1,)})
    # Few columns of sums: what is costly behind them is computed in vectors of its own.
    for c, out, k, s, g in ((24, 1, 2, 2, 1), (32, 2, 2, 2, 1), (33, 3, 4, 2, 1), (16, 1, 3, 3, 1), (48, 4, 2, 2, 2)):
        for end in ("y = Sigmoid (t)", "e = Exp (t)\n y = Mul (e, r)"):
            pads = f", pads = {[(k - s) // 2] * 4}"
            yield Case(f"few_columns_apart_{c}_{out}_{k}_{end[4:7].strip().lower()}", f"a = Conv (x, v)\n t = ConvTranspose <strides = {[s, s]}{pads}, group = {g}> (a, w, b)\n {end}", {"x": (1, 6, 9, 8), "r": (1, out, 9 * s, 8 * s)},
                       {"v": (c, 6, 1, 1), "w": ((np.random.default_rng(c).random((c, out // g, k, k)) - 0.5) * 0.3).astype(np.float32), "b": (out,)})
    for m, k, n, end in ((70, 24, 6, "Gelu"), (70, 16, 4, "Tanh"), (33, 40, 3, "Sigmoid"), (64, 64, 1, "Softplus"), (41, 128, 7, "Erf"), (40, 9, 2, "Exp")):
        yield Case(f"few_columns_apart_{k}x{n}", f"e = Exp (x)\n t = MatMul (e, w)\n s = Add (t, b)\n u = {end} (s)\n y = Sub (u, r)", {"x": (m, k), "r": (m, n)}, {"w": (k, n), "b": (n,)})
        yield Case(f"short_rows_{end.lower()}_{n}", f"s = Add (x, b)\n u = {end} (s)\n y = Mul (u, r)", {"x": (m, 2, n), "r": (m, 1, n)}, {"b": (n,)})
    for n in (3, 5, 7):
        yield Case(f"softmax_of_{n}", "a = Softmax (x)\n b = LogSoftmax (x)\n y = Sub (a, b)", {"x": (37, n)})
        yield Case(f"layer_norm_of_{n}", "y = LayerNormalization (x, w, b)", {"x": (37, n)}, {"w": (n,), "b": (n,)})
    yield Case("transposed_channels", "a = Conv <pads = [1,1,1,1]> (x, w)\n y = HardSwish (a)", {"x": (2, 3, 7, 9)}, {"w": (70, 3, 3, 3)})
    for n in (1, 2, 3):
        yield Case(f"product_of_{n}_columns", "t = MatMul (x, w)\n y = Add (t, b)", {"x": (37, 51)}, {"w": (51, n), "b": (n,)})
    for padding in ("zeros", "border", "reflection"):
        yield Case(f"grid_sample_cubic_{padding}", f'y = GridSample <mode = "cubic", padding_mode = "{padding}"> (x, g)', {"x": (1, 2, 5, 7), "g": (1, 6, 5, 2)})
    yield Case("pad_reflect", 'y = Pad <mode = "reflect"> (x, p)', {"x": (2, 3, 6, 7)}, {"p": ints(0, 0, 2, 3, 0, 0, 1, 4)})
    yield Case("pad_reflect_widest", 'y = Pad <mode = "reflect"> (x, p)', {"x": (2, 4, 21)}, {"p": ints(0, 3, 1, 0, 3, 20)})
    yield Case("pad_edge", 'y = Pad <mode = "edge"> (x, p)', {"x": (2, 3, 6, 7)}, {"p": ints(0, 0, 2, 9, 0, 1, 1, 0)})
    # What negative pads leave is what is repeated.
    for name, pads in (("front", (-1, -2, 2, 4)), ("back", (2, 5, -1, -3)), ("both", (-1, -2, -1, -2)), ("far", (-2, 13, 9, -5))):
        yield Case(f"pad_wrap_negative_{name}", 'y = Pad <mode = "wrap"> (x, p)', {"x": (4, 9)}, {"p": ints(*pads)})
        yield Case(f"pad_wrap_negative_{name}_late", 'y = Pad <mode = "wrap"> (x, p)', {"x": (4, 9), "p": ints(*pads)})
    for name, pads in (("rows", (2, 0, 1, 0)), ("last_rows", (0, 0, 4, 0)), ("columns", (0, 3, 0, 2)), ("both", (1, 2, 3, 4))):
        for op in ("Neg", "Abs", "Sqrt", "Floor"):
            yield Case(f"pad_{name}_then_{op.lower()}", f"t = Pad (x, p, v)\n y = {op} (t)", {"x": np.abs(np.random.default_rng(2).standard_normal((4, 16))).astype(np.float32)}, {"p": ints(*pads), "v": np.float32(0.75)})
    for mode in ("edge", "reflect", "constant"):  # what is left of the indices is whether they are valid
        yield Case(f"pad_{mode}_then_gather_elements", f'p = Pad <mode = "{mode}"> (x, d)\n y = GatherElements <axis = 0> (p, i)', {"x": (1 if mode == "edge" else 3, 3), "i": np.array([[1, -1, 0]])}, {"d": ints(1, 0, 0, 0)})
    yield Case("pad_negative", "y = Pad (x, p, v)", {"x": (4, 9)}, {"p": ints(-1, 2, 1, -3), "v": np.float32(1.5)})
