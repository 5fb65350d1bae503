#!/usr/bin/env python3
"""Every version of every operator in ONNX's schema history: small models of it, at the operator sets in which it was in
force, are emitted as C, compiled, run and compared.

usage: run.py [--tool build/tc-emit] [--only REGEX] [--share K/N] [--jobs N] [--report FILE] [--table FILE] [--keep DIR] [--verbose]
              (run it with `scripts/python_env base`)

A model's numbers come from ONNX Runtime; where that has no kernel for it, from a definition written out in NumPy, or else
from the reference evaluator of the `onnx` package. A pair (operator, version) is `right` if all its models are, `refused` if
tc-emit said why it takes one of them not, and otherwise `wrong`. --report writes the table of docs/operator_history.md; with
--table FILE, an earlier one, a pair that has become worse is a failure. The last line reads 'N passed, N failed, N refused'.
"""
import argparse
import collections
import dataclasses
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parent.parent.parent
for folder in ("python", "differential"):
    sys.path.insert(0, str(ROOT / "generated_tests" / folder))
from agreement import difference  # noqa: E402
from answers import session as session_of  # noqa: E402
from toolchain import REFUSED, Failed, Toolchain, call, first_line, refusal  # noqa: E402

import batches  # noqa: E402
import history  # noqa: E402
import report  # noqa: E402
import shares  # noqa: E402

for recipes in ("elementwise", "movement", "reduction", "window", "other", "ml"):
    __import__(f"{recipes}_recipes")

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
OTHER_FLOATS = (onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


@dataclasses.dataclass
class Result:
    case: history.Case
    judge: str = ""
    status: str = ""  # right, refused or wrong
    reason: str = ""


def run_onnx_runtime(case):
    """ONNX Runtime's outputs; raises its exceptions where it does not take the model."""
    return session_of(case.model.SerializeToString()).run(list(case.outputs), case.inputs)


def run_reference(case):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ReferenceEvaluator(case.model).run(list(case.outputs), case.inputs)


def as_twin(case):
    """The case in the version before, of which only the types differ."""
    if not case.twin:
        raise Failed("there is none")
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    model.opset_import[0].version = case.twin
    return run_onnx_runtime(dataclasses.replace(case, model=model))


def as_singles(case):
    """The case in single precision: its numbers are exact there."""
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    for value in model.graph.input:
        if value.type.tensor_type.elem_type in OTHER_FLOATS:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    for tensor in model.graph.initializer:
        if tensor.data_type in OTHER_FLOATS:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    kinds = [value.dtype for value in case.inputs.values() if helper.np_dtype_to_tensor_dtype(value.dtype) in OTHER_FLOATS]
    inputs = {name: value.astype(np.float32) if value.dtype in kinds else value for name, value in case.inputs.items()}
    if not kinds:
        raise Failed("it is in single precision")
    single = dataclasses.replace(case, model=model, inputs=inputs)
    try:
        outputs = run_onnx_runtime(single)
    except Exception:
        outputs = as_twin(single)
    domain, op, version = case.pair
    schema = onnx.defs.get_schema(op, version, domain)  # most operators of ai.onnx.ml give floats, whatever they take
    kind = kinds[0] if not domain or schema.outputs[0].type_str == schema.inputs[0].type_str else np.float32
    return [value.astype(kind) if value.dtype == np.float32 else value for value in outputs]


def judge(case):
    """(who says so, outputs)."""
    judges = {"ONNX Runtime": run_onnx_runtime, "definition": lambda case: case.expect(), "ONNX Runtime in single precision": as_singles,
              "ONNX Runtime in the version before": as_twin, "reference": run_reference}
    if case.decided:
        del judges["ONNX Runtime"]
    for name, run in judges.items():
        try:
            with np.errstate(all="ignore"):
                values = [value if isinstance(value, list) else np.asarray(value) for value in run(case)]
                return name, [value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind in "UT" else value for value in values]
        except Exception as error:  # whatever the reason is, it is not the judge of this one
            told = f"nothing judges it: {type(error).__name__}: {first_line(str(error))}"
    return "", told


def declare(case, outputs):
    """The outputs' types in the model, as exporters write them."""
    for value, array in zip(case.model.graph.output, outputs):
        shape = [None] * array.ndim if case.counted else array.shape
        value.CopyFrom(helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))


def save(stem, value):
    """STEM.pb: takes strings and the types that NumPy's files lack."""
    stem.with_suffix(".pb").write_bytes(numpy_helper.from_array(value).SerializeToString())


def load(stem):
    stored = stem.with_suffix(".pb")
    return numpy_helper.to_array(onnx.TensorProto.FromString(stored.read_bytes())) if stored.exists() else np.load(stem.with_suffix(".npy"))


def differs(one, other, bar):
    """What difference() says, with NaN equal to NaN, and with the precision of the narrow types."""
    if one.shape != other.shape or one.dtype != other.dtype or other.dtype.itemsize > 8 or helper.np_dtype_to_tensor_dtype(other.dtype) not in FLOATS:
        return difference(one, other, bar)
    if other.dtype.itemsize == 2:
        bar = max(bar, 4e-3 if other.dtype == np.float16 else 3e-2)
    one, other = one.astype(np.float64), other.astype(np.float64)
    if (np.isnan(one) != np.isnan(other)).any():
        return "there are NaNs in other places"
    return difference(np.nan_to_num(one, nan=0, posinf=np.inf, neginf=-np.inf), np.nan_to_num(other, nan=0, posinf=np.inf, neginf=-np.inf), bar)


