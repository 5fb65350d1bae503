"""ONNX's element types as NumPy sees them. NumPy is imported where it is needed: `emit` does without."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._errors import RunError

if TYPE_CHECKING:
    import numpy as np

PLAIN = {"float": "float32", "double": "float64", "float16": "float16", "bool": "bool", "complex64": "complex64",
         "complex128": "complex128", **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}
# In packages their bits lie in integers; ml_dtypes has them as types of the same size.
SMALL = {"bfloat16": ("bfloat16", "uint16"), "float8e4m3fn": ("float8_e4m3fn", "uint8"), "float8e4m3fnuz": ("float8_e4m3fnuz", "uint8"),
         "float8e5m2": ("float8_e5m2", "uint8"), "float8e5m2fnuz": ("float8_e5m2fnuz", "uint8"), "float4e2m1": ("float4_e2m1fn", "uint8"),
         "float8e8m0": ("float8_e8m0fnu", "uint8"), "int4": ("int4", "int8"), "uint4": ("uint4", "uint8"), "int2": ("int2", "int8"),
         "uint2": ("uint2", "uint8")}


def numpy() -> Any:
    """The module NumPy; RunError says how to get it."""
    try:
        import numpy as np
    except ImportError as problem:
        raise RunError("running a model needs NumPy, which is not installed: pip install numpy") from problem
    return np


def numpy_type(onnx_type: str) -> "np.dtype[Any]":
    """The type of arrays of "float", "bool", "bfloat16", ...: of ml_dtypes for those that NumPy does not have, or, where that is not
    installed, the integer that holds the bits. Strings are arrays of objects."""
    np = numpy()
    if onnx_type == "string":
        return np.dtype(object)
    if onnx_type in PLAIN:
        return np.dtype(PLAIN[onnx_type])
    name, bits = SMALL[onnx_type]
    try:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return np.dtype(bits)


def has_few_bits(onnx_type: str) -> bool:
    """Is it a type of integers of less than 8 bits? In packages each number fills a byte, with its sign. ml_dtypes looks at the lower bits alone, and
    leaves the upper ones as they happen to be."""
    return onnx_type.endswith(("int4", "int2"))


def memory_type(onnx_type: str) -> "np.dtype[Any]":
    """The type of arrays that see a package's memory: as numpy_type(), but integers for types of few bits."""
    return numpy().dtype(SMALL[onnx_type][1]) if has_few_bits(onnx_type) else numpy_type(onnx_type)


def as_package_reads(array: Any, onnx_type: str) -> Any:
    """The array, or, where its type has few bits, one of the bytes that packages read."""
    if not has_few_bits(onnx_type) or array.dtype.kind in "iu":
        return array
    return array.astype(memory_type(onnx_type))


def _by_bits(value: Any) -> Any:
    """A tensor of PyTorch of a type that NumPy does not have: its bits, where they lie, as numpy_type() sees them. None: it is no such tensor."""
    torch, of = sys.modules.get("torch"), str(getattr(value, "dtype", ""))
    name = next((name for name, (small, _) in SMALL.items() if of == f"torch.{small}"), None)
    if torch is None or name is None:
        return None
    bits = value.detach().view(torch.int16 if value.element_size() == 2 else torch.uint8)
    return numpy().from_dlpack(bits).view(numpy_type(name))


def to_numpy(value: Any) -> Any:
    """An array of anything that is one, that speaks DLPack, or that NumPy takes."""
    np = numpy()
    if isinstance(value, np.ndarray) or np.isscalar(value):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        try:
            if (bits := _by_bits(value)) is not None:
                return bits
            if hasattr(value, "detach"):  # of PyTorch, which refuses tensors that have gradients
                value = value.detach()
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, AttributeError) as problem:
            if not hasattr(value, "__array__"):
                raise RunError(f"an input cannot be read through DLPack: {problem}; tensors have to lie in the memory of the CPU") from problem
    try:
        return np.asarray(value)
    except Exception as problem:
        raise RunError(f"an input of type {type(value).__name__} is no array: {problem}; tensors have to lie in the memory of the CPU") from problem
