"""Models for sizes without an upper bound: what is computed of each row, and decision trees."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper
from open_models import size


def rows(b):
    """Each result depends on one row."""
    x = b.input("x", ["batch", 33])
    y = b.op("LayerNormalization", b.op("Tanh", b.op("Gemm", x, b.weight(33, 50), b.weight(50))), b.weight(50), axis=-1)
    b.output(b.op("Softmax", b.op("MatMul", y, b.weight(50, 16))))
    b.output(b.op("ReduceMax", x, b.ints(1), keepdims=0))


def words(b):
    """Text that a run makes lies behind all tensors; as numbers again it is that of the rows that are there."""
    b.imports[""] = 21
    ids = b.input("ids", ["batch", 3], TensorProto.INT64)
    word = b.op("StringConcat", b.op("Cast", ids, to=TensorProto.STRING), b.constant(np.array(["7", "", "11"], object)))
    b.output(b.op("Equal", word, b.constant(np.array("37", object))), TensorProto.BOOL)
    b.output(b.op("Cast", word, to=TensorProto.FLOAT))
    b.output(b.op("Tanh", b.input("x", ["batch", 701])))


def numbered(b):
    """Numbers of rows, also in a type that does not hold what stands for the largest size."""
    x = b.input("x", ["n", 3])
    n = b.op("Squeeze", size(b, x, 0))
    for number, onnx_type in ((np.int32, TensorProto.INT32), (np.int64, TensorProto.INT64)):
        numbers = b.op("Range", b.scalar(2, number), b.op("Cast", b.op("Add", n, b.scalar(2, np.int64)), to=onnx_type), b.scalar(1, number))
        b.output(numbers, onnx_type)
        b.output(b.op("Add", x, b.op("Unsqueeze", b.op("Cast", numbers, to=TensorProto.FLOAT), b.ints(1))))


def few_channels(b):
    """Vectors that lie between those of other channels, and sums of so few that rows fill no vectors."""
    x = b.input("x", ["batch", 2, 4, 4])
    b.output(b.op("Add", b.op("Conv", x, b.weight(2, 2, 3, 3), pads=[1, 1, 1, 1]), x))
    z = b.input("z", ["batch", 1, 3, 3])
    b.output(b.op("Concat", b.op("Conv", z, b.weight(4, 1, 1, 1)), b.op("Conv", z, b.weight(4, 1, 1, 1)), axis=1))


def fresh_states(b):
    """What is absent is the same for all of a batch."""
    for result in b.op("CausalConvWithState", b.input("x", ["batch", 8, 5]), b.weight(8, 1, 3), outputs=2, domain="com.microsoft", activation="silu"):
        b.output(result)


def parts_of_vectors(b):
    """Costly functions of sums whose columns fill no vector, and softmax over few: of so many rows, none is kept."""
    x, z, q = b.input("x", ["batch", 9, 24]), b.input("z", ["batch", 16, 5, 7]), b.input("q", ["batch", 3, 8])
    b.output(b.op("Gelu", b.op("Gemm", b.op("Reshape", x, b.ints(-1, 24)), b.weight(24, 6), b.weight(6)), domain="com.microsoft"))
    b.output(b.op("Sigmoid", b.op("Conv", z, b.weight(3, 16, 3, 3), b.weight(3), pads=[1, 1, 1, 1])))
    b.output(b.op("Tanh", b.op("ConvTranspose", z, b.weight(16, 3, 2, 2), strides=[2, 2])))
    b.output(b.op("ConvTranspose", z, b.weight(16, 3, 4, 4), b.weight(3), strides=[2, 2], pads=[1, 1, 1, 1]))
    b.output(b.op("Softmax", b.op("MatMul", x, b.weight(24, 5)), axis=-1))
    keys, values = b.input("k", ["batch", 8, 5]), b.input("v", ["batch", 5, 8])
    b.output(b.op("MatMul", b.op("Softmax", b.op("MatMul", q, keys), axis=-1), values))
    b.output(b.op("MatMul", b.op("Softmax", b.op("MatMul", x, b.weight(24, 4)), axis=-1), b.weight(4, 24)))


def pointwise(b):
    """Kernels whose chunks and vectors are no whole rows; indices that are computed."""
    ids, x = b.input("ids", ["batch", 9], TensorProto.INT64), b.input("x", ["batch", 701])
    b.output(b.op("Cast", ids, to=1))
    b.output(b.op("Tanh", x))
    b.output(b.op("Cast", b.op("Greater", x, b.scalar(0.0)), to=TensorProto.INT64), TensorProto.INT64)
    y = b.op("Gather", b.weight(43, 33), b.op("Add", ids, b.scalar(2, np.int64)))
    b.output(b.op("Where", b.op("Equal", b.op("Unsqueeze", ids, b.ints(2)), b.scalar(0, np.int64)), b.scalar(0.0), y))
    b.output(b.op("Transpose", y, perm=[0, 2, 1]))


def overhang(b):
    """Tiles that read less than a row behind an input: other inputs, and the end of the workspace, are near."""
    x, z, u = b.input("x", ["batch", 7, 8]), b.input("z", ["batch", 7, 64]), b.input("u", ["batch", 47, 4])
    b.output(b.op("Add", b.op("MatMul", z, b.weight(64, 8)), x))
    b.output(b.op("MatMul", u, b.weight(4, 15)))
    b.output(b.op("Add", b.input("i", ["batch", 4], TensorProto.INT32), b.constant(np.arange(4, dtype=np.int32))), TensorProto.INT32)


def last_input(b):
    """Of one input, behind which nothing comes."""
    b.output(b.op("MatMul", b.input("x", ["batch", 47, 4]), b.weight(4, 15)))


def masked(b):
    """A mask is read at positions that are tensors, as transformers' masks are exported: in the flat mask, and by pairs."""
    mask, x = b.input("mask", ["batch", 9], TensorProto.INT64), b.input("x", ["batch", 9, 8])
    n = b.op("Squeeze", size(b, mask, 0))
    rows = b.op("Reshape", b.op("Range", b.scalar(0, np.int64), n, b.scalar(1, np.int64)), b.ints(-1, 1, 1, 1))
    words = b.constant(np.arange(9).reshape(1, 1, 1, 9))
    seen = b.op("Cast", mask, to=TensorProto.BOOL)
    at = b.op("Add", b.op("Mul", rows, b.ints(9)), words)
    flat = b.op("Gather", b.op("Reshape", seen, b.ints(-1)), at)
    shape = b.op("Concat", size(b, mask, 0), b.ints(1, 1, 9), axis=0)
    pairs = [b.op("Unsqueeze", b.op("Expand", part, shape), b.ints(4)) for part in (rows, words)]
    b.output(b.op("GatherND", seen, b.op("Concat", *pairs, axis=4)), TensorProto.BOOL)
    scores = b.op("MatMul", x, b.op("Transpose", x, perm=[0, 2, 1]))
    scores = b.op("Where", b.op("Reshape", flat, b.ints(-1, 1, 9)), scores, b.scalar(-1e4))
    b.output(b.op("MatMul", b.op("Softmax", scores, axis=-1), x))


