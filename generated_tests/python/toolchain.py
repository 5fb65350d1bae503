"""Compiles emitted packages, many of them, without compiling the same text for each.

Every package carries the program around the model: a thousand lines (tc_main.h and what it includes) that are the same in
all of them and take longer to compile than a small model. They are compiled once, with the same warnings, and main.c
sees their declarations instead. A package whose copy of that text is not the repository's is compiled whole.
"""
import functools
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from program_server import ProgramServers
from verdicts import compiler_version, digest_of

TEXTS = Path(__file__).resolve().parent.parent.parent / "templates" / "text"
WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
REFUSED = (1, 3, 5)  # exit codes of tc-emit: rejected, unsupported, over a limit
LINKER = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []  # binutils' other one needs three times as long for C++
GPU = os.environ.get("TC_TEST_GPU")  # "sm_90": nvcc compiles what is CUDA, for the GPU of this machine, and it runs there
SECONDS = {"emit": 120, "compile": 300, "run": 240}  # that a step may take; a large network as CUDA on a CPU takes more than one minute

PROGRAM = """#define tc_main tc_main_here
#include "tc_main.h"
#undef tc_main
int tc_main(const tc_model *m, int argc, char **argv);
int tc_main(const tc_model *m, int argc, char **argv) { return tc_main_here(m, argc, argv); }
"""


class Failed(Exception):
    """A case is wrong; the text says in what."""


def call(step, command, seconds, **options):
    """Runs a command; adds its wall time to `seconds[step]`; a hang is a failure. Its output has both streams."""
    def process():
        return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS[step], text=True, errors="replace", **options)

    return timed(step, process, seconds)


def timed(step, work, seconds):
    """What `work` returns, its wall time added to `seconds[step]`; raises Failed where it has no end."""
    start = time.monotonic()
    try:
        return work()
    except subprocess.TimeoutExpired:
        raise Failed(f"{step}: no end after {SECONDS[step]} s") from None
    finally:
        seconds[step] = seconds.get(step, 0) + time.monotonic() - start


def first_line(text, pattern=r"error"):
    """The first line of a tool's output that tells an error; otherwise its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if re.search(pattern, line)]
    return (told or lines or ["(no message)"])[0]


def refusal(output):
    """The first diagnostic of tc-emit, without the path of the model, short enough for a table."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("error") or ": error" in line] or lines or ["(no message)"]
    text = re.sub(r"\S*/(\S+\.onnx)", r"\1", told[0])
    text = re.sub(r"^error(\[TC\d+\])? ?(\S+\.onnx: )?", lambda m: (m[1] or "").strip("[]") + " " if m[1] else "", text)
    return text if len(text) <= 160 else text[:157] + "..."


def declarations(text):
    """What main.c needs of tc_main.h: the includes of tensors, struct tc_model with what it is made of, and the declaration of tc_main."""
    end = text.index("} tc_model;") + len("} tc_model;")
    return '#include "tc_io.h"\n' + text[text.index("/* A size that is chosen"):end] + "\n#ifdef __cplusplus\nextern \"C\"\n#endif\nint tc_main(const tc_model *m, int argc, char **argv);\n"


def without_strings(text):
    """A support file as packages have it that have no tensors of strings."""
    return re.sub(rb"#ifdef TC_STRINGS\n.*?(?:#else\n(.*?))?#endif\n", lambda part: part[1] or b"", text, flags=re.S)


def texts_of_program(folder):
    """{name: bytes} of tc_main.h and of every file of `folder` that it includes, directly or not, without strings."""
    found, todo = {}, ["tc_main.h"]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = without_strings((folder / name).read_bytes())
            todo += re.findall(r'#include "(tc_\w+\.h)"', found[name].decode())
    return found


