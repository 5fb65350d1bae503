"""Tuning: what is wrong, slow to build or refused is never replayed, what was measured is not lost and not measured again, and
records give the package that their schedules give as text. The last line counts."""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

from common import (BILINEAR, CPU, DIGITS, ROOT, TOOL, best, check, fake, files_of, lines_of, plan, records_of, run, tune, with_tmp,
                    written_schedules)
from on_cuda import emulated, on_cuda, sketched_on_cuda


@with_tmp
def measured(tmp):
    """Real kernels, compiled and timed here."""
    records = tmp / "r.jsonl"
    told = tune(records, "--trials", "6", "--repeat", "2", "--tasks", "conv2d", "--jobs", "2", "--timeout", "120")
    check("tune ends well", told.returncode == 0, told.stderr)
    got = records_of(records)
    first = got[0] if got else {}
    check("the model's plan comes first", first.get("of_model") == 1 and plan(first) == first["model"], first)
    check("trials are counted", len({plan(r) for r in got}) == 6, len(got))  # what looks best is measured twice
    check("all of them are right", all(r["state"] == "ok" and r["ns"] > 0 for r in got), [(r["state"], r.get("reason"), plan(r)) for r in got])
    check("the table has the function and the command that replays", "conv2d_bias_relu" in told.stdout and f"--records {records}" in told.stdout, told.stdout)
    right = run(TOOL, "verify", DIGITS, *CPU, "--records", records, "--against", "interpreter")
    check("a program by records is right", right.returncode == 0, right.stdout + right.stderr)


@with_tmp
def replayed(tmp):
    """The best that was measured is what is emitted, byte for byte as its schedules as text say it."""
    records, out, again = tmp / "r.jsonl", tmp / "out", tmp / "again"
    told = tune(records, "--trials", "160", *fake())
    check("a runner is asked", told.returncode == 0, told.stderr)
    wanted = best(records_of(records))
    applied = written_schedules(tmp, "--records", records)
    for function, r in wanted.items():
        check(f"{r['signature']} is as it was best", applied.get(function) == plan(r), (applied.get(function), plan(r)))
    conv = next((r for r in wanted.values() if r["signature"].startswith("conv2d")), {"plan": []})
    check("the search finds the best tile", re.search(r"rows = 2, columns = 32\b", plan(conv)), conv)
    package = files_of(check.emit(DIGITS, out, *CPU, "--records", records))
    check("another package than the model's", package != files_of(check.emit(DIGITS, tmp / "plain", *CPU)))
    check("the package of its schedules as text", package == files_of(check.emit(DIGITS, again, *CPU, "--schedules", tmp / "written.tc")))
    told = run(TOOL, DIGITS, *CPU, "--records", records, "-o", out, "--depfile", tmp / "d")
    check("it says how many functions records decide on", re.search(r"^records   \d of 5 functions as ", told.stdout, re.M), told.stdout + told.stderr)
    check("records are a dependency", "r.jsonl" in (tmp / "d").read_text())
    (tmp / "plain.tc").write_text('schedule "conv2d_*"\n  naive()\n')
    stated = written_schedules(tmp, "--records", records, "--schedules", tmp / "plain.tc")
    check("--schedules win over --records", stated.get(conv.get("function")) == "naive()", stated)


