#!/usr/bin/env python3
"""Shows where the time of an emitted package goes, kernel by kernel.

usage: kernels.py OUT [--inputs DIR] [--seconds 2] [--rows 30] [--cc gcc] [--cflags "-O2 -march=native ..."]

The package is compiled once more, beside itself, with gcc's -finstrument-functions and the hooks of kernel_clock.c, and
run with one thread. Support functions (tc_...) count towards the kernel that calls them. A hook costs some 50 ns a call,
so that kernels of a microsecond look slower than they are. Needs no Python package.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CLOCK = Path(__file__).resolve().parent / "kernel_clock.c"
# The functions of main.c and the support text are left alone; gcc matches these as parts of names.
NOT_TIMED = "tc_,main,open_model,run_model,close_model,message"


def compile_timed(package, program, options):
    """Compiles the package with hooks around its functions, at addresses that nm can name."""
    sources = sorted(path for path in package.rglob("*") if path.suffix in (".c", ".S") and path.name != CLOCK.name)
    common = [options.cc, *options.cflags.split(), f"-I{package}", "-no-pie"]
    clock = program.with_suffix(".o")
    subprocess.run([*common, "-c", CLOCK, "-o", clock], check=True)
    subprocess.run([*common, "-finstrument-functions", f"-finstrument-functions-exclude-function-list={NOT_TIMED}",
                    *sources, clock, "-lm", "-o", program], check=True, cwd=package)


def names_of(program):
    """{address: function name} of a program."""
    lines = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {int(line.split()[0], 16): line.split()[2] for line in lines if line.split()[1] in ("t", "T")}


def run_timed(program, package, options):
    """Runs the bench; returns (its JSON line, [(function, calls, own ns)])."""
    with tempfile.NamedTemporaryFile() as table:
        command = [program, "--bench", str(options.seconds), "--threads", "1", "--json"]
        command += ["--inputs", options.inputs.resolve()] if options.inputs else []
        result = subprocess.run(command, env={**os.environ, "KERNEL_CLOCK_FILE": table.name}, cwd=package,
                                capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"the program ended with {result.returncode}: {result.stderr}")
        names = names_of(program)
        rows = [line.split() for line in Path(table.name).read_text().splitlines()]
        return (json.loads(result.stdout.strip().splitlines()[-1]),
                [(names.get(int(address, 16), address), int(calls), float(ns)) for address, calls, ns in rows])


def merge_parts(rows):
    """The rows with each kernel's parallel parts added to the kernel; its calls are its own."""
    merged = {}
    for name, calls, ns in rows:
        kernel = re.sub(r"_part\d*$", "", name)
        before = merged.get(kernel, (0, 0.0))
        merged[kernel] = (before[0] + (calls if kernel == name else 0), before[1] + ns)
    return [(name, calls, ns) for name, (calls, ns) in merged.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--cflags", default="-O2 -march=native -ffp-contract=fast")
    options = parser.parse_args()
    package = options.package.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "timed"
        compile_timed(package, program, options)
        told, rows = run_timed(program, package, options)
    executor = json.loads((package / "manifest.json").read_text()).get("name", package.name) + "_run"
    runs = next((calls for name, calls, _ in rows if name == executor), told["runs"])
    rows = merge_parts(rows)
    total = sum(ns for _, _, ns in rows)
    print(f"{told['median_ms']:.3f} ms a run, {runs} runs\n{'us a run':>10}{'share':>8}{'calls':>7}  function")
    for name, calls, ns in sorted(rows, key=lambda row: (-row[2], row[0]))[:options.rows]:
        print(f"{ns / runs / 1e3:10.1f}{ns / total:8.1%}{calls / runs:7.1f}  {name}")


if __name__ == "__main__":
    main()
