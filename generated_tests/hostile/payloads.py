"""Sound models that carry code in every text a model can have, and the check that it stays text."""
import re
import struct
import subprocess
from dataclasses import dataclass

from google.protobuf.message import Message
from onnx import TensorProto, helper

import cases
from toolchain import Failed
from wire import field, varint

MARK = "hostile"  # in every payload, so that it can be found
TEXTS = {
    "end of a comment": '*/\n#include "/etc/passwd"\nint hostile(void) { return 42; }\n/*',
    "end of a string": '"); system("touch hostile"); puts("',
    "trigraphs": "hostile??/\n*??/\n/ int hostile; ??/",
    "spliced lines": "hostile \\\nint hostile; \\",
    "line comments": "hostile // */ //\r\n#error hostile\r",
    "right to left": "hostile\u202e \u2066// if (admin) \u2069\u2066 \u200b\u2028#error hostile",
    "control characters": "hostile\0\x01\x07\x08\x1b[2J\x7f\x9b\x0c\x0b#error hostile",
    "no UTF-8": b"hostile\xff\xfe\xc3\x28\xed\xa0\x80*/",
    "format and shell": "hostile %s%n%99999d $(touch hostile) `touch hostile` ; touch hostile & ${IFS}",
    "make and CMake": "hostile: $(shell touch hostile)\n\ttouch hostile\n]==] \") execute_process(COMMAND touch hostile)",
    "markup": "hostile <script>alert(1)</script> ](javascript:alert(1)) ``` | --- # <!-- -->",
    "keywords": "int",
    "digits": "9 hostile",
    "macros": "TC_VL",
    "nothing": "",
    "200,000 characters": "hostile" + "a/" * 100000,
    "paths": "../../../../tmp/hostile/\0x",
}
FILES = {"quotes": 'hos"tile\';touch hostile;.onnx', "a line break": "hos\ntile\n#include <x>.onnx", "a dash": "--help.onnx",
         "a keyword": "int.onnx", "blanks": "  .onnx", "shell": "$(touch hostile).onnx", "no ASCII": "h\u00f6stile\u202e.onnx"}


@dataclass
class Payload:
    name: str
    text: object  # str or bytes
    file: str = "model.onnx"


def model_with(text):
    """A sound model with `text` in every text field; names that must differ get a number behind it. Fields are written
    as bytes, so that a text may be no UTF-8."""
    def named(k):
        return f"@{k}@"

    weight = helper.make_tensor(named(1), TensorProto.FLOAT, [4], [1.0, 2, 3, 4])
    weight.doc_string = named(0)
    function = helper.make_function(named(2), named(3), ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"], name=named(0))],
                                    [helper.make_opsetid("", 17)])
    function.doc_string = named(0)
    nodes = [helper.make_node("Add", [named(4), named(1)], [named(5)], name=named(0), doc_string=named(0)),
             helper.make_node(named(3), [named(5)], [named(6)], name=named(9), domain=named(2)),
             helper.make_node("Gemm", [named(6), named(10)], [named(7)], name=named(0)),
             helper.make_node("Softmax", [named(7)], [named(8)], name=named(0))]
    nodes[1].overload = ""
    matrix = helper.make_tensor(named(10), TensorProto.FLOAT, [4, 4], [k % 5 for k in range(16)])
    ports = [helper.make_tensor_value_info(named(k), TensorProto.FLOAT, [1, 4], doc_string=named(0)) for k in (4, 8)]
    graph = helper.make_graph(nodes, named(0), ports[:1], ports[1:], [weight, matrix], doc_string=named(0))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(named(2), 1)], ir_version=8,
                              functions=[function], producer_name=named(0), producer_version=named(0), domain=named(0), doc_string=named(0))
    helper.set_model_props(model, {named(0): named(0)})
    return substitute(model, text if isinstance(text, bytes) else text.encode())


