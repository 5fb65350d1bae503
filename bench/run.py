#!/usr/bin/env python3
"""Compares emitted programs with ONNX Runtime and OpenVINO on the same cores of this machine.

usage: run.py [--tool build/tc-emit] [--cpu native] [--cc gcc] [--threads 1,2] [--rounds 5] [--seconds 2]
              [--packages DIR] [--json FILE] [--floor] [NETWORK ...]           (run it with `scripts/python_env nets`)

Every figure is the median over the rounds of the median of a round. In a round the engines take turns, each in a process
of its own, pinned to as many cores as it has threads. Before anything is timed, each engine's outputs are compared with
the stored ones. While an engine runs, the processor time that anything else takes is measured; a run beside which
others kept more than 5 % of a core busy is named, for its figures are not worth much. So is one on two threads whose cores lay far
apart before or after it (machine.RoundTrip); it is repeated first.

--floor times no peers. It prints, for each network and number of threads, the kernels of our package: how long each took in
a run, its floor (the larger of multiplications at the peak of a register loop and bytes at the bandwidth of the level that they
come from, as manifest.json states it), the share of the time that is floor, and what is lost; the largest loss first.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import machine

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "generated_tests" / "networks"))
import export  # noqa: E402
from catalog import ALL  # noqa: E402
from judge import relative_error  # noqa: E402

HEADLINE = ("resnet50", "bert_base", "mobilenet_v2")  # the geometric mean is over these
BESIDE = ("efficientnet_b0", "vit_b_16")
ENGINES = ("onnxruntime", "openvino", "tc-emit")
MAX_ERROR = 1e-4  # relative, of any engine, or what the network states; beyond this it computes something else and its time means nothing
MAX_OTHERS = 0.05  # cores
MAX_TRIES = 4  # of a run on cores that lie far apart


def build(network, model, package, options):
    """Emits and compiles one network; returns the program."""
    shutil.rmtree(package, ignore_errors=True)
    emit = [options.tool, model, "-o", package, "--name", network.name, "--target", "c", "--cpu", options.cpu,
            *network.flags, *options.emit_flags]
    for command in (emit, ["make", "-C", package, f"-j{os.cpu_count()}", f"CC={options.cc}"]):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{network.name}: {command[0]} ended with {result.returncode}\n{result.stderr[-2000:]}")
    return package / network.name


def command_of(engine, program, folder, threads, seconds):
    """The command that times an engine on a network's stored inputs."""
    if engine == "tc-emit":
        return [program, "--inputs", folder / "inputs", "--threads", threads, "--bench", seconds, "--json"]
    return [sys.executable, ROOT / "bench" / "peer.py", engine, folder / "model.onnx", folder / "inputs", "--threads", threads,
            "--seconds", seconds]


def check_outputs(engine, program, folder):
    """The largest relative error of an engine's outputs."""
    with tempfile.TemporaryDirectory() as outputs:
        command = command_of(engine, program, folder, 1, 0.01) + ["--outputs", outputs]
        code, text, _ = machine.run_pinned(command, 1)
        if code:
            sys.exit(f"{engine} ended with {code}: {text[-2000:]}")
        stored = sorted((folder / "outputs").glob("output_*.npy"))
        return max(relative_error(np.load(Path(outputs) / path.name), np.load(path)) for path in stored)


def run_near(command, threads, trip):
    """machine.run_pinned, and whether the cores were far apart in the last of its tries."""
    for _ in range(MAX_TRIES):
        was_far = threads > 1 and trip.is_far()
        result = machine.run_pinned(command, threads)
        if not (was_far or (threads > 1 and trip.is_far())):
            return *result, False
    return *result, True


def time_network(network, program, folder, threads, options, trip, disturbed):
    """{engine: median ms}; appends to `disturbed` what others disturbed."""
    medians = {engine: [] for engine in ENGINES}
    for turn in range(options.rounds):
        order = ENGINES[turn % 3:] + ENGINES[:turn % 3]  # nobody always follows the same neighbour
        for engine in order:
            command = command_of(engine, program, folder, threads, options.seconds)
            code, text, others, far = run_near(command, threads, trip)
            if code:
                sys.exit(f"{engine} on {network.name} ended with {code}: {text[-2000:]}")
            medians[engine].append(json.loads(text.strip().splitlines()[-1])["median_ms"])
            if others > MAX_OTHERS:
                disturbed.append(f"{network.name} {engine} {threads} threads: others kept {others:.2f} cores busy")
            if far:
                disturbed.append(f"{network.name} {engine} {threads} threads: the cores lay far apart")
    return {engine: statistics.median(values) for engine, values in medians.items()}


def kernel_losses(profile):
    """Of a program's profile: (lost us, time us, floor us, calls, kernel) of each kernel in a run, the largest loss first.
    A kernel without a floor (one that only moves what others have in their caches) loses nothing that is known."""
    rows = []
    for kernel in profile["kernels"]:
        time_us = kernel["total_us"]
        floor_us = time_us * min(1.0, kernel.get("floor_share", 1.0))
        rows.append((time_us - floor_us, time_us, floor_us, kernel["calls"], kernel["kernel"]))
    return sorted(rows, key=lambda row: (-row[0], row[4]))


