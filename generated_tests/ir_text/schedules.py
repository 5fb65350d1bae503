"""Schedules as text: what --write-schedules writes gives the same package, other numbers another one or a refusal with its place."""

import re

from checks import TOOL, files_of, run


def number_changes(text):
    """(line, text) for each number of the file, changed."""
    for found in re.finditer(r"(\w+) = (\d+)", text):
        value = int(found.group(2))
        other = {"columns": 32 if value != 32 else 16, "parallel": 1 - value, "outputs": 6 - value}.get(found.group(1), value + 1)
        yield found.group(1), text[:found.start()] + f"{found.group(1)} = {other}" + text[found.end():]


def refused(check, name, words, code, *told):
    r = run(TOOL, *words)
    check(name, r.returncode == code and all(t in r.stderr for t in told), (r.returncode, r.stderr))


def compiles(check, name, package, *flags):
    r = run("gcc", "-Wall", "-Wextra", "-Werror", *(flags or ["-fsyntax-only"]), *sorted(package.rglob("*.c")), cwd=package)
    check(name, r.returncode == 0, r.stderr)


def replayed(check, tmp, model):
    """A model's own schedules give its package; every number counts."""
    flags = ["--cpu", "x86-64-v3", "--name", "net"]
    package = files_of(check.emit(model, tmp / "package", *flags))
    file, out = tmp / "net.tc", tmp / "again"
    wrote = run(TOOL, "--quiet", model, *flags, "--write-schedules", file)
    if not check(f"{model.name}: schedules are written", wrote.returncode == 0 and file.exists(), wrote.stderr):
        return
    text = file.read_text()
    check(f"{model.name}: the same package", files_of(check.emit(model, out, *flags, "--schedules", file)) == package)
    for k, (name, changed) in enumerate(number_changes(text)):
        file.write_text(changed)
        r = run(TOOL, "--quiet", model, *flags, "--schedules", file, "-o", tmp / f"changed{k}")
        if r.returncode:
            check(f"{model.name}: {name} is refused with its place", r.returncode == 1 and re.search(r"net\.tc:\d+:\d+: ", r.stderr) and not (tmp / f"changed{k}").exists(), r.stderr)
        else:
            check(f"{model.name}: {name} counts", files_of(tmp / f"changed{k}") != package)
            compiles(check, f"{model.name}: {name} compiles", tmp / f"changed{k}")
    file.write_text(text)


def computes(check, tmp, model):
    """Other numbers compute the same, and so do plain loops."""
    file = tmp / "other.tc"
    run(TOOL, "--quiet", model, "--cpu", "x86-64-v3", "--write-schedules", file)
    text = re.sub(r"tile\(rows = \d+, columns = \d+", "tile(rows = 3, columns = 32", file.read_text())
    for name, said in (("other numbers", text), ("plain loops", 'schedule "*"\n  naive()\n')):
        file.write_text(said)
        told = run(TOOL, "verify", model, "--cpu", "x86-64-v3", "--schedules", file, "--against", "interpreter", "--verify-each")
        check(f"{name} are right", told.returncode == 0, told.stdout + told.stderr)


SIZED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,9] x) => (float[N,9] y) { y = Relu(x) }
"""


RECURRENT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[1,9,3] x) => (float[1,1,9,17] y) <int64[3] ws = {1,51,3}, int64[3] rs = {1,51,17}> { w = ConstantOfShape (ws) r = ConstantOfShape (rs) y = GRU <hidden_size = 17> (x, w, r) }
"""


def recurrent(check, tmp):
    """Chunks inside of a recurrence write the state by way of what is around them."""
    folder = tmp / "recurrent"
    folder.mkdir()
    (folder / "gru.onnxtxt").write_text(RECURRENT)
    replayed(check, folder, folder / "gru.onnxtxt")


def copies_without_bounds(check, tmp):
    """A copy of the caller's data reads what is there: no compiler takes a tile for uninitialized."""
    model, file, out = tmp / "endless.onnxtxt", tmp / "columns.tc", tmp / "endless"
    model.write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (uint16[17,2,N] x) => (uint16[N,17,2] y) { y = Transpose <perm = [2,0,1]> (x) }\n')
    file.write_text('schedule "unpack*"\n  cache_read(x, i1, stack)\n')
    told = run(TOOL, "--quiet", "--cpu", "generic", "--dim", "N=1..", model, "--schedules", file, "-o", out)
    if check("a tile of what is unpacked", told.returncode == 0, told.stderr):
        for level in "0123":
            compiles(check, f"a tile of what is unpacked compiles: -O{level}", out, f"-O{level}", "-c")


def copies_of_the_caller(check, tmp):
    """On CUDA kernels of their own fill the room behind what the caller has; a schedule may give them scratch memory, too."""
    model, file = tmp / "sized.onnxtxt", tmp / "tiles.tc"
    model.write_text(SIZED)
    words = ("verify", model, "--target", "cuda", "--dim", "N=2..8", "--schedules", file, "--against", "interpreter", "--verify-each")
    file.write_text('schedule "repeat_first*"\n  cache_write(y, j, workspace)\nschedule "relu*"\n  cache_read(x, j, workspace)\n')
    told = run(TOOL, *words)
    check("tiles of copies of what the caller has", told.returncode == 0, told.stdout + told.stderr)
    # Row i is read where there is one, else row 0: a tile of all rows would read what the caller does not have.
    file.write_text('schedule "*"\n  cache_read(x, j, workspace)\n')
    told = run(TOOL, *words)
    check("no tile of rows that are not there", told.returncode == 1 and '"x" is read behind a condition that data decides' in told.stderr, told.stdout + told.stderr)


