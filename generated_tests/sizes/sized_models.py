"""Models with symbolic sizes: name, model, the ranges of the sizes."""
import numpy as np
import across_models
import attention_models
import beside_models
import cached_models
import endless_attention
import inner_models
import lookup_models
import loop_models
import mask_models
import open_models
import prefix_models
from endless_models import every_second, few_channels, fresh_states, last_input, last_rows, masked, newer_trees, numbered, overhang, parts_of_vectors, pointwise, rows, scanned_columns, summed, thirds, trees, words
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """A model that is written down node by node."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.imports = {"": 18, "com.microsoft": 1}

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def weight(self, *shape, scale=0.3):
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def scalar(self, value, dtype=np.float32):
        return self.constant(np.array(value, dtype))

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [f"{kind.lower()}{len(self.nodes)}_{k}" if outputs > 1 else f"{kind.lower()}{len(self.nodes)}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, name, dtype=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, dtype, None))

    def model(self, name):
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)
        imports = [helper.make_opsetid(domain, version) for domain, version in self.imports.items()]
        return helper.make_model(graph, opset_imports=imports, ir_version=9)


def convolutions(b):
    x = b.input("x", ["batch", 3, 12, 12])
    y = b.op("Relu", b.op("Conv", x, b.weight(16, 3, 3, 3), b.weight(16), pads=[1, 1, 1, 1]))
    y = b.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = b.op("Add", y, b.op("Conv", y, b.weight(16, 1, 3, 3), pads=[1, 1, 1, 1], group=16))
    y = b.op("BatchNormalization", y, b.weight(16), b.weight(16), b.weight(16), b.constant(np.full(16, 0.7, np.float32)))
    y = b.op("Flatten", b.op("GlobalAveragePool", y))
    b.output(b.op("Softmax", b.op("Gemm", y, b.weight(16, 10), b.weight(10))))


def interleaved(b):
    """Channels first outside, last inside: instructions that interleave, and borders."""
    y = b.input("x", ["batch", 3, 32, 32])
    for inside, outside in ((3, 8), (8, 8), (8, 2)):
        y = b.op("Relu", b.op("Conv", y, b.weight(outside, inside, 3, 3), pads=[1, 1, 1, 1]))
    b.output(y)


def dense(b):
    x = b.input("x", ["batch", 33])
    y = b.op("Tanh", b.op("Gemm", x, b.weight(33, 50), b.weight(50)))
    b.output(b.op("MatMul", y, b.weight(50, 7)))
    b.output(b.op("ArgMax", y, axis=1, keepdims=0), TensorProto.INT64)


def no_elements(b):
    """Tensors of nothing, however many rows there are: places of memory that are apart all the same."""
    x, t = b.input("x", [5, "n", 0]), b.input("t", ["n", 3])
    b.output(b.op("Relu", x))
    values, at = b.op("TopK", t, b.ints(0), outputs=2)
    b.output(values)
    b.output(at, TensorProto.INT64)


def recurrent(b):
    x = b.input("x", [6, "batch", 5])
    y, h, c = b.op("LSTM", x, b.weight(2, 28, 5), b.weight(2, 28, 7), b.weight(2, 56), outputs=3, hidden_size=7, direction="bidirectional")
    b.output(y)
    b.output(h)


def recurrent_steps(b):
    x = b.input("x", [4, "batch", 5])
    y, h = b.op("GRU", x, b.weight(1, 21, 5), b.weight(1, 21, 7), b.weight(1, 42), outputs=2, hidden_size=7, linear_before_reset=1)
    b.output(y)
    b.output(h)


def reductions(b):
    x = b.input("x", [3, "n", 4])
    for kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd"):
        b.output(b.op(kind, x, b.ints(1), keepdims=0))
    b.output(b.op("Softmax", x, axis=1))
    b.output(b.op("CumSum", x, b.scalar(1, np.int64)))
    b.output(b.op("ArgMax", x, axis=1), TensorProto.INT64)
    least = b.op("Cast", b.op("Mul", x, b.scalar(0.0)), to=TensorProto.UINT8)
    b.output(b.op("ArgMax", least, axis=1, select_last_index=1), TensorProto.INT64)
    b.output(b.op("ArgMin", b.op("Add", least, b.scalar(255, np.uint8)), axis=-2, keepdims=0, select_last_index=1), TensorProto.INT64)
    b.output(b.op("Size", x), TensorProto.INT64)
    b.output(b.op("Shape", x), TensorProto.INT64)
    most, places = b.op("TopK", x, b.ints(2), outputs=2, axis=-1)
    b.output(most)
    b.output(places, TensorProto.INT64)


def positions(b):
    x = b.input("x", ["n", 5])
    b.output(b.op("Gather", x, b.ints(-1, 0)))
    n = open_models.size(b, x, 0)
    b.output(b.op("Range", b.scalar(0, np.int64), b.op("Squeeze", n), b.scalar(1, np.int64)), TensorProto.INT64)
    b.output(b.op("Expand", b.weight(1, 5), b.op("Concat", n, b.ints(5), axis=0)))
    b.output(b.op("Concat", x, b.weight(2, 5), x, axis=0))
    b.output(b.op("Slice", x, b.ints(0), b.op("Sub", n, b.ints(1)), b.ints(0)))


def two_sizes(b):
    x, z = b.input("x", ["a", "b", 6]), b.input("z", ["b", 6])
    y = b.op("Add", x, z)
    b.output(y)
    b.output(b.op("MatMul", y, b.op("Transpose", z, perm=[1, 0])))
    b.output(b.op("Transpose", y, perm=[2, 1, 0]))
    b.output(b.op("ReduceSum", y, b.ints(0, 1), keepdims=0))


def causal(b):
    x = b.input("x", ["n", 8])
    n = b.op("Squeeze", open_models.size(b, x, 0))
    steps = b.op("Range", b.scalar(0, np.int64), n, b.scalar(1, np.int64))
    later = b.op("Greater", b.op("Unsqueeze", steps, b.ints(0)), b.op("Unsqueeze", steps, b.ints(1)))
    scores = b.op("MatMul", x, b.op("Transpose", x, perm=[1, 0]))
    weights = b.op("Softmax", b.op("Where", later, b.scalar(-1e9), scores), axis=-1)
    b.output(b.op("MatMul", weights, x))


def contrib(b):
    x = b.input("x", ["batch", "seq", 16])
    y = b.op("Gelu", x, domain="com.microsoft")
    y = b.op("SkipLayerNormalization", y, x, b.weight(16), b.weight(16), domain="com.microsoft")
    b.output(b.op("FusedMatMul", y, b.weight(16, 9), domain="com.microsoft", alpha=0.5))


def optimized(b):
    """What ONNX Runtime's optimizers make of transformers and of images."""
    ids, mask = b.input("ids", ["batch", "seq"], TensorProto.INT32), b.input("mask", ["batch", "seq"], TensorProto.INT32)
    y, lengths = b.op("EmbedLayerNormalization", ids, "", b.weight(40, 16), b.weight(64, 16), "", b.weight(16), b.weight(16), mask, domain="com.microsoft", outputs=2)
    b.output(lengths, TensorProto.INT32)
    z = b.op("Attention", y, b.weight(16, 48), b.weight(48), domain="com.microsoft", num_heads=2)
    y = b.op("SkipLayerNormalization", y, z, b.weight(16), b.weight(16), domain="com.microsoft")
    q, k, v = (b.op("MatMul", y, b.weight(16, 16)) for _ in range(3))
    b.output(b.op("MultiHeadAttention", q, k, v, domain="com.microsoft", num_heads=2))
    x = b.input("x", ["batch", 3, "seq", 6])
    b.output(b.op("FusedConv", x, b.weight(8, 3, 3, 3), b.weight(8), domain="com.microsoft", activation="Relu", pads=[1, 1, 1, 1]))


