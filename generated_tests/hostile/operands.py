"""Sound models of which one operand has another type, size or rank: every operand of every differential case in turn.

Operators without a schema are told nothing by ONNX's library, so that their own rows have to notice.
"""
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

TYPES = [TensorProto.FLOAT, TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.UINT8, TensorProto.BOOL,
         TensorProto.FLOAT8E4M3FN, TensorProto.COMPLEX64, TensorProto.STRING]


def copy(model):
    other = onnx.ModelProto()
    other.CopyFrom(model)
    return other


def of_input(model, k):
    shape = model.graph.input[k].type.tensor_type.shape
    for t in TYPES:
        if t != model.graph.input[k].type.tensor_type.elem_type:
            other = copy(model)
            other.graph.input[k].type.tensor_type.elem_type = t
            yield f"as {TensorProto.DataType.Name(t).lower()}", other
    if shape.dim:
        other = copy(model)
        other.graph.input[k].type.tensor_type.shape.dim[0].dim_value = 0
        yield "without elements", other
    other = copy(model)
    other.graph.input[k].type.tensor_type.shape.dim.add().dim_value = 2
    yield "with an axis more", other


def of_weight(model, k):
    values = numpy_helper.to_array(model.graph.initializer[k])
    flat = values.reshape(-1)
    for word, changed in (("without elements", flat[:0]), ("as one number", flat[:1].reshape(()) if flat.size else values), ("twice as long", np.concatenate([flat, flat]))):
        other = copy(model)
        other.graph.initializer[k].CopyFrom(numpy_helper.from_array(changed, model.graph.initializer[k].name))
        yield word, other


def changes(models):
    """(name, model) for each operand and change; `models` as mutants.originals() gives them."""
    for number, data in enumerate(models):
        model = onnx.load_model_from_string(data)
        for k, value in enumerate(model.graph.input):
            for word, other in of_input(model, k):
                yield f"operand {value.name} of {model.graph.name} ({number}) {word}", other
        for k, tensor in enumerate(model.graph.initializer):
            for word, other in of_weight(model, k):
                yield f"operand {tensor.name} of {model.graph.name} ({number}) {word}", other
