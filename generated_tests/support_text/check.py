#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the support text in every mode it promises and runs it: warnings, math functions, and the program around a model
(main.c.in, Makefile.in, CMakeLists.txt.in) with a model that copies its inputs, fed by NumPy and ONNX.

    check.py [--stride N] [--share K/N] [modes] [math] [integers] [parallel] [program] [archive] [fuzz] [corpus]   needs numpy, ml_dtypes, onnx

A check passes again without running while no byte of the text, of these tests and of the compilers has changed. The last line
reads 'N passed, N failed'.
"""
import argparse
import json
import os
import pathlib
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

from echo_package import DTYPES, TEXT, proto, read_back, samples, write_package

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUZZ = ROOT / "generated_tests" / "fuzz"
ACCURACY = ROOT / "docs" / "accuracy.md"
sys.path.append(str(ROOT / "generated_tests" / "python"))
import shares  # noqa: E402
from verdicts import Verdicts, compiler_version  # noqa: E402

CUDA = {"tc_cuda.h", "tc_jit.h"}  # C++ only: run_cuda_on_cpu and run_cuda_gates compile these
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror".split()
MORE_WARNINGS = "-Wcast-align -Wdouble-promotion -Wvla -Wpointer-arith".split()
C_STANDARDS = ["-std=c99", "-std=c11"]
X86 = platform.machine() in ("x86_64", "AMD64")
MACHINES = ["", "-DTC_VL=1"] + (["-march=x86-64-v3", "-march=x86-64-v4", "-DTC_VL=1 -march=x86-64-v3"] if X86 else [])


def compilers(cxx):
    return [c for c in (("g++", "clang++") if cxx else ("gcc", "clang")) if shutil.which(c)]


def call(command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)


def must(command, **more):
    done = call(command, **more)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_modes(work, _):
    """Every header by itself, and every function of it (math_test.c, double_test.c, half_test.c and int_test.c use the vector ones), without a warning."""
    source = work / "all.c"
    names = sorted(p.name for p in TEXT.glob("tc_*.h") if p.name not in CUDA)
    alone = []
    for name in names:
        one = work / f"one_{name}.c"
        one.write_text(f'#include "{name}"\nextern int tc_nothing;\n')
        alone.append(one)
        if "TC_STRINGS" in (TEXT / name).read_text():  # as packages with strings have it
            two = work / f"two_{name}.c"
            two.write_text("#define TC_STRINGS\n" + one.read_text())
            alone.append(two)
    source.write_text("#define _POSIX_C_SOURCE 199309L\n" + "".join(f'#include "{n}"\n' for n in names) + "extern int tc_nothing;\n")
    tests = [pathlib.Path(__file__).with_name(n) for n in ("math_test.c", "double_test.c", "half_test.c", "int_test.c")]
    for machine in MACHINES:
        for cxx in (False, True):
            for compiler in compilers(cxx):
                for standard in ["-std=c++17"] if cxx else C_STANDARDS:
                    flags = [compiler, standard, "-x", "c++" if cxx else "c", *WARNINGS, *machine.split(), "-O1", f"-I{TEXT}", f"-I{ROOT}", "-c", "-o", "/dev/null"]
                    for file in [source, *tests, *(alone if machine == "" else [])]:
                        must([*flags, *([] if file in tests else MORE_WARNINGS), file])


def bounds(source):
    """The bounds of the table of a test in C, as docs/accuracy.md writes them; what is exact, and what is libm's, is not there."""
    rows = re.findall(r'\{"(\w+)", \w+, \w+, ([\d.]+), ([\d.e-]+)[,}]', pathlib.Path(__file__).with_name(source).read_text())
    return {name: f"{float(ulp):g} ulp" + (f" or {float(absolute):g}" if float(absolute) else "") for name, ulp, absolute in rows if float(ulp) and name != "lanes"}


def check_accuracy_page():
    rows = re.findall(r"^\| (\w+) \| (f32|f64) \| ([^|]*) \| ([\d.]*)", ACCURACY.read_text(), re.M)
    for dtype, source in (("f32", "math_test.c"), ("f64", "double_test.c")):
        stated = {name: bound for name, t, bound, _ in rows if t == dtype}
        assert stated == bounds(source), (dtype, stated, bounds(source))
    for name, dtype, bound, measured in rows:
        assert not measured or float(measured) <= float(bound.split()[0]), (name, dtype)


