"""tc-emit, the compiler from ONNX models to C or CUDA source, called from Python.

    import tc_emit

    m = tc_emit.compile("model.onnx", cpu="native", dims={"batch": 4})
    y = m.run({"x": x})            # NumPy arrays in and out, by name or in the model's order
    for name in m.kernels:
        print(m.source(name))

`emit` only writes a package and needs neither NumPy nor a C compiler; `load` takes a package that was written before; `verify`
compares with ONNX Runtime; `tc_emit.onnx_backend` is a backend of ONNX. Every error is a `TcEmitError`.
"""
from importlib import metadata as _metadata

from ._api import Package, Verification, compile, emit, load, verify
from ._errors import (CompilerMissing, Diagnostic, FileError, InternalError, LimitExceeded, Mismatch, ModelRejected, RunError,
                      TcEmitError, ToolFailed, Unsupported, UsageError)
from ._model import Model, Outputs, Port, Timing

try:
    __version__ = _metadata.version("tc-emit")
except _metadata.PackageNotFoundError:  # a checkout
    __version__ = "0+unknown"

__all__ = ["CompilerMissing", "Diagnostic", "FileError", "InternalError", "LimitExceeded", "Mismatch", "Model", "ModelRejected",
           "Outputs", "Package", "Port", "RunError", "TcEmitError", "Timing", "ToolFailed", "Unsupported", "UsageError",
           "Verification", "compile", "emit", "load", "verify"]
