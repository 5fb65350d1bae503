"""Emissions into a package that end before they are done: killed, on a full disk, in a folder that may not be written. What is
left is the old package or the new one, or does not build.
"""
import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from checks import files_of
from toolchain import Failed

EMPTY_HANDED = 6  # exit code: a file could not be read or written


def network(path, layers, width):
    """A perceptron; other layers give other kernels, other widths other weights."""
    rng = np.random.RandomState(layers)
    nodes, weights, last = [], [], "x"
    for k in range(layers):
        size = (width, width + k + 1) if k == 0 else (width + k, width + k + 1)
        weights.append(numpy_helper.from_array(rng.standard_normal(size).astype(np.float32), f"w{k}"))
        nodes += [helper.make_node("MatMul", [last, f"w{k}"], [f"p{k}"]), helper.make_node(("Relu", "Tanh")[k % 2], [f"p{k}"], [f"h{k}"])]
        last = f"h{k}"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, n]) for name, n in (("x", width), (last, width + layers)))
    save(helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


KEYSTONES = ("m.h", "Makefile", "CMakeLists.txt")


def judge(folder, old, new):
    """What is left is one of the two, or a part of one, or does not build. Returns which."""
    left = {name: data for name, data in files_of(folder).items() if ".tc-" not in name}
    for name, package in (("old", old), ("new", new)):
        if left == package:
            return name
    if any(all(package.get(name) == data for name, data in left.items()) for package in (old, new)):
        return "part"
    there = [name for name in KEYSTONES if name in left]
    if there:
        raise Failed(f"a mixture with {', '.join(there)}: others than the new ones are "
                     + ", ".join(name for name in sorted(left) if left[name] != new.get(name))[:300])
    if subprocess.run(["gcc", "-fsyntax-only", "m.c"], cwd=folder, capture_output=True).returncode == 0:
        raise Failed("a mixture that compiles")
    return "broken"


def setting(options, emit, scratch, sizes=((3, 20), (6, 50))):
    """(models, their packages, the folder of the first of them)."""
    models = [network(scratch / f"{name}.onnx", *size) for name, size in zip("ab", sizes)]
    packages = []
    for model in models:
        code, told = emit(options.tool, model, scratch / f"{model.stem}_whole")
        if code:
            raise Failed(told)
        packages.append(files_of(scratch / f"{model.stem}_whole"))
    shutil.copytree(scratch / "a_whole", scratch / "out")
    return models, packages, scratch / "out"


def killed(options, emit, seed, times, scratch):
    """Kills tc-emit `times` times, half of them while it writes; the next run makes the package whole."""
    models, packages, out = setting(options, emit, scratch)
    rng, seen, current = random.Random(seed), {}, 0
    start = time.monotonic()
    emit(options.tool, models[0], scratch / "timed")
    usual = time.monotonic() - start
    for k in range(times):
        after = 1 - current
        process = subprocess.Popen([options.tool, "--quiet", "--name", "m", models[after], "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if k % 2:
            time.sleep(rng.random() * usual)
        else:
            while process.poll() is None and not any(out.glob("*.tc-*")) and not any(out.glob("kernels/*.tc-*")):
                pass
            time.sleep(rng.random() * rng.choice([1e-4, 1e-3, 4e-3]))
        process.kill()
        process.wait()
        left = judge(out, packages[current], packages[after])
        seen[left] = seen.get(left, 0) + 1
        code, told = emit(options.tool, models[after], out)
        if code or files_of(out) != packages[after]:
            raise Failed(f"the run after a killed one ended with {code}, {sorted(set(files_of(out)) ^ set(packages[after]))}: {told[:300]}")
        current = after
    return seen  # how often which was left


def full_disk(options, emit, scratch):
    """A disk that is full before all is written: the old package stays, byte for byte, and nothing beside it."""
    models, packages, _ = setting(options, emit, scratch)
    disk = scratch / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=640k", "tmpfs", disk], capture_output=True).returncode:
        print("note: a full disk is not tried, because this user may not mount one")
        return
    try:
        big = network(scratch / "big.onnx", 3, 700)
        shutil.copytree(scratch / "a_whole", disk / "out")
        for model, folder in ((big, disk / "out"), (models[1], disk / "out"), (big, disk / "new")):
            before = files_of(folder) if folder.exists() else {}
            fill = disk / "fill"
            if model == models[1]:  # nearly full: some files have room
                fill.write_bytes(bytes(max(0, shutil.disk_usage(disk).free - 40000)))
            code, told = emit(options.tool, model, folder)
            fill.unlink(missing_ok=True)
            if code != EMPTY_HANDED or "error[TC06" not in told:
                raise Failed(f"exit code {code}: {told[:300]}")
            if (files_of(folder) if folder.exists() else {}) != before:
                raise Failed("the package is not what it was")
    finally:
        subprocess.run(["umount", disk], check=True)


def no_permission(options, emit, scratch):
    """Folders and files that this user may not write: nothing changes."""
    models, packages, out = setting(options, emit, scratch)
    somebody = {"user": 65534, "group": 65534} if os.getuid() == 0 else {}
    scratch.chmod(0o755)
    tool = Path(shutil.copy(options.tool, scratch / "tool"))
    tool.chmod(0o755)
    readable = scratch
    while readable != readable.parent:  # a temporary folder may lie where nobody may look
        if somebody and not readable.stat().st_mode & 0o001:
            print("note: a folder without permission is not tried, because nobody may enter this one")
            return
        readable = readable.parent
    for folder, mode in ((out, 0o555), (out / "kernels", 0o555)):
        if somebody:
            for path in (out, *out.rglob("*")):
                os.chown(path, 65534, 65534)
        folder.chmod(mode)
        result = subprocess.run([tool, "--quiet", "--name", "m", models[1], "-o", out], capture_output=True, text=True, **somebody)
        folder.chmod(0o755)
        if result.returncode != EMPTY_HANDED or files_of(out) != packages[0]:
            raise Failed(f"exit code {result.returncode}, package {'as it was' if files_of(out) == packages[0] else 'changed'}: {result.stderr[:300]}")
