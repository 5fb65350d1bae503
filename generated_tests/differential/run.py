#!/usr/bin/env python3
"""Emits small models of awkward sizes, compiles and runs them, and compares them with ONNX Runtime.

usage: run.py [--tool build/tc-emit] [--cpus generic,native,cuda/4] [--compilers gcc,clang,x86_64-w64-mingw32-gcc] [--sanitize] [--one-in N]
              [--loops N [--seed S]] [--only REGEX] [--share K/N] [--jobs N] [--keep DIR]   (run it with `scripts/python_env base`)

Each model is emitted once for each of --cpus that this machine can run, compiled with warnings as errors and that
processor's instructions, one in some by itself and the others as one program, and run on seeded inputs. Floats agree if the difference is below 1e-5 of the reference in norm
and below 1e-4 of its largest element everywhere; anything else has to be equal. --sanitize compiles with the compilers'
address and undefined-behaviour checks, which takes ten times as long: --one-in 6 takes every sixth model, other ones for
each processor and compiler; NAME/N of --cpus does so for one of them. --loops takes random models of loops instead (random_loops.py); the processor `cuda` is the CUDA
target, run on the CPU, and `interpreter` stands for models whose inputs are constants: all of them is computed while compiling. A refused model fails: every operator here is a common one. The last line reads 'N passed,
N failed'; the exit code is 0 if all passed.
"""
import argparse
import dataclasses
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
from case import Case

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "generated_tests" / "python"))
import batches  # noqa: E402
import shares  # noqa: E402
from agreement import difference, distribution_difference  # noqa: E402
from answers import session  # noqa: E402
from toolchain import REFUSED, CudaToolchain, Failed, Toolchain, call, first_line, refusal  # noqa: E402
from verdicts import Verdicts  # noqa: E402

# Programs for Windows, run by Wine. The moves of vectors do with the stack that gcc has there, as the build files see to.
WINDOWS = {"x86_64-w64-mingw32-gcc": ["-static", "-Wa,-muse-unaligned-vector-move", "-DTC_UNALIGNED_STACK"]}
MARCH = {"generic": [], "x86-64-v3": ["-march=x86-64-v3"], "x86-64-v4": ["-march=x86-64-v4"], "native": ["-march=native"], "interpreter": [],
         "list": ["-march=x86-64-v3"]}  # the vectors choose the schedule of the narrower one, over panels of the wider
NEEDS = {"x86-64-v3": "avx2", "x86-64-v4": "avx512vl", "list": "avx2"}
LIST = "x86-64-v3,x86-64-v4"
SANITIZE = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def flags_of(cpu, compiler, sanitize):
    """Of a compiler. It takes most of the time, so that one processor in two goes unoptimised; so does clang with its checks, which
    otherwise takes ten times as long."""
    plain = compiler == "clang" if sanitize else cpu == "generic"
    return ["-O0" if plain else "-O1", *(SANITIZE if sanitize else []), "-ffp-contract=fast", *WINDOWS.get(compiler, []), *MARCH.get(cpu, [])]




def reference(case):
    """(model with typed outputs, inputs, ONNX Runtime's outputs)."""
    inputs = case.arrays(case.inputs)
    try:
        outputs = session(case.model(None).SerializeToString()).run(list(case.outputs), case.seen(inputs) if case.seen else inputs)
    except Exception as problem:  # its classes have no common one; other versions of it refuse other models
        raise Failed(f"ONNX Runtime: {first_line(str(problem))}") from problem
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


@dataclasses.dataclass
class Trial:
    """A case on its way: emitted, compiled, run, compared."""
    case: Case
    work: Path
    expected: list = ()
    verdict: str = ""
    told: str = ""  # what is wrong

    @property
    def package(self):
        return self.work / "package"


def emit(trial, cpu, tools, known, options):
    """Emits one case for one processor; returns whether it has to be compiled: it is not known to pass. Raises Failed."""
    case, work = trial.case, trial.work
    model, inputs, trial.expected = reference(case)
    folded = cpu == "interpreter" and not has_loop(model.graph) and not case.random
    if cpu == "interpreter":  # loops stay, what is in and around them does not
        fix_inputs(model, inputs)
        inputs, cpu = {}, "generic"
    onnx.save(model, work / "model.onnx")
    for index, value in enumerate(inputs.values()):
        save(work / f"input_{index}", value)
    emitted = call("emit", [options.tool, work / "model.onnx", "-o", trial.package, "--verify-each", "--name", batches.name_of(case.name), *case.words,
                            *(["--target", "cuda"] if cpu == "cuda" else ["--cpu", LIST if cpu == "list" else cpu])], {})
    if emitted.returncode in REFUSED:
        raise Failed(f"refused: {refusal(emitted.stdout)}")
    if emitted.returncode:
        raise Failed(f"tc-emit ended with {emitted.returncode}: {first_line(emitted.stdout)}")
    if folded and json.loads((trial.package / "manifest.json").read_text())["kernels"]:
        raise Failed("the interpreter left a kernel over")
    trial.verdict = known.key(trial.package, list(inputs.values()), trial.expected, list(case.outputs), case.bar, tools.identity)
    return trial.verdict not in known


