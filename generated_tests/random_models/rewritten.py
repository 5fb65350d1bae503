"""Packages that are made in a way round: by written schedules of which some numbers and steps are changed at random, or from the
graph as text behind one of the passes. `emit(words)` runs the tool, and gives its exit code and what it said."""
import functools
import random
import re
import subprocess
from pathlib import Path

NUMBER = re.compile(r"(?<== )-?\d+|(?<=[(,] )-?\d+|(?<=[(\[])-?\d+")
CHANGES = 8  # that are tried on the schedules of a model
OTHERS = (lambda v: v + 1, lambda v: v - 1, lambda v: 2 * v, lambda v: v // 2, lambda v: v + 16, lambda v: v + 3, lambda v: 1, lambda v: 0, lambda v: 2, lambda v: 1000003, lambda v: 1 << 31)


def changed(rng, text):
    """The text with another number somewhere, or a step less, or a line twice; "" where there is nothing to change."""
    lines = text.splitlines()
    decided = [k for k, line in enumerate(lines) if line.startswith("  ")]
    if not decided:
        return ""
    places = [(k, m.span()) for k in decided for m in NUMBER.finditer(lines[k].split(" as ")[0])]
    if places and rng.random() < 0.85:
        k, (begin, end) = rng.choice(places)
        lines[k] = f"{lines[k][:begin]}{rng.choice(OTHERS)(int(lines[k][begin:end]))}{lines[k][end:]}"
    elif rng.random() < 0.6:
        del lines[rng.choice(decided)]
    else:
        k = rng.choice(decided)
        lines.insert(k, lines[k])
    return "\n".join(lines) + "\n"


def by_schedules(emit, words, out, rng):
    """The package of schedules that the tool wrote and someone changed. What is refused has its place, and is taken back."""
    file = out.with_suffix(".tc")
    code, said = emit([*words, "-o", str(out), "--write-schedules", str(file)])
    text = file.read_text() if code == 0 and file.exists() else ""
    for _ in range(CHANGES if text else 0):
        other = changed(rng, text)
        if not other or other == text:
            continue
        file.write_text(other)
        code, said = emit([*words, "-o", str(out), "--schedules", str(file)])
        if code == 0:
            text = other
        elif code != 1 or not re.search(rf"{re.escape(file.name)}:\d+:\d+: ", said):
            return code + (2000 if code < 1000 else 0), "of changed schedules: " + said
    if text:
        file.write_text(text)
        code, said = emit([*words, "-o", str(out), "--schedules", str(file), "--verify-each"])
        if code:
            return 2000 + code, "of schedules that were taken before: " + said
    return code, said


@functools.cache
def labels(tool):
    """Passes over the graph, as --after takes them."""
    listed = subprocess.run([tool, "passes"], capture_output=True, text=True, check=True).stdout.split("\n\n")[0]
    names = [line.split()[0] for line in listed.splitlines()]
    return [name if names[:k].count(name) == 0 else f"{name}#{names[:k].count(name) + 1}" for k, name in enumerate(names)]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def through_text(emit, words, out, rng, tool):
    """The package that is made of the graph as text behind a pass, which is that of the model to the byte."""
    code, said = emit([*words, "-o", str(out)])
    if code:
        return code, said
    made, file, after = contents(out), out.with_suffix(".tc"), rng.choice(["", *labels(tool)])
    for step in ([*words, "--write-ir", str(file), *(["--after", after] if after else [])], [str(file), "--quiet", *(word for word in words if word == "--single-file"), "-o", str(out)]):
        code, said = emit(step)
        if code:
            return 2000 + code, f"as text after {after or 'import'}: {said}"
    again = contents(out)
    if again != made:
        other = sorted(str(name) for name in made.keys() | again.keys() if made.get(name) != again.get(name))
        return 2000, f"as text after {after or 'import'}: another package: {' '.join(other)}"
    return 0, said


def emitted(way, emit, words, out, seed, tool):
    """(exit code, what was said) of a package at `out`; 2000 and more where the way itself fails."""
    rng = random.Random(seed)
    if way == "schedules":
        return by_schedules(emit, words, Path(out), rng)
    if way == "text":
        return through_text(emit, words, Path(out), rng, tool)
    return emit([*words, "-o", str(out)])
