#!/usr/bin/env python3
"""Times one engine on one model: the counterpart of `NAME --bench SECONDS --json` of an emitted program.

usage: peer.py onnxruntime|openvino MODEL.onnx INPUTS --threads N --seconds S [--outputs DIR]

INPUTS is a folder with input_0.npy ... Inputs and outputs are bound once, so that a run copies nothing it need not. The
last line is JSON: {"runs", "min_ms", "median_ms", "p95_ms", "p99_ms"}.
"""
import argparse
import json
import time
from pathlib import Path

import numpy as np


def load_onnxruntime(model, inputs, threads):
    """(run, outputs): `run` runs once, `outputs` gives the arrays of the last run."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for value, array in zip(session.get_inputs(), inputs, strict=True):
        binding.bind_ortvalue_input(value.name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for value in session.get_outputs():
        binding.bind_output(value.name, "cpu")
    session.run_with_iobinding(binding)
    # What the first run allocated is bound again, so that later ones write into it.
    for value, array in zip(session.get_outputs(), binding.get_outputs()):
        binding.bind_ortvalue_output(value.name, array)
    return lambda: session.run_with_iobinding(binding), binding.copy_outputs_to_cpu


def load_openvino(model, inputs, threads):
    """As load_onnxruntime. float32 is asked for: left alone, OpenVINO computes in bfloat16 where the processor can."""
    import openvino
    core = openvino.Core()
    network = core.read_model(model)
    network.reshape({port: list(array.shape) for port, array in zip(network.inputs, inputs, strict=True)})
    compiled = core.compile_model(network, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                                                   "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for index, array in enumerate(inputs):
        request.set_input_tensor(index, openvino.Tensor(array))
    return request.infer, lambda: [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]


def measure(run, seconds):
    """Milliseconds of every run within `seconds`, after a warm-up of a fifth of it; ten runs at least."""
    end = time.perf_counter() + seconds / 5
    while time.perf_counter() < end:
        run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["onnxruntime", "openvino"])
    parser.add_argument("model", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--outputs", type=Path)
    options = parser.parse_args()
    arrays = [np.load(options.inputs / f"input_{i}.npy") for i in range(len(list(options.inputs.glob("input_*.npy"))))]
    load = {"onnxruntime": load_onnxruntime, "openvino": load_openvino}[options.engine]
    run, outputs = load(options.model, arrays, options.threads)
    run()
    if options.outputs:
        for index, array in enumerate(outputs()):
            np.save(options.outputs / f"output_{index}.npy", array)
    times = measure(run, options.seconds)
    p = {name: float(np.percentile(times, q)) for name, q in (("median_ms", 50), ("p95_ms", 95), ("p99_ms", 99))}
    print(json.dumps({"runs": len(times), "min_ms": min(times), **p}))


if __name__ == "__main__":
    main()
