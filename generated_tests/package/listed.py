"""Packages for a list of processors: a schedule for each, over one blob of weights."""
import pathlib
import re
import shutil

import variants
from checks import TOOL, compare, files_of, last_line, run

LIST = "x86-64-v3,x86-64-v4"
HEADER = 64  # bytes of a blob before the weights

REFUSED = (("x86-64-v3,x86-64-v9", "unknown --cpu 'x86-64-v9'"), ("x86-64-v3,x86-64-v3", "--cpu has x86-64-v3 twice"),
           ("x86-64-v3,aarch64", "no program runs on both x86-64 and 64-bit ARM"), ("generic,aarch64", "give it alone"),
           ("x86-64-v3,native", "native is the one of this machine"), ("any,x86-64-v3", "leave it out of the list"),
           ("x86-64-v3,", "needs names between its commas"))


def refused(check, tmp, model):
    for cpus, message in REFUSED:
        told = run(TOOL, "--cpu", cpus, model, "-o", tmp / "refused")
        check(f"--cpu {cpus} is refused", told.returncode == 2 and message in told.stderr, told.stderr)
    told = run(TOOL, "tune", "--cpu", LIST, model, "--records", tmp / "r.jsonl")
    check("tune takes no list", told.returncode == 2 and "give one --cpu" in told.stderr, told.stderr)
    told = run(TOOL, "--single-file", "--cpu", "znver4,znver5", model, "-o", tmp / "refused")
    check("a single file of equal vectors is refused", told.returncode == 2 and "znver4 and znver5 have the same" in told.stderr, told.stderr)


def one_blob(check, tmp, model, package):
    """Its weights are those of the best processor's own package, packed alike; the order of the names makes no difference."""
    name = model.stem
    best = check.emit(model, tmp / f"{name}_best", "--cpu", LIST.split(",")[-1])
    ours, theirs = ((folder / f"{name}_weights.bin").read_bytes() for folder in (package, best))
    check(f"{name}: a list has the weights of its best processor", ours[HEADER:] == theirs[HEADER:], f"{len(ours)} bytes and {len(theirs)}")
    turned = check.emit(model, tmp / f"{name}_turned", "--cpu", ",".join(reversed(LIST.split(","))))
    check(f"{name}: the order of a list makes no difference", files_of(turned) == files_of(package))
    told = run(TOOL, "--check", "--cpu", LIST, model, "-o", package)
    check(f"{name}: --check of a list", told.returncode == 0, told.stdout[:300])
    told = run(TOOL, "diff", package, model)
    check(f"{name}: diff takes the list from the package", told.returncode == 0, told.stdout[:300])


def schedules_differ(check, name, package):
    graphs = [re.findall(rf"{name}_(\w+_[0-9a-f]{{4}})\(", (package / f"{name}_graph_{cpu}.c").read_text()) for cpu in ("v3", "v4")]
    check(f"{name}: each processor has kernels of its own", graphs[0] != graphs[1] and len(graphs[0]) == len(graphs[1]), graphs)
    shared = set(graphs[0]) & set(graphs[1])
    check(f"{name}: kernels that are the same are there once", bool(shared) and len(set(graphs[0]) | set(graphs[1])) == len(list(package.glob("kernels/*.c"))), shared)


def builds(check, package, name, io, plain):
    """`plain`: whether the list has a schedule for any processor."""
    library, program, here = package / f"lib{name}.a", package / name, variants.here(False)
    graphs = ["v3", "v4"] + (["baseline"] if plain else [])
    for words, made in (([], ["v3", "v4"]), (["CC=clang"], ["v3", "v4"]), (["TC_VARIANTS=v3"], ["v3"]), (["TC_VARIANTS="], []),
                        (["TC_ARCH=-march=x86-64-v3"], []), (["CPPFLAGS=-DTC_VL=4"], [])):
        label = f"{name}: a list{' with any' if plain else ''}, make {' '.join(words)}"
        run("make", "-C", package, "clean")
        built = run("make", "-j2", "-s", "-C", package, "CFLAGS=-O0", *words)
        if not check(f"{label} builds", built.returncode == 0, built.stderr[-300:]):
            continue
        expected = sorted(made + (["baseline"] if plain else [])) if made else sorted(graphs)
        check(f"{label} has {' '.join(expected)}", sorted(variants.made(library, name)) == expected, variants.made(library, name))
        for cpu in ("best", "baseline", "v3", "v4"):
            told = compare(program, io, 1e-3, 1e-5, "--cpu", cpu)
            runs = {"best": plain or not made or set(made) & set(here), "baseline": plain or not made}.get(cpu, cpu in made and cpu in here)
            good = told.returncode == 0 if runs else told.returncode == 1 and "does not have these kernels" in told.stderr
            check(f"{label}: --cpu {cpu} {'runs' if runs else 'is refused'}", good, (told.stdout + told.stderr)[-300:])


