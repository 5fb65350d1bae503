"""What a CUDA package promises beside right numbers, on the CPU: the C target's API, so that the two can be swapped; several
models and instances in one program; no race, no access out of bounds; the same bits in every order of blocks, threads and
streams; the same bytes from everywhere. Every check prints one line; the last line counts them."""

import functools
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "package"), str(HERE.parent / "python")]
import attention  # noqa: E402
import models  # noqa: E402
import precision  # noqa: E402
from answers import answers  # noqa: E402
from checks import ROOT, TOOL, Checks, compare, files_of, last_line, run  # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
check = Checks()


def checked_right(result):
    """Whether a program ended well, and the checker was in it and found nothing."""
    return result.returncode == 0 and "cuda_on_cpu_check: nothing found" in result.stderr


def emit(model, out, target, *flags, **options):
    return check.emit(model, out, "--target", target, *flags, **options)


def build(package, folder, *flags):
    once = f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};{HERE.parent / 'python' / 'compile_once.py'};{folder.parent / 'objects'}"
    for command in (["cmake", "-S", package, "-B", folder, "-DTC_CUDA_ON_CPU=ON", once, *flags], ["cmake", "--build", folder, "--parallel", "2"]):
        result = run(*command)
        if result.returncode:
            check(f"build {package.name} {' '.join(flags)}", False, last_line(result))
            return False
    return True


def answers_of(model, inputs):
    """A folder of the inputs, by name, and of ONNX Runtime's outputs."""
    return answers(model, model.with_name(f"{model.stem}_io"), lambda _, port: inputs[port.name])


def precisions(work):
    """What tensor cores multiply, as text: the bits of ONNX Runtime on integers, and no race."""
    model, inputs = precision.products(work / "products.onnx")
    io = answers_of(model, inputs)
    for name in ("fp32", "tf32", "fp16", "bf16"):
        exact_products(work, model, io, name, "--precision", name)
    model, inputs = precision.products(work / "halves.onnx", "float16")
    exact_products(work, model, answers_of(model, inputs), "halves")


def exact_products(work, model, io, name, *flags):
    """With or without tensor cores: the bits of ONNX Runtime, no race."""
    package, folder = emit(model, work / f"{model.stem}_{name}", "cuda", *flags), work / f"{model.stem}_{name}_build"
    used = any("tc_mma_" in path.read_text() for path in (package / "kernels").glob("*.cu"))
    check(f"{name} {'uses' if used else 'does not use'} tensor cores", used == (name != "fp32"))
    if build(package, folder, "-DTC_CUDA_CHECK=ON"):
        result = compare(folder / model.stem, io, 0, 0)
        check(f"sums of products in {name}: exact on integers, no race", checked_right(result), last_line(result))


def attentions(work):
    """One kernel for each attention, near ONNX Runtime, without a race; on tensor cores where --precision says so."""
    model, inputs = attention.model(work / "attentions.onnx")
    io = answers_of(model, inputs)
    expected = len(list(io.glob("output_*")))
    for name, error in (("fp32", "2e-6"), ("tf32", "2e-3"), ("fp16", "2e-3"), ("bf16", "2e-2")):
        package, folder = emit(model, work / f"attentions_{name}", "cuda", "--precision", name), work / f"attentions_{name}_build"
        kernels = [path.read_text() for path in (package / "kernels").glob("*attention*.cu")]
        used = any("tc_mma_" in text for text in kernels)
        count = len(list((package / "kernels").glob("*.cu")))
        check(f"{name}: {expected} attentions, a kernel each, and none beside", len(kernels) == count == expected)
        check(f"{name}: attention {'uses' if used else 'does not use'} tensor cores", used == (name != "fp32"))
        if build(package, folder, "-DTC_CUDA_CHECK=ON"):
            result = compare(folder / model.stem, io, 0, error)
            check(f"attention in {name}: within {error}, no race", checked_right(result), last_line(result))


def with_groups(model, work):
    """The schedules of a model, but that groups of threads of a block share the sum of a product, in more than 48 KiB."""
    file = work / "schedules.tc"
    emit(model, work / "as_the_model_says", "cuda", "--write-schedules", file)
    numbers = "tensor_cores = 0, bits = 32, products = 1, rows = 64, columns = 64, thread_rows = 4, thread_columns = 4, depth = 16, stages = 3, groups = 2, splits = 1"
    file.write_text(re.sub(r"contraction\([^)]*\)", f"contraction({numbers})", file.read_text()))
    return file


