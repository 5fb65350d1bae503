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
            check(f"{model.name}: {name} counts", files_of(tmp / f"changed{k}") != package or name == "parallel")
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


def work(check, tmp, model):
    tmp.mkdir()
    replayed(check, tmp, model)
    computes(check, tmp, model)
    mistakes(check, tmp, model)
