"""The value of one node, by ONNX Runtime: without its optimiser, and apart from the nodes around it.

Operands are constants of a model of that node alone, so that every element type can be passed. Narrow floats are computed in
single precision and stored narrow. Whole numbers for which ONNX Runtime has no kernel are computed in wider ones. Where it
lacks an old operator set, the same node of a newer one stands in, or ONNX's reference evaluator.
"""
import dataclasses

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
import onnx.shape_inference
import onnxruntime
from onnx import helper, numpy_helper

import iterate

NEWEST = 26  # operator set that ONNX Runtime takes
DOMAINS = {"ai.onnx.ml": 3, "com.microsoft": 1, "ai.onnx.preview.training": 1}
BF16, F8, F8_2, I4, U4 = (np.dtype(t) for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4))
NARROW = {np.dtype(np.float16), BF16}
SMALL = {np.dtype(t) for t in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)}
READ_AS = {BF16: np.float32, F8: np.float32, F8_2: np.float32, I4: np.int8, U4: np.uint8}  # what Python gets instead
OWN_TYPES = {"Cast", "CastLike", "BitCast", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "EyeLike", "If", "Loop", "Scan",
             "Constant", "ConstantOfShape", "RandomNormal", "RandomUniform"}  # types are what these are about


class Unfit(Exception):
    """This node cannot be: it is refused, or nothing tells its value."""


@dataclasses.dataclass(frozen=True)
class Draft:
    """A node before it has names: operands are values of the graph, or None where one is absent."""
    op: str
    operands: tuple
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    domain: str = ""


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def session_options():
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.x64quantprecision", "1")  # sums of products of bytes never saturate
    return options


OPTIONS = session_options()


def model_of(nodes, constants, outputs, opset):
    graph = helper.make_graph(nodes, "node", [], [onnx.ValueInfoProto(name=name) for name in outputs],
                              [numpy_helper.from_array(array, name) for name, array in constants.items()])
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, version) for domain, version in DOMAINS.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=8 if opset < 19 else 10)


def run_model(nodes, constants, outputs, opset):
    """The arrays of `outputs`; constants are {name: array}."""
    model = model_of(nodes, constants, outputs, opset).SerializeToString()
    return onnxruntime.InferenceSession(model, OPTIONS, providers=["CPUExecutionProvider"]).run(None, {})


def narrowed(array, dtype):
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def run_node(node, constants, opset, wide=(), kind=None):
    """Outputs of the node. Operands of types in `wide`, {type: wider}, are cast before, and results back; `kind` is the type
    of the only result where Python cannot read it."""
    nodes, renamed, back = [], {}, None
    for name, array in constants.items():
        if array.dtype in wide and name in node.input:
            renamed[name], back = name + "_wide", array.dtype
            nodes.append(helper.make_node("Cast", [name], [renamed[name]], to=onnx_type(wide[array.dtype])))
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.input[:] = [renamed.get(name, name) for name in node.input]
    nodes.append(inner)
    outputs = [name for name in node.output if name]
    if kind is not None:
        nodes.append(helper.make_node("Cast", outputs, ["readable"], to=onnx_type(READ_AS[kind])))
        return [narrowed(run_model(nodes, constants, ["readable"], max(opset, 21))[0], kind)]
    results = run_model(nodes, constants, outputs, opset)
    return [narrowed(r, back) if back is not None and r.dtype == wide[back] else r for r in results]


def unreadable_result(draft):
    """The type of the result, where it is one of READ_AS and the node's types are its own business."""
    kind = None
    types = [v.dtype for v in draft.operands if v is not None]
    to = draft.attributes.get("to") or draft.attributes.get("output_dtype")
    if to:
        kind = np.dtype(helper.tensor_dtype_to_np_dtype(to))
    elif draft.op in ("QuantizeLinear", "CastLike"):
        kind = types[-1]
    elif draft.op == "DequantizeLinear":
        kind = types[1]
    elif draft.op not in OWN_TYPES and len(set(types)) == 1 and types[0] not in NARROW:
        kind = types[0]  # moves of 4-bit integers
    return kind if kind in READ_AS else None