def one_build(check, package, name, io):
    """Everything by one call of the compiler, for vectors of any length."""
    for sources in ([*package.glob("*.c"), *package.glob("kernels/*.c")],):
        for flags in ([], ["-march=x86-64-v3"], ["-march=x86-64-v4"], ["-DTC_VL=1"]):
            if "-march=x86-64-v4" in flags and "v4" not in variants.here(False):
                continue
            label = f"{name}: {package.name}, cc *.c {' '.join(flags)}"
            built = run("gcc", "-std=c99", "-O1", *flags, "-I", package, *sources, package / f"{name}_weights.S", "-lm", "-o", package / "whole", cwd=package)
            if check(f"{label} builds", built.returncode == 0, built.stderr[-300:]):
                told = compare(package / "whole", io, 1e-3, 1e-5)
                check(f"{label} is right", told.returncode == 0, (told.stdout + told.stderr)[-300:])


def choose(check, tmp, package, plain):
    run("make", "-C", package, "clean")
    run("make", "-j2", "-s", "-C", package, "CFLAGS=-O0", "libcnn.a")
    program = variants.chooser(check, tmp, package, "a program that chooses from a list")
    if program is None:
        return
    ways = [("this processor", [], variants.here(False))]
    if shutil.which("qemu-x86_64"):
        ways += [("a Nehalem", ["qemu-x86_64", "-cpu", "Nehalem"], []), ("a Haswell", ["qemu-x86_64", "-cpu", "Haswell"], ["v3"])]
    for label, words, runs in ways:
        any_one = 1 if plain else -1
        best = 3 if "v4" in runs else 2 if "v3" in runs else any_one
        expected = [best, any_one, 2 if "v3" in runs else -1, 3 if "v4" in runs else -1, -1, best]
        told = run(*words, program)
        check(f"init of a list{' with any' if plain else ''} on {label} chooses {best}", told.stdout.split() == [str(k) for k in expected], f"{told.stdout} {told.stderr[-200:]}")


