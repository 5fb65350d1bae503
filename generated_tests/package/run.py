"""What a package promises beside right numbers: clean under every compiler and standard, no hidden state, the same bytes
everywhere, small diffs, quick on long graphs. Every check prints one line; the last line counts them."""

import functools
import os
import pathlib
import resource
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import external  # noqa: E402
import listed  # noqa: E402
import models  # noqa: E402
import names  # noqa: E402
import variants  # noqa: E402
from checks import ROOT, TOOL, Checks, compare, files_of, last_line, run  # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
SANITIZE = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

WITHOUT_HOOKS = ["c99", "c11", "c99 TC_VL=1", "c++17", "c99 TC_VARIANT"]  # of profiles: every file, not the executor alone

check = Checks()


def sources(folder):
    return sorted(folder.glob("*.c")) + sorted(folder.glob("kernels/*.c"))


def units(package, label):
    """What is compiled: every file by itself as C99, which finds what one does not include; else all kernels as one, since compilers
    take most of their time for the headers of intrinsics; of profiles, what has hooks for them."""
    if label == "c99":
        return sources(package)
    outside, kernels = sorted(package.glob("*.c")), sorted(package.glob("kernels/*.c"))
    if label not in WITHOUT_HOOKS or not kernels:
        return outside
    joined = package / "kernels" / "joined.inc"
    joined.write_text("".join(f'#include "{kernel.name}"\n' for kernel in kernels))
    return [*outside, joined]


def compiles_clean(package, name, only=()):
    """gcc and clang, C99, C11 and C++17, vectors and plain C; warnings are errors. Some of gcc's come only where it optimises;
    clang's do not. `only`: of these standards."""
    modes = [("c99", "c", []), ("c11", "c", []), ("c99 TC_VL=1", "c", ["-DTC_VL=1"]), ("c++17", "c++", []),
             ("c99 TC_PROFILE", "c", ["-DTC_PROFILE"]), ("c++17 TC_PROFILE", "c++", ["-DTC_PROFILE"])]
    if list(package.glob("*_variants.h")):
        modes += [("c99 TC_VARIANT", "c", ["-DTC_VARIANT=v3", "-march=x86-64-v3"]), ("c++17 TC_VARIANT", "c++", ["-DTC_VARIANT=v3", "-DTC_PROFILE"]),
                  ("c99 TC_HAVE", "c", ["-DTC_HAVE_v3", "-DTC_HAVE_v4"])]
    if not sources(package):
        return check(f"{name} is clean", False, "no package")
    modes = [mode for mode in modes if not only or mode[0] in only]
    for compiler in ("gcc", "clang"):
        for label, language, extra in modes:
            standard = "-std=" + label.split()[0]
            bad = []
            for source in units(package, label):
                way = ["-O1", "-c", "-o", os.devnull] if compiler == "gcc" and standard == "-std=c99" else ["-fsyntax-only"]
                result = run(compiler, "-x", language, standard, *WARNINGS, *extra, "-I", package, *way, source)
                if result.returncode != 0:
                    bad.append(f"{source.name}: {result.stderr.strip().splitlines()[0]}")
            check(f"{name} is clean: {compiler} {label}", not bad, bad[0] if bad else "")


def runs_sanitized(package, name, io):
    """AddressSanitizer and UndefinedBehaviorSanitizer, every vector width (clang takes a minute to optimise what they make of unrolled
    loops, and minutes where lanes are single)."""
    for compiler, level, widths in (("gcc", "-O1", ([], ["-DTC_VL=1"], ["-DTC_VL=4"])), ("clang", "-O0", ([],))):
        for lanes in widths:
            program = package / f"sanitized_{compiler}"
            built = run(compiler, "-std=gnu11", *SANITIZE, level, *lanes, "-I.", *[s.relative_to(package) for s in sources(package)],
                        next(package.glob("*_weights.S")).name, "-lm", "-o", program, cwd=package)
            label = f"{name} under sanitizers: {compiler} {' '.join(lanes) or 'default lanes'}"
            if built.returncode != 0:
                check(label, False, built.stderr.strip()[:300])
                continue
            result = compare(program, io, 1e-3, 1e-5)
            check(label, result.returncode == 0, (result.stdout + result.stderr).strip()[-300:] if result.returncode else "")
            program.unlink()


