#!/usr/bin/env python3
"""TVM's part of emitters.py, run by a Python that has apache-tvm.

usage: emitters_tvm.py compile MODEL.onnx LIBRARY.so
       emitters_tvm.py tune MODEL.onnx LIBRARY.so TRIALS FOLDER     (MetaSchedule, one thread; it needs xgboost-cpu and psutil, too, and of
                                                                     apache-tvm-ffi 0.1.14: with 0.1.15 it ends with a segmentation fault)
       emitters_tvm.py time LIBRARY.so INPUT.raw OUTPUT.raw SECONDS
"""
import json
import statistics
import sys
import time

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms
from tvm.target.codegen import llvm_get_system_cpu


def host_target(**more):
    """This processor, by LLVM's name."""
    return tvm.target.Target({"kind": "llvm", "mcpu": llvm_get_system_cpu(), "mtriple": "x86_64-linux-gnu", **more})


def compile_model(model, library):
    module = relax.transform.LegalizeOps()(from_onnx(onnx.load(model), keep_params_in_input=False))
    tvm.compile(module, target=host_target()).export_library(library)


def tune_model(model, library, trials, folder):
    """MetaSchedule over the network's fused functions: so many measurements together, kept in the folder."""
    passes = relax.transform
    module = tvm.ir.transform.Sequential([passes.LegalizeOps(), passes.AnnotateTIROpPattern(), passes.FoldConstant(), passes.FuseOps(),
                                          passes.FuseTIR()])(from_onnx(onnx.load(model), keep_params_in_input=False))
    start = time.monotonic()
    with host_target(**{"num-cores": 1}) as target:
        # A candidate is timed as `tc-emit tune` does it: repeatedly for 60 ms, five times.
        runner = ms.runner.LocalRunner(evaluator_config=ms.runner.EvaluatorConfig(number=1, repeat=5, min_repeat_ms=60))
        database = ms.relax_integration.tune_relax(module, {}, target, folder, int(trials), num_trials_per_iter=16,
                                                   builder=ms.builder.LocalBuilder(max_workers=1), runner=runner)
        tuned_s = time.monotonic() - start
        # compile_relax() would fuse once more, and find none of these functions.
        with database:
            module = passes.MetaScheduleApplyDatabase()(module)
        scheduled = sum(bool(f.attrs and f.attrs.get("tirx.is_scheduled")) for f in module.functions.values())
        print(json.dumps({"tuned_s": tuned_s, "scheduled": scheduled, "functions": len(module.functions)}), flush=True)
        tvm.compile(module, target=target).export_library(library)


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
    {"compile": compile_model, "tune": tune_model, "time": time_library}[sys.argv[1]](*sys.argv[2:])