def on_this_system(words, tools):
    """The words that run a program; a failure stays what it is. gcc for Windows adds .exe to names without an ending."""
    if isinstance(words, Failed) or tools.compiler not in WINDOWS:
        return words
    return ["wine", next(path for path in (f"{words[0]}.exe", words[0]) if Path(path).exists()), *words[1:]]


def compare(trial, words, tools, known):
    """Runs one case and compares its outputs; raises Failed."""
    if isinstance(words, Failed):
        raise words
    case = trial.case
    ran = tools.run([*words, "--inputs", trial.work, "--outputs", trial.work], trial.package, {})
    if ran.returncode:
        raise Failed(f"the program ended with {ran.returncode}: {first_line(ran.stdout, 'ERROR|error')}")
    for index, (name, value) in enumerate(zip(case.outputs, trial.expected)):
        actual = load(trial.work / f"output_{index}")
        told = distribution_difference(actual, value) if case.random else difference(actual, value, case.bar)
        if told:
            raise Failed(f"output {name}: {told}")
    known.add(trial.verdict)


def work_on(some, number, cpu, tools, known, options, scratch):
    """Runs some cases, which become one program; the first of them is built by itself, as its users build it. Returns how
    many passed, after a line that says why the others did not."""
    folder = scratch / cpu / str(number)
    shutil.rmtree(folder, ignore_errors=True)
    trials, compiled = [Trial(case, folder / case.name) for case in some], []

    def attempt(trial, step):
        try:
            return step()
        except (Failed, OSError) as failure:
            trial.told = str(failure)

    try:
        for trial in trials:
            trial.work.mkdir(parents=True)
            if attempt(trial, lambda: emit(trial, cpu, tools, known, options)):
                compiled.append(trial)
        programs = {}
        for group in (compiled[:1], compiled[1:]):
            if group:
                programs |= batches.link({batches.name_of(t.case.name): t.package for t in group}, tools, folder, {})
        for trial in compiled:
            attempt(trial, lambda: compare(trial, on_this_system(programs[batches.name_of(trial.case.name)], tools), tools, known))
        for trial in trials:
            if trial.told:
                print(f"FAILED {trial.case.name} ({cpu}): {trial.told}", flush=True)
        return sum(not trial.told for trial in trials)
    finally:
        if not options.keep:
            shutil.rmtree(folder)


def runs_on(cpu, case):
    if cpu == "cuda" and case.only_in_c:
        return False
    return not (case.too_large if cpu == "interpreter" else case.folded_only)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--cpus", type=lambda text: [tuple((word + "/1").split("/")[:2]) for word in text.split(",")],
                        default="generic,native,interpreter,cuda/4",
                        help="generic, x86-64-v3, native, list (of processors), cuda (on the CPU), interpreter; generic has as many lanes as x86-64-v3")
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
    options.cpus = [(cpu, int(one_in)) for cpu, one_in in options.cpus if NEEDS.get(cpu, "fpu") in flags]
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
        for turn, ((cpu, one_in), compiler) in enumerate(itertools.product(options.cpus, options.compilers)):
            one_in *= options.one_in
            folder = Path(temporary) / f"tools-{turn}"
            folder.mkdir()
            flags = flags_of(cpu, compiler, options.sanitize)
            tools = CudaToolchain(folder, flags) if cpu == "cuda" else Toolchain(folder, flags, compiler)
            some = [case for case in chosen[turn % one_in::one_in] if runs_on(cpu, case)]
            groups = [some[k:k + batches.SIZE] for k in range(0, len(some), batches.SIZE)]
            right = sum(pool.map(lambda job: work_on(job[1], job[0], cpu, tools, verdicts, options, scratch), enumerate(groups)))
            print(f"{cpu} by {compiler}: {right} of {len(some)} passed", flush=True)
            passed, failed = passed + right, failed + len(some) - right
    verdicts.report()
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main()
