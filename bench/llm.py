#!/usr/bin/env python3
"""A decoder of Llama's kind, prompt and next token, against ONNX Runtime on this machine.

usage: llm.py [--tool build/tc-emit] [--cpu native] [--cc gcc] [--rounds 3] [--tokens 32] [--prompt 128] [--layers 4] [--bits 4|16|32]
              [--llama-cpp PYTHON]                                              (run it with `scripts/python_env base`)

The model has random weights and the operators that ONNX Runtime's builder of language models writes: 2048 hidden, 5632 inner, 32 heads,
4 of keys; with 4 bits, products are MatMulNBits of accuracy level 4; with 16 bits all of it is halves, weights and cache, too. The engines take turns, each with one thread, then with two: a
prompt, best of three, then tokens one by one, the median. The package keeps its cache; ONNX Runtime gets that of the run before.
Logits of both are compared first. PYTHON has llama-cpp-python, gguf and onnx: then llama.cpp takes its turn, too, with the same weights of 4 bits.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
VOCABULARY, HIDDEN, INNER, HEADS, KEY_HEADS, SIZE, BLOCK, ROOM = 2048, 2048, 5632, 32, 4, 64, 32, 1024

DRIVER = """#define _POSIX_C_SOURCE 199309L
#include "llm.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

int main(int argc, char **argv) /* PROMPT TOKENS FILE: milliseconds of the prompt, thrice, then of each token; logits to FILE */
{
  const int64_t prompt = atoll(argv[1]), tokens = atoll(argv[2]);
  int64_t *ids = (int64_t *)malloc(sizeof *ids * 1024), *mask = (int64_t *)malloc(sizeof *mask * 2048);
  float *logits = (float *)malloc(sizeof *logits * 1024 * 2048);
  FILE *f = fopen(argv[3], "wb");
  llm m;
  llm_inputs in = {ids, mask, prompt};
  const llm_outputs out = {logits};
  (void)argc;
  if (f == NULL || llm_init(&m, NULL, 0, NULL, 0)) return 2;
  for (int k = 0; k < 2048; k++) mask[k] = 1;
  for (int k = 0; k < 1024; k++) ids[k] = (k * 37 + 11) % 2048;
  for (int64_t k = 0; k < 3 + tokens; k++) {
    double start;
    if (k < 3) llm_reset(&m);
    in.seq = k < 3 ? prompt : 1;
    start = now();
    if (llm_run(&m, &in, &out)) return 3;
    printf("%.4f\\n", now() - start);
    if (k >= 2) fwrite(logits + (in.seq - 1) * 2048, sizeof *logits, 2048, f);
  }
  return fclose(f);
}
"""


class Decoder:
    def __init__(self, bits):
        self.bits, self.random = bits, np.random.default_rng(0)
        self.float = np.float16 if bits == 16 else np.float32
        self.nodes, self.weights = [], []

    def constant(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def op(self, kind, *inputs, outputs=None, **attributes):
        names = outputs or [f"{kind.lower()}_{len(self.nodes)}"]
        domain = "com.microsoft" if kind in ("MatMulNBits", "GroupQueryAttention") else ""
        self.nodes.append(helper.make_node(kind, list(inputs), names, names[0], domain=domain, **attributes))
        return names[0]

    def linear(self, x, rows, columns, outputs=None):
        if self.bits >= 16:
            w = self.random.standard_normal((rows, columns)).astype(np.float32) * rows ** -0.5
            return self.op("MatMul", x, self.constant(w.astype(self.float)), outputs=outputs)
        w = self.random.integers(0, 256, (columns, rows // BLOCK, BLOCK // 2), np.uint8)
        scales = (0.1 + 0.9 * self.random.random((columns, rows // BLOCK))).astype(np.float32) * 0.4 * rows ** -0.5
        return self.op("MatMulNBits", x, self.constant(w), self.constant(scales), outputs=outputs, K=rows, N=columns, bits=4, block_size=BLOCK, accuracy_level=4)

    def norm(self, x):
        return self.op("SimplifiedLayerNormalization", x, self.constant(np.ones(HIDDEN, self.float)), axis=-1, epsilon=1e-6)

    def model(self, layers):
        one = self.constant(np.array([1], np.int64))
        last = self.op("Cast", self.op("Sub", self.op("ReduceSum", "mask", one, keepdims=0), one), to=TensorProto.INT32)
        total = self.op("Cast", self.op("Gather", self.op("Shape", "mask"), self.constant(np.array(1, np.int64))), to=TensorProto.INT32)
        angles = np.arange(ROOM)[:, None] * 10000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2))
        caches = [self.constant(f(angles).astype(self.float)) for f in (np.cos, np.sin)]
        x = self.op("Gather", self.constant(self.random.standard_normal((VOCABULARY, HIDDEN)).astype(self.float)), "ids")
        for n in range(layers):
            streams = self.linear(self.norm(x), HIDDEN, (HEADS + 2 * KEY_HEADS) * SIZE)
            y = self.op("GroupQueryAttention", streams, "", "", f"past.{n}.key", f"past.{n}.value", last, total, *caches,
                        outputs=[f"attention_{n}", f"present.{n}.key", f"present.{n}.value"], num_heads=HEADS, kv_num_heads=KEY_HEADS, do_rotary=1)
            x = self.op("Add", x, self.linear(y, HIDDEN, HIDDEN))
            h = self.norm(x)
            gate = self.linear(h, HIDDEN, INNER)
            inner = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), self.linear(h, HIDDEN, INNER))
            x = self.op("Add", x, self.linear(inner, INNER, HIDDEN))
        self.op("Cast", self.linear(self.norm(x), HIDDEN, VOCABULARY), outputs=["logits"], to=TensorProto.FLOAT)
        cache = [f"{n}.{kind}" for n in range(layers) for kind in ("key", "value")]
        value, f32, i64 = helper.make_tensor_value_info, TensorProto.FLOAT, TensorProto.INT64
        held = helper.np_dtype_to_tensor_dtype(np.dtype(self.float))
        inputs = [value("ids", i64, [1, "seq"]), value("mask", i64, [1, "total"])] + [value(f"past.{c}", held, [1, KEY_HEADS, "past", SIZE]) for c in cache]
        outputs = [value("logits", f32, [1, "seq", VOCABULARY])] + [value(f"present.{c}", held, [1, KEY_HEADS, "total", SIZE]) for c in cache]
        graph = helper.make_graph(self.nodes, "llm", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def of_runtime(path, threads, prompt, tokens):
    """Milliseconds as the driver prints them, and the last logits of each run."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    empty = {i.name: np.zeros((1, KEY_HEADS, 0, SIZE), np.float16 if i.type == "tensor(float16)" else np.float32) for i in session.get_inputs() if i.name.startswith("past")}
    times, logits, past = [], [], empty
    for k in range(3 + tokens):
        past = empty if k < 3 else past
        n, length = prompt if k < 3 else 1, next(iter(past.values())).shape[2]
        feed = {**past, "ids": (np.arange(n) * 37 + 11)[None] % VOCABULARY, "mask": np.ones((1, length + n), np.int64)}
        start = time.perf_counter()
        results = dict(zip(names, session.run(None, feed)))
        times.append(1e3 * (time.perf_counter() - start))
        past = {name: results[name.replace("past", "present")] for name in past}
        if k >= 2:
            logits.append(results["logits"][0, -1])
    return times, np.array(logits)