def shared_memory(work):
    """Arrays that share their bytes, more of them than a block has without asking, and values that lanes exchange: right,
    without a race, in one file too; and a barrier that is taken away between two arrays on the same bytes is found."""
    model = models.phases(work / "phases.onnx")
    io = models.reference(model, work / "phases_io")
    schedules = with_groups(model, work)
    package = emit(model, work / "phases", "cuda", "--schedules", schedules)
    text = "".join(path.read_text() for path in sorted(package.rglob("*.cu")))
    for word in ("TC_SHARED_VIEW(", "= tc_dynamic_shared();", "tc_allow_shared(", "tc_shuffle_up("):
        check(f"phases: has {word}", word in text)
    one_file = emit(model, work / "phases_one_file", "cuda", "--schedules", schedules, "--single-file")
    broken = work / "phases_broken"
    shutil.copytree(package, broken)
    planted = 0
    for path in broken.glob("kernels/*.cu"):
        lines = path.read_text().splitlines(keepends=True)
        for k in range(1, len(lines)):
            if "TC_SHARED_VIEW(sums" in lines[k] and "__syncthreads" in lines[k - 1]:
                lines[k - 1], planted = "", planted + 1
        path.write_text("".join(lines))
    check("phases: a barrier in front of sums", planted > 0)
    for folder, flags in ((package, ["-DTC_CUDA_CHECK=ON"]), (one_file, []), (broken, ["-DTC_CUDA_CHECK=ON"])):
        if not build(folder, work / f"{folder.name}_build", *flags):
            continue
        result = compare(work / f"{folder.name}_build" / model.stem, io, 1e-4, 1e-4)
        if folder == broken:
            check("phases: the missing barrier is found", result.returncode == 66 and "race" in result.stderr and "sums" in result.stderr, last_line(result))
        else:
            check(f"{folder.name}: right", checked_right(result) if flags else result.returncode == 0, last_line(result))


def swaps(work, digits, cnn):
    """The same program with the C packages and with the CUDA packages."""
    printed = {}
    for target in ("c", "cuda"):
        project = work / f"swap_{target}"
        project.mkdir()
        for model in (digits, cnn):
            emit(model, project / model.stem, target)
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(swap LANGUAGES C CXX)\nset(CMAKE_CXX_STANDARD 17)\nfind_package(Threads REQUIRED)\n"
            f"add_subdirectory(digits)\nadd_subdirectory(cnn)\nadd_executable(swap {HERE / 'swap.cc'})\n"
            "target_link_libraries(swap PRIVATE digits::digits cnn::cnn Threads::Threads)\n"
            + ("target_compile_definitions(swap PRIVATE TC_PROGRAM_CUDA)\n" if target == "cuda" else ""))
        if not build(project, work / f"swap_{target}_build"):
            return
        result = run(work / f"swap_{target}_build" / "swap", timeout=300)
        check(f"two models, instances in threads, refusals: {target}", result.returncode == 0, last_line(result))
        printed[target] = [float(line) for line in result.stdout.split() if line[0] in "-0123456789"]
    check("C and CUDA give the same numbers", len(printed["c"]) == 21 and np.allclose(printed["c"], printed["cuda"], rtol=1e-4, atol=1e-6),
          str(printed))


def single_file(work, model):
    package = work / "one_file"
    result = run(TOOL, "--quiet", "--target", "cuda", "--single-file", model, "-o", package)
    io = models.reference(model, work / "one_file_io")
    if check("--single-file", result.returncode == 0 and [p.name for p in package.rglob("*.cu")] == [f"{model.stem}.cu"], last_line(result)):
        if build(package, work / "one_file_build"):
            result = compare(work / "one_file_build" / model.stem, io, 1e-3, 1e-4)
            check("--single-file runs right", result.returncode == 0, last_line(result))
            profiled(work, model, package, io)


def profiled(work, model, package, io):
    """The program with hooks computes the same, and its table has every kernel that runs."""
    built = run("cmake", "--build", work / "one_file_build", "--target", f"{model.stem}_profile")
    result = compare(work / "one_file_build" / f"{model.stem}_profile", io, 1e-3, 1e-4, "--profile", "--bench", "0.05", "--json",
                     env={**os.environ, "TC_CUDA_STREAM": "late"})
    known = {kernel["name"] for kernel in json.loads((package / "manifest.json").read_text())["kernels"]} | {"copies"}
    rows = [row["kernel"] for row in json.loads(last_line(result))["kernels"]] if result.returncode == 0 else []
    check("--profile on CUDA", built.returncode == 0 and rows and set(rows) <= known, last_line(built if built.returncode else result))


