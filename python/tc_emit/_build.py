"""Builds packages, once: what is made of a text by a compiler is kept under the hash of both.

The cache is $TC_EMIT_CACHE, else tc-emit/packages in $XDG_CACHE_HOME or ~/.cache. It may be deleted at any time.
"""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Sequence

from ._errors import CompilerMissing, FileError, ToolFailed


def cache() -> Path:
    """The folder of the cache; made if it is missing."""
    named = os.environ.get("TC_EMIT_CACHE")
    folder = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tc-emit" / "packages"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise FileError(f"the cache {folder} cannot be made: {problem.strerror}; the variable TC_EMIT_CACHE names another folder") from problem
    return folder


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a package. Raises FileError where the folder holds none, or files are missing that it lists."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except OSError as problem:
        raise FileError(f"{folder} is no package of tc-emit: {problem.strerror}: manifest.json; tc_emit.emit(model, folder) writes one") from problem
    except ValueError as problem:
        raise FileError(f"{folder} is no package of tc-emit: its manifest.json is damaged") from problem
    if not isinstance(manifest, dict) or manifest.get("generator") != "tc-emit" or manifest.get("format") != 1:
        raise FileError(f"{folder} is no package that this version reads: its manifest.json is of another generator or format")
    missing = [name for name in manifest["files"] if not (folder / name).is_file()]
    if missing:
        raise FileError(f"{folder} is incomplete, it lacks {', '.join(missing[:3])}; emit it again")
    return manifest


def _hash_of(folder: Path, names: Sequence[str]) -> str:
    total = hashlib.blake2b(digest_size=12)
    for name in sorted(names):
        with open(folder / name, "rb") as file:
            part = hashlib.blake2b(digest_size=16)
            while block := file.read(1 << 20):
                part.update(block)
        total.update(f"{name}\0{part.hexdigest()}\n".encode())
    return total.hexdigest()


def external_weights(folder: Path, manifest: dict[str, Any]) -> Path | None:
    """The file of weights that are no part of what is built."""
    linked = f"{manifest['name']}_weights.S" in manifest["files"]
    return None if linked else folder / f"{manifest['name']}_weights.bin"


def keep(folder: Path) -> Path:
    """Moves a package that was emitted below the cache to its place there, and returns that."""
    place = cache() / _hash_of(folder, read_manifest(folder)["files"]) / "package"
    place.parent.mkdir(exist_ok=True)
    try:
        folder.rename(place)
    except OSError:
        if not place.is_dir():
            raise
        shutil.rmtree(folder)  # it is there already
    return place


def _on_gpu() -> bool:
    return os.path.exists("/dev/nvidia0") and shutil.which("nvcc") is not None


def _needed(cuda: bool) -> list[str]:
    """The C compiler (and for CUDA the C++ compiler). Raises CompilerMissing with the way out."""
    words = []
    for variable, names in (("CC", ("cc", "gcc", "clang")), ("CXX", ("c++", "g++", "clang++")))[:2 if cuda else 1]:
        named = os.environ.get(variable)
        found = next(filter(None, map(shutil.which, [named.split()[0]] if named else names)), None)
        if not found:
            looked = f"${variable} is '{named}', which is not on PATH" if named else f"none of {', '.join(names)} is on PATH"
            raise CompilerMissing(f"running a model needs a compiler, and {looked}. Debian: apt install {'g++ cmake make' if cuda else 'gcc make'}; "
                                  "emit works without")
        words.append(named or found)
    if cuda and not shutil.which("cmake"):
        raise CompilerMissing("running a CUDA package needs CMake, which is not on PATH. Debian: apt install cmake make")
    if not shutil.which("make") and not shutil.which("cmake"):
        raise CompilerMissing("running a model needs make or CMake, and neither is on PATH. Debian: apt install make")
    return words


def can_build(manifest: dict[str, Any]) -> bool:
    """Whether this machine has what a package needs to be built."""
    try:
        _needed(manifest["target"] == "cuda")
    except CompilerMissing:
        return False
    return True


def _run(words: Sequence[str], folder: Path) -> None:
    result = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if result.returncode:
        raise ToolFailed(f"{words[0]} failed with exit code {result.returncode}:\n{result.stdout[-4000:]}")


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _built_files(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """The files of the package that what is built depends on."""
    weights = external_weights(folder, manifest)
    return [file for file in manifest["files"] if weights is None or file != weights.name]


def _make(folder: Path, manifest: dict[str, Any], compilers: Sequence[str], shared: bool, built: Path) -> None:
    """Builds in a copy of the package and puts the result to `built`."""
    name = manifest["name"]
    result = f"lib{name}.so" if shared else name
    target = name + ("_shared" if shared else "_program")
    with tempfile.TemporaryDirectory(dir=built.parent, prefix="build-") as made:
        copy = Path(made) / "package"
        for file in _built_files(folder, manifest):
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            _link(str(folder / file), str(copy / file))
        if manifest["target"] == "c" and shutil.which("make"):
            _run(["make", "-s", f"-j{os.cpu_count() or 1}", f"CC={compilers[0]}", result], copy)
        else:
            words = [f"-DCMAKE_C_COMPILER={compilers[0]}"]
            if manifest["target"] == "cuda":
                words = ["-DCMAKE_CUDA_ARCHITECTURES=native"] if _on_gpu() else ["-DTC_CUDA_ON_CPU=ON"]
            _run(["cmake", "-S", ".", "-B", "made", *words], copy)
            _run(["cmake", "--build", "made", "--parallel", str(os.cpu_count() or 1), "--target", target], copy)
            result = f"made/{result}"
        os.replace(copy / result, built)


def build(folder: Path, manifest: dict[str, Any], shared: bool = True) -> Path:
    """The shared library (or the program) of a package: what `make` has left in its folder or in its folder build, if it is newer than
    every file of the package, else what this machine makes of it, which the cache keeps."""
    name = manifest["name"]
    result = f"lib{name}.so" if shared else name
    files = _built_files(folder, manifest)
    newest = max((folder / file).stat().st_mtime_ns for file in files)
    for there in (folder / result, folder / "build" / result):
        if there.is_file() and there.stat().st_mtime_ns >= newest:
            return there
    cuda = manifest["target"] == "cuda"
    compilers = _needed(cuda)
    versions = [subprocess.run([*words.split(), "--version"], capture_output=True, text=True).stdout for words in compilers]
    flags = [os.environ.get(v) for v in ("CFLAGS", "CPPFLAGS", "LDFLAGS", "TC_ARCH", "TC_VARIANTS", "TC_FP", "TC_THREADS")]
    key = hashlib.blake2b(json.dumps([compilers, versions, flags, cuda and _on_gpu()]).encode(), digest_size=8).hexdigest()
    built = cache() / _hash_of(folder, files) / key / result
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        _make(folder, manifest, compilers, shared, built)
    return built
