"""Small models with sizes that ONNX's own suite never has: odd channels, tails of tiles and vectors, uneven windows.

A case is the text of a graph's body, the inputs and the constants with their shapes; numbers are seeded by the case's name.
"""
import dataclasses
import zlib

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

import attention_cases
import microsoft_cases
import ml_cases
import quantised_cases
import window_cases

OPSET, OPSET_ML = 21, 4
NAMES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double", np.dtype(np.int64): "int64",
         np.dtype(np.int32): "int32", np.dtype(np.int8): "int8", np.dtype(np.uint8): "uint8", np.dtype(bool): "bool",
         np.dtype(np.float16): "float16"}


@dataclasses.dataclass
class Case:
    name: str
    body: str  # ONNX text; the last value defined is the output, unless `outputs` names others
    inputs: dict  # name -> shape (float32 numbers) or array
    weights: dict = dataclasses.field(default_factory=dict)
    outputs: tuple = ("y",)
    bar: float = 1e-5  # of the relative error in norm; at worst ten times as much
    counted: bool = False  # the model declares no sizes of its outputs: they depend on data

    def arrays(self, shapes):
        """{name: array}: shapes become seeded numbers, of a size that keeps sums near one."""
        result = {}
        for name, value in shapes.items():
            if isinstance(value, tuple):
                rng = np.random.default_rng(zlib.crc32(f"{self.name}/{name}".encode()))
                scale = 1.0 if shapes is self.inputs or len(value) < 2 else np.sqrt(2.0 / np.prod(value[1:]))
                value = (rng.standard_normal(value) * scale).astype(np.float32)
            result[name] = np.asarray(value)
        return result

    def model(self, output_types):
        """The ONNX model; `output_types` are [(dtype, shape)] of its outputs, or None while they are not known."""
        inputs, weights = self.arrays(self.inputs), self.arrays(self.weights)
        heads = [f"{NAMES[a.dtype]}{list(a.shape) or ''} {n}" for n, a in inputs.items()]
        graph = onnx.parser.parse_graph(f"{self.name} ({', '.join(heads)}) => ({', '.join('float[1] ' + o for o in self.outputs)})"
                                        f" {{ {self.body} }}")
        graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
        for index, value in enumerate(graph.output):
            dtype, shape = output_types[index] if output_types else (np.dtype(np.float32), None)
            shape = [None] * len(shape) if self.counted and shape is not None else shape
            value.CopyFrom(helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(dtype), shape))
            if not output_types:
                value.ClearField("type")
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", OPSET_ML), helper.make_opsetid("com.microsoft", 1)],
                                 ir_version=10)


def ints(*values):
    return np.array(values, np.int64)


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
    for groups, c, m in ((4, 12, 20), (3, 51, 6), (2, 64, 32)):
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
    yield Case("log_softmax", "y = LogSoftmax (x)", {"x": (5, 101)})
    for n in (1, 16, 37, 768):
        yield Case(f"layer_norm_{n}", "y = LayerNormalization (x, s, b)", {"x": (2, 9, n)}, {"s": (n,), "b": (n,)})
    yield Case("layer_norm_two_axes", "y = LayerNormalization <axis = 1> (x, s)", {"x": (3, 9, 11)}, {"s": (9, 11)})
    yield Case("instance_norm", "y = InstanceNormalization (x, s, b)", {"x": (2, 13, 9, 9)}, {"s": (13,), "b": (13,)})
    yield Case("cumsum", "y = CumSum (x, a)", {"x": (5, 23)}, {"a": np.int64(1)})
    yield Case("topk", "y, i = TopK <largest = 1> (x, k)", {"x": (4, 41)}, {"k": ints(5)}, outputs=("y", "i"))
    yield Case("lrn", "y = LRN <size = 5> (x)", {"x": (1, 12, 5, 5)})


