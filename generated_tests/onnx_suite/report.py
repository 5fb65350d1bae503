"""The table of docs/onnx_suite.md: written from results, and read back as a baseline."""
import collections
import re

ROW = re.compile(r"\| `([^`]+)` \| (passed|refused|wrong) \| (.*) \|$")


def escape(text):
    """Text that stays in one cell of a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def markdown(results, target="c"):
    """The whole document, the same for the same results: no times, no paths."""
    counts = collections.Counter((result.case.folder, result.status) for result in results)
    folders = list(dict.fromkeys(result.case.folder for result in results))
    how = {"c": ["1.22.0 wheel is emitted as C, compiled with `gcc -std=gnu11 -O0 -Wall -Wextra -Werror`, run on its stored inputs"],
           "cuda": ["1.22.0 wheel is emitted as CUDA (`--target cuda`), compiled unchanged with `g++ -std=gnu++17 -O0 -Wall -Wextra",
                    "-Werror` through the package's `cuda_on_cpu/`, run there on its stored inputs"]}[target]
    lines = ["# ONNX's backend suite" + (", as CUDA on a CPU" if target == "cuda" else ""), "",
             "Written by `generated_tests/onnx_suite/run.py --report`; do not edit. Every model of the suite in the `onnx`", *how,
             "and compared with its stored outputs: types and shapes exactly, numbers to rtol 1e-3 and atol 1e-7, as ONNX's own",
             "runner does (1e-6 for DFT, whose stored values carry single precision noise). *Refused* means that tc-emit said why and wrote nothing. Random operators are judged by shape and type,",
             "and each element by whether it is a possible one. Where a value decides how large or how many the outputs are (a trip count,",
             "a split, the size of a grid), it is fixed with `--input-value`, as the row says.", "", "| folder | models | passed | refused | wrong |", "|---|---|---|---|---|"]
    for folder in [*folders, "all"]:
        row = [sum(n for (f, s), n in counts.items() if folder in (f, "all") and status in (s, "all"))
               for status in ("all", "passed", "refused", "wrong")]
        lines.append(f"| {folder} | " + " | ".join(map(str, row)) + " |")
    lines += ["", "| model | result | reason |", "|---|---|---|"]
    lines += [f"| `{result.case.label}` | {result.status} | {escape(result.reason)} |" for result in results]
    return "\n".join(lines) + "\n"


def lost(results, baseline):
    """Labels of the models that passed in the earlier document `baseline` and do not in `results`."""
    rows = (ROW.match(line) for line in baseline.read_text().splitlines())
    passed = {row[1] for row in rows if row and row[2] == "passed"}
    return [result.case.label for result in results if result.case.label in passed and result.status == "refused"]
