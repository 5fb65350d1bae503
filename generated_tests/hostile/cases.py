"""Models that are wrong or made to do harm, with what tc-emit has to say to each.

A case writes its files into a folder of its own and names the model. Everything is made here: from ONNX's text syntax,
by changing a sound model, or byte by byte.
"""
import os
from dataclasses import dataclass, field as default
from typing import Callable

import onnx
import onnx.parser
from onnx import TensorProto, helper

import wire

REJECTED, USAGE, UNSUPPORTED, LIMIT, IO = 1, 2, 3, 5, 6


@dataclass
class Case:
    name: str
    exit: int
    code: str  # of the message, "" where the model is accepted
    says: str  # words of the message
    write: Callable  # of the case's folder; returns the model's path
    flags: list = default(default_factory=list)


def text(name, exit_code, code, says, graph, header='ir_version: 8, opset_import: ["" : 17]', functions="", flags=()):
    """A case in ONNX's text syntax, in binary form."""
    def write(folder):
        model = onnx.parser.parse_model(f"<{header}>\n{graph}\n{functions}")
        return save(folder, model.SerializeToString())
    return Case(name, exit_code, code, says, write, list(flags))


def save(folder, data, name="model.onnx"):
    (folder / name).write_bytes(data)
    return folder / name


def raw(name, exit_code, code, says, data):
    return Case(name, exit_code, code, says, lambda folder: save(folder, data() if callable(data) else data))


