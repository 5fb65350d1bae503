"""A runner of tc-emit tune that builds nothing: times follow from the schedule that the manifest of the package tells.

usage: fake_runner.py [--wrong WORD] [--delay SECONDS] [--say TEXT]
  --wrong WORD  what has WORD in its schedule is ten times as fast, and wrong
  --say TEXT    this line is the answer to everything"""
import argparse
import json
import pathlib
import sys
import time


def schedule(package):
    return json.loads((pathlib.Path(package) / "manifest.json").read_text())["kernels"][0]["schedule"]


def nanoseconds(text):
    """Two rows by 32 columns are best; of blocks of a GPU 64 x 32 results."""
    words = text.replace(";", "").split()
    if len(words) > 2 and words[1] == "x" and "results a block" in text:
        return 100.0 + abs(int(words[0]) - 64) + abs(int(words[2]) - 32)
    rows = int(words[0]) if len(words) > 1 and words[1].startswith("row") else 1
    columns = int(words[words.index("columns") - 1]) if "columns" in words else 400
    return 100.0 * (1 + abs(rows - 2)) + abs(columns - 32)


def answer(asked, options):
    text = schedule(asked["package"])
    if options.wrong and options.wrong in text:
        return {"id": asked["id"], "state": "wrong", "reason": "as it was told", "ns": [1], "against_ns": [100]}
    turns = asked["repeat"]
    told = {"id": asked["id"], "ns": [nanoseconds(text)] * turns}
    if asked["against"]:
        told["against_ns"] = [nanoseconds(schedule(asked["against"]))] * turns
    return told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wrong")
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--say")
    options = parser.parse_args()
    for line in sys.stdin:
        time.sleep(options.delay)
        asked = json.loads(line)
        told = {"id": 0, "processor": "none", "compiler": "none"} if asked["id"] == 0 else answer(asked, options)
        print(options.say if options.say and asked["id"] else json.dumps(told), flush=True)


main()
