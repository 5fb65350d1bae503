"""tc-emit report: what the page holds, and, in a headless Chromium where there is one, how it looks and answers. Every check prints one
line; the last line counts them. --pictures DIR keeps the pictures."""
import argparse
import json
import pathlib
import platform
import re
import struct
import sys
import tempfile
import time
import zlib

import onnx.parser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import browser  # noqa: E402
from checks import ROOT, TOOL, Checks, run  # noqa: E402

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror=window.hurt=1>&lt;\u2028"
check = Checks()


def page_of(what, out, *flags):
    result = run(TOOL, "report", "--quiet", *flags, what, "-o", out)
    check(f"report of {pathlib.Path(what).name} {' '.join(map(str, flags))}", result.returncode == 0 and out.is_file(), result)
    return out


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


def hostile_model(path):
    """Two nodes, two branches and a loop, whose names are made to break a page."""
    text = HEADER + """g (float[4] x, bool c) => (float[4] y) {
        a = Softmax(x)
        b = If(c) <then_branch = t () => (float[4] p) { p = Tanh(a) }, else_branch = e () => (float[4] q) { q = Neg(a) }>
        n = Constant<value = int64 {3}>()
        go = Constant<value = bool {1}>()
        y = Loop(n, go, b) <body = l (int64 i, bool more, float[4] s) => (bool on, float[4] r) { on = Identity(more) r = Exp(s) }>
    }"""
    model = onnx.parser.parse_model(text)
    for k, node in enumerate(model.graph.node):
        node.name = f"{HOSTILE}{k}"
    path.write_bytes(model.SerializeToString())
    return path


def deep_model(path, nodes):
    """A chain with ways around it: as many kernels as the cut of long groups leaves, and as many nodes as asked for."""
    lines, before = [], ["v0"]
    for k in range(nodes):
        op = ("Softmax", "Relu", "Neg", "Tanh")[k % 4]
        if k % 10 == 9:
            lines.append(f"v{k + 1} = Add({before[-1]}, {before[-min(len(before), 30)]})")
        else:
            lines.append(f"v{k + 1} = {op}({before[-1]})")
        before.append(f"v{k + 1}")
    path.write_text(HEADER + f"deep (float[64] v0) => (float[64] v{nodes}) {{ {' '.join(lines)} }}")
    return path


def what_a_page_holds(tmp):
    model, package = tmp / "digits.html", tmp / "package.html"
    page_of(DIGITS, model)
    check.emit(DIGITS, tmp / "out")
    page_of(tmp / "out", package)
    text, data, manifest = model.read_text(), data_of(model), json.loads((tmp / "out" / "manifest.json").read_text())
    check("kernels, steps and weights are those of the manifest", [k["name"] for k in data["kernels"]] == [k["name"] for k in manifest["kernels"]]
          and len(data["steps"]) == len(manifest["steps"]) and data["macs"] == manifest["macs"] and [w["name"] for w in data["weights"]] == [w["name"] for w in manifest["weights"]])
    check("nodes of the model", [n["op"] for n in data["nodes"]] == ["Conv", "Relu", "MaxPool", "Flatten", "Gemm", "Softmax"] and data["nodes"][1]["inputs"] == [{"name": "conv", "node": 0, "constant": False}], data["nodes"])
    check("types of the model's tensors", [n["outputs"][0]["type"] for n in data["nodes"]][:2] == ["f32[1,16,8,8]"] * 2, data["nodes"])
    check("reasons of the edges between kernels", "reshape stands between" in data["reasons"].get("at.pool > at.logits", "") and "window" in data["reasons"].get("at.relu > at.pool", ""), data["reasons"])
    passes = {p["name"]: p for p in data["passes"]}
    check("passes", passes["fuse_ops"]["changed"] and passes["convert_layout"]["ops"] and not passes["hoist_from_loops"]["changed"], list(passes))
    check("text of kernels", all(f"digits_{k['name']}(" in k["text"] and k["text"].startswith("/*") for k in data["kernels"]))
    data = data_of(package)
    check("a package has no nodes and no passes", "nodes" not in data and "passes" not in data and len(data["steps"]) == 5)
    again = tmp / "again.html"
    page_of(DIGITS, again)
    check("the same page again", again.read_text() == text)
    check("nothing comes from elsewhere", not re.search(r"(src|href)\s*=|@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", text.split('id="data"')[0] + text.split("</script>", 1)[1]))
    page_of(tmp / "out", again, "--diagnostics", "json")
    for words, code, told in ((["report", DIGITS], 2, "add -o report.html"), (["report", tmp, "-o", again], 6, "no manifest.json"),
                              (["report", "--cpu", "generic", tmp / "out", "-o", again], 2, "--cpu is for models"),
                              (["report", tmp / "none.onnx", "-o", again], 6, "cannot open"), (["report", DIGITS, "-o", tmp / "no" / "x.html"], 6, "cannot write")):
        answer = run(TOOL, *words)
        check(" ".join(str(w) for w in words)[-60:], answer.returncode == code and told in answer.stderr, answer)
    page_of(DIGITS, tmp / "one.html", "--single-file", "--target", "c")
    check("text of kernels in one file", all(f"digits_{k['name']}(" in k["text"] for k in data_of(tmp / "one.html")["kernels"]))
    page_of(DIGITS, tmp / "cuda.html", "--target", "cuda", "--arch", "sm_90")
    check("kernels of CUDA have floors", all(k["floor_us"] > 0 for k in data_of(tmp / "cuda.html")["kernels"] if k["macs"] > 0))
    hostile = page_of(hostile_model(tmp / "hostile.onnx"), tmp / "hostile.html")
    check("no name ends the script", hostile.read_text().count("</script>") == 2 and HOSTILE.replace("\u2028", "") in data_of(hostile)["nodes"][0]["name"].replace("\u2028", ""))


