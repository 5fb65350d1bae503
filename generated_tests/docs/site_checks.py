"""The documentation's site, built by MkDocs where every warning is an error (links and their anchors among them), asks nothing of the network;
and lists that are to be complete are."""
import re
import shutil

import tvm_names
from checks import ROOT, TOOL, last_line, run

TAGS = r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=\"((?:https?:)?//[^\"]*)\""


def asked_of_the_network(site):
    """What pages and style sheets would load from elsewhere."""
    found = []
    for page in site.rglob("*.html"):
        text = page.read_text()
        found += [f"{page.name}: {url}" for url in re.findall(TAGS, text)]
    for sheet in site.rglob("*.css"):
        found += [f"{sheet.name}: {url}" for url in re.findall(r"(?:@import\s+\"?|url\(\"?)((?:https?:)?//[^\")]*)", sheet.read_text())]
    return found


def builds(check, scratch):
    site = scratch / "site"
    result = run(ROOT / "scripts" / "docs", "--site-dir", site)
    if not check("the site is built without a warning", result.returncode == 0, last_line(result)):
        return
    titles = {page.name for page in site.rglob("*.html")}
    check("it has the README, tutorials and benchmarks", {"index.html", "vendoring.html", "firmware.html", "benchmarks.html"} <= titles, titles)
    check("it asks nothing of the network", not asked_of_the_network(site), asked_of_the_network(site)[:5])
    broken = scratch / "broken"
    for name in run("git", "-C", ROOT, "ls-files", "*.md", "mkdocs.yml", "scripts", "generated_tests/python/docs.txt").stdout.split("\n")[:-1]:
        (broken / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, broken / name)
    with (broken / "docs" / "install.md").open("a") as page:
        page.write("\n[nowhere](nowhere.md) and [no place there](cmake.md#no-place)\n")
    result = run(broken / "scripts" / "docs")
    told = result.stdout + result.stderr
    check("links and anchors that lead nowhere fail", result.returncode != 0 and "'nowhere.md'" in told and "#no-place" in told, told)


def lists(check):
    page = (ROOT / "docs" / "from_tvm.md").read_text()
    words = set(re.findall(r"[\w-]+", page))
    names = tvm_names.RELAY + tvm_names.TIR + tvm_names.PRIMITIVES + tvm_names.TVMC
    missing = [n for n in names if n not in words]
    check("docs/from_tvm.md accounts for every command, pass and primitive", not missing, missing)
    own = set(re.findall(r"^(\w+) ", run(TOOL, "passes").stdout, re.M)) | set(re.findall(r"--[\w-]+", run(TOOL, "--help").stdout))
    columns = " ".join(line.split(" | ", 1)[1] for line in page.splitlines() if line.startswith("| ") and " | " in line)
    told = set(re.findall(r"`(?:tc-emit [^`]*?)?(--[a-z][\w-]*)", columns)) - {"--top"}
    check("its options of tc-emit exist", told <= own, told - own)
    sections = page.split("## Relay's passes")[1].split("## TE's")[0]
    columns = " ".join(line.split(" | ", 1)[1] for line in sections.splitlines() if line.startswith("| ") and " | " in line)
    not_passes = {"pad", "pipeline", "double_buffer", "prefetch", "tc_cp_async", "TC_UNROLL", "TC_PROFILE", "plan_memory"}
    told = {n for n in re.findall(r"`([a-z]\w*_\w+|simplify|synchronise)`", columns)} - not_passes
    check("its passes of tc-emit exist", told <= own, told - own)


def figures(check):
    """Numbers that stand in two places are the same there."""
    totals = {}
    for target, page in (("C", "onnx_suite.md"), ("CUDA", "onnx_suite_cuda.md")):
        row = re.search(r"^\| all \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", (ROOT / "docs" / page).read_text(), re.M)
        totals[target] = [f"{int(n):,}" for n in row.groups()]
    readme, compared = (" ".join((ROOT / name).read_text().split()) for name in ("README.md", "docs/compared_with.md"))
    models, right, refused, _ = totals["CUDA"]
    check("the README's figures of ONNX's suite", f"{right} models are right, {refused} refused and none wrong" in readme, totals)
    told = f"(the {models} models in the wheel of `onnx` 1.22.0), C: {totals['C'][1]} are right and {totals['C'][2]} are refused; CUDA, run on a CPU: {right} right, {refused} refused."
    check("those of docs/compared_with.md", told in compared, told)
    cards = re.findall(r"^    \{(\d+), \"(.*?)\", [\d.]+, (\d+), ([\d.]+), ([\d.]+), ([\d.]+), ([\d.]+), ([\d.]+)\}", (ROOT / "templates/cuda/floor.cc").read_text(), re.M)
    rows = re.findall(r"^\| `sm_(\d+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (\d+) GB/s \| (\d+) MiB \|", (ROOT / "docs/cuda.md").read_text(), re.M)
    memory = dict(re.findall(r"\{\"sm_(\d+)\",(?: [^,]+,){5} (\d+),", (ROOT / "templates/cuda/cuda_model.cc").read_text()))
    stated = [(sm, card, *("none" if n == "0" else n for n in rates), memory[sm], l2) for sm, card, l2, *rates in cards]
    check("docs/cuda.md has the cards that floors are of", len(cards) == len(memory) >= 7 and stated == rows, (stated, rows))