def names_may_be_those_of_variables(tmp, model):
    """Without a warning that one shadows the other."""
    for name in ("m", "y"):
        for flags in ([], ["--single-file"]):
            label = " ".join(["a model called", name, *flags])
            compiles_clean(check.emit(model, tmp / label.replace(" ", "_"), "--name", name, *flags), label, only=("c99", "c++17 TC_PROFILE"))


def text_without_elements(tmp):
    """A result of strings that has none needs no table of them."""
    model = tmp / "no_text.onnxtxt"
    model.write_text('<ir_version: 8, opset_import: ["" : 18]>\nm (string[3, 2] s) => (string[0, 2] y) <int64[1] a = {0}> { y = Slice (s, a, a, a) }\n')
    for flags in ([], ["--single-file"]):
        label = " ".join(["text without elements", *flags])
        compiles_clean(check.emit(model, tmp / label.replace(" ", "_"), *flags), label, only=("c99", "c++17"))


def counts_iterations(tmp):
    """A loop whose results have a declared size runs exactly that often, or the run fails."""
    model = models.stacked(tmp / "stacked.onnx")
    package = check.emit(model, tmp / "stacked")
    compiles_clean(package, "stacked")
    program = package / "sanitized"
    built = run("gcc", "-std=gnu11", *SANITIZE, "-I.", *[s.relative_to(package) for s in sources(package)], "stacked_weights.S", "-lm", "-o", program, cwd=package)
    if check("stacked under sanitizers", built.returncode == 0, built.stderr.strip()[:300]):
        for right, words in models.wrong_trips(model, tmp, program):
            check(words, right)


TWO_MODELS = r"""
#include "a.h"
#include "b.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static float x[1 * 3 * 14 * 14], first[2][11], later[2][11];
static int bad;
static void *work(void *which)
{
  const int k = *(const int *)which;
  if (k == 0) {
    a m; a_inputs in = {x}; a_outputs out = {later[0]};
    if (a_init(&m, NULL, 0, NULL, 0) != A_OK) { bad = 1; return NULL; }
    for (int i = 0; i < 200; i++) if (a_run(&m, &in, &out) != A_OK || memcmp(later[0], first[0], sizeof first[0]) != 0) bad = 1;
    a_free(&m);
  } else {
    b m; b_inputs in = {x}; b_outputs out = {later[1]};
    if (b_init(&m, NULL, 0, NULL, 0) != B_OK) { bad = 1; return NULL; }
    for (int i = 0; i < 200; i++) if (b_run(&m, &in, &out) != B_OK || memcmp(later[1], first[1], sizeof first[1]) != 0) bad = 1;
    b_free(&m);
  }
  return NULL;
}
int main(void)
{
  pthread_t t[2];
  int k[2] = {0, 1};
  a ma; b mb;
  a_inputs ia = {x}; b_inputs ib = {x};
  a_outputs oa = {first[0]}; b_outputs ob = {first[1]};
  for (int i = 0; i < 588; i++) x[i] = (float)(i % 17) / 17.0f - 0.5f;
  if (a_init(&ma, NULL, 0, NULL, 0) || b_init(&mb, NULL, 0, NULL, 0) || a_run(&ma, &ia, &oa) || b_run(&mb, &ib, &ob)) return 2;
  if (a_init(&ma, (const char *)a_weights() + 64, A_WEIGHTS_BYTES, NULL, 0) != A_E_WEIGHTS) return 3;
  if (b_init(&mb, a_weights(), A_WEIGHTS_BYTES, NULL, 0) == B_OK && memcmp(first[0], first[1], sizeof first[0]) == 0) return 4;
  if (a_run(NULL, &ia, &oa) != A_E_ARG) return 5;
  for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, work, &k[i]);
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  puts(bad ? "differs" : "same");
  return bad;
}
"""


