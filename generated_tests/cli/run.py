"""The command line as its users meet it: commands, exit codes, what goes to stdout and what to stderr, progress on a
terminal. Every check prints one line; the last line counts them."""

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
    answers("explain", ["explain", "tc0112"], out="TC0112: the graph has a cycle")
    answers("explain a code that does not exist", ["explain", "TC7777"], 2, err="no message with the code")
    answers("an option that does not exist", ["--dimm", "a=1"], 2, err="did you mean '--dim'?")
    answers("ops with a word", ["ops", "gemm"], out="| ai.onnx | Gemm |")
    answers("ops with a word that no operator has", ["ops", "Gemmm"], 2, err="no supported operator has 'Gemmm' in its name")
    answers("a mistyped command", ["emti", DIGITS], 2, err="did you mean 'emit'?")
    answers("a pass that does not exist", ["--disable-pass", "fuse_opps", DIGITS], 2, err="did you mean 'fuse_ops'?; tc-emit passes lists them")
    answers("a name that is a word of C", ["--name", "main", DIGITS], 2, err="try 'main_model'")
    for words, told in ((["--arch", "sm_90"], "--arch is for --target cuda"), (["--jit"], "--jit is for --target cuda"),
                        (["--target", "cuda", "--cpu", "native"], "--cpu is for --target c")):
        answers(" ".join(words), ["check", *words, DIGITS], 2, err=told)
    answers("a command without a model", ["check"], 2, err="no model given")
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
        check("progress on a terminal", code == 0 and all(line.startswith(b"chain.onnxtxt: ") for line in lines[:-1]), lines[:5])
        check("progress is gone at the end", lines[-1].startswith(b"chain: "), lines[-1])
    for label, words, env in (("--quiet", ["--quiet"], {}), ("a dumb terminal", [], {"TERM": "dumb"})):
        _, seen = on_terminal([*words, path, "-o", tmp / "chain"], env)
        check(f"no progress with {label}", b"\x1b" not in seen, seen[:100])
    answers("no progress without a terminal", [path, "-o", tmp / "chain"], out="distinct kernel")


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        for part in (help_and_tables, info_of_models, files_and_limits, progress):
            part(tmp)
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
