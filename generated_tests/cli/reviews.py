"""tc-emit diff: words, data and Markdown of what changed; exit codes; what it says of packages that are none."""
import copy
import json
import re
import shutil

import numpy as np
import onnx
from checks import ROOT, TOOL, run

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
HOSTILE = "squash` <b>@x</b> *_[l](http://e.x)_* #1"


def models(folder):
    """(the digits network, the same with one node more and other weights)"""
    folder.mkdir(exist_ok=True)
    old = onnx.load(DIGITS)
    new = copy.deepcopy(old)
    weight = next(t for t in new.graph.initializer if t.name == "dense.weight")
    values = onnx.numpy_helper.to_array(weight).copy()
    values[0, 0] += 0.5
    weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    position = next(k for k, n in enumerate(new.graph.node) if n.op_type == "Relu")
    result = new.graph.node[position].output[0]
    new.graph.node[position].output[0] = "before"
    new.graph.node.insert(position + 1, onnx.helper.make_node("Tanh", ["before"], [result], name=HOSTILE))
    paths = folder / "old.onnx", folder / "new.onnx"
    for model, path in zip((old, new), paths):
        onnx.save(model, path)
    return paths


def data(*words):
    """(exit code, what --json says)"""
    result = run(TOOL, "diff", "--json", *words)
    return result.returncode, json.loads(result.stdout) if result.stdout else result.stderr


def section(told, title):
    return next((s["changes"] for s in told["sections"] if s["title"] == title), [])


def two_models(tmp, check):
    old, new = models(tmp / "review")
    words = run(TOOL, "diff", old, new)
    check("diff of two models", words.returncode == 4 and not words.stderr and "+ node" in words.stdout and "Tanh" in words.stdout
          and '~ node "pool": input 0 is' in words.stdout and "1 of 2560 elements differs, by 0.5 at most" in words.stdout
          and "+++ b/kernels/" in words.stdout, words)
    same = run(TOOL, "diff", old, old)
    check("a model and itself", same.returncode == 0 and same.stdout.endswith("Nothing differs.\n"), same)
    stat = run(TOOL, "diff", "--stat", old, new).stdout
    check("--stat has no lines", "+++" not in stat and "old.c  +" in stat, stat[-300:])
    code, told = data(old, new)
    check("--json", code == 4 and not told["equal"] and [c["name"] for c in section(told, "model")] == [HOSTILE, "pool"]
          and all("diff" in f for f in told["files"]), told["sections"][:1])
    kernel = next((f for f in told["files"] if f.get("from", "").startswith("kernels/conv2d_bias_relu_10x10")), {})
    check("a kernel under another hash is the same file", kernel and kernel["change"] == "changed" and 0 < kernel["added"] < 40 and f"--- a/{kernel['from']}\n+++ b/{kernel['path']}" in kernel["diff"], kernel)
    text = run(TOOL, "diff", "--markdown", old, new).stdout
    prose = "".join(re.findall(r"^- .*", text.split("<details>")[0], re.M))
    check("--markdown lets no name be markup", not re.search(r"[`*_\[\]@]|://|<b", prose) and "&#64;x" in prose and "<details>" in text, prose[:300])
    check("and its fence holds", len(re.findall(r"^`{3,}", text, re.M)) == 2, text[-200:])
    renamed = onnx.load(old)
    for node in renamed.graph.node:
        node.name = "n_" + node.name
        for names in (node.input, node.output):
            for k, name in enumerate(names):
                if name in {o for n in onnx.load(old).graph.node for o in n.output} - {"probability"}:
                    names[k] = "v_" + name
    onnx.save(renamed, tmp / "review" / "renamed.onnx")
    code, told = data("--stat", old, tmp / "review" / "renamed.onnx")
    check("other names are no other nodes", [c["change"] for c in section(told, "model")] == ["note"], section(told, "model"))


