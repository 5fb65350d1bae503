"""Small models with sizes that ONNX's own suite never has: odd channels, tails of tiles and vectors, uneven windows.

A case is the text of a graph's body, the inputs and the constants with their shapes; numbers are seeded by the case's name.
"""
import dataclasses
import itertools

import numpy as np

import attention_cases
import control_cases
import corner_cases
import double_cases
import few_bits_cases
import half_cases
import language_cases
import microsoft_cases
import ml_cases
import quantised_cases
import resize_cases
import string_cases
import table_cases
import window_cases
from case import Case, ints


def conv_cases():
    """Convolutions: channels about the sizes of vectors and tiles, every kind of window."""
    for c, m, h, w in ((3, 17, 19, 23), (16, 33, 7, 7), (33, 16, 14, 5), (64, 64, 9, 9), (1, 1, 5, 40), (5, 100, 1, 1)):
        for k in (1, 3):
            yield Case(f"conv{k}_{c}_{m}_{h}x{w}", f"y = Conv <pads = [{k//2},{k//2},{k//2},{k//2}]> (x, w, b)",
                       {"x": (1, c, h, w)}, {"w": (m, c, k, k), "b": (m,)})
    windows = {"s2": ("strides = [2,2], pads = [1,1,1,1]", 3), "d2": ("dilations = [2,2], pads = [2,2,2,2]", 3),
               "uneven": ("pads = [0,2,1,0], strides = [1,3]", 4), "same": ('auto_pad = "SAME_UPPER", strides = [2,2]', 5),
               "k7s2": ("strides = [2,2], pads = [3,3,3,3]", 7), "wide_pad": ("pads = [4,4,4,4]", 3)}
    for name, (attributes, k) in windows.items():
        yield Case(f"conv_{name}", f"y = Conv <{attributes}> (x, w, b)", {"x": (2, 6, 21, 18)}, {"w": (20, 6, k, k), "b": (20,)})
    for groups, c, m in ((4, 12, 20), (3, 51, 6), (2, 64, 32), (3, 3, 3), (2, 2, 6), (6, 12, 6), (5, 5, 10)):
        yield Case(f"conv_g{groups}_{c}_{m}", f"y = Conv <group = {groups}, pads = [1,1,1,1]> (x, w)", {"x": (1, c, 11, 10)},
                   {"w": (m, c // groups, 3, 3)})
    for c in (3, 16, 35, 96):
        for stride, k in ((1, 3), (2, 3), (1, 5)):
            yield Case(f"depthwise_{c}_s{stride}k{k}",
                       f"t = Conv <group = {c}, pads = [{k//2},{k//2},{k//2},{k//2}], strides = [{stride},{stride}]> (x, w, b)\n"
                       "y = Clip (t, lo, hi)", {"x": (1, c, 15, 13)}, {"w": (c, 1, k, k), "b": (c,), "lo": np.float32(0), "hi": np.float32(6)})
    # Few channels behind channels last: windows along the width overlap.
    for name, attributes, k, m, w in (("k3", "pads = [1,1,1,1]", 3, 3, 23), ("k9", "group = 1", 9, 3, 150), ("d2", "dilations = [2,2]", 5, 2, 70),
                                      ("s2", "strides = [2,2]", 3, 1, 41), ("tall", "strides = [3,1]", 4, 4, 64)):
        yield Case(f"conv_few_{name}", f"r = Relu (x)\ny = Conv <{attributes}> (r, w, b)", {"x": (1, 16, 20, w)}, {"w": (m, 16, k, k), "b": (m,)})
    yield Case("conv1d", "y = Conv <pads = [2,1], strides = [2]> (x, w)", {"x": (3, 7, 50)}, {"w": (9, 7, 4)})
    yield Case("conv3d", "y = Conv <pads = [1,0,1,1,0,1]> (x, w)", {"x": (1, 4, 5, 6, 7)}, {"w": (6, 4, 3, 2, 3)})
    yield Case("conv_transpose", "y = ConvTranspose <strides = [2,2], pads = [1,1,1,1], output_padding = [1,1]> (x, w, b)",
               {"x": (1, 19, 9, 11)}, {"w": (19, 13, 3, 3), "b": (13,)})
    yield Case("conv_transpose_mask", "y = ConvTranspose <strides = [2,2], pads = [1,0,0,1]> (x, w, b)", {"x": (2, 20, 5, 7)},
               {"w": (20, 1, 3, 3), "b": (1,)})
    yield Case("conv_transpose_waveform", "y = ConvTranspose <strides = [8], pads = [4,4]> (x, w)", {"x": (1, 40, 23)}, {"w": (40, 1, 16)})
    yield Case("conv_transpose_k2", "y = ConvTranspose <strides = [2,2]> (x, w, b)", {"x": (1, 24, 10, 12)},
               {"w": (24, 24, 2, 2), "b": (24,)})
    yield Case("conv_bn_relu", "c = Conv <pads = [1,1,1,1]> (x, w)\n n = BatchNormalization (c, s, b, m, v)\n y = Relu (n)",
               {"x": (1, 9, 12, 12)}, {"w": (22, 9, 3, 3), "s": (22,), "b": (22,), "m": (22,), "v": np.linspace(0.5, 2, 22, dtype=np.float32)})
    yield Case("residual", "c = Conv <pads = [1,1,1,1]> (x, w, b)\n r = Relu (c)\n d = Conv <pads = [1,1,1,1]> (r, u, b)\n"
               "a = Add (d, x)\n y = Relu (a)", {"x": (1, 18, 10, 10)}, {"w": (18, 18, 3, 3), "u": (18, 18, 3, 3), "b": (18,)})
    yield Case("squeeze_excite", "p = GlobalAveragePool (x)\n a = Conv (p, w, b)\n s = Sigmoid (a)\n m = Mul (s, a)\n"
               "e = Conv (m, u, c)\n g = Sigmoid (e)\n y = Mul (x, g)", {"x": (1, 40, 9, 9)},
               {"w": (10, 40, 1, 1), "b": (10,), "u": (40, 10, 1, 1), "c": (40,)})
    yield Case("conv_dynamic_weights", "y = Conv <pads = [1,1,1,1]> (x, w)", {"x": (1, 5, 9, 9), "w": (7, 5, 3, 3)})


def matmul_cases():
    """Matrix products: rows, columns and depths beside the tiles' sizes, batches, transposes, constants on either side."""
    for m, k, n in ((1, 64, 100), (7, 33, 65), (17, 100, 1), (64, 48, 96), (15, 1, 31), (130, 257, 70), (3, 1000, 3)):
        yield Case(f"matmul_{m}x{k}x{n}", "y = MatMul (x, w)", {"x": (m, k)}, {"w": (k, n)})
        yield Case(f"matmul_both_{m}x{k}x{n}", "y = MatMul (x, z)", {"x": (m, k), "z": (k, n)})
    for left, right in (((2, 3, 5, 7), (7, 9)), ((4, 1, 6, 8), (3, 8, 5)), ((7,), (7, 6)), ((5, 7), (7,)), ((2, 5, 7), (2, 7, 33))):
        name = "_".join("x".join(map(str, shape)) for shape in (left, right))
        yield Case(f"matmul_batch_{name}", "y = MatMul (x, z)", {"x": left, "z": right})
    yield Case("matmul_constant_left", "y = MatMul (w, x)", {"x": (2, 37, 11)}, {"w": (29, 37)})
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        yield Case(f"gemm_{a}{b}", f"y = Gemm <transA = {a}, transB = {b}, alpha = 0.5, beta = 2.0> (x, w, c)",
                   {"x": (37, 21) if a else (21, 37)}, {"w": (50, 37) if b else (37, 50), "c": (50,)})
    yield Case("gemm_column_bias", "y = Gemm (x, w, c)", {"x": (9, 20)}, {"w": (20, 33), "c": (9, 1)})
    yield Case("dense_gelu", "m = MatMul (x, w)\n a = Add (m, b)\n y = Gelu (a)", {"x": (2, 13, 40)}, {"w": (40, 77), "b": (77,)})
    yield Case("einsum", 'y = Einsum <equation = "bhid,bhjd->bhij"> (x, z)', {"x": (2, 3, 10, 17), "z": (2, 3, 9, 17)})
    yield Case("attention", "s = MatMul (q, k)\n d = Mul (s, f)\n m = Add (d, mask)\n p = Softmax <axis = -1> (m)\n y = MatMul (p, v)",
               {"q": (2, 3, 19, 24), "k": (2, 3, 24, 19), "v": (2, 3, 19, 24)},
               {"f": np.float32(24 ** -0.5), "mask": np.where(np.arange(19) < 15, 0, -1e4).astype(np.float32)[None, None, None]})
    forbidden = np.zeros((40, 40), np.float32)
    forbidden[3] = forbidden[7:, 5:9] = -np.inf
    yield Case("attention_without_keys", "s = MatMul (q, k)\n m = Add (s, mask)\n p = Softmax <axis = -1> (m)\n n = IsNaN (p)\n"
               " w = Where (n, zero, p)\n y = MatMul (w, v)", {"q": (2, 40, 16), "k": (2, 16, 40), "v": (2, 40, 16)},
               {"mask": forbidden, "zero": np.float32(0)})
    endless = np.full((2, 40, 16), 0.5, np.float32)
    endless[0, 6, 3], endless[1, 30, 5] = np.inf, np.nan  # zero times these is NaN, also in rows of which all weights are 0
    yield Case("attention_without_keys_of_inf", "s = MatMul (q, k)\n m = Add (s, mask)\n p = Softmax <axis = -1> (m)\n n = IsNaN (p)\n"
               " w = Where (n, zero, p)\n a = MatMul (w, v)\n lost = IsNaN (a)\n c = Min (a, most)\n y = Where (lost, most, c)", {"q": (2, 40, 16), "k": (2, 16, 40), "v": endless},
               {"mask": forbidden, "zero": np.float32(0), "most": np.float32(100)})
    yield Case("two_dense_same_input", "a = MatMul (x, w)\n b = MatMul (x, u)\n y = Mul (a, b)", {"x": (11, 30)},
               {"w": (30, 21), "u": (30, 21)})


def row_cases():
    """Reductions, normalisations, softmax: rows that do not fill vectors, axes in the middle."""
    near_one = np.random.default_rng(6).uniform(0.9, 1.1, (7, 19, 37)).astype(np.float32)
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"):
        for name, axes in {"last": ints(-1), "middle": ints(1), "first": ints(0), "two": ints(0, 2)}.items():
            yield Case(f"{op.lower()}_{name}", f"y = {op} <keepdims = 0> (x, axes)", {"x": near_one if op == "ReduceProd" else (7, 19, 37)}, {"axes": axes})
    for axis in (0, 1, 2):
        yield Case(f"softmax_{axis}", f"y = Softmax <axis = {axis}> (x)", {"x": (6, 33, 19)})
        yield Case(f"argmax_{axis}", f"y = ArgMax <axis = {axis}> (x)", {"x": (6, 33, 19)})
    ties = np.random.default_rng(9).integers(0, 4, (2, 7, 5, 21))
    for dtype in (np.float32, np.int32, np.uint8, np.float16, np.float64):
        yield Case(f"argmax_channels_{np.dtype(dtype).name}", "y = ArgMax <axis = 1> (x)\n z = ArgMax <axis = 1, select_last_index = 1, keepdims = 0> (x)",
                   {"x": ties.astype(dtype)}, outputs=("y", "z"))
    for shape in ((16, 1, 3, 16), (15, 2, 12, 8)):  # their parts of a thread's number share factors with a block of threads
        yield Case(f"argmax_of_{shape[0]}_rows", "y = ArgMax <axis = 1, keepdims = 0> (x)", {"x": shape})
    for axis in (0, 1, 2):  # two functions of one text but for their beginnings, which must not become one kernel
        yield Case(f"argmax_of_ties_{axis}", f"y = ArgMax <axis = {axis}> (x)\n z = ArgMax <axis = {axis}, select_last_index = 1> (x)",
                   {"x": ties[0].astype(np.float32)}, outputs=("y", "z"))
    yield Case("argmin_channels", "y = ArgMin <axis = 1> (x)\n z = ArgMin <axis = 2, select_last_index = 1> (x)", {"x": ties.astype(np.float32)}, outputs=("y", "z"))
    for n in (9, 49, 101, 197, 1000):
        yield Case(f"softmax_rows_{n}", "y = Softmax (x)", {"x": (5, n)})
        yield Case(f"log_softmax_rows_{n}", "y = LogSoftmax (x)", {"x": (5, n)})
    yield Case("softmax_of_extremes", "y = Softmax (x)", {"x": np.float32([[-1e30] * 40 + [3e38, 3e38], [-np.inf] * 41 + [-200], [88.0] * 42])})
    for n in (1, 16, 37, 768):
        yield Case(f"layer_norm_{n}", "y = LayerNormalization (x, s, b)", {"x": (2, 9, n)}, {"s": (n,), "b": (n,)})
    yield Case("layer_norm_two_axes", "y = LayerNormalization <axis = 1> (x, s)", {"x": (3, 9, 11)}, {"s": (9, 11)})
    yield Case("instance_norm", "y = InstanceNormalization (x, s, b)", {"x": (2, 13, 9, 9)}, {"s": (13,), "b": (13,)})
    yield Case("cumsum", "y = CumSum (x, a)", {"x": (5, 23)}, {"a": np.int64(1)})
    rng = np.random.default_rng(21)
    for shape in ((23,), (5, 23), (2, 3, 11), (4, 5, 6, 7), (3, 9, 1), (3, 70, 181)):
        for axis, exclusive, reverse in itertools.product(range(len(shape)), (0, 1), (0, 1)):
            name = f"cumsum_{'x'.join(map(str, shape))}_{axis}{'_exclusive' * exclusive}{'_reverse' * reverse}"
            dtype = (np.float32, np.int64, np.int32, np.float64)[(axis + exclusive + 2 * reverse) % 4]
            yield Case(name, f"y = CumSum <exclusive = {exclusive}, reverse = {reverse}> (x, a)", {"x": np.round(rng.standard_normal(shape) * 9).astype(dtype)},
                       {"a": np.int64(axis)}, nothing=True)
    yield Case("cumsum_of_mask", "c = Cast <to = 7> (m)\n s = CumSum (c, a)\n d = Sub (s, o)\n y = Mul (d, c)", {"m": rng.integers(0, 2, (3, 77)).astype(bool)},
               {"a": np.int64(1), "o": np.int64(1)})
    yield Case("cumsum_concat", "s = CumSum (x, a)\n y = Concat <axis = 1> (x, s)", {"x": (9, 5, 12)}, {"a": np.int64(1)})
    yield Case("topk", "y, i = TopK <largest = 1> (x, k)", {"x": (4, 41)}, {"k": ints(5)}, outputs=("y", "i"))
    rng = np.random.default_rng(9)
    ties_of_rows = np.round(rng.standard_normal((3, 70)) * 3).astype(np.float32)
    for k in (1, 2, 9, 69, 70):
        for largest in (0, 1):
            yield Case(f"topk_{k}_{largest}", f"y, i = TopK <largest = {largest}> (x, k)", {"x": ties_of_rows}, {"k": ints(k)}, outputs=("y", "i"))
    for n in (3, 15, 16, 21, 37, 80, 130):  # many rows: tiles of them are turned
        rows = np.random.default_rng(n).integers(-3, 4, (2, 19, n)).astype(np.float32)
        rows[0, 0], rows[0, 1, n // 2], rows[1, 18, n - 1], rows[1, 3] = -np.inf, -np.inf, np.inf, np.inf
        yield Case(f"argmax_of_many_rows_{n}", "y = ArgMax <axis = -1, keepdims = 0> (x)\n z = ArgMin <axis = 2, select_last_index = 1> (x)", {"x": rows}, outputs=("y", "z"))
        yield Case(f"argmax_of_absolute_rows_{n}", "a = Abs (x)\n b = Sub (c, a)\n y = ArgMax <axis = -1, select_last_index = 1> (b)\n z = ArgMin <axis = 2> (b)", {"x": rows, "c": np.float32(2)}, outputs=("y", "z"))
    for n in (63, 64, 65, 130, 300, 1000):
        rows = np.random.default_rng(n).integers(-3, 4, (2, 3, n))
        for dtype in (np.float32, np.float16, np.float64, np.int32, np.int8):
            name = f"{n}_{np.dtype(dtype).name}"
            yield Case(f"argmax_along_{name}", "y = ArgMax <axis = -1, keepdims = 0> (x)\n z = ArgMin <axis = 2, select_last_index = 1> (x)", {"x": rows.astype(dtype)}, outputs=("y", "z"))
        special = rows.astype(np.float32)
        special[0, 0], special[1, 2] = -np.inf, np.inf
        yield Case(f"argmax_along_{n}_infinite", "y = ArgMax <axis = -1> (x)\n z = ArgMin <axis = -1> (x)", {"x": special}, outputs=("y", "z"))
        for largest in (0, 1):
            yield Case(f"top_1_of_{n}_{largest}", f"y, i = TopK <largest = {largest}> (x, k)", {"x": special}, {"k": ints(1)}, outputs=("y", "i"), nothing=True)
        yield Case(f"hardmax_{n}", "y = Hardmax <axis = -1> (x)\n z = Hardmax <axis = 1> (x)", {"x": special}, outputs=("y", "z"))
    for name, pads in (("behind", ints(0, 0, 0, 0, 1, 0, 0, 0)), ("far_behind", ints(0, 0, 0, 0, 5, 0, 0, 0)), ("in_front", ints(1, 0, 0, 0, 0, 0, 0, 0))):
        yield Case(f"transposed_images_{name}", "a = Pad (x, p, v)\n y = Transpose <perm = [0,2,3,1]> (a)", {"x": (1, 16, 8, 13)}, {"p": pads, "v": np.float32(1.5)})
    for axis in (0, 1):
        yield Case(f"top_1_across_{axis}", f"y, i = TopK <axis = {axis}, largest = 0> (x, k)", {"x": np.random.default_rng(3).integers(-9, 9, (2, 40, 30))}, {"k": ints(1)}, outputs=("y", "i"))
    yield Case("topk_across", "y, i = TopK <axis = 1> (x, k)", {"x": rng.integers(-9, 9, (2, 40, 3))}, {"k": ints(20)}, outputs=("y", "i"))
    yield Case("topk_positions", "v, i = TopK (x, k)\n y = Cast <to = 1> (i)", {"x": (5, 300)}, {"k": ints(30)})
    yield Case("topk_of_parts", "v, i = TopK (x, k)\n y = Relu (v)", {"x": (40, 1100)}, {"k": ints(7)})
    yield Case("unique_of_many", "y, i, j, c = Unique (x)", {"x": rng.integers(-50, 50, 300)}, outputs=("y", "i", "j", "c"))
    yield Case("unique_of_rows", "y, i, j, c = Unique <axis = 0> (x)", {"x": rng.integers(0, 2, (40, 3)).astype(np.float32)}, outputs=("y", "i", "j", "c"))
    yield Case("unique_unsorted", "y, i, j, c = Unique <sorted = 0> (x)", {"x": rng.integers(0, 9, 77)}, outputs=("y", "i", "j", "c"))
    yield Case("lrn", "y = LRN <size = 5> (x)", {"x": (1, 12, 5, 5)})


def move_cases():
    """Operators that move elements."""
    for name, perm in {"0231": (0, 2, 3, 1), "0312": (0, 3, 1, 2), "3210": (3, 2, 1, 0), "0213": (0, 2, 1, 3)}.items():
        yield Case(f"transpose_{name}", f"y = Transpose <perm = [{','.join(map(str, perm))}]> (x)", {"x": (2, 17, 9, 33)})
    rng = np.random.default_rng(8)
    for dtype in (np.uint8, bool, np.float16, np.int32, np.float64, np.int64):
        numbers = rng.integers(0, 2 if dtype is bool else 100, (2, 19, 5, 7)).astype(dtype)
        yield Case(f"transpose_{np.dtype(dtype).name}", "y = Transpose <perm = [0,2,3,1]> (x)\n z = Transpose <perm = [0,3,1,2]> (w)",
                   {"x": numbers, "w": numbers.reshape(2, 5, 7, 19)}, outputs=("y", "z"))
    for c, h, w in ((3, 30, 41), (5, 9, 7), (12, 20, 20), (21, 37, 1), (64, 56, 56)):
        yield Case(f"transpose_{c}x{h}x{w}", "y = Transpose <perm = [0,2,3,1]> (x)\n t = Transpose <perm = [0,3,1,2]> (v)\n z = Add (t, b)",
                   {"x": (1, c, h, w), "v": (1, h, w, c)}, {"b": (c, 1, 1)}, outputs=("y", "z"))
    yield Case("transpose_and_pad", "t = Transpose <perm = [1,0]> (x)\n y = Pad (t, p)", {"x": (37, 50)}, {"p": ints(1, 2, 3, 0)})
    yield Case("concat_middle", "y = Concat <axis = 1> (x, z, x)", {"x": (3, 5, 7), "z": (3, 9, 7)})
    yield Case("split_uneven", "a, b = Split <axis = 2> (x, s)\n y = Concat <axis = 2> (b, a)", {"x": (3, 4, 11)}, {"s": ints(4, 7)})
    yield Case("slice_backwards", "y = Slice (x, s, e, a, t)", {"x": (9, 21)}, {"s": ints(8, 19), "e": ints(0, 2), "a": ints(0, 1), "t": ints(-2, -3)})
    yield Case("gather_rows", "y = Gather (w, i)", {"i": np.array([[3, 0, 99], [-1, 7, 50]], np.int64)}, {"w": (100, 37)})
    yield Case("gather_axis1", "y = Gather <axis = 1> (x, i)", {"x": (4, 9, 13)}, {"i": ints(8, -9, 3)})
    yield Case("gather_elements", "y = GatherElements <axis = 1> (x, i)", {"x": (4, 9), "i": np.arange(12, dtype=np.int64).reshape(4, 3) % 9})
    yield Case("scatter_nd", "y = ScatterND (x, i, u)", {"x": (9, 5), "u": (3, 5)}, {"i": np.array([[1], [4], [8]], np.int64)})
    # What is scattered is computed, from elsewhere and from what it goes to.
    edges = {"f": np.array([3, 8, 0, 3, 5], np.int64), "i": np.array([[1], [4], [8], [4], [0]], np.int64)}
    for size in (5, 32):
        yield Case(f"scatter_of_products_{size}", """h = Relu (x)\n m = Gather (h, f)\n p = Mul (m, w)\n q = ScatterND <reduction = "add"> (h, i, p)\n y = Add (q, c)""",
                   {"x": (9, size), "w": (5, size), "c": (9, 1)}, edges)
        yield Case(f"scatter_of_outer_{size}", """p = Sub (a, b)\n q = Cast <to = 1> (p)\n y = ScatterND <reduction = "max"> (x, i, q)""",
                   {"x": (9, 4, size), "a": (5, 4, 1), "b": (5, 1, size)}, edges)
    r = np.random.default_rng(11)
    for how, n, e, row in (("add", 150, 400, (64,)), ("max", 140, 300, (71,)), ("min", 90, 90, (7, 13)), ("mul", 300, 301, (48,)), ("add", 400, 3000, (96,)), ("add", 120, 360, (100,)), ("add", 110, 333, (6, 24))):
        at = r.integers(-n, n, (e, 1))
        yield Case(f"scatter_rows_{how}_{n}", f"y = ScatterND <reduction = \"{how}\"> (x, i, u)", {"x": (n, *row), "u": (r.random((e, *row)) + 0.5).astype(np.float32), "i": at})
        if len(row) == 1:
            yield Case(f"messages_{how}_{n}", f"""h = Relu (x)\n m = Gather (h, f)\n p = Mul (m, w)\n t = Expand (i, s)\n q = ScatterElements <reduction = "{how}"> (z, t, p)\n y = Tanh (q)""",
                       {"x": (n, *row), "f": at[::-1, 0].copy(), "i": at, "w": (r.random((e, 1)) + 0.5).astype(np.float32), "z": (n, *row)}, {"s": ints(e, *row)}, too_large=n == 400)
    for how in ("none", "add", "mul"):  # ONNX Runtime has no others of truth values
        yield Case(f"truth_by_mask_{how}", f"""w = NonZero (m)\n t = Transpose <perm = [1,0]> (w)\n n = Shape <end = 1> (t)\n u = Expand (v, n)
p = ScatterND <reduction = "{how}"> (d, t, u)\n y = Not (p)""", {"m": r.random((5, 7)) < 0.5, "d": r.random((5, 7)) < 0.5, "v": np.bool_(how != "mul")})
    own = {"x": (200, 100), "s": r.integers(-200, 200, 300), "t": r.integers(-200, 200, (500, 1)), "z": (200, 100)}
    yield Case("messages_and_own", "g = Gather (x, s)\n m = Concat <axis = 0> (g, v)\n y = ScatterND <reduction = \"add\"> (z, t, m)", {**own, "v": (200, 100)})
    yield Case("messages_between_none", "g = Gather (x, s)\n m = Pad (g, p)\n y = ScatterND <reduction = \"add\"> (z, t, m)", own, {"p": np.array([100, 0, 100, 0])})
    yield Case("scatter_rows_of_two", "y = ScatterND <reduction = \"add\"> (x, i, u)", {"x": (9, 17, 64), "u": (333, 64), "i": np.stack([r.integers(-9, 9, 333), r.integers(-17, 17, 333)], 1)})
    yield Case("scatter_rows_of_integers", "y = ScatterND <reduction = \"add\"> (x, i, u)", {"x": np.arange(200 * 60, dtype=np.int32).reshape(200, 60), "u": r.integers(-9, 9, (500, 60), dtype=np.int32), "i": r.integers(0, 200, (500, 1))})
    yield Case("scatter_rows_of_doubles", "y = ScatterND <reduction = \"add\"> (x, i, u)", {"x": r.random((200, 60)), "u": r.random((500, 60)), "i": r.integers(0, 200, (500, 1))})
    yield Case("scatter_elements_of_sums", """p = Add (u, v)\n y = ScatterElements <axis = 1> (x, i, p)""", {"x": (6, 33), "u": (6, 4), "v": (4,), "i": np.array([[0, 7, 32, 5]] * 6)})
    # Rows of tiles that lie where no stride says.
    for mode in ("edge", "reflect", "wrap", "constant"):
        for n, m in ((24, 50), (17, 19), (9, 40)):
            yield Case(f"padded_apart_{mode}_{n}", f"p = Pad <mode = \"{mode}\"> (x, q)\n a = Transpose <perm = [0,3,1,2]> (p)\n y = Sigmoid (a)", {"x": (2, 5, m, n)}, {"q": np.array([0, 1, 2, 0, 0, 1, 3, 0])})
    for n in (12, 32, 45):
        yield Case(f"gathered_apart_{n}", "g = Gather (x, s)\n a = Transpose <perm = [0,2,1]> (g)\n y = Mul (a, c)", {"x": (19, n), "s": r.integers(-19, 19, (3, 37)), "c": (n, 1)})
        yield Case(f"resized_apart_{n}", "h = Resize <mode = \"nearest\"> (x, , , s)\n a = Transpose <perm = [0,2,1]> (h)\n y = Tanh (a)", {"x": (2, 21, n)}, {"s": np.array([2, 48, n])})
    for n in (16, 37, 100):
        yield Case(f"pairs_apart_{n}", "a = Transpose <perm = [0,2,1]> (x)\n y = Abs (a)", {"x": (3, n, 2)})
        yield Case(f"threes_apart_{n}", "a = Transpose <perm = [2,0,1]> (x)\n y = Sigmoid (a)", {"x": (3, n, 3)})
    # Slice assignments, as exporters spell them.
    grid = lambda *axes: np.stack(np.meshgrid(*axes, indexing="ij"), -1).astype(np.int64)
    yield Case("assigned_channels", "a = Conv <pads = [1,1,1,1]> (x, w)\n s = Slice (a, b, e, k)\n c = Conv <pads = [2,2,2,2]> (s, v)\n d = ScatterND (a, i, c)\n y = Conv (d, u)", {"x": (1, 16, 9, 11)},
               {"w": (24, 16, 3, 3), "v": (8, 8, 5, 5), "u": (24, 24, 1, 1), "b": ints(4), "e": ints(12), "k": ints(1), "i": grid([0], range(4, 12))})
    yield Case("assigned_corners", "c = Slice (x, o, t, k)\n w = Slice (x, t, f, k)\n h = Mul (w, q)\n l = Sub (c, h)\n r = Add (c, h)\n a = ScatterND (x, i, l)\n y = ScatterND (a, j, r)", {"x": (2, 70, 4), "q": np.float32(0.5)},
               {"o": ints(0), "t": ints(2), "f": ints(4), "k": ints(2), "i": grid(range(2), range(70), [0, 1]), "j": grid(range(2), range(70), [2, 3])})
    yield Case("assigned_rows_of_two", "a = Relu (x)\n b = ScatterND (a, i, u)\n y = ScatterND (b, j, v)", {"x": (12, 5, 8), "u": (4, 5, 8), "v": (4, 5, 8)}, {"i": grid(range(1, 12, 3)), "j": grid(range(-12, 0, 3))})
    yield Case("assigned_inside", "a = Relu (x)\n y = ScatterND (a, i, u)", {"x": (6, 7, 9), "u": (5, 6, 4)}, {"i": grid(range(1, 6), range(0, 6), range(3, 7))})
    yield Case("assigned_one_by_one", "\n".join(f"s{t} = Slice (u, b{t}, b{t + 1}, k)\n r{t} = Tanh (s{t})\n {'y' if t == 3 else f'p{t}'} = ScatterElements <axis = 1> ({'x' if t == 0 else f'p{t - 1}'}, i{t}, r{t})" for t in range(4)), {"x": (8, 5, 33), "u": (8, 4, 33)},
               {"k": ints(1)} | {f"b{t}": ints(t) for t in range(5)} | {f"i{t}": np.full((8, 1, 33), t, np.int64) for t in range(4)})
    yield Case("scatter_nd_axis_of_one", "y = ScatterND (x, i, u)", {"x": (1, 5, 7), "u": (2, 7), "i": np.array([[0, 3], [-1, 1]], np.int64)})
    yield Case("expand_add", "e = Expand (z, s)\n y = Add (x, e)", {"x": (2, 7, 19), "z": (7, 1)}, {"s": ints(2, 7, 19)})
    yield Case("depth_to_space", "y = DepthToSpace <blocksize = 3> (x)", {"x": (1, 27, 5, 4)})
    for n, size in ((2, 19), (4, 17), (2, 64), (3, 20)):
        yield Case(f"depth_to_space_{n}_{size}", f'y = DepthToSpace <blocksize = {n}, mode = "CRD"> (x)', {"x": (1, 3 * n * n, 5, size)})
    yield Case("tile", "y = Tile (x, r)", {"x": (3, 5)}, {"r": ints(2, 3)})
    yield Case("reshape_chain", "a = Reshape (x, s)\n b = Transpose <perm = [0,2,1,3]> (a)\n y = Reshape (b, t)", {"x": (2, 12, 35)},
               {"s": ints(2, 12, 5, 7), "t": ints(2, 5, 84)})
    yield Case("shuffle_channels", "a = Reshape (x, s)\n b = Transpose <perm = [0,2,1,3,4]> (a)\n y = Reshape (b, t)", {"x": (1, 24, 7, 7)},
               {"s": ints(1, 3, 8, 7, 7), "t": ints(1, 24, 7, 7)})


def elementwise_cases():
    """Elementwise operators on sizes that leave tails, and every kind of broadcast."""
    for op in ("Exp", "Tanh", "Sigmoid", "Erf", "Gelu", "Softplus", "Sin", "Cos", "Atan", "HardSwish", "Elu", "Selu", "Mish", "Round",
               "Floor", "Abs", "Neg", "Softsign", "Sinh", "Asinh"):
        yield Case(f"{op.lower()}_1003", f"y = {op} (x)", {"x": (17, 59)})
    for op in ("Log", "Sqrt", "Reciprocal"):
        yield Case(f"{op.lower()}_1003", f"a = Abs (x)\n b = Add (a, c)\n y = {op} (b)", {"x": (17, 59)}, {"c": np.float32(0.1)})
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        for name, (a, b) in {"row": ((5, 37), (37,)), "column": ((5, 37), (5, 1)), "outer": ((9, 1), (1, 23)), "scalar": ((41,), ()),
                             "deep": ((2, 1, 7, 1), (3, 1, 11))}.items():
            yield Case(f"{op.lower()}_{name}", f"y = {op} (x, z)", {"x": a, "z": b})
    yield Case("pow_square", "y = Pow (x, e)", {"x": (7, 13)}, {"e": np.float32(2)})
    ends = [0, -0.0, np.inf, -np.inf, np.nan, -1, 1e-40, 3e38, 4, 2, 0.3]
    for name, dtype, e in (("f32", np.float32, 0.5), ("f32_inverse", np.float32, -0.5), ("f64", np.float64, 0.5), ("f64_inverse", np.float64, -0.5), ("f16", np.float16, 0.5), ("f16_inverse", np.float16, -0.5)):
        with np.errstate(over="ignore"):
            yield Case(f"pow_root_{name}", f"""
                p = Pow (x, e)
                q = Cast <to = 1> (p)
                nan = IsNaN (q)
                infinite = IsInf (q)
                below = IsInf <detect_positive = 0> (q)
                r = Reciprocal (q)
                minus_zero = IsInf <detect_positive = 0> (r)
                none = Or (nan, infinite)
                y = Where (none, one, p)""", {"x": np.array(ends * 3, np.float64).astype(dtype)}, {"e": dtype(e), "one": dtype(1)},
                       outputs=("nan", "infinite", "below", "minus_zero", "y"))
    truths = np.random.default_rng(4).random((7, 29)) < 0.5
    for name, dtype in (("i64", np.int64), ("f64", np.float64), ("u32", np.uint32), ("f16", np.float16)):
        yield Case(f"where_{name}", "y = Where (c, x, z)", {"c": truths, "x": np.arange(203).reshape(7, 29).astype(dtype), "z": (np.arange(29) % 3).astype(dtype)})
    yield Case("where", "c = Greater (x, z)\n y = Where (c, x, z)", {"x": (7, 13), "z": (13,)})
    yield Case("int_arithmetic", "a = Mul (x, z)\n b = Sub (a, x)\n y = Mod (b, m)", {"x": np.arange(-30, 33, dtype=np.int32).reshape(7, 9), "z": np.arange(9, dtype=np.int32)},
               {"m": np.int32(7)})
    yield Case("cast_to_int", "y = Cast <to = 6> (x)", {"x": (37,)})
    yield Case("half", "a = Cast <to = 10> (x)\n b = Mul (a, a)\n y = Cast <to = 1> (b)", {"x": (61,)},
               bar=1e-3)  # a fused chain computes float16 as float32 and rounds when it stores
    yield Case("long_chain", "\n".join(f"t{i + 1} = {op} (t{i}{', c' if op in ('Mul', 'Add') else ''})" for i, op in
                                        enumerate(["Mul", "Tanh", "Add", "Sigmoid", "Mul", "Exp", "Add", "Neg"] * 4)) + "\ny = Identity (t32)",
               {"t0": (19, 21)}, {"c": np.float32(0.3)})


def mask_cases():
    """Results that are bools, made, joined and read as lanes; and triangles, whose rows end where a count says."""
    rng = np.random.default_rng(10)
    numbers = np.round(rng.standard_normal((7, 61)) * 2).astype(np.float32)
    numbers[3, ::7] = np.nan
    a, b = rng.integers(0, 2, (7, 61)).astype(bool), rng.integers(0, 2, (7, 61)).astype(bool)
    for op in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"):
        yield Case(f"mask_{op.lower()}", f"y = {op} (x, z)\n v = {op} (i, k)", {"x": numbers, "z": np.roll(numbers, 5), "i": np.nan_to_num(numbers).astype(np.int32)},
                   {"k": np.int32(1)}, outputs=("y", "v"))
    for less, greater, joined in (("Less", "Greater", "Xor"), ("LessOrEqual", "GreaterOrEqual", "Equal"), ("Less", "GreaterOrEqual", "Equal")):  # compilers warn of what compares with itself
        yield Case(f"mask_mirrored_{less.lower()}_{greater.lower()}", f"a = {less} (x, z)\n b = {greater} (z, x)\n y = {joined} (a, b)\n c = {less} (k, i)\n d = {greater} (i, k)\n v = {joined} (c, d)",
                   {"x": numbers, "z": np.roll(numbers, 5), "i": np.nan_to_num(numbers).astype(np.int64)}, {"k": np.int64(1)}, outputs=("y", "v"))
    for op in ("And", "Or", "Xor"):
        yield Case(f"mask_{op.lower()}", f"y = {op} (x, z)", {"x": a, "z": b})
        yield Case(f"mask_{op.lower()}_row", f"n = Not (z)\n y = {op} (x, n)", {"x": a, "z": b[0]})
    for op in ("And", "Or", "Xor", "Equal"):
        yield Case(f"mask_not_{op.lower()}", f"n = {op} (x, z)\n y = Not (n)", {"x": a, "z": b})
        yield Case(f"mask_where_not_{op.lower()}", f"n = {op} (x, z)\n m = Not (n)\n y = Where (m, v, w)", {"x": a, "z": b, "v": np.nan_to_num(numbers), "w": np.arange(427, dtype=np.float32).reshape(7, 61)})
    ends = np.tile(np.array([[-np.inf, np.inf, np.nan, 0, 1, -1, -np.inf]], np.float32), 3)
    large = np.float32([1e36, -1e36, 3e35, 2, 1e-30, 3e38, -3e38, 5])
    yield Case("factors_beyond_the_largest", "a = Mul (x, up)\n b = Mul (a, down)\n y = IsInf (b)", {"x": large}, {"up": np.float32(1000), "down": np.float32(0.001)})
    for kind in ("IsInf", "IsNaN"):  # C's isinf() is -1 of the negative one
        for name, body in (("i16", "i = {} (x)\n y = Cast <to = 5> (i)"), ("i64", "i = {} (x)\n y = Cast <to = 7> (i)"), ("sum", "i = {} (x)\n k = Cast <to = 7> (i)\n y = ReduceSum (k)"),
                           ("equal", "i = {0} (x)\n k = {0} (z)\n y = Equal (i, k)")):
            yield Case(f"mask_{kind.lower()}_as_{name}", body.format(kind), {"x": ends} | ({"z": ends[:, ::-1].copy()} if "z" in body else {}))
    yield Case("mask_of_kinds", "n = IsNaN (x)\n i = IsInf (x)\n o = Or (n, i)\n y = Not (o)", {"x": np.where(numbers == 2, np.inf, numbers).astype(np.float32)})
    for name, to in (("f32", 1), ("i32", 6), ("u8", 2), ("i8", 3), ("i64", 7), ("f16", 10), ("f64", 11)):
        yield Case(f"mask_to_{name}", f"y = Cast <to = {to}> (x)", {"x": a})
    for dtype in (np.float32, np.int32, np.uint8, np.int8, np.int64, np.float16, np.float64):
        yield Case(f"mask_from_{np.dtype(dtype).name}", "y = Cast <to = 9> (x)", {"x": np.nan_to_num(numbers).astype(dtype)})
    yield Case("mask_chosen", "g = Greater (x, z)\n h = Not (g)\n c = And (g, a)\n d = And (h, b)\n y = Or (c, d)", {"x": numbers, "z": np.roll(numbers, 3), "a": a, "b": b})
    yield Case("mask_behind_a_product", "p = MatMul (x, w)\n y = Greater (p, c)", {"x": (9, 20)}, {"w": (20, 37), "c": np.float32(0.1)})
    yield Case("mask_of_rows", "m = ReduceMax <keepdims = 1> (x, r)\n y = Equal (x, m)", {"x": np.nan_to_num(numbers)}, {"r": ints(1)})
    yield Case("mask_large", "g = Greater (x, z)\n y = And (g, m)", {"x": (3, 9001), "z": (3, 9001), "m": rng.integers(0, 2, (3, 9001)).astype(bool)})
    for upper, k in itertools.product((0, 1), (-70, -3, 0, 2, 40, 70)):
        yield Case(f"triangle_{upper}_{k}".replace("-", "m"), f"y = Trilu <upper = {upper}> (x, k)", {"x": (2, 43, 61)}, {"k": np.int64(k)}, nothing=abs(k) == 70)
    yield Case("triangle_of_bools", "y = Trilu (x)", {"x": a})
    yield Case("triangle_of_integers", "y = Trilu <upper = 0> (x)", {"x": np.nan_to_num(numbers).astype(np.int32)})
    yield Case("triangle_of_sums", "s = Add (x, z)\n t = Trilu (s)\n y = Mul (t, z)", {"x": (33, 50), "z": (50,)})


def other_cases():
    """Recurrent operators, quantised ones, and graphs with regions."""
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for direction, d in (("forward", 1), ("bidirectional", 2)):
            yield Case(f"{kind.lower()}_{direction}", f'y, h = {kind} <hidden_size = 21, direction = "{direction}"> (x, w, r, b)', {"x": (9, 3, 13)},
                       {"w": (d, gates * 21, 13), "r": (d, gates * 21, 21), "b": (d, 2 * gates * 21)}, outputs=("y", "h"))
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for linear in ((0, 1) if kind == "GRU" else (0,)):
            yield Case(f"{kind.lower()}_clip_{linear}", f"y = {kind} <hidden_size = 6, clip = 0.4{', linear_before_reset = 1' if linear else ''}> (x, w, r, b)", {"x": (7, 2, 5)},
                       {"w": (1, 6 * gates, 5), "r": (1, 6 * gates, 6), "b": (1, 12 * gates)})
    yield Case("gru_linear_before_reset", "y = GRU <hidden_size = 10, linear_before_reset = 1> (x, w, r, b)", {"x": (5, 2, 7)},
               {"w": (1, 30, 7), "r": (1, 30, 10), "b": (1, 60)})
    yield Case("quantize_dequantize", "q = QuantizeLinear (x, s, z)\n y = DequantizeLinear (q, s, z)", {"x": (9, 33)},
               {"s": np.float32(0.03), "z": np.uint8(128)})
    yield Case("quantize_channels", "q = QuantizeLinear <axis = 1> (x, s, z)\n y = DequantizeLinear <axis = 1> (q, s, z)", {"x": (2, 5, 17)},
               {"s": np.linspace(0.01, 0.05, 5, dtype=np.float32), "z": np.arange(-2, 3, dtype=np.int8)})
    rng = np.random.default_rng(5)
    yield Case("matmul_integer", "y = MatMulInteger (x, w, a, b)", {"x": rng.integers(0, 255, (19, 67)).astype(np.uint8)},
               {"w": rng.integers(-127, 127, (67, 35)).astype(np.int8), "a": np.uint8(120), "b": np.int8(3)})
    yield Case("double_matmul", "y = MatMul (x, w)", {"x": rng.standard_normal((13, 29))}, {"w": rng.standard_normal((29, 17))})
    yield Case("two_outputs", "y = Relu (x)\n z = MatMul (y, w)", {"x": (9, 20)}, {"w": (20, 31)}, outputs=("y", "z"))
    yield Case("input_is_output", "y = Identity (x)", {"x": (5, 3)})


def integer_cases():
    """Chains of whole numbers with shared parts and large values: what a kernel names must keep all 64 bits, and wrap."""
    body = """a = Add (x, y)
b = Mul (a, a)
c = Add (b, a)
d = Mul (c, b)
e = Max (d, c)
f = Sub (e, b)
h = Mul (f, e)
y2 = Add (h, f)"""
    large = {np.int64: [3, -5, 1 << 33, -(1 << 40), (1 << 62) + 7, -(1 << 63), (1 << 63) - 1, 12345678901],
             np.int32: [3, -5, 1 << 20, -(1 << 25), (1 << 30) + 7, -(1 << 31), (1 << 31) - 1, 1234567]}
    for dtype, values in large.items():
        x = np.array(values * 3, dtype)
        yield Case(f"chain_{np.dtype(dtype).name}", body, {"x": x, "y": np.roll(x, 5)}, outputs=("y2",))
    yield Case("int64_min_max", "a = Min (x, y)\nb = Max (a, lo)\nc = Mul (b, b)\nz = Sub (c, b)", {"x": ints(1 << 40, -(1 << 50), 5), "y": ints(1 << 41, 3, 9)},
               {"lo": ints(-(1 << 35))}, outputs=("z",))


def all_cases():
    """Every case; names are distinct."""
    cases = [case for family in (conv_cases, matmul_cases, row_cases, move_cases, elementwise_cases, mask_cases, integer_cases, other_cases)
             for case in family()]
    for module in (control_cases, ml_cases, quantised_cases, few_bits_cases, string_cases, microsoft_cases, window_cases, attention_cases, table_cases, double_cases, half_cases, corner_cases, resize_cases, language_cases):
        cases += [dataclasses.replace(case, only_in_c=case.only_in_c or module is string_cases) for case in module.cases()]
    assert len({case.name for case in cases}) == len(cases)
    return cases
