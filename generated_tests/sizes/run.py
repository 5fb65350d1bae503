#!/usr/bin/env python3
"""Packages whose sizes are chosen at run time, each at several sizes, against ONNX Runtime; with sanitizers.

usage: run.py [--tool build/tc-emit] [--cpus generic,native,cuda] [--only REGEX] [--random N [--seed S] [--endless]] [--share K/N] [--list]     (run it with `scripts/python_env base`)

sized_models.py holds the models; N random ones of seeds S and on come after them (random_models.py), which may be refused: `--only random
--random 500 --seed 9` looks for more. Each package is compiled once and runs at the least and the largest sizes and some between; inputs
lie in memory that ends where they end. Of `cuda` every access of memory is checked (docs/cuda_on_cpu.md), and sizes come back, so that
captured graphs are met again. The last line reads 'N passed, N failed'.
"""
import argparse
import json
import math
import os
import re
import sys
import tempfile
from pathlib import Path
from random import Random

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "generated_tests" / folder) for folder in ("python", "sizes")]
import random_models  # noqa: E402
import sized_models  # noqa: E402
from checked_cuda import NOTHING_FOUND, CheckedCudaToolchain  # noqa: E402
import shares  # noqa: E402
from agreement import difference  # noqa: E402
from answers import session as session_of  # noqa: E402
from tally import Tally  # noqa: E402
from toolchain import REFUSED, Failed, OneSourceToolchain, call, first_line, refusal  # noqa: E402

