"""A model of sums of products whose values are small integers: exact in every --precision, so that the bits must agree."""

import numpy as np
import onnx
from onnx import helper, numpy_helper


def products(path, dtype="float32"):
    """Tails everywhere, borders, groups, batches, shared sums, one row. Returns (path, {input: array})."""
    rng = np.random.RandomState(1)
    nodes, inputs, outputs, constants = [], {}, {}, {}

    def integers(*shape):
        return rng.randint(-3, 4, shape).astype(dtype)

    def add(op, x, output, factors, relu=False, **attributes):
        name = f"{op.lower()}{len(outputs)}"
        inputs[f"x_{name}"] = integers(*x)
        constants.update({f"{name}_{k}": integers(*shape) for k, shape in enumerate(factors)})
        result = f"{name}_sum" if relu else name
        nodes.append(helper.make_node(op, [f"x_{name}", *(f"{name}_{k}" for k in range(len(factors)))], [result], **attributes))
        if relu:
            nodes.append(helper.make_node("Relu", [result], [name]))
        outputs[name] = output

    add("Gemm", (37, 300), (37, 70), [(300, 70), (70,)])
    add("Gemm", (130, 64), (130, 132), [(132, 64), (132,)], transB=1)
    add("Gemm", (1, 200), (1, 33), [(33, 200), (33,)], transB=1)
    add("Conv", (1, 20, 14, 13), (1, 40, 14, 13), [(40, 20, 3, 3), (40,)], relu=True, pads=[1, 1, 1, 1])
    add("Conv", (2, 16, 15, 17), (2, 24, 8, 9), [(24, 8, 3, 3), (24,)], relu=True, group=2, strides=[2, 2], pads=[2, 2, 2, 2],
        dilations=[2, 2])
    inputs["left"], inputs["right"], outputs["batch"] = integers(3, 50, 45), integers(3, 45, 33), (3, 50, 33)
    nodes.append(helper.make_node("MatMul", ["left", "right"], ["batch"]))

    def values(shapes):
        return [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape) for name, shape in shapes.items()]

    graph = helper.make_graph(nodes, "products", values({name: x.shape for name, x in inputs.items()}), values(outputs),
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path, inputs
