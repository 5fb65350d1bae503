"""The pairs (operator, version) of ONNX's schema history, and small models of each.

A recipe is a generator of models for one or more operators. It is called once for every version of the operator, with an
`Operator` that knows the version's schema and makes operands and models; what a version lacks or spells otherwise, the
recipe decides from the schema.
"""
import collections
import dataclasses
import itertools
import typing
import zlib

import ml_dtypes
import numpy as np
import onnx
import onnx.defs
import onnx.parser
from onnx import helper, numpy_helper

DTYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(double)": np.float64, "tensor(int32)": np.int32,
          "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_, "tensor(float16)": np.float16,
          "tensor(string)": object, "tensor(int16)": np.int16, "tensor(uint16)": np.uint16, "tensor(uint32)": np.uint32,
          "tensor(uint64)": np.uint64, "tensor(bfloat16)": ml_dtypes.bfloat16}
NAMES = {np.dtype(kind): name[7:-1] for name, kind in DTYPES.items()}
LAST_OPSET = 26  # that ONNX Runtime knows
LAST_VERSIONS = {"ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
RECIPES = {}


@dataclasses.dataclass
class Case:
    """One model, its operands and who judges it."""
    pair: tuple  # domain, operator, version
    name: str
    model: onnx.ModelProto  # outputs without types
    inputs: dict
    outputs: tuple
    expect: typing.Callable = None  # inputs in order, weights among them -> outputs; where ONNX Runtime has no kernel
    check: typing.Callable = None  # outputs -> "" or what is wrong with them: for random results
    bar: float = 1e-5
    counted: bool = False
    decided: bool = False  # by the definition even where ONNX Runtime has a kernel, which computes something else
    twin: int = 0  # the operator set before this version, if only the types differ there


@dataclasses.dataclass
class Weight:
    """An operand that is a constant of the model."""
    value: np.ndarray


def const(value, dtype=np.int64):
    return Weight(np.asarray(value, dtype))


def recipe(*operators, domain=""):
    """Declares a generator of models as the recipe of `operators`."""
    def add(function):
        for operator in operators:
            RECIPES.setdefault((domain, operator), []).append(function)
        return function
    return add


def history():
    """{(domain, operator): schemas by rising version}."""
    pairs = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        pairs[schema.domain, schema.name].append(schema)
    return {key: sorted(pairs[key], key=lambda schema: schema.since_version) for key in sorted(pairs)}


class Operator:
    """One version of an operator, in the hands of its recipe."""

    def __init__(self, schema, older, newer, dtype, suffix):
        self.schema, self.version, self.dtype, self.suffix, self.count = schema, schema.since_version, np.dtype(dtype), suffix, 0
        self.name = f"{schema.name}-{self.version}{suffix}"
        self.rng = np.random.default_rng(zlib.crc32(f"{schema.domain}/{self.name}".encode()))
        self.last = max(newer - 1 if newer else LAST_OPSET, self.version)  # operator set in which it is in force
        self.twin = schema.since_version - 1 if older and not schema.domain and form_of(older) == form_of(schema) else 0
        self.is_float = self.dtype.kind == "f" or self.dtype == ml_dtypes.bfloat16

    def has(self, attribute):
        return attribute in self.schema.attributes

    def x(self, *shape, low=-3, high=3, dtype=None):
        """Seeded numbers of the operator's type: few bits, so that ties happen and sums of halves are exact."""
        kind = np.dtype(dtype or self.dtype)
        if kind == object:
            return self.rng.choice(np.array(["a", "bc", "", "Zo\u00eb", "0"], object), shape)
        if kind == bool:
            return self.rng.random(shape) < 0.5
        if kind.kind in "iu":
            return np.asarray(self.rng.integers(0 if kind.kind == "u" else int(low), int(high) + 1, shape), kind)
        return np.asarray(np.round(self.rng.uniform(low, high, shape) * 64) / 64, np.float64).astype(kind)

    def f(self, *shape, low=-1, high=1):
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def __call__(self, *operands, outputs=1, used=None, **more):
        """A model of this one node. Operands: arrays are inputs, Weights constants, None is absent. `used`: which of its
        outputs are the model's. What is not a field of Case is an attribute."""
        fields = {field.name for field in dataclasses.fields(Case)}
        attributes = {key: value for key, value in more.items() if key not in fields and value is not None}
        if self.has("consumed_inputs") and "consumed_inputs" not in attributes:
            attributes["consumed_inputs"] = [0] * len(operands)
        names = ["" if value is None else f"x{k}" for k, value in enumerate(operands)]
        while names and not names[-1]:
            names.pop()
        made = [f"y{k}" if used is None or k in used else "" for k in range(outputs)]
        node = helper.make_node(self.schema.name, names, made, name="node", domain=self.schema.domain, **attributes)
        return self.graph([node], dict(zip(names, operands)), [name for name in made if name],
                          **{key: value for key, value in more.items() if key in fields})

    def text(self, body, operands, outputs=("y",), **more):
        """A model in ONNX's text syntax."""
        graph = onnx.parser.parse_graph(f"g () => ({', '.join('float[1] ' + name for name in outputs)}) {{ {body} }}")
        return self.graph(graph.node, operands, outputs, **more)

    def graph(self, nodes, operands, outputs, **more):
        self.count += 1
        opset = LAST_OPSET if self.schema.domain else self.version if self.count % 2 else self.last
        graph = onnx.GraphProto(name="g")
        graph.node.extend(nodes)
        inputs = {name: value for name, value in operands.items() if name and not isinstance(value, Weight)}
        for name, value in operands.items():
            if not name:
                continue
            array = np.asarray(value.value if isinstance(value, Weight) else value)
            declared = helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            if isinstance(value, Weight):
                graph.initializer.append(numpy_helper.from_array(array, name))
            if not isinstance(value, Weight) or opset < 9:  # as models of that time have it
                graph.input.append(declared)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
        sets = {"": opset, **LAST_VERSIONS}
        if self.schema.domain:
            sets[self.schema.domain] = self.version
        used = {"", *(node.domain for node in nodes)}
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(name, version) for name, version in sets.items() if name in used],
                                  ir_version=3 if opset < 9 else 10)
        known = [value.value if isinstance(value, Weight) else value for value in operands.values()]
        if "expect" in more:
            more["expect"] = lambda run=more["expect"]: run(*known)
        return Case((self.schema.domain, self.schema.name, self.version), f"{self.name}/{self.count}", model,
                    {name: np.asarray(value) for name, value in inputs.items()}, tuple(outputs), twin=self.twin, **more)