def halves(b):
    x = b.input("x", ["batch", 3, 8], TensorProto.FLOAT16)
    w = b.constant((b.random.standard_normal((8, 5)) * 0.3).astype(np.float16))
    b.output(b.op("Relu", b.op("MatMul", x, w)), TensorProto.FLOAT16)


def quantised(b):
    x = b.input("x", ["batch", 20])
    scale, zero = b.scalar(0.05), b.scalar(3, np.int8)
    w = b.constant(b.random.integers(-100, 100, (20, 12)).astype(np.int8))
    q = b.op("DequantizeLinear", b.op("QuantizeLinear", x, scale, zero), scale, zero)
    y = b.op("MatMul", q, b.op("DequantizeLinear", w, b.scalar(0.01), b.scalar(0, np.int8)))
    b.output(b.op("DequantizeLinear", b.op("QuantizeLinear", y, scale, zero), scale, zero))


def same_again(b):
    """Outputs that are what they are made of, to the size that it has anyway; they are read again."""
    x, z = b.input("x", ["n", 3]), b.input("z", ["n", 2, "m"])
    y = b.op("Expand", x, b.op("Shape", x))
    v = b.op("Expand", b.op("Transpose", z, perm=[1, 2, 0]), b.op("Concat", b.ints(1), open_models.size(b, z, 2), open_models.size(b, x, 0), axis=0))
    b.output(y)
    b.output(v)
    b.output(b.op("ConstantOfShape", b.op("Shape", y)))
    b.output(b.op("Shape", v), TensorProto.INT64)