def move_cases():
    """Operators that move elements."""
    for name, perm in {"0231": (0, 2, 3, 1), "0312": (0, 3, 1, 2), "3210": (3, 2, 1, 0), "0213": (0, 2, 1, 3)}.items():
        yield Case(f"transpose_{name}", f"y = Transpose <perm = [{','.join(map(str, perm))}]> (x)", {"x": (2, 17, 9, 33)})
    yield Case("concat_middle", "y = Concat <axis = 1> (x, z, x)", {"x": (3, 5, 7), "z": (3, 9, 7)})
    yield Case("split_uneven", "a, b = Split <axis = 2> (x, s)\n y = Concat <axis = 2> (b, a)", {"x": (3, 4, 11)}, {"s": ints(4, 7)})
    yield Case("slice_backwards", "y = Slice (x, s, e, a, t)", {"x": (9, 21)}, {"s": ints(8, 19), "e": ints(0, 2), "a": ints(0, 1), "t": ints(-2, -3)})
    yield Case("gather_rows", "y = Gather (w, i)", {"i": np.array([[3, 0, 99], [-1, 7, 50]], np.int64)}, {"w": (100, 37)})
    yield Case("gather_axis1", "y = Gather <axis = 1> (x, i)", {"x": (4, 9, 13)}, {"i": ints(8, -9, 3)})
    yield Case("gather_elements", "y = GatherElements <axis = 1> (x, i)", {"x": (4, 9), "i": np.arange(12, dtype=np.int64).reshape(4, 3) % 9})
    yield Case("scatter_nd", "y = ScatterND (x, i, u)", {"x": (9, 5), "u": (3, 5)}, {"i": np.array([[1], [4], [8]], np.int64)})
    yield Case("expand_add", "e = Expand (z, s)\n y = Add (x, e)", {"x": (2, 7, 19), "z": (7, 1)}, {"s": ints(2, 7, 19)})
    yield Case("depth_to_space", "y = DepthToSpace <blocksize = 3> (x)", {"x": (1, 27, 5, 4)})
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
    yield Case("where", "c = Greater (x, z)\n y = Where (c, x, z)", {"x": (7, 13), "z": (13,)})
    yield Case("int_arithmetic", "a = Mul (x, z)\n b = Sub (a, x)\n y = Mod (b, m)", {"x": np.arange(-30, 33, dtype=np.int32).reshape(7, 9), "z": np.arange(9, dtype=np.int32)},
               {"m": np.int32(7)})
    yield Case("cast_to_int", "y = Cast <to = 6> (x)", {"x": (37,)})
    yield Case("half", "a = Cast <to = 10> (x)\n b = Mul (a, a)\n y = Cast <to = 1> (b)", {"x": (61,)},
               bar=1e-3)  # a fused chain computes float16 as float32 and rounds when it stores
    yield Case("long_chain", "\n".join(f"t{i + 1} = {op} (t{i}{', c' if op in ('Mul', 'Add') else ''})" for i, op in
                                        enumerate(["Mul", "Tanh", "Add", "Sigmoid", "Mul", "Exp", "Add", "Neg"] * 4)) + "\ny = Identity (t32)",
               {"t0": (19, 21)}, {"c": np.float32(0.3)})


def other_cases():
    """Recurrent operators, quantised ones, and graphs with regions."""
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for direction, d in (("forward", 1), ("bidirectional", 2)):
            yield Case(f"{kind.lower()}_{direction}", f'y, h = {kind} <hidden_size = 21, direction = "{direction}"> (x, w, r, b)', {"x": (9, 3, 13)},
                       {"w": (d, gates * 21, 13), "r": (d, gates * 21, 21), "b": (d, 2 * gates * 21)}, outputs=("y", "h"))
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


def run_time_cases():
    """Parameters that are inputs of the model, which declares the shape of the result."""
    for mode in ("nearest", "linear", "cubic"):
        for transform in ("half_pixel", "asymmetric", "align_corners"):
            # ONNX measures corners by scale * length, ONNX Runtime by the rounded size: the two are one number here.
            shape, scales = ((1, 2, 10, 6), [1, 1, 1.5, 0.5]) if transform == "align_corners" else ((1, 2, 9, 7), [1, 1, 1.7, 0.6])
            yield Case(f"run_time_resize_{mode}_{transform}", f'y = Resize <mode = "{mode}", coordinate_transformation_mode = "{transform}"> (x, , scales)',
                       {"x": shape, "scales": np.array(scales, np.float32)})
    yield Case("run_time_resize_antialias", 'y = Resize <mode = "linear", antialias = 1, axes = [2,3]> (x, , scales)',
               {"x": (1, 3, 21, 16), "scales": np.array([0.3, 0.55], np.float32)})
    yield Case("run_time_col2im", "y = Col2Im <strides = [2,1], pads = [1,0,1,0]> (x, i, b)", {"x": (2, 18, 20), "i": ints(7, 7), "b": ints(2, 3)})
    yield Case("run_time_center_crop_pad", "y = CenterCropPad (x, s)", {"x": (9, 6, 3), "s": ints(4, 11, 3)})
    yield Case("run_time_slice", "y = Slice (x, s, e, a, t)", {"x": (9, 21), "s": ints(-2, 1), "e": ints(0, 20), "a": ints(0, 1), "t": ints(-2, 3)})
    yield Case("run_time_pad", "y = Pad (x, p, v)", {"x": (4, 9), "p": ints(2, 0, 1, 3), "v": np.float32(1.5)})


