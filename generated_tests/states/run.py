#!/usr/bin/env python3
"""Packages whose instances keep states, run after run, against ONNX Runtime, which gets the states from its own results; with sanitizers.

usage: run.py [--exported] [--tool build/tc-emit] [--cpus generic,native,cuda] [--only REGEX] [--share K/N] [--list]
                                                        (run it with `scripts/python_env base`, with --exported by `builder`)

state_models.py holds the models, exported.py those of ONNX Runtime's builder of language models. The runs of one instance are followed by rewinding, by a run without room, and by a reset. Inputs lie in
memory that ends where they end. Of `cuda` every access of memory is checked (docs/cuda_on_cpu.md). The last line reads 'N passed, N failed'.
"""
import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "generated_tests" / folder) for folder in ("python", "sizes")]
import shares  # noqa: E402
import state_models  # noqa: E402
from agreement import difference  # noqa: E402
from answers import session as session_of  # noqa: E402
from checked_cuda import NOTHING_FOUND, CheckedCudaToolchain  # noqa: E402
from tally import Tally  # noqa: E402
from toolchain import WARNINGS, Failed, call, first_line  # noqa: E402

MOST, ROOM, BATCH = state_models.MOST, state_models.ROOM, state_models.BATCH

HOSTILE = {"TC_CUDA_STREAM": "late", "TC_CUDA_ORDER": "reverse"}  # docs/cuda_on_cpu.md
TYPES = {"float": "float", "float16": "uint16_t", "int64": "int64_t"}
# How far results may be apart: where both round between operators (halves, or bytes instead of floats), or compute a whole language model.
ROUNDED = {"halves": 6e-3, "fp16": 6e-3, "int4_4": 3e-2, "fp32": 1e-4, "int4_1": 1e-4}
COPIED = {"both": {"total"}, "several": {"total"}, "recurrent": {"h", "c"}, "moving": {"a", "c", "line"},
          "windows": {"window_0_k", "window_0_v"}, "recurrences": {"steps", "matrix"}}  # states that no loops update in place
