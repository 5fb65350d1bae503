"""Models that are run, compared node by node, and made smaller: what users see of `run`, `verify --per-node` and `reduce`."""
import json
import os
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from checks import ROOT, TOOL, run

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
HEADER = '<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>\n'
# m is off: what roundings leave of 1 - 1 becomes large.
AMPLIFIED = HEADER + """g (float[4, 64] x, float[64] more) => (float[4, 64] y, float[4, 64] z)
<float big = {1000000.0}, float one = {1.0}> {
  a = Relu(x)  l = Sigmoid(a)  e = Exp(x)  n = Neg(x)  f = Exp(n)  p = Mul(e, f)  d = Sub(p, one)
  [amplified] m = Mul(d, big)
  r = Tanh(m)  y = Add(r, l)  z = Add(l, more) }"""
REFUSED = HEADER + """g (float[2, 8] x) => (float[2, 8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
  a = Relu(x)  b = Exp(a)  c = Mul(b, w)
  [strange] d = acme.Frobnicate(c)
  e = Neg(d)  f = Sigmoid(c)  y = Add(e, f) }"""


def environment(tmp, **more):
    """A cache of its own, and this Python, which has ONNX Runtime, as python3."""
    return {**os.environ, "XDG_CACHE_HOME": str(tmp / "cache"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **more}


def save(tmp, name, text):
    path = tmp / name
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def runs(tmp, check):
    def ran(*words, **more):
        return run(TOOL, "run", "--cpu", "x86-64-v3", *words, env=environment(tmp, **more))

    image = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    np.save(tmp / "image.npy", image)
    np.savez(tmp / "image.npz", image=image)
    cache = tmp / "cache" / "tc-emit" / "programs"
    before = set(cache.iterdir()) if cache.exists() else set()
    first = ran("--inputs", f"image={tmp / 'image.npy'}", "--outputs", tmp / "y.npz", DIGITS)
    check("run with a file for an input", first.returncode == 0 and not first.stdout and not first.stderr, first)
    programs = sorted(set(cache.iterdir()) - before)
    second = ran("--inputs", tmp / "image.npz", "--outputs", tmp / "y", DIGITS, CFLAGS="-O2 -g0")
    with np.load(tmp / "y.npz") as archive:
        same = archive.files == ["output_0"] and np.array_equal(archive["output_0"], np.load(tmp / "y" / "output_0.npy"))
    check("an archive in, a folder out: the same", second.returncode == 0 and same, second)
    check("the program is kept, others have another name", len(programs) == 1 and len(set(cache.iterdir()) - before) == 2, programs)
    stamp = programs[0].stat().st_ino
    top = ran("--inputs", tmp / "image.npz", "--print-top", "2", DIGITS)
    check("--print-top", top.stdout.startswith('output "probability" row 0: ') and top.stdout.count("(") == 2, top)
    check("nothing is built twice", programs[0].stat().st_ino == stamp)
    zeros, ones = (ran("--fill-mode", mode, DIGITS).stdout for mode in ("zeros", "ones"))
    check("--fill-mode", zeros.startswith('output "probability" float [1, 10]: ') and zeros != ones, (zeros, ones))
    check("--repeat", ran("--repeat", "7", DIGITS).stdout.startswith("runs 7  min "))
    np.save(tmp / "wide.npy", image.astype(np.float64))
    np.save(tmp / "flat.npy", image[0])
    for kind in ("npy", "npz"):
        (tmp / f"torn.{kind}").write_bytes((tmp / f"image.{kind}").read_bytes()[:-(3 if kind == "npy" else 30)])
    for name, words, code, told in (
            ("no such input", ["--inputs", f"imagge={tmp / 'image.npy'}"], 2, "no input 'imagge'; did you mean 'image'?"),
            ("no such file", ["--inputs", "image=none.npy"], 6, "cannot read none.npy: No such file"), ("no such archive", ["--inputs", "none.npz"], 6, "cannot read none.npz: No such file"),
            ("another type", ["--inputs", f"image={tmp / 'wide.npy'}"], 2, '[TC0702]: input_0 "image" is float [1, 1, 8, 8], the file has double'),
            ("another shape", ["--inputs", f"image={tmp / 'flat.npy'}"], 2, "the file has float [1, 8, 8]"),
            ("a damaged file", ["--inputs", f"image={tmp / 'torn.npy'}"], 2, f"[TC0702]: {tmp / 'torn.npy'}: holds 253 bytes of data"),
            ("a damaged archive", ["--inputs", tmp / "torn.npz"], 2, "torn.npz is no .npz file, or its end is missing"),
            ("a file without its input's name", ["--inputs", tmp / "image.npy"], 2, f"is the file of one input: --inputs image={tmp / 'image.npy'}"),
            ("outputs into a tensor's file", ["--outputs", tmp / "y.npy"], 2, "outputs go into a folder, or into an .npz"),
            ("outputs below a file", ["--outputs", tmp / "image.npz" / "y"], 6, f"[TC0702]: cannot write {tmp / 'image.npz'}"),
            ("a trace into a folder that is not there", ["--trace", tmp / "none" / "t.json"], 6, f"cannot write {tmp / 'none' / 't.json'}: No such file"),
            ("--fill-mode beside an archive", ["--inputs", tmp / "image.npz", "--fill-mode", "ones"], 2, "all are in")):
        refused = ran(*words, DIGITS)
        check(f"run: {name}", refused.returncode == code and told in refused.stderr and not refused.stdout, refused)
    check("run: what was refused is not there", not list(tmp.glob("y.npy*")))
    two = save(tmp, "two.onnx", HEADER + "g (float[2] a, float[3] b) => (float[2] c, float[3] d) { c = Neg(a)  d = Neg(b) }")
    np.save(tmp / "a.npy", np.ones(2, np.float32))
    missing = ran("--inputs", f"a={tmp / 'a.npy'}", two)
    check("run: an input without a file", missing.returncode == 2 and 'no file for input "b" float [3]: add --inputs NAME=FILE, or' in missing.stderr, missing)
    nobody = ran(DIGITS, CC="no-such-cc")
    check("run: no compiler", nobody.returncode == 7 and "no C compiler 'no-such-cc' on this machine" in nobody.stderr, nobody)
    burning = tmp / "burning"
    burning.write_text("#!/bin/sh\ncase $* in *--version*) echo 1.2;; *) echo it burns >&2; echo all over >&2; exit 3;; esac\n")
    burning.chmod(0o755)
    fails = ran(DIGITS, CC=str(burning))
    check("run: what a compiler says has its lines", fails.returncode == 7 and "\n  note: it burns\n  note: all over\n" in fails.stderr, fails)
    nobody = run(TOOL, "run", "--target", "cuda", DIGITS, env=environment(tmp, CXX="no-such-cxx"))
    check("run: no C++ compiler", nobody.returncode == 7 and "no C++ compiler 'no-such-cxx' on this machine" in nobody.stderr, nobody)


def profiles(tmp, check):
    """A table of all kernels of the program, and the steps of a run for Perfetto."""
    profiled = run(TOOL, "run", "--cpu", "x86-64-v3", "--profile", "--seconds", "0.05", "--json", "--threads", "1", "--trace", tmp / "t.json", DIGITS,
                   env=environment(tmp))
    told = json.loads(profiled.stdout)
    run(TOOL, "--quiet", "--cpu", "x86-64-v3", DIGITS, "-o", tmp / "profiled")
    kernels = {kernel["name"]: kernel for kernel in json.loads((tmp / "profiled" / "manifest.json").read_text())["kernels"]}
    rows = {row["kernel"]: row for row in told["kernels"]}
    check("--profile has every kernel", set(rows) == set(kernels) and abs(sum(row["share"] for row in rows.values()) - 1) < 1e-3, told)
    wrong = [row for name, row in rows.items() if abs(row["gflops"] * row["mean_us"] * 1e3 - 2 * kernels[name]["macs"]) > 1e-3 * kernels[name]["macs"] + 1e-6]
    check("its rates are those of the manifest's work", not wrong, wrong)
    events = [event for event in json.loads((tmp / "t.json").read_text())["traceEvents"] if event["ph"] == "X"]
    apart = all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in zip(events, events[1:]))
    check("--trace has a run's steps, one after the other", [e["name"] for e in events] == list(kernels) and apart, events)