def counted_cases():
    """Sizes that depend on data and that the model does not declare."""
    rng = np.random.default_rng(9)
    boxes = {"boxes": (rng.random((2, 33, 4)) * 8).astype(np.float32), "scores": rng.random((2, 5, 33)).astype(np.float32)}
    limits = {"limit": ints(7), "iou": np.array([0.3], np.float32), "least": np.array([0.25], np.float32)}
    for form in (0, 1):
        yield Case(f"counted_boxes_{form}", f"y = NonMaxSuppression <center_point_box = {form}> (boxes, scores, limit, iou, least)", boxes, limits, counted=True)
    yield Case("counted_boxes_defaults", "y = NonMaxSuppression (boxes, scores, limit)", boxes, {"limit": ints(40)}, counted=True)
    yield Case("counted_detector", """y = NonMaxSuppression (boxes, scores, limit, iou, least)
k = Gather <axis = 1> (y, bk)
b = GatherND (boxes, k)
s = GatherND (scores, y)
w = MatMul (b, m)
first = Slice (w, zero, five, zero)""", boxes, limits | {"bk": ints(0, 2), "m": np.eye(4, 6, dtype=np.float32), "zero": ints(0), "five": ints(5)},
               outputs=("y", "b", "s", "first"), counted=True)
    sparse = np.round(rng.standard_normal((5, 7, 3)) * 0.6).astype(np.float32)
    # What detectors do behind their heads: the best boxes of each level above a threshold, joined, and no overlaps.
    levels = [f"""a{k} = Greater (s{k}, bar)\n p{k} = NonZero (a{k})\n r{k} = Transpose (p{k})\n v{k} = GatherND (s{k}, r{k})
              q{k} = Squeeze (p{k}, zero)\n n{k} = Shape (q{k})\n m{k} = Concat <axis = 0> (most, n{k})\n k{k} = ReduceMin <keepdims = 0> (m{k})
              j{k} = Reshape (k{k}, one)\n w{k}, i{k} = TopK (v{k}, j{k})\n g{k} = Gather (q{k}, i{k})\n h{k} = Gather (b{k}, g{k})""" for k in (1, 2)]
    head = "\n".join(levels) + """
              boxes = Concat <axis = 0> (h1, h2)\n scores = Concat <axis = 0> (w1, w2)\n top = ReduceMax <keepdims = 0> (boxes)
              moved = Add (boxes, top)\n u = Unsqueeze (moved, zero)\n t = Unsqueeze (scores, both)\n chosen = NonMaxSuppression (u, t, limit, iou)
              last = Gather <axis = 1> (chosen, column)\n keep = Squeeze (last, one_axis)\n y = Gather (boxes, keep)\n z = Gather (scores, keep)"""
    for name, bar in (("some", 0.6), ("few", 0.97), ("all", -1.0)):
        corners = rng.random((2, 30, 2)) * 4
        sides = [np.concatenate([c, c + 1 + rng.random((30, 2))], -1).astype(np.float32) for c in corners]
        yield Case(f"counted_levels_{name}", head, {"s1": rng.random(30).astype(np.float32), "s2": rng.random(30).astype(np.float32),
                                                  "b1": sides[0], "b2": sides[1]},
                   {"bar": np.float32(bar), "zero": ints(0), "one": ints(1), "most": ints(12), "both": ints(0, 1), "limit": ints(40),
                    "iou": np.float32([0.3]), "column": ints(2), "one_axis": ints(1)}, outputs=("y", "z"), counted=True)
    yield Case("counted_nonzero", "y = NonZero (x)\nt = Transpose (y)\nv = GatherND (x, t)\nn = Shape (y)", {"x": sparse}, outputs=("y", "t", "v", "n"), counted=True)
    yield Case("counted_nothing", "y = NonZero (x)\nt = Transpose (y)", {"x": np.zeros((3, 4), np.float32)}, outputs=("y", "t"), counted=True)
    yield Case("counted_unique", "y, i, j, c = Unique <axis = 1> (x)\nz = Neg (y)", {"x": sparse[:, :, 0]}, outputs=("z", "i", "j", "c"), counted=True)
    yield Case("counted_compress", "y = Compress <axis = 2> (x, c)\nz = Mul (y, w)", {"x": (3, 4, 9), "c": rng.random(9) < 0.5}, {"w": (4, 1)}, outputs=("y", "z"),
               counted=True)
    # Rows above a threshold: what people do with them behind a mask.
    rows = "top = ReduceMax <keepdims = 0> (x, last)\n hit = Greater (top, bar)\n at = NonZero (hit)\n k = Squeeze (at, zero)\n v = Gather (x, k)\n"
    table = {"x": (13, 5)}
    fixed = {"last": ints(-1), "zero": ints(0)}
    tails = {
        "merged": ("f = Reshape (v, all)\n m = Greater (f, low)\n j = NonZero (m)\n jj = Squeeze (j, zero)\n y = Gather (f, jj)\n z = Reshape (f, fives)",
                   {"all": ints(-1), "low": np.float32(0.2), "fives": ints(-1, 5)}),
        "transposed": ("t = Transpose (v)\n y = Reshape (t, all)\n h = Reshape (y, halves)\n z = Neg (h)", {"all": ints(-1), "halves": ints(5, -1)}),
        "shapes": ("s = Shape (v)\n n = Gather (s, zero)\n w = Gather (s, one)\n p = Mul (n, w)\n y = Reshape (v, p)\n r = Squeeze (n)\n q = Range (start, r, step)\n"
                   "u = Unsqueeze (q, one)\n uf = Cast <to = 1> (u)\n z = Add (v, uf)", {"one": ints(1), "start": np.int64(0), "step": np.int64(1)}),
        "means": ("y = ReduceMean <keepdims = 0> (v, zero)\n z = ReduceMean (v)", {}),
        "softmax": ("y = Softmax <axis = 0> (v)\n z = CumSum (v, first)", {"first": np.int64(0)}),
        "attention": ("t = Transpose (v)\n s = MatMul (x, t)\n p = Softmax (s)\n y = MatMul (p, v)\n z = MatMul (t, v)", {}),
        "from_end": ("y = Gather (v, ends)\n z = GatherND (v, places)", {"ends": ints(-1, 0), "places": np.array([[-1, -2], [0, 3]], np.int64)}),
    }
    for name, (tail, weights) in tails.items():
        bars = {"some": 0.9, "all": -9} if name in ("means", "softmax", "attention", "from_end") else {"some": 0.9, "all": -9, "none": 9}
        for amount, bar in bars.items():
            yield Case(f"counted_rows_{name}_{amount}", rows + tail, table, fixed | weights | {"bar": np.float32(bar)}, outputs=("y", "z"), counted=True)
    # Bags of rows between offsets, as an exporter's loop has them; slices that run over the border; scattering by a mask.
    bags = """all = Concat <axis = 0> (offsets, total)\n ends = Slice (all, one, many, zero)\n n = Size (ends)
y = Loop (n, yes) <body = b (int64 i, bool go) => (bool on, float[d] row) {
  on = Identity (go)\n s = Gather (all, i)\n e = Gather (ends, i)\n s1 = Unsqueeze (s, zero)\n e1 = Unsqueeze (e, zero)
  k = Slice (indices, s1, e1, zero)\n r = Gather (table, k)\n f = Slice (factors, s1, e1, zero)\n f1 = Unsqueeze (f, one)\n w = Mul (r, f1)
  row = %s <keepdims = 0> (w, zero) }>"""
    for op in ("ReduceSum", "ReduceMean", "ReduceMax"):
        yield Case(f"counted_bags_{op.lower()}", bags % op, {"indices": rng.integers(0, 19, 23), "offsets": ints(0, 4, 5, 17), "factors": (23,)},
                   {"table": (19, 7), "total": ints(23), "zero": ints(0), "one": ints(1), "many": ints(2 ** 62), "yes": np.bool_(True)}, counted=True)
    for name, start, end in (("inside", 3, 8), ("negative", -5, -1), ("over", 9, 99), ("nothing", 6, 2), ("before", -99, 4)):
        yield Case(f"counted_slice_{name}", "y = Slice (x, s, e, a)\n z = ReduceSum (y, a)\n d = Mul (x, x)\n f = Slice (d, s, e, a)\n g = Add (f, y)",
                   {"x": (4, 11), "s": ints(start), "e": ints(end)}, {"a": ints(1)}, outputs=("y", "z", "g"), counted=True)
    yield Case("counted_masked_scatter", """e = NonZero (m)\n p = Transpose (e)\n s = Shape (p)\n n = Gather (s, zero)\n flat = Reshape (z, open)
part = Slice (flat, zero, n, zero)\n y = ScatterND (x, p, part)""", {"x": (5, 7), "z": (6, 6), "m": rng.random((5, 7)) < 0.4},
               {"zero": ints(0), "open": ints(-1)})
    yield Case("counted_in_a_branch", rows + """y = If (yes) <then_branch = t () => (float[5] a) { a = ReduceSum <keepdims = 0> (v, zero) },
else_branch = f () => (float[5] b) { b = ReduceMax <keepdims = 0> (v, zero) }>""", table | {"yes": np.bool_(False)}, fixed | {"bar": np.float32(0.9)})


