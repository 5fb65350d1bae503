"""Many packages, one program, whose first argument chooses among them: compiling is most of the time of a small model.

The sources of the packages become one translation unit, in which the support text stands once. What a file has for itself,
static functions and macros, is renamed or undefined behind it; CUDA packages have a namespace each. A program that does not
compile tells nothing of the others: then each package is built by itself, as its users build it.
"""
import re
import subprocess
import zlib

from toolchain import CudaToolchain, Failed, call, first_line

SIZE = 24  # packages to a program
OWN_STATICS = re.compile(r"^static [^(=;\n]*?\b((?!tc_|TC_)\w+)(?=\(|\[| =|;)", re.M)
OWN_MACROS = re.compile(r"^# *define ((?!tc_|TC_)\w+)\b", re.M)
OWN_NAMES = re.compile(r"(?<![.\w])(cpus|inputs|outputs|open_model|run_model|close_model|message|(?:in|out)put\d+_dims)\b")


def name_of(text):
    """A name for the package of a case, at most 40 characters: no other case has it, and no support file."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", text)[-28:].strip("_")
    return f"m_{words}_{zlib.crc32(text.encode()):08x}"


def sources_of(package, suffix):
    """The files of a package that are compiled, its program last and under a name that says so."""
    return [path for path in sorted(package.rglob("*" + suffix)) if path.name not in ("main.c", "renamed_main.c") and "cuda_on_cpu" not in path.parts]


def own_macros(sources):
    """The names of the macros that files define for themselves."""
    return {found for path in sources for found in OWN_MACROS.findall(path.read_text())}


class Units:
    """Packages by the support text that they carry: those that carry the same share a translation unit."""

    def __init__(self, tools):
        self.tools, self.units = tools, []

    def of(self, package):
        texts = {path.name: path.read_bytes() for path in package.glob("tc_*.h")}
        unit = next((unit for unit in self.units if all(unit["texts"].get(file, text) == text for file, text in texts.items())), None)
        if not unit:
            # The program around the model is compiled once, unless the package has strings, which bring another text of it.
            shared = all(texts.get(file) == text for file, text in self.tools.texts.items() if file.startswith("tc_"))
            unit = {"texts": {}, "lines": ["#define TC_MAIN_H", self.tools.declarations.read_text()] if shared else []}
            self.units.append(unit)
        unit["texts"].update(texts)
        return unit["lines"]


def chooser(names):
    return "#include <string.h>\n" + "".join(f"int {name}_main(int, char **);\n" for name in names) + "int main(int argc, char **argv)\n{\n" + \
        "".join(f'  if (!strcmp(argv[1], "{name}")) return {name}_main(argc - 1, argv + 1);\n' for name in names) + "  return argc;\n}\n"


def c_text(name, package):
    """A package in a unit of C: its own names are made its own by the preprocessor."""
    sources = sources_of(package, ".c")
    texts = [path.read_text() for path in sources]
    statics = sorted({found for text in texts for found in OWN_STATICS.findall(text) if not found.startswith(name + "_")})
    macros = sorted(own_macros(sources) - set(statics))
    (package / "renamed_main.c").write_text(OWN_NAMES.sub(rf"{name}_own_\1", (package / "main.c").read_text()))
    return [*(f"#define {own} {name}_own_{own}" for own in statics), *(f'#include "{path}"' for path in sources), f"int {name}_main(int, char **);",
            f"#define main {name}_main", f'#include "{package}/renamed_main.c"', "#undef main", *(f"#undef {own}" for own in [*statics, *macros])]


def cuda_text(name, package):
    """A package in a unit of C++: a namespace around it, behind which its macros end."""
    sources = sources_of(package, ".cu")
    return [f"#define main {name}_main", f"namespace space_{name} {{", *(f'#include "{path}"' for path in [*sources, package / "main.c"]), "}", "#undef main",
            f"int {name}_main(int argc, char **argv) {{ return space_{name}::{name}_main(argc, argv); }}", *(f"#undef {own}" for own in sorted(own_macros(sources)))]


def link_c(packages, tools, folder):
    units, sources = Units(tools), []
    for name, package in packages.items():
        units.of(package).extend(c_text(name, package))
        sources += package.glob("*.S")
    for number, unit in enumerate(units.units):
        sources.append(folder / f"all_{number}.c")
        sources[-1].write_text("\n".join(unit["lines"]) + "\n")
    (folder / "all.c").write_text(chooser(packages))
    includes = [f"-Wa,-I{package}" for package in packages.values()]
    return [[*tools.base, folder / "all.c", *sources, *includes, f"-I{next(iter(packages.values()))}", tools.program, "-lm", "-o", folder / "all"]]


def link_cuda(packages, tools, folder):
    lines = [f'#include "{tools.header}"']
    support = {path.name: path for package in packages.values() for path in package.glob("tc_*.h") if path.name not in tools.texts}
    lines += [f'#include "{support[name]}"' for name in sorted(support)]
    for name, package in packages.items():
        lines += cuda_text(name, package)
    source = folder / f"all{tools.suffix}"
    source.write_text("\n".join(lines) + "\n" + chooser(packages))
    return tools.link_words(source, list(packages.values()), folder / "all")


def link(packages, tools, folder, seconds):
    """Compiles `packages`, {name: folder}, into one program in `folder`. Returns {name: words that run it, or Failed}."""
    if len(packages) > 1 and together(packages, tools, folder, seconds):
        return {name: [folder / "all", name] for name in packages}
    return {name: alone(package, tools, folder / f"{name}.alone", seconds) for name, package in packages.items()}


def together(packages, tools, folder, seconds):
    """Whether all of them became one program."""
    commands = (link_cuda if isinstance(tools, CudaToolchain) else link_c)(packages, tools, folder)
    built = subprocess.CompletedProcess([], 0, "")
    try:
        for command in commands:
            built = built if built.returncode else call("compile", command, seconds, cwd=folder)
    except Failed as failure:
        built = subprocess.CompletedProcess([], 1, str(failure))
    if built.returncode:
        print(f"{len(packages)} packages are built one by one: {first_line(built.stdout, r'error:|warning:|undefined')}", flush=True)
    return built.returncode == 0


def alone(package, tools, program, seconds):
    """The words that run one package's own program, or why it does not compile."""
    try:
        (package / "renamed_main.c").unlink(missing_ok=True)
        tools.build(package, program, seconds)
        return [program]
    except Failed as failure:
        return failure
