"""Models of ai.onnx.ml: what scikit-learn, LightGBM and XGBoost become. Numbers of trees and machines are seeded."""
import numpy as np

from case import Case


def text(value):
    """A Python value in ONNX's text syntax."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(text(v) for v in value) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(int(value))


def call(outputs, operator, inputs, **attributes):
    listed = ", ".join(f"{name} = {text(value)}" for name, value in attributes.items())
    return f"{', '.join(outputs)} = ai.onnx.ml.{operator} <{listed}> ({', '.join(inputs)})"


def forest(rng, trees, features, depth, prefix, ids, rules=("BRANCH_LEQ",), missing=False, positive=False):
    """Attributes of an ensemble of seeded trees; `ids(tree)` are the targets that a leaf of the tree has weights for."""
    nodes, weights = [], []
    for tree in range(trees):
        count = 0

        def grow(level):
            nonlocal count
            node, count = count, count + 1
            if level == depth or rng.random() < 0.2:
                nodes.append((tree, node, 0, "LEAF", 0.0, 0, 0, 0))
                for target in ids(tree):
                    weight = rng.random() / trees if positive else rng.standard_normal()
                    weights.append((tree, node, target, float(np.float32(weight))))
                return node
            place = len(nodes)
            nodes.append(None)
            yes = grow(level + 1)
            no = grow(level + 1)
            # Thresholds on a grid that inputs lie on, too: equality matters.
            nodes[place] = (tree, node, int(rng.integers(features)), rules[int(rng.integers(len(rules)))],
                            float(rng.integers(-4, 5)) / 4, yes, no, int(missing and rng.random() < 0.5))
            return node

        grow(0)
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    attributes = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*nodes))}
    names = ("treeids", "nodeids", "ids", "weights")
    return attributes | {f"{prefix}_{name}": list(column) for name, column in zip(names, zip(*weights))}


def grid(rng, rows, features, nans=False):
    x = (rng.integers(-6, 7, (rows, features)) / 4).astype(np.float32)
    if nans:
        x[rng.random(x.shape) < 0.2] = np.nan
    return x


def tree_cases():
    rng = np.random.default_rng(5)
    rules = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    regressors = {"sum": {}, "average": {"aggregate_function": "AVERAGE"}, "min": {"aggregate_function": "MIN"},
                  "max": {"aggregate_function": "MAX", "base_values": [0.5]}, "logistic": {"post_transform": "LOGISTIC"}}
    for name, attributes in regressors.items():
        trees = forest(rng, 7, 5, 4, "target", lambda tree: [0])
        yield Case(f"trees_{name}", call(["y"], "TreeEnsembleRegressor", ["x"], n_targets=1, **trees, **attributes),
                   {"x": grid(rng, 11, 5)})
    trees = forest(rng, 6, 4, 5, "target", lambda tree: [0], rules, missing=True)
    yield Case("trees_rules_nan", call(["y"], "TreeEnsembleRegressor", ["x"], n_targets=1, **trees), {"x": grid(rng, 23, 4, True)})
    trees = forest(rng, 6, 4, 4, "target", lambda tree: [0], rules[:4])
    trees["nodes_featureids"] = [rules.index(mode) if mode in rules else 0 for mode in trees["nodes_modes"]]  # one table for both
    yield Case("trees_features_as_rules", call(["y"], "TreeEnsembleRegressor", ["x"], n_targets=1, **trees), {"x": grid(rng, 11, 4)})
    trees = forest(rng, 4, 4, 3, "target", lambda tree: [0, 1, 2])
    yield Case("trees_targets", call(["y"], "TreeEnsembleRegressor", ["x"], n_targets=3, base_values=[1.0, -2.0, 0.25], **trees),
               {"x": grid(rng, 9, 4)})
    # x in {1, 3, 4} as LightGBM and XGBoost write categories: a branch for each of them, which lead to one node.
    shared = {"nodes_treeids": [0] * 5, "nodes_nodeids": [0, 1, 2, 3, 4], "nodes_featureids": [0] * 5,
              "nodes_modes": ["BRANCH_EQ"] * 3 + ["LEAF", "LEAF"], "nodes_values": [1.0, 3.0, 4.0, 0.0, 0.0],
              "nodes_truenodeids": [3, 3, 3, 0, 0], "nodes_falsenodeids": [1, 2, 4, 0, 0]}
    places = np.arange(7, dtype=np.float32).reshape(7, 1)
    yield Case("trees_shared_nodes", call(["y"], "TreeEnsembleRegressor", ["x"], n_targets=1, target_treeids=[0, 0], target_nodeids=[3, 4],
                                          target_ids=[0, 0], target_weights=[10.0, 20.0], **shared), {"x": places})
    # A leaf's number, once a class, as scikit-learn's converter asks for it: the first counts.
    yield Case("trees_weights_again", call(["y"], "TreeEnsembleRegressor", ["x"], n_targets=1, target_treeids=[0] * 4, target_nodeids=[3, 3, 4, 4],
                                           target_ids=[0] * 4, target_weights=[4.0, 4.0, 5.0, 7.0], **shared), {"x": places})
    trees = forest(rng, 1, 4, 0, "target", lambda tree: [0])
    yield Case("trees_leaf", call(["y"], "TreeEnsembleRegressor", ["x"], n_targets=1, **trees), {"x": grid(rng, 3, 4)})
    labels = {2: [7, -3], 3: [0, 1, 2], 4: [10, 20, 30, 40]}
    classifiers = {"one_each": (4, lambda tree: [tree % 4], {"post_transform": "SOFTMAX"}), "dense": (3, lambda tree: [0, 1, 2], {}),
                   "softmax_zero": (3, lambda tree: [tree % 3], {"post_transform": "SOFTMAX_ZERO"}),
                   "base": (3, lambda tree: [tree % 3], {"base_values": [0.5, 0.25, -1.0]}), "pair": (2, lambda tree: [0, 1], {})}
    for name, (classes, ids, attributes) in classifiers.items():
        trees = forest(rng, 8, 5, 3, "class", ids, positive=name in ("dense", "pair"))
        yield Case(f"tree_classes_{name}", call(["label", "p"], "TreeEnsembleClassifier", ["x"], classlabels_int64s=labels[classes],
                                                **trees, **attributes), {"x": grid(rng, 13, 5)},
                   outputs=("p",) if name == "pair" else ("label", "p"))  # of two scores ONNX Runtime does not take the larger one
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        for target, base in ((0, []), (0, [0.125]), (1, [])):
            for positive in (False, True):
                trees = forest(rng, 5, 5, 3, "class", lambda tree: [target], positive=positive)
                more = {"base_values": base} if base else {}
                name = f"tree_binary_{transform.lower()}_{target}{'_base' if base else ''}{'_positive' if positive else ''}"
                yield Case(name, call(["label", "p"], "TreeEnsembleClassifier", ["x"], classlabels_int64s=labels[2],
                                      post_transform=transform, **trees, **more), {"x": grid(rng, 13, 5)}, outputs=("label", "p"))


def machine_cases():
    """Linear models and support vector machines."""
    rng = np.random.default_rng(6)

    def floats(n):
        return [float(v) for v in rng.standard_normal(n).astype(np.float32)]

    for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield Case(f"linear_classes_{transform.lower()}",
                   call(["label", "p"], "LinearClassifier", ["x"], coefficients=floats(12), intercepts=floats(3), classlabels_ints=[5, 1, 9],
                        post_transform=transform), {"x": (7, 4)}, outputs=("label", "p"))
    for transform in ("NONE", "LOGISTIC"):
        yield Case(f"linear_one_row_{transform.lower()}",
                   call(["label", "p"], "LinearClassifier", ["x"], coefficients=floats(4), intercepts=floats(1), classlabels_ints=[5, 1],
                        post_transform=transform), {"x": (7, 4)}, outputs=("label", "p"))
    yield Case("linear_regressor", call(["y"], "LinearRegressor", ["x"], coefficients=floats(15), intercepts=floats(3), targets=3), {"x": (9, 5)})
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        common = {"kernel_type": kernel, "kernel_params": [0.2, 0.5, 3.0]}
        yield Case(f"svm_regressor_{kernel.lower()}", call(["y"], "SVMRegressor", ["x"], coefficients=floats(9), rho=floats(1), n_supports=9,
                                                           support_vectors=floats(36), **common), {"x": (5, 4)})
        yield Case(f"svm_classes_{kernel.lower()}",
                   call(["label", "p"], "SVMClassifier", ["x"], coefficients=floats(18), rho=floats(3), vectors_per_class=[4, 2, 3],
                        support_vectors=floats(36), classlabels_ints=[3, 4, 8], **common), {"x": (5, 4)}, outputs=("label", "p"))
    for classes, vectors in ((2, [3, 4]), (4, [2, 3, 1, 2])):
        total, pairs = sum(vectors), classes * (classes - 1) // 2
        machine = {"coefficients": floats(total * (classes - 1)), "rho": floats(pairs), "vectors_per_class": vectors, "kernel_type": "RBF",
                   "kernel_params": [0.3, 0.0, 3.0], "support_vectors": floats(total * 4), "classlabels_ints": list(range(classes))}
        for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
            yield Case(f"svm_pairs_{classes}_{transform.lower()}", call(["label", "p"], "SVMClassifier", ["x"], post_transform=transform, **machine),
                       {"x": (6, 4)}, outputs=("label", "p"))
        yield Case(f"svm_probability_{classes}",
                   call(["label", "p"], "SVMClassifier", ["x"], prob_a=[-abs(v) for v in floats(pairs)], prob_b=floats(pairs), **machine),
                   {"x": (6, 4)}, outputs=("label", "p"))
    for transform in ("LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        yield Case(f"svm_one_target_{transform.lower()}", call(["y"], "SVMRegressor", ["x"], coefficients=floats(4), rho=floats(1), n_supports=4,
                                                               support_vectors=floats(16), kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0],
                                                               post_transform=transform), {"x": (5, 4)})
    yield Case("svm_one_class", call(["y"], "SVMRegressor", ["x"], coefficients=floats(5), rho=floats(1), n_supports=5, one_class=1,
                                     support_vectors=floats(20), kernel_type="RBF", kernel_params=[0.1, 0.0, 3.0]), {"x": (9, 4)})


def feature_cases():
    nans = np.array([[1, np.nan, -2], [np.nan, 0, 4]], np.float32)
    whole = np.array([[3, 1], [0, 7], [7, 3]], np.int64)
    yield Case("ml_scaler", call(["y"], "Scaler", ["x"], offset=[0.5, -1.0, 2.0], scale=[2.0, 0.25, -1.0]), {"x": (7, 3)})
    for norm in ("MAX", "L1", "L2"):
        yield Case(f"ml_normalizer_{norm.lower()}", call(["y"], "Normalizer", ["x"], norm=norm),
                   {"x": np.array([[1, -2, 0.5], [0, 0, 0], [3, 4, 12]], np.float32)})
    yield Case("ml_imputer_nan", call(["y"], "Imputer", ["x"], imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan")), {"x": nans})
    yield Case("ml_imputer_ints", call(["y"], "Imputer", ["x"], imputed_value_int64s=[5], replaced_value_int64=7), {"x": whole})
    yield Case("ml_one_hot", call(["y"], "OneHotEncoder", ["x"], cats_int64s=[7, 3, 1], zeros=1), {"x": whole})
    yield Case("ml_labels", call(["y"], "LabelEncoder", ["x"], keys_int64s=[3, 7], values_floats=[0.5, -1.0], default_float=9.0), {"x": whole})
    yield Case("ml_labels_nan", call(["y"], "LabelEncoder", ["x"], keys_floats=[1.0, float("nan")], values_int64s=[4, 5], default_int64=-7), {"x": nans})
    yield Case("ml_vectorizer", call(["y"], "FeatureVectorizer", ["x", "z"], inputdimensions=[3, 2]), {"x": (4, 3), "z": (4, 2)})


def cases():
    yield from tree_cases()
    yield from machine_cases()
    yield from feature_cases()
