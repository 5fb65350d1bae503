"""What drivers share that try a tool and tell one line for each promise: the tally, commands, and packages."""
import argparse
import subprocess
from pathlib import Path

import shares

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "build" / "tc-emit"


class Checks:
    """Counts promises that hold and promises that do not; calling it prints one of them, or only those that do not."""

    def __init__(self, only_failures=False):
        self.passed, self.failed, self.only_failures = 0, 0, only_failures

    def __call__(self, name, ok, detail=""):
        self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
        if not ok or not self.only_failures:
            print(("ok    " if ok else "FAIL  ") + name + (f": {str(detail)[:400]}" if detail and not ok else ""), flush=True)
        return ok

    def no_problem(self, name, problem):
        """A promise that holds where there is nothing to tell."""
        return self(name, not problem, problem)

    def emit(self, model, out, *flags, wrap=(), **options):
        """Writes the package of a model into `out` and returns `out`; a refusal fails. `wrap`: words before the command."""
        result = run(*wrap, TOOL, "--quiet", *flags, model, "-o", out, **options)
        if result.returncode:
            self(f"emit {Path(model).name} {' '.join(map(str, flags))}", False, last_line(result))
        return out

    def run(self, parts, quick):
        """Runs the parts of a driver, functions that take nothing and check what they like, or a share of them."""
        parser = argparse.ArgumentParser()
        shares.add_option(parser, quick)
        for part in shares.part(parts, parser.parse_args()):
            part()

    def summary(self):
        """Prints the last line; returns the exit status."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def run(*command, **options):
    """A command, its words as text; returns what it printed and its exit status."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


def compare(program, io, rtol, atol, *words, **options):
    """Runs the program of a package on the inputs in the folder `io`, which has to give the outputs there."""
    return run(program, "--inputs", io, "--expect", io, "--rtol", rtol, "--atol", atol, *words, **options)


def files_of(folder):
    """{name: bytes} of all files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def last_line(result):
    """The line of an error, or the last one."""
    lines = (result.stdout + result.stderr).strip().splitlines()
    return next((line for line in lines if "error" in line), lines[-1] if lines else "no output")
