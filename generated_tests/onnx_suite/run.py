#!/usr/bin/env python3
"""Runs ONNX's backend suite: every model is emitted as C, compiled with warnings as errors, many as one program, run and compared.
With --target cuda it is emitted as CUDA, compiled by the C++ compiler and run on the CPU.

usage: run.py [--target c|cuda] [--tool build/tc-emit] [--jobs N] [--only REGEX] [--share K/N] [--work DIR] [--keep] [--verbose]
              [--results FILE] [--report FILE] [--baseline FILE]     (run it with `scripts/python_env base`)

A model is `passed`, `refused` (tc-emit said why, with exit code 1, 3 or 5), or `wrong`: tc-emit crashed or hung, the C
does not compile, the program fails or its numbers differ. The last line reads 'N passed, N failed, N refused'; the exit
code is 0 if nothing failed. --baseline FILE is an earlier --report; a model that passed in it and does not now is a
failure too. --report writes the table of docs/onnx_suite.md, --results the same as JSON with times.
"""
import argparse
import dataclasses
import json
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx

import cases as suite
import compare
import report

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "generated_tests" / "python"))
import batches  # noqa: E402
import shares  # noqa: E402
from toolchain import REFUSED, SECONDS, Failed, CudaToolchain, Toolchain, call, first_line, refusal  # noqa: E402
from verdicts import Verdicts  # noqa: E402

FLAGS = {"c": ["-O0", "-ffp-contract=off"], "cuda": ["-O0", "-ffp-contract=off"]}
NETWORKS, NETWORK_FLAGS = "light", ["-O2", "-ffp-contract=off"]  # billions of operations: a minute without optimisation
PASSED = {False: ("passed", ""), True: ("passed", "random: shapes, types and possible values")}


@dataclasses.dataclass
class Result:
    case: suite.Case
    status: str  # passed, refused or wrong
    reason: str = ""
    seconds: dict = dataclasses.field(default_factory=dict)


def check_outputs(case, model, folder):
    """Compares the outputs in `folder`; raises Failed on the first that differs."""
    written = []
    outputs = [(name, kind, tensor) for (name, whole), value in zip(suite.outputs_of(model), suite.expected_outputs(case, model))
               for tensor, kind in suite.tensors_in(value, whole)]
    if any((folder / f"output_{len(outputs)}{suffix}").exists() for suffix in (".npy", ".pb")):
        raise Failed(f"more than {len(outputs)} outputs were written")
    for index, (name, kind, expected) in enumerate(outputs):
        try:
            written.append(compare.read_output(folder, index, kind))
        except (OSError, ValueError) as error:
            raise Failed(f"output {name} was not written: {error}") from None
        told = compare.difference(written[-1], expected, case.random, compare.stored_noise(model))
        if told:
            raise Failed(f"output {name}: {told}")
    if case.random:
        op_type = "Dropout" if "dropout" in case.name else "Bernoulli"
        told = compare.random_difference(op_type, suite.stored_inputs(case, model), written)
        if told:
            raise Failed(told)


def emit(case, model, options, package, seconds):
    """(what tc-emit did, {name: numbers} of inputs that had to be fixed): inputs that decide how large or how many the outputs
    are, those that the refusal names or, where that does not do, all of them."""
    def attempt(fixed):
        values = [word for name, value in fixed.items() for word in ("--input-value", f"{name}={value}")]
        return call("emit", [options.tool, case.model, "-o", package, "--verify-each", "--name", package_name(case), "--target", options.target,
                             *suite.shape_flags(case, model, fixed), *values, *options.emit_flags], seconds)

    first = attempt({})
    if first.returncode not in REFUSED or not re.search(r"error\[TC030[134]\]", first.stdout):
        return first, {}
    every = suite.fixed_values(case, model)
    named = {name: value for name, value in every.items() if f'"{name}"' in first.stdout}
    for fixed in (named, every) if named else (every,):
        emitted = attempt(fixed)
        if emitted.returncode not in REFUSED:
            return emitted, fixed
    return first, {}


@dataclasses.dataclass
class Trial:
    """A case on its way: emitted, compiled, run, compared."""
    case: suite.Case
    work: Path
    model: onnx.ModelProto
    fixed: dict = dataclasses.field(default_factory=dict)
    verdict: str = ""
    result: Result = None
    seconds: dict = dataclasses.field(default_factory=dict)

    @property
    def package(self):
        return self.work / "package"

    def end(self, status, reason=""):
        self.result = Result(self.case, status, reason, self.seconds)

    def attempt(self, step):
        """What a step returns; a step that fails ends the trial."""
        try:
            return step()
        except Failed as failure:
            self.end("wrong", str(failure))


def prepare(trial, options, tools, known):
    """Emits one case; returns whether it has to be compiled: it is neither refused nor known to pass."""
    emitted, trial.fixed = emit(trial.case, trial.model, options, trial.package, trial.seconds)
    if emitted.returncode in REFUSED:
        trial.end("refused", refusal(emitted.stdout))
    elif emitted.returncode:
        raise Failed(f"tc-emit ended with {emitted.returncode}: {first_line(emitted.stdout)}")
    else:
        trial.verdict = known.key(trial.package, trial.case.model, trial.case.data, trial.case.label, tools.identity)
        if trial.verdict not in known:
            return True
        passed(trial)
    return False


