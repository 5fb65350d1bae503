"""A runner of `tc-emit tune` that spreads measurements over the workers of a Dask cluster, one candidate at a time on each.

    tc-emit tune --records net.jsonl --jobs 8 --runner 'python runner.py --scheduler tcp://10.0.0.1:8786' net.onnx

Without --scheduler candidates are built and timed one after the other by this process. Packages travel as archives, so
that workers share no file system with who asks. Workers need make and a C compiler. Those that are not like the first one are left out:
times of different processors go into different files of records, and are not compared. What a worker had that is gone goes to another one."""
import argparse
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import threading

SAYING = threading.Lock()


def archive(folder):
    """The bytes of a tar archive of what is in a folder."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz", compresslevel=1) as tar:
        tar.add(folder, arcname=".", filter=lambda member: None if member.name.endswith((".o", ".a")) or member.name == "./candidate" else member)
    return held.getvalue()


def unpack(packed, folder):
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(folder, filter="data")
    return folder


class Failed(Exception):
    """A state of the protocol, and why."""


def build(folder, seconds):
    try:
        done = subprocess.run(["make", "-s", "-C", folder, "candidate"], capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed("timeout", "the compiler took too long") from None
    if done.returncode:
        raise Failed("build", done.stderr[-500:])
    return pathlib.Path(folder) / "candidate"


def measure(program, asked, inputs):
    """The median time of a call, in nanoseconds."""
    words = ["--inputs", inputs, "--expect", inputs, "--rtol", asked["rtol"], "--atol", asked["atol"], "--threads", asked["threads"],
             "--measure", asked["seconds"], "--evict", asked["evict_bytes"]]
    try:
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=asked["timeout"])
    except subprocess.TimeoutExpired:
        raise Failed("timeout", "the program took too long") from None
    if done.returncode == 1 and "  FAIL" in done.stdout:
        raise Failed("wrong", done.stdout[-500:])
    if done.returncode:
        raise Failed("crash", f"exit code {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])["median_ns"]


def answer(asked, package, against, inputs):
    """What is said of a request whose folders are given as archives; runs on a worker."""
    told = {"id": asked["id"], "ns": [], "against_ns": []}
    with tempfile.TemporaryDirectory() as scratch:
        folders = [unpack(packed, pathlib.Path(scratch) / name) if packed else None for name, packed in (("package", package), ("against", against), ("io", inputs))]
        try:
            programs = {name: build(folder, asked["timeout"]) for name, folder in (("ns", folders[0]), ("against_ns", folders[1])) if folder}
            for turn in range(asked["repeat"]):
                for name in sorted(programs, reverse=turn % 2 == 0):
                    told[name].append(measure(programs[name], asked, folders[2]))
        except Failed as failed:
            return {"id": asked["id"], "state": failed.args[0], "reason": failed.args[1]}
    return told


def setting():
    """Of the machine that this runs on: times of one setting are compared."""
    about = dict(line.split(":", 1) for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    processor = " ".join(value.strip() for name, value in about.items() if name.strip() in ("model name", "cpu family", "model"))
    compiler = subprocess.run(["sh", "-c", "${CC:-cc} --version"], capture_output=True, text=True).stdout.split("\n")[0]
    return {"id": 0, "processor": processor or "unknown", "compiler": compiler or "unknown"}


def packed(asked):
    return asked, archive(asked["package"]), archive(asked["against"]) if asked["against"] else b"", archive(asked["io"])


def say(told):
    with SAYING:
        print(json.dumps(told), flush=True)


def over_cluster(client, asked):
    """Answers what is asked by workers of one kind: those that are like the first one. A candidate whose worker is gone goes to another."""
    known = client.run(setting)
    if not known:
        raise SystemExit("the scheduler has no workers")
    like = known[min(known)]
    others = sorted(address for address, told in known.items() if told != like)
    if others:
        print(f"left out, as they are no {like['processor']}: {', '.join(others)}", file=sys.stderr)
    say(like)
    alike = {"workers": [address for address in known if address not in others]} if others else {}
    said = threading.Semaphore(0)

    def tell(question, done):
        try:
            say(done.result())
        except Exception as gone:  # it has killed several workers, or cannot come back
            say({"id": question["id"], "state": "crash", "reason": f"{type(gone).__name__}: {gone}"[:500]})
        said.release()

    kept = []  # what nobody holds is not computed
    for question in asked:
        kept.append(client.submit(answer, *packed(question), pure=False, **alike))
        kept[-1].add_done_callback(lambda done, question=question: tell(question, done))
    for _ in kept:
        said.acquire()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", help="the address of a Dask scheduler whose workers have one thread each")
    options = parser.parse_args()
    asked = map(json.loads, sys.stdin)
    next(asked)  # {"id": 0, "ask": "setting"}
    if not options.scheduler:
        say(setting())
        for question in asked:
            say(answer(*packed(question)))
        return
    import distributed  # pip install -r requirements.txt
    client = distributed.Client(options.scheduler)
    over_cluster(client, asked)


if __name__ == "__main__":
    main()
