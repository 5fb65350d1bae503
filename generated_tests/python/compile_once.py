"""A launcher of compilers for CMake: what runs CUDA on a CPU is the same text in every package, and is compiled once.

usage: CMAKE_CXX_COMPILER_LAUNCHER="PYTHON;compile_once.py;FOLDER": objects are kept in FOLDER under what they are made of.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

from verdicts import digest_of

PLACES = ("-o", "-MF", "-MT", "-MQ", "-I", "-isystem")  # words before paths, which change nothing of the object


def key_of(command, source):
    """What the object is made of: the words but those of places, the texts beside the source and in the package around it."""
    words = [word for before, word in zip(["", *command], command) if before not in PLACES and not word.startswith("-I") and word != str(source)]
    texts = sorted([*source.parent.glob("*.h"), *source.parent.parent.glob("tc_*.h"), source])
    return digest_of(words, {path.name: path.read_bytes() for path in texts})


def main():
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    source = Path(command[-1])
    after = dict(zip(command, command[1:]))
    if source.parent.name != "cuda_on_cpu" or "-c" not in command or "-o" not in command:
        return subprocess.run(command).returncode
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{source.stem}-{key_of(command, source)[:32]}.o"
    if not kept.exists():
        status = subprocess.run(command).returncode
        if status == 0:
            made = kept.with_suffix(f".{os.getpid()}")
            shutil.copy(after["-o"], made)
            made.rename(kept)
        return status
    shutil.copy(kept, after["-o"])
    if "-MF" in after:  # nothing changes while a test runs
        Path(after["-MF"]).write_text(f"{after['-o']}: {source}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
