"""The part of run.sh that is Python: only its standard library, and torch where that is installed."""
import argparse
import ast
import json
import lzma
import math
import os
import shutil
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
C_TYPES = {"float": "float", "double": "double", "int64": "int64_t", "int32": "int32_t", "bool": "unsigned char", "float16": "uint16_t",
           "bfloat16": "uint16_t", "int8": "int8_t", "uint8": "uint8_t"}

# Replays a run with its tensors on the device, as a graph of the user's own stream.
TIMER = """#include "{name}_cuda.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>
int main(int argc, char **argv)
{{
  const double seconds = argc > 1 ? atof(argv[1]) : 1.0;
  {name} m;
  if ({name}_init(&m, nullptr, 0, nullptr, 0) != {NAME}_OK) return 1;
  {name}_inputs in;
  {name}_outputs out;
{allocate}
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return 2;
  if ({name}_run_async(&m, &in, &out, stream) != {NAME}_OK) return 3;
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return 4;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> ms;
  for (int i = 0; i < 10; i++) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  const auto start = std::chrono::steady_clock::now();
  while (ms.size() < 20 || std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {{
    float t = 0;
    cudaEventRecord(begin, stream), cudaGraphLaunch(exec, stream), cudaEventRecord(end, stream);
    if (cudaEventSynchronize(end) != cudaSuccess) return 5;
    cudaEventElapsedTime(&t, begin, end);
    ms.push_back(t);
  }}
  std::sort(ms.begin(), ms.end());
  printf("%.3f\\n", 1000.0 * ms[ms.size() / 2]);
  return 0;
}}
"""

CUBLAS = """#include <cublas_v2.h>
#include <cstdio>
int main()
{
  const int n = 4096;
  float *a, *b, *c;
  cudaMalloc(&a, 4ull * n * n), cudaMalloc(&b, 4ull * n * n), cudaMalloc(&c, 4ull * n * n);
  cudaMemset(a, 0, 4ull * n * n), cudaMemset(b, 0, 4ull * n * n);
  cublasHandle_t h;
  if (cublasCreate(&h) != CUBLAS_STATUS_SUCCESS) return 1;
  const float one = 1, zero = 0;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  for (int mode = 0; mode < 2; mode++) {
    float t = 0;
    for (int i = 0; i < 13; i++) {
      if (i == 3) cudaEventRecord(begin);
      if (mode == 0) cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n);
      else cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, CUDA_R_16F, n, b, CUDA_R_16F, n, &zero, c, CUDA_R_16F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    }
    cudaEventRecord(end), cudaEventSynchronize(end), cudaEventElapsedTime(&t, begin, end);
    printf("%.3f\\n", 1000.0 * t / 10);
  }
  return 0;
}
"""


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)


def fields(header, struct_name):
    """The names of a struct's fields in the package's header, in order."""
    text = header.read_text()
    body = text[:text.index("} " + struct_name + ";")]
    body = body[body.rindex("typedef struct {"):]
    return [line.split(";")[0].split("*")[-1].strip() for line in body.splitlines()[1:] if "*" in line.split(";")[0]]


def timer_source(item, package):
    name, lines = item["name"], []
    for side, ports in (("in", item["inputs"]), ("out", item["outputs"])):
        for field, port in zip(fields(package / f"{name}.h", f"{name}_{side}puts"), ports):
            const, kind = "const " if side == "in" else "", C_TYPES.get(port["dtype"], "unsigned char")
            size = max(math.prod(port["shape"]), 1) * {"double": 8, "int64": 8, "int32": 4, "float": 4}.get(port["dtype"], 4)
            lines.append(f"  {{ void *p = nullptr; if (cudaMalloc(&p, {size}) != cudaSuccess || cudaMemset(p, 0, {size}) != cudaSuccess) return 6; "
                         f"{side}.{field} = ({const}{kind} *)p; }}")
    return TIMER.format(name=name, NAME=name.upper(), allocate="\n".join(lines))


def build(folder, options):
    """Unpacks the weights and builds library, program and timer; None, or what went wrong."""
    item = json.loads((folder / "item.json").read_text())
    package, name = folder / "package", item["name"]
    weights = package / f"{name}_weights.bin"
    if not weights.exists():
        weights.write_bytes(lzma.decompress(weights.with_suffix(".bin.xz").read_bytes()))
    project = folder / "project"
    project.mkdir(exist_ok=True)
    ending = "cc" if options.cpu else "cu"
    (project / f"timer.{ending}").write_text(timer_source(item, package))
    (project / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.18)\nproject({name}_gpu LANGUAGES C CXX ASM{'' if options.cpu else ' CUDA'})\nset(CMAKE_CXX_STANDARD 17)\n"
        f"add_subdirectory({package} package)\nadd_executable(timer timer.{ending})\ntarget_link_libraries(timer PRIVATE {name}::{name})\n"
        f"add_executable({name}_program {package}/main.c)\nset_target_properties({name}_program PROPERTIES OUTPUT_NAME {name} LINKER_LANGUAGE CXX)\n"
        f"target_link_libraries({name}_program PRIVATE {name}::{name})\n")
    flags = ["-DTC_CUDA_ON_CPU=ON"] if options.cpu else ["-DCMAKE_CUDA_ARCHITECTURES=" + options.arch]
    for command in (["cmake", "-S", project, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release", *flags],
                    ["cmake", "--build", folder / "build", "--parallel", "8"]):
        result = run(*command)
        if result.returncode:
            told = [line for line in (result.stdout + result.stderr).splitlines() if "error" in line]
            return (told or ["the build failed"])[0][:200]
    return None


def npy(path):
    """(shape, values) of a .npy file of numbers."""
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0] if data[6] == 1 else struct.unpack("<I", data[8:12])[0]
    at = 10 if data[6] == 1 else 12
    head = ast.literal_eval(data[at:at + length].decode().strip())
    kind = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|b1": "?", "|u1": "B", "|i1": "b"}[head["descr"]]
    count = math.prod(head["shape"])
    return head["shape"], struct.unpack(f"<{count}{kind}", data[at + length:at + length + count * struct.calcsize(kind)])