def floor_table(name, threads, profile):
    """The text of --floor for one network: a line a kernel, and the sum."""
    rows = kernel_losses(profile)
    total, floor = sum(row[1] for row in rows), sum(row[2] for row in rows)
    lines = [f"{name}, {threads} thread{'s' * (threads > 1)}", f"{'lost us':>10}{'time us':>10}{'floor us':>10}{'share':>7}{'calls':>6}  kernel"]
    for lost, time_us, floor_us, calls, kernel in [*rows, (total - floor, total, floor, sum(row[3] for row in rows), "all")]:
        lines.append(f"{lost:10.1f}{time_us:10.1f}{floor_us:10.1f}{floor_us / time_us if time_us else 1:7.0%}{calls:6}  {kernel}")
    return "\n".join(lines)


def print_floors(name, program, folder, options):
    """Profiles our package alone, for each number of threads."""
    profiled = program.with_name(program.name + "_profile")
    made = subprocess.run(["make", "-C", program.parent, profiled.name, f"CC={options.cc}"], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"{name}: make ended with {made.returncode}\n{made.stderr[-2000:]}")
    for threads in options.threads:
        command = [profiled, "--inputs", folder / "inputs", "--threads", threads, "--profile", "--bench", options.seconds, "--json"]
        code, text, others = machine.run_pinned(command, threads)
        if code:
            sys.exit(f"{name} ended with {code}: {text[-2000:]}")
        print(floor_table(name, threads, json.loads(text.strip().splitlines()[-1])), flush=True)
        if others > MAX_OTHERS:
            print(f"NOT IDLE: others kept {others:.2f} cores busy")


def ratio(row):
    """Our time over the faster peer's."""
    return row["ms"]["tc-emit"] / min(row["ms"]["onnxruntime"], row["ms"]["openvino"])


def table(rows, threads):
    """The report's text: a line a network, then the geometric mean for each number of threads."""
    lines = [f"{'network':18}{'threads':>8}{'ORT ms':>10}{'OpenVINO':>10}{'tc-emit':>10}{'ratio':>8}"]
    for row in rows:
        ms = row["ms"]
        lines.append(f"{row['network']:18}{row['threads']:8}{ms['onnxruntime']:10.2f}{ms['openvino']:10.2f}"
                     f"{ms['tc-emit']:10.2f}{ratio(row):8.3f}")
    for count in threads:
        ratios = [ratio(row) for row in rows if row["threads"] == count and row["network"] in HEADLINE]
        if len(ratios) == len(HEADLINE):
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            lines.append(f"geometric mean of {', '.join(HEADLINE)}, {count} threads: {mean:.3f} of the faster peer's time")
    return "\n".join(lines)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of measuring, for one engine in one round")
    parser.add_argument("--cache", type=Path, default=export.default_cache())
    parser.add_argument("--packages", type=Path, help="keep the emitted packages in this folder")
    parser.add_argument("--emit-flags", type=str.split, default=[], help="more flags for tc-emit")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--floor", action="store_true", help="time no peers: the kernels of our packages beside their floors")
    parser.add_argument("networks", nargs="*", default=[*HEADLINE, *BESIDE])
    options = parser.parse_args()
    unknown = sorted(set(options.networks) - {network.name for network in ALL})
    if unknown:
        parser.error(f"unknown network {', '.join(unknown)}")
    options.tool = options.tool.resolve()
    return options


def main():
    options = parse_options()
    by_name = {network.name: network for network in ALL}
    export.make_missing(options.networks, options.cache)
    print(machine.processor(), flush=True)
    rows, disturbed = [], []
    with tempfile.TemporaryDirectory() as scratch:
        trip = machine.RoundTrip(scratch, options.cc)
        for name in options.networks:
            folder = options.cache / name
            program = build(by_name[name], folder / "model.onnx", (options.packages or Path(scratch)) / name, options)
            if options.floor:
                print_floors(name, program, folder, options)
                continue
            errors = {engine: check_outputs(engine, program, folder) for engine in ENGINES}
            told = ", ".join(f"{engine} {error:.1e}" for engine, error in errors.items())
            print(f"{name}: relative error {told}", flush=True)
            if max(errors.values()) > max(MAX_ERROR, by_name[name].max_error):
                sys.exit(f"{name}: the engines do not compute the same")
            for threads in options.threads:
                ms = time_network(by_name[name], program, folder, threads, options, trip, disturbed)
                rows.append({"network": name, "threads": threads, "ms": ms, "errors": errors})
    if options.floor:
        return
    print(table(rows, options.threads))
    print("the machine was idle otherwise" if not disturbed else "NOT IDLE: figures are disturbed\n  " + "\n  ".join(disturbed))
    if options.json:
        report = {"processor": machine.processor(), "cpu_flag": options.cpu, "cc": options.cc, "rounds": options.rounds,
                  "seconds": options.seconds, "rows": rows, "disturbed": disturbed}
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
