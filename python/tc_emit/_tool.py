"""The program: where it is, and how it is called."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from ._errors import BY_EXIT_CODE, CompilerMissing, Diagnostic, FileError, InternalError, TcEmitError, ToolFailed, UsageError

MISSING_TOOL = "TC0705"  # the code of what CompilerMissing stands for


def program() -> str:
    """The path of the program: $TC_EMIT, else that of this package, else the one on PATH. Raises FileError if there is none."""
    own = Path(__file__).parent / "bin" / "tc-emit"
    named = os.environ.get("TC_EMIT")
    found = named or (str(own) if own.exists() else shutil.which("tc-emit"))
    if not found or not os.access(found, os.X_OK):
        raise FileError(f"the program tc-emit is missing: {found or 'it is neither in the package nor on PATH'}; install the wheel, or let "
                        "the variable TC_EMIT name the program")
    return found


def call(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs tc-emit; python3 is this interpreter for what it starts. Does not judge the result."""
    environment = dict(os.environ)
    environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment.get("PATH", os.defpath)
    return subprocess.run([program(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          env=environment)


def checked(words: Sequence[str]) -> tuple[str, list[Diagnostic]]:
    """Runs tc-emit with messages as data; returns stdout and the warnings. Raises what its exit code stands for."""
    result = call([words[0], "--diagnostics", "json", *words[1:]])
    diagnostics, other = [], []
    for line in result.stderr.splitlines():
        try:
            diagnostics.append(Diagnostic.from_json(json.loads(line)))
        except (ValueError, AttributeError, TypeError):
            other.append(line)
    if result.returncode == 0:
        return result.stdout, diagnostics
    error = BY_EXIT_CODE.get(result.returncode, InternalError)
    if error is ToolFailed and any(d.code == MISSING_TOOL for d in diagnostics):
        error = CompilerMissing
    text = "\n".join([*map(str, diagnostics), *other]) or result.stdout.strip() or f"tc-emit ended with exit code {result.returncode}"
    raise error(text, diagnostics, result.returncode)


def _pairs(flag: str, values: Mapping[str, Any] | None, text: Any) -> Iterable[str]:
    for name, value in (values or {}).items():
        yield from (flag, f"{name}={text(value)}")


def _sizes(shape: Sequence[int]) -> str:
    return "x".join(str(int(n)) for n in shape)


def _element_shapes(shapes: Sequence[Sequence[int]] | None) -> str:
    return "none" if shapes is None else ",".join(_sizes(s) or "scalar" for s in shapes)


def _numbers(value: Any) -> str:
    values = value.ravel().tolist() if hasattr(value, "ravel") else value
    return ",".join(repr(v) for v in values) if isinstance(values, (list, tuple)) else repr(values)


def _paths(value: Any) -> list[str]:
    return [os.fspath(value)] if isinstance(value, (str, os.PathLike)) else [os.fspath(path) for path in value]


OPTIONS = ("target", "cpu", "arch", "precision", "name", "fp", "weights", "activations")
NUMBERS = {"opt_level": "-O", "string_bytes": "--string-bytes", "cuda_graphs": "--cuda-graphs", "limit_memory": "--limit-memory", "limit_nodes": "--limit-nodes"}
FILES = {"ops": "--ops", "records": "--records", "schedules": "--schedules"}  # a path; "ops": or several
SEVERAL = {"disable_pass": "--disable-pass"}  # a word or several
SWITCHES = {"single_file": "--single-file", "jit": "--jit"}


def _size(value: Any) -> str:
    """4, the least and the largest of what is chosen at run time: (1, 8), (1, None) without a largest one, or what follows from others: "past+seq"."""
    if isinstance(value, str):
        return value
    return "..".join("" if n is None else str(int(n)) for n in value) if isinstance(value, (list, tuple)) else str(int(value))


MAPPINGS = {"dims": ("--dim", _size), "input_shapes": ("--input-shape", _sizes), "input_values": ("--input-value", _numbers),
            "elements": ("--elements", _element_shapes), "states": ("--state", str)}


def flags(options: Mapping[str, Any]) -> list[str]:
    """The words of the command line for keyword arguments; None leaves one out. Raises UsageError for an unknown one."""
    words: list[str] = []
    all_of_them = (*OPTIONS, *NUMBERS, *FILES, *SEVERAL, *SWITCHES, *MAPPINGS)
    for key, value in options.items():
        if key not in all_of_them:
            known = ", ".join(all_of_them)
            raise UsageError(f"there is no option '{key}'; known: {known}")
        if value is None:
            continue
        try:
            if key in OPTIONS:
                words += [f"--{key}", str(value)]
            elif key in NUMBERS:
                words += [NUMBERS[key], str(int(value))]
            elif key in FILES:
                words += [word for path in _paths(value) for word in (FILES[key], path)]
            elif key in SEVERAL:
                words += [word for one in ([value] if isinstance(value, str) else value) for word in (SEVERAL[key], str(one))]
            elif key in SWITCHES:
                words += [SWITCHES[key]] if value else []
            else:
                words += _pairs(MAPPINGS[key][0], value, MAPPINGS[key][1])
        except (TypeError, ValueError, AttributeError) as problem:
            if isinstance(problem, TcEmitError):
                raise
            raise UsageError(f"option '{key}' cannot be {value!r}: {problem}") from problem
    return words


def main() -> None:
    """The command `tc-emit`."""
    try:
        path = program()
        os.execv(path, [path, *sys.argv[1:]])
    except (FileError, OSError) as problem:
        sys.exit(f"tc-emit: {problem}")
