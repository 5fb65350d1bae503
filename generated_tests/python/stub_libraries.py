#!/usr/bin/env python3
"""Stands in for the CUDA libraries that torch's wheel links against, so that torch loads on a machine without them.

torch is used on the CPU only, to export models, but its wheel names libcudart, libcublas and others as needed; together
they are several gigabytes. For each missing one this script builds a small library, beside torch's own, that defines
the functions torch wants from it. Each answers 100, CUDA's "no device", or a word where a text is asked for.

usage: stub_libraries.py SITE_PACKAGES
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CUDA_LIBRARY = re.compile(r"lib(cu|nccl|nvrtc|nvshmem)")
CUDA_SYMBOL = re.compile(r"(__cu|cu|nccl|nvrtc|nvshmem)")
# A reference carries the name of a version, which by habit is the library's file name; nvshmem has another.
LIBRARY_OF_VERSION = {"NVSHMEM": "libnvshmem_host.so.3"}


def lines_of(*command):
    """The lines a tool prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def missing_of(libraries, folder):
    """{needed CUDA library that does not lie in `folder`: {version or "": [functions wanted from it]}}."""
    needed, undefined, defined = set(), set(), set()
    for library in libraries:
        for line in lines_of("readelf", "-dW", str(library)):
            found = re.search(r"\(NEEDED\).*\[(.*)\]", line)
            if found and CUDA_LIBRARY.match(found[1]) and not (folder / found[1]).exists():
                needed.add(found[1])
        for line in lines_of("nm", "-D", str(library)):
            kind, name = line.split()[-2:]
            if CUDA_SYMBOL.match(name):
                (undefined if kind == "U" else defined).add(name)
    wanted = {name: {} for name in sorted(needed)}
    anywhere = min(needed, default="")  # functions without a version may lie in any of them
    for symbol in sorted(undefined - defined):
        name, _, version = symbol.partition("@")
        library = LIBRARY_OF_VERSION.get(version, version if version in wanted else anywhere)
        wanted.get(library, {}).setdefault(version, []).append(name)
    return wanted


def build_stub(path, functions_by_version, scratch):
    """Compiles the library `path`, whose functions carry the versions that callers ask for."""
    source, versions = scratch / "stub.c", scratch / "stub.map"
    names = [name for functions in functions_by_version.values() for name in functions]
    source.write_text("int tc_no_cuda(void) { return 100; }\n" + "".join(
        f'const char *{name}(void) {{ return "no CUDA"; }}\n' if name.endswith(("String", "ErrorName")) else
        f"int {name}(void) {{ return 100; }}\n" for name in names))
    command = ["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", str(path), str(source)]
    if any(functions_by_version):
        versions.write_text("".join(f"{version} {{ global: {'; '.join(functions)}; }};\n"
                                    for version, functions in functions_by_version.items() if version))
        command.append(f"-Wl,--version-script={versions}")
    subprocess.run(command, check=True)


def main():
    folder = Path(sys.argv[1]) / "torch" / "lib"
    wanted = missing_of(sorted(folder.glob("*.so")), folder)
    with tempfile.TemporaryDirectory() as scratch:
        for name, functions_by_version in wanted.items():
            build_stub(folder / name, functions_by_version, Path(scratch))


if __name__ == "__main__":
    main()