def sound():
    """A small model that is accepted: Add of an input and a weight, Relu."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0, 2, 3, 4])
    nodes = [helper.make_node("Add", ["x", "w"], ["a"], name="add"), helper.make_node("Relu", ["a"], ["y"], name="relu")]
    ports = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, [4])] for n in "xy"]
    return helper.make_model(helper.make_graph(nodes, "g", *ports, [weight]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def changed(name, exit_code, code, says, change):
    """The sound model after `change(model, folder)`."""
    def write(folder):
        model = sound()
        change(model, folder)
        return save(folder, model.SerializeToString())
    return Case(name, exit_code, code, says, write)


# --- the file

def special_file(make):
    def write(folder):
        make(folder / "model.onnx")
        return folder / "model.onnx"
    return write


def sparse_file(path):
    with open(path, "wb") as f:
        f.truncate(5 << 30)


def files():
    data = sound().SerializeToString()
    yield Case("no file", IO, "TC0101", "No such file or directory", lambda folder: folder / "model.onnx")
    yield Case("a folder", IO, "TC0101", "a folder", special_file(os.mkdir))
    yield Case("a pipe", IO, "TC0101", "not a regular file", special_file(os.mkfifo))
    yield Case("a link to a device", IO, "TC0101", "not a regular file", special_file(lambda path: os.symlink("/dev/zero", path)))
    yield Case("5 GiB of zeros", LIMIT, "TC0103", "protobuf ends at 2 GiB", special_file(sparse_file))
    yield raw("empty", REJECTED, "TC0102", "not an ONNX model", b"")
    yield raw("no protobuf", REJECTED, "TC0102", "not an ONNX model", b"this is not a model\n" * 9)
    yield raw("a large file's pointer", REJECTED, "TC0102", "not an ONNX model", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n")
    yield raw("cut off", REJECTED, "TC0102", "damaged", data[:len(data) // 2])
    yield raw("cut off in the last byte", REJECTED, "TC0102", "damaged", data[:-1])
    yield raw("bytes behind the end", REJECTED, "TC0102", "damaged", data + b"\xff\xff")
    yield raw("endless varint", REJECTED, "TC0102", "damaged", b"\x08" + b"\xff" * 20)
    yield raw("field longer than the file", REJECTED, "TC0102", "damaged", wire.HEADER + b"\x3a\xff\xff\xff\xff\x0f")
    yield raw("a field of 2^63 bytes", REJECTED, "TC0102", "damaged", wire.HEADER + b"\x3a" + b"\xff" * 8 + b"\x7f")
    yield raw("groups that never end", REJECTED, "TC0102", "damaged", wire.HEADER + b"\x0b" * 100000)
    yield raw("no graph", REJECTED, "TC0106", "has no graph", wire.HEADER)
    yield raw("the graph is a number", REJECTED, "TC0106", "has no graph", wire.HEADER + b"\x38\x05")
    yield raw("10,000 bodies inside each other", LIMIT, "TC0105", "deeper than 32", lambda: wire.nested_ifs(10000))
    yield raw("33 bodies inside each other", LIMIT, "TC0105", "deeper than 32", lambda: wire.nested_ifs(33))
    yield raw("10,000 sequences inside each other", REJECTED, "TC0102", "damaged", lambda: wire.nested_sequences(10000))


# --- header and structure

def structure():
    g = "g (float[2] x) => (float[2] y)"
    yield text("newer operator set", UNSUPPORTED, "TC0107", "opset_version=", g + " { y = Neg(x) }", 'ir_version: 8, opset_import: ["" : 999]')
    yield changed("negative operator set", REJECTED, "TC0106", "no valid version", lambda m, _: setattr(m.opset_import[0], "version", -3))
    yield changed("no operator set", REJECTED, "TC0106", "imports no operator set", lambda m, _: m.ClearField("opset_import"))
    yield text("cycle", REJECTED, "TC0112", 'cycle: "q" -> "p" -> "q"', g + " { [p] a = Add(x, b)  [q] b = Neg(a)  y = Neg(b) }")
    yield text("input that nothing makes", REJECTED, "TC0111", 'input 1 "gone"', g + " { y = Add(x, gone) }")
    yield text("types that an operator without a schema does not take together", REJECTED, "TC0201", "operands of add are f32 and f64",
               "g (float[2,4] x, double[2,4] s, float[4] w) => (float[2,4] y) { y = com.microsoft.SkipSimplifiedLayerNormalization (x, s, w) }",
               'ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]')
    for made, node in (("a formula", "QuickGelu (x)"), ("other nodes", "FusedGemm (x, x)")):
        yield text(f"an output that an operator without a schema, made of {made}, has not", REJECTED, "TC0201", "has no output 1",
                   f"g (float[4,4] x) => (float[4,4] y, float[4,4] z) {{ y, z = com.microsoft.{node} }}", 'ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]')
    yield text("a size without elements", REJECTED, "TC0201", "fewer elements", "g (float[13] x) => (float[13] y) <int64[0] n = {}> { w = HammingWindow (n)  y = Mul (w, x) }")
    yield text("two nodes of one result", REJECTED, "TC0110", 'already defined', g + " { y = Neg(x)  y = Abs(x) }")
    yield changed("two inputs of one name", REJECTED, "TC0110", "already defined", lambda m, _: m.graph.input.append(m.graph.input[0]))
    yield text("output that nothing makes", REJECTED, "TC0114", "never defined", "g (float[2] x) => (float[2] z) { y = Neg(x) }")
    yield changed("no output", REJECTED, "TC0114", "no output", lambda m, _: m.graph.ClearField("output"))
    yield changed("input without a type", REJECTED, "TC0153", "no type", lambda m, _: m.graph.input[0].ClearField("type"))
    yield changed("node without an operator", REJECTED, "TC0115", "without an operator", lambda m, _: m.graph.node[0].ClearField("op_type"))
    yield text("operator of the compiler's own", UNSUPPORTED, "TC0170", "label_lookup", "g (float x) => (float y) { y = tc.label_lookup(x, x, x, x) }", 'ir_version: 8, opset_import: ["" : 17, "tc" : 1]')
    yield text("unknown operator", UNSUPPORTED, "TC0170", "Frobnicate", g + " { y = other.Frobnicate(x) }", 'ir_version: 8, opset_import: ["" : 17, "other" : 1]')
    both = helper.make_attribute("axis", 0)
    both.floats.extend([1.0])
    yield changed("attribute of two types", REJECTED, "TC0116", '"axis"', lambda m, _: m.graph.node[1].attribute.append(both))
    self_call = '<domain: "my", opset_import: ["" : 17, "my" : 1]> f (a) => (b) { b = my.f(a) }'
    mutual = ('<domain: "my", opset_import: ["" : 17, "my" : 1]> f (a) => (b) { b = my.h(a) }\n'
              '<domain: "my", opset_import: ["" : 17, "my" : 1]> h (a) => (b) { b = my.f(a) }')
    mine = 'ir_version: 8, opset_import: ["" : 17, "my" : 1]'
    yield text("function that calls itself", REJECTED, "TC0141", "calls itself", g + " { y = my.f(x) }", mine, self_call)
    yield text("functions that call each other", REJECTED, "TC0141", "calls itself", g + " { y = my.f(x) }", mine, mutual)
    ten = "\n".join(f'<domain: "my", opset_import: ["" : 17, "my" : 1]> f{i} (a) => (b) {{ '
                    + " ".join(f"v{k + 1} = {'my.f%d' % (i - 1) if i else 'Neg'}(v{k})".replace("v0)", "a)") for k in range(10))
                    + " b = Neg(v10) }" for i in range(12))
    yield text("10^12 nodes in a page", LIMIT, "TC0142", "--limit-nodes", g + " { y = my.f11(x) }", mine, ten)
    yield Case("more problems than anyone reads", REJECTED, "TC0199", "800 more problems", lambda folder: save(
        folder, onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> ' + g + " { y = Neg(x) " + " ".join(
            f"[n{i}] v{i} = Neg(x, x)" for i in range(1000)) + "}").SerializeToString()))


# --- sizes

def set_dims(which):
    def change(model, _):
        for k, size in enumerate(which):
            dims = model.graph.input[0].type.tensor_type.shape.dim
            (dims.add() if k else dims[0]).dim_value = size
    return change


def weight_dims(*dims):
    def change(model, _):
        model.graph.initializer[0].ClearField("dims")
        model.graph.initializer[0].dims.extend(dims)
    return change


def set_raw(data, also_floats=False):
    def change(model, _):
        if not also_floats:
            model.graph.initializer[0].ClearField("float_data")
        model.graph.initializer[0].raw_data = data
    return change


def sizes():
    yield changed("negative size of an input", REJECTED, "TC0150", "the size -5", set_dims([-5]))
    yield changed("2^80 elements of an input", LIMIT, "TC0501", "does not fit in 64 bits", set_dims([1 << 40, 1 << 40]))
    yield changed("65 dimensions", LIMIT, "TC0121", "more than 64 dims", set_dims([1] * 65))
    yield changed("negative size of a weight", REJECTED, "TC0121", "negative dim -4", weight_dims(-4))
    yield changed("2^64 elements of a weight", REJECTED, "TC0121", "does not fit in 64 bits", weight_dims(1 << 32, 1 << 32))
    yield changed("a weight with less data than sizes", REJECTED, "TC0120", "dims ask for 1000000", weight_dims(1000000))
    yield changed("a weight of 3 bytes for 4 floats", REJECTED, "TC0120", "has 3 bytes, its dims ask for 16", set_raw(b"abc"))
    yield changed("a weight's data in two forms", REJECTED, "TC0123", "more than one form", set_raw(b"\0" * 16, True))
    x, small = "g (float[2] x) => (float[2] y)", "g (float[2] x) => (float[n] y)"
    yield text("2^62 repetitions", LIMIT, "TC0501", "", small + " <int64[1] r = {4611686018427387904}> { y = Tile(x, r) }")
    yield text("negative repetitions", REJECTED, "TC0201", "", small + " <int64[1] r = {-1}> { y = Tile(x, r) }")
    yield text("2^40 copies", LIMIT, "TC0501", "", small + " <int64[3] s = {1099511627776, 1099511627776, 2}> { y = Expand(x, s) }")
    yield text("padding of 2^62", LIMIT, "TC0501", "", small + " <int64[2] p = {4611686018427387904, 4611686018427387904}> { y = Pad(x, p) }")
    yield text("padding away more than there is", REJECTED, "TC0201", "", small + " <int64[2] p = {-5, 1}> { y = Pad(x, p) }")
    yield text("resize by 10^30", REJECTED, "TC0201", "a size below 2^31", small + " <float[1] s = {1e30}> { y = Resize(x, , s) }")
    yield text("a depth of 2^60", LIMIT, "TC0501", "", "g (int64[4] x) => (float[4, n] y) <int64 d = {1152921504606846976}, float[2] v = {0, 1}> { y = OneHot(x, d, v) }")


def huge():
    """Models that are right, and whose tensors or loops are beyond any int: they are compiled, not run."""
    yield text("4 TB in one value that no tensor holds", 0, "", "", "g (float[1] x) => (float[1] y) <int64[3] s = {100000, 100000, 1000}> "
               "{ a = ConstantOfShape(s)  b = ReduceSum<keepdims = 0>(a)  y = Add(x, b) }")
    yield text("10^17 numbers in a row", 0, "", "", "g (int64[1] x) => (int64[n] y) <int64 a = {0}, int64 b = {100000000000000000}, int64 d = {1}> "
               "{ r = Range(a, b, d)  y = Add(x, r) }")
    yield changed("3,000,000,000 elements", 0, "", "", three_billion)


def three_billion(model, _):
    model.graph.ClearField("initializer")
    del model.graph.node[0]
    model.graph.node[0].input[0] = "x"
    for port in (model.graph.input[0], model.graph.output[0]):
        port.type.tensor_type.shape.dim[0].dim_value = 3 * 10 ** 9


# --- attributes and operands

def operands():
    x = "g (float[2, 2] x) => (float[n, m] y)"
    conv = "g (float[1, 1, 4, 4] x) => (float[1, 1, n, m] y) <float[1, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>"
    yield text("axis 10^6", REJECTED, "TC0117", "allowed -64..64", x + " { y = Softmax <axis = 1000000> (x) }")
    yield text("axis beyond the rank", REJECTED, "TC0201", "axis", x + " { y = Softmax <axis = 7> (x) }")
    yield text("a flag of 2", REJECTED, "TC0117", "allowed 0..1", x + " { y = ReduceSum <keepdims = 2> (x) }")
    for flag in ("interleaved", "rotary_interleaved", "batch_axis", "time_axis", "new_axis", "storage_order", "unidirectional", "do_rotary", "transBatchA", "transBatchB"):
        yield text(f"{flag} of 2", REJECTED, "TC0117", "allowed 0..1", x + f" {{ y = Neg <{flag} = 2> (x) }}")
    yield text("stride 0", REJECTED, "TC0117", '"strides"', conv + " { y = Conv <strides = [0, 1]> (x, w) }")
    yield text("group 0", REJECTED, "TC0117", '"group"', conv + " { y = Conv <group = 0> (x, w) }")
    yield text("dilation of 2^62", REJECTED, "TC0117", "allowed 1..2147483647", conv + " { y = Conv <dilations = [4611686018427387904, 1]> (x, w) }")
    yield text("pads of 2^62", REJECTED, "TC0117", "allowed -2147483647..2147483647", conv + " { y = Conv <pads = [4611686018427387904, 0, 4611686018427387904, 0]> (x, w) }")
    yield text("three pads", REJECTED, "TC0201", "pads", conv + " { y = Conv <pads = [1, 1, 1]> (x, w) }")
    yield text("permutation that is none", REJECTED, "TC0117", "not a permutation", x + " { y = Transpose <perm = [1, 1]> (x) }")
    yield text("an equation that is none", REJECTED, "TC0201", "equation", x + ' { y = Einsum <equation = "ab->->(("> (x) }')
    yield text("shapes that do not broadcast", REJECTED, "TC0201", "", "g (float[2] x, float[3] z) => (float[3] y) { y = Add(x, z) }")
    yield text("reshape to another number", REJECTED, "TC0201", "", x + " <int64[2] s = {5, -1}> { y = Reshape(x, s) }")
    yield text("two sizes to be found", REJECTED, "TC0201", "", x + " <int64[2] s = {-1, -1}> { y = Reshape(x, s) }")
    yield text("step 0", REJECTED, "TC0201", "step", x + " <int64[1] o = {0}, int64[1] e = {2}> { y = Slice(x, o, e, o, o) }")
    yield text("a constant index out of range", REJECTED, "TC0201", "index 7 is outside of an axis with 2 elements", "g (float[2] x) => (float[2] y) <float[2] t = {1, 2}, int64 i = {7}> { a = Gather(t, i)  y = Add(x, a) }")
    yield text("a loop without an end", REJECTED, "TC3103", "never ends", "g (float[2] x) => (float[2] y) <int64 n = {9223372036854775807}, bool c = {1}> "
               "{ y = Loop (n, c, x) <body = b (int64 i, bool d, float[2] s) => (bool e, float[2] t) { e = Identity(d)  t = Neg(s) }> }")
    body = "<body = b (int64 i, bool d, float[2] s) => "
    loop = "g (int64 m, float[2] x) => (float[2] y) { y = Loop (m, , x) " + body
    yield text("a state that grows", UNSUPPORTED, "TC0301", "a state's shape changes", loop + "(bool e, float[4] t) { e = Identity(d)  t = Concat <axis = 0> (s, s) }> }")
    yield text("a condition that is a number", REJECTED, "TC0201", "condition", loop + "(float e, float[2] t) { e = Cast <to = 1> (d)  t = Neg(s) }> }")
    yield text("results of unknown number", UNSUPPORTED, "TC0301", "known only when the model runs", "g (int64 m, float[2] x) => (float[N,2] y) { z, y = Loop (m, , x) "
               + body + "(bool e, float[2] t, float[2] u) { e = Identity(d)  t = Neg(s)  u = Abs(s) }> }")
    scan = "g (float[4,2] x) => (float[4,2] y) { y = Scan (x) <num_scan_inputs = 1, %s, body = b (float[2] s) => (float[2] t) { t = Neg(s) }> }"
    yield text("two directions for one input", REJECTED, "TC0201", "scan_input_directions", scan % "scan_input_directions = [1, 0]")
    yield text("a direction that is none", REJECTED, "TC0201", "scan_output_directions", scan % "scan_output_directions = [7]")
    yield text("a scan axis beyond the rank", REJECTED, "TC0201", "out of range", scan % "scan_output_axes = [7]")
    yield text("stacked beyond 64 bits", LIMIT, "TC0501", "", "g (float[2] x) => (float[2] y, int64 n) <int64 m = {4611686018427387904}> { y, all = Loop (m, , x) "
               + body + "(bool e, float[2] t, float[2] u) { e = Identity(d)  t = Neg(s)  u = Abs(s) }>  n = Size(all) }")


# --- external data

def external(location, **entries):
    def change(model, folder):
        weight = model.graph.initializer[0]
        weight.ClearField("float_data")
        weight.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **entries}.items():
            weight.external_data.add(key=key, value=str(value))
        (folder / "w.bin").write_bytes(b"\0\0\x80?" * 4)
        (folder / "sub").mkdir()
        os.symlink(folder / "w.bin", folder / "link.bin")
        os.symlink("/etc", folder / "etc")
        os.mkfifo(folder / "pipe.bin")
        (folder / "hard1.bin").write_bytes(b"\0" * 16)
        os.link(folder / "hard1.bin", folder / "hard2.bin")
        if location.startswith("../"):
            (folder.parent / "secret.bin").write_bytes(b"secret secret secret")
    return change


def in_attribute(model, folder):
    """External data of a Constant node, below an absolute path."""
    tensor = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/hostname")
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=tensor))
    model.graph.output.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [4]))


def in_sparse(model, folder):
    values = TensorProto(name="s", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    values.external_data.add(key="location", value="../../etc/hostname")
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(values)
    sparse.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, [1], [0]))
    sparse.dims.append(4)


def external_data():
    where = {"above the folder": ("../secret.bin", "leaves the model's folder"), "above by a detour": ("sub/../../secret.bin", "leaves the model's folder"),
             "an absolute path": ("/etc/hostname", "absolute path"), "a symbolic link": ("link.bin", "symbolic link"),
             "a linked folder": ("etc/hostname", "symbolic link"), "a second hard link": ("hard2.bin", "hard link"),
             "a pipe": ("pipe.bin", "not a regular file"), "a folder": ("sub", "not a regular file"), "no file": ("gone.bin", "cannot be opened"),
             "no name": ("", "is empty"), "a zero byte": ("w.bin\0/../../x", "zero byte"), "5,000 characters": ("a" * 5000, "longer than 4096")}
    for name, (location, says) in where.items():
        yield changed(f"external data: {name}", REJECTED, "TC0131", says, external(location))
    yield changed("external data: beyond the end", REJECTED, "TC0132", "outside of its data file", external("w.bin", offset=8, length=16))
    yield changed("external data: offset of 2^63 - 1", REJECTED, "TC0132", "outside of its data file", external("w.bin", offset=2 ** 63 - 1))
    yield changed("external data: negative offset", REJECTED, "TC0130", "non-negative", external("w.bin", offset=-4))
    yield changed("external data: offset of 2^64", REJECTED, "TC0130", "non-negative", external("w.bin", offset=2 ** 64))
    yield changed("external data: other length", REJECTED, "TC0120", "has 12 bytes", external("w.bin", length=12))
    yield changed("external data: wrong checksum", REJECTED, "TC0133", "SHA-1", external("w.bin", checksum="0" * 40))
    yield changed("external data: of an attribute", REJECTED, "TC0131", "absolute path", in_attribute)
    yield changed("external data: of a sparse tensor", REJECTED, "TC0131", "leaves the model's folder", in_sparse)


def all_cases():
    return [*files(), *structure(), *sizes(), *operands(), *external_data()]
