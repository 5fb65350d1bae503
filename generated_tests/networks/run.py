#!/usr/bin/env python3
"""Emits, compiles and runs the real networks and compares them with ONNX Runtime.

usage: run.py [--target c|cuda] [--tool build/tc-emit] [--cpu native] [--cache DIR] [--work DIR] [--emit-flags "..."] [--json FILE] [--share K/N] [NAME ...]
                                                                               (run it with `scripts/python_env nets`)

For every network, one line: the largest relative error norm(difference) / norm(reference) over its outputs, which must
be below 1e-5 (--max-error, or the network's own bound); whether the largest element of each row is the same one, or one as large within that bound; seconds and peak memory of tc-emit; seconds of the
C compiler. The last line reads 'N passed, N failed'; the exit code is 0 if all passed. What is not in the cache yet is
exported first (see export.py).
The C of a network, as a single file, must also be clean under strict warnings of two compilers, as C99, as plain C99
without vectors, as C11 and as C++17. With --target cuda the package is built by CMake for the CPU (TC_CUDA_ON_CPU).
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import export
from catalog import NETWORKS
from judge import relative_error, same_choice

sys.path.append(str(export.HERE.parent / "python"))
import shares  # noqa: E402
from verdicts import ROOT, Verdicts, compiler_version  # noqa: E402

MAX_ERROR = 1e-5


def timed(command, log, **options):
    """Runs a command, its output to the file `log`; returns (exit code, seconds, peak memory in MiB)."""
    start = time.monotonic()
    with open(log, "w") as out:
        child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, **options)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, time.monotonic() - start, usage.ru_maxrss / 1024


def tail(log):
    """The end of a log, as one line."""
    text = [line.strip() for line in Path(log).read_text(errors="replace").splitlines() if line.strip()]
    told = [line for line in text if "error" in line] or text[-1:] or ["(no message)"]
    return told[0][:300]


def emit(network, model, work, options):
    """Emits one network; returns {"emit_s", "emit_mib"} or {"failure"}. The C target's comes as a single file, too."""
    log, flags = work / "log", [*network.flags, *options.emit_flags]
    base = [options.tool, model, "--verify-each", "--name", network.name, *flags]
    if options.target == "cuda":
        ways = {"package": ["--target", "cuda"]}
    else:
        ways = {"package": ["--cpu", options.cpu], "single": ["--cpu", options.cpu, "--single-file"]}
    told = {}
    for folder, more in ways.items():
        code, seconds, mib = timed([*base, *more, "-o", work / folder], log)
        if code:
            return {"failure": f"tc-emit {' '.join(more)} ended with {code}: {tail(log)}"}
        told = told or {"emit_s": seconds, "emit_mib": mib}
    return told


def build(network, work, options):
    """Compiles a network that was emitted; returns {"program", "compile_s"} or {"failure"}."""
    package, log = work / "package", work / "log"
    cuda = options.target == "cuda"
    binary = package / "build" if cuda else package
    if cuda:
        code, _, _ = timed(["cmake", "-S", package, "-B", binary, "-DTC_CUDA_ON_CPU=ON"], log)
        if code:
            return {"failure": f"cmake ended with {code}: {tail(log)}"}
    code, compile_seconds, _ = timed(["make", "-C", binary, f"-j{os.cpu_count()}"], log)
    if code:
        return {"failure": f"make ended with {code}: {tail(log)}"}
    return {"program": binary / network.name, "compile_s": compile_seconds}


STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]
LANGUAGES = (["gcc", "-std=c99"], ["gcc", "-std=c99", "-DTC_VL=1"], ["gcc", "-x", "c++", "-std=c++17"], ["clang", "-std=c11"])


def unclean(network, work):
    """What strict compilers say of the network as a single file of C; None if they say nothing."""
    package, log = work / "single", work / "log"
    for language in LANGUAGES:
        if timed([*language, *STRICT, f"{network.name}.c"], log, cwd=package)[0]:
            return f"{' '.join(language)}: {tail(log)}"
    return None