def cmake(check, package, name, io):
    for words, made in (([], ["v3", "v4"]), (["-DTC_VARIANTS=v3"], ["v3"]), (["-DTC_VARIANTS="], ["v3", "v4"]), (["-DTC_ARCH=-march=x86-64-v3"], ["v3", "v4"])):
        tree = package / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        built = run("cmake", "-S", package, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", *words)
        built = built if built.returncode else run("cmake", "--build", tree, "-j2", "--target", name, f"{name}_program", f"{name}_profile", f"{name}_shared")
        label = f"{name}: a list, CMake {' '.join(words)}"
        if check(f"{label} builds", built.returncode == 0, (built.stdout + built.stderr)[-400:]):
            check(f"{label} has {' '.join(made)}", sorted(variants.made(tree / f"lib{name}.a", name)) == made, variants.made(tree / f"lib{name}.a", name))
            if "v3" in variants.here(False):
                check(f"{label} is right", compare(tree / name, io, 1e-3, 1e-5).returncode == 0)
    shutil.rmtree(package / "tree", ignore_errors=True)


def profile(check, package, name):
    run("make", "-C", package, "clean")  # what was built before has other flags
    built = run("make", "-j2", "-s", "-C", package, f"{name}_profile", f"lib{name}.so")
    if check(f"{name}: a list has a profile and a shared library", built.returncode == 0, built.stderr[-300:]) and "v3" in variants.here(False):
        kernel = re.search(rf"{name}_(conv2d\w+_[0-9a-f]{{4}})\(", (package / f"{name}_graph_v3.c").read_text()).group(1)
        told = run(package / f"{name}_profile", "--profile", "--cpu", "v3", "--bench", "0.1")
        check(f"{name}: a profile of v3 in a list", told.returncode == 0 and kernel in told.stdout, told.stdout + told.stderr)


WHICH = r"""
#include "cnn.h"
#include "tc_cpu_maker.h"
#include <stdio.h>
int main(void)
{
  cnn m;
  cnn_status s = cnn_init(&m, NULL, 0, NULL, 0);
  if (s == CNN_OK) cnn_free(&m);
  printf("%d %d%d %d%d\n", s == CNN_OK ? (int)m.cpu - CNN_CPU_ZNVER4 : s == CNN_E_CPU ? -1 : -2, tc_cpu_znver4(), tc_cpu_znver5(),
         tc_cpu_cascadelake(), tc_cpu_icelake_server());
  return 0;
}
"""


def same_instructions(check, tmp, cnn, io):
    """Rows that only their maker and generation tell apart: the first is for all that run it, and each can be had by name."""
    rows = ["znver4", "znver5", "icelake-server"]  # in the order of the list, whoever writes it otherwise
    package = check.emit(cnn, tmp / "listed" / "makers", "--cpu", "icelake-server,znver4,znver5")
    one_build(check, package, "cnn", io)
    built = run("make", "-j2", "-s", "-C", package, "CFLAGS=-O1", "cnn", "libcnn.a")
    if not check("a list of the same instructions builds", built.returncode == 0, built.stderr[-300:]):
        return
    check("each row of the same instructions has a graph", sorted(variants.made(package / "libcnn.a", "cnn")) == sorted(row.replace("-", "_") for row in rows))
    field = {key.strip(): value.strip() for key, value in (line.split(":", 1) for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)}
    flags = set(field["flags"].split())
    runs, amd = "v4" in variants.here(True), field["vendor_id"] == "AuthenticAMD"
    for row in rows:
        told = compare(package / "cnn", io, 1e-3, 1e-5, "--cpu", row)
        check(f"--cpu {row} {'runs' if runs else 'is refused'}", told.returncode == (0 if runs else 1), (told.stdout + told.stderr)[-300:])
    (tmp / "which.c").write_text(WHICH)
    built = run("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", package, tmp / "which.c", package / "libcnn.a", "-lm", "-pthread", "-o", tmp / "which")
    if not check("a program asks for the maker", built.returncode == 0, built.stderr[-300:]):
        return
    family = int(field["cpu family"])
    is_row = [runs and amd and family >= 0x19, runs and amd and family >= 0x1A, runs and not amd, runs and not amd and "avx512_vbmi2" in flags]
    best = 2 if is_row[3] else 1 if is_row[1] else 0 if runs else -1
    told = run(tmp / "which").stdout.split()
    check("init takes the row of this processor", told == [str(best), *("".join(str(int(k)) for k in part) for part in (is_row[:2], is_row[2:]))], told)


def work(check, tmp, cnn, io, is_clean, is_sanitized):
    refused(check, tmp, cnn)
    same_instructions(check, tmp, cnn, io)
    package = check.emit(cnn, tmp / "listed" / "cnn", "--cpu", LIST)
    one_blob(check, tmp, cnn, package)
    schedules_differ(check, "cnn", package)
    is_clean(package, "cnn for a list")
    is_sanitized(package, "cnn", io)
    one_build(check, package, "cnn", io)
    one_build(check, check.emit(cnn, tmp / "listed" / "single", "--cpu", LIST, "--single-file"), "cnn", io)
    choose(check, tmp, package, False)
    builds(check, package, "cnn", io, False)
    profile(check, package, "cnn")
    cmake(check, package, "cnn", io)
    plain = check.emit(cnn, tmp / "listed" / "plain", "--cpu", "generic," + LIST)
    choose(check, tmp, plain, True)
    builds(check, plain, "cnn", io, True)
