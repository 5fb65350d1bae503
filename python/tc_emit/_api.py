"""compile, emit, load, verify."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence, Union

from . import _build, _tool
from ._errors import Diagnostic, Mismatch, UsageError
from ._model import Model

ModelLike = Union[str, "os.PathLike[str]", bytes, Any]  #: a path, the bytes of a model, or an onnx.ModelProto


@dataclass(frozen=True)
class Package:
    """What `emit` has written."""

    folder: Path
    manifest: Mapping[str, Any]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file of the package."""
        return tuple(self.folder / name for name in self.manifest["files"])


@dataclass(frozen=True)
class Verification:
    """What `verify` has found."""

    against: str  #: "ONNX Runtime" or "the interpreter"
    report: str  #: a line for each output: largest differences, PASS


@contextlib.contextmanager
def _path_of(model: ModelLike) -> Iterator[str]:
    """The path of a model; bytes and objects are written to a file for as long as it is needed."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    data = model.SerializeToString() if hasattr(model, "SerializeToString") else model
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise UsageError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
    with tempfile.TemporaryDirectory(prefix="tc-emit-") as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(data)
        yield path


def emit(model: ModelLike, out: Union[str, "os.PathLike[str]"], **options: Any) -> Package:
    """Writes the package of a model into the folder `out`. Needs neither NumPy nor a compiler.

    model: path of an .onnx or .onnxtxt file, the bytes of a model, or an onnx.ModelProto.
    options, as of the command's options of that name:
        target: "c" or "cuda"; cpu: "any" (default: kernels for several processors), "native", "x86-64-v3", ...; arch: "sm_80", ...; precision; fp: "strict" or
        "fast"; name: prefix of every symbol; dims: {"batch": 4}, {"x:2": 8}, {"batch": (1, 8)}: chosen at run time, by the shapes of the inputs; input_shapes: {"x": (1, 3, 8, 8)}; input_values:
        {"rate": 16000}; elements: {"list": [(3, 4), (5, 4)]}, None for an empty optional; opt_level: 0 to 3; string_bytes, in bytes;
        weights: "external" leaves them in a file of their own; ops: files of formulas; records: of tc-emit tune; schedules: a file of schedules; disable_pass: names of passes; states: {"past": "present"};
        cuda_graphs: of how many choices of sizes graphs are kept; limit_memory, in MiB; limit_nodes; single_file, jit: True.
    Raises a TcEmitError with `diagnostics`; then nothing was written.
    """
    with _path_of(model) as path:
        _, warnings = _tool.checked(["emit", "--quiet", *_tool.flags(options), "-o", os.fspath(out), "--", path])
    return Package(Path(out), _build.read_manifest(Path(out)), tuple(warnings))


def compile(model: ModelLike, *, cpu: str | None = None, **options: Any) -> Model:
    """Emits a model and builds it, if this machine has a C compiler; both are kept in a cache (see `TC_EMIT_CACHE`).

    model and options: as of `emit`; cpu: default "native".
    Raises a TcEmitError with `diagnostics` where the model cannot be compiled, ToolFailed where the compiler fails.
    """
    if options.get("target") != "cuda":
        options["cpu"] = cpu or "native"
    elif cpu is not None:
        options["cpu"] = cpu  # which the command refuses, with the way out
    folder = Path(tempfile.mkdtemp(dir=_build.cache(), prefix="emit-"))
    try:
        emit(model, folder / "package", **options)
        package = _build.keep(folder / "package")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    made = Model(package)
    if _build.can_build(made.manifest):
        made.build()
    return made


def load(folder: Union[str, "os.PathLike[str]"]) -> Model:
    """A package that was written before. Where its shared library is in its folder (`make libNAME.so`) or in its folder `build`, and newer
    than the text, that is used; else it is built in the cache. Nothing is written into the folder. Raises FileError."""
    return Model(Path(folder).absolute())


def verify(model: ModelLike, *, against: str | None = None, seed: int = 0, **options: Any) -> Verification:
    """Emits, builds and runs a model with seeded inputs and compares with ONNX Runtime, where this Python has it, else with the interpreter.

    against: "onnxruntime" or "interpreter"; options: as of `emit`, cpu is "native". Raises Mismatch with the report if an output differs.
    """
    words = ["verify", "--quiet", "--seed", str(int(seed)), *(["--against", against] if against else []), *_tool.flags(options)]
    with _path_of(model) as path:
        try:
            text, _ = _tool.checked([*words, "--", path])
        except Mismatch as problem:
            raise Mismatch(f"the emitted program differs:\n{problem}", problem.diagnostics) from None
    lines = text.splitlines()
    told = next((line for line in lines if line.startswith("against ")), "against the interpreter,")
    return Verification(told[len("against "):].split(",")[0].split(" (")[0], "\n".join(line for line in lines if line.startswith("output ")))
