"""A model that can be run: a package, its shared library and one instance."""
from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

from . import _build
from ._errors import RunError, ToolFailed, UsageError
from ._types import as_package_reads, memory_type, numpy, numpy_type, to_numpy

if TYPE_CHECKING:
    import numpy as np

ArrayLike = Any  #: a NumPy array, what NumPy makes one of, or what speaks DLPack on the CPU (a PyTorch tensor)


@dataclass(frozen=True)
class Port:
    """An input or output."""

    name: str  #: in the model
    dtype: str  #: ONNX's word: "float", "int64", "bool", "bfloat16", "string", ...
    shape: tuple[int, ...]  #: elements on each axis; where a size is known when the model runs, the largest
    counted: tuple[tuple[int, str], ...] = ()  #: such axes, each with the name of its size: one of Model.sizes, or one that depends on data
    sums: tuple[tuple[int, Mapping[str, int], int], ...] = ()  #: axes whose size follows from others: each with its factors by size, and an addend

    def __str__(self) -> str:
        return f'"{self.name}" {self.dtype} {list(self.shape)}'


@dataclass(frozen=True)
class Timing:
    """Times of one run, in milliseconds."""

    runs: int
    min_ms: float
    median_ms: float
    p95_ms: float
    p99_ms: float


class Outputs(Sequence["np.ndarray[Any, Any]"]):
    """The arrays of one run: `y[0]` and iteration in the model's order, `y["name"]` by name."""

    def __init__(self, names: Sequence[str], arrays: Sequence["np.ndarray[Any, Any]"]) -> None:
        self.names = tuple(names)
        self._arrays = tuple(arrays)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self._arrays[key]
        if key not in self.names:
            raise KeyError(f"there is no output '{key}'; outputs are {', '.join(self.names)}")
        return self._arrays[self.names.index(key)]

    def __len__(self) -> int:
        return len(self._arrays)

    def keys(self) -> tuple[str, ...]:
        """Names of the outputs, so that dict(y) works."""
        return self.names

    def __repr__(self) -> str:
        return f"Outputs({', '.join(f'{n}: {a.dtype}{list(a.shape)}' for n, a in zip(self.names, self._arrays))})"


class _Instance(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("weights", "workspace", "allocated", "device", "cpu", "graph")] + [("sizes", ctypes.c_int64 * 64)]  # the last of the pointers where it has several variants


class _StateView(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("rank", ctypes.c_int), ("numbers", ctypes.c_int64 * 64)]  # sizes, then strides


class _String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def _pointers(addresses: Sequence[int]) -> Any:
    """NAME_inputs or NAME_outputs: structures of nothing but pointers."""
    return (ctypes.c_void_p * max(len(addresses), 1))(*addresses)


def _views(array: Any) -> tuple[Any, Any]:
    """tc_string views of an array of text or bytes, and what keeps their bytes alive."""
    words = [w if isinstance(w, bytes) else str(w).encode("utf-8", "surrogateescape") for w in array.ravel().tolist()]
    kept = [ctypes.create_string_buffer(w, max(len(w), 1)) for w in words]
    views = (_String * max(len(words), 1))(*[_String(ctypes.addressof(b), len(w)) for b, w in zip(kept, words)])
    return views, kept


def _texts(views: Any, shape: tuple[int, ...]) -> Any:
    np = numpy()
    n = int(np.prod(shape, dtype=np.int64))
    array = np.empty(n, object)
    array[:] = [ctypes.string_at(v.data, v.size).decode("utf-8", "surrogateescape") if v.size else "" for v in views[:n]]
    return array.reshape(shape)


