"""The same model written otherwise: some of its nodes in a function, in a branch that is taken, in a loop that computes the same
every time, in a Scan; constants as nodes, or in the fields of their types; results that nobody reads left out."""
import copy

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from evaluate import NEWEST, Unfit, onnx_type
from forms import schema_of
from graph import BOOL, F32, I64, free_names_of

OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional
LOCAL = "local"  # domain of the functions
REFERRED = {onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS, onnx.AttributeProto.STRING, onnx.AttributeProto.TENSOR}


def reads(node):
    """Names that a node or its bodies read."""
    return [name for name in node.input if name] + sorted(free_names_of(node))


def renamed(node, names):
    """The node with other names for what it reads and makes, in its bodies too."""
    made = copy.deepcopy(node)
    made.input[:] = [names.get(name, name) for name in node.input]
    made.output[:] = [names.get(name, name) for name in node.output]
    for a in made.attribute:
        if a.HasField("g"):
            inner = [renamed(n, names) for n in a.g.node]
            del a.g.node[:]
            a.g.node.extend(inner)
            for v in a.g.output:
                v.name = names.get(v.name, v.name)
    return made


class Part:
    """Nodes of a graph that lie one behind the other: what they read from outside, and which of their results others read."""

    def __init__(self, graph, first, last):
        self.first, self.last, self.nodes = first, last, [copy.deepcopy(n) for n in graph.node[first:last]]
        made = [name for n in self.nodes for name in n.output if name]
        around = {name for n in [*graph.node[:first], *graph.node[last:]] for name in reads(n)} | {v.name for v in graph.output}
        self.operands = list(dict.fromkeys(name for n in self.nodes for name in reads(n) if name not in made))
        self.results = [name for name in made if name in around]

    def inside(self, fresh):
        """The nodes, whose results have other names than outside: {outside: inside} comes second."""
        names = {name: fresh(name + "_inside") for name in self.results}
        return [renamed(n, names) for n in self.nodes], names


def part_of(rng, graph, most=5):
    first = rng.randrange(len(graph.node))
    part = Part(graph, first, min(len(graph.node), first + rng.randrange(1, most + 1)))
    if not part.results:
        raise Unfit("nobody reads it")
    return part


def replaced(graph, part, nodes):
    around = [*graph.node[:part.first], *nodes, *graph.node[part.last:]]
    around = [copy.deepcopy(n) for n in around]
    del graph.node[:]
    graph.node.extend(around)


def described(values, name, rename=None):
    if name not in values:
        raise Unfit("no tensor")
    return helper.make_tensor_value_info(rename or name, onnx_type(values[name].dtype), values[name].shape)


def constant(array, name):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name))


def means_the_same(node, opset, other):
    """Whether another operator set has the same node."""
    if any(a.HasField("g") for a in node.attribute) or node.domain == LOCAL:
        return False
    if node.domain:
        return True
    try:
        return schema_of(node.op_type, "", opset).since_version == schema_of(node.op_type, "", other).since_version
    except Unfit:
        return False


# --- a part somewhere else ---


def in_function(rng, model, values, fresh):
    """A call of a function, which may call others; attributes of its nodes are its own, with defaults or without."""
    graph = model.graph
    part = part_of(rng, graph)
    opset = model.opset_import[0].version
    nodes, attributes, required, defaults = part.nodes, {}, [], []
    for n in nodes:
        for k, a in enumerate(n.attribute):
            if a.type in REFERRED and rng.random() < 0.4:
                outer = copy.deepcopy(a)
                outer.name = fresh("attribute")
                n.attribute[k].CopyFrom(onnx.AttributeProto(name=a.name, ref_attr_name=outer.name, type=a.type))
                if opset >= 18 and rng.random() < 0.5:
                    defaults.append(outer)
                else:
                    required.append(outer.name)
                    attributes[outer.name] = outer
    name = fresh("Function")
    same = [version for version in range(8, NEWEST + 1) if all(means_the_same(n, opset, version) for n in nodes)]
    imports = [helper.make_opsetid("", rng.choice([opset, *same])), *(i for i in model.opset_import if i.domain not in ("", LOCAL)), helper.make_opsetid(LOCAL, 1)]
    function = helper.make_function(LOCAL, name, part.operands, part.results, nodes, imports, required, defaults)
    call = helper.make_node(name, part.operands, part.results, domain=LOCAL)
    call.attribute.extend(attributes.values())
    model.functions.append(function)
    if not any(i.domain == LOCAL for i in model.opset_import):
        model.opset_import.append(helper.make_opsetid(LOCAL, 1))
    model.ir_version = max(model.ir_version, 10 if defaults else 8)
    replaced(graph, part, [call])