def passed(trial):
    if trial.fixed:
        trial.end("passed", "with " + " ".join(f"--input-value {name}={value}" for name, value in trial.fixed.items()))
    elif trial.case.name in suite.AS_RUNTIMES:
        trial.end("passed", "as ONNX Runtime and PyTorch: the length of the resized axis is a whole number")
    else:
        trial.end(*PASSED[trial.case.random])


def finish(trial, words, tools, known):
    """Runs and compares one case; raises Failed where it is wrong."""
    if isinstance(words, Failed):
        raise words
    outputs = trial.work / "outputs"
    outputs.mkdir()
    inputs = suite.write_inputs(trial.case, trial.model, trial.work / "inputs", trial.fixed)
    ran = tools.run([*words, "--inputs", inputs, "--outputs", outputs], trial.package, trial.seconds)
    if ran.returncode:
        raise Failed(f"the program ended with {ran.returncode}: {first_line(ran.stdout)}")
    check_outputs(trial.case, trial.model, outputs)
    known.add(trial.verdict)
    passed(trial)


def work_on(some, number, options, tools, known, scratch):
    """Runs some cases, which become one program; never raises for what a case does."""
    folder = Path(scratch) / str(number)
    trials, seconds = [Trial(case, folder / case.folder / case.name, onnx.load(case.model)) for case in some], {}
    for trial in trials:
        trial.work.mkdir(parents=True)
    compiled = [trial for trial in trials if trial.attempt(lambda: prepare(trial, options, tools, known))]
    if compiled:
        programs = batches.link({package_name(t.case): t.package for t in compiled}, tools, folder, seconds)
        for trial in compiled:
            trial.attempt(lambda: finish(trial, programs[package_name(trial.case)], tools, known))
        compiled[0].seconds["compile"] = seconds.get("compile", 0)
    if not options.keep:
        shutil.rmtree(folder)
    for trial in trials:
        if trial.result.status == "wrong" or options.verbose:
            print(f"{trial.result.status} {trial.case.label}: {trial.result.reason}", flush=True)
    return [trial.result for trial in trials]


def package_name(case):
    return batches.name_of(case.label)


def groups_of(cases):
    """Cases that become one program; a network is one by itself."""
    small = [case for case in cases if case.folder != NETWORKS]
    return [small[k:k + batches.SIZE] for k in range(0, len(small), batches.SIZE)] + [[case] for case in cases if case.folder == NETWORKS]


def chosen_cases(options):
    """The cases that --only and --share leave."""
    return shares.part((case for case in suite.all_cases() if re.search(options.only, case.label)), options)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--target", choices=["c", "cuda"], default="c")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="run the cases whose folder/name this finds")
    shares.add_option(parser, quick=12)
    parser.add_argument("--work", type=Path, help="where packages are written (a memory file system if there is one)")
    parser.add_argument("--keep", action="store_true", help="leave the packages in --work")
    parser.add_argument("--verbose", action="store_true", help="a line for every model")
    parser.add_argument("--emit-flags", type=str.split, default=[], help="more flags for tc-emit")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--baseline", type=Path)
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    if not options.tool.exists():
        parser.error(f"there is no {options.tool}; build it first")
    return options


def summarise(results, options, wall):
    """Writes the files asked for, prints the summary and returns the exit code."""
    wrong = [result for result in results if result.status == "wrong"]
    lost = report.lost(results, options.baseline) if options.baseline else []
    for label in lost:
        print(f"lost {label}: passed in {options.baseline.name}, does not now")
    if options.report:
        options.report.write_text(report.markdown(results, options.target))
    if options.results:
        rows = [{"case": r.case.label, "status": r.status, "reason": r.reason, "seconds": r.seconds} for r in results]
        options.results.write_text(json.dumps(rows, indent=0) + "\n")
    steps = {step: sum(result.seconds.get(step, 0) for result in results) for step in SECONDS}
    print(f"{wall:.0f} s; summed over {options.jobs} jobs: " + ", ".join(f"{k} {v:.0f} s" for k, v in steps.items()))
    passed, refused = (sum(result.status == status for result in results) for status in ("passed", "refused"))
    failed = len({result.case.label for result in wrong} | set(lost))
    print(f"{passed} passed, {failed} failed, {refused} refused")
    return 1 if failed or not results else 0


def main():
    options = parse_options()
    base = options.work or (Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None)
    if options.work:
        options.work.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=base) as temporary, ThreadPoolExecutor(options.jobs) as pool:
        scratch = options.work if options.keep and options.work else temporary
        known, cases = Verdicts(), list(chosen_cases(options))
        tools = (CudaToolchain if options.target == "cuda" else Toolchain)(Path(temporary), FLAGS[options.target])
        for_networks = tools
        if options.target == "cuda" and any(case.folder == NETWORKS for case in cases):
            folder = Path(temporary) / "tools_for_networks"
            folder.mkdir()
            for_networks = CudaToolchain(folder, NETWORK_FLAGS)
        done = pool.map(lambda job: work_on(job[1], job[0], options, for_networks if job[1][0].folder == NETWORKS else tools, known, scratch),
                        enumerate(groups_of(cases)))
        by_label = {result.case.label: result for some in done for result in some}
        results = [by_label[case.label] for case in cases]
    known.report()
    sys.exit(summarise(results, options, time.monotonic() - start))


if __name__ == "__main__":
    main()