def of_package(program, threads, prompt, tokens, scratch):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    result = subprocess.run([program, str(prompt), str(tokens), scratch / "logits"], check=True, capture_output=True, text=True, env=environment)
    return [float(line) for line in result.stdout.split()], np.fromfile(scratch / "logits", np.float32).reshape(-1, VOCABULARY)


def of_llama_cpp(python, threads, prompt, tokens, scratch):
    words = [python, ROOT / "bench" / "llama_peer.py", scratch / "llm.onnx", scratch / "llm.gguf", threads, prompt, tokens, scratch / "logits"]
    result = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    return [float(line) for line in result.stdout.split()], np.fromfile(scratch / "logits", np.float32).reshape(-1, VOCABULARY)


def compare(engines, threads, rounds):
    """The engines in turns; the first is compared with each of the others."""
    prompts, tokens, logits = ({name: [] for name in engines} for _ in range(3))
    for _ in range(rounds):
        for name, engine in engines.items():
            times, logits[name] = engine(threads)
            prompts[name].append(min(times[:3]))
            tokens[name].append(statistics.median(times[3:]))
    own, *peers = engines
    for peer in peers:
        error = np.linalg.norm(logits[own] - logits[peer]) / np.linalg.norm(logits[peer])
        for what, times in (("prompt", prompts), ("token", tokens)):
            mine, theirs = min(times[own]), min(times[peer])
            print(f"{threads} thread{'s' * (threads > 1)}  {what:6}  {mine:8.2f} ms   {peer} {theirs:8.2f} ms   ratio {mine / theirs:.2f}", flush=True)
        print(f"          logits differ by {error:.1e} of their norm", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default=str(ROOT / "build" / "tc-emit"))
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--bits", type=int, default=4, choices=(4, 16, 32))
    parser.add_argument("--llama-cpp", metavar="PYTHON", default="")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        onnx.save(Decoder(o.bits).model(o.layers), scratch / "llm.onnx")
        words = [f"--dim=seq=1..{o.prompt}", f"--dim=past=0..{ROOM}", "--dim=total=past+seq", "--state=past.*=present.*"]
        subprocess.run([o.tool, "--quiet", f"--cpu={o.cpu}", *words, scratch / "llm.onnx", "-o", scratch / "out"], check=True)
        subprocess.run(["make", "-s", "-j2", "-C", scratch / "out", f"CC={o.cc}", "libllm.a"], check=True)
        (scratch / "driver.c").write_text(DRIVER)
        subprocess.run([o.cc, "-O2", f"-I{scratch / 'out'}", scratch / "driver.c", scratch / "out" / "libllm.a", "-pthread", "-lm", "-o", scratch / "driver"], check=True)
        engines = {"tc-emit": lambda threads: of_package(scratch / "driver", threads, o.prompt, o.tokens, scratch),
                   "ONNX Runtime": lambda threads: of_runtime(str(scratch / "llm.onnx"), threads, o.prompt, o.tokens)}
        if o.llama_cpp:
            engines["llama.cpp"] = lambda threads: of_llama_cpp(o.llama_cpp, threads, o.prompt, o.tokens, scratch)
        for threads in (1, 2):
            compare(engines, threads, o.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