@with_tmp
def sketched(tmp):
    """A function without a template gets steps over its loops: found, checked, kept as steps, replayed to the same bytes, not measured again."""
    model, records = tmp / "bilinear.onnxtxt", tmp / "r.jsonl"
    model.write_text(BILINEAR)
    ops = ["--ops", ROOT / "bench" / "odd.tc"]
    told = tune(records, "--trials", "3", "--repeat", "2", "--jobs", "2", "--timeout", "120", *ops, model=model)
    got = records_of(records)
    check("steps are found", told.returncode == 0 and any(r["state"] == "ok" and r["confirmed"] and r["of_model"] < 0.7 and "sketch" in r for r in got), (got, told.stderr))
    check("all are right", all(r["state"] == "ok" for r in got), got)
    found = next(iter(best(got).values()), {"plan": []})
    check("the record holds the steps", found["plan"][:1] == ["naive()"] and len(found["plan"]) > 4 and any(step.startswith("vectorize(") for step in found["plan"]), found)
    check("and no record leads anywhere else", all("sketch(" not in plan(r) for r in got), got)
    package = files_of(check.emit(model, tmp / "out", *CPU, *ops, "--records", records))
    run(TOOL, "--quiet", model, *CPU, *ops, "--records", records, "--write-schedules", tmp / "w.tc")
    check("the package of its steps as text", package == files_of(check.emit(model, tmp / "again", *CPU, *ops, "--schedules", tmp / "w.tc")))
    check("not the plain loops", package != files_of(check.emit(model, tmp / "plain", *CPU, *ops)))
    right = run(TOOL, "verify", model, *CPU, *ops, "--records", records, "--against", "interpreter")
    check("a program of steps is right", right.returncode == 0, right.stdout + right.stderr)
    numbers = re.search(r"\((.*)\)", found["sketch"][0])[1] if "sketch" in found else ""
    (tmp / "s.tc").write_text(f'schedule "*"\n  sketch({numbers})\n')
    check("its numbers stand for the steps", package == files_of(check.emit(model, tmp / "numbers", *CPU, *ops, "--schedules", tmp / "s.tc")))
    lied = tmp / "lied.jsonl"
    lied.write_text("".join(json.dumps({**r, "sketch": [re.sub(r"outer = 0", "outer = 1", line) for line in r.get("sketch", [])]} if "sketch" in r else r) + "\n" for r in got))
    for name, file in (("what was measured", records), ("what a sketch that is another one says", lied)):
        before = {plan(r) for r in records_of(file)}
        told = tune(file, "--trials", "2", "--jobs", "1", *ops, *fake(), model=model)
        check(f"{name}: it goes on", told.returncode == 0 and "trials added" in told.stdout, told.stdout + told.stderr)
        check(f"{name}: the plan in the record counts", before <= {plan(r) for r in records_of(file)}, told.stdout)


