#!/usr/bin/env python3
"""Random models against ONNX Runtime, many to a compilation.

usage: run.py [--tool build/tc-emit] [--seed S] [--count N | --seconds T] [--configs generic,cuda,...] [--batch N] [--focus TABLE]
              [--save DIR] [--reduce] [--skip S,S,...] [--log FILE] [--verbose] [--jobs N]   (run it with `scripts/python_env base`)

Each seed is a model. --batch of them at a time are emitted one by one, compiled as one program for the next of --configs (rows of
batch.py: processors, levels, CUDA on the CPU), and run, each in a process of its own. A model fails if the tool crashes, its package
does not compile or does wrong, or a number is off; `FAILED SEED (CONFIG)` says which, and `--seed SEED --count 1 --configs CONFIG`
repeats it. --reduce makes failing models small; --save keeps them. A refusal is counted by its message. A model is unstable where
rounding alone moves its results that far. --log keeps a line for each batch, and goes on behind those that it has.
The last line reads 'N passed, N failed'; the exit code is 0 if none failed.
"""
import argparse
import collections
import hashlib
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import onnx

from batch import CONFIGS, ROOT, Compiler, Emitter, Outcome, run_batch
from judge import verdict
from model import random_model
from reduce import needed, reduce

ORDER = ["generic", "native", "cuda", "x86-64-v3", "O0", "generic", "znver4", "strict", "x86-64-v3", "cuda-sm_75", "znver5-scalar", "aarch64", "O3", "generic", "cuda-sm_90", "O1", "any", "cuda-int8",
         "sapphirerapids", "schedules", "text", "schedules-cuda", "schedules-znver4", "text-cuda", "schedules-sm_90a"]


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
    parser.add_argument("--log", type=Path, help="a line for each batch that is done; a run that ended goes on behind them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="batches at a time")
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    return options


class Generator:
    """Makes models in a process of its own: ONNX Runtime has nodes that end it."""

    def __init__(self):
        self.pool = None

    def __call__(self, seeds, focus):
        """({seed: model}, seeds without one)."""
        models, left = {}, list(seeds)
        for many in (len(left), 1):
            while left:
                some = left[:many]
                self.pool = self.pool or ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver"))
                jobs = {seed: self.pool.submit(random_model, seed, focus) for seed in some}
                try:
                    models.update({seed: job.result() for seed, job in jobs.items()})
                except BrokenProcessPool:
                    self.pool = None
                    if many > 1:
                        break
                left = left[many:]
        return models, [seed for seed in seeds if seed not in models]

    def close(self):
        if self.pool:
            self.pool.shutdown()


class Log:
    """A line for each batch that is done, in a file that a later run goes on with."""
    LINE = re.compile(r"seeds (\d+) to (\d+) \(([\w-]+)\): (.*)")

    def __init__(self, path, tool):
        self.path, self.lock = path, threading.Lock()
        self.state = "tc-emit " + hashlib.sha256(b"".join(file.read_bytes() for file in (tool, tool.parent / "tc_emit_many") if file.exists())).hexdigest()[:16]
        lines = path.read_text().splitlines() if path and path.exists() else []
        if lines and lines[0] != self.state:
            sys.exit(f"{path} is of another build of tc-emit: --log takes a new file")
        self.done = {(int(m[1]), int(m[2]), m[3]) for m in map(self.LINE.fullmatch, lines) if m}
        if path and not lines:
            self.write(self.state)

    def write(self, line):
        if self.path:
            with self.lock, self.path.open("a") as file:
                print(line, file=file)

    def batch(self, first, last, config, kinds):
        self.write(f"seeds {first} to {last} ({config}): " + ", ".join(f"{kinds[kind]} {kind}" for kind in ("passed", "refused", "unstable", "no model", "failed")))

    def totals(self):
        """{kind: number} of all batches in the file."""
        found = collections.Counter()
        for line in map(self.LINE.fullmatch, self.path.read_text().splitlines()):
            for number, kind in re.findall(r"(\d+) ([a-z ]+)", line[4]) if line else []:
                found[kind] += int(number)
        return found


class Batches:
    """Hands out (first seed, seeds, configuration) to lanes, until the count or the time is over."""

    def __init__(self, options, done):
        self.options, self.done, self.lock = options, done, threading.Lock()
        self.seed, self.end = options.seed, time.monotonic() + options.seconds if options.seconds else None

    def __iter__(self):
        while True:
            with self.lock:
                o, first = self.options, self.seed
                if self.seed is None or (time.monotonic() >= self.end if self.end else first >= o.seed + o.count):
                    return
                self.seed = first + (o.batch if self.end else min(o.batch, o.seed + o.count - first))
                config, last = o.configs[(first - o.seed) // o.batch % len(o.configs)], self.seed - 1
            if (first, last, config) not in self.done:
                yield range(first, last + 1), config

    def stop(self):
        self.seed = None


class Lane:
    """One batch after the other, beside other lanes; what lasts longer than a batch: processes, compilers, counts."""

    def __init__(self, options, folder, log):
        self.options, self.folder, self.log, self.generator = options, folder, log, Generator()
        folder.mkdir()
        self.emitter = Emitter(options.tool, folder)
        self.kinds, self.refusals, self.configs = collections.Counter(), collections.Counter(), collections.Counter()

    def work(self, batches):
        try:
            for seeds, config in batches:
                kinds = self.batch([s for s in seeds if s not in self.options.skip], config)
                self.log.batch(seeds[0], seeds[-1], config, kinds)
                self.kinds += kinds
        except BaseException:
            batches.stop()
            raise
        finally:
            self.emitter.close()
            self.generator.close()

    def compiler(self, name):
        return Compiler(self.folder.parent, CONFIGS[name])

    def batch(self, seeds, config):
        made, without = self.generator(seeds, self.options.focus)
        models, kinds = list(made.values()), collections.Counter({"no model": len(without)})
        results = self.in_folder("batch", lambda folder: run_batch(models, self.emitter, self.compiler(config), folder))
        for model in models:
            result = results[model.seed]
            outcome = result if isinstance(result, Outcome) else Outcome(*verdict(model, result))
            kinds[outcome.kind] += 1
            self.configs[config] += 1
            if outcome.kind == "refused":
                self.refusals[re.sub(r'"[^"]*"|\d+', "_", outcome.text)] += 1
            if outcome.kind in ("refused", "unstable") and self.options.verbose:
                print(f"{outcome.kind} {model.seed} ({config}): {outcome.text}")
            if outcome.kind == "failed":
                line = f"FAILED {model.seed} ({config}): {outcome.text} [{around(model, outcome)}]"
                print(line, flush=True)
                self.log.write(line.replace("\n", " "))
                self.keep(model, outcome, config)
        return kinds

    def keep(self, model, outcome, config):
        small = model
        if self.options.reduce:
            small, outcome = self.in_folder("reduce", lambda folder: reduce(model, outcome, self.emitter, self.compiler(config), folder))
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


def run_lanes(options, log, folder):
    """The lanes, when all batches are done."""
    batches = Batches(options, log.done)
    lanes = [Lane(options, folder / f"lane{k}", log) for k in range(options.jobs)]
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            list(pool.map(lambda lane: lane.work(batches), lanes))
        except BaseException:
            batches.stop()
            raise
    return lanes


def main():
    options = parse_options()
    begin, cpu = time.monotonic(), sum(os.times()[:4])
    log = Log(options.log, options.tool)
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as temporary:
        lanes = run_lanes(options, log, Path(temporary))
    kinds, refusals, configs = (sum((getattr(lane, what) for lane in lanes), collections.Counter()) for what in ("kinds", "refusals", "configs"))
    spent, without = sum(os.times()[:4]) - cpu, kinds.pop("no model", 0)
    for text, many in refusals.most_common(40):
        print(f"refused {many}: {text}")
    print("models by configuration: " + ", ".join(f"{name} {many}" for name, many in sorted(configs.items())))
    print(f"{without} seeds end ONNX Runtime, {kinds['refused']} refused, {kinds['unstable']} unstable; {sum(kinds.values()) / max(spent, 1e-9) * 60:.0f} models a CPU minute, {time.monotonic() - begin:.0f} s")
    if options.log:
        print("all of the log: " + ", ".join(f"{many} {kind}" for kind, many in log.totals().items()))
    print(f"{sum(kinds.values()) - kinds['failed']} passed, {kinds['failed']} failed")
    sys.exit(1 if kinds["failed"] else 0)


if __name__ == "__main__":
    main()
