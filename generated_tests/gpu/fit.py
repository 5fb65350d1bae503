#!/usr/bin/env python3
"""Fits the costs of templates/cuda/contraction_plan.cc to what sweep.py measured.

usage: fit.py sweep.tsv                                                        (run it with `scripts/python_env base`)

The estimate below is estimate() of that file, for `sm_90`. A random search minimises the squared error of its logarithm, by weights
that fall with the distance from a product's fastest tile. Prints, for CUDA cores and for tensor cores, the struct Costs, a
second launch and the share of partial sums that come from memory, and how much slower than the fastest of a product the tile is
that the model takes.
"""
import re
import sys

import numpy as np

MULTIPROCESSORS, REGISTERS, SHARED, THREADS = 132, 65536, 228 << 10, 2048
KINDS = ("CUDA cores", "tensor cores", "warp groups")
NAMES = ("busy_warps", "issue", "l2_bytes", "fixed", "latency", "second launch", "partial bytes", "launch, us")
START = {0: [8, 1, 40, 200, 500, 500, 0.5, 1.5], 1: [4, 1, 60, 200, 500, 500, 0.5, 1.5], 2: [4, 1, 60, 200, 500, 500, 0.5, 1.5]}
LEAST = [1, 0.2, 4, 0.1, 10, 100, 0.05, 0.3]
MOST = [64, 10, 2000, 4000, 5000, 20000, 50, 4]


def ceil_div(a, b):
    return -(-a // b)


def facts(name, p):
    """What the estimate needs to know of a product and its tile."""
    m, k, n = map(int, re.match(r"m(\d+)_k(\d+)_n(\d+)", name).groups())
    on_tensor_cores = p["tensor_cores"]
    bytes_each = p["bits"] // 8
    rows, columns, depth, stages, groups, splits = (p[x] for x in ("rows", "columns", "depth", "stages", "groups", "splits"))
    part = "warp" if on_tensor_cores else "thread"
    tm, tn = p[f"{part}_rows"], p[f"{part}_columns"]
    together = 32 * p.get("warps", 1) if on_tensor_cores else 1
    threads = rows // tm * (columns // tn) * together
    warps = threads / 32
    if together == 128:
        step_bytes = (rows + columns) * depth * bytes_each
        slots = rows * columns * depth * bytes_each / 4096 + 20
    elif on_tensor_cores:
        step_bytes = (rows + columns) * (depth * bytes_each + 16)
        slots = max(rows * columns * depth / (16 * 8 * 16) * 2, warps * (tm + tn) * depth * bytes_each / 512 * 4) + (rows + columns) * depth * bytes_each / 512 * 8 + 20
    else:
        step_bytes = depth * (rows + columns + 8) * bytes_each
        slots = (tm * tn * depth + (tm + tn) // 4 * depth * 2 + (rows * depth + columns * depth // 4) / threads * 6 + 20) * warps / 4
    shared = max(groups * stages * step_bytes, (groups - 1) * rows * columns * 4)
    registers = threads * groups * (tm * tn // together + 56)
    per_sm = ceil_div(ceil_div(m, rows) * ceil_div(n, columns) * splits, MULTIPROCESSORS)
    resident = min(per_sm, max(1, min(REGISTERS // registers, SHARED // shared, THREADS // (threads * groups))))
    return {"steps": ceil_div(ceil_div(k, depth), groups * splits), "ahead": stages - (2 if together == 128 else 1), "slots": slots, "rounds": ceil_div(per_sm, resident),
            "per_sm": per_sm, "groups": resident * groups, "threads": resident * threads * groups, "read": resident * groups * (rows + columns) * depth * bytes_each,
            "joined": (groups - 1) * rows * columns, "splits": splits, "results": m * n}


def estimate(a, x):
    """Microseconds of launches, `a` having an array of each fact."""
    busy = np.minimum(1, a["threads"] / (32 * x[0]))
    step = np.maximum(np.maximum(a["groups"] * a["slots"] * x[1] / busy + x[3], a["read"] / x[2]), x[4] / a["ahead"])
    cycles = a["rounds"] * (a["steps"] + a["ahead"]) * step
    cycles += (a["joined"] > 0) * (a["per_sm"] * a["joined"] / 32 + 100)
    cycles += (a["splits"] > 1) * (x[5] + 8 * a["splits"] * a["results"] * x[6] / (3350 / 1.4))
    return x[7] + cycles / 1400


def search(loss, start):
    rng, best = np.random.default_rng(1), None
    for trial in range(12):
        x = np.clip(np.array(start) * np.exp(rng.normal(0, 0.5 if trial else 0, len(start))), LEAST, MOST)
        at, width = loss(x), 0.3
        for i in range(2500):
            y = np.clip(x * np.exp(rng.normal(0, width, len(x)) * (rng.random(len(x)) < 0.4)), LEAST, MOST)
            if (found := loss(y)) < at:
                x, at = y, found
            elif i % 100 == 99:
                width = max(0.02, width * 0.9)
        if best is None or at < best[0]:
            best = (at, x)
    return best


def fit(rows, kind):
    names, times = np.array([name for name, _, _ in rows]), np.array([us for _, us, _ in rows])
    known = [facts(name, numbers) for name, _, numbers in rows]
    a = {key: np.array([f[key] for f in known], float) for key in known[0]}
    fastest = {name: times[names == name].min() for name in sorted(set(names))}
    weight = np.array([(fastest[name] / us) ** 2 for name, us in zip(names, times)])
    error, x = search(lambda x: float(np.sum(weight * np.log(estimate(a, x) / times) ** 2) / np.sum(weight)), START[kind])
    guessed = estimate(a, x)
    lost = [times[names == name][np.argmin(guessed[names == name])] / fastest[name] for name in fastest]
    print(KINDS[kind] + f": {len(rows)} launches, error {error:.4f}, "
          f"{100 * (np.exp(np.mean(np.log(lost))) - 1):.0f} % slower than the fastest")
    print("  " + ", ".join(f"{name} {value:.3g}" for name, value in zip(NAMES, x)))


def main():
    lines = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
    rows = [(name, float(us), {k.strip(): int(v) for k, v in (word.split("=") for word in said.split(","))}) for name, us, said in lines]
    for kind in range(len(KINDS)):
        some = [row for row in rows if row[2]["tensor_cores"] + (row[2].get("warps", 1) == 4) == kind and row[1] > 0]
        if some:
            fit(some, kind)


if __name__ == "__main__":
    main()