# docs/cuda_on_cpu.md; memory that nobody has written is no number.
HOSTILE = {"TC_CUDA_STREAM": "late", "TC_CUDA_ORDER": "reverse", "ASAN_OPTIONS": f"malloc_fill_byte=255:max_malloc_fill_size={1 << 30}"}
FLAGS = ["-O0", "-g0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]  # by clang, which takes half of the time of gcc


ENDLESS = 70  # the largest that is tried of a size without an upper bound


def choices(ranges, random):
    """Sizes to try: the least, the largest, and three between; of those without an upper bound some that end a tile early."""
    endless = {name for name, (_, high) in ranges.items() if high is None}
    ranges = {name: (low, low + ENDLESS if high is None else high) for name, (low, high) in ranges.items()}
    yield {name: low for name, (low, _) in ranges.items()}
    yield {name: high for name, (_, high) in ranges.items()}
    for few in (2, 7, 33):
        yield {name: max(low, few) if name in endless else int(random.integers(low, high + 1)) for name, (low, high) in ranges.items()}


def number(text, sizes):
    """What "past + seq" or "4*h" is."""
    return sum(math.prod(int(word) if word.isdigit() else sizes[word] for word in part.split("*")) for part in text.split(" + "))


def array(info, sizes, random):
    tensor = info.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else number(d.dim_param, sizes) for d in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if dtype.kind == "i":
        return random.integers(0, 2 if info.name == "mask" else 40, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def run(program, session, model, sizes, folder, random, cuda):
    """Raises Failed where the program's outputs are not those of ONNX Runtime; it refuses positions that ONNX Runtime refuses."""
    feed = {info.name: array(info, sizes, random) for info in model.graph.input}
    folder.mkdir()
    for k, value in enumerate(feed.values()):
        np.save(folder / f"input_{k}.npy", value)
    try:
        wanted = session.run(None, feed)
    except Exception as error:
        if "out of" not in str(error):
            raise
        wanted = None
    result = call("run", [program, "--inputs", folder, "--outputs", folder], {}, env={**os.environ, **HOSTILE})
    if wanted is None:
        if result.returncode != 1 or "out of range" not in result.stdout:
            raise Failed(f"a position out of range: exit code {result.returncode}, {first_line(result.stdout)}")
        return
    if result.returncode:
        raise Failed("run: " + first_line(result.stdout, "rror|check: "))
    if cuda and NOTHING_FOUND not in result.stdout:
        raise Failed("run: the checker was not in it")
    # A step of the numbers apart; what random models cancel.
    bar = {"halves": 2e-2, "half_attention": 2e-2, "quantised": 2e-2, "by_range": 2e-2, "quantised_recurrent": 5e-2, "grown": 1e-4}.get(model.graph.name, 1e-5)
    for k, want in enumerate(wanted):
        if told := difference(np.load(folder / f"output_{k}.npy"), want, bar):
            raise Failed(f"output {k}: {told}")


def refuses(program, model, ranges, folder, random):
    """A size out of its bounds, and two that contradict each other, are told with exit code 1."""
    folder.mkdir()
    too_many = {name: max(low - 1, 0) if high is None else high + (low < high) for name, (low, high) in ranges.items()}
    for k, info in enumerate(model.graph.input):
        np.save(folder / f"input_{k}.npy", array(info, too_many, random))
    result = call("run", [program, "--inputs", folder], {})
    if result.returncode != 1 or " is from " not in result.stdout:
        raise Failed(f"a size out of bounds: exit code {result.returncode}, {first_line(result.stdout)}")


def unsaid(package):
    """Outputs whose sizes the run finds need room for the largest ones, which the header says."""
    outputs = json.loads((package / "manifest.json").read_text())["outputs"]
    header = "".join(path.read_text() for path in package.glob("*.h") if not path.name.startswith("tc_"))
    found = any("by" in count for entry in outputs for count in entry.get("counted", []))
    return "the header does not say how much room outputs need" if found and "give it room" not in header else ""


STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]


def unclean(package):
    """What a strict compiler says of the package's own sources, which are one file here but where there are texts; empty if it says nothing."""
    sources = [package / "all.c"] if (package / "all.c").exists() else package.rglob("*.c")
    result = call("compile", ["gcc", *STRICT, f"-I{package}", *sources], {})
    return "strictly: " + first_line(result.stdout, "error") if result.returncode else ""


def check(case, tool, cpu, toolchain, folder):
    """The number of runs; raises Failed."""
    name, model, ranges, *known = case
    random = np.random.default_rng(1)
    folder.mkdir(parents=True)
    path, package, program = folder / "model.onnx", folder / "out", folder / "program"
    onnx.save(model, path)
    words = [f"--dim={n}={low}..{'' if high is None else high}" for n, (low, high) in ranges.items()]
    words += ["--target=cuda", "--name=m"] if cpu == "cuda" else [f"--cpu={cpu}"]  # a name that variables have
    result = call("emit", [tool, "--quiet", "--verify-each", *words, path, "-o", package], {})
    endless = any(high is None for _, high in ranges.values())
    if endless and not known and cpu == "cuda" and name in sized_models.names_of(sized_models.NO_KERNELS_ON_CUDA):
        if "[TC3104]" not in result.stdout:
            raise Failed("it has no kernels on a GPU: " + first_line(result.stdout))
        return 1
    if endless and not known and name in sized_models.names_of(sized_models.NEEDS_BOUND_ON_CUDA if cpu == "cuda" else sized_models.NEEDS_BOUND):
        if "[TC3106]" not in result.stdout or "give it one: --dim" not in result.stdout:
            raise Failed("it needs an upper bound: " + first_line(result.stdout))
        return 1
    if known and result.returncode in REFUSED:
        print(f"refused {name} ({cpu}): {refusal(result.stdout)}")
        return 0
    if result.returncode:
        raise Failed("emit: " + first_line(result.stdout))
    if told := unsaid(package):
        raise Failed("emit: " + told)
    toolchain.build(package, program, {})
    if cpu == "generic" and (told := unclean(package)):
        raise Failed(told)
    session = session_of(path)
    count = 0
    for sizes in known[0] if known else choices(ranges, random):
        try:
            run(program, session, model, sizes, folder / f"io{count}", random, cpu == "cuda")
        except Failed as failure:
            raise Failed(f"{sizes}: {failure}") from None
        count += 1
    if any(low > 0 if high is None else low < high for low, high in ranges.values()):
        refuses(program, model, ranges, folder / "refused", random)
        count += 1
    return count


def package_of(tool, build, folder, *words):
    """The package of one of the models, below `folder`, which is made."""
    folder.mkdir(parents=True)
    builder = sized_models.Builder(1)
    build(builder)
    onnx.save(builder.model(build.__name__), folder / "model.onnx")
    result = call("emit", [tool, "--quiet", *words, folder / "model.onnx", "-o", folder / "out"], {})
    if result.returncode:
        raise Failed("emit: " + first_line(result.stdout))
    return folder / "out"


def graphs(tool, toolchain, folder):
    """A package on the GPU runs with changing sizes: graphs.cc."""
    package, program = package_of(tool, sized_models.dense, folder, "--target=cuda", "--name=sized", "--dim=batch=1..70", "--cuda-graphs=2"), folder / "program"
    toolchain.program_of(package, [ROOT / "generated_tests" / "sizes" / "graphs.cc"], program, ["-DcudaGraphInstantiate=counted_instantiate"])
    for order in ("late", "early"):
        result = call("run", [program], {}, env={**os.environ, "TC_CUDA_STREAM": order})
        if result.returncode or NOTHING_FOUND not in result.stdout:
            raise Failed("run: " + first_line(result.stdout, "rror|check: "))
    return 2


def capacities(tool, toolchain, folder):
    """Instances for several sizes, in memory that ends where they say: capacities.c."""
    package, program = package_of(tool, sized_models.rows, folder, "--cpu=generic", "--name=endless", "--dim=batch=1.."), folder / "program"
    sources = [package / "endless.c", *sorted((package / "kernels").glob("*.c")), package / "endless_weights.S"]
    command = ["gcc", "-std=gnu11", *FLAGS, f"-I{package}", ROOT / "generated_tests" / "sizes" / "capacities.c", *sources, "-lm", "-o", program]
    result = call("compile", command, {})
    if result.returncode:
        raise Failed("compile: " + first_line(result.stdout, "error"))
    result = call("run", [program], {})
    if result.returncode or "as it should be" not in result.stdout:
        raise Failed("run: " + first_line(result.stdout, "."))
    return 1


def every_case(options):
    yield from sized_models.cases()
    for seed in range(options.seed, options.seed + options.random):
        model, ranges, sizes = random_models.random_model(seed)
        if options.endless:
            name = Random(seed).choice(list(ranges))
            ranges = {**ranges, name: (ranges[name][0], None)}
        yield f"random_{seed}", model, ranges, sizes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default=str(ROOT / "build" / "tc-emit"))
    parser.add_argument("--cpus", default="generic,native,cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--random", type=int, default=8, help="this many random models, too")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")
    parser.add_argument("--endless", action="store_true", help="one of their sizes has no upper bound")
    shares.add_option(parser, quick=7)
    options = parser.parse_args()
    tally = Tally()
    chosen = shares.part([case for case in every_case(options) if re.search(options.only, case[0])], options)
    with tempfile.TemporaryDirectory() as scratch:
        for cpu in options.cpus.split(","):
            folder = Path(scratch) / cpu
            folder.mkdir()
            if cpu == "cuda":
                toolchain = CheckedCudaToolchain(folder, ["-O1"])
            else:
                toolchain = OneSourceToolchain(folder, [*FLAGS, *(["-march=native"] if cpu == "native" else [])], "clang")
            if cpu == "cuda" and not options.list and re.search(options.only, "graphs"):
                tally.judge("graphs", lambda: graphs(options.tool, toolchain, folder / "graphs"))
            if cpu == "generic" and not options.list and re.search(options.only, "capacities"):
                tally.judge("capacities", lambda: capacities(options.tool, toolchain, folder / "capacities"))
            partly = cpu == "cuda" and options.share != (1, 1)  # these take longest to compile
            for case in chosen[::3] if partly else chosen:
                if options.list:
                    print(case[0])
                    continue
                tally.judge(f"{case[0]} ({cpu})", lambda: check(case, options.tool, cpu, toolchain, folder / case[0]))
    return tally.status()


if __name__ == "__main__":
    sys.exit(main())
