#!/usr/bin/env python3
"""Checks CUDA on the CPU: the samples are right under every order, planted bugs are found by what is said to find them, the
runtime API keeps CUDA's rules, and a CUDA compiler, where there is one, accepts the same files. One line per failure, then
'N passed, N failed'."""
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cuda_gates"), str(HERE.parent / "python")]
from checks import Checks, run  # noqa: E402
from nvrtc import Nvrtc  # noqa: E402
from verdicts import Verdicts, compiler_version  # noqa: E402

TEXT = HERE.parents[1] / "templates" / "text"
EMULATION = TEXT / "cuda_on_cpu"
SAMPLES = sorted((HERE / "samples").glob("*.cu"))
ORDERS = ["forward", "reverse", "random:1", "random:2"]
STREAMS = ["early", "late", "random:1", "random:2"]
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
CHECK_FLAGS = ["-O3", "-g", "-DTC_CUDA_CHECK=1", "-fsanitize=thread,alignment,bounds"]

# What is found without the checker, in every order: words of stderr.
PLAIN = {
    "barrier_in_branch": "__syncthreads() at", "early_return": "__syncthreads() at", "two_barriers": "wait in different",
    "half_warp": "shuffle at", "half_warp_in_a_reduction": "shuffle at", "misaligned_vector": "misaligned access at", "deadlock": "__syncwarp() at",
    "past_the_end": "access outside memory",
}
# What the checker says, in every order.
CHECKED = {
    "misaligned_cast": "misaligned access", "past_the_end": "access outside of memory", "host_pointer": "memory that is not the device's",
    "two_blocks_one_element": "race", "block_reads_what_another_updates": "race", "same_value_twice": "race", "no_barrier": "race",
    "no_syncwarp": "race", "cp_async_without_wait": "nobody has written", "cp_async_over_readers": "race",
    "uninitialised_shared": "nobody has written", "uninitialised_dynamic": "nobody has written", "past_dynamic": "access outside of memory",
    "past_an_array": "index outside of an array", "past_a_view": "index outside of an array",
    "array_begins_without_barrier": "race", "array_holds_what_another_left": "nobody has written", "uninitialised_device": "nobody has written", "atomic_and_plain": "race",
    "local_memory": "local memory of another thread",
}
RIGHT = ["arrays_handed_over_right", "barrier_right", "syncwarp_right", "constants_right", "bad_index_right"]
API = ["memory", "device", "configurations", "failure", "streams", "graphs", "capture_errors", "threads", "protect"]

check = Checks(only_failures=True)


def call(command, **env):
    return run(*command, env={**os.environ, **env}, errors="replace")


def said(done):
    """What a program that is wrong says of it; never empty."""
    return (done.stderr.strip() or done.stdout.strip())[:600] or f"exit code {done.returncode} without a word"


def must(command):
    done = call(command)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {said(done)}")


def found_nothing(done):
    """None if a program ended well and the checker, which was in it, found nothing."""
    return None if done.returncode == 0 and "nothing found" in done.stderr else said(done)


class Build:
    """Programs of one compiler and mode; those of both modes share the compiled emulation."""

    def __init__(self, work, compiler, checked):
        self.compiler, self.checked = compiler, checked
        self.folder = work / (compiler + ("-checked" if checked else ""))
        self.folder.mkdir()
        self.flags = ["-std=c++17", "-fno-strict-aliasing", *WARNINGS, f"-I{TEXT}", f"-I{EMULATION}"]
        self.flags += CHECK_FLAGS if checked else ["-O3"]
        if checked and compiler == "g++":
            self.flags.append("--param=tsan-instrument-func-entry-exit=0")
        self.parts = []
        for source in sorted(EMULATION.glob("*.cc")):
            part = work / f"{compiler}-{source.stem}.o"
            if not part.exists():
                must([compiler, "-std=c++17", "-O2", *WARNINGS, "-Wpedantic", "-c", source, "-o", part])
            if checked or not source.stem.endswith("_check"):
                self.parts.append(part)

    def program(self, source, *defines):
        name = self.folder / ("-".join([source.stem, *defines]).replace("=", "") + ".program")
        must([self.compiler, *self.flags, *defines, "-xc++", "-c", source, "-o", f"{name}.o"])
        must([self.compiler, f"{name}.o", *self.parts, "-pthread", "-o", name])
        return name


def hashes(done):
    return re.findall(r"hash \w+", done.stdout)


def wrong_sample(done):
    if done.returncode or "FAIL" in done.stdout or "PASS" not in done.stdout:
        return said(done)
    return None


