"""The command line as its users meet it: commands, exit codes, what goes to stdout and what to stderr, progress on a
terminal. Every check prints one line; the last line counts them."""

import fcntl
import functools
import json
import os
import pathlib
import pty
import re
import sys
import tempfile

import numpy as np
import onnx.numpy_helper
import onnx.parser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import models  # noqa: E402
import other_tools  # noqa: E402
import reviews  # noqa: E402
from checks import ROOT, TOOL, Checks, run  # noqa: E402

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'

check = Checks()


def call(*words):
    return run(TOOL, *words)


def answers(name, words, code=0, out="", err=""):
    """Checks exit code, and that stdout and stderr have the words; an empty text must be empty."""
    r = call(*words)
    good = r.returncode == code and all((want in text) if want else not text for want, text in ((out, r.stdout), (err, r.stderr)))
    check(name, good, (r.returncode, r.stdout[:150], r.stderr[:150]))
    return r


def on_terminal(words, env=None):
    """(exit code, bytes) of what a terminal sees."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(TOOL, [str(TOOL), *map(str, words)], {**os.environ, "TERM": "xterm", **(env or {})})
    seen = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


def help_and_tables(tmp):
    commands = re.findall(r"^  (\w+) +\S", answers("--help", ["--help"], out="usage: tc-emit").stdout.split("commands:")[1].split("options:")[0], re.M)
    check("help names the commands of the README", set(commands) == set(re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(), re.M)), commands)
    for command in commands:
        answers(f"help {command}", ["help", command], out="tc-emit")
    answers("help of a command that does not exist", ["help", "frob"], 2, err="the commands are: emit, check")
    doctor = call("doctor")
    check("doctor finds this machine's compiler and make", doctor.returncode == 0 and re.search(r"^  found    C compiler      \S+: .*\d\.\d", doctor.stdout, re.M) and "found    make" in doctor.stdout, doctor)
    tools = {t["name"]: t for t in json.loads(answers("doctor --json", ["doctor", "--json"], out="C compiler").stdout)["tools"]}
    check("and what of each is missing", all(bool(t["found"]) != bool(t["way_out"]) for t in tools.values()), tools)
    bare = run(TOOL, "doctor", env={"PATH": str(tmp)})
    check("doctor without anything", bare.returncode == 7 and "found " not in bare.stdout and bare.stdout.count("  missing  ") >= 8 and "a C compiler and make are needed" in bare.stdout, bare)
    broken = run(TOOL, "doctor", "--json", env={**os.environ, "CC": "echo 1.2 #"})
    told = json.loads(broken.stdout)
    check("a compiler that makes nothing is none", broken.returncode == 7 and not told["ready"] and told["tools"][0]["found"] == "", broken)
    answers("explain", ["explain", "tc0112"], out="TC0112: the graph has a cycle")
    answers("explain a code that does not exist", ["explain", "TC7777"], 2, err="no message with the code")
    answers("an option that does not exist", ["--dimm", "a=1"], 2, err="did you mean '--dim'?")
    answers("ops with a word", ["ops", "gemm"], out="| ai.onnx | Gemm |")
    answers("ops with a word that no operator has", ["ops", "Gemmm"], 2, err="no supported operator has 'Gemmm' in its domain and name")
    answers("a mistyped command", ["emti", DIGITS], 2, err="did you mean 'emit'?")
    answers("a pass that does not exist", ["--disable-pass", "fuse_opps", DIGITS], 2, err="did you mean 'fuse_ops'?; tc-emit passes lists them")
    answers("a pass that others need", ["--disable-pass", "scan_first_axis", DIGITS], 2, err="'scan_first_axis' is no optimisation")
    answers("a name that is a word of C", ["--name", "main", DIGITS], 2, err="try 'main_model'")
    for words, told in ((["--arch", "sm_90"], "--arch is for --target cuda"), (["--jit"], "--jit is for --target cuda"),
                        (["--target", "cuda", "--cpu", "native"], "--cpu is for --target c")):
        answers(" ".join(words), [*words, DIGITS, "-o", tmp / "x"], 2, err=told)
    answers("a command without a model", ["check"], 2, err="no model given")
    answers("a command that takes no word", ["passes", DIGITS], 2, err="tc-emit passes takes nothing but options")
    for flag, value, told in (("--input-shape", "image=3x", "needs a whole number"), ("--input-shape", "image=-1x8", "at least 0"),
                              ("--input-shape", "image=1,1,8,8", "has an x between sizes"),
                              ("--elements", "image=3x,4", "needs a whole number"), ("--elements", "image=3,,4", "the shape of each tensor")):
        answers(f"{flag} {value}", ["check", flag, value, DIGITS], 2, err=told)
    ops = json.loads(answers("ops --json", ["ops", "--json"], out='"operator"').stdout)
    rows = [line.split(" | ")[1] for line in call("ops").stdout.splitlines()[2:]]
    check("ops and ops --json list the same", [o["operator"] for o in ops] == rows and len(rows) > 150, len(rows))
    gemm = next(o for o in ops if o["operator"] == "Gemm")
    check("ops --json has defaults", gemm["attributes"] == {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}, gemm)
    passes = answers("passes", ["passes"], out="fuse_ops").stdout.split()
    tests = {path.stem for path in (ROOT / "passes" / "graph" / "tests").glob("*.test")}
    check("passes lists those that have tests", tests <= set(passes), tests - set(passes))


SAMPLES = {"IN=OUT": "x=y", "D=K": "n=1", "X=1x3x8x8": "image=1x1x8x8", "X=3x4,5x4": "x=3", "X=16000": "image=1", "0..3": "1", "PASS": "fuse_ops", "strict|fast": "fast", "linked|external": "linked", "model|int8": "model",
           "c|cuda": "c", "onnxruntime|interpreter": "interpreter", "text|json": "json", "auto|plain|none": "auto", "random|zeros|ones": "ones"}
NAMES = {"--cpu": "generic", "--arch": "sm_80", "--precision": "fp32", "--name": "m"}


def options_of_commands(tmp):
    """Each command takes the options that its help lists, and refuses all others."""
    def listed(*words):
        return {m[1]: m[2].strip() for m in re.finditer(r"^  (-\S+) ?(\S*)", call(*words).stdout.split("options:")[1], re.M)}

    every = listed("--help")
    told = set(re.findall(r"`(--?[A-Za-z-]+)", "".join(re.findall(r"^\| (`-.*?) \|", (ROOT / "README.md").read_text(), re.M))))
    check("help lists the options of the README", told == set(every), told ^ set(every))
    commands = re.findall(r"^  (\w+) +\S", call("--help").stdout.split("commands:")[1].split("options:")[0], re.M)
    wrong = []
    for command in commands:
        own = listed("help", command)
        for flag, value in every.items():
            words = [flag] + ([NAMES.get(flag) or SAMPLES.get(value, "1")] if value.isupper() or "=" in value or "|" in value or ".." in value else [])
            ended = call(command, *words)  # without a model: nothing runs
            refused = ended.returncode == 2 and re.search(rf"{flag} is for (?!--target)", ended.stderr)
            if bool(refused) == (flag in own):
                wrong.append((command, words, ended.returncode, ended.stderr[:90]))
    check("a command takes its own options and no others", not wrong, wrong)
    answers("emit --seconds", ["emit", "--seconds", "3", DIGITS, "-o", tmp / "x"], 2, err="--seconds is for bench, run and tune, not for emit\n  note: tc-emit help emit lists its options")
    answers("the same without the command's name", ["--seconds", "3", DIGITS, "-o", tmp / "x"], 2, err="--seconds is for bench, run and tune")
    check("and nothing is written", not (tmp / "x").exists())
    answers("--string-bytes of CUDA", ["check", "--target", "cuda", "--string-bytes", "100", DIGITS], 2, err="--string-bytes is for --target c")
    check("COMMAND --help is help COMMAND", call("bench", "--help").stdout == call("help", "bench").stdout)


def what_runs_here(tmp):
    """verify and bench build for this machine, unless another is asked for."""
    native = call("--cpu", "native", "--quiet", DIGITS, "-o", tmp / "native").stderr
    check("emit says what native is", native.startswith("--cpu native is "), native)
    answers("verify", ["verify", "--against", "interpreter", DIGITS], out="PASS", err=native)
    answers("bench", ["bench", "--cpu", "generic", "--seconds", "0.01", DIGITS], out="median")


def check_against_a_folder(tmp):
    """--check prints what would change, as patch takes it."""
    package = tmp / "package"
    emitted = ["--name", "m", DIGITS, "-o", package]
    call("--quiet", *emitted)
    answers("--check of what was written", ["--check", *emitted])
    source, header, gone = package / "m.c", package / "m.h", package / "README.md"
    text = source.read_text()
    source.write_text(text.replace("\n", "\n/* mine */\n", 1))
    header.write_text(header.read_text() + "int more;\n")
    gone.unlink()
    weights = next(package.glob("*_weights.bin"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    names = answers("--check --quiet", ["--check", "--quiet", *emitted], 4, out="differs m.c\n").stdout
    check("names only", sorted(names.split()[1::2]) == sorted(["m.c", "m.h", "README.md", weights.name]), names)
    diff = answers("--check", ["--check", *emitted], 4, out="-/* mine */\n").stdout
    check("bytes are not shown", f"Binary files a/{weights.name} and b/{weights.name} differ\n" in diff, diff[:300])
    patched = run("patch", "-p1", "--quiet", "-d", package, input="".join(re.split(r"^Binary.*\n", diff, flags=re.M)))
    answers("patch brings the folder up to date", ["--check", "--quiet", *emitted], 4, out=f"differs {weights.name}\n")
    check("without a word", patched.returncode == 0 and not patched.stdout, patched.stdout + patched.stderr)


def messages(tmp):
    path = tmp / "dead.onnxtxt"
    path.write_text('<ir_version: 8, opset_import: ["" : 17, "other" : 1]>\ng (float[4] x) => (float[4] y) { a = other.Frob(x) y = Neg(x) }')
    answers("a dead node that is not supported", ["check", path], out="every node is supported")
    inputs = ", ".join(f"float[batch, heads, past, {k + 1}] p{k}" for k in range(40))
    path = tmp / "symbols.onnxtxt"
    path.write_text(HEADER + f"g ({inputs}) => (float[batch, heads, past, 1] y) {{ y = Neg(p0) }}")
    told = answers("symbolic sizes", ["check", path], 1, err='inputs "p0" axis 0, "p1" axis 0, "p2" axis 0, "p3" axis 0 and of 36 more').stderr
    check("each is told once", told.count("error[TC0150]") == 3, told[:300])


def info_of_models(tmp):
    facts = json.loads(answers("info --json", ["info", "--json", DIGITS], out="parameters").stdout)
    check("multiply-accumulates of the digits network", facts["macs"] == 8 * 8 * 16 * 9 + 256 * 10, facts["macs"])
    check("parameters of the digits network", facts["parameters"] == 16 * 9 + 16 + 256 * 10 + 10, facts["parameters"])
    answers("info", ["info", DIGITS], out="MACs        11776\n")
    model = onnx.parser.parse_model(HEADER + "g (float[N, 8] x) => (float[N, 4] y) <float[8, 4] w = {" + ", ".join("1" * 32) + "}> { y = MatMul(x, w) }")
    path = tmp / "symbolic.onnx"
    path.write_bytes(model.SerializeToString())
    answers("info of a model without sizes says why it does not count", ["info", path], out="MACs        unknown (TC0150: ")
    check("and has null for it", json.loads(call("info", "--json", path).stdout)["macs"] is None)
    answers("info with sizes counts", ["info", "--dim", "N=3", path], out="MACs        96\n")
    answers("a range that is empty", ["check", "--dim", "N=4..3", path], 2, err="a range that is not empty")
    answers("a range without end", ["check", "--dim", "N=4..", path], out="every node is supported")
    answers("a range without end, on a GPU", ["check", "--target", "cuda", "--dim", "N=4..", path], out="every node is supported")
    formulas = tmp / "sizes.tc"
    formulas.write_text("op my.Share(x: f32[N]) -> y: f32[N]\n  y[i] = x[i] / N\nop my.Times(x: f32[N]) -> y: f32[N]\n  y[i] = sum(s: N) x[i]\n"
                        "op my.Wide(x: f32[N]) -> y: f32[N, N]\n  y[i, j] = x[i]\nop my.Own(x: f32[N]) -> y: f32[N]\n  y[i] = x[i] * 2\n"
                        "op my.Thirds(x: i32[N], z: i32[A]) -> y: i32[N]\n  y[i] = sum(r: A) where(z[r] < 4, x[i], 3) // 3\n")
    own = tmp / "sizes.onnxtxt"
    for name, ranks, why in (("Share", 1, "the operator's formula has it as a number"), ("Times", 1, "the operator's formula has it as a number"),
                             ("Wide", 2, "an output has it as a shape alone"), ("Own", 1, "")):
        own.write_text(f'<ir_version: 10, opset_import: ["" : 21, "my" : 1]>\ng (float[n] x) => (float[{", ".join("ab"[:ranks])}] y) {{ y = my.{name}(x) }}\n')
        for size in ("1..9", "1..")[:1 if name == "Wide" else 2]:
            arguments = ["check", "--ops", formulas, "--dim", f"n={size}", own]
            answers(f"a size in a formula of the user's: {name}, {size}", arguments, *((3,) if why else ()), **({"err": why} if why else {"out": "every node is supported"}))
    own.write_text('<ir_version: 10, opset_import: ["" : 21, "my" : 1]>\ng (int32[n] x, int32[5] z) => (int32[a] y) { y = my.Thirds(x, z) }\n')
    answers("a condition on 32 bits beside a size without end", ["check", "--ops", formulas, "--dim", "n=3..", own], out="every node is supported")
    share = tmp / "share.onnxtxt"
    share.write_text('<ir_version: 8, opset_import: ["" : 18]>\nm (float[n, 5] x) => (float[n, 5] y) { y = Softmax <axis = 0> (x) }\n')
    lengths = tmp / "lengths.onnxtxt"
    lengths.write_text('<ir_version: 8, opset_import: ["" : 18]>\nm (float[n, 2, 6] x, float[1, 15, 6] w, float[1, 15, 5] r, float[1, 30] b, int32[2] l) => (float[1, 2, 5] y)'
                       ' { z, y = GRU <hidden_size = 5> (x, w, r, b, l) }\n')
    answers("the last states of sequences that end before", ["check", "--dim", "n=1..", lengths], 3, err="would touch all of the largest")
    answers("the same with a bound", ["check", "--dim", "n=1..9", lengths], out="every node is supported")
    answers("shares of a size without end, on a GPU", ["check", "--target", "cuda", "--dim", "n=1..", share], 3, err="would go through all of the largest size")
    answers("a range that ends beyond all memory", ["check", "--dim", "N=4..999999999999", path], 2, err="one without an upper bound is written 4..")
    square = tmp / "square.onnxtxt"
    square.write_text('<ir_version: 8, opset_import: ["" : 18]>\nm (float[A,B] x) => (float[A,B] y) { y = Relu (x) }\n')
    answers("two sizes of a tensor without upper bounds", ["check", "--dim", "A=1..", "--dim", "B=1..", square], 5, err="a tensor may have one size without an upper bound: give others one")
    rows = tmp / "rows.onnxtxt"
    rows.write_text('<ir_version: 8, opset_import: ["" : 18]>\nm (uint8[16777217,1] x) => (uint8[a,b] y) <float[2] s = {1, 2}> { y = Resize <mode = "nearest"> (x, "", s) }\n')
    answers("a scale of 1 keeps a size that is no float", ["run", "--cpu", "generic", rows], out='output "y" uint8 [16777217, 2]')
    halved = tmp / "halved.onnxtxt"
    halved.write_text('<ir_version: 8, opset_import: ["" : 18]>\nm (float[1,1,h,6] x) => (float[1,1,a,b] y) <float[4] s = {1, 1, 2, 1}> {\n'
                      ' d = MaxPool <kernel_shape = [2, 1], strides = [2, 1]> (x)\n u = Resize <mode = "nearest"> (d, "", s)\n y = Add (u, x)\n}\n')
    answers("sizes that are halved and doubled", ["check", "--dim", "h=5..40", halved], 3, err="meet where they are multiples: --dim h=2*h2 --dim h2=3..20")
    answers("and the way out of it", ["run", "--cpu", "generic", "--dim", "h=2*h2", "--dim", "h2=3..20", halved], out='output "y" float [1, 1, 40, 6]')
    channels = tmp / "channels.onnxtxt"
    channels.write_text('<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>\nm (float[2,N,5] x, float[M,1,3] w) => (float[a,b,c] y, float[d,e,f] s) { y, s = com.microsoft.CausalConvWithState (x, w) }\n')
    answers("numbers along a size without an upper bound", ["check", "--dim", "N=1..", "--dim", "M=N", channels], 3, err="with an upper bound more is possible: --dim N=1..64")
    answers("run without an upper bound", ["run", "--cpu", "generic", "--dim", "N=1..", path], out='output "y" float [38, 4]')
    answers("verify without an upper bound", ["verify", "--cpu", "generic", "--against", "interpreter", "--dim", "N=1..", path], out="sizes N=38")
    answers("a range that is none", ["check", "--dim", "N=4..x", path], 2, err="--dim needs a whole number")
    answers("a size at run time on a GPU", ["check", "--target", "cuda", "--dim", "N=1..3", path], out="every node is supported")
    answers("--cuda-graphs of C", ["--dim", "N=1..3", "--cuda-graphs", "2", path, "-o", tmp / "none"], 2, err="--cuda-graphs is for --target cuda")
    answers("run with a size at run time", ["run", "--cpu", "generic", "--dim", "N=1..3", path], out='output "y" float [3, 4]')
    answers("verify with a size at run time", ["verify", "--cpu", "generic", "--against", "interpreter", "--dim", "N=1..3", path], out="sizes N=2")
    answers("verify --per-node with a size at run time", ["verify", "--per-node", "--cpu", "generic", "--against", "interpreter", "--dim", "N=1..3", path], out="none is off")
    out = tmp / "sized"
    check("emit with a size at run time", call("--quiet", "--dim", "N=0..3", path, "-o", out).returncode == 0)
    check("its header names the size", "[N][8]" in (out / "symbolic.h").read_text() and "a size, from 0 to 3" in (out / "symbolic.h").read_text())
    check("emit for a GPU", call("--quiet", "--target", "cuda", "--cuda-graphs", "2", "--dim", "N=0..3", path, "-o", tmp / "sized_cuda").returncode == 0)
    check("its inputs are those of C", "int64_t N;" in (tmp / "sized_cuda" / "symbolic.h").read_text())
    check("and its kernels do not", all("TC_RESTRICT N" not in kernel.read_text() for kernel in (out / "kernels").glob("*.c")))


def states_of_both_domains(tmp):
    """What ONNX has taken over from com.microsoft is the same kernels, at sizes of the run, too."""
    kernels = []
    for imports, domain in (('"" : 27', ""), ('"" : 21, "com.microsoft" : 1', "com.microsoft.")):
        model, out = tmp / "m.onnxtxt", tmp / f"states{len(kernels)}"
        model.write_text(f'<ir_version: 10, opset_import: [{imports}]>\nm (float[n,18,s] x, float[n,2,3,3] p, float[18,1,4] w) => (float[a,b,c] y, float[d,e,f,g] q) {{\n'
                         f' c, t = {domain}CausalConvWithState <activation = "silu"> (x, w)\n z = Transpose <perm = [0, 2, 1]> (c)\n v1, v2, v3 = Split <axis = 2, num_outputs = 3> (z)\n'
                         f' y, q = {domain}LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "linear"> (v1, v2, v3, p)\n}}\n')
        answers(f"layers with states {domain}", ["--quiet", "--verify-each", "--cpu", "generic", "--dim", "n=1..3", "--dim", "s=1..9", model, "-o", out])
        kernels.append({path.name: path.read_text() for path in (out / "kernels").glob("*.c")})
    check("both are the same kernels", kernels[0] == kernels[1] and any("linear_attention" in name for name in kernels[0]))


def operators_of_the_users(tmp):
    folder = ROOT / "examples" / "custom_operator"
    ops, model = folder / "my_ops.tc", folder / "signal.onnxtxt"
    answers("a model with unknown operators", ["check", model], 3, err='operator Correlate (domain "my" version 1) is not supported')
    answers("ops --ops", ["ops", "--ops", ops, "Corr"], out="| my | Correlate | 1 | `dilation = 1` |  |")
    native = "" if "--cpu native" not in call("verify", "--against", "interpreter", DIGITS).stderr else "--cpu native"
    by_reference = [TOOL, "verify", "--ops", ops, "--reference", folder / "my_ops.py", model]
    here = pathlib.Path(sys.executable).parent  # a python3 that has onnx
    r = run(*by_reference, env={**os.environ, "PATH": f"{here}:{os.environ['PATH']}"})
    check("verify --ops --reference", r.returncode == 0 and "PASS" in r.stdout, r.stdout + r.stderr)
    bare = tmp / "python"
    bare.mkdir()
    (bare / "python3").write_text("#!/bin/sh\nexec /usr/bin/env -i \"%s\" -I -S \"$@\"\n" % sys.executable)
    (bare / "python3").chmod(0o755)
    r = run(*by_reference, env={**os.environ, "PATH": f"{bare}:{os.environ['PATH']}"})
    check("a python3 without onnx", r.returncode == 7 and "python3 has no package numpy, which --reference needs: pip install onnx" in r.stderr, r.stderr)
    answers("verify --ops", ["verify", "--ops", ops, model], out="against the interpreter", err=native)
    answers("verify --ops on CUDA", ["verify", "--ops", ops, "--target", "cuda", model], out="PASS")
    answers("--reference without --ops", ["verify", "--reference", folder / "my_ops.py", DIGITS], 2, err="--reference is for operators of --ops")
    answers("ONNX Runtime and --ops", ["verify", "--ops", ops, "--against", "onnxruntime", model], 2, err="does not know the operators")
    wrong = tmp / "wrong.tc"
    wrong.write_text("op my.A(x: f32[N]) -> y: f32[N]\n  y[n] = x[n, 1]\nop my.B(x: f32[N]) -> y: f32[M]\n  y[n] = 0\n")
    r = answers("a wrong file", ["--ops", wrong, model, "-o", tmp / "wrong"], 1, err="nothing was written")
    lines = [f"{wrong}:2:10: 'x' has rank 1, not 2", "    y[n] = x[n, 1]", "           ^"]
    lines += [f"{wrong}:3:30: nothing is called 'M' here", "  op my.B(x: f32[N]) -> y: f32[M]", " " * 31 + "^", "nothing was written"]
    check("each mistake with its line and a caret", r.stderr.splitlines() == lines, r.stderr)
    check("nothing is written", not (tmp / "wrong").exists())
    answers("a folder for a file of operators", ["check", "--ops", tmp, model], 6, err="cannot read")
    answers("a file of operators that does not exist", ["check", "--ops", tmp / "none.tc", model], 6, err="cannot read")
    answers("an operator twice", ["check", "--ops", ops, "--ops", ops, model], 1, err="my.Correlate is defined already")
    text = model.read_text().replace("float[3, 5] pattern", "float[4, 5] pattern")
    (tmp / "misfit.onnxtxt").write_text(text)
    answers("sizes that do not fit", ["check", "--ops", ops, tmp / "misfit.onnxtxt"], 1, err='axis 0 of w has 4 elements, C is 3')


def files_and_limits(tmp):
    answers("a file that is not there", ["check", tmp / "gone.onnx"], 6, err="cannot open the model: No such file or directory")
    answers("a folder", ["check", tmp], 6, err="the model is a folder")
    locked = tmp / "locked.onnx"
    locked.write_bytes(DIGITS.read_bytes())
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        print("note  not checked, because this user may read everything: a file without permission")
    else:
        answers("a file without permission", ["check", locked], 6, err="cannot open the model: Permission denied")
    answers("--limit-memory", ["check", "--limit-memory", "1", DIGITS], out="every node is supported")
    big = onnx.parser.parse_model(HEADER + "g (float[1] x) => (float[1] y) { y = Neg(x) }")
    big.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(1 << 19, np.float32), "w"))
    path = tmp / "big.onnx"
    path.write_bytes(big.SerializeToString())
    answers("--limit-memory stops", ["check", "--limit-memory", "1", path], 5, err="--limit-memory")
    answers("--limit-memory of nothing", ["check", "--limit-memory", "0", path], 2, err="from 1 to")


def streams_and_links(tmp):
    """What is no file is written to, not replaced; behind a link, what it names is replaced."""
    for name, words in (("--write-schedules", [DIGITS, "--write-schedules"]), ("report", ["report", DIGITS, "-o"])):
        pipe, plain, link = tmp / f"{name}.pipe", tmp / f"{name}.txt", tmp / f"{name}.link"
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 20)
        r = call(*words, pipe)
        told = os.read(end, 1 << 20)
        os.close(end)
        plain.touch()
        link.symlink_to(plain)
        linked = call(*words, link)
        check(f"{name} into a pipe", r.returncode == 0 and pipe.is_fifo() and told, r.stderr)
        check(f"{name} through a link", linked.returncode == 0 and link.is_symlink() and plain.read_bytes() == told, linked.stderr)


def progress(tmp):
    # Long enough to be shown: it starts after half a second.
    nodes = " ".join(f"v{k + 1} = {'Sigmoid' if k % 3 else 'Neg'}(v{k})" for k in range(40000))
    path = tmp / "chain.onnxtxt"
    path.write_text(HEADER + "g (float[4] v0) => (float[4] v40000) {" + nodes + "}")
    code, seen = on_terminal([path, "-o", tmp / "chain"])
    lines = re.findall(rb"\r\x1b\[K([^\r\x1b]*)", seen)
    if len(lines) < 2:
        print("note  progress was not checked: the chain was compiled within half a second")
    else:
        check("progress on a terminal", code == 0 and all(not line or line.startswith(b"chain.onnxtxt: ") for line in lines[:-1]), lines[:5])
        check("progress is gone at the end", lines[-1].startswith(b"chain: "), lines[-1])
    for label, words, env in (("--quiet", ["--quiet"], {}), ("a dumb terminal", [], {"TERM": "dumb"})):
        _, seen = on_terminal([*words, path, "-o", tmp / "chain"], env)
        check(f"no progress with {label}", b"\x1b" not in seen, seen[:100])
    answers("no progress without a terminal", [path, "-o", tmp / "chain"], out="distinct kernel")
    _, seen = on_terminal(["--progress", "none", DIGITS, "-o", tmp / "unseen"])
    check("--progress none", b"\x1b" not in seen and b"passes" not in seen, seen[:100])
    phases = r"(digits\.onnx: \w+ \d+\.\d{3} s\n)+"
    for words, last in (([DIGITS, "-o", tmp / "phases"], "write"), (["check", DIGITS], "kernels"), (["report", DIGITS, "-o", tmp / "r.html"], "page"),
                        (["verify", "--against", "interpreter", DIGITS], "run"), (["bench", "--seconds", "0.1", DIGITS], "bench"), (["run", DIGITS], "run")):
        r = call(*words, "--progress", "plain")
        told = r.stderr.replace("--cpu native is", "", 1).partition("digits.onnx: import")
        check(f"--progress plain of {words[0]}", r.returncode == 0 and re.fullmatch(phases, told[1] + told[2]) and told[2].splitlines()[-1].startswith(f"digits.onnx: {last} "), r.stderr)
    answers("--progress plain --quiet", ["--progress", "plain", "--quiet", DIGITS, "-o", tmp / "x"], 2, err="leave out --quiet")
    answers("--progress loud", ["--progress", "loud", DIGITS, "-o", tmp / "x"], 2, err="auto, plain or none")
    for command in ("verify", "bench", "run", "check"):
        check(f"{command} --time-passes", re.search(r"^fuse_ops +\d", call(command, "--time-passes", DIGITS).stderr, re.M))


def activations_of_bytes(tmp):
    """--activations int8: what accuracy_level 4 says, and, written out, what is multiplied."""
    random = np.random.default_rng(5)
    depth, columns, block, rows = 96, 24, 32, 5
    packed = random.integers(0, 256, (columns, depth // block, block // 2)).astype(np.uint8)
    scales = (random.random((columns, depth // block)) * 0.02 + 0.001).astype(np.float32)
    x = random.standard_normal((rows, depth)).astype(np.float32)
    paths = []
    for level in (0, 4):
        node = onnx.helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=depth, N=columns, bits=4, block_size=block, accuracy_level=level)
        ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in (("x", [rows, depth]), ("y", [rows, columns]))]
        graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:], [onnx.numpy_helper.from_array(packed, "w"), onnx.numpy_helper.from_array(scales, "s")])
        paths.append(tmp / f"level{level}.onnx")
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1)], ir_version=9), paths[-1])
    texts = []
    for path, words in ((paths[0], []), (paths[0], ["--activations", "int8"]), (paths[1], [])):
        out = tmp / f"activations{len(texts)}"
        call("--quiet", "--cpu", "x86-64-v3", "--name", "g", *words, path, "-o", out)
        texts.append({file.name: file.read_text() for file in (out / "kernels").glob("*.c")})
    check("--activations int8 is accuracy_level 4", texts[1] == texts[2] and texts[0] != texts[1])
    np.save(tmp / "bytes_x.npy", x)
    answers("run --activations int8", ["run", "--cpu", "generic", "--activations", "int8", "--inputs", f"x={tmp / 'bytes_x.npy'}", "--outputs", tmp / "bytes", paths[0]])
    w = np.stack([packed & 15, packed >> 4], -1).reshape(columns, depth // block, block).astype(np.int64) - 8
    blocks = x.reshape(rows, depth // block, block)
    steps = np.abs(blocks).max(-1) / np.float32(127)
    q = np.clip(np.rint(blocks * (1 / steps)[..., None]), -127, 127).astype(np.int64)
    want = (np.einsum("mbk,nbk->mnb", q, w) * steps[:, None].astype(np.float64) * scales).sum(-1)
    exact = np.einsum("mbk,nbk,nb->mn", blocks.astype(np.float64), w, scales)
    made = np.load(next((tmp / "bytes").glob("*.npy")))
    check("bytes are multiplied as the definition says", np.abs(made - want).max() < 1e-4 < np.abs(made - exact).max(), (np.abs(made - want).max(), np.abs(made - exact).max()))
    answers("--activations of nothing", ["check", "--activations", "int4", paths[0]], 2, err="--activations is model or int8")
    answers("--activations on a GPU", ["check", "--target", "cuda", "--activations", "int8", paths[0]], 2, err="is for --target c")
    answers("--activations and --fp strict", ["check", "--fp", "strict", "--activations", "int8", paths[0]], 2, err="leave out one of them")


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        own = (help_and_tables, options_of_commands, what_runs_here, check_against_a_folder, messages, info_of_models, states_of_both_domains, operators_of_the_users,
               files_and_limits, streams_and_links, activations_of_bytes, progress)
        others = (*models.PARTS, *other_tools.PARTS, *reviews.PARTS)
        check.run([*(functools.partial(part, tmp) for part in own), *(functools.partial(part, tmp, check) for part in others)], quick=2)
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