class Toolchain:
    """Holds what is compiled once; lives in `folder`. Safe to use from several threads."""

    COMMON = ()  # headers of every package, beside those of its program

    def __init__(self, folder, flags, compiler="gcc", build=True):
        self.texts = {**texts_of_program(TEXTS), **{name: without_strings((TEXTS / name).read_bytes()) for name in self.COMMON}}
        linker = [] if "clang" in compiler or "mingw" in compiler else LINKER  # clang complains of it where it only compiles
        self.compiler, self.base = compiler, [compiler, "-pipe", *linker, *WARNINGS, *flags]
        self.declarations, self.program = folder / "tc_main_declarations.h", folder / "tc_main.o"
        if build:
            self.prepare(folder)

    def prepare(self, folder):
        """Compiles what packages share."""
        self.declarations.write_text(declarations(self.texts["tc_main.h"].decode()))
        source, self.text = folder / "tc_main.c", folder / "tc_main_text"
        source.write_text(PROGRAM)
        self.text.mkdir()
        for name, data in self.texts.items():
            (self.text / name).write_bytes(data)
        subprocess.run([*self.base, f"-I{self.text}", "-c", source, "-o", self.program], check=True)

    @functools.cached_property
    def identity(self):
        """What a verdict depends on of this: the compiler, its flags, and the texts that are compiled once."""
        return digest_of(type(self).__name__, compiler_version(self.compiler), self.base, self.texts)

    def same(self, package):
        """Whether the texts of a package are those that are compiled once."""
        return all((package / name).exists() and (package / name).read_bytes() == text for name, text in self.texts.items())

    def commands(self, package, program):
        """The commands that make `program` of a package, one after the other, to be run in the package's folder."""
        sources = sorted(path for path in package.rglob("*") if path.suffix in (".c", ".S"))
        main, base = package / "main.c", [*self.base, f"-I{package}"]
        if main not in sources or not self.same(package):
            return [[*base, *sources, "-lm", "-o", program]]
        sources.remove(main)
        shared = [*base, "-DTC_MAIN_H", "-include", self.declarations, "-c", main, "-o", package / "main.o"]
        return [shared, [*base, *sources, package / "main.o", self.program, "-lm", "-o", program]]

    def run(self, words, cwd, seconds):
        """What a program that was built does, in the folder `cwd`."""
        return call("run", words, seconds, cwd=cwd)

    def build(self, package, program, seconds):
        """Compiles and links every C and assembler file of a package; raises Failed with the compiler's first complaint."""
        for command in self.commands(package, program):
            result = call("compile", command, seconds, cwd=package)
            if result.returncode:
                raise Failed("compile: " + first_line(result.stdout, r"error:|warning:|undefined"))


class OneSourceToolchain(Toolchain):
    """Builds C packages as one translation unit each, so that a compiler starts once and reads the headers of intrinsics once."""

    def commands(self, package, program):
        if not self.same(package):
            return super().commands(package, program)
        sources = sorted(path for path in package.rglob("*.c") if path.name != "main.c")
        (package / "all.h").write_text(included([], self.declarations))
        source = one_source(package, "all.c", package / "all.h", [*sources, package / "main.c"])
        return [[*self.base, f"-I{package}", source, *sorted(package.rglob("*.S")), self.program, "-lm", "-o", program]]


def precompile(folder, command, headers, declarations_of_program):
    """A header, compiled once, that a file includes before all others: `headers`, and instead of tc_main.h its declarations."""
    header = folder / "headers.h"
    header.write_text(included(headers, declarations_of_program))
    subprocess.run([*command, "-x", "c++-header" if "++" in command[0] else "c-header", header, "-o", f"{header}.gch"], check=True)
    return header


def included(headers, declarations_of_program):
    return "".join(f"#include {name}\n" for name in headers) + "#define TC_MAIN_H\n" + declarations_of_program.read_text()


def one_source(package, name, header, sources):
    """The file `name` of a package, which includes `header` and all of `sources`."""
    (package / name).write_text("".join(f'#include "{path}"\n' for path in (header, *(path.relative_to(package) for path in sources))))
    return package / name


def nvcc(texts):
    """The words that compile CUDA for the GPU of this machine; `texts`: the folder of support texts."""
    return ["nvcc", f"-arch={GPU}", "-std=c++17", "-diag-suppress=177", "-Xcompiler=-O1,-fno-strict-aliasing,-w", f"-I{texts}"]


