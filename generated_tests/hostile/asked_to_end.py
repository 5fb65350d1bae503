"""Ctrl-C, kill and a terminal that closes: tc-emit ends with 128 + the signal, in less than a few seconds. The package is the old one or the new
one, whole; what tc-emit has made for itself is gone, and so are the compilers that it has started.
"""
import os
import random
import shutil
import signal
import subprocess
import time

import interrupted
from checks import files_of
from toolchain import Failed

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 20  # seconds


def usual_signals():
    for number in SIGNALS:  # what runs in the background of a shell has SIGINT switched off
        signal.signal(number, signal.SIG_DFL)


def start(words, **environment):
    return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            preexec_fn=usual_signals, env={**os.environ, **environment})


def end(process, number):
    """Sends the signal; (exit code, what it told). An exit code below zero is a signal that was not noticed."""
    process.send_signal(number)
    try:
        told = process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired as hangs:
        process.kill()
        process.communicate()
        raise Failed(f"no end {PATIENCE} s after {number.name}") from hangs
    return process.returncode, told


def moment(process, out, rng, usual, k):
    """Waits for some time, or until files are being written, or until the last of them is and they are about to be exchanged."""
    last = out / "manifest.json.tc-new"
    while k % 3 and process.poll() is None and not (last.exists() if k % 3 == 2 else any(out.glob("*.tc-*"))):
        pass
    time.sleep(rng.random() * (usual, usual / 2, 2e-3)[k % 3])


def at_work(seen):
    """How many of these (state, exit code) were ended while they worked."""
    return sum(n for (_, code), n in seen.items() if code > 0)


def emissions(options, emit, seed, times, scratch):
    """Ends `times` emissions into a package, and as many into a folder that is not there yet; more, until as many were at work."""
    models, packages, out = interrupted.setting(options, emit, scratch, sizes=((5, 700), (8, 800)))
    rng, seen, current = random.Random(seed), {}, 0
    begin = time.monotonic()
    emit(options.tool, models[0], scratch / "timed")
    usual = time.monotonic() - begin
    for k in range(4 * times):  # where a machine is busy, many have ended before their moment comes
        if k >= times and at_work(seen) >= times:
            break
        after, number, fresh = 1 - current, rng.choice(SIGNALS), scratch / "fresh" / "deep"
        for folder, before in ((out, packages[current]), (fresh, {})):
            process = start([options.tool, "--quiet", "--name", "m", models[after], "-o", folder])
            moment(process, folder, rng, usual, k)
            code, told = end(process, number)
            left = files_of(folder) if folder.exists() else {}
            state = "new" if left == packages[after] else "old" if left == before else None
            if state is None or code not in ((128 + number, 0) if state == "new" else (128 + number, -number)):
                raise Failed(f"{number.name}: exit code {code}, {state or sorted(set(left) ^ set(before))}: {told[:300]}")
            if state == "old" and folder == fresh and fresh.parent.exists():
                raise Failed(f"{number.name}: an empty folder is left")
            # Before main() notices signals there is nothing to clean up.
            seen[state, code] = seen.get((state, code), 0) + 1
            if folder == out and state == "new":
                current = after
            shutil.rmtree(fresh.parent, ignore_errors=True)
    if at_work(seen) < times:
        raise Failed(f"too few of {sum(seen.values())} emissions were ended while they worked: {seen}")
    return seen


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def stays_alive(pid):
    """Where a machine is busy, what has been ended is gone a little later."""
    last = time.monotonic() + PATIENCE
    while is_alive(pid) and time.monotonic() < last:
        time.sleep(0.01)
    return is_alive(pid)


def builds(options, emit, scratch):
    """verify, bench and run while a compiler works, which has started another program."""
    model = interrupted.network(scratch / "a.onnx", 2, 8)
    compiler, pids = scratch / "slow_cc", scratch / "pids"
    compiler.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! >> {pids}\necho $$ >> {pids}\nwait\n")
    compiler.chmod(0o755)
    for command, number in (("verify", signal.SIGINT), ("bench", signal.SIGTERM), ("run", signal.SIGHUP), ("reduce", signal.SIGINT)):
        temporary, cache = scratch / f"{command}_tmp", scratch / f"{command}_cache"
        temporary.mkdir()
        pids.unlink(missing_ok=True)
        words = [options.tool, command, model, *(["-o", scratch / "small.onnx"] if command == "reduce" else [])]
        process = start(words, CC=str(compiler), TMPDIR=str(temporary), XDG_CACHE_HOME=str(cache))
        last = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < last and (not pids.exists() or len(pids.read_text().split()) < 2):
            time.sleep(0.01)
        if not pids.exists():
            raise Failed(f"{command} did not compile: {end(process, number)}")
        code, told = end(process, number)
        left = [str(path) for folder in (temporary, cache) for path in folder.rglob("*") if path.is_file() or "building" in path.name]
        alive = [pid for pid in pids.read_text().split() if stays_alive(pid)]
        if code != 128 + number or left or any(temporary.iterdir()) or alive:
            raise Failed(f"{command}: exit code {code}, left {left or list(temporary.iterdir())}, alive {alive}: {told[:300]}")
        if f"ended by {number.name}" not in told:
            raise Failed(f"{command}: told {told[:300]}")


def switched_off(options, emit, scratch):
    """A signal that the parent has switched off, as nohup does, stays so."""
    model = interrupted.network(scratch / "a.onnx", 3, 20)
    process = subprocess.Popen([options.tool, "--quiet", model, "-o", scratch / "out"], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    if process.wait() != 0:
        raise Failed(f"exit code {process.returncode}")