def form_of(schema):
    """What a version takes, but for types."""
    attributes = {name: (a.type, a.required, a.default_value.SerializeToString()) for name, a in schema.attributes.items()}
    return attributes, [(formal.name, formal.option) for formal in [*schema.inputs, *schema.outputs]]


def types_of(schema):
    """The tensor types of the first operand that may have several, in the order of DTYPES."""
    for formal in [*schema.inputs, *schema.outputs]:
        if "(" not in formal.type_str:
            allowed = next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == formal.type_str)
            return [kind for kind in DTYPES if kind in allowed]
    return []


def versions(schemas):
    """The Operators to ask for each schema: of the ordinary type, and of one that this version is the first to take."""
    for k, schema in enumerate(schemas):
        newer = schemas[k + 1].since_version if k + 1 < len(schemas) else None
        older = schemas[k - 1] if k else None
        kinds = types_of(schema) or ["tensor(float)"]
        before = types_of(schemas[k - 1]) if k else []
        fresh = [kind for kind in kinds[1:] if kind not in before]
        yield Operator(schema, older, newer, DTYPES[kinds[0]], "")
        if fresh:
            kind = fresh[zlib.crc32(schema.name.encode()) % len(fresh)]
            yield Operator(schema, older, newer, DTYPES[kind], "-" + kind[7:-1])


def all_cases():
    """[(pair, cases)] of the whole history."""
    result = []
    for key, schemas in history().items():
        by_version = {schema.since_version: [] for schema in schemas}
        for operator in versions(schemas):
            for make in RECIPES.get(key, []):
                by_version[operator.version] += itertools.islice(make(operator), 2 if operator.suffix else None)
        result += [((*key, version), cases) for version, cases in by_version.items()]
    return result
