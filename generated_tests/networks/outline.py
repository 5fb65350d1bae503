"""Turns operators of a model into calls of model-local functions, as exporters that keep a network's modules write them.

LayerNormalization and Gelu become functions written in simpler operators. One takes its epsilon as an attribute, the
other calls a second function, so that attribute references and nested calls both occur, some dozens of times.
"""
import onnx
import onnx.parser

DOMAIN = "outlined"
FUNCTIONS = (
    """<domain: "outlined", opset_import: ["" : 20]>
    LayerNorm <epsilon> (x, scale, bias) => (y) {
      axis = Constant <value_ints = [-1]> ()
      mean = ReduceMean (x, axis)
      centred = Sub (x, mean)
      square = Mul (centred, centred)
      variance = ReduceMean (square, axis)
      floor = Constant <value_float: float = @epsilon> ()
      moved = Add (variance, floor)
      deviation = Sqrt (moved)
      unit = Div (centred, deviation)
      scaled = Mul (unit, scale)
      y = Add (scaled, bias)
    }""",
    """<domain: "outlined", opset_import: ["" : 20]>
    NormalCdf (x) => (y) {
      half = Constant <value_float = 0.5> ()
      one = Constant <value_float = 1.0> ()
      root = Constant <value_float = 0.70710678> ()
      reach = Mul (x, root)
      erf = Erf (reach)
      twice = Add (erf, one)
      y = Mul (twice, half)
    }""",
    """<domain: "outlined", opset_import: ["" : 20, "outlined" : 1]>
    GaussianUnit (x) => (y) {
      share = outlined.NormalCdf (x)
      y = Mul (x, share)
    }""",
)


def outline(path):
    """Rewrites the model at `path`; its weights, in a file beside it, stay where they are."""
    model = onnx.load(path, load_external_data=False)
    changed = 0
    for node in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "LayerNormalization" and attributes.get("axis", -1) == -1 and len(node.input) == 3:
            node.op_type, epsilon = "LayerNorm", attributes.get("epsilon", 1e-5)
            del node.attribute[:]
            node.attribute.append(onnx.helper.make_attribute("epsilon", epsilon))
        elif node.op_type == "Gelu" and attributes.get("approximate", b"none") == b"none":
            node.op_type = "GaussianUnit"
            del node.attribute[:]
        else:
            continue
        node.domain = DOMAIN
        changed += 1
    assert changed, "nothing to outline"
    model.functions.extend(onnx.parser.parse_function(text) for text in FUNCTIONS)
    model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    onnx.save(model, path)
    onnx.checker.check_model(path)