def packages(tmp, check):
    old, new = models(tmp / "review")
    a, b = tmp / "review" / "a", tmp / "review" / "b"
    flags = ["--quiet", "--name", "net", "--fp", "strict", "-O", "1", "--single-file", "--cpu", "x86-64-v3"]
    for model, out in ((old, a), (new, b)):
        check.emit(model, out, *flags)
    same = run(TOOL, "diff", a, old)
    check("a package and its model, by the options of the manifest", same.returncode == 0 and "Nothing differs" in same.stdout, same.stdout[:300])
    check("the same the other way round", run(TOOL, "diff", old, a / "manifest.json").returncode == 0)
    code, told = data("--cpu", "znver4", a, old)
    check("options of the command line come first", code == 4 and [c["detail"] for c in section(told, "options")] == ["x86-64-v3 -> znver4"], told["sections"][:1])
    code, told = data(a, b)
    check("two packages", code == 4 and HOSTILE in [c["name"] for c in section(told, "model")]
          and any(re.search("1 of [0-9]+ elements differs", c["detail"]) for c in section(told, "weights")) and "comes from the model" in told["verdict"], told["sections"])
    code, told = data("--stat", check.emit(old, tmp / "review" / "other", *flags, "--name", "other"), a)
    names = {f["path"]: f.get("from") for f in told["files"]}
    check("a package of another name", code == 4 and names["net.h"] == "other.h" and names["net.c"] == "other.c" and None not in {v for k, v in names.items() if k.startswith("net") and not k.endswith(".bin")}, names)
    code, told = data("--stat", a, new)
    check("a package and another model", code == 4 and "comes from the model" in told["verdict"], told["verdict"])
    edited = tmp / "review" / "edited"
    shutil.copytree(a, edited)
    manifest = (edited / "manifest.json").read_text()
    (edited / "manifest.json").write_text(manifest.replace(f'"version": "{json.loads(manifest)["version"]}"', '"version": "0.0.9"'))
    (edited / "net.c").write_text((edited / "net.c").read_text().replace("acc", "sum"))
    code, told = data(edited, old)
    check("another version of the tool", code == 4 and "comes from the tool, 0.0.9 -> " in told["verdict"]
          and {c.get("cause") for c in section(told, "kernels")} == {"tool"}, told["sections"])
    answer = run(TOOL, "diff", "--cpu", "generic", a, b)
    check("options of models, for two packages", answer.returncode == 2 and "--cpu is for models" in answer.stderr, answer)
    stated = json.loads(manifest) | {"options": ["--fp", "strict", "-o", "/tmp/x"]}
    (edited / "manifest.json").write_text(json.dumps(stated))
    answer = run(TOOL, "diff", edited, old)
    check("options that no manifest states", answer.returncode == 6 and "TC0604" in answer.stderr and "'-o'" in answer.stderr, answer)
    for text in ("{", "[]", '{"generator": 1}', '{"generator": "tc-emit", "format": 1}', json.dumps(stated | {"steps": [{"in": 3}]}),
                 json.dumps(stated | {"weights": [{"name": "w", "dtype": "float", "shape": [-1]}]}), json.dumps(stated | {"kernels": 7})):
        (edited / "manifest.json").write_text(text)
        answer = run(TOOL, "diff", edited, a)
        check(f"a manifest that is {text[-30:]}", answer.returncode == 6 and "TC0604" in answer.stderr, answer)
    answer = run(TOOL, "diff", tmp, a)
    check("a folder that is no package", answer.returncode == 6 and "it has no manifest.json" in answer.stderr, answer)
    answer = run(TOOL, "diff", a)
    check("one operand", answer.returncode == 2 and "diff compares two" in answer.stderr, answer)


def open_sizes(tmp, check):
    """Sizes that the model leaves open are the package's."""
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 4])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y],
                                   [onnx.numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")])
    path = tmp / "open.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    out = check.emit(path, tmp / "review" / "open", "--dim", "n=3")
    same = run(TOOL, "diff", out, path)
    check("open sizes are those of the package", same.returncode == 0, same)
    code, told = data("--dim", "n=5", out, path)
    check("unless they are given", [c["detail"] for c in section(told, "interface")] == ["float[3,4] -> float[5,4]"] * 2, told)


PARTS = (two_models, packages, open_sizes)