class DeviceArray:
    """An array in the memory of a GPU, without a copy: `cupy.asarray(a)` and `torch.as_tensor(a, device="cuda")` see it where it lies."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...], address: int) -> None:
        self.shape, self.dtype, self.strides, self._address = shape, dtype, strides, address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        address = self._address if 0 not in self.shape else 0
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (address, False), "strides": self.strides, "version": 3}


class Model:
    """A package of tc-emit, from `tc_emit.compile` or `tc_emit.load`.

    folder: the package. `inputs` and `outputs`: its ports, in the order of the model. Building happens when the model is made, where
    the machine has a compiler, else when it is first run, which then says what is missing. Runs of one Model wait for each other; two
    Models run at once.
    """

    def __init__(self, folder: Union[str, Path]) -> None:
        self.folder = Path(folder)
        self._manifest = _build.read_manifest(self.folder)
        ports = [[_port(p) for p in self._manifest[which] if "size" not in p] for which in ("inputs", "outputs")]
        #: Sizes that the inputs choose when the model runs, with the least and the largest: {"batch": (1, 8)}; (1, None) has no bound.
        self.sizes: dict[str, tuple[int, Optional[int]]] = {
            p["name"]: (p["size"]["least"], p["size"]["most"]) for p in self._manifest["inputs"] if "size" in p}
        self._room: dict[str, int] = {name: max(least, 1) for name, (least, most) in self.sizes.items() if most is None}  # that the instance is made for
        counts = {c["by"] for p in self._manifest["outputs"] for c in p.get("counted", ()) if "by" in c}
        self.inputs: tuple[Port, ...] = tuple(ports[0])
        self._all_outputs = ports[1]
        self.outputs: tuple[Port, ...] = tuple(p for p in ports[1] if p.name not in counts)
        self._lock = threading.Lock()
        self._library: Any = None

    @property
    def name(self) -> str:
        """The prefix of every symbol of the package."""
        return str(self._manifest["name"])

    @property
    def manifest(self) -> dict[str, Any]:
        """A copy of manifest.json: ports, kernels and their schedules, bytes of memory, multiply-accumulates, files."""
        return json.loads(json.dumps(self._manifest))

    @property
    def kernels(self) -> "Kernels":
        """The kernels: a sequence of their names, without the prefix."""
        return Kernels(self._manifest["kernels"])

    def source(self, name: str) -> str:
        """The text of a kernel of `kernels`, its comment and function, or of a file of the package ("digits.h").

        Raises UsageError where there is neither."""
        if name in self._manifest["files"]:
            return (self.folder / name).read_text(errors="replace")
        if name not in self.kernels:
            raise UsageError(f"there is no kernel or file '{name}'; kernels are {', '.join(self.kernels) or 'none'}")
        ending = "cu" if self._manifest["target"] == "cuda" else "c"
        own = f"kernels/{name}.{ending}"
        if own in self._manifest["files"]:
            return (self.folder / own).read_text()
        holders = [f for f in self._manifest["files"] if f.endswith("." + ending)]
        for holder in holders:  # --single-file, or many kernels in a file
            if found := _function_of((self.folder / holder).read_text(errors="replace"), f"{self.name}_{name}"):
                return found
        raise UsageError(f"the text of kernel '{name}' is not in the package")

    def build(self) -> Path:
        """Builds what is not built yet; returns the path of the shared library.

        Raises CompilerMissing where the machine has no compiler, ToolFailed where it fails."""
        return _build.build(self.folder, self._manifest)

    def run(self, inputs: Union[Mapping[str, ArrayLike], Sequence[ArrayLike], ArrayLike, None] = None, /, **named: ArrayLike) -> Outputs:
        """Runs the model once.

        inputs: arrays by name, or in the model's order, or the one array of a model with one input; named: the same by name, where
            names are identifiers. Each has exactly the type and shape of its port; others raise RunError, nothing is converted or
            broadcast (except integers and floats of Python, which become the port's type). Strings are text or bytes. What speaks
            DLPack is read where it lies, as is every C-contiguous array; others are copied.
        Returns new arrays, in the actual sizes where these depend on data. Raises RunError, CompilerMissing, ToolFailed.
        """
        arrays = self._arrays(self._by_port(inputs, named))
        sizes = self._chosen(arrays)
        with self._lock:
            return self._call(arrays, sizes)

    __call__ = run

    def bench(self, seconds: float = 1.0, threads: int = 0) -> Timing:
        """Times runs on seeded inputs for about `seconds`, with the package's own program. threads: 0: as many as there are processors.

        Raises UsageError, CompilerMissing, ToolFailed."""
        if not 0 <= float(seconds) <= 1e9 or int(threads) < 0:
            raise UsageError(f"bench() takes seconds and a number of threads, not {seconds} and {threads}")
        program = _build.build(self.folder, self._manifest, shared=False)
        words = [str(program), "--bench", str(float(seconds)), "--json"] + (["--threads", str(int(threads))] if threads else [])
        if path := _build.external_weights(self.folder, self._manifest):
            words += ["--weights", str(path)]
        result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if result.returncode:
            raise ToolFailed(f"the package's program failed: {(result.stderr or result.stdout)[-2000:]}")
        return Timing(**json.loads(result.stdout.splitlines()[-1]))

    def __repr__(self) -> str:
        return f"Model({self.name}: {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))})"

    def _by_port(self, inputs: Any, named: Mapping[str, Any]) -> list[Any]:
        names = [p.name for p in self.inputs]
        if isinstance(inputs, Mapping):
            named = {**inputs, **named}
        elif inputs is not None and named:
            raise RunError("inputs come in the model's order or by name, not both")
        elif inputs is not None:
            given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(given) != len(names):
                raise RunError(f"the model has {len(names)} inputs, not {len(given)}: {', '.join(map(str, self.inputs)) or 'none'}")
            return given
        missing, unknown = [n for n in names if n not in named], [n for n in named if n not in names]
        if missing or unknown:
            parts = [f"inputs are missing: {', '.join(missing)}"] * bool(missing) + [f"there are no inputs {', '.join(unknown)}"] * bool(unknown)
            raise RunError(f"{'; '.join(parts)}; the inputs are {', '.join(map(str, self.inputs)) or 'none'}")
        return [named[n] for n in names]

    def reset(self) -> None:
        """Empties the states: the next run begins as the first one did. Raises UsageError if the package keeps none."""
        with self._lock:
            getattr(self._keeping(), f"{self.name}_reset")(ctypes.byref(self._instance))

    def rewind(self, n: int) -> None:
        """Drops the last `n` elements of what has grown (tokens). Raises UsageError if nothing grows, or in no proportion, RunError if there are fewer."""
        with self._lock:
            library = self._keeping()
            if not hasattr(library, f"{self.name}_rewind"):
                raise UsageError("no state of the package grows, or they grow in no proportion to each other")
            if getattr(library, f"{self.name}_rewind")(ctypes.byref(self._instance), ctypes.c_int64(int(n))):
                raise RunError(f"there are fewer than {n} elements")

    @property
    def states(self) -> dict[str, Any]:
        """What the instance keeps, by name: arrays that see its memory, sizes that grow as arrays of rank 0. To be saved, and
        restored in place. On a GPU tensors are DeviceArrays. Raises UsageError if the package keeps none."""
        with self._lock:
            counts = {state["name"]: array for state, array in self._states() if state["counts"]}
            return {**counts, **{state["name"]: array for state, array in self._states() if not state["counts"]}}

    def _keeping(self) -> Any:
        if "states" not in self._manifest:
            raise UsageError("the package keeps no states: compile it with states={\"past\": \"present\"}")
        return self._load()

    def _states(self) -> list[tuple[Mapping[str, Any], Any]]:
        """States as the manifest has them, and their arrays."""
        np = numpy()
        library = self._keeping()
        view = _StateView()
        on_cpu = hasattr(library, "_Z10cudaMallocPPvm")  # the one of cuda_on_cpu, which C++ names
        result = []
        for k, state in enumerate(self._manifest["states"]):
            getattr(library, f"{self.name}_state")(ctypes.byref(self._instance), k, ctypes.byref(view))
            rank, most = int(view.rank), max(1, max(len(s["shape"]) for s in self._manifest["states"]))
            sizes, strides = tuple(view.numbers[:rank]), tuple(view.numbers[most:most + rank])
            dtype = memory_type(state["dtype"])
            bytes_ = int(np.prod(state["shape"], dtype=np.int64)) * dtype.itemsize
            memory = (ctypes.c_char * max(1, bytes_)).from_address(view.data)
            if rank and self._manifest["target"] == "cuda" and not on_cpu:
                result.append((state, DeviceArray(sizes, dtype, strides, view.data)))
                continue
            result.append((state, np.ndarray(sizes, dtype, memory, strides=strides) if bytes_ else np.empty(sizes, dtype)))
        return result

    def _arrays(self, values: Sequence[Any]) -> list[Any]:
        np = numpy()
        arrays, problems = [], []
        for port, value in zip(self.inputs, values):
            if port.dtype == "string" and isinstance(value, (list, tuple, str, bytes)):
                value = np.array(value, object)
            array, want = to_numpy(value), numpy_type(port.dtype)
            if isinstance(value, (bool, int, float)):
                array = np.asarray(value, want)
            if port.dtype == "string" and array.dtype.kind in "OUS":
                array = array.astype(object)
            if array.dtype != want:
                how = f"x.astype({str(want)!r})" if isinstance(value, np.ndarray) else f"np.asarray(x).astype({str(want)!r})"
                problems.append(f"input {port} has type {array.dtype}; convert it: {how}")
            elif not _fits(array.shape, port):
                problems.append(f"input {port} has shape {list(array.shape)}; sizes are fixed when the model is compiled, by dims or input_shapes")
            else:
                arrays.append(array if port.dtype == "string" else as_package_reads(np.ascontiguousarray(array).reshape(array.shape), port.dtype))
        if problems:
            raise RunError("; ".join(problems))
        return arrays

    def _chosen(self, arrays: Sequence[Any]) -> dict[str, int]:
        """The sizes that the inputs choose; those that no input has are the largest."""
        sizes: dict[str, int] = {}
        for port, array in zip(self.inputs, arrays):
            for axis, name in port.counted:
                n = int(array.shape[axis])
                if not self._allows(name, n):
                    raise RunError(f"input {port} has {n} elements along axis {axis}; {self._range(name)}")
                if sizes.setdefault(name, n) != n:
                    raise RunError(f"input {port} has {n} elements along axis {axis}, but {name} is {sizes[name]}")
        kept = {state["name"]: int(n) for state, n in self._states() if state["counts"]} if "states" in self._manifest else {}
        self._solve(arrays, sizes, kept)
        sizes = {name: sizes.get(name, max(least, 1) if most is None else most) for name, (least, most) in self.sizes.items()}
        for port, array in zip(self.inputs, arrays):
            for axis, terms, plus in port.sums:
                want = plus + sum(times * {**kept, **sizes}[name] for name, times in terms.items())
                if int(array.shape[axis]) != want:
                    raise RunError(f"input {port} has {array.shape[axis]} elements along axis {axis}, not {want}")
        return sizes

    def _allows(self, name: str, n: int) -> bool:
        least, most = self.sizes[name]
        return least <= n and (most is None or n <= most)

    def _range(self, name: str) -> str:
        least, most = self.sizes[name]
        return f"{name} is {least} or more" if most is None else f"{name} is from {least} to {most}"

    def _solve(self, arrays: Sequence[Any], sizes: dict[str, int], kept: Mapping[str, int]) -> None:
        """Sizes that stand in sums only: a sum with one that is not known says it."""
        for port, array in zip(self.inputs, arrays):
            for axis, terms, plus in port.sums:
                open_ = [name for name in terms if name not in sizes and name not in kept]
                if len(open_) == 1:
                    rest = int(array.shape[axis]) - plus - sum(t * {**kept, **sizes}[n] for n, t in terms.items() if n != open_[0])
                    if rest % terms[open_[0]] or not self._allows(open_[0], rest // terms[open_[0]]):
                        raise RunError(f"input {port} has {array.shape[axis]} elements along axis {axis}; {self._range(open_[0])}")
                    sizes[open_[0]] = rest // terms[open_[0]]

    def _load(self) -> Any:
        """The library with its instance; made at the first run."""
        if self._library is not None:
            return self._library
        library = ctypes.CDLL(str(self.build()))
        init, free, strerror = (getattr(library, f"{self.name}_{word}") for word in ("init", "free", "strerror"))
        init.argtypes = [ctypes.c_void_p] * (2 if self._room else 1) + [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        getattr(library, f"{self.name}_run").argtypes = [ctypes.c_void_p] * 3
        free.argtypes, free.restype = [ctypes.c_void_p], None
        strerror.argtypes, strerror.restype = [ctypes.c_int], ctypes.c_char_p
        instance, weights, unmap = _Instance(), ctypes.c_void_p(), None
        if path := _build.external_weights(self.folder, self._manifest):
            unmap = getattr(library, f"{self.name}_unmap_weights")
            unmap.argtypes, unmap.restype = [ctypes.c_void_p], None
            if status := getattr(library, f"{self.name}_map_weights")(os.fsencode(path), ctypes.byref(weights)):
                raise RunError(f"{path}: {strerror(status).decode()}")

        def make() -> int:
            room = [(ctypes.c_int64 * len(self._room))(*self._room.values())] if self._room else []
            return int(init(ctypes.byref(instance), *room, weights, self._manifest["memory"]["weights_bytes"] if path else 0, None, 0))

        if status := make():
            if unmap:
                unmap(weights)
            raise RunError(f"{self.name}_init: {strerror(status).decode()}")
        self._make = make

        def close() -> None:
            free(ctypes.byref(instance))
            if unmap:
                unmap(weights)

        weakref.finalize(self, close)
        self._library, self._instance = library, instance
        return library

    def _make_room(self, library: Any, sizes: Mapping[str, int]) -> None:
        """Of sizes without bounds: an instance for the largest that have come."""
        if all(sizes[name] <= n for name, n in self._room.items()):
            return
        before = self._room
        getattr(library, f"{self.name}_free")(ctypes.byref(self._instance))
        self._room = {name: max(n, sizes[name]) for name, n in before.items()}
        if status := self._make():
            self._room = before
            self._library = None  # the next run begins anew
            raise RunError(f"{self.name}_init: {getattr(library, f'{self.name}_strerror')(status).decode()}")

    def _room_of(self, port: Port, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape that a result has room for: of one that has a computed size, too, the largest of all its sizes."""
        if all(name in sizes for _, name in port.counted):
            return self._shape_of(port, sizes)
        largest = self._shape_of(port, {**sizes, **self._room})
        is_open = {axis for axis, name in port.counted if name in self._room}
        is_open |= {axis for axis, terms, _ in port.sums if self._room.keys() & terms.keys()}
        return tuple(n if axis in is_open else port.shape[axis] for axis, n in enumerate(largest))

    def _shape_of(self, port: Port, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape that a result has, as far as `sizes` say it."""
        if not self._room:
            return port.shape
        shape = list(port.shape)
        for axis, name in port.counted:
            shape[axis] = sizes.get(name, shape[axis])
        for axis, terms, plus in port.sums:
            shape[axis] = plus + sum(times * sizes[name] for name, times in terms.items())
        return tuple(shape)

    def _call(self, arrays: Sequence[Any], sizes: Mapping[str, int]) -> Outputs:
        np = numpy()
        library = self._load()
        self._make_room(library, sizes)
        kept, addresses = [], []
        for port, array in zip(self.inputs, arrays):
            views = _views(array) if port.dtype == "string" else None
            kept.append(views)
            addresses.append(ctypes.addressof(views[0]) if views else array.ctypes.data)
        addresses.extend(sizes.values())  # by value, behind the pointers
        made: dict[str, Any] = {}
        for port in self._all_outputs:
            room = self._room_of(port, sizes)
            n = int(np.prod(room, dtype=np.int64))
            made[port.name] = (_String * max(n, 1))() if port.dtype == "string" else np.empty(room, numpy_type(port.dtype))
        places = [m.ctypes.data if isinstance(m, np.ndarray) else ctypes.addressof(m) for m in made.values()]
        status = getattr(library, f"{self.name}_run")(ctypes.byref(self._instance), _pointers(addresses), _pointers(places))
        if status:
            strerror = getattr(library, f"{self.name}_strerror")
            raise RunError(f"{self.name}_run: {strerror(status).decode()}")
        results = [self._result(port, made, sizes) for port in self.outputs]
        return Outputs([p.name for p in self.outputs], results)

    def _result(self, port: Port, made: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
        shape, value = self._shape_of(port, sizes), made[port.name]
        for axis, name in port.counted:
            shape = (*shape[:axis], sizes[name] if name in sizes else int(made[name]), *shape[axis + 1:])
        if port.dtype == "string":
            return _texts(value, shape)
        if port.dtype != "string" and shape == value.shape:
            return value
        n = 1
        for size in shape:
            n *= size
        return value.ravel()[:n].reshape(shape)  # the elements that there are stand densely at the start


def _port(p: Mapping[str, Any]) -> Port:
    counted = p.get("counted", ())
    return Port(p["name"], p["dtype"], tuple(p["shape"]), tuple((c["axis"], c.get("by", c.get("by_input"))) for c in counted if "by_sum" not in c),
                tuple((c["axis"], {t["size"]: t["times"] for t in c["by_sum"]}, c["plus"]) for c in counted if "by_sum" in c))


def _fits(shape: Sequence[int], port: Port) -> bool:
    open_axes = {axis for axis, _ in port.counted} | {axis for axis, _, _ in port.sums}
    return len(shape) == len(port.shape) and all(k in open_axes or a == b for k, (a, b) in enumerate(zip(shape, port.shape)))


class Kernels(Sequence[str]):
    """The names of a package's kernels; `schedule(name)` tells how one is computed."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = {row["name"]: row for row in rows}

    def __getitem__(self, key: Any) -> Any:
        return list(self._rows)[key]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def schedule(self, name: str) -> str:
        """What stands in the comment of the kernel: how its loops are cut."""
        return str(self._rows[name]["schedule"])

    def __repr__(self) -> str:
        return repr(list(self._rows))


def _function_of(text: str, symbol: str) -> str | None:
    """The definition of a function in a C file, with the comment above it."""
    found = re.search(rf"^(?:/\*(?:[^*]|\*(?!/))*\*/\n)?(?:[a-z][^\n;{{}}]*[ \n])?[^\n;{{}}]*\b{re.escape(symbol)}(?:_kernel)?\([^;{{}}]*\)\n\{{.*?^\}}\n", text, re.M | re.S)
    return found[0] if found else None