def condition(rng, graph, opset, values, fresh):
    """Nodes that compute a condition that is always true, and its name."""
    name = fresh("true")
    numbers = [v.name for v in graph.input if values[v.name].dtype == F32 and values[v.name].size]
    if not numbers or opset < 13 or rng.random() < 0.2:
        return [constant(np.asarray(True), name)], name
    flat, first, scalar, b, no = (fresh("c") for _ in range(5))
    return [constant(np.array([-1], I64), flat + "s"), constant(np.array([0], I64), flat + "z"), helper.make_node("Reshape", [rng.choice(numbers), flat + "s"], [flat]),
            helper.make_node("Gather", [flat, flat + "z"], [first]), constant(np.zeros(0, I64), flat + "e"), helper.make_node("Reshape", [first, flat + "e"], [scalar]),
            helper.make_node("Less", [scalar, scalar], [b]), helper.make_node("Not", [b], [no]), helper.make_node("Or", [no, b], [name])], name


def in_branch(rng, model, values, fresh):
    graph = model.graph
    part = part_of(rng, graph)
    before, test = condition(rng, graph, model.opset_import[0].version, values, fresh)
    nodes, names = part.inside(fresh)
    taken = helper.make_graph(nodes, "taken", [], [described(values, name, names[name]) for name in part.results])
    others = [fresh("other") for _ in part.results]
    other = helper.make_graph([constant(np.zeros_like(values[name].array), o) for name, o in zip(part.results, others)], "other", [], [described(values, name, o) for name, o in zip(part.results, others)])
    then, otherwise = (taken, other)
    if rng.random() < 0.4:
        wrong = fresh("false")
        before, test, then, otherwise = [*before, helper.make_node("Not", [test], [wrong])], wrong, other, taken
    replaced(graph, part, [*before, helper.make_node("If", [test], part.results, then_branch=then, else_branch=otherwise)])


def in_loop(rng, model, values, fresh):
    """Each turn computes the same; results are states, which begin with zeros, or the last slice of what is gathered."""
    graph = model.graph
    part = part_of(rng, graph)
    nodes, names = part.inside(fresh)
    trips, number, going, on = rng.choice([1, 1, 2, 3]), fresh("number"), fresh("going"), fresh("on")
    states = [name for name in part.results if rng.random() < 0.6]
    if not states and model.opset_import[0].version < 11:
        raise Unfit("needs a state then")
    gathered = [name for name in part.results if name not in states]
    old = {name: fresh("old") for name in states}
    body = helper.make_graph([*nodes, helper.make_node("Identity", [going], [on])], "body",
                             [helper.make_tensor_value_info(number, TensorProto.INT64, []), helper.make_tensor_value_info(going, TensorProto.BOOL, []), *(described(values, name, old[name]) for name in states)],
                             [helper.make_tensor_value_info(on, TensorProto.BOOL, []), *(described(values, name, names[name]) for name in states + gathered)])
    many, start = fresh("trips"), fresh("start")
    around = [constant(np.asarray(trips, I64), many), *(constant(np.zeros_like(values[name].array), old[name] + "_first") for name in states)]
    slices = {name: fresh("slices") for name in gathered}
    around.append(helper.make_node("Loop", [many, "", *(old[name] + "_first" for name in states)], [*states, *slices.values()], body=body))
    for name, all_of_it in slices.items():
        around += [constant(np.asarray(trips - 1, I64), all_of_it + "_at"), helper.make_node("Gather", [all_of_it, all_of_it + "_at"], [name], axis=0)]
    replaced(graph, part, around)


def in_scan(rng, model, values, fresh):
    """One operand comes as the slices of a tensor that has it twice, or once; the results of the last turn are taken."""
    graph = model.graph
    part = part_of(rng, graph)
    candidates = [name for name in part.operands if name in values]
    if not candidates or model.opset_import[0].version < 13:
        raise Unfit("nothing to scan")
    operand, trips = rng.choice(candidates), rng.choice([1, 2, 3])
    nodes, names = part.inside(fresh)
    slice_name = fresh("slice")
    nodes = [renamed(n, {operand: slice_name}) for n in nodes]
    axis = rng.randrange(values[operand].rank + 1)
    body = helper.make_graph(nodes, "body", [described(values, operand, slice_name)], [described(values, name, names[name]) for name in part.results])
    axes, one, all_of_it = fresh("axes"), fresh("one"), fresh("all")
    around = [constant(np.array([axis], I64), axes), helper.make_node("Unsqueeze", [operand, axes], [one]), helper.make_node("Concat", [one] * trips, [all_of_it], axis=axis)]
    slices = {name: fresh("slices") for name in part.results}
    around.append(helper.make_node("Scan", [all_of_it], list(slices.values()), body=body, num_scan_inputs=1, scan_input_axes=[axis], scan_input_directions=[rng.randrange(2)]))
    for name, many in slices.items():
        around += [constant(np.asarray(rng.choice([-1, trips - 1]), I64), many + "_at"), helper.make_node("Gather", [many, many + "_at"], [name], axis=0)]
    replaced(graph, part, around)


