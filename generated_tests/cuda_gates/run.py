#!/usr/bin/env python3
"""What a CUDA toolkit can say about emitted kernels without a GPU.

usage: run.py [--tool build/tc-emit] [--cache DIR] [--arch 80,90] [NETWORK ...]     (run it with `scripts/python_env nets`)

Every kernel of the test networks is compiled by nvcc with `-Werror all-warnings`; ptxas must report no spilled register and no
local memory. The same text goes through NVRTC in process. Products of models in f16, bf16 and bytes, and of what --precision
rounds, must show their instructions in PTX (typed.py; alone with the name `typed`), those of --arch sm_90a for sm_90a too. One line per network and kind of check; the last line reads
'N passed, N failed'. Without a toolkit one line says so, and nothing is judged.
"""
import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "generated_tests" / "networks"), str(ROOT / "generated_tests" / "python")]
import export  # noqa: E402
import shares  # noqa: E402
import typed  # noqa: E402
from catalog import NETWORKS  # noqa: E402
from nvrtc import Nvrtc  # noqa: E402

CHOSEN = ("resnet50", "mobilenet_v2", "efficientnet_b0", "vit_b_16", "bert_base", "lstm_tagger", "gru_tagger", "ppocr_det",
          "ppocr_rec", "ppocr_cls", "minilm")
# What tensor cores and asynchronous copies look like in PTX, by the options that promise them.
PROMISES = {"tf32": ("mma.sync", "cp.async"), "fp16": ("mma.sync", "ldmatrix"), "bf16": ("mma.sync", "ldmatrix")}


def emit(tool, network, model, package, flags=()):
    """Emits a network as CUDA; raises CalledProcessError if tc-emit fails."""
    subprocess.run([tool, "--quiet", "--target", "cuda", model, "-o", package, "--name", network.name, *network.flags, *flags],
                   check=True, capture_output=True, text=True)


def spills(report):
    """{kernel: what ptxas complains of} from the output of -Xptxas -v."""
    found, kernel = {}, "?"
    for line in report.splitlines():
        named = re.search(r"Compiling entry function '(\S+)' for '(\S+)'", line)
        if named:
            kernel = f"{named[1]} ({named[2]})"
        used = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if used and (int(used[2]) or int(used[3])):
            found[kernel] = line.strip()
    return found


def unity(package):
    """All kernels of a package in one source: the headers are read once."""
    kernels = sorted((package / "kernels").glob("*.cu"))
    (package / "all_kernels.cu").write_text("".join(f'#include "kernels/{kernel.name}"\n' for kernel in kernels))
    return kernels


def with_nvcc(package, archs):
    """None if the kernels pass, else the first complaint."""
    unity(package)
    codes = [word for arch in archs for word in ("-gencode", f"arch=compute_{arch},code=sm_{arch}")]
    run = subprocess.run(["nvcc", *codes, "-std=c++17", "-Werror", "all-warnings", "-Xptxas", "-v", "-c", "all_kernels.cu", "-o",
                          "all_kernels.o"], cwd=package, capture_output=True, text=True)
    if run.returncode:
        told = [line for line in (run.stdout + run.stderr).splitlines() if "error" in line or "warning" in line]
        return (told or ["nvcc failed"])[0]
    if "(C7514)" in run.stdout + run.stderr:
        return "ptxas lets products of warp groups wait for each other"
    bad = spills(run.stdout + run.stderr)
    if not re.search(r"Compiling entry function", run.stdout + run.stderr):
        return "ptxas reported no kernel"
    return f"{len(bad)} kernels spill, {next(iter(bad))}: {next(iter(bad.values()))}" if bad else None


def with_nvrtc(nvrtc, package, arch):
    """(None or the first complaint, PTX): each kernel file as it is, without system headers."""
    headers = {f"../{path.name}": path.read_text() for path in package.glob("tc_*.h")}
    headers.update({path.name: path.read_text() for path in package.glob("tc_*.h")})
    code = []
    for kernel in sorted((package / "kernels").glob("*.cu")):
        succeeded, log, ptx = nvrtc.compile(kernel.read_text(), headers, arch)
        if not succeeded:
            told = [line for line in log.splitlines() if "error" in line]
            return f"{kernel.name}: {(told or ['NVRTC failed'])[0]}", ""
        code.append(ptx)
    return None, "\n".join(code)


def whole_program(tool, work):
    """None if the example's package builds with CMake and nvcc, and its program says clearly that there is no GPU (or runs)."""
    package, build = work / "digits", work / "digits_build"
    subprocess.run([tool, "--quiet", "--target", "cuda", ROOT / "examples" / "digits" / "digits.onnx", "-o", package], check=True)
    for command in (["cmake", "-S", package, "-B", build, "-DCMAKE_CUDA_ARCHITECTURES=80"], ["cmake", "--build", build]):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            return (run.stdout + run.stderr).strip().splitlines()[-1]
    run = subprocess.run([build / "digits", "--seed", "1"], capture_output=True, text=True)
    if run.returncode and "cudaStreamCreateWithFlags" not in run.stderr:
        return f"without a GPU the program ends with {run.returncode}: {run.stderr.strip()}"
    return None


