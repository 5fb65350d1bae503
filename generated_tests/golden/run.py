#!/usr/bin/env python3
"""Compares the packages of small models with those that are committed, byte for byte.

usage: run.py [--tool build/tc-emit] [--update] [--only REGEX]                 (run it with `scripts/python_env base`)

Each folder has model.onnxtxt, out/ (the package) and, if it needs them, flags. Support text (tc_*.h, cuda_on_cpu/) is not
kept a second time: it has to be that of templates/text. --update writes what is emitted now, but only where the program that it makes
computes ONNX Runtime's numbers: a wrong package is never a new standard. Look at the diff before you commit it.
The last line reads 'N passed, N failed'.
"""
import argparse
import difflib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx.parser

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "generated_tests" / "python"))
from agreement import difference  # noqa: E402
from checks import files_of  # noqa: E402
from answers import session  # noqa: E402
from toolchain import CudaToolchain, Failed, Toolchain, call, first_line, without_strings  # noqa: E402

TEXTS = ROOT / "templates" / "text"
SEEDS = 4  # sets of inputs that an update is judged by; bool scalars alternate


def emit(tool, case, package):
    flags = (case / "flags").read_text().split() if (case / "flags").exists() else []
    result = subprocess.run([tool, "--quiet", "--verify-each", "--name", case.name, *flags, case / "model.onnxtxt", "-o", package],
                            capture_output=True, text=True)
    if result.returncode:
        raise Failed(f"tc-emit ended with {result.returncode}: {result.stderr.strip()}")


def split_support(files):
    """(the package's own files, what is wrong with its support text)."""
    own = {name: data for name, data in files.items() if not re.fullmatch(r"tc_\w+\.h|cuda_on_cpu/.*", name)}
    wrong = [f"{name} is not the text of templates/text" for name, data in files.items()
             if name not in own and data != without_strings((TEXTS / name).read_bytes())]
    return own, wrong


def differences(package, golden):
    """Lines that say how the package differs from the golden one; empty if it does not."""
    new, lines = split_support(files_of(package))
    old = files_of(golden)
    for name in sorted({*new, *old}):
        if name not in new or name not in old:
            lines.append(f"{name} is {'new' if name in new else 'gone'}")
        elif new[name] != old[name] and name.endswith(".bin"):
            lines.append(f"{name} differs")
        elif new[name] != old[name]:
            pair = [text.decode(errors="replace").splitlines() for text in (old[name], new[name])]
            lines += difflib.unified_diff(*pair, f"golden/{name}", f"emitted/{name}", lineterm="", n=1)
    return lines


def some_input(port, seed):
    rng = np.random.RandomState(seed)
    if port.type == "tensor(bool)":
        return np.full(port.shape, seed % 2 == 0)
    if port.type == "tensor(uint8)":
        return rng.randint(0, 256, port.shape).astype(np.uint8)
    if port.type == "tensor(int64)":
        return rng.randint(-4, 4, port.shape).astype(np.int64)  # positions in a table, some from its end
    assert port.type == "tensor(float)", port.type
    return rng.standard_normal(port.shape).astype(np.float32)


def judge(case, package, scratch):
    """Builds the package, runs it and compares with ONNX Runtime; raises Failed."""
    model = onnx.parser.parse_model((case / "model.onnxtxt").read_text())
    runtime = session(model.SerializeToString())
    copy, program, seconds = scratch / "copy", scratch / "program", {}
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(package, copy)
    kind = CudaToolchain if list(package.glob("*.cu")) else Toolchain
    kind(scratch, ["-O2"]).build(copy, program, seconds)
    for seed in range(SEEDS):
        feed = {port.name: some_input(port, seed) for port in runtime.get_inputs()}
        for k, value in enumerate(feed.values()):
            np.save(scratch / f"input_{k}.npy", value)
        ran = call("run", [program, "--inputs", scratch, "--outputs", scratch], seconds, cwd=copy)
        if ran.returncode:
            raise Failed(f"the program ended with {ran.returncode}: {first_line(ran.stdout)}")
        for k, expected in enumerate(runtime.run(None, feed)):
            told = difference(np.load(scratch / f"output_{k}.npy"), expected)
            if told:
                raise Failed(f"output {k} is not ONNX Runtime's: {told}")


def update(case, package, scratch):
    """Makes the package the golden one; raises Failed, and changes nothing, if its numbers are wrong."""
    judge(case, package, scratch)
    own, wrong = split_support(files_of(package))
    if wrong:
        raise Failed("; ".join(wrong))
    shutil.rmtree(case / "out", ignore_errors=True)
    for name, data in own.items():
        path = case / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def work_on(case, options, scratch):
    """Handles one case; returns whether it is as it should be."""
    package = scratch / "package"
    try:
        emit(options.tool, case, package)
        lines = differences(package, case / "out")
        if lines and options.update:
            update(case, package, scratch)
            print(f"written {case.name}", flush=True)
        elif lines:
            raise Failed("differs; if that is meant, run generated_tests/run_golden --update\n" + "\n".join(lines[:60]))
        return True
    except Failed as failure:
        print(f"FAILED {case.name}: {failure}", flush=True)
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    results = []
    for case in sorted(path.parent for path in HERE.glob("*/model.onnxtxt")):
        if re.search(options.only, case.name):
            with tempfile.TemporaryDirectory() as scratch:
                results.append(work_on(case, options, Path(scratch)))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