def node_by_node(tmp, check):
    def verified(path, *words):
        return run(TOOL, "verify", "--per-node", "--cpu", "x86-64-v3", *words, path, env=environment(tmp))

    off = verified(save(tmp, "off.onnx", AMPLIFIED))
    check("--per-node names the first node that is off", off.returncode == 4 and 'the first that is off: "m" of node "amplified" (Mul): max abs 0.' in off.stdout, off)
    check("and says that the package is, too", "the package as it is emitted is off:\n" in off.stdout and "11 of 11 values compared with ONNX Runtime" in off.stdout, off.stdout)
    refused = verified(save(tmp, "strange.onnx", REFUSED))
    check("--per-node of a model that is refused", refused.returncode == 3 and refused.stderr.startswith('error[TC0170] strange.onnx: node "strange"'), refused)
    text = tmp / "branch.onnxtxt"
    text.write_text(HEADER + "g (bool c, float[3] x) => (float[3] y) { a = Neg(x)  s = SequenceConstruct(a, x)  b = SequenceAt(s, i)  y = If (c) <"
                    "then_branch = t () => (float[3] u) { u = Relu(b) }, else_branch = e () => (float[3] v) { v = Exp(b) }> }".replace("s, i", "s, zero").replace(
                        "{ a = Neg", "<int64 zero = {0}> { a = Neg"))
    fine = verified(text)
    check("--per-node lists what it cannot see", fine.returncode == 0 and "none is off" in fine.stdout and '"s" of node "" (SequenceConstruct): a sequence' in fine.stdout
          and "inside the 2 bodies of If, Loop and Scan" in fine.stdout, fine)


