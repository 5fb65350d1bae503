"""Verdicts that are known: what passed passes again as long as no byte that the verdict depends on has changed.

tc-emit is deterministic, so an unchanged model gives an unchanged package, and it is enough to emit it: compiling, running
and comparing can be left out. A verdict is kept under the hash of all that it depends on:

- what the driver names: package, inputs, reference, bounds, compilers and their flags (`Toolchain.identity`);
- the Python that judges: every module of this repository that is loaded, except those that the driver names as makers of
  models, whose models, inputs and bounds it puts into the key instead;
- versions of Python and of its packages, the C library, the processor.

Only passes are kept. A file of lines, one a key, lies in ~/.cache/tc-emit; when it is full the older half goes.
TC_TEST_NO_CACHE=1 (`scripts/test --no-cache`) neither reads nor writes it.

    verdicts = Verdicts(makers=[cases])
    key = verdicts.key(package, inputs, expected, bound, tools.identity)
    if key in verdicts: return
    ...
    verdicts.add(key)
"""
import fcntl
import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = 1  # of the meaning of a key
MOST = 300_000  # lines, 65 bytes each
PACKAGES = ("numpy", "ml_dtypes", "onnx", "onnxruntime", "torch")


def feed(digest, value):
    """Adds a value so that no two different ones look alike: kind and length stand before the bytes."""
    np = sys.modules.get("numpy")  # drivers without arrays do without it
    def bytes_of(kind, data):
        digest.update(f"{kind} {len(data)}\n".encode())
        digest.update(data)

    if isinstance(value, Path) and value.is_dir():
        feed(digest, {str(path.relative_to(value)): path for path in value.rglob("*") if path.is_file()})
    elif isinstance(value, Path):
        bytes_of("bytes", value.read_bytes())
    elif isinstance(value, bytes):
        bytes_of("bytes", value)
    elif isinstance(value, dict):
        feed(digest, [pair for key in sorted(value) for pair in (key, value[key])])
    elif isinstance(value, (list, tuple)):
        digest.update(f"list {len(value)}\n".encode())
        for element in value:
            feed(digest, element)
    elif np and isinstance(value, np.ndarray):
        data = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
        bytes_of(f"array {value.dtype} {value.shape}", data)
    elif value is None or isinstance(value, (str, bool, int, float)) or np and isinstance(value, np.generic):
        bytes_of(type(value).__name__, repr(value).encode())
    else:
        raise TypeError(f"a {type(value).__name__} has no bytes to be known by")


def digest_of(*parts):
    digest = hashlib.sha256()
    feed(digest, parts)
    return digest.hexdigest()


def judges(makers=()):
    """{name: source} of the loaded modules of this repository, without `makers`."""
    left_out = {Path(module.__file__).resolve() for module in makers}
    files = {Path(module.__file__).resolve() for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
    return {str(path.relative_to(ROOT)): path for path in files if path.is_relative_to(ROOT) and path not in left_out}


@functools.cache
def compiler_version(name):
    """All that a compiler says of itself, its target and its configuration."""
    told = subprocess.run([name, "-v"], capture_output=True, text=True)
    return told.stdout + told.stderr


@functools.cache
def surroundings():
    """What a verdict depends on beside the files: Python and its packages, C library and processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else [platform.processor()]
    processor = sorted({line for line in lines if re.match(r"(model name|cpu family|model|stepping|flags|Features|CPU part)\s*:", line)})
    maps = Path("/proc/self/maps").read_text() if os.path.exists("/proc/self/maps") else ""
    libraries = sorted({path for path in re.findall(r"/\S*/lib[cm][.-]\S*so\S*", maps)})
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            pass
    return digest_of(platform.platform(), sys.version, processor, list(platform.libc_ver()), [Path(path) for path in libraries], versions)


def default_file():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tc-emit" / f"verdicts-{VERSION}.txt"


class Verdicts:
    """The set of known passes; keys are in it or are added. Safe to use from several threads and processes."""

    def __init__(self, makers=(), file=None, surroundings=surroundings):
        self.file = None if os.environ.get("TC_TEST_NO_CACHE") else file or default_file()
        self.base = digest_of(VERSION, judges(makers), surroundings())
        self.known = self.read() if self.file else set()
        self.hits = 0

    def key(self, *parts):
        """The name of a verdict that depends on `parts`: texts, numbers, bytes, arrays, files, folders, and lists of these."""
        return digest_of(self.base, parts)

    def __contains__(self, key):
        self.hits += key in self.known
        return key in self.known

    def add(self, key):
        """Keeps a pass."""
        if self.file and key not in self.known:
            self.known.add(key)
            with open(self.file, "a") as out:  # one write of a line: processes do not mix theirs
                out.write(key + "\n")

    def report(self):
        """Says how many verdicts were known."""
        if self.hits:
            print(f"{self.hits} of them known to pass; --no-cache judges them anew", flush=True)

    def read(self):
        """The keys of the file; halves it where it is full."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with open(self.file, "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            lines = file.read().splitlines()
            if len(lines) > MOST:
                lines = lines[len(lines) // 2:]
                file.truncate(0)
                file.write("\n".join(lines) + "\n")
        return set(lines)