def loops(b):
    """A size is a trip count, a state's first value, an output, and read in a body."""
    x = b.input("x", ["n"])
    n = b.op("Squeeze", b.op("Shape", x))

    def value(name, dtype, *shape):
        return helper.make_tensor_value_info(name, dtype, shape)

    nodes = [helper.make_node(kind, inputs, [name], **attributes) for kind, inputs, name, attributes in (
        ("Identity", ["go"], "on", {}), ("Sub", ["left", "i"], "less", {}), ("Cast", ["less"], "f", {"to": 1}), ("Cast", [n], "all", {"to": 1}),
        ("Mul", ["f", "all"], "g", {}), ("Add", ["sum", "g"], "next", {}))]
    inputs = [value("i", TensorProto.INT64), value("go", TensorProto.BOOL), value("left", TensorProto.INT64), value("sum", TensorProto.FLOAT, 5)]
    outputs = [value("on", TensorProto.BOOL), value("less", TensorProto.INT64), value("next", TensorProto.FLOAT, 5)]
    left, total = b.op("Loop", n, "", n, b.weight(5), outputs=2, body=helper.make_graph(nodes, "body", inputs, outputs))
    b.output(left, TensorProto.INT64)
    b.output(total)
    b.output(b.op("Identity", n), TensorProto.INT64)
    b.output(b.op("Relu", x))


def appended(b):
    """The size of an input is the sum of two others'."""
    past, x, mask = b.input("past", ["past", 4]), b.input("x", ["seq", 4]), b.input("mask", ["past + seq"], TensorProto.INT64)
    y = b.op("Concat", past, b.op("Tanh", x), axis=0)
    b.output(b.op("Mul", y, b.op("Unsqueeze", b.op("Cast", mask, to=1), b.ints(1))))
    b.output(b.op("MatMul", x, b.weight(4, 3)))


