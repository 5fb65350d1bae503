"""What other tools take from tc-emit: lists of files, rules of make, messages as data, completions, the manual page."""
import json
import os
import shutil
import subprocess

import numpy as np
import onnx.helper
import onnx.numpy_helper
from checks import ROOT, TOOL, run

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


def model_with_data(folder):
    """y = x + w, with w in the file "w & b.bin" beside the model."""
    tensor = onnx.numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [tensor])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    folder.mkdir()
    onnx.save_model(model, folder / "a model.onnx", save_as_external_data=True, location="w & b.bin", size_threshold=0)
    return folder / "a model.onnx"


def lists_of_files(tmp, check):
    out = tmp / "listed"
    listed = run(TOOL, "--list-outputs", DIGITS)
    check("--list-outputs without -o", listed.returncode == 0 and not listed.stderr, listed)
    check("and nothing is written", not out.exists() and run(TOOL, "--list-outputs", DIGITS, "-o", out).stdout == listed.stdout and not out.exists())
    run(TOOL, "--quiet", DIGITS, "-o", out)
    there = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
    check("--list-outputs lists what is written", set(listed.stdout.split()) == there, there)
    refused = run(TOOL, "--list-outputs", "--check", DIGITS, "-o", out)
    check("--list-outputs --check", refused.returncode == 2 and "give one of them" in refused.stderr, refused.stderr)


def depfile(tmp, check):
    model, out = model_with_data(tmp / "with data"), tmp / "deps"
    words = [TOOL, "--quiet", model, "-o", out, "--depfile", tmp / "m.d"]
    check("--depfile", run(*words).returncode == 0)
    text = (tmp / "m.d").read_text()
    check("the target is the manifest", text.startswith(f"{out}/manifest.json: \\\n"), text)
    (tmp / "Makefile").write_text(f"{out}/manifest.json:\n\t@echo again\ninclude m.d\n")

    def make():
        return run("make", "-s", "-C", tmp, f"{out}/manifest.json").stdout

    check("make has nothing to do", make() == "", make())
    for name in (model, model.parent / "w & b.bin"):
        os.utime(name, (4e9, 4e9))
        check(f"make sees that {name.name} changed", make() == "again\n", make())
        os.utime(name, (1e9, 1e9))
    os.utime(out / "manifest.json", (1e8, 1e8))
    run(*words)
    check("the manifest is newer than what was read", make() == "", make())
    failed = run(TOOL, "--quiet", model, "-o", tmp / "none", "--depfile", tmp / "no" / "m.d")
    check("a depfile that cannot be written", failed.returncode == 6 and not (tmp / "none").exists(), failed)


def messages_as_data(tmp, check):
    text = tmp / "bad.onnxtxt"
    text.write_text('<ir_version: 8, opset_import: ["" : 17]>\ng (float[4] "x\\n") => (float[4] y) { [the_node] y = Relux ("x\\n") }\n'.replace('"x\\n"', "x"))
    ended = run(TOOL, "--diagnostics", "json", text, "-o", tmp / "bad")
    found = [json.loads(line) for line in ended.stderr.splitlines()]
    check("every line of stderr is JSON", ended.returncode and found and all(set(d) == {"code", "severity", "exit_code", "file", "node", "op", "output", "value", "input", "message", "notes"} for d in found), ended.stderr)
    check("it names node and operator", (found[0]["node"], found[0]["op"], found[0]["exit_code"]) == ("the_node", "Relux", ended.returncode), found)
    plain = run(TOOL, text, "-o", tmp / "bad").stderr
    check("code and message are those of the text", found[0]["code"] in plain and found[0]["message"] in plain, plain)
    for words in (["--diagnostics=json", "--frob"], ["--diagnostics", "json", "--quiet", DIGITS], ["--diagnostics", "json", tmp / "none.onnx", "-o", tmp / "bad"]):
        ended = run(TOOL, *words)
        check(f"JSON of {words[1]}", json.loads(ended.stderr)["exit_code"] == ended.returncode, ended.stderr)


def bash_offers(words):
    """What bash offers for the last of these words."""
    script = ('source <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _tc_emit; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    result = run("bash", "-c", script, "bash", TOOL, *words)
    return result.stdout.split() if not result.stderr else [result.stderr]


def completions(tmp, check):
    check("bash: commands", bash_offers(["tc-emit", "ve"]) == ["verify"], bash_offers(["tc-emit", "ve"]))
    check("bash: options of a command", "--seconds" in bash_offers(["tc-emit", "bench", "--"]) and "--seconds" not in bash_offers(["tc-emit", "check", "--"]))
    for words in (["tc-emit", "--cpu", "znver"], ["tc-emit", "--cpu", "=", "znver"]):
        check("bash: values", bash_offers(words) == ["znver4", "znver5"], bash_offers(words))
    check("bash: shells", bash_offers(["tc-emit", "completion", "z"]) == ["zsh"])
    flags = {word for word in run(TOOL, "--help").stdout.split("options:")[1].split() if word.startswith("--")}
    for shell in ("bash", "zsh", "fish"):
        text = run(TOOL, "completion", shell).stdout
        missing = [f for f in flags if f.strip(",;:.)") not in text and f"-l {f[2:]}" not in text]
        check(f"{shell}: every option", not missing, missing)
        if shutil.which(shell):
            parsed = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True)
            check(f"{shell} reads it", parsed.returncode == 0, parsed.stderr)
    page = run(TOOL, "man").stdout.replace("\\-", "-")
    missing = [f for f in flags if f not in page]
    check("the manual page has every option", page.startswith(".TH TC-EMIT 1") and not missing, missing)
    refused = run(TOOL, "completion", "csh")
    check("completion of another shell", refused.returncode == 2 and "bash|zsh|fish" in refused.stderr, refused)


PARTS = (lists_of_files, depfile, messages_as_data, completions)
