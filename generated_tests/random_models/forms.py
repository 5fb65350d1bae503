"""Nodes of older operator sets: how today's node was written then."""
import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper

from evaluate import DOMAINS, Unfit

REDUCTIONS = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
# Operands that were attributes before an operator set: operator -> (operator set, {operand: attribute}).
ATTRIBUTES_ONCE = {"Squeeze": (13, {1: "axes"}), "Unsqueeze": (13, {1: "axes"}), "ReduceSum": (13, {1: "axes"}), **{op: (18, {1: "axes"}) for op in REDUCTIONS},
                   "Slice": (10, {1: "starts", 2: "ends", 3: "axes"}), "TopK": (10, {1: "k"}), "Reshape": (5, {1: "shape"}), "Split": (13, {1: "split"}),
                   "Pad": (11, {1: "pads", 2: "value"}), "Clip": (11, {1: "min", 2: "max"}), "Upsample": (9, {1: "scales"}), "Dropout": (12, {1: "ratio"})}
SCALARS = {"k", "value", "min", "max", "ratio"}
# Definitions that meant something else: today's node does not tell what they compute.
OTHER_MEANING = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "BatchNormalization": 9, "Dropout": 12, "Upsample": 9, "Resize": 11, "Scan": 9,
                 "GroupNormalization": 21, "Tile": 6, "Split": 2, "Pad": 2, "PRelu": 7, "Selu": 6, "GRU": 3}
RENAMED = {("Pad", 1, "pads"): "paddings"}
MEANING = 17  # operator set of the node that stands in


def schema_of(op, domain, opset):
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        raise Unfit(f"operator set {opset} has no {op}") from None


def attribute_of(value, name):
    array = value.array
    return array.reshape(-1)[0].item() if name in SCALARS else array.reshape(-1).tolist()


def written_then(draft, opset):
    """The node as operator set `opset` writes it; raises Unfit where it does not have it."""
    if draft.domain == "com.microsoft":
        return draft
    schema = schema_of(draft.op, draft.domain, opset if not draft.domain else DOMAINS[draft.domain])
    operands, attributes = list(draft.operands), dict(draft.attributes)
    if draft.op in ATTRIBUTES_ONCE and opset < ATTRIBUTES_ONCE[draft.op][0]:
        for index, name in ATTRIBUTES_ONCE[draft.op][1].items():
            if index < len(operands) and operands[index] is not None:
                if not operands[index].constant or operands[index].size == 0:
                    raise Unfit("an attribute once")
                attributes[RENAMED.get((draft.op, schema.since_version, name), name)] = attribute_of(operands[index], name)
        first = min(ATTRIBUTES_ONCE[draft.op][1])
        if len(operands) > 1 + len(ATTRIBUTES_ONCE[draft.op][1]) and operands[-1] is not None and (operands[-1].array != 1).any():
            raise Unfit("an operand that came later")
        operands = operands[:first]
    if draft.op == "Cast" and schema.since_version < 6:
        attributes["to"] = TensorProto.DataType.Name(attributes["to"])
    attributes = {name: float(value) if schema.attributes[name].type == onnx.defs.OpSchema.AttrType.FLOAT else value
                  for name, value in attributes.items() if name in schema.attributes}
    if len([v for v in operands if v is not None]) < schema.min_input or len(operands) > schema.max_input or draft.outputs > schema.max_output:
        raise Unfit("other operands then")
    if opset < 7 and "broadcast" in schema.attributes and len({v.shape for v in operands[:2]}) > 1 and "broadcast" not in attributes:
        raise Unfit("broadcasts of today")
    return dataclasses.replace(draft, operands=tuple(operands), attributes=attributes)


def stands_in(draft, opset):
    """Whether today's node has the same meaning."""
    return draft.domain == "" and opset < MEANING and opset >= OTHER_MEANING.get(draft.op, 0) and draft.op not in ("If", "Loop", "Scan")