def images(b):
    """A small residual network over images of any size."""
    x = b.input("x", ["batch", 3, "h", "w"])
    y = b.op("Relu", b.op("Conv", x, b.weight(16, 3, 3, 3), b.weight(16), strides=[2, 2], pads=[1, 1, 1, 1]))
    y = b.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    z = b.op("Relu", b.op("Conv", y, b.weight(16, 1, 5, 5), pads=[2, 2, 2, 2], group=16))
    y = b.op("Relu", b.op("Add", y, b.op("Conv", z, b.weight(16, 16, 3, 3), b.weight(16), pads=[1, 1, 1, 1])))
    z = b.op("Conv", y, b.weight(24, 16, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    y = b.op("Add", z, b.op("Conv", b.op("AveragePool", y, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), b.weight(24, 16, 1, 1)))
    b.output(y)
    b.output(b.op("Gemm", b.op("Flatten", b.op("GlobalAveragePool", b.op("Relu", y))), b.weight(24, 5)))


def windows_beyond_the_input(b):
    """Rounded up, a kernel may be longer than the input with its padding, by less than a stride."""
    x = b.input("x", [2, 3, "h", "w"])
    b.output(b.op("MaxPool", x, kernel_shape=[3, 4], strides=[3, 4], ceil_mode=1))
    b.output(b.op("AveragePool", x, kernel_shape=[3, 4], strides=[3, 4], ceil_mode=1))
    b.output(b.op("AveragePool", x, kernel_shape=[4, 3], pads=[1, 1, 0, 0], strides=[3, 2], ceil_mode=1, count_include_pad=1))


def pools(b):
    x = b.input("x", [2, 3, "h", "w"])
    b.output(b.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 1]))
    b.output(b.op("AveragePool", x, kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 2], count_include_pad=1))
    b.output(b.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 0, 0], strides=[2, 2], ceil_mode=1, count_include_pad=1))
    b.output(b.op("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1], auto_pad="SAME_LOWER"))
    b.output(b.op("MaxPool", x, kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1, dilations=[1, 2]))
    b.output(b.op("LpPool", x, kernel_shape=[2, 2], strides=[2, 1]))
    b.output(b.op("GlobalMaxPool", x))
    b.output(b.op("GlobalLpPool", x))
    b.output(b.op("ConvTranspose", x, b.weight(3, 4, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]))
    b.output(b.op("ConvTranspose", x, b.weight(3, 2, 4, 2), b.weight(2), strides=[2, 1], auto_pad="SAME_UPPER"))
    b.output(b.op("Conv", x, b.weight(4, 3, 4, 3), auto_pad="SAME_UPPER"))
    b.output(b.op("Size", x), TensorProto.INT64)


def hourglass(b, height="4*h", width="4*w"):
    """Down and up again, with what was before beside it: sizes are multiples of 4."""
    x = b.input("x", [1, 4, height, width])
    a = b.op("Relu", b.op("Conv", x, b.weight(8, 4, 3, 3), pads=[1, 1, 1, 1]))
    c = b.op("Relu", b.op("Conv", b.op("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2]), b.weight(12, 8, 3, 3), auto_pad="SAME_UPPER"))
    d = b.op("Relu", b.op("Conv", c, b.weight(12, 12, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2]))
    up = b.op("ConvTranspose", d, b.weight(12, 6, 2, 2), strides=[2, 2])
    y = b.op("Conv", b.op("Concat", up, c, axis=1), b.weight(8, 18, 3, 3), pads=[1, 1, 1, 1])
    sizes = b.op("Concat", b.ints(1, 8), b.op("Slice", b.op("Shape", a), b.ints(2), b.ints(4)), axis=0)
    y = b.op("Add", b.op("Resize", y, "", "", sizes, mode="linear", coordinate_transformation_mode="pytorch_half_pixel"), a)
    b.output(y)
    b.output(b.op("DepthToSpace", y, blocksize=2))
    b.output(b.op("SpaceToDepth", y, blocksize=4))


def resized(b):
    x = b.input("x", [1, 2, "h", "w"])
    for mode, coordinates, scale in (("nearest", "asymmetric", 2), ("nearest", "half_pixel", 1.5), ("linear", "half_pixel", 2), ("linear", "asymmetric", 0.5),
                                     ("cubic", "half_pixel", 2), ("cubic", "half_pixel", 0.75), ("nearest", "asymmetric", 0.5)):
        attributes = {"nearest_mode": "floor"} if mode == "nearest" else {}
        b.output(b.op("Resize", x, "", b.constant(np.array([1, 1, scale, scale], np.float32)), mode=mode, coordinate_transformation_mode=coordinates, **attributes))


def padded(b):
    x = b.input("x", [2, "h", "w"])
    b.output(b.op("Pad", x, b.ints(0, 1, 0, 0, 2, 3)))
    b.output(b.op("Pad", x, b.ints(0, 1, -1, 0, 0, 3), b.scalar(2.5)))
    b.output(b.op("Pad", x, b.ints(0, 2, 1, 1, 2, 3), mode="edge"))
    b.output(b.op("Pad", x, b.ints(1, 2, 0, 0, 3, 2), mode="reflect"))


def normalised(b):
    x = b.input("x", ["batch", 6, "h", 5])
    b.output(b.op("InstanceNormalization", x, b.weight(6), b.weight(6)))
    y = b.op("Conv", x, b.weight(6, 6, 3, 3), pads=[1, 1, 1, 1])
    b.output(b.op("ReduceMean", y, b.ints(0, 2, 3)))
    shape = b.op("Slice", b.op("Shape", x), b.ints(1), b.ints(4))
    scale = b.op("Expand", b.weight(6, 1, 5), shape)
    b.output(b.op("LayerNormalization", x, scale, scale, axis=1))
    b.output(b.op("LayerNormalization", y, b.op("Expand", b.weight(1, 5), b.op("Slice", shape, b.ints(1), b.ints(3))), axis=-2, epsilon=1e-3))
    flat = b.op("Reshape", y, b.ints(0, 3, -1))
    b.output(b.op("Reshape", b.op("InstanceNormalization", flat, b.weight(3), b.weight(3)), b.op("Shape", y)))


def flattened(b):
    """Two sizes in one axis, and apart again."""
    x = b.input("x", ["batch", "seq", 12])
    y = b.op("Relu", b.op("Gemm", b.op("Reshape", x, b.ints(-1, 12)), b.weight(12, 20), b.weight(20)))
    b.output(b.op("ReduceMax", y, b.ints(0), keepdims=0))
    sizes = b.op("Concat", b.op("Slice", b.op("Shape", x), b.ints(0), b.ints(2)), b.ints(20), axis=0)
    b.output(b.op("Softmax", b.op("Reshape", y, sizes), axis=1))
    b.output(y)


def boxes(b):
    """The head of a detector: places of two maps in one list."""
    x = b.input("x", ["batch", 8, "h", "w"])
    lists = []
    for stride in (1, 2):
        y = b.op("Conv", x, b.weight(6, 8, 3, 3), pads=[1, 1, 1, 1], strides=[stride, stride])
        lists.append(b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 3, 1]), b.ints(0, -1, 3)))
    y = b.op("Sigmoid", b.op("Concat", *lists, axis=1))
    b.output(y)
    b.output(b.op("ArgMax", y, axis=1, keepdims=0), TensorProto.INT64)


def lines_of_text(b):
    """Convolutions over a line of any width, then a recurrent network along it."""
    x = b.input("x", ["batch", 1, 8, "width"])
    y = b.op("Relu", b.op("Conv", x, b.weight(6, 1, 3, 3), pads=[1, 1, 1, 1]))
    y = b.op("MaxPool", y, kernel_shape=[8, 2], strides=[8, 2])
    y = b.op("Transpose", b.op("Squeeze", y, b.ints(2)), perm=[2, 0, 1])
    for kind, gates in (("LSTM", 4), ("GRU", 3)):
        y, h = b.op(kind, y, b.weight(2, 5 * gates, y and (6 if kind == "LSTM" else 10)), b.weight(2, 5 * gates, 5), b.weight(2, 10 * gates), outputs=2, hidden_size=5, direction="bidirectional")
        y = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.ints(0, 0, -1))
        b.output(h)
    b.output(b.op("LogSoftmax", b.op("MatMul", y, b.weight(10, 7)), axis=2))


def integers(b):
    x = b.input("x", [1, 4, "h", 6])
    q, scale, zero = b.op("DynamicQuantizeLinear", x, outputs=3)
    b.output(q, TensorProto.UINT8)
    b.output(scale)
    # Two products of bytes fit into 16 bits, where ONNX Runtime adds them on processors without VNNI.
    w = b.constant(b.random.integers(-60, 60, (5, 4, 3, 3)).astype(np.int8))
    b.output(b.op("ConvInteger", q, w, zero, pads=[1, 1, 1, 1], strides=[2, 1]), TensorProto.INT32)
    fixed, one = b.scalar(0.02), b.scalar(120, np.uint8)
    y = b.op("QLinearConv", b.op("QuantizeLinear", x, fixed, one), fixed, one, w, b.scalar(0.01), b.scalar(0, np.int8), b.scalar(0.05), b.scalar(100, np.uint8), pads=[1, 1, 1, 1])
    b.output(y, TensorProto.UINT8)


def filters(b):
    """A filter a channel, whose tiles reach over several rows of a narrow image."""
    x = b.input("x", [3, 6, "h", "h"])
    scale, zero = b.scalar(0.02), b.scalar(153, np.uint8)
    w = b.constant(b.random.integers(-60, 60, (12, 1, 3, 3)).astype(np.int8))
    scales = b.constant(b.random.choice([0.01, 0.05, 0.1], 12).astype(np.float32))
    y = b.op("QLinearConv", b.op("QuantizeLinear", x, scale, zero), scale, zero, w, scales, b.constant(np.zeros(12, np.int8)), b.scalar(0.5), b.scalar(120, np.uint8),
             b.constant(b.random.integers(-900, 900, 12).astype(np.int32)), group=6, dilations=[2, 1], pads=[2, 1, 2, 2], strides=[2, 2])
    b.output(y, TensorProto.UINT8)


def known_sizes(b):
    """What is asked for is known; the size beside it is counted by a quotient that nobody else reads."""
    x = b.input("x", ["n", 8, "m", 9])
    y = b.op("Resize", x, "", b.constant(np.array([1, 1, 0.5, 2], np.float32)), mode="linear")
    b.output(b.op("Cast", open_models.size(b, y, 1), to=TensorProto.FLOAT))
    z = b.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 1], pads=[1, 0, 1, 0])
    b.output(b.op("Cast", b.op("Slice", b.op("Shape", z), b.ints(1), b.ints(2)), to=TensorProto.FLOAT))
    b.output(b.op("Relu", z))
    b.output(b.op("Add", y, y))


