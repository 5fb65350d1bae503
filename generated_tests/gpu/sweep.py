#!/usr/bin/env python3
"""Times sums of products with tiles drawn at random, to fit the costs of templates/cuda/contraction_plan.cc (fit.py).

usage: sweep.py prepare [--tool build/tc-emit] [--arch sm_90] [--count 70] [--seed 5] [--only REGEX]     (needs no GPU; `scripts/python_env base`)
       sweep.py run [--arch sm_90] [--results FILE]                                        (needs nvcc, a GPU and the folder sweep/)
With --arch sm_90a the numbers are those of products of warp groups.

`prepare` emits each product once as the model has it and --count times with numbers that are stated, and writes a file of
kernels for each product into sweep/. `run` compiles them and times each launch in a graph of twenty; its lines are
"product <tab> us <tab> numbers", the model's own first.
"""
import argparse
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SWEEP = HERE / "sweep"
MATRICES = [(197, 3072, 768), (197, 768, 3072), (197, 768, 2304), (128, 768, 768), (128, 3072, 768), (2048, 2048, 2048),
            (4096, 4096, 4096), (1576, 768, 3072), (1024, 1024, 4096)]  # rows, depth, columns
IMAGES = [(14, 256, 256, 3), (14, 1024, 256, 1), (14, 256, 1024, 1), (7, 960, 160, 1), (14, 384, 64, 1), (28, 128, 128, 3), (56, 64, 64, 3),
          (7, 512, 512, 3)]  # side, channels, channels of the result, side of the window
MOST_SHARED, MOST_THREADS = 227 << 10, 512

MAIN = """#include <cuda_runtime.h>
#include <algorithm>
#include <cstdio>
#include <vector>
typedef cudaError_t launch(cudaStream_t);
static float microseconds(launch *f)
{
  static cudaStream_t stream;
  if (!stream) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (f(stream) != cudaSuccess || cudaStreamSynchronize(stream) != cudaSuccess) return cudaGetLastError(), -1;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t begin, end;
  float once = 0;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  cudaEventRecord(begin, stream), f(stream), cudaEventRecord(end, stream);
  if (cudaEventSynchronize(end) != cudaSuccess || cudaEventElapsedTime(&once, begin, end) != cudaSuccess) return -4;
  const int calls = once > 0.2f ? 2 : 20;  // long ones need no more
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < calls; i++) f(stream);
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return -2;
  std::vector<float> ms(7);
  for (float &t : ms) {
    cudaEventRecord(begin, stream), cudaGraphLaunch(exec, stream), cudaEventRecord(end, stream);
    if (cudaEventSynchronize(end) != cudaSuccess) return -3;
    cudaEventElapsedTime(&t, begin, end);
  }
  cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
  std::sort(ms.begin(), ms.end());
  return ms[3] * 1000 / (float)calls;
}
"""
MEMORY = """static void *memory(size_t i)
{
  static void *p[16];
  if (p[i]) return p[i];
  std::vector<uint16_t> h(32 << 20);
  for (size_t j = 0; j < h.size(); j++) h[j] = (uint16_t)(0x3000 + (j * 2654435761u >> 20 & 0x3ff));
  cudaMalloc(&p[i], 2 * h.size()), cudaMemcpy(p[i], h.data(), 2 * h.size(), cudaMemcpyHostToDevice);
  return p[i];
}
"""


