"""Many models, one compilation: every package is emitted by itself, all of them become one program."""
import dataclasses
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

from evaluate import I4, U4
from rewritten import emitted

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "python"))
from batches import own_macros  # noqa: E402
from toolchain import GPU, REFUSED, nvcc, refusal  # noqa: E402

TEXTS = ROOT / "templates" / "text"
WARNINGS = ["-Wall", "-Wextra"]
ENDS = {90: "two runs differ: something is read that nobody wrote", 91: "writes outside of an output or the workspace", 92: "writes into an input", 179: "the first run fails", 180: "counts another size of an output"}


@dataclasses.dataclass(frozen=True)
class Config:
    """How a batch is emitted and compiled."""
    name: str
    emit: tuple
    compile: tuple
    compiler: str = "gcc"
    way: str = ""  # of rewritten.py

    @property
    def cuda(self):
        return "cuda" in self.emit


AS_BYTES = {I4: np.int8, U4: np.uint8}
CONFIGS = {c.name: c for c in (
    Config("generic", ("--cpu", "generic"), ("-O0",), "clang"), Config("native", ("--cpu", "native", "--verify-each"), ("-O1", "-march=native")),
    Config("x86-64-v3", ("--cpu", "x86-64-v3"), ("-O0", "-march=x86-64-v3", "-ffp-contract=fast"), "clang"), Config("znver4", ("--cpu", "znver4"), ("-O0", "-DTC_VL=16")),
    Config("znver5-scalar", ("--cpu", "znver5"), ("-O0", "-DTC_VL=1"), "clang"), Config("aarch64", ("--cpu", "aarch64"), ("-O0", "-DTC_VL=4"), "clang"),
    Config("strict", ("--cpu", "x86-64-v3", "--fp", "strict"), ("-O0",), "clang"), Config("threads", ("--cpu", "native"), ("-O1", "-march=native", "-fopenmp")), Config("O0", ("-O", "0"), ("-O0",), "clang"), Config("O1", ("-O", "1", "--verify-each"), ("-O0",)), Config("O3", ("-O", "3", "--verify-each"), ("-O0",), "clang"),
    Config("cuda", ("--target", "cuda", "--verify-each"), ("-O0",), "clang++"), Config("cuda-sm_75", ("--target", "cuda", "--arch", "sm_75"), ("-O0",), "clang++"),
    Config("cuda-sm_90", ("--target", "cuda", "--arch", "sm_90"), ("-O0",), "g++"), Config("cuda-int8", ("--target", "cuda", "--precision", "int8"), ("-O0",), "clang++"),
    Config("schedules", ("--cpu", "x86-64-v3"), ("-O0", "-march=x86-64-v3"), "clang", "schedules"), Config("schedules-znver4", ("--cpu", "znver4"), ("-O0", "-DTC_VL=16"), "gcc", "schedules"),
    Config("schedules-cuda", ("--target", "cuda"), ("-O0",), "clang++", "schedules"), Config("schedules-sm_90a", ("--target", "cuda", "--arch", "sm_90a"), ("-O0",), "clang++", "schedules"),
    Config("text", ("--cpu", "x86-64-v3"), ("-O0", "-march=x86-64-v3"), "clang", "text"), Config("text-cuda", ("--target", "cuda"), ("-O0",), "clang++", "text"),
    Config("sapphirerapids", ("--cpu", "sapphirerapids", "--verify-each"), ("-O0", "-DTC_VL=16"), "clang"),
    Config("any", (), ("-O0",)), Config("tcc", ("--cpu", "znver4", "--verify-each"), ("-DTC_VL=1",), "tcc"))}


@dataclasses.dataclass
class Outcome:
    kind: str  # passed, refused, unstable or failed
    text: str = ""