FLAGS = ["-O1", "-g0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Runs by what they append, plus 1000 for one sequence more; a number below 0 takes so many away, "reset" all, "full" finds no room; "nan" appends two elements of NaN, where
# inputs may be so, and what is rewound must leave nothing.
SCRIPT = [5, 1, 1, MOST, -3, 2, 1, "full", 1, "nan", -2, 1, "reset", 1, 3, MOST]
# Windows and recurrences have no way back.
ONWARD = [5, 1, 1, MOST, 1, 1, "full", 1, 1, "reset", 1, 3, MOST, 1, 1]
FORWARD = [5, 1, 1, 4, "reset", 1, 3, MOST]  # where states grow by what a run brings and a number beside it: no NAME_rewind
ONE_BY_ONE = [1, 1, 1, 1, -3, 1, 1, -2, 1, "reset", 1, 1]  # where a run brings one element

HEAD = """#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>

static void *load(const char *folder, int step, const char *name, size_t bytes)
{{
  char path[4096];
  unsigned char *data = (unsigned char *)malloc(bytes > 0 ? bytes : 1);
  FILE *f;
  snprintf(path, sizeof path, "%s/%d_%s", folder, step, name);
  f = fopen(path, "rb");
  if (f == NULL || fread(data, 1, bytes, f) != bytes || fgetc(f) != EOF) exit(9);
  fclose(f);
  return data;
}}

static void save(const char *folder, int step, const char *name, const void *data, size_t bytes)
{{
  char path[4096];
  FILE *f;
  snprintf(path, sizeof path, "%s/%d_%s", folder, step, name);
  f = fopen(path, "wb");
  if (f == NULL || fwrite(data, 1, bytes, f) != bytes) exit(9);
  fclose(f);
}}

"""


def program(manifest, rewinds):
    """A C program: FOLDER, then for each step the number that a run appends, and the status that it must have."""
    name = manifest["name"]
    text = HEAD.format(name=name) + "int main(int argc, char **argv)\n{\n  " + f"{name} m;\n  if ({name}_init(&m, NULL, 0, NULL, 0)) return 2;\n"
    text += f"  for (int k = 2; k + 1 < argc; k += 2) {{\n    const int64_t word = atoll(argv[k]), n = word % 1000, batch = {BATCH} + word / 1000;\n    const int wanted = atoi(argv[k + 1]), step = k / 2 - 1;\n"
    text += f"    {name}_inputs in;\n    {name}_outputs out;\n    int status;\n    (void)n, (void)batch;\n"
    text += f"    if (n == 0) {{ {name}_reset(&m); continue; }}\n"
    if any(s["counts"] for s in manifest["states"]) and rewinds:
        text += f"    if (n < 0) {{ if ({name}_rewind(&m, -n)) return 3; continue; }}\n"
    frees = []
    for port in manifest["inputs"]:
        field = port.get("field", port["name"])
        if "size" in port:
            text += f"    in.{field} = {'batch' if field == 'batch' else 'n'};\n"
            continue
        text += "    {\n      char path[4096];\n      long bytes;\n      FILE *f;\n"
        text += f'      snprintf(path, sizeof path, "%s/%d_{field}", argv[1], step);\n      f = fopen(path, "rb");\n      if (f == NULL) return 4;\n'
        text += f'      fseek(f, 0, SEEK_END);\n      bytes = ftell(f);\n      fclose(f);\n      in.{field} = (const {TYPES[port["dtype"]]} *)load(argv[1], step, "{field}", (size_t)bytes);\n    }}\n'
        frees.append(f"in.{field}")
    sizes = []
    for port in manifest["outputs"]:
        field = port.get("field", port["name"])
        open_, others = [c for c in port.get("counted", [])], 1
        for axis, size in enumerate(port["shape"]):
            others *= 1 if any(c["axis"] == axis for c in open_) else size
        count = " * ".join([f"(size_t){'batch' if c['by_input'] == 'batch' else 'n'}" for c in open_] + [str(others)])
        sizes.append((field, count))
        text += f"    out.{field} = ({TYPES[port['dtype']]} *)malloc(({count} + 1) * sizeof *out.{field});\n"
    text += f"    status = (int){name}_run(&m, &in, &out);\n    if (status != wanted) {{ fprintf(stderr, \"status %d\\n\", status); return 5; }}\n    if (status == 0) {{\n"
    for field, count in sizes:
        text += f'      save(argv[1], step, "out_{field}", out.{field}, {count} * sizeof *out.{field});\n'
    text += "    }\n" + "".join(f"    free((void *){f});\n" for f in frees) + "".join(f"    free(out.{f});\n" for f, _ in sizes)
    return text + f"  }}\n  {name}_free(&m);\n  return 0;\n}}\n"


def value(info, n, total, random, batch=BATCH):
    shape = [{"seq": n, "total": total, "batch": batch}.get(d.dim_param, d.dim_value) for d in info.type.tensor_type.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    if info.name.endswith("mask"):
        return np.ones(shape, dtype)
    return random.integers(0, 24, shape).astype(dtype) if dtype.kind == "i" else random.standard_normal(shape).astype(dtype)


def empty(info):
    return np.zeros([0 if d.dim_param in ("past", "more") else d.dim_value or BATCH for d in info.type.tensor_type.shape.dim], onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))


def cut(info, array, length):
    """What is left of a state when `length` elements are."""
    for axis, d in enumerate(info.type.tensor_type.shape.dim):
        if d.dim_param in ("past", "more"):
            return np.take(array, range(length * (2 if d.dim_param == "more" else 1)), axis=axis)
    return array


def steps(name, model, kept, session, folder, random, onward=False):
    """Writes the inputs of all runs; returns what the program is told, and the outputs that it must give by (step, name)."""
    inputs = {i.name: i for i in model.graph.input}
    own = [i for name, i in inputs.items() if name not in kept]
    grows = any(d.dim_param == "past" for name in kept for d in inputs[name].type.tensor_type.shape.dim)
    all_grow = all(any(d.dim_param in ("past", "more") for d in inputs[name].type.tensor_type.shape.dim) for name in kept)
    states, words, wanted = {name: empty(inputs[name]) for name in kept}, [], {}
    length = 0
    varies = any(d.dim_param == "seq" for i in own for d in i.type.tensor_type.shape.dim)
    if not grows:
        script = [3, 1, MOST, 2, "reset", 1, MOST] if varies else [1, 1, 1, "reset", 1, 1]
    elif name == "marked":
        script = FORWARD
    elif onward and not all_grow:
        script = ONWARD
    else:
        script = SCRIPT if varies else ONE_BY_ONE
    if any(d.dim_param == "batch" for i in own for d in i.type.tensor_type.shape.dim):
        script = [script[0], "other", *script[1:], "reset", "anew"]
    for step, n in enumerate(script):
        if n in ("other", "anew"):  # one sequence more: states keep their number of sequences until they are reset
            for info in own:
                value(info, 1, 1 + length, random, BATCH + 1).tofile(folder / f"{step}_{info.name}")
            words += ["1001", "8" if n == "other" else "0"]
            continue
        if n == "reset":
            states, length = {name: empty(inputs[name]) for name in kept}, 0
            words += ["0", "0"]
            continue
        if n == "full":
            assert length + MOST > ROOM, "the script leaves room"
            for info in own:
                value(info, MOST, length + MOST, random).tofile(folder / f"{step}_{info.name}")
            words += [str(MOST), "8"]
            continue
        if n != "nan" and n < 0:
            length += n
            states = {name: cut(inputs[name], v, length) for name, v in states.items()}
            words += [str(n), "0"]
            continue
        spoilt = n == "nan"
        n = 2 if spoilt else n
        outputs = run_once(model, own, kept, session, states, n, length, folder, step, random, np.nan if spoilt and all_grow else 0)
        length += n
        for name, array in outputs.items():
            if name not in kept.values() and not spoilt:
                wanted[step, name] = array
        states = {name: outputs[result] for name, result in kept.items()}
        words += [str(n), "0"]
    return words, wanted


def run_once(model, own, kept, session, states, n, length, folder, step, random, added):
    """`added` to numbers that are no integers."""
    feed = dict(states)
    for info in own:
        feed[info.name] = value(info, n, length + n, random)
        if feed[info.name].dtype.kind == "f":
            feed[info.name] += np.float32(added)
        feed[info.name].tofile(folder / f"{step}_{info.name}")
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))