def measured(tmp):
    """--times: profile and trace as the program writes them, of a package and of a model, and files that are something else."""
    native = ("--cpu", "native")
    check.emit(DIGITS, tmp / "timed", *native)
    made = run("make", "-s", "-C", tmp / "timed", "digits_profile")
    check("make digits_profile", made.returncode == 0, made.stderr)
    told = run(tmp / "timed" / "digits_profile", "--profile", "--json", "--bench", "0.1", "--trace", tmp / "trace.json").stdout
    (tmp / "profile.json").write_text("a line of something else\n" + told)
    profile = {k["kernel"]: k for k in json.loads(told)["kernels"]}
    page_of(tmp / "timed", tmp / "timed.html", "--times", tmp / "profile.json")
    data = data_of(tmp / "timed.html")
    check("times of a profile", all(k["time_us"] == profile[k["name"]]["total_us"] and k["timed_calls"] == 1 and k.get("floor_share") == profile[k["name"]].get("floor_share") for k in data["kernels"])
          and data["times"]["threads"] >= 1 and data["times"]["run_us"] > 0, data["times"])
    page_of(DIGITS, tmp / "traced.html", *native, "--times", tmp / "trace.json")
    data = data_of(tmp / "traced.html")
    steps = {e["name"]: e["dur"] for e in json.loads((tmp / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"}
    check("times of a trace, for a model", all(k["time_us"] == steps[k["name"]] for k in data["kernels"]) and data["times"]["runs"] == 1, data["times"])
    (tmp / "broken.json").write_text(told[:-30])
    (tmp / "negative.json").write_text(told.replace('"total_us":', '"total_us":-'))
    # A processor with other lanes than this machine's: its kernels have other names.
    another = "x86-64-v4" if platform.machine() == "aarch64" else "aarch64"
    for options, code, words in ((("--cpu", another, "--times", tmp / "trace.json"), "TC0609", "has times of other kernels"), ((*native, "--times", tmp / "broken.json"), "TC0609", "is no JSON"),
                                 ((*native, "--times", tmp / "negative.json"), "TC0609", "that is no amount"), ((*native, "--times", tmp / "timed" / "manifest.json"), "TC0609", "is no profile and no trace"),
                                 ((*native, "--times", tmp / "none.json"), "TC0601", "cannot read")):
        answer = run(TOOL, "report", *options, DIGITS, "-o", tmp / "no.html")
        check(f"--times {options[-1].name}: {words}", answer.returncode == 6 and code in answer.stderr and words in answer.stderr and not (tmp / "no.html").exists(), answer)


def colours(png):
    """How many different colours a picture has, of every 16th row."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    size, at, data = {2: 3, 6: 4}[kind], 8, b""
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        if name == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += 12 + length
    rows, stride = zlib.decompress(data), width * size + 1
    return len({rows[r + 1 + c * size:r + 1 + (c + 1) * size] for r in range(0, stride * height, stride * 16) for c in range(width)})


class Viewer:
    """Looks at pages, and keeps pictures if asked."""

    def __init__(self, page, pictures):
        self.page, self.pictures = page, pictures

    def look(self, name):
        picture = self.page.picture(self.pictures / f"{name}.png" if self.pictures else None)
        check(f"picture {name} is not empty", colours(picture) > 12, colours(picture))


# Pairs of tensors that share bytes while both live; a result may take over an operand's place in the step that reads it.
CLASHES = """new MemoryPanel(JSON.parse(document.getElementById("data").textContent)).tensors.flatMap((a, i, all) => all.slice(0, i).filter((b) => {
  const steps = Math.min(a.last, b.last) - Math.max(a.first, b.first) + 1, bytes = Math.min(a.at + a.bytes, b.at + b.bytes) - Math.max(a.at, b.at);
  return steps > 0 && bytes > 0 && !(steps === 1 && a.at === b.at);
}).map((b) => a.name + " and " + b.name))"""


def small_model(v, tmp):
    page = v.page
    page.open(tmp / "digits.html")
    ask = page.ask
    check("nodes of the graph", ask("document.querySelectorAll('.node').length") == 7, ask("document.querySelectorAll('.node').length"))
    boxes = ask("[...document.querySelectorAll('.node .body')].map((n) => { const r = n.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })")
    overlap = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    check("no two boxes overlap", not overlap, overlap[:1])
    v.look("graph")
    page.click("#node-3")
    check("a click shows the node", ask("document.querySelector('.details h2').textContent") == "max_pool" and ask("document.querySelector('.why').textContent").startswith("Not fused: a window reads"), ask("document.querySelector('.details').textContent"))
    ask("document.querySelector('svg.canvas').focus()")
    page.press("ArrowDown")
    check("arrow keys walk along edges", ask("document.querySelector('.chosen').id") == "node-4", ask("document.querySelector('.chosen').id"))
    v.look("node")
    page.click("[data-view=nodes]")
    check("nodes of the model", ask("document.querySelectorAll('.node').length") == 6 and ask("document.querySelectorAll('.edge.fused').length") >= 1)
    page.click("#node-1")
    check("a node names its kernel", "step 1: conv2d_bias_relu" in ask("document.querySelector('.details').textContent"))
    v.look("nodes")
    page.click(".details .quiet")
    check("and leads to it", ask("document.querySelector('.chosen .title').textContent") == "conv2d_bias_relu", ask("document.querySelector('.details').textContent"))
    page.click(".details .quiet")
    check("a kernel leads to its source", ask("getComputedStyle(document.querySelector('#panel-kernels')).display") == "block" and "digits_conv2d_bias_relu" in ask("document.querySelector('pre').textContent"))
    v.look("source")
    page.click("th.n:nth-child(3) button")
    check("tables sort", "conv2d_bias_relu_10x10_8x8x16_k3_" in ask("document.querySelector('.kernels tbody .name').textContent") and ask("document.querySelector('th.n:nth-child(3)').getAttribute('aria-sort')") == "descending")
    page.click("#tab-memory")
    ask("document.querySelector('.plan').focus()")
    page.press("ArrowRight")
    check("memory plan", ask("document.querySelectorAll('.tensor').length") == 4 and "alive from step 0 to 1" in ask("document.querySelector('.facts').textContent"), ask("document.querySelector('.facts').textContent"))
    v.look("memory")
    page.click("#tab-passes")
    page.click(".passes li:not(.idle) summary")
    v.look("passes")
    page.press("Tab")
    ask("document.querySelector('#tab-passes').focus()")
    page.press("ArrowRight")
    check("arrow keys change tabs", ask("document.querySelector('[aria-selected=true]').id") == "tab-weights")
    page.click(".weights summary")
    v.look("weights")
    page.click("#tab-graph")
    page.click("input[type=search]")
    page.type("softmax")
    page.press("Enter")
    check("search", ask("document.querySelectorAll('.hit').length") == 1 and ask("document.querySelector('.chosen .title').textContent") == "softmax")
    light = ask("getComputedStyle(document.documentElement).backgroundColor")
    page.click("#theme")
    page.click("#theme")
    check("a dark theme", ask("getComputedStyle(document.documentElement).backgroundColor") != light and ask("document.querySelector('#theme').textContent") == "Theme: dark")
    v.look("dark")
    page.click("#theme")
    page.dark(True)
    check("and that of the system", ask("getComputedStyle(document.documentElement).backgroundColor") != light)
    page.dark(False)
    pdf = page.pdf(v.pictures / "print.pdf" if v.pictures else None)
    check("a print has the parts on pages of their own", len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 5, len(re.findall(rb"/Type\s*/Page\b", pdf)))


def other_pages(v, tmp):
    page = v.page
    page.open(tmp / "package.html")
    check("a package: graph, kernels, memory, weights", page.ask("[...document.querySelectorAll('[role=tab]')].map((t) => t.textContent)") == ["Graph", "Kernels", "Memory", "Weights"])
    page.open(tmp / "hostile.html")
    clashes = page.ask(CLASHES)
    check("no two tensors that live at once share memory, with a loop", clashes == [], clashes)
    for tab in ("graph", "kernels", "memory", "passes", "weights"):
        page.click(f"#tab-{tab}")
    page.ask("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    page.click("#tab-graph")
    page.click("[data-view=nodes]")
    page.click("#node-0")
    check("no name of a model becomes markup", page.ask("window.hurt") is None and "</script>" in page.ask("document.querySelector('.details').textContent"))
    page.click("[data-view=kernels]")
    v.look("control flow")
    page.open(tmp / "cuda.html")
    v.look("cuda")
    page.open(tmp / "timed.html")
    check("a card with the time of a run", "Time" in page.ask("document.querySelector('#cards').textContent"))
    page.click("#tab-kernels")
    heads = page.ask("[...document.querySelectorAll('.kernels th button')].map((b) => b.textContent.replace(/[^A-Za-z ]/g, '').trim())")
    check("columns of floors and times", heads[5:9] == ["Floor", "Time", "Share of time", "Floor of time"], heads)
    page.click("th.n:nth-child(7) button")
    slowest = max(data_of(tmp / "timed.html")["kernels"], key=lambda k: k["time_us"])["name"]
    check("sorted by time", page.ask("document.querySelector('.kernels tbody .name').textContent").endswith(slowest))
    v.look("times")
    page.click("#tab-graph")
    page.click("#node-2")
    check("the time of a call beside its node", "Time of a call" in page.ask("document.querySelector('.details').textContent"), page.ask("document.querySelector('.details').textContent"))
    page.size(420, 800)
    page.open(tmp / "digits.html")
    check("a narrow page does not scroll sideways", page.ask("document.documentElement.scrollWidth") <= 420, page.ask("document.documentElement.scrollWidth"))
    v.look("narrow")
    page.size(1440, 900)


def thousand_nodes(v, tmp):
    page_of(deep_model(tmp / "deep.onnxtxt", 1000), tmp / "deep.html")
    begin = time.monotonic()
    v.page.open(tmp / "deep.html")
    v.page.click("[data-view=nodes]")
    seconds = time.monotonic() - begin
    check("a thousand nodes are drawn in time", v.page.ask("document.querySelectorAll('.node').length") == 1000 and seconds < 15, seconds)
    print(f"note  a thousand nodes took {seconds:.1f} s")
    v.look("thousand nodes")
    v.page.click("[aria-label='Show everything']")
    v.look("thousand nodes at once")
    v.page.click("#tab-memory")
    v.look("memory of a thousand nodes")
    check("nor those of a thousand nodes", v.page.ask(CLASHES) == [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=pathlib.Path)
    pictures = parser.parse_args().pictures
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        what_a_page_holds(tmp)
        measured(tmp)
        chromium = browser.find()
        if not chromium:
            print("note  the pages were not opened: there is no Chromium here (apt-get install chromium-headless-shell)")
            return check.summary()
        with browser.Page(chromium) as page:
            for part in (small_model, other_pages, thousand_nodes):
                part(Viewer(page, pictures), tmp)
            check("no complaint on the console, and nothing asked of the network", not page.problems, page.problems)
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