class Batch:
    """Some cases that become one program."""

    def __init__(self, cases, tools, options, folder):
        self.results, self.tools, self.options, self.folder = [Result(case) for case in cases], tools, options, folder
        self.expected, self.seconds = {}, collections.Counter()

    def run(self):
        for k, result in enumerate(self.results):
            self.prepare(k, result)
        emitted = [k for k, result in enumerate(self.results) if not result.status]
        programs = batches.link({f"m{k}": self.folder / f"m{k}" / "package" for k in emitted}, self.tools, self.folder, self.seconds) if emitted else {}
        for k in emitted:
            self.compare(k, self.results[k], programs[f"m{k}"])
        return self.results

    def prepare(self, k, result):
        """Asks the judge, and emits a package."""
        case, work = result.case, self.folder / f"m{k}"
        result.judge, outputs = judge(case)
        if not result.judge:
            result.status, result.reason = "unjudged", outputs
            return
        work.mkdir()
        self.expected[k] = outputs
        if all(isinstance(value, np.ndarray) for value in outputs):
            declare(case, outputs)
        onnx.save(case.model, work / "model.onnx")
        try:
            emitted = call("emit", [self.options.tool, "--quiet", "--single-file", work / "model.onnx", "-o", work / "package", "--name", f"m{k}"], self.seconds)
            if emitted.returncode:
                result.status, result.reason = ("refused", refusal(emitted.stdout)) if emitted.returncode in REFUSED else \
                    ("wrong", f"tc-emit ended with {emitted.returncode}: {first_line(emitted.stdout)}")
            if re.search(r"\.(h|cc|cpp):\d+|[Aa]ssert|onnx::|/[a-z]+/\S+/onnx", emitted.stdout):
                result.status, result.reason = "wrong", "the message has an assertion or a path: " + first_line(emitted.stdout)
        except Failed as failure:
            result.status, result.reason = "wrong", str(failure)

    def compare(self, k, result, words):
        work, case = self.folder / f"m{k}", result.case
        for index, value in enumerate(case.inputs.values()):
            save(work / f"input_{index}", value)
        try:
            if isinstance(words, Failed):
                raise words
            ran = call("run", [*words, "--inputs", work, "--outputs", work], self.seconds)
            if ran.returncode:
                raise Failed(f"the program ended with {ran.returncode}: {first_line(ran.stdout, 'ERROR|error')}")
            actual = [load(work / f"output_{index}") for index in range(len(case.outputs))]
            expected = self.expected[k]
            if isinstance(expected[0], list):  # of maps, which become a row of a table each
                expected = [np.array([list(row.values()) for row in expected[0]], np.float32)]
            if case.check:
                told = case.check(actual)
                if told:
                    raise Failed(told)
            for name, one, other in zip(case.outputs, actual, expected):
                told = differs(one, other, case.bar) if not case.check else "" if (one.shape, one.dtype) == (other.shape, other.dtype) else \
                    f"{one.dtype} {list(one.shape)} instead of {other.dtype} {list(other.shape)}"
                if told:
                    raise Failed(f"output {name}: {told}")
            result.status = "right"
        except (Failed, OSError) as failure:
            result.status, result.reason = "wrong", str(failure)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--only", default="", help="cases whose name, like Slice-10/2, this finds")
    shares.add_option(parser, quick=6)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    parser.add_argument("--verbose", action="store_true", help="a line for every model that is not right")
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    return options


def work_on(cases, tools, options, folder):
    folder.mkdir(parents=True)
    batch = Batch(cases, tools, options, folder)
    try:
        for result in batch.run():
            if result.status == "wrong" or options.verbose and result.status != "right":
                print(f"{result.status} {result.case.name} ({result.judge}): {result.reason}", flush=True)
        return batch
    finally:
        if not options.keep:
            shutil.rmtree(folder)


def main():
    options, start = parse_options(), time.monotonic()
    pairs = shares.part(history.all_cases(), options)
    cases = [case for _, some in pairs for case in some if re.search(options.only, case.name)]
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base) as temporary, ThreadPoolExecutor(options.jobs) as pool:
        scratch = options.keep or Path(temporary)
        (Path(temporary) / "tools").mkdir()
        tools = Toolchain(Path(temporary) / "tools", ["-O0", "-ffp-contract=off"])
        groups = [cases[k:k + batches.SIZE] for k in range(0, len(cases), batches.SIZE)]
        done = list(pool.map(lambda job: work_on(job[1], tools, options, scratch / f"b{job[0]}"), enumerate(groups)))
    results = [result for batch in done for result in batch.results]
    rows = report.rows([pair for pair, _ in pairs], results)
    if options.report:
        options.report.write_text(report.markdown(rows))
    worse = report.lost(rows, options.table) if options.table and not options.only else []
    for line in worse:
        print("lost: " + line)
    steps = sum((batch.seconds for batch in done), collections.Counter())
    print(f"{len(results)} models, {time.monotonic() - start:.0f} s; summed over {options.jobs} jobs: " + ", ".join(f"{k} {v:.0f} s" for k, v in steps.items()))
    print(report.summary(rows, worse, whole=not options.only))
    sys.exit(1 if worse or any(row.status in ("wrong", "unjudged") for row in rows) else 0)


if __name__ == "__main__":
    main()