def evaluate(draft, node, constants, opset):
    """The arrays of the node's outputs; raises Unfit."""
    if draft.op == "Resize" and draft.attributes.get("antialias") and draft.operands[0].dtype in SMALL:
        raise Unfit("ONNX Runtime rounds to bytes between the axes")
    if draft.op in ("Resize", "Upsample") and not draft.operands[0].exact and np.issubdtype(draft.operands[0].dtype, np.integer):
        raise Unfit("ONNX Runtime cuts fractions off instead of rounding: the second time it may be two steps away")
    if draft.op.startswith("QLinear") and any(v.array.dtype == np.float32 and (v.array == 0).any() for v in draft.operands if v is not None):
        raise Unfit("a step of quantisation that is none")
    if draft.op in ("MaxPool", "AveragePool", "LpPool") and draft.attributes.get("auto_pad") == "SAME_UPPER" and any(s > k for s, k in zip(draft.attributes.get("strides", ()), draft.attributes["kernel_shape"])):
        raise Unfit("ONNX Runtime pads by less than nothing")
    if draft.op == "ReduceProd" and np.issubdtype(draft.operands[0].dtype, np.floating) and draft.operands[0].array.size:
        powers = np.log2(np.maximum(np.abs(np.nan_to_num(draft.operands[0].array.astype(np.float64))), 1e-300))
        if max(powers[powers > 0].sum(), -powers[powers < 0].sum()) > np.log2(float(np.finfo(draft.operands[0].dtype).max)) - 8:
            raise Unfit("what a product of all leaves depends on its order")
    if draft.op == "TopK" and (draft.operands[0].array != draft.operands[0].array).any():
        raise Unfit("what is no number has no place in an order")
    if draft.op in ("Max", "Min", "Sign", "Clip") and any(a.dtype == np.int64 and a.size and np.abs(a).max() >= 2**31 for a in constants.values()):
        raise Unfit("ONNX Runtime compares the lower halves of such integers")
    if draft.op == "Softplus" and draft.operands[0].dtype == np.float64 and (draft.operands[0].array > 700).any():
        raise Unfit("ONNX Runtime has no doubles here, and the reference's exponential overflows")
    single(draft)
    beyond(draft)
    if draft.op in ("AveragePool", "MaxPool", "GlobalMaxPool"):
        opset = max(opset, 7)  # what version 1 says, and of these sets ONNX Runtime casts
    if in_ranks(draft):
        return by_ranks(draft, node, opset)
    kinds = {array.dtype for array in constants.values()}
    narrow = {kind: np.dtype(np.float32) for kind in NARROW & kinds} if draft.op not in OWN_TYPES else {}
    plans = [lambda: iterate.run(node, constants, run_model, opset) if draft.op in iterate.OWN else run_node(node, constants, opset, narrow, unreadable_result(draft))]
    if draft.domain == "" and kinds & SMALL and draft.op not in OWN_TYPES:
        for wide in (np.int32, np.float32):
            plans.append(lambda wide=wide: run_node(node, constants, opset, narrow | {k: np.dtype(wide) for k in SMALL & kinds if k != np.dtype(wide)}))
    if reference_knows(draft, opset):
        plans.append(lambda: by_reference(node, constants, opset, narrow))
    for number, plan in enumerate(plans):
        try:
            results = plan()
            break
        except Exception as error:  # each class of ONNX Runtime's errors derives from Exception alone
            first = str(error) if number == 0 else first
            if not any(word in str(error) for word in ("NOT_IMPLEMENTED", "INVALID_GRAPH", "Could not find")):
                raise Unfit(str(error)) from None
    else:
        raise Unfit(first)
    if draft.op == "MaxPool" and len(results) > 1 and ((results[1] < 0) | (results[1] >= max(1, draft.operands[0].size))).any():
        raise Unfit("a window of padding alone")
    if draft.op.startswith("Reduce") and draft.operands[0].size == 0 and (draft.op == "ReduceMean" or results[0].shape != reduced_shape(draft)):
        raise Unfit("ONNX Runtime keeps axes of an empty tensor, and has a mean of nothing")
    if number or narrow:
        check(node, constants, opset)
    return results


def reduced_shape(draft):
    """The shape that a reduction has, written as today."""
    x, axes = draft.operands[0], draft.operands[1] if len(draft.operands) > 1 else None
    if axes is None or axes.size == 0 and draft.attributes.get("noop_with_empty_axes"):
        return x.shape if axes is not None else (1,) * x.rank if draft.attributes.get("keepdims", 1) else ()
    return x.array.sum(tuple(axes.array) or None, keepdims=draft.attributes.get("keepdims", 1) != 0).shape