def check_samples(builds, samples):
    """Right, and the same bits, with each compiler under every order of threads and of streams."""
    for source in samples:
        reference = None
        for build in builds:
            program = build.program(source)
            for variable, values in (("TC_CUDA_ORDER", ORDERS), ("TC_CUDA_STREAM", STREAMS[1:]), ("TC_CUDA_PROTECT", ["1"])):
                for value in values[:2] if build.checked else values:
                    done = call([program], **{variable: value})
                    problem = wrong_sample(done)
                    if not problem and build.checked:
                        problem = found_nothing(done)
                    reference = reference or hashes(done)
                    # expf and exp2f are the host's, and a compiler may have versions of its own
                    if not problem and hashes(done) != reference and build.compiler == builds[0].compiler and not build.checked:
                        problem = "other bits than in forward order"
                    check.no_problem(f"{source.stem} {build.folder.name} {variable}={value}", problem)


def marked_lines(kernel):
    """The lines that say 'here' in a kernel of bugs.cu."""
    lines, inside = [], False
    for number, line in enumerate((HERE / "bugs.cu").read_text().splitlines(), 1):
        if line.startswith("KERNEL("):
            inside = line.startswith(f"KERNEL({kernel})")
        if inside and "// here" in line:
            lines.append(number)
    return lines


def not_found(done, words, kernel, place=True):
    report = next((line for line in done.stderr.splitlines() if words in line and kernel in line), None)
    if done.returncode == 0:
        return "exit code 0"
    if report is None:
        return f"no report of {words!r} but: {said(done)}"
    if place and not any(f"bugs.cu:{line}" in report for line in marked_lines(kernel)):
        return f"the report names another line: {report}"
    return None


def check_bugs(plain, checked):
    program, checked_program = plain.program(HERE / "bugs.cu"), checked.program(HERE / "bugs.cu")
    for kernel, words in PLAIN.items():
        for order in ORDERS:
            done = call([program, kernel], TC_CUDA_ORDER=order)
            check.no_problem(f"{kernel} plain {order}", not_found(done, words, kernel, place=words != "access outside memory"))
    for kernel, words in CHECKED.items():
        for order in ORDERS:
            done = call([checked_program, kernel], TC_CUDA_ORDER=order)
            check.no_problem(f"{kernel} {checked.folder.name} {order}", not_found(done, words, kernel))
    for kernel in RIGHT:
        for order in ORDERS:
            done = call([checked_program, kernel], TC_CUDA_ORDER=order)
            check.no_problem(f"{kernel} {checked.folder.name} {order}", found_nothing(done))


def check_bugs_in_samples(plain, checked):
    """Bugs that give wrong numbers in some order, and that the checker finds in every order."""
    samples = {s.stem: s for s in SAMPLES}
    for name in ("reduction", "sgemm"):
        program = plain.program(samples[name], "-DBUG=1")
        fails = [order for order in ORDERS if "FAIL" in call([program], TC_CUDA_ORDER=order).stdout]
        check.no_problem(f"{name} without a barrier, plain", None if fails else "right in every order")
        program = checked.program(samples[name], "-DBUG=1")
        for order in ORDERS:
            done = call([program], TC_CUDA_ORDER=order)
            found = done.returncode != 0 and re.search(rf"race \(\S+ after \S+\) at {name}\.cu:\d+", done.stderr)
            check.no_problem(f"{name} without a barrier, {checked.folder.name} {order}", None if found else said(done))
    program = plain.program(samples["elementwise"], "-DBUG=1")
    wrong = {stream: "FAIL" in call([program], TC_CUDA_STREAM=stream).stdout for stream in STREAMS}
    check.no_problem("streams without a wait: late", None if wrong["late"] else "right")
    check.no_problem("streams without a wait: early", "wrong" if wrong["early"] else None)


def check_api(build):
    program = build.program(HERE / "api.cc")
    for name in API:
        for stream in STREAMS:
            done = call([program, name], TC_CUDA_STREAM=stream, TC_CUDA_PROTECT="1")
            check.no_problem(f"api {name} {stream}", said(done) if done.returncode else None)