def models(folder):
    """{name: path} of the products, in single precision and in halves; weights are constants."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng, paths = np.random.default_rng(0), {}
    for letter, kind, dtype in (("f", TensorProto.FLOAT, np.float32), ("h", TensorProto.FLOAT16, np.float16)):
        def save(name, nodes, x, y, constants):
            initializers = [numpy_helper.from_array((rng.integers(-7, 8, shape) / 16).astype(dtype), n) for n, shape in constants.items()]
            graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", kind, x)], [helper.make_tensor_value_info("y", kind, y)], initializers)
            paths[name] = folder / f"{name}.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), paths[name])

        for m, k, n in MATRICES:
            save(f"m{m}_k{k}_n{n}_{letter}", [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])], [m, k], [m, n],
                 {"w": (k, n), "b": (n,)})
        for side, c, o, w in IMAGES:
            save(f"m{side * side}_k{c * w * w}_n{o}_w{w}_{letter}",
                 [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Conv", ["r", "w", "b"], ["c"], kernel_shape=[w, w], pads=[w // 2] * 4),
                  helper.make_node("Relu", ["c"], ["y"])], [1, c, side, side], [1, o, side, side], {"w": (o, c, w, w), "b": (o,)})
    return paths


def numbers_of(halves):
    """All numbers that may be stated, as {name: number}, in an order that is always the same."""
    if halves:
        tiles = itertools.product((16, 32, 64, 128, 256), (32, 64, 128, 256), (16, 32, 64), (16, 32, 64))
        first, part, depths = {"tensor_cores": 1, "bits": 16, "products": 1}, "warp", (32, 64)
    else:
        tiles = itertools.product((16, 32, 64, 128, 256), (32, 64, 128, 256), (4, 8), (4, 8))
        first, part, depths = {"tensor_cores": 0, "bits": 32, "products": 1}, "thread", (8, 16, 32)
    for (rows, columns, tm, tn), depth, stages, groups, splits in itertools.product(tiles, depths, (2, 3, 4, 6), (1, 2, 4, 8), (1, 2, 4, 8, 16)):
        threads = rows * columns // (tm * tn) * (32 if halves else 1) * groups
        width = 2 if halves else 4
        shared = groups * stages * ((rows + columns) * (depth * width + 16) if halves else depth * (rows + columns + 8) * width)
        if rows % tm == 0 and columns % tn == 0 and 32 <= threads <= MOST_THREADS and shared <= MOST_SHARED and (groups == 1 or splits <= 4):
            yield {**first, "rows": rows, "columns": columns, f"{part}_rows": tm, f"{part}_columns": tn, "depth": depth, "stages": stages, "groups": groups,
                   "splits": splits}


def numbers_in_groups():
    """The same for products of warp groups."""
    tiles = [(rows, columns, part) for rows in (64, 128, 256) for columns in (64, 128, 256) for part in (64, 128) if rows % part == 0]
    for (rows, columns, part), stages, splits in itertools.product(tiles, (3, 4, 5, 6), (1, 2, 3, 4, 6, 8, 12, 16)):
        yield {"tensor_cores": 1, "bits": 16, "products": 1, "warps": 4, "rows": rows, "columns": columns, "warp_rows": part, "warp_columns": columns,
               "depth": 64, "stages": stages, "groups": 1, "splits": splits}


def is_large(name):
    """Whether only large tiles of a product, that are multiplied whole, are worth the time."""
    rows, columns = re.match(r"m(\d+)_k\d+_n(\d+)", name).groups()
    return int(rows) * int(columns) >= 2048 * 2048


def emitted(path, options, folder):
    """[(numbers, text of the kernel's file)], the model's own first."""
    def emit(out, *flags):
        words = [options.tool, "--quiet", "--target", "cuda", "--arch", options.arch, "--name", "v", path, "-o", out, *flags]
        return subprocess.run(words, capture_output=True).returncode == 0

    own = folder / "own.tc"
    if not emit(folder / "own", "--write-schedules", own):
        raise SystemExit(f"{path.name} is refused")
    text = own.read_text()
    said = re.search(r"contraction\((.*?)\)", text)[1]
    packages = [(said, folder / "own")]
    every = numbers_in_groups() if options.arch.endswith("a") else numbers_of(path.stem.endswith("h"))
    candidates = [n for n in every if not is_large(path.stem) or (n["rows"] * n["columns"] >= 8192 and n["splits"] == 1)]
    random.Random(options.seed).shuffle(candidates)
    for k, numbers in enumerate(candidates):
        if len(packages) > options.count:
            break
        words = ", ".join(f"{name} = {number}" for name, number in numbers.items())
        (folder / f"{k}.tc").write_text(text.replace(said, words))
        if emit(folder / str(k), "--schedules", folder / f"{k}.tc"):
            packages.append((words, folder / str(k)))
    kernels = [(words, next(f for f in sorted((package / "kernels").iterdir()) if re.match(r"matmul|conv2d", f.name))) for words, package in packages]
    return [(words, re.sub(r'#include "[^"]*"|#ifndef __CUDACC_RTC__|#endif', "", file.read_text())) for words, file in kernels]


def unit(name, kernels):
    """The file of one product: its kernels in namespaces, and a function that times them."""
    headers = "".join(f'#include "{header}"\n' for header in ("tc_cuda.h", "tc_types.h", "tc_scalar.h"))
    lines, calls = ["#include <cstdio>", "#include <vector>", headers, MEMORY], []
    for k, (words, text) in enumerate(kernels):
        lines.append(f"namespace n{k} {{\n{text}\n}}")
        shared = re.search(r"tc_launch\((\w+),\s*dim3\([^)]*\),\s*dim3\([^)]*\),\s*(\d+)", text)
        if int(shared[2]):
            calls.append(f"  tc_allow_shared(n{k}::{shared[1]}, {shared[2]});")
        function, parameters = re.search(r"cudaError_t (\w+)\((.*?)\)\s*\{", text, re.S).groups()
        pointers = [f"({p.rsplit('*', 1)[0].strip()} *)memory({i})" for i, p in enumerate(parameters.split(",")[:-1])]
        calls.append(f'  printf("{name}\\t%.2f\\t{words}\\n", us([](cudaStream_t s) {{ return n{k}::{function}({", ".join(pointers)}, s); }}));')
    return "\n".join([*lines, f"void time_{name}(float (*us)(cudaError_t (*)(cudaStream_t)))\n{{", *calls, "  fflush(stdout);\n}\n"])


def prepare(options):
    shutil.rmtree(SWEEP, ignore_errors=True)
    (SWEEP / "models").mkdir(parents=True)
    paths = models(SWEEP / "models")
    paths = {name: path for name, path in paths.items() if re.search(options.only, name)}
    for name, path in paths.items():
        folder = SWEEP / "packages" / name
        folder.mkdir(parents=True)
        (SWEEP / f"{name}.cu").write_text(unit(name, emitted(path, options, folder)))
        shutil.rmtree(folder)
    shutil.rmtree(SWEEP / "models")
    for header in ("tc_cuda.h", "tc_types.h", "tc_scalar.h"):
        shutil.copy(ROOT / "templates" / "text" / header, SWEEP)
    calls = "".join(f"  time_{name}(microseconds);\n" for name in paths)
    (SWEEP / "main.cu").write_text(MAIN + "".join(f"void time_{name}(float (*)(launch *));\n" for name in paths) + "int main()\n{\n" + calls + "}\n")


def run(options):
    if Path("/usr/local/cuda/bin").exists():
        os.environ["PATH"] += ":/usr/local/cuda/bin"
    number = options.arch.removeprefix("sm_")
    nvcc = ["nvcc", f"-gencode=arch=compute_{number},code=sm_{number}", "-std=c++17", "-diag-suppress=177"]
    sources = sorted(SWEEP.glob("*.cu"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda file: subprocess.run([*nvcc, "-c", file, "-o", file.with_suffix(".o")], check=True), sources))
    subprocess.run([*nvcc, *(file.with_suffix(".o") for file in sources), "-o", SWEEP / "sweep"], check=True)
    with options.results.open("w") as file:
        return subprocess.run([SWEEP / "sweep"], stdout=file).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["prepare", "run"])
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--count", type=int, default=70)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--only", default="", help="products whose names this finds")
    parser.add_argument("--results", type=Path, default=SWEEP / "sweep.tsv")
    options = parser.parse_args()
    return prepare(options) if options.step == "prepare" else run(options)


if __name__ == "__main__":
    sys.exit(main())
