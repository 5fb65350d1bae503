"""The numbers of templates: what the compiler decides is written, each number can be changed, and counts: another text, or a refusal
with its place, its caret and what the number may be. What is accepted computes the same."""

import functools
import json
import re
import zlib

import numpy as np
import onnx.parser

from answers import answers
from batches import link, name_of
from checks import TOOL, files_of, run
from toolchain import CudaToolchain, Failed, Toolchain

HEADER = '<ir_version: 10, opset_import: ["" : 24, "com.microsoft" : 1, "my" : 1]>\n'


def floats(*dims, every=7, of=11):
    count = functools.reduce(lambda a, b: a * b, dims)
    return f"float[{', '.join(map(str, dims))}] " + "{NAME} = {" + ", ".join(str((every * k) % of / 8 - 0.5) for k in range(count)) + "}"


def weights(**tensors):
    return "<" + ", ".join(text.replace("{NAME}", name) for name, text in tensors.items()) + ">"


def integers(type_, count, *dims):
    return f"{type_}[{', '.join(map(str, dims))}] " + "{NAME} = {" + ", ".join(str((5 * k + k // 7) % count) for k in range(functools.reduce(lambda a, b: a * b, dims))) + "}"


# By name: the graph, flags.
MODELS = {
    "product": ("g (float[61, 70] x) => (float[61, 90] y) " + weights(w=floats(70, 90)) + " { a = MatMul(x, w)  y = Relu(a) }", []),
    "vector": ("g (float[1, 300] x) => (float[1, 200] y) " + weights(w=floats(300, 200)) + " { y = MatMul(x, w) }", []),
    "both": ("g (float[3, 20, 33] a, float[3, 33, 40] b) => (float[3, 20, 40] y) { y = MatMul(a, b) }", []),
    "doubles": ("g (double[20, 33] a, double[33, 40] b) => (double[20, 40] y) { y = MatMul(a, b) }", []),
    "filter3": ("g (float[1, 32, 14, 14] x) => (float[1, 32, 14, 14] y) " + weights(w=floats(32, 32, 3, 3)) + " { c = Conv <pads = [1, 1, 1, 1]> (x, w)  y = Relu(c) }", []),
    "mask": ("g (float[1, 16, 20, 21] x) => (float[1, 3, 20, 21] y) " + weights(v=floats(16, 16, 1, 1), w=floats(3, 16, 3, 3)) + " { a = Conv(x, v)  y = Conv <pads = [1, 1, 1, 1]> (a, w) }", []),
    "depthwise": ("g (float[1, 32, 30, 31] x) => (float[1, 32, 30, 31] y) " + weights(v=floats(32, 32, 1, 1), w=floats(32, 1, 3, 3)) +
                  " { a = Conv(x, v)  b = Relu(a)  c = Conv <group = 32, pads = [1, 1, 1, 1]> (b, w)  y = Relu(c) }", []),
    "transposed": ("g (float[1, 16, 9, 10] x) => (float[1, 20, 18, 20] y) " + weights(w=floats(16, 20, 4, 4)) + " { y = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w) }", []),
    "pool": ("g (float[2, 5, 30, 70] x) => (float[2, 5, 26, 66] y) { y = MaxPool <kernel_shape = [5, 5]> (x) }", []),
    "wide_pool": ("g (float[1, 16, 20, 20] x) => (float[1, 16, 9, 9] y) " + weights(w=floats(16, 16, 1, 1)) + " { c = Conv(x, w)  y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (c) }", []),
    "softmax": ("g (float[64, 300] x) => (float[64, 300] y) { y = Softmax(x) }", []),
    "short_rows": ("g (float[300, 24] x) => (float[300, 24] y) { y = Softmax(x) }", []),
    "across": ("g (float[2, 40, 64] x) => (float[2, 40, 64] y) { y = Softmax <axis = 1> (x) }", []),
    "columns": ("g (float[100, 96] x, int64[1] a) => (float[96] y) <int64[1] a = {0}> { y = ReduceMean <keepdims = 0> (x, a) }", []),
    "long": ("g (float[140000] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }", []),
    "largest": ("g (float[2, 21, 24, 64] x) => (int64[2, 24, 64] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }", []),
    "turn": ("g (float[200, 190] x) => (float[190, 200] y) { y = Transpose(x) }", []),
    "turns": ("g (double[5, 60, 70] x) => (double[5, 70, 60] y) { y = Transpose <perm = [0, 2, 1]> (x) }", []),
    "depth": ("g (float[1, 8, 40, 32] x) => (float[1, 2, 80, 64] y) { y = DepthToSpace <blocksize = 2> (x) }", []),
    "sampled": ("g (float[1, 8, 12, 13] x, float[1, 20, 31, 2] g) => (float[1, 8, 20, 31] y) { y = GridSample(x, g) }", []),
    "sum": ("g (float[200, 190] a, float[190] b) => (float[200, 190] y) { s = Add(a, b)  y = Tanh(s) }", []),
    "odd": ("g (float[37, 5, 11] a, float[37, 1, 11] b) => (float[37, 5, 11] y) { y = Div(a, b) }", []),
    "lstm": ("g (float[4, 2, 8] x) => (float[4, 1, 2, 16] y) " + weights(w=floats(1, 64, 8), r=floats(1, 64, 16)) + " { y = LSTM <hidden_size = 16> (x, w, r) }", []),
    "attention": ("g (float[1, 500, 16] q, float[1, 16, 1100] k, float[1, 1100, 16] v) => (float[1, 500, 16] y) { s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v) }", []),
    "residual": ("g (float[1, 8, 80, 80] x) => (float[1, 8, 80, 80] y) " + weights(u=floats(8, 8, 1, 1), a=floats(96, 8, 1, 1), b=floats(96, 1, 3, 3), c=floats(8, 96, 1, 1)) +
                 " { p = Conv(x, u)  q = Relu(p)  e = Conv(q, a)  f = Relu(e)  g = Conv <group = 96, pads = [1, 1, 1, 1]> (f, b)  h = Relu(g)  i = Conv(h, c)  y = Conv(i, u) }", []),
    "places": ("g (float[2, 5, 12, 13] x) => (float[2, 5, 10, 11] y, int64[2, 5, 10, 11] i) { y, i = MaxPool <kernel_shape = [3, 3]> (x) }", []),
    "cache": ("g (float[1, 4, 3, 16] q, float[1, 2, 150, 16] k, float[1, 2, 150, 16] v, int64[1] n) => (float[1, 4, 3, 16] y) { y = Attention(q, k, v, , , , n) }", []),
    "overlapping": ("g (float[1, 27, 400] x) => (float[1, 3, 22, 22] y) <int64[2] i = {22, 22}, int64[2] b = {3, 3}> { y = Col2Im(x, i, b) }", []),
    "apart": ("g (float[80, 30, 40] x) => (float[80, 30, 13] y) <int64[1] s = {1}, int64[1] e = {40}, int64[1] a = {2}, int64[1] t = {3}> { v = Slice(x, s, e, a, t)  y = Tanh(v) }", []),
    "running": ("g (float[3, 200] x, int64 a) => (float[3, 200] y) <int64 a = {1}> { y = CumSum(x, a) }", []),
    "order": ("g (float[6, 200] x, int64[1] k) => (float[6, 200] v, int64[6, 200] i) <int64[1] k = {200}> { v, i = TopK(x, k) }", []),
    "extremes": ("g (float[6, 300] x) => (int64[6] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }", []),
    "scattered": ("g (float[40, 30] x, int64[5, 1] at, float[5, 30] u) => (float[40, 30] y) { y = ScatterND <reduction = \"add\"> (x, at, u) }", []),
    "any_sum": ("g (int64[40, 30] x) => (int64[40] y) { y = ReduceSum <keepdims = 0> (x, a) }".replace("(int64[40, 30] x)", "(int64[40, 30] x, int64[1] a)").replace("=> (int64[40] y)", "=> (int64[40] y) <int64[1] a = {1}>"), []),
    "few_bits": ("g (float[1, 96] x) => (float[1, 80] y) " + weights(b=integers("uint8", 256, 80, 3, 16), s=floats(80, 3)) + " { y = com.microsoft.MatMulNBits <K = 96, N = 80, bits = 4, block_size = 32> (x, b, s) }", []),
    "few_bits_rows": ("g (float[40, 96] x) => (float[40, 80] y) " + weights(b=integers("uint8", 256, 80, 3, 16), s=floats(80, 3)) + " { y = com.microsoft.MatMulNBits <K = 96, N = 80, bits = 4, block_size = 32> (x, b, s) }", []),
    "block_products": ("g (float[5, 96] x) => (float[5, 80] y) " + weights(b=integers("uint8", 256, 80, 3, 16), s=floats(80, 3)) +
                       " { y = com.microsoft.MatMulNBits <K = 96, N = 80, bits = 4, block_size = 32, accuracy_level = 4> (x, b, s) }", []),
    "halved": ("g (float[61, 96] x) => (float[61, 90] y) " + weights(w=floats(96, 90)) + " { y = MatMul(x, w) }", ["--precision", "bf16"]),
    "heads": ("g (float[4, 64, 32] q, float[4, 32, 64] k, float[4, 64, 32] v) => (float[4, 64, 32] y) { s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v) }", []),
}
PROCESSOR = {"c": ["--cpu", "x86-64-v3"], "cuda": ["--target", "cuda", "--arch", "sm_80"]}
# What one of the models at least has to be scheduled by; the others are for plans that a unit test makes.
TEMPLATES = {
    "c": {"tile", "dots", "winograd", "subpixels", "block_products", "few_bits", "window_rows", "window", "rows", "arg_reduce", "arg_rows", "transpose", "top_k", "interleaved_store", "gathered_lanes", "shared_values", "attention", "streaming_attention", "inverted_residual", "recurrence", "prefix_sums", "terms_in_range"},
    "cuda": {"transpose", "elementwise", "matrix_vector", "contraction", "window", "columns", "rows", "per_result", "stage", "attention", "prefix_scan", "recurrence", "sort"},
}
ONLY = {"halved": "cuda", "doubles": "c"}
LARGEST = 1000003
LOOSE = {"halved": (2e-2, 2e-1), "block_products": (0, 0.5)}  # rtol, atol where factors are rounded to bfloat16, activations to bytes


def value_of(k, port):
    """Elements of an input: of integers, positions in the smallest of axes."""
    rng, dims = np.random.default_rng(k), [d if isinstance(d, int) else 1 for d in port.shape]
    return rng.integers(0, 5, dims) if port.type == "tensor(int64)" else rng.standard_normal(dims).astype(np.float64 if "double" in port.type else np.float32)


def numbers(text):
    """(line, name, value, where the value stands) of every number of a decision."""
    for at, line in enumerate(text.splitlines()):
        if not line.startswith("  "):
            continue
        for found in re.finditer(r"(\w+) = (-?\d+)", line):
            yield at, found[1], int(found[2]), found.span(2)


def with_number(text, at, span, value):
    lines = text.splitlines()
    lines[at] = lines[at][:span[0]] + str(value) + lines[at][span[1]:]
    return "\n".join(lines) + "\n"


def under_caret(message):
    """What stands above the caret of a message, from there on."""
    lines = message.split("\n")
    at = next((k for k, line in enumerate(lines) if line.strip() == "^"), None)
    return "" if at is None else lines[at - 1][lines[at].index("^"):]


def kernels(package):
    """What the kernels are, and how their operands lie in the weights."""
    described = [(k.get("steps"), k.get("schedule")) for k in json.loads(package["manifest.json"])["kernels"]]
    return "".join(re.sub(r"_[0-9a-f]{4}\b", "", text.decode()) for name, text in package.items() if name.startswith("kernels/")), described


class Knobs:
    def __init__(self, check, tmp):
        self.check, self.tmp = check, tmp
        tmp.mkdir()
        self.met, self.ran = {target: set() for target in PROCESSOR}, 0
        for name, (text, _) in MODELS.items():
            (tmp / f"{name}.onnxtxt").write_text(HEADER + text)

    def command(self, target, model):
        return [self.tmp / f"{model}.onnxtxt", *PROCESSOR[target], *MODELS[model][1]]

    def emit(self, target, model, out, *flags):
        r = run(TOOL, "--quiet", *self.command(target, model), "--name", "net", *flags, "-o", out)
        return r, files_of(out) if r.returncode == 0 else {}

    def model(self, target, model):
        folder, check, name = self.tmp / f"{target}-{model}", self.check, f"{target} {model}"
        folder.mkdir()
        self.ran += 1
        file = folder / "k.tc"
        told, package = self.emit(target, model, folder / "own", "--write-schedules", file)
        if not check(f"{name}: is emitted", told.returncode == 0, told.stderr):
            return
        text = file.read_text()
        self.met[target] |= set(re.findall(r"^  (\w+)\(", text, re.M))
        _, plain = self.emit(target, model, folder / "plain")
        check(f"{name}: who listens changes nothing", plain == package)
        _, same = self.emit(target, model, folder / "same", "--schedules", file)
        check(f"{name}: what is written is replayed", same == package)
        own, accepted = kernels(package), []
        for at, number, value, span in numbers(text):
            for other in dict.fromkeys((value + 1, value - 1, 2 * value, value // 2, value + 16, 1, 0, LARGEST)):
                if other == value:
                    continue
                what = f"{name}: {text.splitlines()[at].split('(')[0].strip()} {number} = {value} -> {other}"
                file.write_text(with_number(text, at, span, other))
                r, changed = self.emit(target, model, folder / "changed", "--schedules", file)
                if r.returncode == 0:
                    check(f"{what} is not taken", other != LARGEST)
                    check(f"{what} counts", kernels(changed) != own)
                    accepted.append((what, file.read_text()))
                else:
                    column = text.splitlines()[at].index(f"{number} = ") + 1
                    place = rf"k\.tc:{at + 1}:{column}: " if other == LARGEST else r"k\.tc:\d+:\d+: "  # later ones may not fit any more
                    told = under_caret(r.stderr)
                    at_number = told.startswith(f"{number} = {other}") if other == LARGEST else told
                    right = r.returncode == 1 and re.search(place, r.stderr) and at_number and "nothing was written" in r.stderr
                    check(f"{what} is refused with its place", right and (other != LARGEST or f"{number} = {other}: " in r.stderr), r.stderr)
        if accepted:
            self.right(target, model, name, folder, accepted)

    def right(self, target, model, name, folder, accepted):
        """Some of what was accepted computes what ONNX Runtime does: one program holds their packages."""
        chosen = sorted(accepted, key=lambda a: zlib.crc32(a[0].encode()))[:3 if target == "c" else 2]
        packages = {}
        for what, text in chosen:
            (folder / "right.tc").write_text(text)
            known = name_of(what)
            told = run(TOOL, "--quiet", *self.command(target, model), "--name", known, "--schedules", folder / "right.tc", "--verify-each", "-o", folder / known)
            if self.check(f"{what} is emitted again", told.returncode == 0, told.stderr):
                packages[known] = folder / known
        io = answers(self.proto(model), folder / "io", value_of)
        rtol, atol = LOOSE.get(model, (1e-3, 1e-4))
        programs = link(packages, self.tools(target), folder, {})
        for what, text in chosen:
            words = programs.get(name_of(what))
            if words and self.check(f"{what} compiles", not isinstance(words, Failed), words):
                told = run(*words, "--inputs", io, "--expect", io, "--rtol", rtol, "--atol", atol)
                self.check(f"{what} is right", told.returncode == 0, text + told.stdout + told.stderr)

    @functools.cache
    def tools(self, target):
        folder = self.tmp / f"{target}-tools"
        folder.mkdir()
        return CudaToolchain(folder, ["-O1"]) if target == "cuda" else Toolchain(folder, ["-O1", "-march=x86-64-v3"])

    def proto(self, model):
        return onnx.parser.parse_model((self.tmp / f"{model}.onnxtxt").read_text()).SerializeToString()

    def all_met(self):
        """Comes last: every template has been here, unless only a share of the models was."""
        if self.ran < len(self.cases()):
            return
        for target, wanted in TEMPLATES.items():
            self.check(f"{target}: all templates", not wanted - self.met[target], wanted - self.met[target])

    def cases(self):
        return [functools.partial(self.model, target, model) for model in MODELS for target in PROCESSOR if ONLY.get(model, target) == target]
