"""Operators of ai.onnx.ml."""
import numpy as np
import onnx
from onnx import helper

from history import const, recipe
from ml_cases import forest

ML = "ai.onnx.ml"


def floats(o, n):
    return [float(v) for v in o.f(n)]


@recipe("ArrayFeatureExtractor", domain=ML)
def extractor(o):
    yield o(o.x(3, 5), np.array([4, 0, 2]))


@recipe("Binarizer", domain=ML)
def binarizer(o):
    yield o(o.x(3, 5), threshold=0.5)


@recipe("CastMap", domain=ML)
def cast_map(o):
    node = helper.make_node("CastMap", ["m"], ["y"], domain=ML, cast_to="TO_FLOAT", map_form="SPARSE", max_map=5)
    case = o.graph([node], {}, ["y"], expect=lambda: [np.array([[0, 2.5, 0, 0, -1]], np.float32)])
    case.model.graph.input.append(helper.make_value_info("m", helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, []))))
    case.inputs = {"m": {1: 2.5, 4: -1.0}}
    yield case


@recipe("DictVectorizer", domain=ML)
def dict_vectorizer(o):
    node = helper.make_node("DictVectorizer", ["m"], ["y"], domain=ML, int64_vocabulary=[1, 3, 4])
    case = o.graph([node], {}, ["y"], expect=lambda: [np.array([2.5, 0, -1], np.float32)])
    case.model.graph.input.append(helper.make_value_info("m", helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, []))))
    case.inputs = {"m": {1: 2.5, 4: -1.0}}
    yield case


@recipe("CategoryMapper", domain=ML)
def category_mapper(o):
    maps = {"cats_int64s": [5, 6], "cats_strings": ["a", "bc"], "default_int64": 9, "default_string": "none"}
    yield o(np.array(["a", "bc", "x"], object), **maps)
    yield o(np.array([6, 5, 1]), **maps)


@recipe("FeatureVectorizer", domain=ML)
def feature_vectorizer(o):
    yield o(o.x(3, 2), o.x(3, 4), inputdimensions=[2, 4])


@recipe("Imputer", domain=ML)
def imputer(o):
    x = o.x(3, 4)
    x[1, 2] = 7
    if o.dtype.kind == "f":
        yield o(x, imputed_value_floats=[1.5], replaced_value_float=7.0)
    else:
        yield o(x, imputed_value_int64s=[1, 2, 3, 4], replaced_value_int64=7)


@recipe("LabelEncoder", domain=ML)
def label_encoder(o):
    text = np.array(["a", "bc", "x", "a"], object)
    if o.version == 1:
        yield o(text, classes_strings=["a", "bc"], default_int64=-7)
        yield o(np.array([1, 0, 5]), classes_strings=["a", "bc"], default_string="none")
        return
    yield o(text, keys_strings=["a", "bc"], values_int64s=[4, 5], default_int64=-7)
    yield o(text, keys_strings=["a", "bc"], values_strings=["p", "q"], default_string="r")
    yield o(o.f(4), keys_floats=[0.5, 1.5], values_floats=[4.0, 5.0], default_float=0.25)
    yield o(np.array([1, 0, 5]), keys_int64s=[5, 1], values_strings=["p", "q"])
    if o.version >= 4:
        keys = onnx.numpy_helper.from_array(np.array([1, 5], np.int64))
        yield o(np.array([1, 0, 5]), keys_tensor=keys, values_tensor=onnx.numpy_helper.from_array(np.array([2, 3], np.int16)),
                default_tensor=onnx.numpy_helper.from_array(np.array([-1], np.int16)))


@recipe("LinearClassifier", domain=ML)
def linear_classifier(o):
    for transform in ("SOFTMAX", "LOGISTIC", "NONE"):
        yield o(o.x(5, 4), coefficients=floats(o, 12), intercepts=floats(o, 3), classlabels_ints=[3, 7, 1], post_transform=transform, outputs=2)
    yield o(o.x(5, 4), coefficients=floats(o, 4), intercepts=floats(o, 1), classlabels_strings=["no", "yes"], outputs=2)


@recipe("LinearRegressor", domain=ML)
def linear_regressor(o):
    yield o(o.x(5, 4), coefficients=floats(o, 12), intercepts=floats(o, 3), targets=3)
    yield o(o.x(5, 4), coefficients=floats(o, 4), targets=1, post_transform="LOGISTIC" if o.dtype == np.float32 else "NONE")