class Emitter:
    """Runs the tool: through tc_emit_many, which lies beside it and starts only once, where that was built."""

    def __init__(self, tool, folder):
        self.tool, self.many = tool, None
        many = Path(tool).parent / "tc_emit_many"
        if many.exists():
            first = folder / "first.onnxtxt"
            first.write_text('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
            self.many = subprocess.Popen([many, first], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __call__(self, words, messages):
        """(exit code, or 1000 and a signal; what it said)."""
        if self.many:
            self.many.stdin.write("\t".join([*words, str(messages)]) + "\n")
            self.many.stdin.flush()
            return int(self.many.stdout.readline()), messages.read_text(errors="replace")
        try:
            done = subprocess.run([self.tool, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, text=True, errors="replace")
        except subprocess.TimeoutExpired:
            return 1014, ""
        return (1000 - done.returncode if done.returncode < 0 else done.returncode), done.stdout

    def close(self):
        if self.many:
            self.many.stdin.close()
            self.many.wait()
            self.many.stdout.close()


def emit(emitter, config, model, folder):
    """Emits one model as FOLDER/mSEED; returns an Outcome where it did not become a package."""
    name = f"m{model.seed}"
    path = folder / f"{name}.onnx"
    path.write_bytes(model.proto().SerializeToString())
    words = [str(path), "--name", name, "--quiet", *model.sizes.words(), *(f"--state={x}={y}" for x, y in model.states.items()), *config.emit, *([] if config.cuda else ["--single-file", *room_for_texts(model)])]
    code, said = emitted(config.way, lambda words: emitter(words, folder / f"{name}.log"), words, folder / name, model.seed, emitter.tool)
    if code >= 2000:
        return Outcome("failed", f"emit: {said[:300]}" if code == 2000 else f"emit: exit code {code - 2000} {said[:400]}")
    if code in REFUSED:
        return Outcome("refused", refusal(said))
    if code >= 1000:
        return Outcome("failed", f"emit: signal {code - 1000}")
    if code:
        return Outcome("failed", f"emit: exit code {code}: {refusal(said)}")
    manifest = json.loads((folder / name / "manifest.json").read_text())
    told = {what: [tuple(entry["shape"]) for entry in manifest[what] if "size" not in entry] for what in ("inputs", "outputs")}
    counts = told["outputs"][len(model.outputs):]
    if counts and not model.sizes.axes:
        return Outcome("refused", "an output has a count beside it, which the driver does not pass")
    for what, values in (("inputs", model.inputs), ("outputs", model.outputs)):
        shapes, known = told[what][:len(values)], [v.shape for v in values]
        if shapes != known if not model.sizes.axes else any(len(s) != len(k) or any(a < b for a, b in zip(s, k)) for s, k in zip(shapes, known)):
            return Outcome("failed", f"the package's {what} have shapes {shapes}, not {known}")
    model.fields = fields_of(model, manifest)
    return None


def room_for_texts(model):
    """A model that makes strings may make long ones."""
    values = model.graph.inputs + model.graph.constants + [r for node in model.graph.nodes for r in node.results]
    return ["--string-bytes=4194304"] if any(v.dtype.kind in "OSU" for v in values) else []


@dataclasses.dataclass
class Fields:
    """What a package asks for beside its tensors: sizes of inputs, and room for those of outputs that it counts."""
    sizes: list   # their names
    counts: list  # what they are
    room: list    # bytes of each output


def fields_of(model, manifest):
    entries = list(zip(model.outputs, manifest["outputs"]))
    by = {c["by"]: v.shape[c["axis"]] for v, entry in entries for c in entry.get("counted", []) if "by" in c}
    room = [v.array.itemsize * int(np.prod(entry["shape"])) if any("by" in c for c in entry.get("counted", [])) else v.array.nbytes for v, entry in entries]
    return Fields([entry["name"] for entry in manifest["inputs"] if "size" in entry], [by[entry["name"]] for entry in manifest["outputs"][len(entries):]], room)


def stored(array):
    """The array as packages have it: integers of 4 bits take a byte each."""
    return array.astype(AS_BYTES.get(array.dtype, array.dtype))


def call_of(m, name):
    """C text that runs a package once more than needed if it keeps states; with sizes and counts beside the tensors, if it has them."""
    call = f"{name}_run(({name} *)m, (const {name}_inputs *)in, (const {name}_outputs *)out)"
    if not m.sizes.axes:
        return f"if ({call} != 0) return 79;" if m.states else "", call, ""
    ins, outs, sizes, counts = len(m.inputs), len(m.outputs), [m.sizes.values[size] for size in m.fields.sizes], m.fields.counts
    before = [f"int64_t i[{ins + len(sizes)}], counts[{len(counts) + 1}]; void *o[{outs + len(counts)}]; memcpy(i, in, {ins} * sizeof *in); memcpy(o, out, {outs} * sizeof *out); (void)counts;",
              *(f"i[{ins + k}] = {size};" for k, size in enumerate(sizes)), *(f"o[{outs + k}] = &counts[{k}];" for k in range(len(counts)))]
    after = "".join(f" if (s == 0 && counts[{k}] != {size}) return 80;" for k, size in enumerate(counts))
    return " ".join(before), f"{name}_run((const {name} *)m, (const {name}_inputs *)(const void *)i, (const {name}_outputs *)(const void *)o)", after


def table(models):
    """The C text that names the models and their sizes."""
    lines, rows, at, to = [], [], 0, 0
    for m in models:
        name, upper = f"m{m.seed}", f"M{m.seed}"
        sizes = [[v.array.nbytes for v in values] for values in (m.inputs, m.outputs)]
        before, call, after = call_of(m, name)
        lines.append(f"static int init_{name}(void *m, void *w, size_t n) {{ return (int){name}_init(({name} *)m, NULL, 0, w, n); }}\n"
                     f"static int run_{name}(void *m, void *const *in, void *const *out) {{ {before} const {name}_status s = {call};{after}"
                     f" {name}_free(({name} *)m); return (int)s; }}\n"
                     f"static const size_t in_{name}[] = {{{', '.join(map(str, sizes[0] or [0]))}}}, out_{name}[] = {{{', '.join(map(str, sizes[1]))}}}, room_{name}[] = {{{', '.join(map(str, m.fields.room))}}};")
        rows.append(f'  {{"{name}", sizeof({name}), {upper}_WORKSPACE_BYTES, {len(sizes[0])}, {len(sizes[1])}, in_{name}, out_{name}, room_{name}, {at}, {to}, init_{name}, run_{name}}},')
        at, to = at + sum(sizes[0]), to + sum(sizes[1])
    head = ("typedef struct { const char *name; size_t instance_bytes, workspace_bytes; int inputs, outputs; const size_t *input_bytes, *output_bytes, *output_room; size_t inputs_at, outputs_at;\n"
            "  int (*init)(void *, void *, size_t); int (*run)(void *, void *const *, void *const *); } batch_model;\n")
    return "\n".join(lines) + "\n" + head + "static const batch_model models[] = {\n" + "\n".join(rows) + "\n};\n" + \
        f"enum {{ INPUT_BYTES = {max(at, 1)}, OUTPUT_BYTES = {max(to, 1)} }};\n#include \"{HERE}/driver.c\"\n", at, to


def unity(models, cuda, folder):
    """The text of all packages and the program."""
    names = [f"m{m.seed}" for m in models]
    if cuda:
        parts = ["#include <cstdio>\n#include <cstring>\n#include <new>\n#include <stddef.h>\n#include <stdint.h>\n" + "".join(f'#include "{path.name}"\n' for path in sorted(TEXTS.glob("tc_*.h")) if path.name in CUDA_TEXTS)]
        for name in names:
            sources = sorted((folder / name / "kernels").glob("*.cu")) + [folder / name / f"{name}.cu"]
            parts.append(f"namespace space_{name} {{\n" + "".join(f'#include "{path}"\n' for path in sources) + "}\n" + f"using namespace space_{name};\n" + undefined(sources))
    else:
        parts = [f'#define fits fits_{name}\n#include "{name}/{name}.c"\n#undef fits\n' + undefined([folder / name / f"{name}.c"]) for name in names]
    return "".join(parts)


CUDA_TEXTS = {"tc_cuda.h", "tc_scalar.h", "tc_types.h", "tc_rt.h"}


def undefined(sources):
    """Ends the macros that the files of a package have for themselves."""
    return "".join(f"#undef {name}\n" for name in sorted(own_macros(sources)))


LIBRARY = threading.Lock()


def cuda_library(folder):
    """What runs CUDA on a CPU, compiled when it is first needed."""
    with LIBRARY:
        objects = {source: folder / f"{source.stem}.o" for source in sorted((TEXTS / "cuda_on_cpu").glob("*.cc")) if "check" not in source.name}
        for source, compiled in objects.items():
            if not compiled.exists():
                subprocess.run(["g++", "-std=gnu++17", "-O2", f"-I{TEXTS}", f"-I{TEXTS / 'cuda_on_cpu'}", "-c", source, "-o", compiled], check=True)
        return list(objects.values())


class Compiler:
    """Compiles unities; `folder` has what they share."""

    def __init__(self, folder, config, sanitize=False):
        self.config, self.on_gpu = config, bool(config.cuda and GPU)
        self.objects = cuda_library(folder) if config.cuda and not self.on_gpu else []
        flags = [*config.compile, "-g0", *WARNINGS, "-Wno-psabi"]
        if sanitize:
            flags += ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        self.command = [config.compiler, "-pipe", "-std=gnu11", *flags]
        if self.on_gpu:
            self.command = nvcc(TEXTS)
        elif config.cuda:
            self.command = [config.compiler, "-pipe", "-std=gnu++17", *flags, "-Wno-unknown-pragmas", "-Wno-maybe-uninitialized", "-fno-strict-aliasing", f"-I{TEXTS}", f"-I{TEXTS / 'cuda_on_cpu'}"]

    def build(self, models, folder):
        """Makes FOLDER/batch; returns (input bytes, output bytes) or the compiler's messages."""
        text, at, to = table(models)
        source = folder / ("batch.cu" if self.on_gpu else "batch.cc" if self.config.cuda else "batch.c")
        source.write_text("#define _GNU_SOURCE\n" * (not self.config.cuda) + unity(models, self.config.cuda, folder) + text)
        (folder / "batch.S").write_text("".join(f'#include "m{m.seed}/m{m.seed}_weights.S"\n#undef BLOB\n' for m in models))
        assembled = folder / "batch.S"
        if self.config.compiler == "tcc" or self.on_gpu:  # neither knows .incbin
            assembled = folder / "batch.o"
            subprocess.run(["gcc", *(f"-I{folder}/m{m.seed}" for m in models), "-c", folder / "batch.S", "-o", assembled], check=True)
        command = [*self.command, *(f"-I{folder}/m{m.seed}" for m in models), source, assembled, *self.objects, "-lm", *(["-lpthread"] if self.config.cuda else []), "-o", folder / "batch"]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=900)
        return done.returncode, done.stdout, at, to


def blamed(messages):
    """{package: complaint} of a compiler's output."""
    found = {}
    for line in messages.splitlines():
        told = re.match(r".*?\b(m\d+)/\S*?:\d+(?::\d+)?: (?:fatal )?(error|warning): (.*)", line)
        if told:
            found.setdefault(told[1], f"compile: {told[2]}: {told[3]}")
    return found


def run_program(models, compiler, folder):
    """{model's name: (signal, status)} of a compiled batch, and what it said to stderr. On a GPU a failed model ends the process."""
    ends, stderr, at = {}, "", 0
    while at < len(models):
        ran = subprocess.run([folder / "batch", str(at)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=900)
        told = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in ran.stdout.splitlines() if re.fullmatch(r"m\d+ \d+ \d+", line)}
        ends, stderr, at = ends | told, stderr + ran.stderr, at + len(told)
        if not compiler.on_gpu or (not told and ran.returncode >= 0):
            break
        if ran.returncode < 0 and at < len(models):
            ends[f"m{models[at].seed}"] = (-ran.returncode, 0)
            at += 1
    return ends, stderr


def run_batch(models, emitter, compiler, folder):
    """{seed: Outcome or arrays of the outputs}."""
    results = {m.seed: outcome for m in models if (outcome := emit(emitter, compiler.config, m, folder))}
    left = [m for m in models if m.seed not in results]
    while left:
        code, messages, at, to = compiler.build(left, folder)
        wrong = blamed(messages)
        for m in left:
            if f"m{m.seed}" in wrong:
                results[m.seed] = Outcome("failed", wrong[f"m{m.seed}"])
        if code == 0 or not wrong:
            break
        left = [m for m in left if m.seed not in results]
    if not left:
        return results
    if code:
        return results | {m.seed: Outcome("failed", "compile: " + messages.strip()[:300]) for m in left}
    (folder / "inputs.bin").write_bytes(b"".join(stored(v.array).tobytes() for m in left for v in m.inputs) or b"\0")
    (folder / "outputs.bin").write_bytes(bytes(max(to, 1)))
    ends, stderr = run_program(left, compiler, folder)
    data, at = (folder / "outputs.bin").read_bytes(), 0
    for m in left:
        signal, status = ends.get(f"m{m.seed}", (-1, 0))
        arrays = []
        for v in m.outputs:
            arrays.append(np.frombuffer(data, AS_BYTES.get(v.dtype, v.dtype), v.size, at).reshape(v.shape).astype(v.dtype))
            at += v.array.nbytes
        if m.seed in results:
            continue
        if signal:
            results[m.seed] = Outcome("failed", f"run: signal {signal} {stderr.strip()[:200]}")
        elif status:
            results[m.seed] = Outcome("failed", "run: " + ENDS.get(status, f"returned {status - 100}"))
        else:
            results[m.seed] = arrays
    return results