def foreign_weights_are_refused(tmp):
    """Two models that differ only in what the executor does take each other's blobs for what they are; a retrained one is taken."""
    packages = {trips: check.emit(models.repeated(tmp / f"repeated{trips}.onnx", trips), tmp / f"repeated{trips}", "--name", "m") for trips in (3, 4)}
    trained = check.emit(models.repeated(tmp / "trained3.onnx", 3, 2.0), tmp / "trained3", "--name", "m")
    package, program = packages[3], packages[3] / "program"
    check("packages of loops differ", files_of(packages[3]) != files_of(packages[4]))
    built = run("gcc", "-O1", "-I.", *[s.relative_to(package) for s in sources(package)], "m_weights.S", "-lm", "-o", program, cwd=package)
    if not check("a loop with weights compiles", built.returncode == 0, built.stderr.strip()[:300]):
        return
    told = run(program, "--weights", packages[4] / "m_weights.bin")
    check("weights of another trip count are refused", told.returncode == 1 and "do not belong" in told.stderr, told.stderr)
    told = run(program, "--weights", tmp / "nothing")
    check("weights that are no file are refused", told.returncode == 1 and "cannot read" in told.stderr, told.stderr)
    damaged = bytearray((package / "m_weights.bin").read_bytes())
    damaged[-1] ^= 1
    (tmp / "damaged.bin").write_bytes(damaged)
    told = run(program, "--weights", tmp / "damaged.bin")
    check("damaged weights are refused", told.returncode == 1 and "do not belong" in told.stderr, told.stderr)
    own, same, other = (run(program, *flags, "--seed", "1") for flags in ([], ["--weights", package / "m_weights.bin"], ["--weights", trained / "m_weights.bin"]))
    check("the program's own weights from a file", own.returncode == same.returncode == 0 and own.stdout == same.stdout, same.stderr)
    check("retrained weights from a file", other.returncode == 0 and other.stdout != own.stdout, other.stderr)


def two_models_link(tmp, model_a, model_b):
    for name, model in (("a", model_a), ("b", model_b)):
        check.emit(model, tmp / "two" / name, "--name", name)
    (tmp / "two" / "main.c").write_text(TWO_MODELS)
    files = [s for n in "ab" for s in sources(tmp / "two" / n) if s.name != "main.c"]
    command = ["gcc", "-std=gnu11", "-g", "-O1", "-fsanitize=thread", "-Itwo/a", "-Itwo/b", "two/main.c", *files]
    command += ["-Wa,-Itwo/a,-Itwo/b", "two/a/a_weights.S", "two/b/b_weights.S", "-lm", "-lpthread", "-o", "two/program"]
    built = run(*command, cwd=tmp)
    if check("two models link into one program", built.returncode == 0, built.stderr.strip()[:300]):
        result = run(tmp / "two" / "program")
        check("two instances in two threads, no race", result.returncode == 0 and "WARNING: ThreadSanitizer" not in result.stderr,
              f"exit code {result.returncode} {result.stderr[:300]}" if result.returncode else "")


def symbols_are_prefixed(package, name):
    objects = []
    for source in sources(package):
        if source.name == "main.c":
            continue
        target = package / (source.stem + ".sym.o")
        run("gcc", "-O1", "-I", package, "-c", source, "-o", target)
        objects.append(target)
    listed = run("nm", "--defined-only", "--extern-only", *objects).stdout
    wrong = sorted({l.split()[2] for l in listed.splitlines() if len(l.split()) == 3 and not l.split()[2].startswith(name + "_")})
    undefined = run("nm", "--undefined-only", *objects).stdout
    forbidden = sorted({l.split()[-1] for l in undefined.splitlines() if l.split() and l.split()[-1] in ("printf", "exit", "abort", "fopen")})
    check("every symbol has the model's prefix", objects and not wrong and not forbidden, ", ".join(wrong + forbidden))
    for target in objects:
        target.unlink()


def foreign_locale(tmp):
    """(environment, words) of a locale with decimal commas or Turkish letters; C.UTF-8 where none can be had."""
    installed = run("locale", "-a").stdout.split()
    for name in ("tr_TR.utf8", "de_DE.utf8", "fr_FR.utf8"):
        if name in installed:
            return {"LC_ALL": name, "LANG": name}, name
        source = name.split(".")[0]
        made = run("localedef", "-i", source, "-f", "UTF-8", tmp / name) if shutil.which("localedef") else None
        if made and (tmp / name).exists():
            return {"LC_ALL": name, "LANG": name, "LOCPATH": str(tmp)}, name
    return {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}, "C.UTF-8: no other is installed"


