"""Packages for several processors: what the build files make of one text, and which of it an instance runs."""
import pathlib
import re
import shutil

from checks import compare, run

LEVELS = {"v3": {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"},
          "v4": {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}

CHOICE = r"""
#include "cnn.h"
#include <stdio.h>
int main(void)
{
  cnn m;
  int kinds[] = {CNN_CPU_BEST, CNN_CPU_BASELINE, CNN_CPU_V3, CNN_CPU_V4, 99};
  for (int k = 0; k < 5; k++) {
    cnn_status s = cnn_init_cpu(&m, NULL, 0, NULL, 0, (cnn_cpu)kinds[k]);
    printf("%d ", s == CNN_OK ? (int)m.cpu : s == CNN_E_CPU ? -1 : -2);
    if (s == CNN_OK) cnn_free(&m);
  }
  cnn_status s = cnn_init(&m, NULL, 0, NULL, 0);
  printf("%d\n", s == CNN_OK ? (int)m.cpu : s == CNN_E_CPU ? -1 : -2);
  if (s == CNN_OK) cnn_free(&m);
  return 0;
}
"""


def chooser(check, tmp, package, what):
    """The program CHOICE with the library of a package, which is built; None if it does not build."""
    (tmp / "choice.c").write_text(CHOICE)
    built = run("gcc", "-std=c99", "-I", package, tmp / "choice.c", package / "libcnn.a", "-lm", "-pthread", "-o", tmp / "choice")
    return tmp / "choice" if check(what, built.returncode == 0, built.stderr[-300:]) else None


def here(bytes_too):
    """The variants that this processor runs, as the kernel tells."""
    flags = set(re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M).group(1).split())
    needed = {**LEVELS, "v4": LEVELS["v4"] | ({"avx512_vnni"} if bytes_too else set())}
    return [name for name, level in needed.items() if level <= flags]


def made(archive, name):
    """The variants that a library has, as its symbols tell."""
    return re.findall(rf" T {name}_graph_(\w+)$", run("nm", archive).stdout, re.M)


def wide_registers(archive, member):
    """The widest registers in a member of a library: xmm, ymm or zmm."""
    text = run("bash", "-c", f"cd $(mktemp -d) && ar x '{archive}' '{member}' && objdump -d '{member}'").stdout
    return next((width for width in ("zmm", "ymm", "xmm") if f"%{width}" in text), "")


def builds(check, package, name, io):
    """Make: what is asked for is there, and runs or is refused as the processor can."""
    library, program = package / f"lib{name}.a", package / name
    bytes_too = "tc_dot4" in "".join(path.read_text() for path in package.glob("kernels/*.c"))
    for words, variants in (([], ["v3", "v4"]), (["CC=clang"], ["v3", "v4"]), (["TC_VARIANTS=v3"], ["v3"]), (["TC_VARIANTS="], []),
                            (["TC_ARCH=-march=x86-64-v3"], []), (["CPPFLAGS=-DTC_VL=4"], [])):
        label = f"{name}: make {' '.join(words)}"
        run("make", "-C", package, "clean")
        built = run("make", "-j2", "-s", "-C", package, "CFLAGS=-O0" if words else "CFLAGS=-O1", *words)
        if not check(f"{label} builds", built.returncode == 0, built.stderr[-300:]):
            continue
        check(f"{label} makes {' '.join(variants) or 'one variant'}", sorted(made(library, name)) == variants, made(library, name))
        for cpu in ("best", "baseline", "v3", "v4"):
            told = compare(program, io, 1e-3, 1e-5, "--cpu", cpu)
            runs = cpu in ("best", "baseline") or (cpu in variants and cpu in here(bytes_too))
            good = told.returncode == 0 if runs else told.returncode == 1 and "does not have these kernels" in told.stderr
            check(f"{label}: --cpu {cpu} {'runs' if runs else 'is refused'}", good, (told.stdout + told.stderr)[-300:])
    told = run(program, "--cpu", "v9")
    check(f"{name}: a processor that does not exist", told.returncode == 1 and "there are no kernels v9" in told.stderr, told.stderr)


def stay_apart(check, package, name):
    """The baseline has no instruction that others brought along, and a profile sees the steps of the best."""
    run("make", "-C", package, "clean")
    built = run("make", "-j2", "-s", "-C", package, f"lib{name}.a", f"{name}_profile", f"lib{name}.so")
    if not check(f"{name}: library, shared library and profile", built.returncode == 0, built.stderr[-300:]):
        return
    kernel = max(package.glob("kernels/conv2d*.c"), key=lambda path: path.stat().st_size).stem
    found = [wide_registers(package / f"lib{name}.a", kernel + ending) for ending in (".o", ".v3.o", ".v4.o")]
    check(f"{name}: registers of the variants", found == ["xmm", "ymm", "zmm"], found)
    for cpu in ("best", "baseline"):
        told = run(package / f"{name}_profile", "--profile", "--cpu", cpu, "--bench", "0.1")
        check(f"{name}: a profile of {cpu}", told.returncode == 0 and kernel in told.stdout, told.stdout + told.stderr)


def choose(check, tmp, package):
    """cnn_init takes the best; what is not there is refused; other processors are tried where qemu can be one."""
    program = chooser(check, tmp, package, "a program that chooses")
    if program is None:
        return
    ways = [("this processor", [], here(False))]
    if shutil.which("qemu-x86_64"):
        ways += [("a Nehalem", ["qemu-x86_64", "-cpu", "Nehalem"], []), ("a Haswell", ["qemu-x86_64", "-cpu", "Haswell"], ["v3"]),
                 ("a Haswell without BMI2", ["qemu-x86_64", "-cpu", "Haswell,-bmi2"], []),
                 ("a Haswell without MOVBE", ["qemu-x86_64", "-cpu", "Haswell,-movbe"], [])]
    else:
        print("no qemu-x86_64: init is not asked on other processors")
    for label, words, variants in ways:
        best = 3 if "v4" in variants else 2 if "v3" in variants else 1
        expected = [best, 1, 2 if "v3" in variants else -1, 3 if "v4" in variants else -1, -1, best]
        told = run(*words, program)
        check(f"init on {label} chooses {best}", told.stdout.split() == [str(k) for k in expected], f"{told.stdout} {told.stderr[-200:]}")


def cmake(check, package, name, io):
    for words, variants in (([], ["v3", "v4"]), (["-DTC_VARIANTS=v3"], ["v3"]), (["-DTC_VARIANTS="], []), (["-DTC_ARCH=-march=x86-64-v3"], [])):
        tree = package / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        built = run("cmake", "-S", package, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", *words)
        built = built if built.returncode else run("cmake", "--build", tree, "-j2", "--target", name, f"{name}_program", f"{name}_profile", f"{name}_shared")
        label = f"{name}: CMake {' '.join(words)}"
        if check(f"{label} builds", built.returncode == 0, (built.stdout + built.stderr)[-400:]):
            check(f"{label} makes {' '.join(variants) or 'one variant'}", sorted(made(tree / f"lib{name}.a", name)) == variants, made(tree / f"lib{name}.a", name))
            check(f"{label} is right", compare(tree / name, io, 1e-3, 1e-5).returncode == 0)


def work(check, tmp, cnn, io):
    package = check.emit(cnn, tmp / "variants" / "cnn")
    builds(check, package, "cnn", io)
    stay_apart(check, package, "cnn")
    choose(check, tmp, package)
    cmake(check, package, "cnn", io)