def runs_right(work, model):
    """Fast and checked builds against ONNX Runtime, in several orders."""
    package, io = emit(model, work / f"{model.stem}_package", "cuda"), models.reference(model, work / f"{model.stem}_io")
    fast, checked = work / f"{model.stem}_fast", work / f"{model.stem}_checked"
    if build(package, fast):
        outputs = {}
        for order, stream in (("forward", "early"), ("reverse", "late"), ("random:5", "random:9")):
            out = work / f"{model.stem}_{order.split(':')[0]}"
            out.mkdir()
            result = compare(fast / model.stem, io, 1e-3, 1e-4, "--outputs", out,
                             env={**os.environ, "TC_CUDA_ORDER": order, "TC_CUDA_STREAM": stream})
            check(f"{model.stem}: {order} blocks and threads, {stream} streams", result.returncode == 0, last_line(result))
            outputs[order] = [path.read_bytes() for path in sorted(out.glob("output_*"))]
        check(f"{model.stem}: the same bits in every order", len(set(map(tuple, outputs.values()))) == 1)
    if build(package, checked, "-DTC_CUDA_CHECK=ON"):
        result = compare(checked / model.stem, io, 1e-3, 1e-4)
        check(f"{model.stem}: no race, no access out of bounds, nothing uninitialised", checked_right(result), last_line(result))


def counts_iterations(work):
    """A loop whose results have a declared size runs exactly that often, or the run fails."""
    model = models.stacked(work / "stacked.onnx")
    is_clean(work, model)
    if build(emit(model, work / "stacked_package", "cuda"), work / "stacked_checked", "-DTC_CUDA_CHECK=ON"):
        for right, words in models.wrong_trips(model, work, work / "stacked_checked" / "stacked", {**os.environ, "TC_CUDA_STREAM": "late"}):
            check(words, right)


def is_clean(work, model):
    package = emit(model, work / f"{model.stem}_clean", "cuda")
    for compiler in ("g++", "clang++"):
        bad = []
        for source, more in [*((path, []) for path in sorted(package.rglob("*.cu"))), (package / f"{model.stem}.cu", ["-DTC_PROFILE"])]:
            result = run(compiler, *more, "-xc++", "-std=c++17", *WARNINGS, "-Wno-unknown-pragmas", f"-I{package}", f"-I{package}/cuda_on_cpu",
                         "-fsyntax-only", source)
            if result.returncode:
                bad.append(f"{source.name}: {last_line(result)}")
        check(f"{model.stem} is clean: {compiler}", not bad, bad[0] if bad else "")


def same_bytes(work, model):
    (work / "elsewhere").mkdir()
    one = files_of(emit(model, work / "bytes_one", "cuda"))
    two = files_of(emit(model, work / "elsewhere" / "two", "cuda", cwd=work / "elsewhere", env={**os.environ, "LC_ALL": "C.UTF-8", "TMPDIR": str(work)}))
    check("the same bytes from everywhere", one == two and len(one) > 10)


def readme_shows(work, digits):
    """The kernel in README.md is the one that is emitted."""
    text = (ROOT / "README.md").read_text()
    kernels = [path.read_text() for path in emit(digits, work / "readme", "cuda").glob("kernels/max_pool*.cu")]
    body = kernels[0][kernels[0].index("/* max_pool"):kernels[0].index("\n#ifndef __CUDACC_RTC__")].strip() if kernels else "?"
    check("README.md shows what is emitted", body in text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        digits = work / "digits.onnx"
        digits.write_bytes((ROOT / "examples" / "digits" / "digits.onnx").read_bytes())
        cnn = models.cnn(work / "cnn.onnx")
        loops, decision = models.loops(work / "loops.onnx"), models.decision(work / "decision.onnx")
        right = [functools.partial(runs_right, work, model) for model in (cnn, models.mixed_types(work / "mixed.onnx"), decision, loops)]
        check.run([lambda: (readme_shows(work, digits), same_bytes(work, cnn)), lambda: is_clean(work, cnn), lambda: single_file(work, decision),
                   lambda: is_clean(work, loops), lambda: is_clean(work, models.unread_sum(work / "unread_sum.onnx")), lambda: counts_iterations(work), *right, lambda: swaps(work, digits, cnn),
                   lambda: precisions(work), lambda: shared_memory(work), lambda: attentions(work)], quick=12)
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