def made_smaller(tmp, check):
    small = tmp / "small.onnx"
    reduced = run(TOOL, "reduce", save(tmp, "refused.onnx", REFUSED), "-o", small)
    nodes = [node.op_type for node in onnx.load(small).graph.node] if small.exists() else []
    check("reduce finds the node that is refused", reduced.returncode == 0 and nodes == ["Frobnicate"] and "1 of 7 nodes" in reduced.stdout and "check ends with 3 (TC0170)" in reduced.stdout, (reduced, nodes))
    keeps = run(TOOL, "reduce", "--keep", "grep -q Sigmoid {} && grep -q Tanh {}", save(tmp, "off.onnx", AMPLIFIED), "-o", small)
    kept = onnx.load(small)
    onnx.checker.check_model(kept, full_check=True)
    check("reduce --keep", keeps.returncode == 0 and sorted(node.op_type for node in kept.graph.node) == ["Sigmoid", "Tanh"] and not kept.graph.initializer, (keeps, str(kept.graph)))
    before = small.read_bytes()
    for name, words, code, told in (("nothing wrong", [], 2, "find nothing wrong with"), ("a --keep that fails", ["--keep", "false"], 2, "--keep does not succeed")):
        refused = run(TOOL, "reduce", *words, DIGITS, "--against", "interpreter", "-o", small)
        check(f"reduce: {name}", refused.returncode == code and told in refused.stderr and small.read_bytes() == before, refused)
    ops, own = tmp / "own.tc", tmp / "own.onnxtxt"
    ops.write_text("op own.F(x: f32[N]) -> y: f32[N]\n  y[i] = x[i] * 2\n")
    own.write_text(HEADER.replace(": 17", ': 17, "own" : 1') + "g (float[3] x) => (float[3] y) { a = own.F(x)  b = own.F(a)  c = Exp(b)  y = own.F(c) }")
    keeps = run(TOOL, "reduce", "--ops", ops, "--keep", "grep -q Exp {}", own, "-o", small)
    check("reduce with operators of the user's", keeps.returncode == 0 and [node.op_type for node in onnx.load(small).graph.node] == ["Exp"], keeps)
    nowhere = run(TOOL, "reduce", DIGITS)
    check("reduce without -o", nowhere.returncode == 2 and "add -o SMALL.onnx" in nowhere.stderr, nowhere)
    folder = run(TOOL, "reduce", "--keep", "true", DIGITS, "-o", tmp / "none" / "x.onnx")
    check("reduce into a folder that is not there", folder.returncode == 6 and "cannot write" in folder.stderr, folder)


def wrong_numbers_made_smaller(tmp, check):
    """The long way, through verify: a few of its tries each compile and run."""
    small = tmp / "wrong.onnx"
    text = AMPLIFIED.replace("a = Relu(x)  l = Sigmoid(a)  ", "").replace("r = Tanh(m)  y = Add(r, l)  z = Add(l, more)", "y = Tanh(m)  z = Add(m, more)")
    reduced = run(TOOL, "reduce", "--against", "interpreter", "--cpu", "x86-64-v3", save(tmp, "wrong_large.onnx", text), "-o", small,
                  env=environment(tmp, CFLAGS="-O0"))
    nodes = [node.op_type for node in onnx.load(small).graph.node] if small.exists() else []
    check("reduce keeps wrong numbers wrong", reduced.returncode == 0 and nodes == ["Exp", "Neg", "Exp", "Mul", "Sub", "Mul"], (reduced, nodes))


