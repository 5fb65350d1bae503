"""Operators of ai.onnx.ml: what scikit-learn's and boosting libraries' exporters write. Labels are numbers."""
import numpy as np

from evaluate import Draft, Unfit
from graph import F32, F64, I64
from rows import Row, attributes_of, ints

ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def ml(g, op, *operands, kind="never", outputs=1, **attributes):
    return g.op(op, *operands, kind=kind, outputs=outputs, domain=ML, **attributes)


def table_of(g):
    """A table of a few features."""
    return g.operand((F32,), rank=2, where=lambda v: v.size > 0 and v.shape[1] < 9, exact=True, low=-50, high=50)


def numbers(g, n, scale=1.0):
    return [round(g.rng.uniform(-2, 2) * 64) / 64 * scale for _ in range(n)]


def features(g, op):
    x = table_of(g)
    n = x.shape[1]
    if op == "Scaler":
        many = g.rng.choice([1, n])
        return ml(g, op, x, offset=numbers(g, many), scale=numbers(g, many))
    if op == "Normalizer":
        return ml(g, op, x, norm=g.rng.choice(["MAX", "L1", "L2"]))
    if op == "Imputer":
        return ml(g, op, x, imputed_value_floats=numbers(g, g.rng.choice([1, n])), replaced_value_float=g.rng.choice([0.0, 1.0]), kind="move")
    if op == "Binarizer":
        return ml(g, op, x, threshold=g.rng.choice([0.0, 0.5]), kind="decides")
    if op == "ArrayFeatureExtractor":
        return ml(g, op, x, g.fresh(I64, (1, g.rng.choice([1, 3])), low=0, high=n - 1), kind="move")
    if op == "FeatureVectorizer":
        y = g.fresh(F32, (x.shape[0], 3))
        return ml(g, op, x, y, inputdimensions=[n, 3], kind="move")
    whole = g.operand((I64,), low=-5, high=9, where=lambda v: v.rank in (1, 2) and v.size)
    if op == "OneHotEncoder":
        return ml(g, op, whole, cats_int64s=[0, 3, 1, 7], zeros=1, kind="move")
    ml(g, op, whole, keys_int64s=[0, 1, 3, -2], **g.rng.choice([{"values_int64s": [5, 4, 9, 9], "default_int64": -7}, {"values_floats": [0.5, 2.0, -1.0, 3.0], "default_float": 0.25}]), kind="move")


def linear(g, op):
    x = table_of(g)
    n, many = x.shape[1], g.rng.choice([1, 2, 3])
    if op == "LinearRegressor":
        return ml(g, op, x, coefficients=numbers(g, n * many), intercepts=numbers(g, many), targets=many, post_transform=g.rng.choice(TRANSFORMS))
    many = max(2, many)
    ml(g, op, x, coefficients=numbers(g, n * many), intercepts=numbers(g, many), classlabels_ints=g.rng.sample(range(-3, 9), many), post_transform=g.rng.choice(TRANSFORMS), kind="never", outputs=2)


def trees(g, op):
    """One to three trees of depth two."""
    x = table_of(g)
    ids, nodes, modes, feats, values, yes, no = [], [], [], [], [], [], []
    # Where both of two classes have weights, ONNX Runtime goes by the sign of the second alone.
    leaves, targets = [], g.rng.choice([1, 3] if op == "TreeEnsembleClassifier" else [1, 2, 3])
    rules = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    rules = g.rng.sample(rules, g.rng.choice([1, 1, 2, 6]))
    for tree in range(g.rng.choice([1, 2, 3])):
        for node in range(7):
            inner = node < 3
            ids.append(tree), nodes.append(node), modes.append(g.rng.choice(rules) if inner else "LEAF"), feats.append(g.rng.randrange(x.shape[1]) if inner else 0)
            values.append(g.rng.choice([0.0, 0.5, -1.0, 1.25]) if inner else 0.0), yes.append(2 * node + 1 if inner else 0), no.append(2 * node + 2 if inner else 0)
            if not inner:
                leaves.append((tree, node))
    what = "class" if op == "TreeEnsembleClassifier" else "target"
    if g.rng.random() < 0.5 or what == "class":
        leaves = [(tree, node, target) for tree, node in leaves for target in range(targets)]  # as exporters do: each leaf says something of each target
    else:
        leaves = [(tree, node, target) for tree, node in leaves for target in range(targets) if target == 0 or g.rng.random() < 0.5]
    each = targets * len({(tree, node) for tree, node, _ in leaves}) == len(leaves)
    attributes = {f"{what}_treeids": [t for t, _, _ in leaves], f"{what}_nodeids": [n for _, n, _ in leaves], f"{what}_ids": [i for _, _, i in leaves], f"{what}_weights": numbers(g, len(leaves))}
    attributes |= {"nodes_treeids": ids, "nodes_nodeids": nodes, "nodes_modes": modes, "nodes_featureids": feats, "nodes_values": values, "nodes_truenodeids": yes, "nodes_falsenodeids": no,
                   "post_transform": g.rng.choice(TRANSFORMS)}
    if what == "class":
        return ml(g, op, x, classlabels_int64s=list(range(max(2, targets))), kind="never", outputs=2, **attributes)
    if each and g.rng.random() < 0.3:  # ONNX Runtime forgets the base value of a target that no leaf of a row speaks of
        attributes["base_values"] = numbers(g, targets)
    ml(g, op, x, n_targets=targets, **attributes, **attributes_of(g, {"aggregate_function": ["SUM", "AVERAGE", "MIN", "MAX"]}))


def vectors(g, op):
    x = table_of(g)
    n, many = x.shape[1], 3
    kernel = g.rng.choice(["LINEAR", "RBF", "POLY", "SIGMOID"])
    ml(g, op, x, coefficients=numbers(g, many), support_vectors=numbers(g, n * many), n_supports=many, rho=[0.5], kernel_type=kernel, kernel_params=[0.25, 0.5, 2.0])


ROWS = [Row("Scaler Normalizer Imputer Binarizer ArrayFeatureExtractor FeatureVectorizer OneHotEncoder LabelEncoder", features, 2, ML), Row("LinearRegressor LinearClassifier", linear, 1, ML),
        Row("TreeEnsembleRegressor TreeEnsembleClassifier", trees, 1, ML), Row("SVMRegressor", vectors, 0.4, ML)]
