"""Loop and Scan one iteration after the other, each a model of its own: ONNX Runtime's Loop and Scan lose states that change places
or are handed on through views."""
import numpy as np
from onnx import helper, numpy_helper

OWN = ("Loop", "Scan")


def run(node, known, run_model, opset):
    """Outputs of a Loop or Scan; `known`: arrays by name, those of outside that its body reads among them. `run_model` as
    that of evaluate.py."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    body = attributes["body"]
    operands = [known[name] if name else None for name in node.input]
    step = lambda inputs: run_graph(body, {**known, **dict(zip((i.name for i in body.input), inputs))}, run_model, opset)  # noqa: E731
    results = (loop if node.op_type == "Loop" else scan)(operands, attributes, body, step)
    return [r for r, name in zip(results, node.output) if name]


def loop(operands, attributes, body, step):
    trips, going, *states = operands
    going, parts, done = True if going is None else bool(going), [], 0
    while going and (trips is None or done < int(trips)):
        on, *results = step([np.asarray(done, np.int64), np.asarray(True), *states])
        going, done = bool(on), done + 1
        states = results[:len(states)]
        parts.append(results[len(states):])
    return states + [stacked(info, [p[k] for p in parts]) for k, info in enumerate(body.output[1 + len(states):])]


def scan(operands, attributes, body, step):
    many = attributes["num_scan_inputs"]
    states, scanned = operands[:len(operands) - many], operands[len(operands) - many:]
    axes = attributes.get("scan_input_axes", [0] * many)
    back = attributes.get("scan_input_directions", [0] * many)
    scanned = [np.flip(np.moveaxis(v, a, 0), 0) if b else np.moveaxis(v, a, 0) for v, a, b in zip(scanned, axes, back)]
    parts = []
    for i in range(len(scanned[0])):
        results = step([*states, *(v[i] for v in scanned)])
        states = results[:len(states)]
        parts.append(results[len(states):])
    outputs = body.output[len(states):]
    axes = attributes.get("scan_output_axes", [0] * len(outputs))
    back = attributes.get("scan_output_directions", [0] * len(outputs))
    wholes = [stacked(info, [p[k] for p in parts]) for k, info in enumerate(outputs)]
    return states + [np.moveaxis(np.flip(v, 0) if b else v, 0, a) for v, a, b in zip(wholes, axes, back)]


def stacked(info, parts):
    if parts:
        return np.stack(parts)
    shape = [0, *(d.dim_value for d in info.type.tensor_type.shape.dim)]
    return np.zeros(shape, helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))


def run_graph(graph, known, run_model, opset):
    """Outputs of a body: what lies between loops is one model."""
    known = {**known, **{t.name: numpy_helper.to_array(t) for t in graph.initializer}}
    nodes = list(graph.node)
    while nodes:
        first = next((k for k, n in enumerate(nodes) if n.op_type in OWN), len(nodes))
        if first:
            part, nodes = nodes[:first], nodes[first:]
            made = {name for n in part for name in n.output if name}
            wanted = sorted(made & (reads(nodes) | {o.name for o in graph.output}))
            if wanted:
                read = reads(part)
                known.update(zip(wanted, run_model(part, {k: v for k, v in known.items() if k in read}, wanted, opset)))
        else:
            n = nodes.pop(0)
            known.update(zip([name for name in n.output if name], run(n, known, run_model, opset)))
    return [known[o.name] for o in graph.output]


def reads(nodes):
    """Names that nodes read, their bodies too."""
    names = set()
    for n in nodes:
        names |= set(n.input)
        for a in n.attribute:
            if a.HasField("g"):
                names |= reads(a.g.node) | {o.name for o in a.g.output}
    return names
