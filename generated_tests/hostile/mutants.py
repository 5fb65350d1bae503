"""Sound models with one to three random changes: tc-emit may accept or refuse each, but it has to say something sensible.

The changes keep the encoding right and make the meaning wrong: other sizes, types, attributes, operands, operators,
constants. The generator is seeded, so a mutant has a number: `run.py --only 'mutant 17$'` runs it again.
"""
import importlib.util
import random
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from toolchain import Failed

NUMBERS = [0, 1, 2, 3, 5, 7, 16, -1, -2, -3, 64, 65, 1000, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 62) - 1, (1 << 63) - 1, -(1 << 63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e30, float("inf"), float("-inf"), float("nan")]
OPERATORS = ("Add Mul Div Pow Relu Softmax MatMul Gemm Conv Transpose Reshape Concat Slice Gather ReduceSum MaxPool Cast Where Expand "
             "Tile Pad Split TopK Mod BitShift CumSum Resize LSTM QuantizeLinear Identity Squeeze Unsqueeze Shape").split()
TYPES = [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 20, 21, 23]
ANSWERS = {0, 1, 3, 5}  # exit codes: done, rejected, not supported, over a limit


def originals():
    """The models of the differential tests, as bytes: most operators, many forms."""
    path = Path(__file__).resolve().parent.parent / "differential" / "cases.py"
    sys.path.append(str(path.parent))  # behind this folder, which has a cases.py, too
    spec = importlib.util.spec_from_file_location("differential_cases", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return [case.model(None).SerializeToString() for case in module.all_cases()]


def some_node(rng, graph):
    return rng.choice(list(graph.node))


def change_attribute(rng, model):
    node = some_node(rng, model.graph)
    if not node.attribute:
        node.attribute.append(onnx.helper.make_attribute(rng.choice(["axis", "keepdims", "group", "to", "mode", "pads"]), rng.choice(NUMBERS)))
        return
    a = rng.choice(list(node.attribute))
    if a.HasField("i"):
        a.i = rng.choice(NUMBERS)
    elif a.HasField("f"):
        a.f = rng.choice(FLOATS)
    elif a.HasField("s"):
        a.s = rng.choice([b"", b"linear", b"SAME_UPPER", b"VALID", b"reverse", b"\xff\0", a.s + b"x"])
    elif a.ints:
        k = rng.randrange(len(a.ints))
        change = rng.randrange(3)
        if change == 0:
            a.ints[k] = rng.choice(NUMBERS)
        elif change == 1:
            del a.ints[k]
        else:
            a.ints.append(rng.choice(NUMBERS))


def some_port(rng, graph):
    """An input, or an output of a model that has none."""
    return rng.choice(list(graph.input) or list(graph.output))


def change_size(rng, model):
    dims = some_port(rng, model.graph).type.tensor_type.shape.dim
    if dims and rng.randrange(3):
        rng.choice(list(dims)).dim_value = rng.choice(NUMBERS)
    elif dims and rng.randrange(2):
        del dims[rng.randrange(len(dims))]
    else:
        dims.add().dim_value = rng.choice(NUMBERS[:7])


def change_type(rng, model):
    some_port(rng, model.graph).type.tensor_type.elem_type = rng.choice(TYPES)


def change_constant(rng, model):
    if not model.graph.initializer:
        return change_attribute(rng, model)
    t = rng.choice(list(model.graph.initializer))
    a = numpy_helper.to_array(t).copy()
    change = rng.randrange(4)
    if change == 0 and a.size:
        a.flat[rng.randrange(a.size)] = rng.choice(FLOATS) if a.dtype.kind == "f" else str(rng.choice(NUMBERS)) if a.dtype == object else np.int64(rng.choice(NUMBERS)).astype(a.dtype)
    elif change == 1:
        a = a.reshape(-1)[: rng.randrange(a.size + 1)]
    elif change == 2:
        a = a.reshape(*a.shape, 1) if rng.randrange(2) else a.reshape(1, *a.shape)
    elif a.dtype != object:
        with np.errstate(all="ignore"):
            a = a.astype(rng.choice([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16]))
    t.CopyFrom(numpy_helper.from_array(a, t.name))


def change_operand(rng, model):
    node = some_node(rng, model.graph)
    known = [v.name for v in model.graph.input] + [t.name for t in model.graph.initializer] + [o for n in model.graph.node for o in n.output]
    change = rng.randrange(4)
    if change == 0 and node.input:
        del node.input[rng.randrange(len(node.input))]
    elif change == 1 and node.input:
        node.input[rng.randrange(len(node.input))] = ""
    elif change == 2 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(known)
    else:
        node.input.append(rng.choice(known))


def change_operator(rng, model):
    some_node(rng, model.graph).op_type = rng.choice(OPERATORS)


def change_graph(rng, model):
    nodes = model.graph.node
    change = rng.randrange(4)
    if change == 0 and len(nodes) > 1:
        del nodes[rng.randrange(len(nodes))]
    elif change == 1:
        more = onnx.NodeProto()
        more.CopyFrom(rng.choice(list(nodes)))
        for k in range(len(more.output)):
            more.output[k] += "_again"
        nodes.append(more)
        model.graph.output.add().name = more.output[0]
    elif change == 2:
        model.opset_import[0].version = rng.choice([1, 6, 7, 9, 11, 13, 15, 17, 19, 23])
    else:
        model.graph.output.add().name = rng.choice([o for n in nodes for o in n.output] + [v.name for v in model.graph.input])


CHANGES = [change_attribute, change_attribute, change_size, change_type, change_constant, change_constant, change_operand, change_operator, change_graph]


def mutant(number, models):
    """The bytes of a mutant."""
    rng = random.Random(number)
    model = onnx.load_model_from_string(rng.choice(models))
    for _ in range(rng.choice([1, 1, 2, 3])):
        rng.choice(CHANGES)(rng, model)
    return model.SerializeToString()


def check(name, data, options, emit, scratch):
    """Raises Failed if tc-emit does not answer as it should; `data` is a model's bytes."""
    path = scratch / "model.onnx"
    path.write_bytes(data)
    try:
        code, told = emit(options.tool, path, scratch / "out", scale=options.scale)
        if code not in ANSWERS or (code and "error[TC" not in told):
            raise Failed(f"exit code {code}: {told[:600]}")
    except Failed:
        if options.keep:
            (options.keep / f"{name.replace(' ', '_')}.onnx").write_bytes(data)
        raise
