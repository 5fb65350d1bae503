"""Small models of the package tests, built with onnx.helper and seeded numbers."""

import subprocess

import numpy as np
import onnx
import onnx.parser
from answers import answers
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


def weighted_chain(path, length):
    """A chain in which each node has a weight of its own: vectors, numbers, and small products between them."""
    rng = np.random.RandomState(3)
    nodes, init = [], []
    for i in range(length):
        op, shape = (("Mul", [16]), ("Add", []), ("Sub", [16]), ("MatMul", [16, 16]), ("Add", [16]))[i % 5]
        out = f"v{i}" if i < length - 1 else "y"
        nodes.append(helper.make_node(op, [f"v{i - 1}" if i else "x", f"w{i}"], [out], name=f"n{i}"))
        init.append(numpy_helper.from_array(rng.uniform(-0.5, 0.5, shape).astype(np.float32), f"w{i}"))
    return save(path, nodes, [("x", T.FLOAT, [1, 16])], [("y", T.FLOAT, [1, 16])], init)


def repeated(path, trips, scale=1.0):
    """A loop of so many iterations, each a product with the same weight."""
    body = helper.make_graph([helper.make_node("MatMul", ["h", "w"], ["next"]), helper.make_node("Identity", ["go"], ["on"])], "body",
                             [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("go", T.BOOL, []),
                              helper.make_tensor_value_info("h", T.FLOAT, [2, 24])],
                             [helper.make_tensor_value_info("on", T.BOOL, []), helper.make_tensor_value_info("next", T.FLOAT, [2, 24])])
    w = np.random.RandomState(4).standard_normal((24, 24)).astype(np.float32) * np.float32(0.2 * scale)
    return save(path, [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)], [("x", T.FLOAT, [2, 24])], [("y", T.FLOAT, [2, 24])],
                [numpy_helper.from_array(np.array(trips, np.int64), "trips"), numpy_helper.from_array(w, "w")])


def far_product(path, length):
    """A product, a chain behind it, and a sum in another shape, which looks back through the chain at the product."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["v0"], name="product")]
    for i in range(length):
        nodes.append(helper.make_node(("Sigmoid", "Tanh")[i % 2], [f"v{i}"], [f"v{i + 1}"], name=f"n{i}"))
    nodes += [helper.make_node("Reshape", [f"v{length}", "shape"], ["r"], name="reshape"), helper.make_node("Add", ["r", "z"], ["y"], name="sum")]
    init = [weights(np.random.RandomState(4), "w", 8, 16), numpy_helper.from_array(np.int64([2, 3, 16]), "shape")]
    return save(path, nodes, [("x", T.FLOAT, [6, 8]), ("z", T.FLOAT, [2, 3, 16])], [("y", T.FLOAT, [2, 3, 16])], init)


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


def phases(path):
    """A product whose sum many threads share, and running sums along rows."""
    rng = np.random.RandomState(5)
    init = [weights(rng, "w", 1024, 128), numpy_helper.from_array(np.int64(1), "axis")]
    node = helper.make_node
    nodes = [node("MatMul", ["x", "w"], ["p"], name="product"), node("Relu", ["p"], ["y"], name="relu"),
             node("CumSum", ["z", "axis"], ["s"], name="running_sum")]
    return save(path, nodes, [("x", T.FLOAT, [64, 1024]), ("z", T.FLOAT, [3, 500])], [("y", T.FLOAT, [64, 128]), ("s", T.FLOAT, [3, 500])], init)


def unread_sum(path):
    """A sum of which a triangle leaves nothing."""
    init = [numpy_helper.from_array(np.int64(3), "k")]
    nodes = [helper.make_node("ReduceSum", ["x"], ["s"], name="sum", keepdims=1), helper.make_node("Trilu", ["s", "k"], ["y"], name="triangle", upper=1)]
    return save(path, nodes, [("x", T.FLOAT, [1, 7])], [("y", T.FLOAT, [1, 1])], init)


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


def of_text(path, text, initializers=()):
    """A model from ONNX's text syntax."""
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>\n' + text)
    model.graph.initializer.extend(initializers)
    onnx.save(model, path)
    return path


