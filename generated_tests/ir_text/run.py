"""Graphs as text: --write-ir behind every pass, and the package that is made from there is the same, byte for byte; what is
not as it was written, or was not written for this, is refused. The last line counts."""

import functools
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import guarded  # noqa: E402
import knobs  # noqa: E402
import schedules  # noqa: E402
import steps  # noqa: E402
from checks import ROOT, TOOL, Checks, files_of, run  # noqa: E402

HEADER = '<ir_version: 10, opset_import: ["" : 21, "my" : 1]>\n'
check = Checks(only_failures=True)

WEIGHTS = ", ".join(str((7 * k) % 11 / 8) for k in range(256))
BYTES = ", ".join(str((5 * k) % 17 - 8) for k in range(108))

# Control flow, bodies that share constants, names that are no names, results that nobody asked for, sizes that depend on data, states.
MODELS = {
    "control": """g (float[4] x, bool c, int64 m) => (float[4] y, float[4, 1] u) <float[4] w = {1, 2, 3, 4}, int64[2] two = {4, 1}, float[1] k = {0}> {
      ["n 1"] h = If (c) <then_branch = t () => (float[4] p) { p = Add(x, w) }, else_branch = e () => (float[4] q) { q = Mul(x, w) }>
      y = Loop (m, , h) <body = b (int64 i, bool d, float[4] s) => (bool f, float[4] r) { f = Identity(d)  v = Softmax(w)  a = Add(s, v)  r = Relu(a) }>
      xs = Reshape(x, two)
      last, u = Scan <num_scan_inputs = 1, body = z (float[1] s0, float[1] u0) => (float[1] s1, float[1] u1) { s1 = Add(s0, u0)  u1 = Neg(s1) }> (k, xs)
    }""",
    "loops": """g (float[m, 8] x) => (float[m, 2] v, int64[m, 2] i, int64[2, n] z, float[m, 8] s) <int64[1] k = {2}, int64 o = {1}> {
      v, i = TopK(x, k)  z = NonZero(x)  s = CumSum(x, o)
    }""",
    "tables": """g (float[2, 16] x, int64[2] at) => (float[2, 16] y, string[2] t) {
      w = Constant <value = float[16, 16] {WEIGHTS}> ()  a = MatMul(x, w)  b = MatMul(a, w)  c = Exp(b)  y = Div(c, a)
      words = Constant <value = string[3] {"red", "a\\"b", "c"}> ()  t = Gather(words, at)
    }""".replace("WEIGHTS", WEIGHTS),
    "quantised": """g (float[1, 3, 6, 6] x) => (float[1, 4, 6, 6] y) <float s = {0.5}, uint8 z = {3}, float ws = {0.25}, int8 wz = {0}> {
      w = Constant <value = int8[4, 3, 3, 3] {BYTES}> ()  q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  v = DequantizeLinear(w, ws, wz)
      c = Conv <pads = [1, 1, 1, 1]> (d, v)  e = QuantizeLinear(c, s, z)  y = DequantizeLinear(e, s, z)
    }""".replace("BYTES", BYTES),
    "kept": """g (float[1, seq, 8] x, float[1, past, 8] p, float[8] s) => (float[1, 8] y, float[1, n, 8] q, float[8] t) <int64[1] axis = {1}> {
      q = Concat <axis = 1> (p, x)  y = ReduceSum <keepdims = 0> (q, axis)  z = Squeeze(y)  t = Add(s, z)
    }""",
    "own": """g (float[3, 4] x) => (float[3, 4] y) { a = my.Scale <alpha = 3.0> (x)  b = my.Scale(a)  y = Sigmoid(b) }""",
}
OPS = "op my.Scale(x: f32[*S], alpha: float = 2.0) -> y: f32[*S]\n  y[*i] = x[*i] * alpha\n"
FLAGS = {"own": ["--ops", "{tmp}/ops.tc"], "loops": ["--dim", "m=3"], "kept": ["--dim", "past=0..7", "--dim", "seq=1..3", "--state", "s=t", "--state", "p=q"]}


def passes():
    """All labels: NAME, NAME#2."""
    names = [line.split()[0] for line in run(TOOL, "passes").stdout.split("\n\n")[0].splitlines()]
    return [name if names[:k].count(name) == 0 else f"{name}#{names[:k].count(name) + 1}" for k, name in enumerate(names)]


class Model:
    """A model and its package, made once."""

    def __init__(self, tmp, path, flags):
        self.folder, self.path, self.flags = tmp / "-".join([path.parent.name if path.stem == "model" else path.stem, *[f.strip("-") for f in flags if "/" not in f]]), path, flags

    @functools.cached_property
    def package(self):
        out = check.emit(self.path, self.folder / "package", *self.flags, "--name", "net", "--verify-each")
        return files_of(out)

    def goes_on(self, label):
        """The package that is made of the text behind a pass is that of the model."""
        text, out, name = self.folder / "net.tc", self.folder / "again", f"{self.folder.name} after {label or 'import'}"
        self.folder.mkdir(parents=True, exist_ok=True)
        wrote = run(TOOL, "--quiet", self.path, *self.flags, "--name", "net", "--write-ir", text, *(["--after", label] if label else []))
        if not check(f"{name}: written", wrote.returncode == 0, wrote.stderr):
            return
        read = run(TOOL, "--quiet", text, "-o", out)
        if check(f"{name}: read", read.returncode == 0, read.stderr):
            check(f"{name}: the same package", files_of(out) == self.package)
        shutil.rmtree(out, ignore_errors=True)