def check_cmake(work, compiler):
    """cuda_on_cpu.cmake in a project of its own, with and without checks, a space in its path."""
    folder = work / f"a project {compiler}"
    shutil.copytree(EMULATION, folder / "cuda_on_cpu")
    for f in (TEXT / "tc_cuda.h", TEXT / "tc_scalar.h", TEXT / "tc_types.h", HERE / "samples" / "sample.h", HERE / "samples" / "reduction.cu"):
        shutil.copy(f, folder)
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.13)\nproject(sample LANGUAGES CXX)\nadd_library(kernels STATIC reduction.cu)\n"
                                           "include(${CMAKE_CURRENT_LIST_DIR}/cuda_on_cpu/cuda_on_cpu.cmake)\ntc_cuda_on_cpu(kernels)\n"
                                           "file(WRITE ${CMAKE_BINARY_DIR}/empty.cc \"\")\nadd_executable(sample ${CMAKE_BINARY_DIR}/empty.cc)\n"
                                           "target_link_libraries(sample PRIVATE kernels)\n")
    for checked in ("OFF", "ON"):
        build = folder / f"build {checked}"
        try:
            must(["cmake", "-S", folder, "-B", build, f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Release", f"-DTC_CUDA_CHECK={checked}"])
            must(["cmake", "--build", build])
            done = call([build / "sample"])
            problem = wrong_sample(done) or (None if ("nothing found" in done.stderr) == (checked == "ON") else said(done))
        except RuntimeError as e:
            problem = str(e)
        check.no_problem(f"cuda_on_cpu.cmake {compiler} TC_CUDA_CHECK={checked}", problem)


def check_ucontext(build, work):
    """The fibers of machines that are neither x86-64 nor aarch64."""
    part = work / "ucontext.o"
    must([build.compiler, "-std=c++17", "-O2", *WARNINGS, "-DTC_CPU_UCONTEXT", "-c", EMULATION / "cuda_on_cpu_fiber.cc", "-o", part])
    for source in SAMPLES:
        if source.stem in ("reduction", "attention"):
            objects = [p for p in build.parts if not p.stem.endswith("_fiber")]
            must([build.compiler, *build.flags, "-xc++", source, "-xnone", *objects, part, "-pthread", "-o", work / "ucontext"])
            check.no_problem(f"{source.stem} with ucontext", wrong_sample(call([work / "ucontext"], TC_CUDA_ORDER="random:1")))


def check_sanitizers(build, work):
    """The emulation and a host program that forks, joins and replays under the compiler's own sanitizers: no leak either."""
    sources = [s for s in EMULATION.glob("*.cc") if not s.stem.endswith("_check")]
    must([build.compiler, *build.flags, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-xc++", HERE / "samples" / "elementwise.cu",
          *sources, "-pthread", "-o", work / "sanitized"])
    for stream in STREAMS:
        done = call([work / "sanitized"], TC_CUDA_STREAM=stream)
        check.no_problem(f"elementwise sanitized {stream}", wrong_sample(done))


def check_nvcc(work):
    """The same files for real machines."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        print("nvcc: not checked, no CUDA toolkit is installed")
        return
    machines = [flag for m in ("75", "80", "90") for flag in ("-gencode", f"arch=compute_{m},code=sm_{m}")]
    for source in [*SAMPLES, HERE / "words.cu"]:
        done = call([nvcc, "-std=c++17", "-Werror", "all-warnings", *machines, f"-I{TEXT}", "-c", source, "-o", work / "nvcc.o"])
        check.no_problem(f"nvcc {source.stem}", said(done) if done.returncode else None)


def check_nvrtc():
    """Device code without system headers."""
    nvrtc = Nvrtc.find()
    if nvrtc is None:
        print("NVRTC: not checked, it is not installed")
        return
    headers = {f.name: f.read_text() for f in TEXT.glob("tc_*.h")}
    for machine in ("75", "80", "90"):
        compiled, log, _ = nvrtc.compile((HERE / "words.cu").read_text(), headers, machine)
        check.no_problem(f"NVRTC sm_{machine}", None if compiled else log[:500])


def main():
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        compilers = [compiler for compiler in ("g++", "clang++") if shutil.which(compiler)]
        known = Verdicts()

        @functools.cache
        def build(compiler, checked):
            return Build(work, compiler, checked)

        def builds():
            return [build(compiler, checked) for compiler in compilers for checked in (False, True)]

        def unless_known(name, part):
            """`part`, if it is not known to pass."""
            verdict = known.key(name, TEXT, HERE, [compiler_version(compiler) for compiler in compilers])

            def run_part():
                before = check.failed
                if verdict in known:
                    check(f"{name} are known to pass", True)
                    return
                part()
                if check.failed == before:
                    known.add(verdict)
            return run_part

        parts = {f"sample {source.stem}": functools.partial(lambda source: check_samples(builds(), [source]), source) for source in SAMPLES}
        for compiler in compilers:
            parts[f"bugs {compiler}"] = functools.partial(lambda c: check_bugs(build(c, False), build(c, True)), compiler)
            parts[f"CMake {compiler}"] = functools.partial(check_cmake, work, compiler)
        parts["bugs in samples"] = lambda: check_bugs_in_samples(*builds()[:2])
        parts["API"] = lambda: check_api(builds()[0])
        parts["ucontext"] = lambda: check_ucontext(builds()[0], work)
        parts["sanitizers"] = lambda: check_sanitizers(builds()[0], work)
        parts = {name: unless_known(name, part) for name, part in parts.items()}
        check.run([*parts.values(), lambda: (check_nvcc(work), check_nvrtc())], quick=4)
        known.report()
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
