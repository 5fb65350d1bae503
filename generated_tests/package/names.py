"""Names of tensors that headers define as macros, all of those of this machine's C and POSIX headers."""
import re

from checks import run
from models import save
from onnx import TensorProto as T
from onnx import helper

HEADERS = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool
stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype arpa/inet dirent dlfcn fcntl netdb netinet/in
poll pthread sys/mman sys/resource sys/socket sys/stat sys/time sys/types sys/wait termios unistd""".split()
NOT_CXX = {"complex", "stdalign", "stdatomic", "stdbool", "stdnoreturn", "tgmath", "threads"}


def includes(language):
    return "#define _GNU_SOURCE 1\n" + "".join(f"#include <{name}.h>\n" for name in HEADERS if language == "c" or name not in NOT_CXX)


def macros(tmp, language):
    """Those without parameters: one with parameters needs a parenthesis behind its name."""
    source = tmp / f"all.{language}"
    source.write_text(includes(language))
    told = run("gcc", "-x", "c++" if language == "cc" else "c", "-dM", "-E", source)
    if told.returncode != 0:
        raise RuntimeError(told.stderr)
    return re.findall(r"^#define ([A-Za-z]\w*)(?= |$)", told.stdout, re.M)


def macros_may_be_names(check, tmp):
    for language, flags in (("c", ["-std=gnu11"]), ("cc", ["-x", "c++", "-std=gnu++17"])):
        names = sorted(set(macros(tmp, language)))
        half = len(names) // 2
        pairs = list(zip(names[:half], names[half:2 * half]))
        model = save(tmp / f"macros_{language}.onnx", [helper.make_node("Neg", [x], [y]) for x, y in pairs],
                     [(x, T.FLOAT, [3]) for x, _ in pairs], [(y, T.FLOAT, [3]) for _, y in pairs])
        package = check.emit(model, tmp / f"macros_{language}", "--name", "m")
        built = [run("gcc", *flags, "-Wall", "-Wextra", "-Werror", "-I", package, "-include", tmp / f"all.{language}", "-fsyntax-only", source)
                 for source in (package / "m.c", package / "main.c")]
        bad = [result.stderr.strip()[:300] for result in built if result.returncode != 0]
        check(f"{len(names)} macros of headers are names of tensors ({language})", half > 500 and not bad, bad[0] if bad else "")