def substitute(message, text):
    """The message's bytes with every @K@ replaced: K is 0 for `text` itself, else `text` and the number. Works on the
    encoding, because Python's library refuses strings that are no UTF-8."""
    out = bytearray()
    for descriptor, value in message.ListFields():
        for one in [value] if isinstance(value, (str, bytes, int, float, Message)) else value:
            if descriptor.type == descriptor.TYPE_MESSAGE:
                out += field(descriptor.number, substitute(one, text))
            elif descriptor.type in (descriptor.TYPE_STRING, descriptor.TYPE_BYTES):
                data = one.encode() if isinstance(one, str) else one
                if m := re.fullmatch(rb"@(\d+)@", data):
                    data = text + (b"" if m[1] == b"0" else m[1])
                out += field(descriptor.number, data)
            elif descriptor.type == descriptor.TYPE_FLOAT:
                out += varint(descriptor.number << 3 | 5) + struct.pack("<f", one)
            else:
                out += varint(descriptor.number << 3) + varint(one)
    return bytes(out)


def all_payloads():
    yield from (Payload(f"payload: {name}", text) for name, text in TEXTS.items())
    yield from (Payload(f"file name: {name}", "harmless", file) for name, file in FILES.items())


def code_of(text):
    """C without comments, with empty strings; raises Failed at what does not end."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
    code = token.sub(lambda m: '""' if m[0][0] == '"' else " ", text)
    if "/*" in code or '"' in code.replace('""', ""):
        raise Failed("a comment or a string does not end")
    return code


def tokens(package):
    """{file: code without comments and with empty strings}, of the files that are not copied as they are."""
    found = {}
    for path in sorted(package.rglob("*")):
        if path.suffix not in (".c", ".h", ".cu", ".cuh") or path.name.startswith("tc_"):
            continue
        code = code_of(path.read_text(encoding="ascii"))
        if re.search(r"[^\x20-\x7e\n\t]", code):
            raise Failed(f"{path.name} has control characters")
        found[str(path.relative_to(package))] = re.sub(r"\s+", " ", code)
    return found


def shape_of(code):
    """The code with every identifier, and the id of the layout, which names are part of, replaced by x: what remains does not
    depend on names."""
    return re.sub(r"\b(0x[0-9a-f]{16}|[A-Za-z_]\w*)\b", "x", code)


def packages(payload, options, emit, scratch, flags):
    """Where the packages of the model and of its harmless twin are."""
    made = []
    for name, text, file in (("here", payload.text, payload.file), ("twin", "harmless", "model.onnx")):
        folder = scratch / (name + "".join(flags))
        folder.mkdir()
        model = cases.save(folder, model_with(text), file)
        code, told = emit(options.tool, model, folder / "out", flags, options.scale)
        if code:
            raise Failed(f"{name}: exit code {code}: {told[:500]}")
        if re.search(r"[^\x20-\x7e\n]", told):
            raise Failed(f"{name}: a message that is not printable: {told[:300]!r}")
        made.append(folder / "out")
    return made


def compare(here, twin):
    """Beyond comments and strings the package is its twin's."""
    for path in here.rglob("*"):
        if path.is_file() and path.suffix != ".bin" and re.search(rb"[^\x20-\x7e\n\t]", path.read_bytes()):
            raise Failed(f"{path.name} has bytes that are not printable ASCII")
    mine, other = tokens(here), tokens(twin)
    if sorted(mine) != sorted(other):
        raise Failed(f"other files than its harmless twin: {sorted(set(mine) ^ set(other))}")
    for name, code in mine.items():
        if shape_of(code) != shape_of(other[name]):
            raise Failed(f"{name} is other code than its harmless twin's")
    for name in ("Makefile", "CMakeLists.txt"):
        if (twin / name).exists() and (here / name).read_text() != (twin / name).read_text():
            raise Failed(f"{name} is not its harmless twin's")


def accept(payload, options, emit, scratch):
    """The model is compiled, as C and as CUDA; the text is its harmless twin's; the C builds under warnings."""
    compare(*packages(payload, options, emit, scratch, ("--target", "cuda")))
    here, twin = packages(payload, options, emit, scratch, ())
    compare(here, twin)
    for standard in ("c99", "gnu11"):  # c99 has trigraphs
        for source in sorted(here.rglob("*.c")):
            if source.name == "main.c" and standard == "c99":
                continue
            command = ["gcc", f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-Wbidi-chars=any", f"-I{here}", "-fsyntax-only", source]
            result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if result.returncode:
                raise Failed(f"{source.name} as {standard}: {result.stderr.strip()[:300]}")
    options.tools.build(here, scratch / "program", {})
    if list(scratch.rglob("hostile")):
        raise Failed("a payload was executed")
