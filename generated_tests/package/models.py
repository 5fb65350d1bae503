"""Small models of the package tests, built with onnx.helper and seeded numbers."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T
from onnx import helper, numpy_helper

CHAIN_OPS = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Exp", "Softplus", "Sqrt"]


def save(path, nodes, inputs, outputs, initializers=(), opset=17):
    def info(item):
        return helper.make_tensor_value_info(item[0], item[1], item[2])

    graph = helper.make_graph(nodes, path.stem, [info(i) for i in inputs], [info(o) for o in outputs], list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def weights(rng, name, *shape):
    return numpy_helper.from_array((rng.standard_normal(shape) * 0.2).astype(np.float32), name)


def chain(path, length, inserted=None, period=None):
    """A chain of elementwise nodes, random or repeating after `period`; `inserted` puts one node more behind that position."""
    rng = np.random.RandomState(1)
    pick = [CHAIN_OPS[rng.randint(len(CHAIN_OPS))] for _ in range(period or length)]
    nodes, current = [], "x"
    for i in range(length):
        out = f"v{i}" if i < length - 1 else "y"
        nodes.append(helper.make_node(pick[i % len(pick)], [current], [out], name=f"n{i}"))
        current = out
        if inserted == i:
            nodes.append(helper.make_node("Cos", [current], ["inserted"], name="inserted"))
            current = "inserted"
    return save(path, nodes, [("x", T.FLOAT, [4, 64])], [("y", T.FLOAT, [4, 64])])


def cnn(path, seed=0):
    """Convolution, pooling, residual, depthwise, dense, softmax: most schedule templates, sizes with tails."""
    rng = np.random.RandomState(seed)
    init = [weights(rng, "w1", 20, 3, 3, 3), weights(rng, "b1", 20), weights(rng, "w2", 20, 1, 3, 3), weights(rng, "b2", 20),
            weights(rng, "w3", 20, 20, 1, 1), weights(rng, "wd", 20 * 7 * 7, 11), weights(rng, "bd", 11)]
    node = helper.make_node
    nodes = [node("Conv", ["x", "w1", "b1"], ["c1"], name="/conv1", pads=[1, 1, 1, 1]), node("Relu", ["c1"], ["r1"], name="/relu1"),
             node("MaxPool", ["r1"], ["p1"], name="/pool", kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", ["p1", "w2", "b2"], ["c2"], name="/depthwise", pads=[1, 1, 1, 1], group=20),
             node("Clip", ["c2", "zero", "six"], ["k2"], name="/relu6"),
             node("Conv", ["k2", "w3"], ["c3"], name="/project"), node("Add", ["c3", "p1"], ["a"], name="/residual"),
             node("Flatten", ["a"], ["f"], name="/flatten"), node("Gemm", ["f", "wd", "bd"], ["g"], name="/dense"),
             node("Softmax", ["g"], ["y"], name="/softmax", axis=1)]
    init += [numpy_helper.from_array(np.float32(0), "zero"), numpy_helper.from_array(np.float32(6), "six")]
    return save(path, nodes, [("x", T.FLOAT, [1, 3, 14, 14])], [("y", T.FLOAT, [1, 11])], init)


def mixed_types(path):
    """Integers, bools, float16 and a gather with run-time indices beside floats."""
    rng = np.random.RandomState(3)
    init = [weights(rng, "table", 10, 6)]
    node = helper.make_node
    nodes = [node("Gather", ["table", "ids"], ["rows"], name="/embed"), node("Cast", ["rows"], ["half"], name="/half", to=T.FLOAT16),
             node("Mul", ["half", "half"], ["square"], name="/square"), node("Cast", ["square"], ["single"], name="/single", to=T.FLOAT),
             node("ReduceMean", ["single"], ["y"], name="/mean", axes=[2], keepdims=0),
             node("Greater", ["rows", "zero"], ["positive"], name="/greater"), node("Cast", ["positive"], ["count"], name="/count", to=T.INT32),
             node("ReduceSum", ["count"], ["n"], name="/sum", keepdims=0)]
    init.append(numpy_helper.from_array(np.float32(0), "zero"))
    return save(path, nodes, [("ids", T.INT64, [2, 5])], [("y", T.FLOAT, [2, 5]), ("n", T.INT32, [])], init)


def decision(path):
    """A run-time If between other nodes, one branch inside the other: several segments of a CUDA executor."""
    rng = np.random.RandomState(5)
    node, f32 = helper.make_node, T.FLOAT
    init = [weights(rng, "w", 6, 6), numpy_helper.from_array(np.float32(0.5), "half"), numpy_helper.from_array(np.float32(0), "zero")]

    def branch(name, nodes, out):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(out, f32, [4, 6])])

    inner = node("If", ["large"], ["picked"], name="inner",
                 then_branch=branch("large_then", [node("Sigmoid", ["h"], ["s"])], "s"),
                 else_branch=branch("large_else", [node("Tanh", ["h"], ["t"])], "t"))
    nodes = [node("MatMul", ["x", "w"], ["h"], name="before"), node("ReduceSum", ["h"], ["sum"], keepdims=0),
             node("Greater", ["sum", "zero"], ["positive"]), node("Greater", ["sum", "half"], ["large"]),
             node("If", ["positive"], ["chosen"], name="outer", then_branch=branch("then", [inner], "picked"),
                  else_branch=branch("else", [node("Neg", ["h"], ["n"])], "n")),
             node("MatMul", ["chosen", "w"], ["y"], name="after")]
    return save(path, nodes, [("x", f32, [4, 6])], [("y", f32, [4, 6])], init)


def reference(model, folder, seed=0):
    """Writes inputs and ONNX Runtime's outputs for `model` into `folder`."""
    folder.mkdir()
    rng = np.random.RandomState(seed)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    feed = {}
    for k, i in enumerate(session.get_inputs()):
        value = rng.randint(0, 10, i.shape).astype(np.int64) if "int64" in i.type else rng.standard_normal(i.shape).astype(np.float32)
        feed[i.name] = value
        np.save(folder / f"input_{k}.npy", value)
    for k, y in enumerate(session.run(None, feed)):
        np.save(folder / f"output_{k}.npy", y)
    return folder