class CudaToolchain(Toolchain):
    """Builds CUDA packages with the C++ compiler, through the headers that they carry. What runs CUDA on a CPU is compiled
    once, the headers that all packages have, too, and the files of a package are one translation unit. With TC_TEST_GPU
    nvcc makes libraries of them, which processes that live on run on a GPU."""

    ON_CPU = TEXTS / "cuda_on_cpu"
    COMMON = ("tc_cuda.h", "tc_rt.h")

    def __init__(self, folder, flags, build=True):
        self.suffix, self.library_words = ".cc", []
        self.cxx = ["g++", "-pipe", *LINKER, "-std=gnu++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas",
                    "-Wno-maybe-uninitialized",  # gcc does not see that a register is read only where it was filled
                    "-fno-strict-aliasing", *flags]
        self.on_cpu = {path.name: path.read_bytes() for path in self.ON_CPU.iterdir() if path.is_file()}
        super().__init__(folder, flags if not GPU else [*flags, "-fPIC"], build=build)

    def prepare(self, folder):
        super().prepare(folder)
        if GPU:
            return self.prepare_for_gpu(folder)
        sources = [source for source in sorted(self.ON_CPU.glob("*.cc")) if "check" not in source.name]
        self.library = folder / "libcuda_on_cpu.so"  # a program that holds all of it takes twice as long to link
        subprocess.run([*self.cxx, "-O2", "-fPIC", "-shared", f"-I{TEXTS}", f"-I{self.ON_CPU}", *sources, "-lpthread", "-o", self.library], check=True)
        self.library_words = [self.library, f"-Wl,-rpath,{self.library.parent}"]
        self.header = precompile(folder, [*self.cxx, f"-I{self.text}", f"-I{self.ON_CPU}"], self.headers(), self.declarations)

    def headers(self):
        return [*(f'"{name}"' for name in self.COMMON), "<cstdio>", "<cstring>", "<new>"]

    def prepare_for_gpu(self, folder):
        self.cxx, self.suffix, self.servers = [*nvcc(self.text), "-shared", "-Xcompiler=-fPIC"], ".cu", ProgramServers(folder)
        self.header = folder / "headers.h"
        self.header.write_text(included(self.headers(), self.declarations))

    def run(self, words, cwd, seconds):
        if not GPU:
            return super().run(words, cwd, seconds)
        return timed("run", lambda: self.servers.run(words, cwd, SECONDS["run"]), seconds)

    def link_words(self, source, packages, program):
        """The commands that make a program of one translation unit and the weights of packages."""
        weights = [path for package in packages for path in sorted(package.glob("*.S"))]
        where = [f"-I{package}" for package in packages[:1]]
        if not GPU:
            return [[*self.cxx, f"-I{packages[0] / 'cuda_on_cpu'}", *where, source, *weights, *(f"-Wa,-I{package}" for package in packages), self.program,
                     *self.library_words, "-lm", "-o", program]]
        objects = [path.with_suffix(".o") for path in weights]
        assembled = [["gcc", f"-Wa,-I{path.parent}", "-c", path, "-o", compiled] for path, compiled in zip(weights, objects)]
        return [*assembled, [*self.cxx, *where, source, *objects, self.program, "-lm", "-o", program]]

    @functools.cached_property
    def identity(self):
        return digest_of(super().identity, compiler_version(self.cxx[0]), self.cxx, self.on_cpu)

    def commands(self, package, program):
        for name, text in {**self.texts, **{"cuda_on_cpu/" + name: text for name, text in self.on_cpu.items()}}.items():
            if (package / name).read_bytes() != text:
                raise Failed(f"{name} of the package is not the repository's")
        (package / "all.cu").unlink(missing_ok=True)
        source = one_source(package, "all" + self.suffix, self.header, [*sorted(package.rglob("*.cu")), package / "main.c"])
        return self.link_words(source, [package], program)