@recipe("Normalizer", domain=ML)
def normalizer(o):
    for norm in ("MAX", "L1", "L2"):
        yield o(o.x(3, 4, low=1), norm=norm)


@recipe("OneHotEncoder", domain=ML)
def one_hot(o):
    yield o(o.x(3, 2, low=0, high=4, dtype=np.int64), cats_int64s=[1, 3, 0], zeros=1)
    yield o(np.array(["a", "bc", ""], object), cats_strings=["bc", "a"], zeros=1)


@recipe("SVMClassifier", domain=ML)
def svm_classifier(o):
    yield o(o.x(5, 4), coefficients=floats(o, 18), rho=floats(o, 3), vectors_per_class=[4, 2, 3], support_vectors=floats(o, 36), classlabels_ints=[3, 4, 8],
            kernel_type="RBF", kernel_params=[0.2, 0.5, 3.0], outputs=2)
    yield o(o.x(5, 4), coefficients=floats(o, 7), rho=floats(o, 1), vectors_per_class=[3, 4], support_vectors=floats(o, 28), classlabels_ints=[3, 4],
            kernel_type="POLY", kernel_params=[0.2, 0.5, 2.0], prob_a=[-0.5], prob_b=[0.25], outputs=2)


@recipe("SVMRegressor", domain=ML)
def svm_regressor(o):
    yield o(o.x(5, 4, dtype=np.float32), coefficients=floats(o, 9), rho=floats(o, 1), n_supports=9, support_vectors=floats(o, 36), kernel_type="SIGMOID", kernel_params=[0.2, 0.5, 3.0])


@recipe("Scaler", domain=ML)
def scaler(o):
    yield o(o.x(5, 3), offset=[0.5, -1.0, 2.0], scale=[2.0, 0.25, -1.0])


def as_tensors(o, attributes, kept=()):
    """From version 3 on some lists may be tensors of doubles."""
    result = dict(attributes)
    if o.dtype == np.float64 and o.version >= 3:
        for key in [key for key in attributes if key.endswith(("nodes_values", "weights", "base_values"))]:
            result[key + "_as_tensor"] = onnx.numpy_helper.from_array(np.array(result.pop(key), np.float64))
    return result


@recipe("TreeEnsembleRegressor", domain=ML)
def tree_regressor(o):
    for more in ({}, {"aggregate_function": "MAX", "base_values": [0.5]}, {"post_transform": "LOGISTIC"}):
        if o.version == 5 and "post_transform" in more:
            continue  # nothing judges it: ONNX Runtime does not know the version, nor the reference evaluator the transform
        trees = forest(o.rng, 5, 4, 3, "target", lambda tree: [0], ("BRANCH_LEQ", "BRANCH_GT"))
        yield o(o.x(7, 4, low=-1, high=1), n_targets=1, **as_tensors(o, {**trees, **more}))


@recipe("TreeEnsembleClassifier", domain=ML)
def tree_classifier(o):
    for more in ({}, {"post_transform": "SOFTMAX"}):
        trees = forest(o.rng, 6, 4, 3, "class", lambda tree: [tree % 3], positive=True)
        yield o(o.x(7, 4, low=-1, high=1), classlabels_int64s=[5, 1, 9], outputs=2, **as_tensors(o, {**trees, **more}))


@recipe("TreeEnsemble", domain=ML)
def tree_ensemble(o):
    tensor = lambda values: onnx.numpy_helper.from_array(np.array(values, o.dtype))
    yield o(o.x(7, 2, low=-1, high=1), n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0], nodes_modes=onnx.numpy_helper.from_array(np.array([0, 0, 4], np.uint8)),
            nodes_featureids=[0, 1, 0], nodes_splits=tensor([0.25, -0.5, 0.125]), nodes_truenodeids=[1, 0, 2], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 1, 3],
            nodes_falseleafs=[0, 1, 1], leaf_targetids=[0, 1, 0, 1], leaf_weights=tensor([5.25, 12.5, -2, 1]))


@recipe("ZipMap", domain=ML)
def zip_map(o):
    nodes = [helper.make_node("Softmax", ["x"], ["p"], axis=1), helper.make_node("ZipMap", ["p"], ["y"], domain=ML, classlabels_int64s=[10, 20, 30])]
    yield o.graph(nodes, {"x": o.f(4, 3)}, ["y"], expect=lambda x: [np.exp(x) / np.exp(x).sum(1, keepdims=True)])