def models(tmp):
    (tmp / "ops.tc").write_text(OPS)
    for name, text in MODELS.items():
        path = tmp / f"{name}.onnxtxt"
        path.write_text(HEADER + text)
        flags = [f.format(tmp=tmp) for f in FLAGS.get(name, [])]
        yield Model(tmp, path, flags)
        if name != "tables":  # CUDA has no strings
            yield Model(tmp, path, [*flags, "--target", "cuda"])
    for golden in ("cnn", "branch"):
        yield Model(tmp, ROOT / "generated_tests" / "golden" / golden / "model.onnxtxt", ["--cpu", "x86-64-v3"])


def refused(name, words, code, told):
    r = run(TOOL, *words)
    check(name, r.returncode == code and told in r.stderr, (r.returncode, r.stderr))


def refusals(tmp):
    """What FILE.tc says holds; what does not fit is told, and nothing is written."""
    (tmp / "tables.onnxtxt").write_text(HEADER + MODELS["tables"])
    text, out, model = tmp / "t.tc", tmp / "nothing", tmp / "tables.onnxtxt"
    check("written", run(TOOL, "--quiet", model, "--cpu", "x86-64-v3", "--write-ir", text, "--after", "fuse_ops").returncode == 0)
    check("nothing else is written", sorted(p.name for p in tmp.glob("t.*")) == ["t.tc", "t.tc.bin"])
    check("the same options again", run(TOOL, "--quiet", text, "--cpu", "x86-64-v3", "--target", "c", "-o", tmp / "same").returncode == 0)
    refused("another processor", [text, "--cpu", "znver4", "-o", out], 2, "--cpu znver4 is given, but " + str(text) + " was written with --cpu x86-64-v3")
    refused("another level", [text, "-O1", "-o", out], 2, "-O 1 is given")
    refused("sizes that nobody bound", [text, "--dim", "n=3", "-o", out], 2, "was written without --dim")
    refused("operators", [text, "--ops", tmp / "ops.tc", "-o", out], 2, "--ops is for models")
    refused("verify", ["verify", text], 2, "verify needs the model")
    refused("a pass that is past", [text, "--stop-after", "fuse_ops"], 2, "is behind fuse_ops already")
    refused("a loop pass", [model, "--stop-after", "simplify"], 2, "")
    refused("a pass that is none", [model, "--write-ir", tmp / "x.tc", "--after", "fuse_opps"], 2, "did you mean 'fuse_ops'")
    refused("--after alone", [model, "--after", "fuse_ops", "-o", out], 2, "--write-ir")
    refused("a package that would not be whole", [model, "--stop-after", "fuse_ops", "-o", out], 2, "makes no package")
    stopped = run(TOOL, model, "--stop-after", "fuse_ops", "--print-ir-after", "all")
    check("--stop-after ends there", stopped.returncode == 0 and "after fuse_ops:" in stopped.stderr and "after form_regions:" not in stopped.stderr)

    def changed(name, old, new, told):
        bad = tmp / "bad.tc"
        bad.write_text(text.read_text().replace(old, new, 1))
        shutil.copy(tmp / "t.tc.bin", tmp / "bad.tc.bin")
        refused(name, [bad, "-o", out], 1, told)

    changed("an operator", "tc.fused(", "tc.fussed(", "no operator is called tc.fussed")
    changed("an operand", "tc.fused(x", "tc.fused(xx", "bad.tc:")
    changed("a type", ": f32[2, 16]", ": f32[2, 17]", "not sound")
    data = (tmp / "t.tc.bin").read_bytes()
    (tmp / "t.tc.bin").write_bytes(bytes([data[0] ^ 1]) + data[1:])
    refused("stale elements", [text, "-o", out], 1, "are not those that this text was written with")
    (tmp / "t.tc.bin").write_bytes(data[:100])
    refused("elements that are cut off", [text, "-o", out], 1, "there are no elements at")
    (tmp / "t.tc.bin").unlink()
    refused("elements that are missing", [text, "-o", out], 1, "there are no elements at")
    check("nothing is written", not out.exists())


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        cases = [functools.partial(model.goes_on, label) for model in models(tmp) for label in ("", *passes())]
        refusals(tmp)
        schedules.work(check, tmp / "schedules", ROOT / "generated_tests" / "golden" / "cnn" / "model.onnxtxt")
        cases += steps.Steps(check, tmp / "steps").cases()
        numbers = knobs.Knobs(check, tmp / "knobs")
        cases += numbers.cases()
        cases += guarded.cases(check, tmp / "guarded", knobs.PROCESSOR)
        check.run(cases, quick=6)
        numbers.all_met()
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