JIT_MAIN = """#include "tc_jit.h"
tc_jit_program digits_jit_program();
int main()
{
  std::vector<std::string> names;
  std::vector<char> code;
  const tc_jit_program p = digits_jit_program();
  return tc_jit::translate("sm_80", p, names, code) && code.size() > 1000 && names.size() == p.kernels.size() && names.size() >= 4 ? 0 : 1;
}
"""


def jit(tool, work):
    """None if a package of --jit builds without nvcc, and NVRTC compiles what it holds."""
    package, build = work / "jit", work / "jit_build"
    subprocess.run([tool, "--quiet", "--target", "cuda", "--jit", ROOT / "examples" / "digits" / "digits.onnx", "-o", package], check=True)
    (work / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(jit LANGUAGES C CXX ASM)\nset(CMAKE_CXX_STANDARD 17)\nadd_subdirectory(jit)\n"
        "add_executable(translate translate.cc)\ntarget_link_libraries(translate digits::digits)\n")
    (work / "translate.cc").write_text(JIT_MAIN)
    for command in (["cmake", "-S", work, "-B", build], ["cmake", "--build", build]):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            told = [line for line in (run.stdout + run.stderr).splitlines() if "error" in line]
            return (told or ["the build failed"])[0]
    run = subprocess.run([build / "translate"], capture_output=True, text=True)
    return None if run.returncode == 0 else (run.stderr.strip() or "NVRTC gave no code")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--cache", type=Path, default=export.default_cache())
    parser.add_argument("--arch", default="80,90")
    parser.add_argument("--flags", type=str.split, default=[], help="more flags for tc-emit")
    shares.add_option(parser, quick=4)
    parser.add_argument("names", nargs="*", default=CHOSEN)
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    return options


def main():
    options = parse_options()
    if Path("/usr/local/cuda/bin").exists():
        os.environ["PATH"] += ":/usr/local/cuda/bin"
    nvrtc = Nvrtc.find()
    if not shutil.which("nvcc"):
        print("no CUDA toolkit is installed: kernels are not compiled by nvcc or NVRTC here")
        print("0 passed, 0 failed")
        return 0
    archs = options.arch.split(",")
    chosen = [network for network in NETWORKS if network.name in options.names]
    counts = {True: 0, False: 0}

    def judge(name, check, complaint):
        counts[complaint is None] += 1
        print(f"{'passed' if complaint is None else 'FAILED'} {name:18} {check}" + (f": {complaint}" if complaint else ""), flush=True)

    def product_in_ptx(name):
        with tempfile.TemporaryDirectory() as scratch:
            model, package = typed.product(name, Path(scratch) / "model.onnx"), Path(scratch) / "package"
            subprocess.run([options.tool, "--quiet", "--target", "cuda", *typed.MODELS[name][2], model, "-o", package], check=True)
            complaint, ptx = with_nvrtc(nvrtc, package, archs[0])
            judge(name, "products in PTX", complaint or typed.complaint(name, ptx))

    def groups_in_ptx(name):
        with tempfile.TemporaryDirectory() as scratch:
            model, package = typed.product(name, Path(scratch) / "model.onnx"), Path(scratch) / "package"
            subprocess.run([options.tool, "--quiet", "--target", "cuda", "--arch", "sm_90a", *typed.MODELS[name][2], model, "-o", package], check=True)
            complaint, ptx = with_nvrtc(nvrtc, package, "90a")
            judge(name, "products of warp groups in PTX", complaint or typed.complaint_of_groups(name, ptx))
            judge(name, "nvcc, no spills, sm_80, sm_90a", with_nvcc(package, ["80", "90a"]))

    def programs():
        with tempfile.TemporaryDirectory() as scratch:
            judge("digits", "CMake with nvcc, an honest program", whole_program(options.tool, Path(scratch)))
            judge("digits", "--jit: no nvcc, code from NVRTC", jit(options.tool, Path(scratch)))

    def network_compiles(network):
        with tempfile.TemporaryDirectory() as scratch:
            export.make_missing([network.name], options.cache)
            package = Path(scratch) / "package"
            try:
                emit(options.tool, network, options.cache / network.name / "model.onnx", package, options.flags)
            except subprocess.CalledProcessError as error:
                return judge(network.name, "tc-emit", (error.stderr or "failed").splitlines()[0])
            judge(network.name, f"nvcc, no spills, sm_{', sm_'.join(archs)}", with_nvcc(package, archs))
            if nvrtc is None:
                return print("NVRTC is not installed: not judged")
            complaint, ptx = with_nvrtc(nvrtc, package, archs[0])
            judge(network.name, "NVRTC", complaint)
            for flag, instructions in PROMISES.items():
                if flag in options.flags:
                    for word in instructions:
                        judge(network.name, f"{word} in PTX", None if word in ptx else "not there")

    typed_too = nvrtc and (options.names == CHOSEN or "typed" in options.names)
    jobs = [functools.partial(product_in_ptx, name) for name in typed.MODELS if typed_too]
    jobs += [functools.partial(groups_in_ptx, name) for name in typed.GROUPS if typed_too]
    jobs += [programs, *(functools.partial(network_compiles, network) for network in chosen)]
    for job in shares.part(jobs, options):
        job()
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