def check_math(work, stride):
    check_accuracy_page()
    for machine in ["-march=native -ffp-contract=fast", "-march=native -ffp-contract=off", "-march=native -DTC_VL=8 -ffp-contract=fast" if X86 else "-O3", "-DTC_VL=1 -ffp-contract=off", ""]:
        for compiler in compilers(False):
            program = work / "math"
            for source, amount in (("math_test.c", stride), ("double_test.c", 300000), ("half_test.c", stride * 7)):
                must([compiler, "-std=gnu11", "-O2", *machine.split(), f"-I{ROOT}", pathlib.Path(__file__).with_name(source), "-o", program, "-lm"])
                must([program, str(amount)])
    program = work / "math_asan"
    for source, amount in (("math_test.c", stride * 101), ("double_test.c", 30000), ("half_test.c", stride * 101)):
        for lanes in ([], ["-DTC_VL=1"]):
            must(["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-march=native", *lanes, f"-I{ROOT}",
                  pathlib.Path(__file__).with_name(source), "-o", program, "-lm"])
            must([program, str(amount)])


def check_integers(work, _):
    """tc_int.h against plain C, by every instruction that it has a body for and this machine runs."""
    machines = ["-march=native", "-DTC_VL=1", ""] + (["-march=x86-64-v3", "-DTC_VL=8", "-march=native -mno-avx512vnni"] if X86 else [])
    program, source = work / "int", pathlib.Path(__file__).with_name("int_test.c")
    for machine in machines:
        for compiler in compilers(False):
            must([compiler, "-std=c99", "-O2", *machine.split(), f"-I{ROOT}", source, "-o", program, "-lm"])
            must([program])
    must(["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{ROOT}", source, "-o", program, "-lm"])
    must([program])
    if shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64"):
        for machine in ["", "-march=armv8.2-a+dotprod", "-march=armv8.6-a+i8mm"]:
            must(["aarch64-linux-gnu-gcc", "-std=c99", "-O2", "-static", *machine.split(), f"-I{ROOT}", source, "-o", program, "-lm"])
            must(["qemu-aarch64", "-cpu", "max", program])
    else:
        print("integers: no aarch64-linux-gnu-gcc with qemu-aarch64; the bodies for aarch64 are not run")


def check_parallel(work, _):
    """Each chunk runs once: in a loop, by tc_pool.c and by OpenMP with any number of threads, in the user's pool."""
    (work / "pool.h").write_text("static int pool_calls;\nstatic inline void pool(void (*part)(const void *, int), const void *args, int chunks)\n"
                                 "{\n  pool_calls++;\n  while (chunks-- > 0) part(args, chunks);\n}\n#define TC_PARALLEL_FOR(part, args, chunks) pool(part, args, chunks)\n")
    source = work / "parallel.c"
    source.write_text('#include "tc_parallel.h"\n#include <stdio.h>\ntypedef struct { int *ran; } arguments;\n'
                      "static void part(const void *args, int chunk) { ((const arguments *)args)->ran[chunk] += chunk + 1; }\n"
                      "int main(void)\n{\n  int ran[37] = {0}, bad = 0;\n  const arguments a = {ran};\n  TC_PARALLEL_FOR(part, &a, 37);\n  TC_PARALLEL_FOR(part, &a, 0);\n"
                      "  for (int i = 0; i < 37; i++) bad += ran[i] != i + 1;\n#ifdef POOL\n  bad += pool_calls != 2;\n#endif\n  return bad;\n}\n")
    for compiler in compilers(False):
        program = work / "parallel"
        for flags in [[], ["-fopenmp"], ["-DTC_PTHREADS", "-pthread"], ["-DPOOL", "-DTC_PTHREADS", "-include", work / "pool.h"]]:
            if call([compiler, *flags, "-x", "c", "/dev/null", "-fsyntax-only"]).returncode != 0:
                continue  # no OpenMP
            must([compiler, "-std=c99", *WARNINGS, "-O2", *flags, f"-I{TEXT}", source, TEXT / "tc_pool.c", "-o", program])
            for threads in ("1", "2", "5"):
                must([program], env={**os.environ, "OMP_NUM_THREADS": threads})


