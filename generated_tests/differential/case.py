"""One small model and its numbers."""
import dataclasses
import typing
import zlib

import numpy as np
import onnx
import onnx.parser
from onnx import helper, numpy_helper

OPSET, OPSET_ML = 21, 4
NAMES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double", np.dtype(np.int64): "int64",
         np.dtype(np.int32): "int32", np.dtype(np.int8): "int8", np.dtype(np.uint8): "uint8", np.dtype(bool): "bool",
         np.dtype(np.float16): "float16", np.dtype(object): "string", np.dtype(np.int16): "int16", np.dtype(np.uint16): "uint16",
         np.dtype(np.uint32): "uint32", np.dtype(np.uint64): "uint64"}


@dataclasses.dataclass
class Case:
    name: str
    body: str  # ONNX text; the last value defined is the output, unless `outputs` names others
    inputs: dict  # name -> shape (float32 numbers) or array
    weights: dict = dataclasses.field(default_factory=dict)
    outputs: tuple = ("y",)
    bar: float = 1e-5  # of the relative error in norm; at worst ten times as much
    counted: bool = False  # the model declares no sizes of its outputs: they depend on data
    opset: int = OPSET
    random: bool = False  # the numbers are drawn: only their distribution is that of the reference
    folded_only: bool = False  # computed while compiling, by `interpreter` alone
    too_large: bool = False  # to be computed while compiling: not for `interpreter`
    only_in_c: bool = False  # CUDA computes something more exact, or has no strings
    words: tuple = ()  # of tc-emit
    seen: typing.Callable = None  # of the inputs: what the reference gets in their place
    nothing: bool = False  # a result may be zeros, infinite, or have no elements

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
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", OPSET_ML), helper.make_opsetid("com.microsoft", 1)],
                                 ir_version=10)


def words(*values):
    """An array of strings, as ONNX's library and ONNX Runtime take them."""
    return np.array(values, object)


def ints(*values):
    return np.array(values, np.int64)
