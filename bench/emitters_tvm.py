#!/usr/bin/env python3
"""TVM's part of emitters.py, run by a Python that has apache-tvm.

usage: emitters_tvm.py compile MODEL.onnx LIBRARY.so
       emitters_tvm.py time LIBRARY.so INPUT.raw OUTPUT.raw SECONDS
"""
import json
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def host_target():
    """LLVM's name of this processor, as gcc knows it."""
    said = subprocess.run(["gcc", "-march=native", "-Q", "--help=target"], capture_output=True, text=True, check=True).stdout
    cpu = next(line.split()[-1] for line in said.splitlines() if line.strip().startswith("-march="))
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu, "mtriple": "x86_64-linux-gnu"})


def compile_model(model, library):
    module = relax.transform.LegalizeOps()(from_onnx(onnx.load(model), keep_params_in_input=False))
    tvm.compile(module, target=host_target()).export_library(library)


def time_library(library, source, target, seconds):
    module = tvm.runtime.load_module(library)
    machine = relax.VirtualMachine(module, tvm.cpu())
    shape = [int(size) for size in np.fromfile(source + ".shape", np.int64)]
    image = tvm.runtime.tensor(np.fromfile(source, np.float32).reshape(shape))
    give = machine["main"]

    def run():
        result = give(image)
        return result if hasattr(result, "numpy") else result[0]

    end = time.perf_counter() + float(seconds) / 5
    result = run()
    while time.perf_counter() < end:
        run()
    times, end = [], time.perf_counter() + float(seconds)
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    result.numpy().tofile(target)
    print(json.dumps({"runs": len(times), "median_ms": statistics.median(times)}))


if __name__ == "__main__":
    {"compile": compile_model, "time": time_library}[sys.argv[1]](*sys.argv[2:])
