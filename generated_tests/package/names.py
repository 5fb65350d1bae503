"""Names of tensors that headers define as macros, all of those of this machine's C and POSIX headers."""
import re

import numpy as np

from checks import run
from models import save
from onnx import TensorProto as T
from onnx import helper, numpy_helper

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


def thirds(names):
    n = len(names) // 3
    return names[:n], names[n:2 * n], names[2 * n:3 * n]


def model_of(path, names):
    """Every name is an input's, a weight's or an output's; and one of a tensor in the workspace, which a row softmax of a
    product keeps apart."""
    inputs, weights, outputs = thirds(names[:len(names) * 3 // 4])
    inner = names[len(names) * 3 // 4:]
    nodes = [helper.make_node("Add", [x, w], [y]) for x, w, y in zip(inputs, weights, outputs)]
    feeds, held, ends = thirds(inner)
    for x, h, y in zip(feeds, held, ends):
        nodes += [helper.make_node("Softmax", [x], [h]), helper.make_node("MatMul", [h, weights[0]], [y])]
    tensors = {w: numpy_helper.from_array(np.full((3, 3), k, np.float32), w) for k, w in enumerate(weights)}
    return save(path, nodes, [(x, T.FLOAT, [3, 3]) for x in inputs + feeds], [(y, T.FLOAT, [3, 3]) for y in outputs + ends], list(tensors.values()))


def macros_may_be_names(check, tmp):
    for language, flags in (("c", ["-std=gnu11"]), ("cc", ["-x", "c++", "-std=gnu++17"])):
        names = sorted(set(macros(tmp, language)))
        model = model_of(tmp / f"macros_{language}.onnx", names)
        package = check.emit(model, tmp / f"macros_{language}", "--name", "m")
        cuda = check.emit(model, tmp / f"macros_{language}_cuda", "--name", "m", "--target", "cuda") if language == "cc" else None
        built = [run("gcc", *flags, "-Wall", "-Wextra", "-Werror", "-I", package, "-include", tmp / f"all.{language}", "-fsyntax-only", source)
                 for source in (package / "m.c", package / "main.c")]
        if cuda:  # with the headers that stand in for CUDA's
            built.append(run("g++", "-std=gnu++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-I", cuda, "-I", cuda / "cuda_on_cpu", "-include",
                             tmp / "all.cc", "-fsyntax-only", "-x", "c++", cuda / "m.cu"))
        bad = [result.stderr.strip()[:300] for result in built if result.returncode != 0]
        check(f"{len(names)} macros of headers are names of tensors ({language})", len(names) > 1000 and not bad, bad[0] if bad else "")
