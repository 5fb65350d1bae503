#!/usr/bin/env python3
"""What `tc-emit tune` gains on functions for which there is no template: their plain loops against the steps that it finds.

usage: odd.py [--tool build/tc-emit] [--cpu native] [--trials 60] [--repeat 3] [--timeout 20] [--keep DIR] [REGEX]

A model a line; its formulas stand in odd.tc. Of each a row: a run by the cost model's schedules, by the best ones that were found, and the
ratio, as `tune` measures them in turns, in microseconds. --keep leaves models and records in a folder."""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = '<ir_version: 8, opset_import: ["" : 18, "odd" : 1]>\n'
MODELS = {
    "strided_sum": "m (float[8,16,24,16,64] x) => (float[8,24] y) { y = odd.StridedSum (x) }",
    "bilinear": "m (float[32,64] x, float[48,64,64] w, float[32,64] z) => (float[32,48] y) { y = odd.Bilinear (x, w, z) }",
    # What arrives at each node of a graph along its edges, times their weights.
    "messages": "m (float[256,16] x, int64[2000] s, int64[2000,1] t, float[2000,1,16] w) => (float[256,16,16] y)"
                " <float[1] zero = {0}, int64[3] shape = {256,16,16}, int64[1] last = {2}> { z = Expand (zero, shape)\n g = Gather (x, s)\n"
                " u = Unsqueeze (g, last)\n p = Mul (u, w)\n y = ScatterND <reduction = \"add\"> (z, t, p) }",
    "depthwise_3d": "m (float[1,32,16,28,28] x, float[32,1,3,3,3] w, float[32] b) => (float[1,32,16,28,28] y)"
                    " { y = Conv <group = 32, pads = [1,1,1,1,1,1]> (x, w, b) }",
    "banded": "m (float[512,512] a, float[64,512] x) => (float[64,512] y) { y = odd.Banded (a, x) }",
    "softmax": "m (float[4,64,8,48] x) => (float[4,64,8,48] y) { y = odd.Softmax (x) }",
}


def write_models(folder):
    """The models as files; returns {name: path}."""
    paths = {name: Path(folder) / f"{name}.onnxtxt" for name in MODELS}
    for name, path in paths.items():
        path.write_text(HEAD + MODELS[name] + "\n")
    return paths


def gains(records):
    """(time of a run by the model's schedules, by the best ones) in nanoseconds: sums over the functions of a file of records."""
    own, best = {}, {}
    for record in map(json.loads, records.read_text().splitlines()):
        if record.get("state") == "ok" and record["confirmed"]:
            own.setdefault(record["function"], record["ns"])
            best[record["function"]] = min(best.get(record["function"], 1), record["of_model"])
    return sum(own.values()), sum(own[f] * best[f] for f in own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("regex", nargs="?", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{'model':16}{'plain us':>10}{'tuned us':>10}{'gain':>8}", flush=True)
        for name, path in write_models(folder).items():
            if not re.search(options.regex, name):
                continue
            records = folder / f"{name}.jsonl"
            command = [options.tool, "tune", "--quiet", "--ops", ROOT / "bench" / "odd.tc", "--cpu", options.cpu, "--records", records,
                       "--trials", options.trials, "--repeat", options.repeat, "--timeout", options.timeout, path]
            told = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if told.returncode:
                sys.exit(f"{name}: tune ended with {told.returncode}\n{told.stderr[-2000:]}")
            plain, tuned = gains(records)
            print(f"{name:16}{plain / 1e3:10.1f}{tuned / 1e3:10.1f}{plain / tuned:8.1f}", flush=True)


if __name__ == "__main__":
    main()