def same_bytes_everywhere(tmp, model):
    first = files_of(check.emit(model, tmp / "bytes1", "--name", "m"))
    check("a package has files", len(first) > 5)
    elsewhere = tmp / "somewhere else"
    elsewhere.mkdir()
    copied = pathlib.Path(shutil.copy(model, elsewhere / "a model.onnx"))
    locale, note = foreign_locale(tmp)
    now = dict(os.environ)
    ways = [("from another folder", pathlib.Path(copied.name), elsewhere, now), (f"under another locale ({note})", model, None, {**now, **locale}),
            ("with another TMPDIR, HOME and time zone", model, None, {**now, "TMPDIR": str(elsewhere), "HOME": str(elsewhere), "TZ": "Asia/Tokyo"}),
            # glibc fills what is allocated and freed: a byte that is read uninitialised changes.
            ("with other contents of memory", model, None, {**now, "MALLOC_PERTURB_": "165"}), ("with an empty environment", model, None, {})]
    for k, (label, path, cwd, env) in enumerate(ways):
        again = files_of(check.emit(path, tmp / f"way{k}", "--name", "m", cwd=cwd, env=env))
        check(f"the same bytes {label}", again == first)
    fixed = ["setarch", "-R"] if run("setarch", "-R", "true").returncode == 0 else []
    runs = [files_of(check.emit(model, tmp / f"run{k}", "--name", "m", wrap=fixed if k == 0 else [])) for k in range(9)]
    check(f"the same bytes wherever memory lies (eight addresses{' and fixed ones' if fixed else ''})", all(r == first for r in runs))
    third = check.emit(model, tmp / "bytes1", "--name", "m")
    check("--check agrees with what was written", run(TOOL, "--check", "--name", "m", model, "-o", third).returncode == 0)
    (third / "m.c").write_text((third / "m.c").read_text() + "\n")
    changed = run(TOOL, "--check", "--name", "m", model, "-o", third)
    check("--check finds an edited file", changed.returncode == 4 and "m.c" in changed.stdout)


def changed_lines(a, b):
    """Lines of C and headers that a review shows: git finds the kernels that were renamed."""
    listed = run("git", "diff", "--no-index", "--numstat", "-M30%", a, b).stdout
    total = 0
    for line in listed.splitlines():
        added, removed, name = line.split("\t", 2)
        if added != "-" and name.rstrip("}").endswith((".c", ".h")):
            total += max(int(added), int(removed))
    return total


def diffs_are_small(tmp):
    before = check.emit(models.chain(tmp / "before.onnx", 200), tmp / "before", "--name", "m")
    worst = 0
    for place in (20, 100, 170):
        after = check.emit(models.chain(tmp / f"after{place}.onnx", 200, inserted=place), tmp / f"after{place}", "--name", "m")
        worst = max(worst, changed_lines(before, after))
    check(f"a node inserted into a chain of 200 changes at most 48 lines: {worst}, the worst of three places", 0 < worst <= 48)
    one = files_of(check.emit(models.cnn(tmp / "trained.onnx", 1), tmp / "seed1", "--name", "m"))
    two = files_of(check.emit(models.cnn(tmp / "trained.onnx", 2), tmp / "seed2", "--name", "m"))
    differ = sorted(n for n in one if one[n] != two.get(n))
    check("new weights change no line of C", differ == ["m_weights.bin"], ", ".join(differ))