def sequence_cases():
    """Sequences whose contents are known while compiling."""
    yield Case("sequence_of_parts", "s = SplitToSequence <axis = 1> (x, n)\na = SequenceAt (s, last)\nt = SequenceInsert (s, a, one)\nu = SequenceErase (t, last)\n"
               "y = ConcatFromSequence <axis = 1> (u)\nl = SequenceLength (u)", {"x": (3, 11, 2)}, {"n": np.int64(4), "last": np.int64(-1), "one": np.int64(1)},
               outputs=("y", "a", "l"))
    yield Case("sequence_of_slices", "s = SplitToSequence <axis = 0, keepdims = 0> (x)\ny = ConcatFromSequence <axis = -1, new_axis = 1> (s)", {"x": (4, 3, 5)})
    yield Case("sequence_of_sizes", "s = SplitToSequence <axis = -1> (x, n)\ny = SequenceAt (s, one)", {"x": (3, 9)}, {"n": ints(2, 4, 3), "one": np.int64(1)})
    yield Case("sequence_in_a_loop", """e = SequenceEmpty ()
s = SplitToSequence <axis = 0> (x)
n = SequenceLength (s)
t, rows = Loop (n, , e) <body = b (int64 i, bool go, seq(float[1,5]) held) => (bool on, seq(float[1,5]) more, float[1,5] row) {
  on = Identity(go)  v = SequenceAt(s, i)  f = Cast <to = 1> (i)  row = Mul(v, f)  more = SequenceInsert(held, row, front) }>
y = ConcatFromSequence <axis = 0> (t)""", {"x": (4, 5)}, {"front": np.int64(0)}, outputs=("y", "rows"))


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


