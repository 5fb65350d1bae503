#!/usr/bin/env python3
"""Feeds tc-emit models that are wrong or made to do harm.

usage: run.py [--tool build/tc-emit] [--only REGEX] [--share K/N] [--jobs N] [--mutants FIRST:END] [--mangled FIRST:END] [--kills N] [--one-operand-in N] [--keep DIR]   (run it with `scripts/python_env base`)

Refused models (cases.py): the exit code, the code of the message and its decisive words are those of the table; the output
folder stays as it was, byte for byte; nothing takes more than 10 seconds or 2 GiB; nothing crashes. Accepted models
(payloads.py) carry code in every text that a model can have: what is emitted compiles without a warning, and outside of
comments and strings it is the text of a harmless twin. Programs (indices.py) are fed indices that are out of range.
Models with random changes (mutants.py, and mangled.py for the bytes of real ones), or with an operand that does not fit (operands.py),
get an answer, whatever it is. An emission that is killed, or cannot write (interrupted.py), leaves the old package or the new one. The last line reads 'N passed, N failed'.
"""
import argparse
import hashlib
import itertools
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "generated_tests" / "python"))
import cases  # noqa: E402
import indices  # noqa: E402
import asked_to_end  # noqa: E402
import interrupted  # noqa: E402
import mangled  # noqa: E402
import mutants  # noqa: E402
import operands  # noqa: E402
import payloads  # noqa: E402
import shares  # noqa: E402
from toolchain import Failed, Toolchain  # noqa: E402

SECONDS, KIB = 10, 2 << 20
# What only those who built the tool understand: places in source files, assertions, symbols of C++.
BUILDERS = re.compile(r"\.(cc|cpp|h|hpp):\d|Assertion|\b(std|onnx|google|tc)::|_M_|\b__n\b|basic_string|\bmap::at|" + re.escape(str(ROOT)))


def fingerprint(folder):
    """Names, kinds, contents and times of everything in a folder."""
    h = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        st = path.lstat()
        h.update(f"{path.relative_to(folder)} {st.st_mode} {st.st_mtime_ns}\n".encode(errors="surrogateescape"))
        if path.is_file() and not path.is_symlink():
            h.update(path.read_bytes())
    return h.hexdigest()


def emit(tool, model, out, flags=(), scale=1, seconds=SECONDS):
    """(exit code, stderr); raises Failed if tc-emit dies, hangs or takes too much memory."""
    command = [str(word) for word in (tool, "--quiet", "--verify-each", "--name", "m", *flags, model, "-o", out)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + seconds * scale
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                os.wait4(process.pid, 0)
                process.returncode = -9
                raise Failed(f"no end after {seconds * scale} s")
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        told = log.read().decode(errors="replace")
    if process.returncode < 0:
        raise Failed(f"killed by signal {-process.returncode}: {told[-300:]}")
    if re.search(r"Sanitizer|runtime error:", told):
        raise Failed(f"a report of the compiler's checks: {told[-1500:]}")
    if words := BUILDERS.search(told):
        raise Failed(f"a message that says {words[0]!r}: {told[:600]}")
    if usage.ru_maxrss > KIB * scale:
        raise Failed(f"{usage.ru_maxrss >> 10} MiB of memory")
    return process.returncode, told


def refuse(case, options, scratch):
    """Checks one model that has to be refused."""
    folder, out = scratch / "model", scratch / "out"
    folder.mkdir()
    shutil.copytree(options.earlier, out)
    before = fingerprint(out)
    model = case.write(folder)
    code, told = emit(options.tool, model, out, case.flags, options.scale)
    if code != case.exit or f"error[{case.code}]" not in told or case.says not in told:
        raise Failed(f"exit code {code} instead of {case.exit}, or not {case.code} with \"{case.says}\":\n{told[:600]}")
    if re.search(r"[^\x20-\x7e\n]", told):
        raise Failed(f"a message that is not printable: {told[:300]!r}")
    if fingerprint(out) != before:
        raise Failed("the output folder was touched")


def compile_huge(case, options, scratch):
    """Checks one model that is accepted and too large to run: it compiles, and what counts that far is no int."""
    folder, out = scratch / "model", scratch / "out"
    folder.mkdir()
    code, told = emit(options.tool, case.write(folder), out, case.flags, options.scale)
    if code:
        raise Failed(f"exit code {code}: {told[:500]}")
    options.tools.build(out, scratch / "program", {})
    text = "".join(k.read_text() for k in out.glob("kernels/*.c"))
    if "int64_t" not in text or re.search(r"(for \(|const )int ", text):
        raise Failed(f"something counts in int:\n{text}")


def work_on(name, check, *arguments):
    """Runs one check in a folder of its own; returns whether it passed, after a line that says why it did not."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            check(*arguments, Path(scratch))
            return True
        except Failed as failure:
            print(f"FAILED {name}: {failure}", flush=True)
            return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--only", default="")
    shares.add_option(parser, quick=6)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--mutants", default="0:300", help="numbers of the random models")
    parser.add_argument("--mangled", default="0:500", help="numbers of the real models with changed bytes")
    parser.add_argument("--kills", type=int, default=200, help="how often tc-emit is killed while it writes")
    parser.add_argument("--one-operand-in", type=int, default=48, help="how many of the models with a changed operand are tried; 1: all")
    parser.add_argument("--keep", type=Path, help="where mutants go that were answered wrongly")
    parser.add_argument("--scale", type=int, default=1, help="times the limits of time and memory: for a tool built with sanitizers")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    options.tool = options.tool.resolve()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(options.jobs) as pool:
        # What stands in every output folder before tc-emit runs: a package and a file of the user's.
        options.earlier = Path(temporary) / "earlier"
        (Path(temporary) / "sound").mkdir()
        sound = cases.save(Path(temporary) / "sound", cases.sound().SerializeToString())
        code, told = emit(options.tool, sound, options.earlier, scale=options.scale)
        assert code == 0, told
        (options.earlier / "notes.txt").write_text("mine\n")
        options.tools = Toolchain(Path(temporary), ["-O0"])
        jobs = [(c.name, refuse, c, options) for c in cases.all_cases()]
        jobs += [(c.name, compile_huge, c, options) for c in cases.huge()]
        jobs += [(p.name, payloads.accept, p, options, emit) for p in payloads.all_payloads()]
        jobs.append(("indices at run time", indices.check, options, emit))
        jobs += [(f"killed {k}", interrupted.killed, options, emit, k, 20) for k in range(options.kills // 20)]
        jobs += [(f"asked to end {k}", asked_to_end.emissions, options, emit, k, 10) for k in range(options.kills // 40)]
        jobs += [("builds asked to end", asked_to_end.builds, options, emit), ("signals switched off", asked_to_end.switched_off, options, emit)]
        jobs += [("full disk", interrupted.full_disk, options, emit), ("no permission", interrupted.no_permission, options, emit)]
        models = mutants.originals()
        first, end = map(int, options.mutants.split(":"))
        jobs += [(f"mutant {k}", mutants.check, f"mutant {k}", mutants.mutant(k, models), options, emit) for k in range(first, end)]
        real = mangled.originals()
        first, end = map(int, options.mangled.split(":"))
        jobs += [(f"mangled {k}", mangled.check, k, real, options, emit) for k in range(first, end)]
        changed = itertools.islice(operands.changes(models), 0, None, options.one_operand_in)
        jobs += [(name, mutants.check, name, model.SerializeToString(), options, emit) for name, model in changed]
        results = list(pool.map(lambda job: work_on(*job), shares.part((j for j in jobs if re.search(options.only, j[0])), options)))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