def loops(path):
    """Loops of every kind: until the data says so, as often as the data says, of known length, one in the other, a decision inside."""
    rng = np.random.RandomState(7)
    return of_text(path, """loops (float[4,6] x, float[5,6] s) => (float[4,6] root, int64 steps, float[4,6] last, float[3,4,6] parts, float[4,6] state, float[4,5] sums)
        <int64 zero = {0}, int64 one = {1}, int64 three = {3}, float eps = {0.001}, float half = {0.5}, float none = {0}> {
      positive = Exp (x)
      root, steps = Loop (, , positive, zero) <body = newton (int64 i, bool c, float[4,6] r, int64 n) => (bool go, float[4,6] r2, int64 n2) {
        q = Div (positive, r)  sum = Add (r, q)  r2 = Mul (sum, half)  d = Sub (r2, r)  e = Abs (d)  m = ReduceMax <keepdims = 0> (e)
        go = Greater (m, eps)  n2 = Add (n, one) }>
      nothing = Sub (steps, steps)  trips = Add (nothing, three)
      last, parts = Loop (trips, , root) <body = outer (int64 i2, bool c2, float[4,6] p) => (bool go2, float[4,6] p2, float[4,6] part) {
        f = Cast <to = 1> (i2)
        a, b = Loop (three, , p, x) <body = inner (int64 j, bool c3, float[4,6] u, float[4,6] v) => (bool go3, float[4,6] v3, float[4,6] w) {
          go3 = Identity (c3)  v3 = Identity (v)  g = Cast <to = 1> (j)  t = Add (u, g)  w = Tanh (t) }>
        total = ReduceSum <keepdims = 0> (a)  large = Greater (total, none)
        part = If (large) <then_branch = yes () => (float[4,6] y1) { y1 = Add (a, f) }, else_branch = no () => (float[4,6] y2) { y2 = Sub (b, f) }>
        p2 = MatMul (part, w6)  go2 = Identity (c2) }>
      state, sums = Scan (x, s) <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1], body = cell (float[4,6] h, float[6] xs) => (float[4,6] h2, float[4] o) {
        k = MatMul (h, w6)  k2 = Add (k, xs)  h2 = Tanh (k2)  o = ReduceSum <keepdims = 0> (h2, axis) }>
    }""", [weights(rng, "w6", 6, 6), numpy_helper.from_array(np.array([1]), "axis")])


def stacked(path):
    """As many results as the input says; the model declares five."""
    return of_text(path, """stacked (int64 trips, float[3] x) => (float[3] y, float[5,3] all) {
      y, all = Loop (trips, , x) <body = b (int64 i, bool c, float[3] s) => (bool go, float[3] t, float[3] part) {
        go = Identity (c)  f = Cast <to = 1> (i)  t = Add (s, f)  part = Neg (s) }> }""")


def wrong_trips(model, work, program, env=None):
    """[(whether it is right, words)]: runs of `stacked` with too few, enough and too many iterations."""
    told = []
    for trips in (4, 5, 6):
        io = work / f"{model.stem}_{trips}"
        io.mkdir()
        np.save(io / "input_0.npy", np.int64(trips))
        np.save(io / "input_1.npy", np.float32([1, 2, 3]))
        result = subprocess.run([str(program), "--inputs", str(io), "--outputs", str(io)], capture_output=True, text=True, env=env)
        text = result.stdout + result.stderr
        if trips == 5:
            rows = np.float32([0, 0, 1, 3, 6])[:, None] + np.float32([1, 2, 3])
            right = result.returncode == 0 and np.array_equal(np.load(io / "output_1.npy"), -rows)
        else:
            right = result.returncode == 1 and "more or fewer times than the shapes" in text
        told.append((right, f"{trips} iterations where 5 are declared: exit code {result.returncode} {text.strip()[-200:]}"))
    return told


def reference(model, folder, seed=0):
    """Writes inputs and ONNX Runtime's outputs for `model` into `folder`."""
    rng = np.random.RandomState(seed)
    return answers(model, folder, lambda _, port: rng.randint(0, 10, port.shape).astype(np.int64) if "int64" in port.type
                   else rng.standard_normal(port.shape).astype(np.float32))