def rounds_a_tie(draft):
    """Whether the node casts a float that lies between two integers to one of few bits."""
    if draft.op not in ("Cast", "CastLike") or None in draft.operands or draft.operands[0].dtype.kind != "f":
        return False
    few = draft.attributes.get("to") in (onnx_type(I4), onnx_type(U4)) if draft.op == "Cast" else draft.operands[1].dtype in (I4, U4)
    return few and bool((draft.operands[0].array % 1 == 0.5).any())


def same_in_halves(draft):
    """Does QuantizeLinear of halves say the same if quotients are halves, too? ONNX Runtime divides in single precision."""
    x, scale = (v.array for v in draft.operands[:2])
    if not x.dtype == scale.dtype == np.float16 or draft.attributes.get("precision"):
        return True
    axis, block = draft.attributes.get("axis", 1), draft.attributes.get("block_size", 0)
    if block:
        scale = np.repeat(scale, block, axis)[tuple(slice(0, n) for n in x.shape)]
    elif scale.ndim == 1 and x.ndim > 1 and scale.size > 1:
        scale = scale.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])
    with np.errstate(all="ignore"):
        quotient = x.astype(np.float32) / scale.astype(np.float32)
        return np.array_equal(np.rint(quotient), np.rint(quotient.astype(np.float16).astype(np.float32)), equal_nan=True)


def single(draft):
    """Raises Unfit where ONNX Runtime computes in floats of fewer digits than the operands have, or casts what does not fit."""
    x = draft.operands[0].array if draft.operands and draft.operands[0] is not None else np.zeros(0)
    if x.dtype.kind not in "iuf" or x.size == 0:
        return
    with np.errstate(all="ignore"):
        most = np.abs(x.astype(np.float64)).max()
    whole = x.dtype.kind in "iu"
    if draft.op == "Shrink" and whole and most > 2**24:
        raise Unfit("a sum of floats is cast to an integer that does not have it")
    if draft.op == "Mod" and draft.attributes.get("fmod") and whole and any(np.abs(v.array.astype(np.float64)).max(initial=0) > 2**53 for v in draft.operands):
        raise Unfit("ONNX Runtime takes the remainder of doubles")
    if draft.op in ("GroupNormalization", "InstanceNormalization") and x.dtype == np.float64 and most > 1e15:
        raise Unfit("ONNX Runtime has no doubles here, and squares overflow")
    if draft.op in ("RMSNormalization", "SimplifiedLayerNormalization") and x.dtype == np.float32 and most > 1e18:
        raise Unfit("ONNX Runtime adds squares of floats in doubles, where the operator's function overflows")
    if draft.op in ("GroupNormalization", "InstanceNormalization") and x.dtype == np.float64 and most > 8 * x.std():
        raise Unfit("ONNX Runtime has no doubles here, and squares of floats lose digits where that of the mean is taken away")
    if draft.op == "QuantizeLinear" and not whole and not most < 1e6:
        raise Unfit("ONNX Runtime casts quotients that no integer holds, of 4 bits to the least of them")


def beyond(draft):
    """Raises Unfit where ONNX Runtime does something of its own with numbers that are not finite, or large."""
    arrays = [v.array for v in draft.operands if v is not None and v.array.dtype.kind not in "OUb"]
    wild = [a for a in arrays if not np.isfinite(a.astype(np.float64)).all()]
    if not wild and draft.op != "LRN":
        return
    no_number = any(np.isnan(a.astype(np.float64)).any() for a in wild)
    if draft.op == "Clip" and any(np.isinf(a.astype(np.float64)).any() for a in wild):
        raise Unfit("clips infinities where there is no bound, which ONNX's reference and PyTorch do not")
    if draft.op == "DynamicQuantizeLinear" or draft.op == "LogSoftmax" and arrays[0].dtype == np.float64:
        raise Unfit("a scale or a sum that is no number")
    if draft.op in ("Conv", "ConvTranspose") and len(arrays) > 1 and any(a is arrays[1] for a in wild):
        raise Unfit("weights times the zeros of a border, or of taps that are none")
    if draft.op == "Resize":
        raise Unfit("ONNX Runtime multiplies by weights of 0 along axes that stay")
    if draft.op in ("Unique", "ReduceLogSumExp", "ReduceLogSum", "Hardmax", "ArgMax", "ArgMin", "Sign") and no_number:
        raise Unfit("what is no number equals itself, or does not, and is forgotten here and there")
    if draft.op in ("ScatterElements", "ScatterND") and draft.attributes.get("reduction") in ("max", "min") and no_number:
        raise Unfit("ONNX Runtime takes the other one for larger, or what came last; ONNX's reference and PyTorch keep NaN")
    if draft.op == "LRN" and (wild or np.abs(arrays[0].astype(np.float64)).max(initial=0) > 1e3):
        raise Unfit("ONNX Runtime keeps a running sum of squares, which does not forget a large one")


