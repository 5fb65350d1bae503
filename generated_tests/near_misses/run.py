#!/usr/bin/env python3
"""Models that miss the conditions of a rewriting rule by one thing, against ONNX Runtime.

usage: run.py [--tool build/tc-emit] [--cpus generic,native,interpreter,cuda] [--only REGEX] [--size N] [--jobs N] [--list]
              (run it with `scripts/python_env base`)

rules.py, product_rules.py, layout_rules.py and fusion_rules.py hold the models: those that a rule takes, and beside each the ones that break its conditions
one by one. Some N of them are put side by side into one model, so that they are emitted and compiled together; where that fails,
each is tried alone. ONNX Runtime computes without optimisation what they mean; what it refuses is left out and counted. The last line
reads 'N passed, N failed'.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "generated_tests" / folder) for folder in ("python", "differential")]
import fusion_rules  # noqa: E402
import layout_rules  # noqa: E402
import product_rules  # noqa: E402
import rules  # noqa: E402
import shares  # noqa: E402
from agreement import difference  # noqa: E402
from answers import session as session_of  # noqa: E402
from toolchain import REFUSED, CudaToolchain, Failed, Toolchain, call, first_line, refusal  # noqa: E402
from verdicts import Verdicts  # noqa: E402


def all_cases():
    for family in (rules.idioms, rules.canonical, rules.simplified, rules.inference, product_rules.quantised, product_rules.scales, layout_rules.layouts, layout_rules.neighbours,
                   layout_rules.windows, layout_rules.parallel, layout_rules.padding, layout_rules.chains, layout_rules.loops, fusion_rules.fusion, fusion_rules.regions, fusion_rules.control,
                   fusion_rules.counts):
        yield from family()


def reference(case):
    """(model, inputs, outputs), or the reason why ONNX Runtime has none."""
    try:
        inputs = case.arrays(case.inputs)
        outputs = session_of(case.model(None).SerializeToString(), optimised=False).run(list(case.outputs), inputs)
        model = case.model([(value.dtype, value.shape) for value in outputs])
        onnx.checker.check_model(model)
        return model, inputs, outputs
    except Exception as failure:  # its exceptions have no common type
        return str(failure)


def rename(graph, prefix):
    """Gives every name of a graph, and of the graphs in it, the prefix."""
    for value in [*graph.input, *graph.output, *graph.initializer, *graph.value_info]:
        value.name = prefix + value.name
    for node in graph.node:
        node.name = ""
        for names in (node.input, node.output):
            names[:] = [name and prefix + name for name in names]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rename(attribute.g, prefix)


def side_by_side(parts):
    """One model of all of them: names get a prefix, so that they share nothing."""
    whole = onnx.ModelProto()
    for index, (model, _, _) in enumerate(parts):
        part = onnx.ModelProto.FromString(model.SerializeToString())
        rename(part.graph, f"c{index}_")
        if index == 0:
            whole.CopyFrom(part)
            continue
        for field in ("node", "input", "output", "initializer", "value_info"):
            getattr(whole.graph, field).extend(getattr(part.graph, field))
    return whole


def emit(parts, cpu, options, work, seconds):
    """Emits all parts into work/package and writes their inputs; raises Failed."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    model = side_by_side(parts)
    arrays = [array for _, inputs, _ in parts for array in inputs.values()]
    if cpu == "interpreter":
        names = [value.name for value in model.graph.input]
        del model.graph.input[:]
        model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in zip(names, arrays))
        arrays = []
    onnx.save(model, work / "model.onnx")
    for index, array in enumerate(arrays):
        np.save(work / f"input_{index}.npy", array)
    emitted = call("emit", [options.tool, work / "model.onnx", "-o", work / "package", "--name", "m", *options.flags,
                            *(["--target", "cuda"] if cpu == "cuda" else ["--single-file", "--cpu", "generic" if cpu == "interpreter" else cpu])], seconds)
    if emitted.returncode in REFUSED:
        raise Failed(f"refused: {refusal(emitted.stdout)}")
    if emitted.returncode:
        raise Failed(f"tc-emit ended with {emitted.returncode}: {first_line(emitted.stdout)}")