def seconds_of(*command):
    """(processor seconds of a command and what it started, its result): a shared machine does not change them much."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def slowness():
    """How many times slower than a usual machine this one is just now, at work like a compiler's: small objects, names
    and maps of them. At least 1; other processors and what else runs on them make it 2 or 3."""
    usual = 0.3  # seconds
    before = time.process_time()
    names = {}
    for i in range(1 << 17):
        names[f"value_{i * 2654435761 % (1 << 18)}"] = (i, [i])
    assert len(sorted(names.items())) == 1 << 17
    return max(1.0, (time.process_time() - before) / usual)


def emitted_in_time(label, model, package):
    # Twice the goal of 2 s: a busy machine may be at half speed.
    before = slowness()
    seconds, result = seconds_of(TOOL, "--quiet", "--name", "m", model, "-o", package)
    limit = 4 * (before + slowness()) / 2
    check(f"{label} are emitted in at most {limit:.1f} s: {seconds:.1f} s", result.returncode == 0 and seconds <= limit, last_line(result))
    return package


def compiled_in_time(label, package, goal):
    """`goal`: seconds on two processors of a usual machine, for one of them that is to run it."""
    before = slowness()
    seconds, built = seconds_of("make", "-j2", "-s", "-C", package, "CFLAGS=-O2", "TC_VARIANTS=")
    limit = goal * (before + slowness()) / 2
    check(f"{label} are compiled at -O2 in at most {limit:.0f} s on two processors: {seconds / 2:.1f} s", built.returncode == 0 and seconds <= 2 * limit, last_line(built))


def random_chain_is_quick(tmp):
    package = emitted_in_time("20,000 random nodes", models.chain(tmp / "random.onnx", 20000), tmp / "random")
    check("many kernels stand together in sixteen files", len(list(package.glob("kernels/*.c"))) == 16)
    compiled_in_time("20,000 random nodes", package, 60)


def weighted_chain_is_quick(tmp):
    emitted_in_time("20,000 nodes with weights of their own", models.weighted_chain(tmp / "weighted.onnx", 20000), tmp / "weighted")


def long_chain_is_quick(tmp):
    # Layers repeat in real graphs: their kernels are shared, and only these are compiled.
    model = models.chain(tmp / "long.onnx", 20000, period=40)
    package = check.emit(model, tmp / "long", "--name", "m")
    compiled_in_time("20,000 nodes of repeated layers", package, 30)
    for label, deep in (("a chain", model), ("a chain behind a product", models.far_product(tmp / "far.onnx", 20000))):
        limited = run("bash", "-c", f"ulimit -s 512; exec '{TOOL}' --quiet --name m '{deep}' -o '{tmp / 'limited'}'")
        check(f"no deep recursion: a stack of 512 KiB is enough for {label}", limited.returncode == 0, limited.stderr[-200:])


def is_clean(tmp, model, *flags):
    label = " ".join([model.stem, *flags])
    compiles_clean(check.emit(model, tmp / label.replace(" ", "_"), *flags), label)


def is_sanitized(tmp, model):
    runs_sanitized(check.emit(model, tmp / f"{model.stem}_sanitized"), model.stem, models.reference(model, tmp / f"{model.stem}_io"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        cnn, typed, loops = models.cnn(tmp / "cnn.onnx"), models.mixed_types(tmp / "typed.onnx"), models.loops(tmp / "loops.onnx")
        for model in (cnn, typed):
            check.emit(model, tmp / f"{model.stem}_v4", "--cpu", "x86-64-v4")
        clean = [functools.partial(is_clean, tmp, model, *flags) for model, flags in
                 ((cnn, []), (typed, []), (loops, []), (cnn, ["--single-file"]), (typed, ["--single-file"]), (cnn, ["--weights", "external"]),
                  (cnn, ["--weights", "external", "--single-file"]))]
        sanitized = [functools.partial(is_sanitized, tmp, model) for model in (cnn, typed, loops)]
        check.run([*clean, *sanitized, lambda: names_may_be_those_of_variables(tmp, cnn), lambda: text_without_elements(tmp), lambda: counts_iterations(tmp),
                   lambda: names.macros_may_be_names(check, tmp), lambda: foreign_weights_are_refused(tmp), lambda: external.work(check, tmp, SANITIZE),
                   lambda: symbols_are_prefixed(check.emit(cnn, tmp / "symbols" / "cnn"), "cnn"),
                   lambda: two_models_link(tmp, cnn, models.cnn(tmp / "other.onnx", 5)), lambda: same_bytes_everywhere(tmp, cnn),
                   lambda: diffs_are_small(tmp), lambda: random_chain_is_quick(tmp), lambda: weighted_chain_is_quick(tmp),
                   lambda: long_chain_is_quick(tmp), lambda: variants.work(check, tmp, cnn, models.reference(cnn, tmp / "cnn_variants_io")),
                   lambda: listed.work(check, tmp, cnn, models.reference(cnn, tmp / "cnn_listed_io"), compiles_clean, runs_sanitized)], quick=8)
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