def loop_cases():
    """Loops that run when the model runs: ends that depend on data, states that swap, loops and decisions in bodies."""
    yield Case("loop_newton", """
        root, steps = Loop (, , a, zero) <body = step (int64 i, bool c, float[7] x, int64 n) => (bool go, float[7] x2, int64 n2) {
          xx = Mul(x, x)  r = Sub(xx, a)  d = Mul(x, two)  q = Div(r, d)  x2 = Sub(x, q)
          size = Abs(q)  m = ReduceMax <keepdims = 0> (size)  go = Greater(m, eps)  n2 = Add(n, one) }>
        y = Mul(root, root)""", {"a": np.linspace(0.5, 9, 7, dtype=np.float32)},
               {"zero": np.int64(0), "one": np.int64(1), "two": np.float32(2), "eps": np.float32(1e-3)}, outputs=("root", "steps", "y"))
    for name, trips, go in (("runs", 5, True), ("never_starts", 5, False), ("no_trips", 0, True), ("negative", -2, True)):
        yield Case(f"loop_{name}", """
            y, z, sum = Loop (m, go, x, w, n) <body = b (int64 i, bool c, float[3,5] p, float[3,5] q, int64 k) => (bool d, float[3,5] r, float[3,5] s, int64 l) {
              d = Identity(c)  r = Identity(q)  s = Identity(p)  l = Add(k, i) }>""",
                   {"x": (3, 5), "w": (3, 5), "m": np.int64(trips), "go": np.bool_(go), "n": np.int64(3)}, outputs=("y", "z", "sum"))
    yield Case("loop_rotation_with_capture", """
        e = Exp (x)
        a, b, c, all = Loop (four, , x, z, w) <body = t (int64 i, bool go, float[6] p, float[6] q, float[6] r) => (bool on, float[6] q1, float[6] r1, float[6] n, float[6] o) {
          on = Identity(go)  q1 = Identity(q)  r1 = Identity(r)  m = Mul(p, e)  n = Tanh(m)  o = Identity(p) }>""",
               {"x": (6,), "z": (6,), "w": (6,)}, {"four": np.int64(4)}, outputs=("a", "b", "c", "all"))
    yield Case("loop_declared_length", """
        y, ys = Loop (m, , x) <body = t (int64 i, bool go, float[4] s) => (bool on, float[4] n, float[4] o) {
          on = Identity(go)  f = Cast <to = 1> (i)  n = Add(s, f)  o = Mul(n, x) }>""",
               {"x": (4,), "m": np.int64(6)}, outputs=("y", "ys"))
    yield Case("loop_stops_in_time", """
        y, ys = Loop (m, go, x) <body = t (int64 i, bool c, float[4] s) => (bool on, float[4] n, float[4] o) {
          n = Add(s, x)  sum = ReduceSum <keepdims = 0> (n)  on = Less(sum, limit)  o = Neg(s) }>""",
               {"x": np.float32([0.5, 1, 0.25, 2]), "m": np.int64(100), "go": np.bool_(True)}, {"limit": np.float32(12)}, outputs=("y", "ys"))
    yield Case("loop_greedy_decoding", """
        last, state, tokens = Loop (steps, , start, h0) <body = t (int64 i, bool c, int64 token, float[1,24] h) => (bool on, int64 next, float[1,24] h2, int64 said) {
          row = Gather(embedding, token)  x = Unsqueeze(row, axis)  a = MatMul(x, wx)  b = MatMul(h, wh)  s = Add(a, b)  h2 = Tanh(s)
          logits = MatMul(h2, head)  best = ArgMax <axis = 1, keepdims = 0> (logits)  next = Squeeze(best)  said = Identity(token)  on = Identity(c) }>""",
               {"start": np.int64(3), "h0": (1, 24)},
               {"steps": np.int64(12), "embedding": (40, 16), "axis": ints(0), "wx": (16, 24), "wh": (24, 24), "head": (24, 40)},
               outputs=("last", "state", "tokens"))
    yield Case("loop_in_loop", """
        a, all = Loop (m, , x) <body = outer (int64 i, bool c, float[3] s) => (bool on, float[3] t, float[2,3] rows) {
          t, rows = Loop (two, , s) <body = inner (int64 j, bool e, float[3] p) => (bool f, float[3] q, float[3] r) {
            ij = Mul(i, j)  k = Add(ij, i)  g = Cast <to = 1> (k)  h = Mul(p, w)  q = Add(h, g)  r = Sub(p, s)  f = Identity(e) }>
          on = Identity(c) }>""", {"x": (3,), "m": np.int64(3), "w": (3,)}, {"two": np.int64(2)}, outputs=("a", "all"))
    yield Case("loop_with_decision", """
        y = Loop (ten, , x) <body = t (int64 i, bool c, float[5] s) => (bool on, float[5] n) {
          sum = ReduceSum <keepdims = 0> (s)  large = Greater(sum, limit)
          n = If (large) <then_branch = yes () => (float[5] a) { a = Mul(s, shrink) }, else_branch = no () => (float[5] b) { d = Mul(s, grow)  b = Add(d, x) }>
          on = Identity(c) }>""", {"x": np.float32([0.5, 1, 0.25, 2, 1])},
               {"ten": np.int64(10), "limit": np.float32(20), "shrink": np.float32(0.25), "grow": np.float32(1.5)})
    yield Case("loop_in_decision", """
        n = ReduceSum <keepdims = 0> (x)  up = Greater(n, zero)
        y = If (up) <then_branch = yes () => (float[5] a) {
            a = Loop (m, , x) <body = t (int64 i, bool c, float[5] s) => (bool on, float[5] o) { o = Add(s, x)  on = Identity(c) }> },
          else_branch = no () => (float[5] b) { b = Neg(x) }>""", {"x": np.float32([0.5, 1, -0.25, 2, 1]), "m": np.int64(4)}, {"zero": np.float32(0)})
    yield Case("loop_once_in_scan_of_one", """
        last, ys = Scan (h0, x) <num_scan_inputs = 1, scan_output_axes = [-1], body = cell (float[5] s, float[3,5] xt) => (float[5] t, float[3,5] o) {
          u, all = Loop (one, , s) <body = b (int64 i, bool c, float[5] p) => (bool d, float[5] q, float[5] r) { d = Identity(z)  q = Exp(p)  r = Add(p, p) }>
          v = Add(u, all)  t = Squeeze(v, axis)  o = Add(xt, t) }>""", {"h0": (5,), "x": (1, 3, 5), "z": np.bool_(True)}, {"one": np.int64(1), "axis": ints(0)}, outputs=("last", "ys"))
    yield Case("loop_numbers", """
        last, all, again = Loop (m, , n) <body = t (int64 i, bool c, int64 s) => (bool on, int64 next, int64 o, int64 p) {
          on = Identity(c)  next = Identity(i)  o = Identity(i)  p = Add(i, s) }>""", {"m": np.int64(7), "n": np.int64(40)}, outputs=("last", "all", "again"))
    yield Case("loop_long", "y = Loop (n, , x) <body = t (int64 i, bool c, float[5] s) => (bool on, float[5] o) "
               "{ f = Cast <to = 1> (i)  g = Mul(f, small)  a = Add(s, g)  o = Mul(a, keep)  on = Identity(c) }>", {"x": (5,)},
               {"n": np.int64(3000), "small": np.float32(1e-3), "keep": np.float32(0.99)})
    yield Case("scan_rnn_cell", """
        h, ys = Scan (h0, x) <num_scan_inputs = 1, body = cell (float[2,12] s, float[2,7] xt) => (float[2,12] t, float[2,12] o) {
          a = MatMul(xt, wx)  b = MatMul(s, wh)  c = Add(a, b)  t = Tanh(c)  o = Identity(t) }>""", {"h0": (2, 12), "x": (9, 2, 7)},
               {"wx": (7, 12), "wh": (12, 12)}, outputs=("h", "ys"))
    yield Case("scan_two_states_reversed_axis", """
        h, g, ys, zs = Scan (h0, g0, x, z) <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0], scan_output_axes = [1, -1],
            scan_output_directions = [1, 0], body = cell (float[6,3] s, float[6,3] u, float[6,3] xt, float[3] zt) => (float[6,3] s2, float[6,3] u2, float[6,3] o, float[6,3] q) {
          a = Add(s, xt)  b = Mul(a, zt)  u2 = Identity(s)  s2 = Add(b, u)  o = Sub(u, b)  q = Identity(u) }>""",
               {"h0": (6, 3), "g0": (6, 3), "x": (6, 5, 3), "z": (5, 3)}, outputs=("h", "g", "ys", "zs"))
    yield Case("scan_of_scan", """
        t, ys = Scan (s0, x) <num_scan_inputs = 1, body = rows (float s, float[6] row) => (float s2, float[6] o) {
          s2, o = Scan (s, row) <num_scan_inputs = 1, scan_output_directions = [1], body = cells (float p, float v) => (float q, float w) { m = Mul(p, half)  q = Add(m, v)  w = Identity(q) }> }>""",
               {"s0": (), "x": (4, 6)}, {"half": np.float32(0.5)}, outputs=("t", "ys"))
    yield Case("scan_without_states", "y = Scan (x) <num_scan_inputs = 1, scan_input_axes = [-1], body = b (float[4] p) => (float[4] o) { o = Softmax <axis = 0> (p) }>", {"x": (4, 9)})


def all_cases():
    """Every case; names are distinct."""
    cases = [case for family in (conv_cases, matmul_cases, row_cases, move_cases, elementwise_cases, integer_cases, run_time_cases,
                                 counted_cases, sequence_cases, other_cases, loop_cases)
             for case in family()]
    cases += ml_cases.ml_cases(Case)
    cases += quantised_cases.quantised_cases(Case)
    cases += microsoft_cases.microsoft_cases(Case)
    cases += window_cases.window_cases(Case, ints)
    cases += attention_cases.attention_cases(Case)
    assert len({case.name for case in cases}) == len(cases)
    return cases