def tree_tables(random, depth, trees, features):
    """Full trees as the lists of ai.onnx.ml 3: branches first, then leaves."""
    branches, nodes = 2 ** depth - 1, 2 ** (depth + 1) - 1
    lists = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")}
    for tree in range(trees):
        for k in range(nodes):
            row = (tree, k, int(random.integers(features)), "BRANCH_LEQ" if k < branches else "LEAF", float(np.float32(random.standard_normal())),
                   2 * k + 1 if k < branches else 0, 2 * k + 2 if k < branches else 0)
            for name, value in zip(lists, row):
                lists[name].append(value)
    leaves = [(tree, k) for tree in range(trees) for k in range(branches, nodes)]
    return {f"nodes_{name}": values for name, values in lists.items()}, leaves


def trees(b):
    """Ensembles of ai.onnx.ml 3: scores, and classes."""
    b.imports["ai.onnx.ml"] = 3
    x = b.input("x", ["batch", 7])
    tables, leaves = tree_tables(b.random, 3, 5, 7)

    def scores(prefix, ids):
        return {f"{prefix}_treeids": [t for t, _ in leaves], f"{prefix}_nodeids": [k for _, k in leaves], f"{prefix}_ids": ids,
                f"{prefix}_weights": [float(np.float32(v)) for v in abs(b.random.standard_normal(len(leaves)))]}

    b.output(b.op("TreeEnsembleRegressor", x, domain="ai.onnx.ml", n_targets=2, **scores("target", [k % 2 for _, k in leaves]), **tables))
    classes, likely = b.op("TreeEnsembleClassifier", x, domain="ai.onnx.ml", outputs=2, classlabels_int64s=[3, 5, 8], post_transform="LOGISTIC",
                           **scores("class", [k % 3 for _, k in leaves]), **tables)
    b.output(classes, TensorProto.INT64)
    b.output(likely)
    b.output(b.op("TreeEnsembleRegressor", x, domain="ai.onnx.ml", n_targets=3, aggregate_function="AVERAGE", post_transform="SOFTMAX_ZERO",
                  **scores("target", [k % 3 for _, k in leaves]), **tables))


def newer_trees(b):
    """The one of ai.onnx.ml 5, behind a layer."""
    b.imports["ai.onnx.ml"] = 5
    x = b.op("MatMul", b.input("x", ["batch", 6]), b.weight(6, 7))

    def tensor(values, dtype):
        return numpy_helper.from_array(np.array(values, dtype))

    b.output(b.op("TreeEnsemble", x, domain="ai.onnx.ml", n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0, 2], nodes_featureids=[0, 6, 3],
                  nodes_modes=tensor([0, 2, 0], np.uint8), nodes_splits=tensor([0.1, -0.2, 0.05], np.float32), nodes_truenodeids=[1, 0, 2], nodes_trueleafs=[0, 1, 1],
                  nodes_falsenodeids=[1, 2, 3], nodes_falseleafs=[1, 1, 1], leaf_targetids=[0, 1, 0, 1], leaf_weights=tensor([1.5, 2.5, -3, 0.25], np.float32)))


def last_rows(b):
    """The last words of a text: up to INT32_MAX is to the end."""
    b.output(b.op("Slice", b.input("x", ["n", 3]), b.ints(-2), b.ints(2**31 - 1), b.ints(0)))


def thirds(b):
    b.output(b.op("Slice", b.input("x", ["n", 3]), b.ints(0), b.ints(2**63 - 1), b.ints(0), b.ints(3)))


def every_second(b):
    b.output(b.op("Slice", b.input("x", ["n"]), b.ints(3), b.ints(2**63 - 1), b.ints(0), b.ints(2)))


def summed(b):
    b.output(b.op("ReduceSum", b.input("x", ["n", 3]), b.ints(0), keepdims=0))


def scanned_columns(b):
    """What is stored as the caller has it is asked for in another order of axes."""
    b.imports[""] = 21
    x, p = b.input("x", ["n", 9]), helper.make_tensor_value_info("p", TensorProto.FLOAT, None)
    body = helper.make_graph([helper.make_node("Softmax", ["p"], ["o"], axis=0)], "column", [p], [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)])
    b.output(b.op("Scan", x, body=body, num_scan_inputs=1, scan_input_axes=[-1]))