def error_of(folder, item):
    """norm(difference) / norm(reference), the largest over the outputs."""
    out = folder / "results"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    result = run(folder / "build" / item["name"], "--inputs", folder / "io", "--outputs", out, timeout=200)
    if result.returncode:
        raise RuntimeError((result.stderr + result.stdout).strip().splitlines()[-1][:200])
    worst = 0.0
    for path in sorted((folder / "io").glob("output_*.npy")):
        (_, expected), (_, got) = npy(path), npy(out / path.name)
        difference, norm = sum((a - b) ** 2 for a, b in zip(got, expected)), sum(b * b for b in expected)
        worst = max(worst, (difference / max(norm, 1e-30)) ** 0.5)
    return worst


def judge(folder, options):
    item = json.loads((folder / "item.json").read_text())
    row = {"name": item["name"], "launches": item["launches"], "error": "", "sanitizer": "", "us": "", "note": ""}
    try:
        if item["compare"]:
            error = error_of(folder, item)
            row["error"] = f"{error:.2e}"
            if not error < item["max_error"]:
                row["note"] = f"error above {item['max_error']}"
        if item["small"] and shutil.which("compute-sanitizer"):
            for tool in ("memcheck", "racecheck"):
                result = run("compute-sanitizer", "--tool", tool, "--error-exitcode", "9", folder / "build" / item["name"], "--inputs", folder / "io",
                             timeout=150)
                row["sanitizer"] += ("" if not row["sanitizer"] else ", ") + f"{tool} {'clean' if result.returncode == 0 else 'FAILED'}"
        timed = run(folder / "build" / "timer", str(options.seconds), timeout=100)
        row["us"] = timed.stdout.strip() if timed.returncode == 0 else f"timer ended with {timed.returncode}"
    except (RuntimeError, subprocess.TimeoutExpired, KeyError) as problem:
        row["note"] = str(problem)[:200]
    return row


def peers(options):
    """cuBLAS on 4096 x 4096, torch's eager and compiled ResNet-50, where they exist."""
    lines = []
    source = HERE / "bundle" / "cublas.cu"
    source.write_text(CUBLAS)
    if shutil.which("nvcc") and run("nvcc", "-O2", "-arch", "native", source, "-lcublas", "-o", source.with_suffix("")).returncode == 0:
        times = run(source.with_suffix(""), timeout=60).stdout.split()
        if len(times) == 2:
            lines.append(f"cuBLAS 4096 x 4096 x 4096: f32 {times[0]} us, f16 {times[1]} us")
    code = ("import torch, time, torchvision\nm = torchvision.models.resnet50().eval().cuda()\nx = torch.randn(1, 3, 224, 224, device='cuda')\n"
            "def us(f):\n  for _ in range(10): f()\n  torch.cuda.synchronize(); t = time.time()\n  for _ in range(50): f()\n"
            "  torch.cuda.synchronize(); return (time.time() - t) / 50 * 1e6\n"
            "with torch.no_grad():\n  print('torch eager ResNet-50 f32 %.0f us' % us(lambda: m(x)), flush=True)\n"
            "  c = torch.compile(m, mode='max-autotune')\n"
            "  print('torch.compile ResNet-50 f32 %.0f us' % us(lambda: c(x)), flush=True)\n")
    try:
        result = run(sys.executable, "-c", code, timeout=200)
        lines += [line for line in result.stdout.splitlines() if "us" in line] or ["torch: not here"]
    except subprocess.TimeoutExpired:
        lines.append("torch: no end after 200 s")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "bundle")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--arch", default="native")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if Path("/usr/local/cuda/bin").exists():
        os.environ["PATH"] += ":/usr/local/cuda/bin"
    bundle = json.loads((HERE / "bundle" / "bundle.json").read_text())
    folders = [HERE / "bundle" / name for name in bundle["names"]]
    start = time.time()
    with ThreadPoolExecutor(1 if options.cpu else 4) as pool:
        built = dict(zip(bundle["names"], pool.map(lambda f: build(f, options), folders)))
    lines = [f"built in {time.time() - start:.0f} s"]
    gpu = run("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").stdout.strip() if shutil.which("nvidia-smi") else "the CPU"
    lines += [f"{time.strftime('%Y-%m-%d')}, {gpu}, commit {bundle['commit']}", "", "| network | kernels in the text | error against ONNX Runtime | sanitizer | replay, median us | |",
              "|---|---|---|---|---|---|"]
    failed = 0
    for folder in folders:
        if built[folder.name]:
            row = {"name": folder.name, "launches": "", "error": "", "sanitizer": "", "us": "", "note": built[folder.name]}
        else:
            row = judge(folder, options)
        failed += bool(row["note"]) or "FAILED" in row["sanitizer"]
        lines.append("| " + " | ".join(str(row[k]) for k in ("name", "launches", "error", "sanitizer", "us", "note")) + " |")
        print(lines[-1], flush=True)
    lines += [""] + (peers(options) if not options.cpu else [])
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "gpu_results.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