def types_that_numpy_lacks(tmp, check):
    """What verify and run make up goes into .pb files."""
    text = ("g (int4[3, 5] x, uint4[7] u, int2[5] d, bfloat16[3] b, float8e4m3fn[5] e) => (int4[5, 3] t, float[3, 5] y, uint4[7] v, int2[5] i, bfloat16[3] c, float8e4m3fn[5] f)"
            " <float s = {0.3}> { t = Transpose(x)  y = DequantizeLinear(x, s)  v = Identity(u)  i = Identity(d)  c = Neg(b)  f = Identity(e) }")
    path = save(tmp, "narrow.onnx", HEADER.replace("17", "25").replace(": 8", ": 13") + text)
    for target in (["--cpu", "x86-64-v3"], ["--target", "cuda"]):
        told = run(TOOL, "verify", "--against", "interpreter", *target, path, env=environment(tmp))
        check(f"verify with numbers that NumPy has no type for, {target[1]}", told.returncode == 0 and told.stdout.count("PASS") == 6, told)
    told = run(TOOL, "run", "--fill-mode", "ones", "--outputs", tmp / "narrow", path, env=environment(tmp))
    numbers = [onnx.numpy_helper.to_array(onnx.load_tensor(tmp / "narrow" / f"output_{k}.pb")).astype(np.float32).tolist() for k in (0, 2, 3, 4, 5)] if told.returncode == 0 else []
    check("and run", numbers == [[[1.0] * 3] * 5, [1.0] * 7, [1.0] * 5, [-1.0] * 3, [1.0] * 5], (told, numbers))


def states(tmp, check):
    """What an instance keeps is no output of the program's, and has to be able to change."""
    path = save(tmp, "kept.onnx", HEADER + "g (float[2] x, float[2] s, float[2] w, string[2] words, string[2] last)"
                " => (float[2] t, float[2] y, float[2] u, string[2] next) <float[2] w = {1, 2}> { t = Add(x, s)  y = Mul(t, x)  u = Add(w, x)  next = Identity(words) }")
    told = run(TOOL, "run", "--cpu", "generic", "--state", "s=t", "--input-value", "x=1,2", "--outputs", tmp / "kept.npz",
               save(tmp, "counts.onnx", HEADER + "g (float[2] x, float[2] s, float[2] z) => (float[2] t, float[2] y) { t = Add(x, s)  y = Mul(t, z) }"), env=environment(tmp))
    archive = np.load(tmp / "kept.npz").files if told.returncode == 0 else []
    check("run with a state saves an archive of what is handed out", archive == ["output_0"], (told, archive))
    for label, words, why in (("fixed by --input-value", ["--input-value", "s=1,2", "--state", "s=t"], '"s" is a constant'), ("that the model initialises", ["--state", "w=u"], '"w" is a constant'),
                              ("of strings", ["--state", "last=next"], "strings do not outlive a run")):
        told = run(TOOL, "check", *words, path)
        check(f"a state {label} is refused", told.returncode == 2 and "TC0154" in told.stderr and why in told.stderr, told)
    odd = onnx.load(save(tmp, "odd.onnx", HEADER + "g (float[2] x, float[2] s, float[2] p1) => (float[2] t, float[2] q1, float[2] y) { t = Add(x, s)  q1 = Add(x, p1)  y = Add(s, p1) }"))
    names = {"s": "a=*b*", "t": "*=*", "p1": "p*1", "q1": "q1="}  # what the syntax of the option has, as parts of names
    for value in (*odd.graph.input, *odd.graph.output):
        value.name = names.get(value.name, value.name)
    for node in odd.graph.node:
        node.input[:], node.output[:] = [names.get(n, n) for n in node.input], [names.get(n, n) for n in node.output]
    onnx.save(odd, tmp / "odd.onnx")
    told = run(TOOL, "run", "--cpu", "generic", "--state", "a=*b*=*=*", "--state", "p*1=q1=", "--input-value", "x=1,2", "--outputs", tmp / "odd.npz", tmp / "odd.onnx", env=environment(tmp))
    check("names of states with '*' and '='", told.returncode == 0 and np.load(tmp / "odd.npz").files == ["output_0"], told)
    told = run(TOOL, "check", "--state", "a*b*=t", path)
    check("a pattern of two stars is refused", told.returncode == 2 and "TC0154" in told.stderr and "one '*' at most" in told.stderr, told)


PARTS = (types_that_numpy_lacks, states, runs, profiles, node_by_node, made_smaller, wrong_numbers_made_smaller)
