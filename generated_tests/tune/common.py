"""What the tests of tuning have in common: the tool, a runner that only pretends to measure, and files of records."""
import json
import pathlib
import re
import shlex
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[0] / "python"))
from checks import ROOT, TOOL, Checks, files_of, run  # noqa: E402, F401

check = Checks(only_failures=True)
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
CPU = ["--cpu", "x86-64-v3"]


def fake(*words):
    return ["--runner", shlex.join([sys.executable, str(HERE / "fake_runner.py"), *map(str, words)])]


def tune(records, *words, model=DIGITS, **options):
    return run(TOOL, "tune", model, *CPU, "--records", records, *words, **options)


def records_of(path):
    """The trials of a file; lines that define functions are others."""
    return [r for r in lines_of(path) if "definition" not in r]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{") and line.endswith("}")]


def plan(record):
    return "; ".join(record["plan"])


def best(records):
    """The best plan of each function, told by what was measured."""
    found = {}
    for r in records:
        if r["state"] == "ok" and r["confirmed"] and r["of_model"] < found.get(r["function"], {"of_model": 2})["of_model"]:
            found[r["function"]] = r
    return found


def written_schedules(tmp, *words):
    file = tmp / "written.tc"
    told = run(TOOL, "--quiet", DIGITS, *CPU, *words, "--write-schedules", file)
    check("schedules are written", told.returncode == 0, told.stderr)
    return {m[1]: "; ".join(line.strip() for line in m[2].strip().splitlines())
            for m in re.finditer(r'schedule "[^"]*" on "[^"]*" of "(\w+)"\n((?:  .*\n?)+)', file.read_text())}


def with_tmp(part):
    def run_part():
        with tempfile.TemporaryDirectory() as folder:
            part(pathlib.Path(folder))
    return run_part


BILINEAR = ('<ir_version: 8, opset_import: ["" : 18, "odd" : 1]>\n'
            "m (float[8,32] x, float[12,32,32] w, float[8,32] z) => (float[8,12] y) { y = odd.Bilinear (x, w, z) }\n")