def check(network, folder, work, options, known):
    """Runs one network; returns a row of the report: {"name", "passed", ...}."""
    row = {"name": network.name, "passed": False, **emit(network, folder / "model.onnx", work, options)}
    if "failure" in row:
        return row
    bound = max(options.max_error, network.max_error)
    emitted = [work / part for part in ("package", "single") if (work / part).exists()]
    verdict = known.key(*emitted, folder / "inputs", folder / "outputs", bound, [compiler_version(name) for name in ("gcc", "g++", "clang")])
    if verdict in known:
        return {**row, "passed": True, "known": True}
    built = build(network, work, options)
    row.update({k: v for k, v in built.items() if k != "program"})
    if "failure" in row:
        return row
    if options.target == "c" and (failure := unclean(network, work)):
        return {**row, "failure": failure}
    outputs, log = work / "outputs", work / "log"
    outputs.mkdir()
    code, row["run_s"], row["run_mib"] = timed([built["program"], "--inputs", folder / "inputs", "--outputs", outputs], log)
    if code:
        return {**row, "failure": f"the program ended with {code}: {tail(log)}"}
    errors, same = [], True
    for reference_path in sorted((folder / "outputs").glob("output_*.npy")):
        if not (outputs / reference_path.name).exists():
            return {**row, "failure": f"{reference_path.name} was not written"}
        reference, actual = np.load(reference_path), np.load(outputs / reference_path.name)
        errors.append(relative_error(actual, reference))
        same = same and same_choice(actual, reference, noise=bound if bound > MAX_ERROR else 0)
    row.update(errors=errors, same_choice=same, passed=max(errors) < bound and same)
    if row["passed"]:
        known.add(verdict)
    return row


def line_of(row):
    """One line of text for one network."""
    verdict = "passed" if row["passed"] else "FAILED"
    if "failure" in row:
        return f"{verdict} {row['name']:22} {row['failure']}"
    if "known" in row:
        return f"{verdict} {row['name']:22} the same package as one that passed"
    return (f"{verdict} {row['name']:22} error {max(row['errors']):.2e}  largest {'same' if row['same_choice'] else 'OTHER'}"
            f"  tc-emit {row['emit_s']:6.2f} s {row['emit_mib']:6.0f} MiB  make {row['compile_s']:6.2f} s"
            f"  run {row['run_s']:6.2f} s {row['run_mib']:5.0f} MiB")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--target", choices=["c", "cuda"], default="c")
    parser.add_argument("--max-error", type=float, default=MAX_ERROR, help="bound of the relative error (default 1e-5)")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--cache", type=Path, default=export.default_cache())
    parser.add_argument("--work", type=Path, help="keep the packages in this folder")
    parser.add_argument("--emit-flags", type=str.split, default=[], help="more flags for tc-emit")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    shares.add_option(parser, quick=9)
    parser.add_argument("names", nargs="*", help="networks; all of them without a name")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - {network.name for network in NETWORKS})
    if unknown:
        parser.error(f"unknown network {', '.join(unknown)}")
    options.tool = options.tool.resolve()
    if not options.tool.exists():
        parser.error(f"there is no {options.tool}; build it first")
    return options


def main():
    options = parse_options()
    chosen = shares.part((network for network in NETWORKS if not options.names or network.name in options.names), options)
    export.make_missing([network.name for network in chosen], options.cache)
    rows, known = [], Verdicts(makers=[export])
    for network in chosen:
        with tempfile.TemporaryDirectory() as scratch:
            work = options.work / network.name if options.work else Path(scratch)
            if options.work:
                shutil.rmtree(work, ignore_errors=True)
                work.mkdir(parents=True)
            rows.append(check(network, options.cache / network.name, work, options, known))
        print(line_of(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1, default=str) + "\n")
    passed = sum(row["passed"] for row in rows)
    print(f"{passed} passed, {len(rows) - passed} failed")
    sys.exit(0 if rows and passed == len(rows) else 1)


if __name__ == "__main__":
    main()
