"""Tuning for CUDA, whose candidates run on a GPU, on another machine, or emulated."""
import json
import pathlib
import re

from common import BILINEAR, CPU, DIGITS, ROOT, TOOL, best, check, fake, files_of, plan, records_of, run, with_tmp

CUDA = ["--target", "cuda", "--arch", "sm_80"]


@with_tmp
def on_cuda(tmp):
    """Templates of CUDA have a choice, too; who has no GPU is told, and records are for their target only."""
    records, out, again = tmp / "r.jsonl", tmp / "out", tmp / "again"
    told = run(TOOL, "tune", DIGITS, *CUDA, "--tasks", "list", "--json")
    choice = {t["signature"].split("_")[0]: t["choice"] for t in json.loads(told.stdout or "[]")}
    check("every kernel has a choice", choice and all(choice.values()), choice)
    if not pathlib.Path("/dev/nvidia0").exists():
        told = run(TOOL, "tune", DIGITS, *CUDA, "--records", records)
        check("no GPU: it says so", told.returncode == 7 and "TC0705" in told.stderr and "no GPU with nvcc on this machine" in told.stderr and "--runner" in told.stderr, told.stderr)
    told = run(TOOL, "tune", DIGITS, *CUDA, "--records", records, "--trials", "60", "--tasks", "conv2d", *fake())
    check("another machine measures", told.returncode == 0 and "--target cuda --arch sm_80 --records" in told.stdout, told.stdout + told.stderr)
    got = records_of(records)
    check("records say the target", got and all(r["target"] == "cuda" and r["cpu"] == "sm_80" for r in got), got[:1])
    conv = next(iter(best(got).values()), {"plan": []})
    check("the search finds the best tile", re.search(r"rows = 64, columns = 32\b", plan(conv)), conv)
    package = files_of(check.emit(DIGITS, out, *CUDA, "--records", records))
    run(TOOL, "--quiet", DIGITS, *CUDA, "--records", records, "--write-schedules", tmp / "w.tc")
    check("the package of its schedules as text", package == files_of(check.emit(DIGITS, again, *CUDA, "--schedules", tmp / "w.tc")))
    check("not the model's", package != files_of(check.emit(DIGITS, tmp / "plain", *CUDA)))
    told = run(TOOL, "--quiet", DIGITS, *CPU, "--records", records, "-o", tmp / "c")
    check("they are not for C", told.returncode == 0 and "its records are for --arch sm_80" in told.stderr, told.stderr)


@with_tmp
def emulated(tmp):
    """Without a GPU a candidate runs on the CPU, is checked, and timed by the events of the emulation."""
    records = tmp / "r.jsonl"
    told = run(TOOL, "tune", DIGITS, *CUDA, "--records", records, "--runner", "emulated", "--trials", "2", "--repeat", "1", "--tasks", "max_pool", "--timeout", "300")
    got = records_of(records)
    check("candidates are right", told.returncode == 0 and [r["state"] for r in got[:2]] == ["ok", "ok"], (got, told.stderr))
    check("it is no GPU, and says so", "say nothing about a GPU" in told.stderr and all(r["processor"].startswith("cuda_on_cpu") for r in got), told.stderr)


@with_tmp
def sketched_on_cuda(tmp):
    """Blocks, threads and sums that these share: right, without races, kept as steps, replayed to the same bytes."""
    model, records, ops = tmp / "bilinear.onnxtxt", tmp / "r.jsonl", ["--ops", ROOT / "bench" / "odd.tc"]
    model.write_text(BILINEAR)
    told = run(TOOL, "tune", model, *CUDA, *ops, "--records", records, "--runner", "emulated", "--trials", "6", "--repeat", "1", "--timeout", "300")
    got = [r for r in records_of(records) if "sketch" in r]
    check("sketches are proposed, and right", told.returncode == 0 and got and all(r["state"] == "ok" for r in got), (got, told.stderr))
    packages = []
    for name in ("plan", "sketch"):
        (tmp / f"{name}.tc").write_text("\n  ".join(['schedule "*"', *got[0][name]]) + "\n")
        packages.append(files_of(check.emit(model, tmp / name, *CUDA, *ops, "--schedules", tmp / f"{name}.tc")))
    (tmp / "best.jsonl").write_text("".join(json.dumps({**r, "confirmed": r["plan"] == got[0]["plan"], "of_model": 0.5}) + "\n" for r in got))
    packages.append(files_of(check.emit(model, tmp / "records", *CUDA, *ops, "--records", tmp / "best.jsonl")))
    check("steps, numbers and records give the same package", packages[0] == packages[1] == packages[2])
    built = run("cmake", "-S", tmp / "plan", "-B", tmp / "checked", "-DTC_CUDA_ON_CPU=ON", "-DTC_CUDA_CHECK=ON")
    built = run("cmake", "--build", tmp / "checked") if built.returncode == 0 else built
    ran = run(tmp / "checked" / "bilinear") if built.returncode == 0 else built
    check("every access is checked", ran.returncode == 0, (built.stderr, ran.stdout, ran.stderr))
