"""Compiles emitted packages, many of them, without compiling the same text for each.

Every package carries the program around the model: a thousand lines (tc_main.h and what it includes) that are the same in
all of them and take longer to compile than a small model. They are compiled once, with the same warnings, and main.c
sees their declarations instead. A package whose copy of that text is not the repository's is compiled whole.
"""
import re
import subprocess
from pathlib import Path

TEXTS = Path(__file__).resolve().parent.parent.parent / "templates" / "text"
CFLAGS = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]

PROGRAM = """#define tc_main tc_main_here
#include "tc_main.h"
#undef tc_main
int tc_main(const tc_model *m, int argc, char **argv);
int tc_main(const tc_model *m, int argc, char **argv) { return tc_main_here(m, argc, argv); }
"""


def declarations(text):
    """What main.c needs of tc_main.h: the includes of tensors, struct tc_model and the declaration of tc_main."""
    end = text.index("} tc_model;") + len("} tc_model;")
    return '#include "tc_io.h"\n' + text[text.rindex("typedef struct {", 0, end):end] + "\nint tc_main(const tc_model *m, int argc, char **argv);\n"


def texts_of_program(folder):
    """{name: bytes} of tc_main.h and of every file of `folder` that it includes, directly or not."""
    found, todo = {}, ["tc_main.h"]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = (folder / name).read_bytes()
            todo += re.findall(r'#include "(tc_\w+\.h)"', found[name].decode())
    return found


class Toolchain:
    """Holds what is compiled once; lives in `folder`. Safe to use from several threads."""

    def __init__(self, folder):
        self.texts = texts_of_program(TEXTS)
        self.declarations, self.program = folder / "tc_main_declarations.h", folder / "tc_main.o"
        self.declarations.write_text(declarations(self.texts["tc_main.h"].decode()))
        source = folder / "tc_main.c"
        source.write_text(PROGRAM)
        subprocess.run(["gcc", *CFLAGS, f"-I{TEXTS}", "-c", source, "-o", self.program], check=True)

    def commands(self, package, program):
        """The commands that make `program` of a package, one after the other."""
        sources = sorted(path for path in package.rglob("*") if path.suffix in (".c", ".S"))
        main = package / "main.c"
        same = main in sources and all((package / name).exists() and (package / name).read_bytes() == text
                                       for name, text in self.texts.items())
        base = ["gcc", "-pipe", *CFLAGS, f"-I{package}"]
        if not same:
            return [[*base, *sources, "-lm", "-o", program]]
        sources.remove(main)
        shared = [*base, "-DTC_MAIN_H", "-include", self.declarations, "-c", main, "-o", package / "main.o"]
        return [shared, [*base, *sources, package / "main.o", self.program, "-lm", "-o", program]]
