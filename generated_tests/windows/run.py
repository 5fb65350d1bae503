"""Packages as programs for Windows: cross-compiled by gcc and clang for mingw-w64 and by clang as cl, and run by Wine. What the
machine lacks is left out, and said."""
import pathlib
import re
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("python", "package"):
    sys.path.insert(0, str(ROOT / "generated_tests" / folder))
import external  # noqa: E402
import models  # noqa: E402
from checks import Checks, compare, run  # noqa: E402

GCC, LD, AR, OBJDUMP = (f"x86_64-w64-mingw32-{tool}" for tool in ("gcc", "ld", "ar", "objdump"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
LEVELS = {"v3": "avx2", "v4": "avx512vl"}  # and a flag of /proc/cpuinfo without which a processor has not all of it

# mingw-w64's headers, told that the compiler is Microsoft's, take attributes away, also those of vectors.
AS_CL = """#include <_mingw.h>
#undef __attribute__
#undef __MINGW_ATTRIB_NORETURN
#undef __MINGW_ATTRIB_DEPRECATED
#define __MINGW_ATTRIB_NORETURN
#define __MINGW_ATTRIB_DEPRECATED
"""

check = Checks()


def libraries():
    """The folder of gcc's own libraries."""
    return pathlib.Path(run(GCC, "-print-libgcc-file-name").stdout.strip()).parent


def wrapped(program):
    """A command that runs a program, as if it were one of this system. CMake links gcc's shared libraries, which lie in two folders."""
    command = program.with_suffix(".sh")
    folders = [libraries(), pathlib.Path("/usr/x86_64-w64-mingw32/lib")]
    path = ";".join("Z:" + str(folder).replace("/", "\\") for folder in folders)
    command.write_text(f"#!/bin/sh\nWINEPATH='{path}' exec wine '{program}' \"$@\"\n")
    command.chmod(0o755)
    return command


def runs(label, program, io, cpus=("best", "baseline", "v3", "v4")):
    """Right answers, of every variant that this processor runs."""
    if not shutil.which("wine"):
        return
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    for cpu in cpus:
        told = compare(wrapped(program), io, 1e-3, 1e-5, *(["--cpu", cpu] if cpu else []))
        can = LEVELS.get(cpu, flags[0]) in flags
        good = told.returncode == 0 and "PASS" in told.stdout if can else "does not have these kernels" in told.stderr
        check(f"{label} {'runs' if can else 'refuses'}{f': --cpu {cpu}' if cpu else ''}", good, (told.stdout + told.stderr)[-300:])


def make(package, *words):
    run("make", "-C", package, "clean")
    return run("make", "-j2", "-s", "-C", package, f"AR={AR}", "LDFLAGS=-static", *words)


def by_gcc(tmp, model, io):
    """The package's Makefile, warnings as errors, its program, its profile and its library."""
    package = check.emit(model, tmp / "gcc", "--name", "m")
    built = make(package, f"CC={GCC}", f"CFLAGS=-O2 {' '.join(WARNINGS)}", "m", "m_profile", "libm.so")
    if not check("gcc, make: no warnings", built.returncode == 0, built.stderr[-300:]):
        return
    runs("gcc, make", package / "m.exe", io)
    moves = run(OBJDUMP, "-d", "--no-show-raw-insn", package / "libm.a").stdout
    aligned = re.findall(r"vmov(?:aps|apd|dqa\w*) .*%[yz]mm.*", moves)
    check("gcc, make: no move of a wide vector trusts in the stack", "ymm" in moves and "zmm" in moves and not aligned, aligned[:2])
    for word, wide in (("", False), ("-DTC_UNALIGNED_STACK", True)):
        text = run(GCC, "-march=x86-64-v4", *word.split(), "-E", "-dM", "-include", package / "tc_simd.h", "-x", "c", "/dev/null").stdout
        check(f"gcc: vectors {'as wide as registers' if wide else 'that the stack is aligned for'}", f"#define TC_VL {16 if wide else 4}\n" in text)
    if shutil.which("wine"):
        program, folder = wrapped(package / "m.exe"), tmp / "written"
        told = [run(program, "--threads", n, "--inputs", io, "--outputs", folder / str(n)) for n in (1, 2)] if not folder.mkdir() else []
        same = all(t.returncode == 0 for t in told) and (folder / "1" / "output_0.npy").read_bytes() == (folder / "2" / "output_0.npy").read_bytes()
        check("gcc: folders are made, and two threads give the bytes of one", same, told)
        told = run(program, "--bench", "0.1")
        check("gcc: the clock runs", told.returncode == 0 and float(re.search(r"median (\S+) ms", told.stdout)[1]) > 0, told.stdout + told.stderr)
        told = run(wrapped(package / "m_profile.exe"), "--profile", "--bench", "0.1")
        check("gcc: a profile", told.returncode == 0 and "conv2d" in told.stdout, told.stdout + told.stderr)


def by_cmake(tmp, model, io):
    package, out = check.emit(model, tmp / "cmake", "--name", "m"), tmp / "cmake_out"
    built = run("cmake", "-S", package, "-B", out, "-DCMAKE_SYSTEM_NAME=Windows", f"-DCMAKE_C_COMPILER={GCC}", "-DCMAKE_EXE_LINKER_FLAGS=-static", "-DCMAKE_SHARED_LINKER_FLAGS=-static")
    built = run("cmake", "--build", out, "-j2", "--target", "m_program", "m_shared") if built.returncode == 0 else built
    if check("gcc, CMake: program and library", built.returncode == 0 and (out / "libm.dll").exists(), built.stderr[-300:]):
        runs("gcc, CMake", out / "m.exe", io)
        exported = run(OBJDUMP, "-p", out / "libm.dll").stdout
        check("gcc, CMake: the library has the API", all(name in exported for name in ("m_init", "m_run", "m_free", "m_weights")), exported[-300:])


def by_clang(tmp, model, io):
    """Clang for mingw-w64, with gcc's linker and libraries."""
    package = check.emit(model, tmp / "clang", "--name", "m")
    built = make(package, "CC=clang --target=x86_64-w64-windows-gnu", f"CFLAGS=-O2 {' '.join(WARNINGS)}", "TC_THREADS=",
                 f"LDFLAGS=-static -L{libraries()} --ld-path={shutil.which(LD)}", "m")
    if check("clang for mingw-w64, make: no warnings", built.returncode == 0, built.stderr[-300:]):
        runs("clang for mingw-w64", package / "m.exe", io)


def by_clang_cl(tmp, model, io):
    """Clang with the macros, the code and the command line of Microsoft's compiler. That one's headers and libraries are not to be
    had here: mingw-w64's stand for them, and gcc links."""
    package, shim = check.emit(model, tmp / "cl", "--name", "m"), tmp / "as_cl.h"
    shim.write_text(AS_CL)
    headers = pathlib.Path("/usr/share/mingw-w64/include")
    command = ["clang", "--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "-imsvc", headers, f"-FI{shim}", "-O2", "-W4", "-WX", "-GS-", "-Zl", "-c"]
    graph = [package / "m_graph.c", *sorted(package.glob("kernels/*.c"))]
    jobs = [(source, ["-DTC_HAVE_v3", "-DTC_HAVE_v4"], "own") for source in (package / "m.c", package / "main.c")]
    jobs += [(source, [], "any") for source in graph]
    jobs += [(source, [f"-DTC_VARIANT={v}", f"-march=x86-64-{v}"], v) for v in ("v3", "v4") for source in graph]
    for source, words, kind in jobs:
        built = run(*command, *words, f"-Fo{tmp / f'{source.stem}.{kind}.obj'}", source)
        if built.returncode:
            check(f"clang as cl: {source.name} {kind}", False, (built.stdout + built.stderr)[:300])
            return
    run(GCC, "-c", "m_weights.S", "-o", tmp / "weights.obj", cwd=package)
    built = run(GCC, *sorted(tmp.glob("*.obj")), "-o", tmp / "cl.exe")
    if check("clang as cl: no warnings", built.returncode == 0, built.stderr[-300:]):
        runs("clang as cl", tmp / "cl.exe", io)


def with_weights_beside(tmp, _, __):
    """--weights external: the file is mapped, shared, and refused where it is not what it should be."""
    model = tmp / "external.onnx"
    external.model_of(model)
    package = check.emit(model, tmp / "external", "--name", "m", "--weights", "external")
    built = make(package, f"CC={GCC}", f"CFLAGS=-O2 {' '.join(WARNINGS)}", "TC_VARIANTS=", "m")
    if not check("external weights: no warnings", built.returncode == 0, built.stderr[-300:]):
        return
    runs("external weights, beside the program", package / "m.exe", tmp / "m_io", [None])
    # aligned_alloc is not there: a block that nobody frees is as good.
    caller = external.CALLER.replace("aligned_alloc(M_ALIGN,", "aligned(").replace("  free(own);\n", "").replace(
        "int main", "static void *aligned(size_t n) { char *p = malloc(n + M_ALIGN); return p + (M_ALIGN - (size_t)p % M_ALIGN); }\nint main", 1)
    for label, words in (("mapped", []), ("one file", ["--single-file"])):
        where = check.emit(model, tmp / f"calls_{label[:3]}", "--name", "m", "--weights", "external", *words)
        (where / "caller.c").write_text(caller)
        built = run(GCC, "-O2", "-Wall", "-Werror", "-I.", *[s.relative_to(where) for s in external.sources(where)], "-o", "caller.exe", cwd=where)
        if check(f"a caller of external weights compiles: {label}", built.returncode == 0, built.stderr[-300:]) and shutil.which("wine"):
            told = run("wine", "caller.exe", "m_weights.bin", cwd=where)
            check(f"weights are shared and handed over: {label}", told.returncode == 0 and "cannot be read" in told.stdout, f"{told.returncode} {told.stderr[:300]}")
    if shutil.which("wine"):
        external.bad_files(check, tmp, package, wrapped(package / "m.exe"))


def main():
    if not shutil.which(GCC):
        print(f"note: not run, because there is no {GCC} here (Debian: gcc-mingw-w64-x86-64)\n0 passed, 0 failed")
        return 0
    if not shutil.which("wine"):
        print("note: built, not run, because there is no wine here (Debian: wine64)")
    with tempfile.TemporaryDirectory() as temporary:
        base = pathlib.Path(temporary)
        model = models.cnn(base / "cnn.onnx")
        io = models.reference(model, base / "io")
        parts = [by_gcc, by_cmake, by_clang, by_clang_cl, with_weights_beside]

        def of(part):
            tmp = base / part.__name__
            tmp.mkdir()
            return lambda: part(tmp, model, io)

        check.run([of(part) for part in parts], quick=len(parts))
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