def compiled(package, folder, cpu, toolchain):
    """The program of `folder`/steps.c; raises Failed."""
    program = folder / "steps"
    if toolchain:
        toolchain.program_of(package, [folder / "steps.c"], program)
        return program
    sources = [p for p in package.rglob("*") if p.suffix in (".c", ".S") and p.name != "main.c"]
    arch = ["-march=native"] if cpu == "native" else []
    result = call("compile", ["gcc", "-pipe", *WARNINGS, *FLAGS, *arch, f"-I{package}", folder / "steps.c", *sources, "-o", program, "-lm"], {})
    if result.returncode:
        raise Failed("compile: " + first_line(result.stdout))
    return program


def check(case, tool, cpu, toolchain, folder, exported=False):
    """The number of runs that were compared; raises Failed. `toolchain`: of `cuda`."""
    name, model, kept, words = case
    random = np.random.default_rng(2)
    folder.mkdir(parents=True)
    path, package, io = folder / "model.onnx", folder / "out", folder / "io"
    io.mkdir()
    onnx.save(model, path)
    pairs = [f"--state={before}={after}" for before, after in reversed(kept.items())]  # their order says nothing
    target = "--target=cuda" if cpu == "cuda" else f"--cpu={cpu}"
    result = call("emit", [tool, "--quiet", "--verify-each", target, *words, *pairs, path, "-o", package], {})
    if result.returncode:
        raise Failed("emit: " + first_line(result.stdout))
    manifest = json.loads((package / "manifest.json").read_text())
    rewinds = "_rewind(" in (package / f"{manifest['name']}.h").read_text()
    if rewinds != (name != "marked" and any(s["counts"] for s in manifest["states"])):
        raise Failed("NAME_rewind is there" if rewinds else "NAME_rewind is missing")
    (folder / "steps.c").write_text(program(manifest, rewinds))
    program_file = compiled(package, folder, cpu, toolchain)
    session = session_of(path)
    told, wanted = steps(name, model, kept, session, io, random, exported or name == "windows")
    result = call("run", [program_file, io, *told], {}, env={**os.environ, **HOSTILE})
    if result.returncode:
        raise Failed(f"run: exit code {result.returncode}: {first_line(result.stdout, 'rror|check: |status')}")
    if cpu == "cuda" and NOTHING_FOUND not in result.stdout:
        raise Failed("run: the checker was not in it")
    fields = {p["name"]: p.get("field", p["name"]) for p in manifest["outputs"]}
    bar = next((ROUNDED[end] for end in ROUNDED if name.endswith(end)), 1e-5)
    for (step, output), want in wanted.items():
        got = np.fromfile(io / f"{step}_out_{fields[output]}", want.dtype)
        if got.size != want.size:
            raise Failed(f"step {step}, {output}: {got.size} elements, not {want.size}")
        if problem := difference(got.reshape(want.shape), want, bar):
            raise Failed(f"step {step}, {output}: {problem}")
    executor = (package / f"{manifest['name']}.{'cu' if cpu == 'cuda' else 'c'}").read_text()
    copied = set(re.findall(r"(?:memcpy|cudaMemcpyAsync)\(AT\w*\((?:\w+, )?(\w+)\)", executor)) & kept.keys()
    grown = {i.name for i in model.graph.input if any(d.dim_param == "past" for d in i.type.tensor_type.shape.dim)}
    if copied - COPIED.get(name, (kept.keys() - grown) if exported else set()):
        raise Failed(f"copied: {', '.join(sorted(copied))}")
    return len(wanted)


