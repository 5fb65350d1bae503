"""NVRTC in process, through ctypes: compiles the text of a kernel file as it is."""
import ctypes
import ctypes.util
from pathlib import Path


class Nvrtc:
    """The library; `Nvrtc.find()` is None where it is not installed."""

    def __init__(self, library):
        self.library = library

    @classmethod
    def find(cls):
        for name in ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", *map(str, Path("/usr/local/cuda/lib64").glob("libnvrtc.so*"))]:
            try:
                return cls(ctypes.CDLL(name))
            except OSError:
                continue
        return None

    def compile(self, text, headers, arch):
        """Compiles `text` for sm_`arch`; `headers` are {name in #include: text}. Returns (succeeded, log, PTX)."""
        lib, program = self.library, ctypes.c_void_p()
        names = (ctypes.c_char_p * len(headers))(*[name.encode() for name in headers])
        texts = (ctypes.c_char_p * len(headers))(*[body.encode() for body in headers.values()])
        if lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", len(headers), texts, names):
            return False, "nvrtcCreateProgram failed", ""
        options = [f"--gpu-architecture=compute_{arch}".encode(), b"--std=c++17", b"-default-device"]
        code = lib.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = self._text(program, lib.nvrtcGetProgramLogSize, lib.nvrtcGetProgramLog)
        ptx = self._text(program, lib.nvrtcGetPTXSize, lib.nvrtcGetPTX) if code == 0 else ""
        lib.nvrtcDestroyProgram(ctypes.byref(program))
        return code == 0, log, ptx

    @staticmethod
    def _text(program, size, get):
        length = ctypes.c_size_t()
        size(program, ctypes.byref(length))
        buffer = ctypes.create_string_buffer(max(length.value, 1))
        get(program, buffer)
        return buffer.value.decode(errors="replace")