def experts(b):
    """Mixtures of experts as ONNX Runtime's builder of language models writes them: floats, then weights of 4 bits."""
    x = b.input("x", ["batch", "seq", 32])
    gated = dict(k=2, activation_type="swiglu", swiglu_fusion=1, normalize_routing_weights=1, domain="com.microsoft")

    def router(x):
        return b.op("Reshape", b.op("MatMul", x, b.weight(32, 5)), b.ints(-1, 5))

    y = b.op("MoE", x, router(x), b.weight(5, 96, 32), b.weight(5, 96), b.weight(5, 32, 48), b.weight(5, 32), **gated)
    x = b.op("Add", x, y)

    def few(columns, depth):
        scales = (b.random.random((5, columns, depth // 16)) * 0.1).astype(np.float32)
        return b.constant(b.random.integers(0, 256, (5, columns, depth // 2)).astype(np.uint8)), b.constant(scales)

    y = b.op("QMoE", x, router(x), *few(96, 32), "", *few(32, 48), expert_weight_bits=4, block_size=16, **gated)
    b.output(b.op("Add", x, y))


def corners(b):
    x = b.input("x", ["n", "m"])
    b.output(b.op("Trilu", x, upper=0))
    b.output(b.op("Mul", x, b.op("EyeLike", x)))


ALL = prefix_models.BOUNDED + mask_models.BOUNDED + [
    (convolutions, {"batch": (1, 9)}), (dense, {"batch": (1, 70)}), (dense, {"batch": (0, 5)}), (attention_models.attention, {"batch": (1, 3), "seq": (1, 13)}),
    (attention_models.attention, {"batch": (2, 2), "seq": (1, 40)}), (attention_models.attention, {"batch": (1, 4), "seq": (9, 9)}), (attention_models.attention_of_one, {"seq": (1, 64)}),
    (attention_models.masked_attention, {"batch": (1, 3), "seq": (1, 40)}), (attention_models.masked_attention, {"batch": (2, 2), "seq": (1, 37)}), (attention_models.masked_attention, {"batch": (1, 1), "seq": (1, 33)}),
    (attention_models.half_attention, {"batch": (1, 1), "seq": (1, 40)}), (attention_models.half_attention, {"batch": (1, 3), "seq": (1, 19)}),
    (attention_models.heads_side_by_side, {"seq": (1, 70)}), (attention_models.causal_heads_side_by_side, {"seq": (1, 70)}), (attention_models.causal_heads_side_by_side, {"seq": (3, 40)}),
    (attention_models.batches_with_caches, {"batch": (1, 3), "seq": (1, 40), "past": (0, 70)}), (attention_models.heads_with_caches, {"seq": (1, 40), "past": (0, 33)}),
    (attention_models.sums_of_sizes, {"seq": (1, None), "past": (63, 65)}), (attention_models.sums_of_sizes, {"seq": (1, 3), "past": (0, None)}), (attention_models.sums_of_sizes, {"seq": (1, 9), "past": (0, 30)}),
    (attention_models.batches_of_heads, {"batch": (1, 3), "seq": (1, 40)}), (attention_models.batches_of_heads, {"batch": (1, 5), "seq": (33, 33)}),
    (attention_models.many_scores, {"n": (1, 250)}), (no_elements, {"n": (1, 9)}), (attention_models.pooled_by_attention, {"n": (1, 70)}), (attention_models.pooled_by_attention, {"n": (0, 19)}),
    (recurrent, {"batch": (1, 5)}), (recurrent_steps, {"batch": (2, 6)}), (reductions, {"n": (1, 20)}), (positions, {"n": (1, 11)}), (two_sizes, {"a": (1, 4), "b": (1, 7)}),
    (two_sizes, {"a": (0, 3), "b": (0, 3)}), (causal, {"n": (1, 24)}), (contrib, {"batch": (1, 3), "seq": (1, 6)}), (halves, {"batch": (1, 17)}),
    (quantised, {"batch": (1, 12)}), (same_again, {"n": (0, 5), "m": (1, 4)}), (loops, {"n": (0, 6)}),
    (appended, {"past": (0, 9), "seq": (1, 3)}),
    (optimized, {"batch": (1, 3), "seq": (1, 10)}),
    (images, {"batch": (1, 2), "h": (9, 40), "w": (16, 33)}), (pools, {"h": (4, 21), "w": (5, 12)}),
    (windows_beyond_the_input, {"h": (1, 8), "w": (1, 9)}), (hourglass, {"h": (1, 6), "w": (2, 5)}),
    (resized, {"h": (2, 17), "w": (2, 12)}), (padded, {"h": (4, 19), "w": (3, 9)}), (normalised, {"batch": (1, 3), "h": (2, 13)}),
    (flattened, {"batch": (1, 4), "seq": (1, 9)}), (boxes, {"batch": (1, 2), "h": (2, 9), "w": (2, 12)}),
    (lines_of_text, {"batch": (1, 3), "width": (4, 37)}), (integers, {"h": (3, 15)}), (filters, {"h": (5, 14)}), (known_sizes, {"n": (1, 4), "m": (3, 17)}), (corners, {"n": (1, 7), "m": (1, 9)}), (experts, {"batch": (1, 1), "seq": (1, 9)}),
]


# Sizes without an upper bound: instances are made for some.
ENDLESS = prefix_models.ENDLESS + mask_models.ENDLESS + [
    (rows, {"batch": (1, None)}), (rows, {"batch": (0, None)}), (convolutions, {"batch": (1, None)}), (dense, {"batch": (1, None)}), (interleaved, {"batch": (1, None)}),
    (overhang, {"batch": (1, None)}), (last_input, {"batch": (1, None)}), (pointwise, {"batch": (0, None)}), (pointwise, {"batch": (0, 60)}), (masked, {"batch": (1, None)}), (masked, {"batch": (0, 5)}), (trees, {"batch": (0, None)}), (trees, {"batch": (1, 40)}),
    (newer_trees, {"batch": (1, None)}), (newer_trees, {"batch": (1, 9)}), (attention_models.attention, {"batch": (1, None), "seq": (9, 9)}), (contrib, {"batch": (1, None), "seq": (1, 6)}),
    (images, {"batch": (1, None), "h": (9, 20), "w": (16, 20)}), (quantised, {"batch": (1, None)}), (halves, {"batch": (1, None)}),
    (recurrent, {"batch": (1, None)}), (recurrent_steps, {"batch": (1, None)}), (attention_models.attention, {"batch": (1, None), "seq": (1, 13)}),
    (attention_models.narrow_heads, {"batch": (1, None), "seq": (1, 16)}), (attention_models.batches_of_heads, {"batch": (1, None), "seq": (1, 20)}),
    (contrib, {"batch": (1, 3), "seq": (1, None)}), (same_again, {"n": (1, None), "m": (1, 4)}), (same_again, {"n": (1, 5), "m": (1, None)}),
    (optimized, {"batch": (1, None), "seq": (1, 10)}), (lines_of_text, {"batch": (1, None), "width": (4, 37)}), (corners, {"n": (1, 7), "m": (1, None)}),
    (open_models.sampled, {"n": (1, 2), "h": (1, 9), "w": (2, 8), "r": (1, None)}), (open_models.up_to_a_multiple, {"batch": (1, None), "h": (3, 11), "w": (4, 9)}),
    (lookup_models.regions, {"batch": (1, 2), "h": (3, None), "w": (4, 11), "k": (1, 5)}),
    (lookup_models.half_rows, {"n": (1, None), "h": (3, 9), "w": (3, 20)}), (lookup_models.best, {"n": (1, None)}), (lookup_models.best, {"n": (0, 40)}),
    (summed, {"n": (1, None)}), (last_rows, {"n": (3, None)}), (two_sizes, {"a": (1, None), "b": (1, 4)}), (words, {"batch": (1, None)}), (numbered, {"n": (1, None)}), (few_channels, {"batch": (1, None)}), (few_channels, {"batch": (1, 9)}), (fresh_states, {"batch": (1, None)}), (fresh_states, {"batch": (1, 9)}),
    (parts_of_vectors, {"batch": (1, None)}), (parts_of_vectors, {"batch": (1, 70)}), (attention_models.attention, {"batch": (1, None), "seq": (5, 5)}),
]
NEEDS_BOUND = prefix_models.NEEDS_BOUND + [
    (thirds, {"n": (3, None)}), (every_second, {"n": (3, None)}), (scanned_columns, {"n": (1, None)}),
]


EVERY = ALL + open_models.ALL + lookup_models.ALL + across_models.ALL + cached_models.ALL + beside_models.ALL + loop_models.ALL + ENDLESS + inner_models.ENDLESS + endless_attention.ENDLESS + NEEDS_BOUND
# Layers and sums from the front that keep what grows between their launches, attention over a text, what is found by positions that are computed.
NEED_BOUNDS_ON_CUDA = {"counted_words", "prefix_sums", "behind_the_last", "recurrent", "recurrent_steps", "lines_of_text", "tagger", "states", "from_zeros", "best", "gathered_by_row", "sampled", "thirds",
                       "every_second", "scanned_columns", "sums_of_sizes"}
NEEDS_BOUND_ON_CUDA = mask_models.NEEDS_BOUND_ON_CUDA + endless_attention.ENDLESS + [case for case in EVERY if case[0].__name__ in NEED_BOUNDS_ON_CUDA]
NO_KERNELS_ON_CUDA = [(words, {"batch": (1, None)})]


def name_of(build, ranges):
    return f"{build.__name__}_" + "_".join(f"{n}{lo}to{'end' if hi is None else hi}" for n, (lo, hi) in ranges.items())


def names_of(cases):
    return {name_of(*case) for case in cases}


def cases():
    """(name, model, ranges) of all."""
    for seed, (build, ranges) in enumerate(EVERY):
        b = Builder(seed)
        build(b)
        yield name_of(build, ranges), b.model(build.__name__), ranges
