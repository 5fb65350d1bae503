#!/usr/bin/env python3
"""Emits small models of awkward sizes, compiles and runs them, and compares them with ONNX Runtime.

usage: run.py [--tool build/tc-emit] [--cpus generic,native] [--compilers gcc] [--sanitize] [--one-in N]
              [--loops N [--seed S]] [--only REGEX] [--share K/N] [--jobs N] [--keep DIR]   (run it with `scripts/python_env base`)

Each model is emitted once for each of --cpus that this machine can run, compiled with warnings as errors and that
processor's instructions, and run on seeded inputs. Floats agree if the difference is below 1e-5 of the reference in norm
and below 1e-4 of its largest element everywhere; anything else has to be equal. --sanitize compiles with the compilers'
address and undefined-behaviour checks, which takes ten times as long: --one-in 6 takes every sixth model, other ones for
each processor and compiler. --loops takes random models of loops instead (random_loops.py); the processor `cuda` is the CUDA
target, run on the CPU, and `interpreter` stands for models whose inputs are constants: all of them is computed while compiling. A refused model fails: every operator here is a common one. The last line reads 'N passed,
N failed'; the exit code is 0 if all passed.
"""
import argparse
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import cases
import random_loops

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "generated_tests" / "python"))
import shares  # noqa: E402
from agreement import difference, distribution_difference  # noqa: E402
from answers import session  # noqa: E402
from toolchain import REFUSED, CudaToolchain, Failed, QuickToolchain, Toolchain, call, first_line, refusal  # noqa: E402
from verdicts import Verdicts  # noqa: E402

MARCH = {"generic": [], "x86-64-v3": ["-march=x86-64-v3"], "x86-64-v4": ["-march=x86-64-v4"], "native": ["-march=native"], "interpreter": []}
KIND = {"native": QuickToolchain, "interpreter": QuickToolchain}  # the others compile each file by itself
NEEDS = {"x86-64-v3": "avx2", "x86-64-v4": "avx512vl"}
SANITIZE = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def reference(case):
    """(model with typed outputs, inputs, ONNX Runtime's outputs)."""
    inputs = case.arrays(case.inputs)
    outputs = session(case.model(None).SerializeToString()).run(list(case.outputs), inputs)
    model = case.model([(value.dtype, value.shape) for value in outputs])
    onnx.checker.check_model(model)
    return model, inputs, outputs


def fix_inputs(model, inputs):
    """Makes constants of the inputs: what constant folding can compute is then computed by the interpreter."""
    del model.graph.input[:]
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in inputs.items())


def save(stem, value):
    """STEM.npy, or STEM.pb of strings, which NumPy's own files would pickle."""
    if value.dtype == object:
        stem.with_suffix(".pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
    else:
        np.save(stem.with_suffix(".npy"), value)


def load(stem):
    stored = stem.with_suffix(".pb")
    return numpy_helper.to_array(onnx.TensorProto.FromString(stored.read_bytes())) if stored.exists() else np.load(stem.with_suffix(".npy"))


def has_loop(graph):
    return any(node.op_type in ("Loop", "Scan") or any(has_loop(a.g) for a in node.attribute if a.HasField("g")) for node in graph.node)


def run_case(case, cpu, tools, known, options, work):
    """Runs one case for one processor, unless it is known to pass; raises Failed."""
    model, inputs, expected = reference(case)
    folded = cpu == "interpreter" and not has_loop(model.graph) and not case.random
    if cpu == "interpreter":  # loops stay, what is in and around them does not
        fix_inputs(model, inputs)
        inputs, cpu = {}, "generic"
    onnx.save(model, work / "model.onnx")
    for index, value in enumerate(inputs.values()):
        save(work / f"input_{index}", value)
    package, program, seconds = work / "package", work / "program", {}
    emitted = call("emit", [options.tool, work / "model.onnx", "-o", package, "--verify-each", "--name", "m",
                            *(["--target", "cuda"] if cpu == "cuda" else ["--cpu", cpu])], seconds)
    if emitted.returncode in REFUSED:
        raise Failed(f"refused: {refusal(emitted.stdout)}")
    if emitted.returncode:
        raise Failed(f"tc-emit ended with {emitted.returncode}: {first_line(emitted.stdout)}")
    if folded and json.loads((package / "manifest.json").read_text())["kernels"]:
        raise Failed("the interpreter left a kernel over")
    verdict = known.key(package, list(inputs.values()), expected, list(case.outputs), case.bar, tools.identity)
    if verdict in known:
        return
    tools.build(package, program, seconds)
    ran = call("run", [program, "--inputs", work, "--outputs", work], seconds, cwd=package)
    if ran.returncode:
        raise Failed(f"the program ended with {ran.returncode}: {first_line(ran.stdout, 'ERROR|error')}")
    for index, (name, value) in enumerate(zip(case.outputs, expected)):
        actual = load(work / f"output_{index}")
        told = distribution_difference(actual, value) if case.random else difference(actual, value, case.bar)
        if told:
            raise Failed(f"output {name}: {told}")
    known.add(verdict)


def work_on(case, cpu, tools, known, options, scratch):
    """Runs one case; returns whether it passed, after a line that says why it did not."""
    work = scratch / cpu / case.name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        run_case(case, cpu, tools, known, options, work)
        return True
    except (Failed, OSError) as failure:
        print(f"FAILED {case.name} ({cpu}): {failure}", flush=True)
        return False
    finally:
        if not options.keep:
            shutil.rmtree(work)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--cpus", type=lambda text: text.split(","), default=["generic", "native", "interpreter"],
                        help="generic, x86-64-v3, native, cuda (on the CPU), interpreter; generic has as many lanes as x86-64-v3")
    parser.add_argument("--compilers", type=lambda text: text.split(","), default=["gcc"])
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--one-in", type=int, default=1)
    parser.add_argument("--only", default="")
    shares.add_option(parser, quick=16)
    parser.add_argument("--loops", type=int, default=0, help="this many random models of loops instead of the cases")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    flags = next((line.split() for line in open("/proc/cpuinfo") if line.startswith("flags")), [])
    options.cpus = [cpu for cpu in options.cpus if NEEDS.get(cpu, "fpu") in flags]
    return options


def main():
    options = parse_options()
    known = cases.all_cases()
    if options.loops:
        known = [random_loops.random_case(options.seed + k) for k in range(options.loops)]
    chosen = shares.part((case for case in known if re.search(options.only, case.name)), options)
    verdicts = Verdicts(makers=[module for name, module in sys.modules.items() if re.fullmatch(r"random_\w+|\w*cases", name)])
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    passed = failed = 0
    with tempfile.TemporaryDirectory(dir=base) as temporary, ThreadPoolExecutor(options.jobs) as pool:
        scratch = options.keep or Path(temporary)
        for turn, (cpu, compiler) in enumerate(itertools.product(options.cpus, options.compilers)):
            folder = Path(temporary) / f"tools-{turn}"
            folder.mkdir()
            flags = [*(SANITIZE if options.sanitize else ["-O2"]), "-ffp-contract=fast"]
            tools = CudaToolchain(folder, flags) if cpu == "cuda" else KIND.get(cpu, Toolchain)(folder, [*flags, *MARCH[cpu]], compiler)
            some = [case for case in chosen[turn % options.one_in::options.one_in] if cpu == "interpreter" or not case.folded_only]
            results = list(pool.map(lambda case: work_on(case, cpu, tools, verdicts, options, scratch), some))
            print(f"{cpu} by {compiler}: {sum(results)} of {len(results)} passed", flush=True)
            passed, failed = passed + sum(results), failed + len(results) - sum(results)
    verdicts.report()
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main()
