#!/usr/bin/env python3
"""Random models against ONNX Runtime, many to a compilation.

usage: run.py [--tool build/tc-emit] [--seed S] [--count N | --seconds T] [--configs generic,cuda,...] [--batch N] [--focus TABLE]
              [--save DIR] [--reduce] [--skip S,S,...] [--verbose] [--jobs N]   (run it with `scripts/python_env base`)

Each seed is a model. --batch of them at a time are emitted one by one, compiled as one program for the next of --configs (rows of
batch.py: processors, levels, CUDA on the CPU), and run, each in a process of its own. A model fails if the tool crashes, its package
does not compile or does wrong, or a number is off; `FAILED SEED (CONFIG)` says which, and `--seed SEED --count 1 --configs CONFIG`
repeats it. --reduce makes failing models small; --save keeps them. A refusal is counted by its message. A model is unstable where
rounding alone moves its results that far. The last line reads 'N passed, N failed'; the exit code is 0 if none failed.
"""
import argparse
import collections
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import onnx

from batch import CONFIGS, ROOT, Compiler, Emitter, Outcome, run_batch
from judge import verdict
from model import random_model
from reduce import needed, reduce

ORDER = ["generic", "native", "cuda", "x86-64-v3", "O0", "generic", "znver4", "strict", "x86-64-v3", "cuda-sm_75", "znver5-scalar", "aarch64", "O3", "generic", "cuda-sm_90", "O1"]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--configs", type=lambda text: text.split(","), default=ORDER)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--focus")
    parser.add_argument("--save", type=Path, help="failing models are kept here, reduced ones too")
    parser.add_argument("--reduce", action="store_true")
    parser.add_argument("--skip", type=lambda text: [int(s) for s in text.split(",")], default=[], help="seeds of failures that are known")
    parser.add_argument("--verbose", action="store_true", help="say which seeds are refused or unstable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    return options


class Generator:
    """Makes models in processes of their own: ONNX Runtime has nodes that end it."""

    def __init__(self, jobs):
        self.jobs, self.pool = jobs, None

    def __call__(self, seeds, focus):
        """({seed: model}, seeds without one)."""
        models, left = {}, list(seeds)
        for many in (len(left), 1):
            while left:
                some = left[:many]
                self.pool = self.pool or ProcessPoolExecutor(self.jobs, mp_context=multiprocessing.get_context("forkserver"))
                jobs = {seed: self.pool.submit(random_model, seed, focus) for seed in some}
                try:
                    models.update({seed: job.result() for seed, job in jobs.items()})
                except BrokenProcessPool:
                    self.pool = None
                    if many > 1:
                        break
                left = left[many:]
        return models, [seed for seed in seeds if seed not in models]


class Session:
    """What lasts longer than a batch: processes that emit, compilers, counts."""

    def __init__(self, options, folder):
        self.options, self.folder, self.generator = options, folder, Generator(options.jobs)
        self.emitters = []
        for k in range(options.jobs):
            (folder / f"emit{k}").mkdir()
            self.emitters.append(Emitter(options.tool, folder / f"emit{k}"))
        self.compilers, self.kinds, self.refusals, self.configs = {}, collections.Counter(), collections.Counter(), collections.Counter()

    def compiler(self, name):
        if name not in self.compilers:
            folder = self.folder / f"tools-{name}"
            folder.mkdir()
            self.compilers[name] = Compiler(folder, CONFIGS[name])
        return self.compilers[name]

    def batch(self, seeds, config):
        made, without = self.generator(seeds, self.options.focus)
        models = list(made.values())
        self.kinds["no model"] += len(without)
        results = self.in_folder("batch", lambda folder: run_batch(models, self.emitters, self.compiler(config), folder))
        for model in models:
            result = results[model.seed]
            outcome = result if isinstance(result, Outcome) else Outcome(*verdict(model, result))
            self.kinds[outcome.kind] += 1
            self.configs[config] += 1
            if outcome.kind == "refused":
                self.refusals[re.sub(r'"[^"]*"|\d+', "_", outcome.text)] += 1
            if outcome.kind in ("refused", "unstable") and self.options.verbose:
                print(f"{outcome.kind} {model.seed} ({config}): {outcome.text}")
            if outcome.kind == "failed":
                print(f"FAILED {model.seed} ({config}): {outcome.text} [{around(model, outcome)}]", flush=True)
                self.keep(model, outcome, config)

    def keep(self, model, outcome, config):
        small = model
        if self.options.reduce:
            small, outcome = self.in_folder("reduce", lambda folder: reduce(model, outcome, self.emitters, self.compiler(config), folder))
            print(described(small, outcome), flush=True)
        if self.options.save:
            self.options.save.mkdir(parents=True, exist_ok=True)
            onnx.save(model.proto(), self.options.save / f"{model.seed}.onnx")
            if small is not model:
                onnx.save(small.proto(), self.options.save / f"{model.seed}_reduced.onnx")

    def in_folder(self, name, work):
        folder = self.folder / name
        folder.mkdir()
        try:
            return work(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def around(model, outcome):
    """Operators that the output which is wrong comes from."""
    name = re.match(r"output (.*?): ", outcome.text)
    outputs = [v for v in model.outputs if name and v.name == name[1]] or model.outputs
    return f"operator set {model.graph.opset}: " + " ".join(node.proto.op_type for node in needed(model.graph.nodes, outputs)[0][-12:])


def described(model, outcome):
    """A small model as text."""
    lines = [f"  operator set {model.graph.opset}; {outcome.text}"]
    lines += [f"  {onnx.printer.to_text(node.proto).strip()}" for node in model.graph.nodes]
    lines += [f"  {kind} {v.name}: {v.dtype} {list(v.shape)} {v.array.ravel()[:8].tolist()}" for kind, values in (("input", model.inputs), ("constant", model.graph.constants)) for v in values]
    return "\n".join(line[:500] for line in lines)


def main():
    options = parse_options()
    begin, cpu = time.monotonic(), sum(os.times()[:4])
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as temporary:
        session, seed = Session(options, Path(temporary)), options.seed
        while time.monotonic() - begin < options.seconds if options.seconds else seed < options.seed + options.count:
            many = options.batch if options.seconds else min(options.batch, options.seed + options.count - seed)
            turn = (seed - options.seed) // options.batch % len(options.configs)
            session.batch([s for s in range(seed, seed + many) if s not in options.skip], options.configs[turn])
            seed += many
        for emitter in session.emitters:
            emitter.close()
        session.generator.pool.shutdown()
    spent, kinds = sum(os.times()[:4]) - cpu, session.kinds
    without = kinds.pop("no model", 0)
    for text, many in session.refusals.most_common(40):
        print(f"refused {many}: {text}")
    print("models by configuration: " + ", ".join(f"{name} {many}" for name, many in sorted(session.configs.items())))
    print(f"seeds {options.seed} to {seed - 1}; {without} that end ONNX Runtime, {kinds['refused']} refused, {kinds['unstable']} unstable; {sum(kinds.values()) / max(spent, 1e-9) * 60:.0f} models a CPU minute, {time.monotonic() - begin:.0f} s")
    print(f"{sum(kinds.values()) - kinds['failed']} passed, {kinds['failed']} failed")
    sys.exit(1 if kinds["failed"] else 0)


if __name__ == "__main__":
    main()