def mistakes(check, tmp, model):
    file, out = tmp / "wrong.tc", tmp / "nothing"
    flags = [model, "--cpu", "x86-64-v3", "--schedules", file, "-o", out]
    for name, text, told in (("a template that does not fit", 'schedule "*"\n  recurrence()\n', "wrong.tc:2:3: no template of that name takes this function"),
                             ("a function that is not there", 'schedule "nothing_*"\n  naive()\n', "wrong.tc:1:1: no function of this model"),
                             ("another processor", 'schedule "*" on "znver4"\n  naive()\n', 'wrong.tc:1:1: this schedule is for "znver4"'),
                             ("what is no schedule", "op f(x: f32[2]) -> y: f32[2]\n", "wrong.tc:1:1: expected 'schedule'"),
                             ("bytes that are no text", "\x00\xff", "wrong.tc:1:1: ")):
        file.write_bytes(text.encode("latin-1"))
        refused(check, name, flags, 1, told, "nothing was written")
    file.unlink()
    refused(check, "a file that is not there", flags, 6, "cannot read")
    file.write_text('schedule "*"\n  inverted_residual()\n')
    refused(check, "a template of the other target", [model, "--target", "cuda", "--schedules", file, "-o", out], 1, "no template of that name takes this function")


TWINS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[40, 50] x, float[40, 50] y) => (float[40, 50] a, float[40, 50] b) { a = LeakyRelu <alpha = 0.1> (x)  b = LeakyRelu <alpha = 0.3> (y) }
"""


def selected(check, tmp, model):
    """By what is computed on which shapes: the function that is meant, or a refusal where several things may be."""
    flags, file, out = [model, "--cpu", "x86-64-v3", "--name", "net"], tmp / "for.tc", tmp / "by-shape"
    run(TOOL, "--quiet", *flags, "--write-schedules", file)
    found = re.search(r'^# for (.*)\nschedule "([^"]*)" on "x86-64-v3" of "(\w+)"\n((?:  .*\n)*  tile\(rows = )(\d+)(.*\n)', file.read_text(), re.M)
    if not check("what a schedule is for is written", found, file.read_text()):
        return
    what, signature, function, before, rows, after = found.groups()
    lines = before + str(int(rows) + (1 if rows == "1" else -1)) + after
    packages = []
    for head in (f"for {what}", f'"{signature}" of "{function}"', f"for {what.split(' + ')[0]} + * ({what.split('(')[1].split('], ')[0]}], *)"):
        file.write_text(f"schedule {head}\n{lines}")
        told = run(TOOL, "--quiet", *flags, "--schedules", file, "-o", out)
        check(f"for {head}", told.returncode == 0, told.stderr)
        packages.append(files_of(out) if told.returncode == 0 else {})
    check("all of them mean the same function", packages[0] and packages.count(packages[0]) == 3)
    check("and change it", packages[0] != files_of(check.emit(model, tmp / "own-of-it", *flags[1:])))
    refuse = [*flags, "--schedules", file, "-o", tmp / "nothing"]
    file.write_text(f"schedule for {what}\n{lines}schedule for *\n  naive()\n")
    refused(check, "two schedules for one function", refuse, 1, f"for.tc:{2 + lines.count(chr(10))}:1: this schedule and the one in line 1 are both for \"{signature}\"", "nothing was written")
    file.write_text("schedule for * (f32[1, 2, 3, 4, 5])\n  naive()\n")
    refused(check, "a shape that there is not", refuse, 1, "for.tc:1:1: no function of this model is * (f32[1, 2, 3, 4, 5])")
    file.write_text("schedule for conv2d + (\n  naive()\n")
    refused(check, "what is no stage", refuse, 1, "for.tc:1:23: expected the name of a stage, or '*' for any, found '('", "\n" + " " * 24 + "^")
    twins = tmp / "twins.onnxtxt"
    twins.write_text(TWINS)
    run(TOOL, "--quiet", twins, "--cpu", "x86-64-v3", "--write-schedules", file)
    heads = re.findall(r'^# for (.*)\nschedule "[^"]*" on "[^"]*" of "(\w+)"', file.read_text(), re.M)
    alike = {re.sub(r"\w+: ", "", what) for what, _ in heads}
    if check("functions that differ in a number only", len(heads) == 2 and len(alike) == 1, heads):
        for head, ok in ((next(iter(alike)), False), (f'{next(iter(alike))} of "{heads[0][1]}"', True), ("leaky_relu + *", True)):
            file.write_text(f"schedule for {head}\n  naive()\n")
            told = run(TOOL, "--quiet", twins, "--cpu", "x86-64-v3", "--schedules", file, "-o", tmp / "twins")
            check(f"for {head}", told.returncode == (0 if ok else 1) and (ok or "this is for two functions" in told.stderr and heads[1][1] in told.stderr), told.stderr)


def work(check, tmp, model):
    tmp.mkdir()
    replayed(check, tmp, model)
    computes(check, tmp, model)
    recurrent(check, tmp)
    copies_without_bounds(check, tmp)
    copies_of_the_caller(check, tmp)
    selected(check, tmp, model)
    mistakes(check, tmp, model)
