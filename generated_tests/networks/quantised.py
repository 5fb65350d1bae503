"""Networks in types of eight and sixteen bits, of seeded random weights; the quantised ones by ONNX Runtime's own quantiser.

Weights have seven bits (reduce_range): on processors without dot products of bytes ONNX Runtime's own kernels saturate
sums of eight bits, and would be no reference.
"""
import functools
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import builders


@functools.cache
def folder():
    """Where ready models lie until Python ends."""
    return tempfile.TemporaryDirectory(prefix="quantised_")


class FloatModel:
    """Collects nodes and random weights of a network in floats, or in halves."""

    def __init__(self, seed, dtype=np.float32):
        self.rng, self.dtype = np.random.default_rng(seed), dtype
        self.nodes, self.weights = [], []

    def weight(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, self.dtype), name))
        return name

    def random(self, shape, fan_in):
        return self.weight(self.rng.standard_normal(shape) * np.sqrt(2 / fan_in))

    def op(self, kind, *inputs, **attributes):
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def conv(self, x, channels, out, kernel, stride=1, group=1):
        shape = (out, channels // group, kernel, kernel)
        return self.op("Conv", x, self.random(shape, channels // group * kernel * kernel), self.weight(self.rng.standard_normal(out) * 0.1),
                       kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)

    def dense(self, x, inputs, outputs):
        return self.op("Add", self.op("MatMul", x, self.random((inputs, outputs), inputs)), self.weight(self.rng.standard_normal(outputs) * 0.1))

    def save(self, result, x_shape, y_shape):
        self.nodes[-1].output[0] = "y"
        assert result == self.nodes[-1].name
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", dtype, x_shape)],
                                  [helper.make_tensor_value_info("y", dtype, y_shape)], self.weights)
        path = Path(folder().name) / f"float_{len(list(Path(folder().name).iterdir()))}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path


def cnn(dtype=np.float32):
    """Stem, residual bottlenecks, inverted residuals, pooling and a dense layer: odd channels on purpose."""
    m = FloatModel(7, dtype)
    x = m.op("Relu", m.conv("x", 3, 24, 7, 2))
    x = m.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for _ in range(2):
        y = m.op("Relu", m.conv(x, 24, 12, 1))
        y = m.op("Relu", m.conv(y, 12, 20, 3))
        x = m.op("Relu", m.op("Add", m.conv(y, 20, 24, 1), x))
    low, high = m.weight(0), m.weight(6)
    for stride, out in [(2, 36), (1, 36)]:
        channels = 24 if stride == 2 else 36
        y = m.op("Clip", m.conv(x, channels, channels * 3, 1), low, high)
        y = m.op("Clip", m.conv(y, channels * 3, channels * 3, 3, stride, channels * 3), low, high)
        y = m.conv(y, channels * 3, out, 1)
        x = y if stride == 2 else m.op("Add", x, y)
    x = m.op("Flatten", m.op("GlobalAveragePool", x))
    x = m.op("Gemm", x, m.random((50, 36), 36), m.weight(m.rng.standard_normal(50)), transB=1)
    return m.save(x, [2, 3, 64, 64], [2, 50])


def calibrate(name, pictures):
    """What a static quantiser reads the ranges from: pictures as the input `name`, the last one first."""
    from onnxruntime.quantization import CalibrationDataReader

    class Pictures(CalibrationDataReader):
        def __init__(self):
            self.left = [{name: picture} for picture in pictures]

        def get_next(self):
            return self.left.pop() if self.left else None

    return Pictures()


def static_cnn(signed, per_channel, operators):
    """The CNN with ranges from calibration: QuantizeLinear and DequantizeLinear, or QLinear operators."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    path = Path(folder().name) / f"cnn_{signed}{per_channel}{operators}.onnx"
    quantize_static(cnn(), path, calibrate("x", [builders.image(64, 64, seed, 2) for seed in range(3)]), quant_format=QuantFormat.QOperator if operators else QuantFormat.QDQ,
                    activation_type=QuantType.QInt8 if signed else QuantType.QUInt8, weight_type=QuantType.QInt8,
                    per_channel=per_channel, reduce_range=True)
    return builders.Built({"x": builders.image(64, 64, 11, 2)}, [], model=path)


def half_cnn():
    """The CNN whose tensors and weights are float16."""
    return builders.Built({"x": builders.image(64, 64, 11, 2).astype(np.float16)}, [], model=cnn(np.float16))


def dynamic_mlp(signed):
    """Dense layers whose inputs are quantised by their own range: DynamicQuantizeLinear and MatMulInteger."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    m = FloatModel(8)
    x = "x"
    for inputs, outputs in [(70, 130), (130, 64)]:
        x = m.op("Relu", m.dense(x, inputs, outputs))
    path = Path(folder().name) / f"mlp_{signed}.onnx"
    quantize_dynamic(m.save(m.dense(x, 64, 33), [19, 70], [19, 33]), path, weight_type=QuantType.QInt8 if signed else QuantType.QUInt8, reduce_range=True)
    return builders.Built({"x": np.random.default_rng(9).standard_normal((19, 70)).astype(np.float32)}, [], model=path)


def exported(built, name):
    """The file of a network that torch exports, in floats."""
    import export
    path = Path(folder().name) / f"{name}.onnx"
    import torch
    with torch.no_grad():
        export.export_module(built, "old", str(path))
    return path


def static_network(name):
    """A torchvision network as its users quantise it: QuantizeLinear and DequantizeLinear, a range for each tensor, weights of
    eight bits with a scale for each channel."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    built = builders.torchvision_network(name)
    (input_name, picture), = built.inputs.items()
    prepared, path = Path(folder().name) / f"{name}_prepared.onnx", Path(folder().name) / f"{name}_qdq.onnx"
    quant_pre_process(exported(built, name), prepared)
    quantize_static(prepared, path, calibrate(input_name, [builders.image(*picture.shape[2:], seed) for seed in range(2)]), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, per_channel=True)
    return builders.Built(built.inputs, [], model=path)


def dynamic_bert():
    """BERT-base whose dense layers quantise their inputs by their own range."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    built = builders.bert_base()
    path = Path(folder().name) / "bert_dynamic.onnx"
    quantize_dynamic(exported(built, "bert"), path, weight_type=QuantType.QInt8)
    return builders.Built(built.inputs, [], model=path)