def compute(cases, parts, cpu, tools, options, work):
    """(verdict, outputs of all parts), the outputs None where the verdict is known; raises Failed."""
    seconds = {}
    emit(parts, cpu, options, work, seconds)
    judged = [[[*inputs.values()], expected, list(case.outputs), case.bar] for case, (_, inputs, expected) in zip(cases, parts)]
    verdict = options.known.key(work / "package", judged, tools.identity)
    if verdict in options.known:
        return verdict, None
    tools.build(work / "package", work / "program", seconds)
    ran = call("run", [work / "program", "--inputs", work, "--outputs", work], seconds, cwd=work / "package")
    if ran.returncode:
        raise Failed(f"the program ended with {ran.returncode}: {first_line(ran.stdout, 'ERROR|error')}")
    results = [np.load(work / f"output_{index}.npy") for index in range(sum(len(part[2]) for part in parts))]
    return verdict, [[results.pop(0) for _ in part[2]] for part in parts]


def refused(cases, parts, cpu, options, work):
    """{name: reason} of the cases that tc-emit refuses, or fails at."""
    try:
        emit(parts, cpu, options, work, {})
        return {}
    except Failed as failure:
        if len(cases) == 1:
            return {cases[0].name: str(failure)}
    half = len(cases) // 2
    return refused(cases[:half], parts[:half], cpu, options, work) | refused(cases[half:], parts[half:], cpu, options, work)


def failures(cases, parts, cpu, tools, options, work):
    """[(name, reason)] of the cases that are wrong."""
    out = refused(cases, parts, cpu, options, work)
    if out:
        left = [index for index, case in enumerate(cases) if case.name not in out]
        return list(out.items()) + (failures([cases[i] for i in left], [parts[i] for i in left], cpu, tools, options, work) if left else [])
    try:
        verdict, results = compute(cases, parts, cpu, tools, options, work)
    except (Failed, OSError) as failure:
        if len(cases) == 1:
            return [(cases[0].name, str(failure))]
        half = len(cases) // 2
        return failures(cases[:half], parts[:half], cpu, tools, options, work) + failures(cases[half:], parts[half:], cpu, tools, options, work)
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    if results is None:
        return []
    told = []
    for case, (_, _, expected), found in zip(cases, parts, results):
        wrong = [f"{name}: {text}" for name, f, e in zip(case.outputs, found, expected) if (text := difference(f, e, case.bar))]
        told += [(case.name, wrong[0])] if wrong else []
    if not told:
        options.known.add(verdict)
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--cpus", type=lambda text: text.split(","), default=["generic"])
    parser.add_argument("--only", default="")
    shares.add_option(parser, quick=4)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="name what ONNX Runtime refuses, too")
    parser.add_argument("--keep", action="store_true", help="leave everything in near_misses.work")
    parser.add_argument("--flags", type=str.split, default=[], help="more flags of tc-emit")
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    options.known = Verdicts(makers=[rules, layout_rules, product_rules, *(sys.modules[name] for name in ("cases", "case") if name in sys.modules)])
    known = [case for case in all_cases() if re.search(options.only, case.name)]
    names = [case.name for case in known]
    assert len(set(names)) == len(names), f"names are unique: {sorted(name for name in set(names) if names.count(name) > 1)}"
    known = shares.part(known, options)
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    passed = failed = 0
    with tempfile.TemporaryDirectory(dir=base) as temporary, ThreadPoolExecutor(options.jobs) as pool:
        answers = list(pool.map(reference, known))
        for case, answer in zip(known, answers):
            if options.list and isinstance(answer, str):
                print(f"left out: {case.name}: {answer.splitlines()[0][:150]}", flush=True)
        cases = [case for case, answer in zip(known, answers) if not isinstance(answer, str)]
        parts = [answer for answer in answers if not isinstance(answer, str)]
        print(f"{len(cases)} models; ONNX Runtime refuses {len(known) - len(cases)} more", flush=True)
        scratch = Path("near_misses.work") if options.keep else Path(temporary)
        for cpu in options.cpus:
            folder = Path(temporary) / f"tools_{cpu}"
            folder.mkdir()
            flags = ["-O0", *(["-march=native"] if cpu == "native" else [])]
            tools = CudaToolchain(folder, flags) if cpu == "cuda" else Toolchain(folder, flags)
            starts = range(0, len(cases), options.size)
            work = lambda at: failures(cases[at:at + options.size], parts[at:at + options.size], cpu, tools, options, scratch / f"{cpu}_{at}")  # noqa: E731
            told = []
            for some in pool.map(work, starts):
                for name, reason in some:
                    print(f"FAILED {name} ({cpu}): {reason}", flush=True)
                told += some
            passed, failed = passed + len(cases) - len(told), failed + len(told)
    options.known.report()
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main()
