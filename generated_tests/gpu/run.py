"""The part of run.sh that is Python: only its standard library."""
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

# Replays a run with its tensors on the device, as a graph of the user's own stream. Zeros would be faster than what is real.
TIMER = """#include "{name}_cuda.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
static void *tensor(size_t count, size_t width, char kind)
{{
  std::vector<unsigned char> host(count * width);
  unsigned state = 1;
  for (size_t i = 0; i < count; i++) {{
    state = state * 1664525u + 1013904223u;
    const float f = (float)(state >> 8) / 8388608.0f - 1.0f;
    const double d = f;
    const unsigned short half = (unsigned short)((state >> 16 & 0x83ff) | 0x3800);  // 0.5 to 1, and negative
    const long long integer = state >> 31;
    if (kind == 'f') memcpy(&host[i * width], width == 8 ? (const void *)&d : width == 2 ? (const void *)&half : (const void *)&f, width);
    else memcpy(&host[i * width], &integer, width);
  }}
  void *p = nullptr;
  if (cudaMalloc(&p, host.size() + 16) != cudaSuccess || cudaMemcpy(p, host.data(), host.size(), cudaMemcpyHostToDevice) != cudaSuccess) exit(6);
  return p;
}}
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
            width = {"double": 8, "int64": 8, "int32": 4, "float": 4, "float16": 2, "bfloat16": 2}.get(port["dtype"], 1)
            letter = "f" if "float" in port["dtype"] or port["dtype"] == "double" else "i"
            lines.append(f"  {side}.{field} = ({const}{kind} *)tensor({max(math.prod(port['shape']), 1)}, {width}, '{letter}');")
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
    on_host = options.cpu or item["jit"]  # without nvcc
    ending = "cc" if on_host else "cu"
    (project / f"timer.{ending}").write_text(timer_source(item, package))
    (project / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.18)\nproject({name}_gpu LANGUAGES C CXX ASM{'' if on_host else ' CUDA'})\nset(CMAKE_CXX_STANDARD 17)\n"
        f"add_subdirectory({package} package)\nadd_executable(timer timer.{ending})\ntarget_link_libraries(timer PRIVATE {name}::{name})\n"
        f"add_executable({name}_program {package}/main.c)\nset_target_properties({name}_program PROPERTIES OUTPUT_NAME {name} LINKER_LANGUAGE CXX)\n"
        f"target_link_libraries({name}_program PRIVATE {name}::{name})\n")
    arch = "90a-real" if "sm_90a" in item["flags"] else options.arch
    flags = ["-DTC_CUDA_ON_CPU=ON"] if options.cpu else ["-DCMAKE_CUDA_ARCHITECTURES=" + arch]
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
                             timeout=60)
                row["sanitizer"] += ("" if not row["sanitizer"] else ", ") + f"{tool} {'clean' if result.returncode == 0 else 'FAILED'}"
                (options.results / f"{folder.name}_{tool}.txt").write_text((result.stdout + result.stderr)[-20000:] if result.returncode else "")
        timed = run(folder / "build" / "timer", str(options.seconds), timeout=100)
        row["us"] = timed.stdout.strip() if timed.returncode == 0 else f"timer ended with {timed.returncode}"
    except (RuntimeError, subprocess.TimeoutExpired, KeyError) as problem:
        row["note"] = str(problem)[:200]
    return row


def by_kernel(folder, options):
    """What Nsight Compute measures of each launch of one run, as NAME_kernels.csv of the results."""
    name = folder.name
    metrics = "gpu__time_duration.sum,dram__bytes.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed"
    if not shutil.which("ncu"):
        return
    result = run("ncu", "--clock-control", "none", "--csv", "--launch-count", "150", "--metrics", metrics, folder / "build" / "timer", "0", timeout=60)
    table = [line for line in result.stdout.splitlines() if line.startswith('"')]
    (options.results / f"{name}_kernels.csv").write_text("\n".join(table) + "\n")


def peers():
    """The lines of peers.py, which are fewer where a library is not here."""
    try:
        result = run(sys.executable, HERE / "peers.py", timeout=200)
        return result.stdout.splitlines() or [f"peers: {result.stderr.strip()[-200:]}"]
    except subprocess.TimeoutExpired:
        return ["peers: no end after 200 s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "bundle")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--arch", default="native")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--peers", action="store_true", help="time cuBLAS and PyTorch, too")
    parser.add_argument("--kernels", type=lambda text: text.split(","), default=[], help="networks whose launches Nsight Compute measures")
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
    options.results.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        if built[folder.name]:
            row = {"name": folder.name, "launches": "", "error": "", "sanitizer": "", "us": "", "note": built[folder.name]}
        else:
            row = judge(folder, options)
        failed += bool(row["note"]) or "FAILED" in row["sanitizer"]
        lines.append("| " + " | ".join(str(row[k]) for k in ("name", "launches", "error", "sanitizer", "us", "note")) + " |")
        print(lines[-1], flush=True)
        if folder.name in options.kernels and not built[folder.name]:
            try:
                by_kernel(folder, options)
            except subprocess.TimeoutExpired:
                print(f"ncu of {folder.name}: no end", flush=True)
    lines += [""] + (peers() if options.peers else [])
    (options.results / "gpu_results.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