def build_package(work):
    out = work / "echo"
    write_package(out)
    must(["make", "-C", out, "-j2", "CFLAGS=-O1 -Wall -Wextra -Werror -std=c99"])
    must(["make", "-C", out, "clean"])
    must(["make", "-C", out, "-j2", "echo_profile", "CFLAGS=-O1 -std=c99 -D_POSIX_C_SOURCE=199309L " + " ".join(WARNINGS)])
    must(["make", "-C", out, "CC=clang" if shutil.which("clang") else "CC=gcc", "TC_ARCH=", "TC_THREADS="])
    (work / "app").mkdir()
    (work / "app" / "app.c").write_text('#include "echo.h"\nint main(void) { return echo_check_weights(echo_weights()) ? 0 : 1; }\n')
    (work / "app" / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.13)\nproject(app C)\nadd_subdirectory(../echo echo)\nadd_executable(app app.c)\n"
                                                 "target_link_libraries(app PRIVATE echo::echo)\n")
    must(["cmake", "-S", work / "app", "-B", work / "app" / "b"])
    must(["cmake", "--build", work / "app" / "b"])
    must([work / "app" / "b" / "app"])
    must(["cmake", "-S", out, "-B", work / "b"])
    must(["cmake", "--build", work / "b"])
    return work / "b" / "echo"


def write_inputs(work, arrays):
    """The same arrays in each way the program reads."""
    import numpy as np
    forms = {}
    for form in ("raw", "typed", "mixed", "named"):
        folder = forms[form] = work / form
        folder.mkdir()
        for k, (a, (name, _)) in enumerate(zip(arrays, DTYPES)):
            stem = f"x_{name.lower()}" if form == "named" else f"input_{k}"
            if form == "mixed" and a.dtype.isbuiltin == 1:
                kind = k % 3
                np.save(folder / stem, np.asfortranarray(a) if kind == 0 else a.astype(a.dtype.newbyteorder(">")) if kind == 1 else a)
            else:
                (folder / f"{stem}.pb").write_bytes(proto(a, name, form == "typed").SerializeToString())
    return forms


def check_program(work, _):
    import numpy as np
    program = build_package(work)
    arrays = samples(1)
    for form, folder in write_inputs(work, arrays).items():
        out = work / f"out_{form}"
        must([program, "--inputs", folder, "--outputs", out])
        for k, a in enumerate(arrays):
            got = read_back(out, k)
            assert got.dtype == a.dtype and got.tobytes() == a.tobytes(), (form, DTYPES[k], got, a)
        must([program, "--inputs", folder, "--expect", out])
    check_failures(work, program, arrays)
    check_profile(work, work / "echo" / "echo_profile", program)
    line = must([program, "--bench", "0.05", "--json"]).splitlines()[-1]
    assert set(json.loads(line)) == {"runs", "min_ms", "median_ms", "p95_ms", "p99_ms"}, line
    assert must([program, "--seed", "3"]) == must([program, "--seed", "3", "--threads", "2"]) != must([program, "--seed", "4"])
    assert "row 2:" in must([program, "--top", "3"])


def check_profile(work, profile, program):
    """The table, and the trace; a program without hooks says how to get one with them."""
    told = json.loads(must([profile, "--profile", "--bench", "0.02", "--json", "--trace", work / "trace.json"]).splitlines()[-1])
    (row,) = told["kernels"]
    assert row["kernel"] == "copy" and row["calls"] == 1 and row["share"] == 1, told
    assert abs(row["gflops"] * row["mean_us"] - 3) < 1e-3 and abs(row["gbs"] * row["mean_us"] - 3) < 1e-3, row
    assert abs(row["floor_share"] * row["mean_us"] - 0.002) < 1e-6 and row["mean_us"] <= told["mean_us"], row
    (process, event) = json.loads((work / "trace.json").read_text())["traceEvents"]
    assert process["args"]["name"] == "echo" and event["name"] == "copy" and event["ph"] == "X", (process, event)
    assert event["args"]["step"] == "echo_copy(in, out)" and event["dur"] > 0, event
    assert "floor  kernel" in must([profile, "--profile", "--bench", "0.01"])
    for words in (["--profile"], ["--trace", work / "no.json"]):
        told = call([program, *words])
        assert told.returncode == 2 and "make NAME_profile" in told.stderr, told
    told = call([profile, "--trace", work / "none" / "trace.json"])
    assert told.returncode == 1 and "cannot write" in told.stderr, told
    must(["make", "-B", "-C", work / "echo", "echo_profile", "CFLAGS=-O1 -std=c99 -D_POSIX_C_SOURCE=199309L -DTC_NO_FLOORS " + " ".join(WARNINGS)])
    (row,) = json.loads(must([profile, "--profile", "--bench", "0.02", "--json"]).splitlines()[-1])["kernels"]
    assert "floor_share" not in row and row["gbs"] > 0, row


