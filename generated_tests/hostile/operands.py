"""Sound models of which one operand has another type, size or rank, or a node or a body one operand or result more or less:
every operand and node of every differential case in turn.

Operators without a schema are told nothing by ONNX's library, so that their own rows have to notice; nor does it compare a
node with its body.
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


def places(graph, word=""):
    """(words, a list of names) of everything that a node or a body takes and gives: `graph` is the one to be changed."""
    for k, node in enumerate(graph.node):
        yield f"operands of {word}{node.op_type} {k}", node.input
        yield f"results of {word}{node.op_type} {k}", node.output
        for attribute in node.attribute:
            if attribute.HasField("g"):
                body = f"{word}{node.op_type} {k} {attribute.name}"
                yield f"inputs of {body}", attribute.g.input
                yield f"outputs of {body}", attribute.g.output
                yield from places(attribute.g, body + " ")


def more(names):
    if hasattr(names, "add"):  # of a body
        names.add().CopyFrom(names[0])
        names[-1].name += "_more"
    else:
        names.append(names[0])


COUNTS = [("gone", lambda names: names.__delitem__(slice(None))), ("less one", lambda names: names.pop(0)), ("without the last", lambda names: names.pop()),
          ("with one more", more)]


def of_counts(model):
    number = sum(1 for _ in places(model.graph))
    for k in range(number):
        for word, change in COUNTS:
            other = copy(model)
            what, names = list(places(other.graph))[k]
            if names:
                change(names)
                yield f"{what} {word}", other


def changes(models):
    """(name, model) for each operand and change; `models` as mutants.originals() gives them."""
    for number, data in enumerate(models):
        model = onnx.load_model_from_string(data)
        for word, other in of_counts(model):
            yield f"{word} in {model.graph.name} ({number})", other
        for k, value in enumerate(model.graph.input):
            for word, other in of_input(model, k):
                yield f"operand {value.name} of {model.graph.name} ({number}) {word}", other
        for k, tensor in enumerate(model.graph.initializer):
            for word, other in of_weight(model, k):
                yield f"operand {tensor.name} of {model.graph.name} ({number}) {word}", other