@with_tmp
def gone_on(tmp):
    """Who is killed loses one trial at most, and what was measured is not measured again."""
    records = tmp / "r.jsonl"
    env = {**os.environ, "TMPDIR": str(tmp)}
    killed = subprocess.Popen([str(w) for w in (TOOL, "tune", DIGITS, *CPU, "--records", records, "--jobs", "1", *fake("--delay", 0.05))],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    deadline = time.monotonic() + 30
    while (not records.exists() or len(records_of(records)) < 8) and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    text = records.read_text()
    before = records_of(records)
    check("what was measured is there", len(before) >= 8 and len(lines_of(records)) == text.count("\n"), text[-200:])
    records.write_text(text + text.splitlines()[0][:100])
    told = tune(records, "--trials", "10", *fake())
    check("a torn line is named", f"{records}:{text.count(chr(10)) + 1}: no record: it is no object of JSON" in told.stderr, told.stderr)
    check("it goes on behind a torn line", told.returncode == 0 and f"{len(before)} were there, 10 trials added, 1 lines are no records" in told.stdout, told.stdout + told.stderr)
    after = records_of(records)
    check("nothing is lost", after[:len(before)] == before)
    tried = [(r["function"], plan(r)) for r in before]
    anew = [(r["function"], plan(r)) for r in after[len(before):] if not r["confirmed"]]
    check("nothing is measured again", anew and not set(tried) & set(anew) and len(set(anew)) == len(anew), anew)
    known = {r["function"] for r in before if plan(r) == r["model"]}
    check("nor is the model's plan", all(plan(r) != r["model"] for r in after[len(before):] if r["function"] in known))
    interrupted = subprocess.Popen([str(w) for w in (TOOL, "tune", DIGITS, *CPU, "--records", records, *fake("--delay", 0.2))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # what runs in the background of a shell has it switched off
    time.sleep(1)
    interrupted.send_signal(signal.SIGINT)
    check("Ctrl-C ends it with 130", interrupted.wait(timeout=20) == 130)
    check("and leaves a sound file", records.read_text().endswith("\n") and len(lines_of(records)) == records.read_text().count("\n") - 1)


@with_tmp
def never_best(tmp):
    """Wrong results and time-outs are records with their reasons, and are not replayed."""
    records = tmp / "wrong.jsonl"
    tune(records, "--trials", "25", "--tasks", "conv2d", *fake("--wrong", "by 32 columns"))
    got = records_of(records)
    wrong = [r for r in got if r["state"] == "wrong"]
    check("wrong candidates are records", wrong and all(r["reason"] == "as it was told" and "columns = 32" in plan(r) for r in wrong), got)
    check("they have no times", all("ns" not in r for r in wrong))
    for function, applied in written_schedules(tmp, "--records", records).items():
        check(f"{function}: what is wrong is not replayed", applied not in map(plan, wrong), applied)
    slow = tmp / "slow.jsonl"
    told = tune(slow, "--trials", "2", "--tasks", "conv2d", "--timeout", "0.01")
    got = records_of(slow)
    check("a compiler that takes too long is a record", told.returncode == 0 and [r["state"] for r in got] == ["timeout"], (got, told.stderr))
    check("and the table says it", "cannot be measured" in told.stdout, told.stdout)
    check("its function is the model's", written_schedules(tmp, "--records", slow) == written_schedules(tmp))
    broken = tmp / "broken.jsonl"
    told = tune(broken, "--trials", "1", "--tasks", "conv2d", env={**os.environ, "CFLAGS": "-Dfloat=nothing"})
    got = records_of(broken)
    check("what does not compile is a record", [r["state"] for r in got] == ["build"] and got[0]["reason"], (got, told.stderr))


@with_tmp
def merged(tmp):
    """Files of several machines are one behind the other; their times are not compared."""
    records = tmp / "r.jsonl"
    tune(records, "--trials", "30", "--tasks", "conv2d", *fake())
    mine = records_of(records)
    other = [{**r, "processor": "another", "of_model": r["of_model"] / 2 if r["of_model"] < 1 else r["of_model"]} for r in mine if r["of_model"] >= 1]
    for r in other:
        if r["of_model"] > 1:
            r.update(of_model=0.01, confirmed=True)
    lines = ["\n".join(json.dumps(r) for r in part) + "\n" for part in (mine, other)]
    own = plan(next(iter(best(mine).values())))
    theirs = plan(next(iter(best(other).values())))
    for name, text, wanted in (("this machine first", lines[0] + lines[1], own), ("the other first", lines[1] + lines[0], theirs)):
        records.write_text(text)
        applied = written_schedules(tmp, "--records", records)[mine[0]["function"]]
        check(f"{name}: the first setting decides", applied == wanted, (applied, wanted))
    records.write_text(lines[0])
    told = run(TOOL, "--quiet", DIGITS, "--cpu", "x86-64-v4", "--records", records, "-o", tmp / "v4")
    check("another row of processors: a warning", told.returncode == 0 and "has nothing for --cpu x86-64-v4" in told.stderr, told.stderr)
    check("and the model's package", files_of(tmp / "v4") == files_of(check.emit(DIGITS, tmp / "v4plain", "--cpu", "x86-64-v4")))


@with_tmp
def shipped(tmp):
    """--records default: what is in tune/records/, of which nothing concerns this network."""
    told = records_said("default", "--json")
    there = {j["function"] for j in json.loads(told.stdout)}
    mine = {r["function"] for path in (ROOT / "tune" / "records").glob("*.jsonl") for r in records_of(path)}
    check("default: the records of the source", told.returncode == 0 and there == mine != set(), told.stderr)
    rows = [path.stem for path in sorted((ROOT / "tune" / "records").glob("*.jsonl"))]
    told = run(TOOL, DIGITS, "--cpu", rows[0], "--records", "default", "-o", tmp / "a")
    check("default: none for this network", told.returncode == 0 and "records   0 of 5 functions as tc-emit itself has them" in told.stdout and not told.stderr, told.stdout + told.stderr)
    check("default: the model's package", files_of(tmp / "a") == files_of(check.emit(DIGITS, tmp / "b", "--cpu", rows[0])))
    told = run(TOOL, DIGITS, "--cpu", "x86-64-v3", "--records", "default", "-o", tmp / "c")
    check("default: nothing for another processor is a warning", told.returncode == 0 and "has nothing for --cpu x86-64-v3" in told.stderr, told.stderr)
    told = run(TOOL, "tune", DIGITS, "--records", "default")
    check("default: tune writes nothing there", told.returncode == 2 and "name a file" in told.stderr, told.stderr)
    check("default: no file of that name", not (ROOT / "default").exists())


def records_said(*words):
    return run(TOOL, "records", *words)


@with_tmp
def kept(tmp):
    """tc-emit records: what is in files, parts of it, several as one, and only what counts."""
    one, two, out = tmp / "one.jsonl", tmp / "two.jsonl", tmp / "out.jsonl"
    tune(one, "--trials", "160", *fake("--wrong", "by 32 columns"))
    tune(two, "--trials", "9", "--tasks", "max_pool", *fake())
    mine, functions = records_of(one), {r["function"] for r in records_of(one)}
    told = records_said(one)
    rows = {m[1]: m[2] for m in re.finditer(r"^  (\w{16})  (.*)$", told.stdout, re.M)}
    check("a row for each function", told.returncode == 0 and set(rows) == functions, told.stdout + told.stderr)
    check("the setting stands above", told.stdout.startswith("--cpu x86-64-v3 --fp fast, 1 thread; none; none\n"), told.stdout)
    listed = {j["function"]: j for j in json.loads(records_said(one, "--json").stdout)}
    wanted = best(mine)
    check("the best are those that are replayed", {f: j["plan"] for f, j in listed.items() if "plan" in j} == {f: r["plan"] for f, r in wanted.items()}, listed)
    check("failures are counted", sum(j["failed"] for j in listed.values()) == sum(r["state"] != "ok" for r in mine) > 0, listed)
    check("functions are defined", all("stage" in j["definition"] or "fn" in j["definition"] for j in listed.values()), listed)
    told = records_said(one, "--tasks", "conv2d", "-o", out)
    check("a part of them", told.returncode == 0 and records_of(out) == [r for r in mine if r["signature"].startswith("conv2d")], told.stdout + told.stderr)
    check("with their definitions only", [d["function"] for d in lines_of(out) if "definition" in d] == sorted({r["function"] for r in records_of(out)}), lines_of(out)[:2])
    for words, count in ((("--cpu", "x86-64-v4"), 0), (("--cpu", "x86-64-v3", "--threads", "1"), len(mine)), (("--threads", "2"), 0), (("--target", "cuda"), 0)):
        records_said(one, *words, "-o", out)
        check(f"those of {' '.join(words)}", len(records_of(out)) == count, out.read_text())
    records_said(one, two, one, "-o", out)
    both = mine + [r for r in records_of(two) if r not in mine]
    check("several as one, nothing twice", records_of(out) == both, (len(both), len(records_of(out))))
    told = records_said("--prune", one, "-o", out)
    check("pruned: two records a function at most", told.returncode == 0 and len(records_of(out)) <= 2 * len(functions) < len(mine), told.stdout)
    gains = {f for f, r in wanted.items() if r["of_model"] < 1}
    told = records_said("--gains", one, "-o", out)
    check("gains: all records of functions that have one", told.returncode == 0 and records_of(out) == [r for f in dict.fromkeys(r["function"] for r in mine) if f in gains for r in mine if r["function"] == f] != mine, told.stdout)
    records_said("--prune", one, "-o", out)
    check("and the same package", files_of(check.emit(DIGITS, tmp / "a", *CPU, "--records", one)) == files_of(check.emit(DIGITS, tmp / "b", *CPU, "--records", out)))
    folder = tmp / "folder"
    folder.mkdir()
    (folder / "b.jsonl").write_text(one.read_text())
    (folder / "a.jsonl").write_text(two.read_text())
    told = run(TOOL, "--quiet", DIGITS, *CPU, "--records", folder, "--depfile", tmp / "d", "-o", tmp / "c")
    check("a folder is its files by name", told.returncode == 0 and files_of(tmp / "c") == files_of(check.emit(DIGITS, tmp / "e", *CPU, "--records", two, "--records", one)), told.stderr)
    check("which are dependencies", all(str(folder / name) in (tmp / "d").read_text() for name in ("a.jsonl", "b.jsonl")))
    lines = one.read_text().splitlines()
    bad = {"torn": lines[1][:40], "another version": lines[1].replace('"tc-emit":1', '"tc-emit":7'), "another function": lines[0].replace('"function":"', '"function":"0', 1),
           "no schedule": re.sub(r'"plan":\[".*?"', lambda m: '"plan":["x() */ int y; /*"', lines[1])}
    (tmp / "bad.jsonl").write_text("\n".join([lines[1], *bad.values()]) + "\n")
    told = records_said(tmp / "bad.jsonl")
    for number, name in enumerate(bad, 2):
        check(f"a line that is {name} is named", f"bad.jsonl:{number}: no record: " in told.stderr, told.stderr)
    told = run(TOOL, "--quiet", DIGITS, *CPU, "--records", tmp / "bad.jsonl", "-o", tmp / "f")
    check("and never trusted", told.returncode == 0 and told.stderr.count("no record: ") == len(bad) and files_of(tmp / "f") == files_of(check.emit(DIGITS, tmp / "g", *CPU)), told.stderr)
    for name, words, code, text in (("no file", [], 2, "no file of records"), ("a file that is not there", [tmp / "none"], 6, "TC0601"), ("two files to tune", None, 2, "one file")):
        told = tune(one, "--records", two) if words is None else records_said(*words)
        check(f"{name} is refused", told.returncode == code and text in told.stderr, (told.returncode, told.stderr))


@with_tmp
def refused(tmp):
    records = tmp / "r.jsonl"
    tune(records, "--trials", "12", "--tasks", "conv2d", *fake())
    good = records_of(records)
    applied = max(best(good).values(), key=lambda r: r["of_model"])
    records.write_text(json.dumps({**applied, "plan": ["contraction()", "tile(rows = 99, columns = 16)"]}) + "\n")
    told = run(TOOL, DIGITS, *CPU, "--records", records, "-o", tmp / "out")
    check("a record that cannot be is a warning", told.returncode == 0 and "warning[TC0607]" in told.stderr and "rows = 99" in told.stderr, told.stderr)
    check("the model decides instead", files_of(tmp / "out") == files_of(check.emit(DIGITS, tmp / "plain", *CPU)))
    records.write_text("no record\n{}\n[1]\n\xff\n" + '{"tc-emit":1,"language":1,"target":"c"}\n')
    told = run(TOOL, DIGITS, *CPU, "--records", records, "-o", tmp / "none")
    check("a file without records is refused", told.returncode == 1 and "TC0608" in told.stderr and not (tmp / "none").exists(), told.stderr)
    for name, words, code, text in (("no file of records", ["tune", DIGITS], 2, "--records"),
                                    ("a task that is not there", ["tune", DIGITS, "--records", tmp / "x", "--tasks", "conv9"], 2, "no task begins with 'conv9'"),
                                    ("--trials 0", ["tune", DIGITS, "--records", tmp / "x", "--trials", "0"], 2, "--trials"),
                                    ("a folder that is not there", ["tune", DIGITS, "--records", tmp / "no" / "x"], 6, "TC0601"),
                                    ("a runner that ends", ["tune", DIGITS, "--records", tmp / "x", "--runner", "true"], 7, "TC0704"),
                                    ("a runner that says anything", ["tune", DIGITS, "--records", tmp / "x", *fake("--say", "hello")], 7, "said 'hello'"),
                                    ("a runner that says no times", ["tune", DIGITS, "--records", tmp / "x", *fake("--say", '{"id": 1, "ns": []}')], 7, "no times")):
        told = run(TOOL, *words)
        check(f"{name} is refused", told.returncode == code and text in told.stderr, (told.returncode, told.stderr))


@with_tmp
def example(tmp):
    """The runner of examples/ builds and times as tc-emit itself does."""
    records = tmp / "r.jsonl"
    runner = shlex.join([sys.executable, str(ROOT / "examples" / "tuning" / "runner.py")])
    told = tune(records, "--trials", "2", "--repeat", "1", "--tasks", "conv2d", "--timeout", "120", "--runner", runner)
    check("the example of a runner measures", told.returncode == 0 and [r["state"] for r in records_of(records)][:2] == ["ok", "ok"], told.stderr)


def worker_of(address, tmp, name):
    """A worker of a cluster: a process of its own, with one thread."""
    words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--name", name, "--local-directory", str(tmp / name), "--no-dashboard", "--nanny"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


@with_tmp
def cluster(tmp):
    """The runner over a cluster of two workers, one of which is killed while it measures."""
    import distributed  # generated_tests/python/cluster.txt
    records = tmp / "r.jsonl"
    runner = shlex.join([sys.executable, str(ROOT / "examples" / "tuning" / "runner.py"), "--scheduler"])
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, processes=True, silence_logs=50) as local:
        address = local.scheduler_address
        workers = [worker_of(address, tmp, f"w{k}") for k in range(2)]
        try:
            with distributed.Client(address) as client:
                client.wait_for_workers(2, timeout=60)
                tuning = subprocess.Popen([str(w) for w in (TOOL, "tune", DIGITS, *CPU, "--records", records, "--trials", "8", "--repeat", "1", "--jobs", "2", "--tasks", "conv2d",
                                                            "--timeout", "120", "--runner", f"{runner} {address}")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                deadline = time.monotonic() + 120
                while (not records.exists() or len(records_of(records)) < 3) and time.monotonic() < deadline and tuning.poll() is None:
                    time.sleep(0.05)
                os.killpg(workers[0].pid, signal.SIGKILL)
                told = tuning.communicate(timeout=300)
        finally:
            for w in workers:
                if w.poll() is None:
                    os.killpg(w.pid, signal.SIGKILL)
                w.wait()
    got = records_of(records)
    check("a cluster measures, though a worker vanishes", tuning.returncode == 0 and len({plan(r) for r in got}) >= 8, told)
    check("and all is right", all(r["state"] == "ok" for r in got), [(r["state"], r.get("reason")) for r in got])


@with_tmp
def listed(tmp):
    told = run(TOOL, "tune", DIGITS, *CPU, "--tasks", "list", "--json")
    tasks = json.loads(told.stdout) if told.returncode == 0 else []
    names = [t["signature"] for t in tasks]
    check("tasks are listed as JSON", "conv2d_bias_relu_10x10_8x8x16_k3" in names and all(t["calls"] == 1 for t in tasks), told.stdout)
    check("with what can be chosen", {t["signature"]: t["choice"] for t in tasks}.get("conv2d_bias_relu_10x10_8x8x16_k3") is True, tasks)
    hashes = written_schedules(tmp)
    check("named as --write-schedules names them", {t["function"] for t in tasks} == set(hashes), hashes)


check.run([measured, replayed, sketched, gone_on, never_best, merged, kept, shipped, refused, on_cuda, emulated, sketched_on_cuda, example, cluster, listed], quick=3)
sys.exit(check.summary())