def check_failures(work, program, arrays):
    """Each wrong input is refused, with the words that name it."""
    import numpy as np

    def refused(words, *arguments):
        done = call([program, *arguments])
        assert done.returncode != 0 and words in done.stderr + done.stdout, (words, done)

    bad = work / "bad"
    shutil.copytree(work / "raw", bad)
    refused("unknown option", "--frobnicate")
    refused("needs a number", "--bench", "x")
    refused("has neither input_0", "--inputs", work)
    np.save(bad / "input_0.npy", np.zeros((5, 3), np.float32))
    refused("float [3, 5], the file has float [5, 3]", "--inputs", bad)
    np.save(bad / "input_0.npy", np.zeros((3, 5), np.float64))
    refused("the file has double", "--inputs", bad)
    (bad / "input_0.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff")
    refused("not a .npy file", "--inputs", bad)
    np.save(bad / "input_0.npy", arrays[0])
    shutil.copy(bad / "input_0.npy", bad / f"input_{len(DTYPES)}.npy")
    refused(f"the model has {len(DTYPES)} inputs", "--inputs", bad)
    expect = work / "out_raw"
    a = np.load(expect / "output_0.npy")
    a[2, 2] += 1
    np.save(expect / "output_0.npy", a)
    refused("FAIL", "--inputs", work / "raw", "--expect", expect)


# y = a * b, of which only the first row counts: an output of dynamic size.
SCALE = r"""
#define _POSIX_C_SOURCE 199309L
#include "tc_main.h"
static const int64_t dims[] = {2, 3};
static const tc_io_info in[] = {{"a", TC_FLOAT, 2, dims}, {"b", TC_INT64, 0, NULL}}, out[] = {{"y", TC_FLOAT, 2, dims}};
static int open_model(void *m, const void *weights, size_t bytes, int cpu, const int64_t *sizes) { (void)m, (void)weights, (void)bytes, (void)cpu, (void)sizes; return 0; }
static void close_model(void *m) { (void)m; }
static const char *message(int s) { return s == 4 ? "out of range" : "?"; }
static int run(void *m, const void *const *x, const int64_t *sizes, void *const *y, int64_t *const *y_dims)
{
  const int64_t b = *(const int64_t *)x[1];
  (void)m, (void)sizes;
  for (int k = 0; k < 6; k++) ((float *)y[0])[k] = ((const float *)x[0])[k] * (float)b;
  y_dims[0][0] = 1;
  return b < 0 ? 4 : 0;
}
int main(int c, char **v)
{
  tc_model m = {"scale", 2, 1, in, out, NULL, 0, NULL, 0, NULL, 0, 16, 4, NULL, 64, NULL, NULL, NULL, open_model, NULL, run, close_model, NULL, message};
  return tc_main(&m, c, v);
}
"""