def in_ranks(draft):
    """Whether the largest or least of these numbers is found by ranks."""
    if draft.op not in ("ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool") or draft.operands[0] is None or draft.operands[0].size == 0:
        return False
    wide = draft.operands[0].array.astype(np.float64)
    return not np.isfinite(wide).all() or draft.operands[0].dtype.kind in "iu" and np.abs(wide).max() >= 2**31


def by_ranks(draft, node, opset):
    """The largest or least of numbers, found among their places in an order that has NaN at the end that wins: ONNX Runtime
    forgets NaN here and there, and takes the least finite number for -inf."""
    x, = {v.name: v.array for v in draft.operands[:1]}.items()
    kinds, ranks = np.unique(x[1] if x[1].dtype.kind in "iu" else x[1].astype(np.float64), return_inverse=True)  # NaN is last, and one
    order = np.roll(np.arange(len(kinds)), 1) if draft.op == "ReduceMin" and kinds[-1] != kinds[-1] else np.arange(len(kinds))
    place = np.argsort(order)[ranks].astype(np.float32).reshape(x[1].shape)
    found = run_node(node, {v.name: v.array for v in draft.operands if v is not None} | {x[0]: place}, opset)
    if found[0].size and found[0].min() < 0:
        raise Unfit("a window of padding alone")
    return [narrowed(kinds[order][found[0].astype(int)], x[1].dtype), *found[1:]]


def check(node, constants, opset):
    """Raises Unfit where ONNX takes the node for wrong: what was computed may have been another node."""
    model = model_of([node], {}, [name for name in node.output if name], opset)
    model.graph.input.extend(helper.make_tensor_value_info(name, onnx_type(array.dtype), array.shape) for name, array in constants.items())
    try:
        onnx.checker.check_node(node, onnx.checker.DEFAULT_CONTEXT) if opset == 0 else None
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:
        raise Unfit(str(error)) from None


def reference_knows(draft, opset):
    """Whether ONNX's reference evaluator computes what the operator's text says."""
    if opset < {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "PRelu": 7, "Selu": 6, "Gemm": 7}.get(draft.op, 0) or "broadcast" in draft.attributes:
        return False  # knows those of today; its Gemm of before forgets beta
    if draft.op == "BatchNormalization" and draft.attributes.get("spatial", 1) == 0:
        return False  # takes statistics of every place for those of channels
    if draft.op in ("Conv", "ConvInteger", "QLinearConv"):
        return draft.attributes.get("auto_pad", "NOTSET") == "NOTSET"
    # Loses states of loops; goes one way over whole sequences; takes pads of pools in another order; takes two axes for those of
    # any image; reads indices modulo the depth; adds the groups of ConvTranspose;
    # normalises over as many channels as there are images.
    return draft.op not in ("If", "Loop", "Scan", "RNN", "GRU", "LSTM", "MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "OneHot", "ConvTranspose", "LRN")


def by_reference(node, constants, opset, wide):
    """ONNX's reference evaluator, which would compute the squares of halves as halves: `wide` as of run_node."""
    back = next((array.dtype for array in constants.values() if array.dtype in wide), None)
    constants = {name: array.astype(wide.get(array.dtype, array.dtype)) for name, array in constants.items()}
    model = model_of([node], constants, [name for name in node.output if name], opset)
    with np.errstate(all="ignore"):
        results = [np.asarray(a) for a in onnx.reference.ReferenceEvaluator(model).run(None, {})]
    return [narrowed(r, back) if back is not None and r.dtype == wide[back] else r for r in results]