def streams(tool, toolchain, folder):
    """A package of CUDA on streams of the caller's: streams.cc."""
    folder.mkdir(parents=True)
    name, model, kept, words = next(case for case in state_models.cases() if case[0] == "both")
    onnx.save(model, folder / "both.onnx")
    pairs = [f"--state={before}={after}" for before, after in kept.items()]
    result = call("emit", [tool, "--quiet", "--target=cuda", "--name=kept", *words, *pairs, folder / "both.onnx", "-o", folder / "out"], {})
    if result.returncode:
        raise Failed("emit: " + first_line(result.stdout))
    program_file = folder / "program"
    toolchain.program_of(folder / "out", [ROOT / "generated_tests" / "states" / "streams.cc"], program_file, ["-DcudaGraphInstantiate=counted_instantiate"])
    for order in ("late", "early", "random:3"):
        result = call("run", [program_file], {}, env={**os.environ, "TC_CUDA_STREAM": order})
        if result.returncode or NOTHING_FOUND not in result.stdout:
            raise Failed(f"run: {order}: " + first_line(result.stdout, "rror|check: "))
    return 3


def chosen_cases(options, folder):
    """Those that --only and --share leave. `folder`: for what the builder writes."""
    if not options.exported:
        return shares.part([case for case in state_models.cases() if re.search(options.only, case[0])], options)
    import exported
    names = shares.part([name for name in exported.NAMES if re.search(options.only, name)], options)
    return [(name,) for name in names] if options.list else list(exported.cases(names, folder))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--exported", action="store_true")
    parser.add_argument("--tool", default=str(ROOT / "build" / "tc-emit"))
    parser.add_argument("--cpus", default="generic,native,cuda")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    shares.add_option(parser, quick=4)
    options = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        chosen = chosen_cases(options, Path(scratch) / "exported")
        for cpu in options.cpus.split(","):
            (Path(scratch) / cpu).mkdir()
            toolchain = CheckedCudaToolchain(Path(scratch) / cpu, ["-O1"]) if cpu == "cuda" and not options.list else None
            if toolchain and not options.exported and re.search(options.only, "streams"):
                tally.judge("streams", lambda: streams(options.tool, toolchain, Path(scratch) / cpu / "streams"))
            partly = cpu == "cuda" and options.share != (1, 1)  # these take longest to compile
            for case in chosen[::3] if partly else chosen:
                if options.list:
                    print(case[0])
                    continue
                tally.judge(f"{case[0]} ({cpu})", lambda: check(case, options.tool, cpu, toolchain, Path(scratch) / cpu / case[0], options.exported))
    return tally.status()


if __name__ == "__main__":
    sys.exit(main())