def check_archive(work, _):
    import numpy as np
    source, program = work / "scale.c", work / "scale"
    source.write_text(SCALE)
    must(["gcc", "-std=c99", *WARNINGS, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{TEXT}", source, "-o", program])
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(work / "right.npz", input_0=a, input_1=np.int64(3), output_0=a[:1] * 3)
    np.savez_compressed(work / "named.npz", a=a, b=np.int64(3), output_0=a[:1] * 3)
    np.savez(work / "wrong.npz", input_0=a, input_1=np.int64(3), output_0=a[:1] * 3 + 1)
    np.savez(work / "more.npz", a=a, b=np.int64(2), c=a)
    np.savez(work / "negative.npz", a=a, b=np.int64(-1))
    for name in ("right", "named"):
        assert "PASS" in must([program, "--inputs", work / f"{name}.npz", "--expect", work / "right.npz"])
    must([program, "--inputs", work / "right.npz", "--outputs", work / "out"])
    assert np.array_equal(np.load(work / "out" / "output_0.npy"), a[:1] * 3)
    assert "note: scheduled for vectors of 16 floats, compiled for 4" in call([program, "--bench", "0.01"]).stderr
    for arguments, words in [(["right", "--expect", work / "wrong.npz"], "3 of 3 differ"), (["more"], "holds 3 arrays"), (["negative"], "out of range"), (["none"], "cannot read")]:
        done = call([program, "--inputs", work / f"{arguments[0]}.npz", *arguments[1:]])
        assert done.returncode == 1 and words in done.stdout + done.stderr, (words, done)


def check_fuzz(work, _):
    """Broken files are refused without a fault: the parsers alone, under sanitizers; and archives of both kinds."""
    import numpy as np
    source = work / "parse.c"
    source.write_text('#include "tc_files.h"\nint main(int argc, char **argv)\n{\n  tc_source s;\n  tc_tensor t;\n  int r;\n  if (argc != 3 || tc_source_open(&s, argv[1])) return 3;\n'
                      "  t.data = NULL;\n  r = tc_source_try(&s, argv[2], &t);\n  if (r == 0) fwrite(t.data, 1, tc_bytes(&t), stdout);\n  free(t.data);\n  free(s.archive);\n  return r < 0 ? 2 : r;\n}\n")
    program = work / "parse"
    must(["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{TEXT}", source, "-o", program])
    rng = np.random.default_rng(2)
    arrays = {"a": rng.integers(0, 3, (40, 50)).astype(np.int64), "b": rng.normal(size=1000).astype(np.float32), "c": np.zeros((300, 300), np.int8), "d": np.float64(3)}
    for name, save in (("stored", np.savez), ("deflated", np.savez_compressed)):
        save(work / f"{name}.npz", **arrays)
        for key, a in arrays.items():
            done = subprocess.run([program, work / f"{name}.npz", key], capture_output=True)
            assert done.returncode == 0 and done.stdout == a.tobytes(), (name, key, done.stderr)
    seeds = [(work / "stored.npz").read_bytes(), (work / "deflated.npz").read_bytes()]
    folder = work / "fuzz"
    folder.mkdir()
    np.save(folder / "x.npy", arrays["d"])
    small = [(folder / "x.npy").read_bytes()] + [proto(a, n, typed).SerializeToString() for a, (n, _) in zip(samples(3), DTYPES) for typed in (False, True)]
    (folder / "x.npy").unlink()
    random.seed(4)
    for i in range(400):
        data = bytearray(random.choice(seeds if i % 2 else small))
        for _ in range(random.choice([0, 1, 2, 8])):
            data[random.randrange(len(data))] = random.choice([0, 1, 127, 128, 255, random.randrange(256)])
        if random.random() < 0.3:
            data = data[: random.randrange(len(data))]
        archive, npy = i % 2 == 1, data[:6] == b"\x93NUMPY"
        file = work / "fuzz.npz" if archive else folder / ("x.npy" if npy else "x.pb")
        file.write_bytes(data)
        done = subprocess.run([program, file if archive else folder, random.choice("abcd") if archive else "x"], capture_output=True, timeout=60)
        assert done.returncode in (0, 1, 2) and b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr, done.stderr.decode(errors="replace")
        file.unlink()


def check_corpus(work, _):
    """The kept corpus of the fuzz target of the readers, under sanitizers."""
    program = work / "replay"
    must(["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{TEXT}", FUZZ / "read_tensor.c", FUZZ / "replay.c", "-o", program])
    must([program, *sorted((FUZZ / "corpus" / "read_tensor").iterdir())])


CHECKS = {"modes": check_modes, "math": check_math, "integers": check_integers, "parallel": check_parallel, "program": check_program,
          "archive": check_archive, "fuzz": check_fuzz, "corpus": check_corpus}


def passes(name, stride, known):
    """Runs a check that is not known to pass; returns whether it passed, after lines that say why it did not."""
    tools = [compiler_version(compiler) for cxx in (False, True) for compiler in compilers(cxx)]
    verdict = known.key(name, stride, TEXT, FUZZ, ACCURACY, pathlib.Path(__file__).parent, tools)
    if verdict not in known:
        with tempfile.TemporaryDirectory() as work:
            try:
                CHECKS[name](pathlib.Path(work), stride)
            except (Exception, SystemExit) as failure:  # must() ends with a text
                print(failure if isinstance(failure, SystemExit) else traceback.format_exc(), f"{name}: FAILED", sep="\n", flush=True)
                return False
        known.add(verdict)
    print(f"{name}: ok", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stride", type=int, default=4337)
    shares.add_option(parser, quick=3)
    parser.add_argument("checks", nargs="*", default=[], help=" ".join(CHECKS))
    options = parser.parse_args()
    known = Verdicts()
    results = [passes(name, options.stride, known) for name in shares.part(options.checks or CHECKS, options)]
    known.report()
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    os.environ.pop("MAKEFLAGS", None)
    main()
