#!/usr/bin/env python3
"""Times what other compilers of ONNX models give, beside tc-emit, on one core of this machine.

usage: emitters.py --onnx2c PROGRAM --python PYTHON [--tool build/tc-emit] [--rounds 3] [--seconds 2] [--work DIR]
                   [NETWORK ...]                                               (run it with `scripts/python_env nets`)

PYTHON is that of a virtual environment with emx-onnx-cgen and apache-tvm. C is compiled by gcc -O3 -march=native
(tc-emit's by its own Makefile); TVM compiles for this processor with its default pipeline and is not tuned. Outputs are
compared with the stored ones before anything is timed, then the programs take turns; a figure is the median over the rounds
of the medians. What a tool cannot do is printed with the end of its message.
"""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import machine
from run import MAX_ERROR, ROOT, export, relative_error

COMPILE = ["gcc", "-O3", "-march=native", "-w"]
DRIVER = ROOT / "bench" / "emitters.c"
LIMIT_S = 1200  # for one tool to emit, or one compiler to compile


class Failed(Exception):
    """A tool gave nothing; the text says why."""


def call(command, **more):
    """Runs a command; returns its seconds."""
    start = time.monotonic()
    try:
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"more than {LIMIT_S} s") from late
    if result.returncode:
        said = (result.stderr or result.stdout).strip().splitlines() or [f"exit code {result.returncode}"]
        raise Failed(said[-1][:160])
    return time.monotonic() - start


def link(folder, entry):
    """Compiles net.c beside the driver, whose network is `entry`; returns seconds and the program."""
    seconds = call([*COMPILE, "-c", "net.c", "-o", "net.o"], cwd=folder)
    call([*COMPILE, f"-D{entry}", DRIVER, "net.o", "-lm", "-o", "timed"], cwd=folder)
    return seconds, folder / "timed"


def onnx2c(folder, model, options):
    with open(folder / "net.c", "w") as text:
        start = time.monotonic()
        if subprocess.run([options.onnx2c, model], stdout=text, stderr=subprocess.DEVNULL, check=False).returncode:
            raise Failed("onnx2c ended with an error")
        emitted = time.monotonic() - start
    compiled, program = link(folder, "ONNX2C")
    return emitted, compiled, [program, folder / "model.bin"], folder


def emx(folder, model, options):
    emitted = call([options.python, "-m", "emx_onnx_cgen", "compile", model, folder / "net.c", "--model-name", "model"])
    compiled, program = link(folder, "EMX")
    return emitted, compiled, [program, folder / "model.bin"], folder


def tvm(folder, model, options):
    compiled = call([options.python, ROOT / "bench" / "emitters_tvm.py", "compile", model, folder / "net.so"])
    return 0.0, compiled, [options.python, ROOT / "bench" / "emitters_tvm.py", "time", folder / "net.so"], folder


def ours(folder, model, options):
    emitted = call([options.tool, model, "-o", folder / "out", "--name", "net", "--cpu", "native"])
    compiled = call(["make", "-C", folder / "out"])
    return emitted, compiled, None, folder / "out"


MAKERS = {"onnx2c": onnx2c, "emx-onnx-cgen": emx, "TVM": tvm, "tc-emit": ours}


def command_of(made, folder, raw, seconds, outputs):
    """The command that times a program on the stored inputs and leaves its last outputs, if asked."""
    _, _, command, where = made
    if command is None:
        return [where / "net", "--inputs", folder / "inputs", "--threads", 1, "--bench", seconds, "--json",
                *(["--outputs", outputs] if outputs else [])]
    return [*command, raw / "input.raw", raw / "output.raw", seconds]


def prepare(name, folder, work, options):
    """{tool: what its maker gave}, after its outputs were compared with the stored ones."""
    image, wanted = np.load(folder / "inputs" / "input_0.npy"), np.load(folder / "outputs" / "output_0.npy")
    raw = work / name
    raw.mkdir(parents=True, exist_ok=True)
    image.tofile(raw / "input.raw")
    np.array(image.shape, np.int64).tofile(raw / "input.raw.shape")
    made = {}
    for tool, make in MAKERS.items():
        place = raw / tool
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        wanted.astype(np.float32).tofile(raw / "output.raw")  # its size tells the driver how much the network gives
        try:
            made[tool] = make(place, folder / "model.onnx", options)
            code, text, _ = machine.run_pinned(command_of(made[tool], folder, raw, 0.01, place), 1)
            if code:
                raise Failed(f"the program ended with {code}: {text.strip()[-160:]}")
        except Failed as reason:
            made.pop(tool, None)
            print(f"{name}: {tool} gives nothing: {reason}", flush=True)
            continue
        given = np.load(place / "output_0.npy") if tool == "tc-emit" else np.fromfile(raw / "output.raw", np.float32)
        error = relative_error(given.reshape(wanted.shape), wanted)
        source = sum(path.stat().st_size for path in made[tool][3].rglob("*.[ch]")) / 1e6
        print(f"{name}: {tool} emits in {made[tool][0]:.1f} s, compiles in {made[tool][1]:.1f} s, {source:.2f} MB of C, "
              f"relative error {error:.1e}", flush=True)
        if error > MAX_ERROR:
            sys.exit(f"{name}: {tool} computes something else")
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onnx2c", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--cache", type=Path, default=export.default_cache())
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "emitters")
    parser.add_argument("networks", nargs="*", default=["mobilenet_v2", "efficientnet_b0", "resnet50"])
    options = parser.parse_args()
    options.tool, options.onnx2c, options.python = options.tool.resolve(), options.onnx2c.resolve(), options.python.absolute()
    export.make_missing(options.networks, options.cache)
    print(machine.processor(), flush=True)
    for name in options.networks:
        folder = options.cache / name
        made = prepare(name, folder, options.work, options)
        medians = {tool: [] for tool in made}
        for _ in range(options.rounds):
            for tool in made:
                command = command_of(made[tool], folder, options.work / name, options.seconds, None)
                _, text, others = machine.run_pinned(command, 1)
                medians[tool].append(json.loads(text.strip().splitlines()[-1])["median_ms"])
                if others > 0.05:
                    print(f"{name} {tool}: others kept {others:.2f} cores busy", flush=True)
        print(f"{name}: " + ", ".join(f"{tool} {statistics.median(ms):.2f} ms" for tool, ms in medians.items()), flush=True)


if __name__ == "__main__":
    main()