# --- the same in other fields ---


def constants_as_nodes(rng, model, values, fresh):
    """Constants become nodes, or their numbers stand in the fields of their types."""
    graph, kept, nodes = model.graph, [], []
    opset = model.opset_import[0].version
    for t in graph.initializer:
        array = numpy_helper.to_array(t)
        choice = rng.random()
        if choice < 0.3:
            plain = opset >= 12 and array.ndim < 2 and array.dtype in (F32, I64) and array.size
            word = ("value_float" if array.dtype == F32 else "value_int") + ("s" if array.ndim else "")
            nodes.append(helper.make_node("Constant", [], [t.name], **({word: array.tolist()} if plain else {"value": t})))
        elif choice < 0.6 and array.dtype.kind in "fiub" and array.dtype.itemsize > 0 and t.data_type not in (TensorProto.BFLOAT16, TensorProto.INT4, TensorProto.UINT4):
            numbers = array.view(np.uint16).ravel().tolist() if array.dtype == np.float16 else array.ravel().astype(np.int8 if array.dtype == BOOL else array.dtype).tolist()
            made = TensorProto(name=t.name, data_type=t.data_type, dims=t.dims)
            field = {"f": "int32_data" if array.dtype.itemsize == 2 else "float_data" if array.dtype.itemsize == 4 else "double_data", "i": "int64_data" if array.dtype.itemsize == 8 else "int32_data",
                     "u": "uint64_data" if array.dtype.itemsize >= 4 else "int32_data", "b": "int32_data"}[array.dtype.kind]
            getattr(made, field).extend(numbers)
            kept.append(made)
        else:
            kept.append(t)
    kept = [copy.deepcopy(t) for t in kept]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    rest = [*nodes, *(copy.deepcopy(n) for n in graph.node)]
    del graph.node[:]
    graph.node.extend(rest)


def unread(rng, model, values, fresh):
    """Results that nobody reads and that need not be there have no name, or are left out at the end."""
    graph = model.graph
    read = {name for n in graph.node for name in reads(n)} | {v.name for v in graph.output}
    for n in graph.node:
        if n.domain:
            continue
        forms = schema_of(n.op_type, "", model.opset_import[0].version).outputs
        n.output[:] = [name if name in read or forms[min(k, len(forms) - 1)].option != OPTIONAL else "" for k, name in enumerate(n.output)]
        while n.output and not n.output[-1]:
            del n.output[-1]


def same_twice(rng, model, values, fresh):
    """A node is there twice, and some of those that read it read the other."""
    graph = model.graph
    at = rng.randrange(len(graph.node))
    node = graph.node[at]
    names = {name: fresh("again") for name in node.output if name}
    later = [copy.deepcopy(n) for n in graph.node[at + 1:]]
    twin = copy.deepcopy(node)
    twin.output[:] = [names.get(name, "") for name in node.output]
    later = [renamed(n, names) if rng.random() < 0.5 and not set(names) & set(n.output) else n for n in later]
    rest = [*graph.node[:at + 1], twin, *later]
    rest = [copy.deepcopy(n) for n in rest]
    del graph.node[:]
    graph.node.extend(rest)


WRAPPINGS = [(in_function, 4), (in_branch, 3), (in_loop, 3), (in_scan, 2), (constants_as_nodes, 2), (unread, 1), (same_twice, 1)]


def wrapped(model, values, rng):
    """The model, in which some parts are written otherwise; `values` are all its tensors by name."""
    used = {"n": 0}

    def fresh(word):
        used["n"] += 1
        return f"{word}_{used['n']}_"
    for _ in range(rng.randrange(1, 5)):
        change = rng.choices([c for c, _ in WRAPPINGS], [w for _, w in WRAPPINGS])[0]
        before = copy.deepcopy(model)
        try:
            change(rng, model, values, fresh)
        except Unfit:
            model = before
    return model
