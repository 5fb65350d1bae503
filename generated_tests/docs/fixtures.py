"""What the pages speak of, made in their scratch folders: models, packages, inputs."""
import shutil
import subprocess
import sys

import onnx.numpy_helper
import onnx.parser
from checks import ROOT, TOOL

sys.path[:0] = [str(ROOT / "generated_tests" / name) for name in ("cli", "networks", "sizes", "states")]
import attention_models  # noqa: E402
import export  # noqa: E402
import models  # noqa: E402
import reviews  # noqa: E402
import sized_models  # noqa: E402
import state_models  # noqa: E402

EXAMPLES = ROOT / "examples"


def digits(folder):
    shutil.copy(EXAMPLES / "digits" / "digits.onnx", folder)
    shutil.copytree(EXAMPLES / "digits" / "pictures", folder / "pictures")
    shutil.copy(folder / "pictures" / "9" / "input_0.npy", folder / "digit.npy")


def package(folder, *words):
    """Emits a package, the last word of which names the folder."""
    subprocess.run([TOOL, "--quiet", *words[:-1], "-o", words[-1]], cwd=folder, check=True)


def readme(folder):
    digits(folder)
    network = export.default_cache() / "resnet50"
    if not (network / "case.json").exists():
        return lambda block: "resnet50 is not exported here, which run_networks does" if any("resnet50" in line for line in block.lines) else ""
    (folder / "resnet50.onnx").symlink_to(network / "model.onnx")
    (folder / "data").mkdir()
    for path in (*(network / "inputs").iterdir(), *(network / "outputs").iterdir()):
        (folder / "data" / path.name).symlink_to(path)
    return None


def review(folder):
    digits(folder)
    old, new = reviews.models(folder / "made")
    model = onnx.load(new)
    next(n for n in model.graph.node if n.op_type == "Tanh").name = "squash"
    weight = next(t for t in model.graph.initializer if t.name == "dense.weight")
    values = onnx.numpy_helper.to_array(weight).copy()
    values[1, 1:] += 1e-3
    values[2, 1:2] += 1e-3
    weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    onnx.save(model, folder / "new.onnx")
    shutil.copy(old, folder / "old.onnx")


def report(folder):
    digits(folder)
    package(folder, "digits.onnx", "third_party/digits")


def running(folder):
    digits(folder)
    text = models.AMPLIFIED.replace("y = Add", "[out] y = Add")
    onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")


def sizes(folder):
    for name, build in (("net", sized_models.convolutions), ("encoder", attention_models.attention)):
        b = sized_models.Builder(0)
        build(b)
        onnx.save(b.model(name), folder / f"{name}.onnx")
    b = sized_models.Builder(0)
    sized_models.hourglass(b, "height", "width")
    onnx.save(b.model("segmentation"), folder / "segmentation.onnx")


def states(folder):
    onnx.save(state_models.decoder(), folder / "decoder.onnx")


def language_model(folder):
    for path in (EXAMPLES / "language_model").iterdir():
        shutil.copy(path, folder)


def own_operators(folder):
    digits(folder)
    for path in (EXAMPLES / "custom_operator").iterdir():
        shutil.copy(path, folder)


def own_schedule(folder):
    for path in (EXAMPLES / "custom_schedule").iterdir():
        shutil.copy(path, folder)


def schedules(folder):
    digits(folder)
    own_schedule(folder)


def examples(folder):
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("build"))
    digits(folder)
    if shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm"):
        return None
    return lambda block: "no arm-none-eabi-gcc or qemu-system-arm, which run_firmware installs" if any("make" in line or "cd " in line for line in block.lines) else ""


def thread_pool(folder):
    shutil.copytree(EXAMPLES / "thread_pool", folder, ignore=shutil.ignore_patterns("build"), dirs_exist_ok=True)


MAKERS = {
    "README.md": readme,
    "docs/architecture.md": digits,
    "docs/cuda.md": digits,
    "docs/cuda_on_cpu.md": digits,
    "docs/language.md": own_operators,
    "docs/output.md": digits,
    "docs/report.md": report,
    "docs/review.md": review,
    "docs/running.md": running,
    "docs/schedules.md": schedules,
    "docs/sizes.md": sizes,
    "docs/tuning.md": digits,
    "docs/tutorials/cuda.md": digits,
    "docs/tutorials/firmware.md": examples,
    "examples/custom_operator/README.md": own_operators,
    "examples/custom_schedule/README.md": own_schedule,
    "examples/language_model/README.md": language_model,
    "docs/states.md": states,
    "examples/firmware/README.md": examples,
    "examples/thread_pool/README.md": thread_pool,
}


# These build for longer than a few seconds: for scripts/test --all.
SLOW = {"README.md", "docs/running.md", "docs/cuda.md", "docs/cuda_on_cpu.md", "docs/tutorials/cuda.md", "docs/tutorials/vendoring.md"}


def prepare(page, folder):
    """Makes what the page needs; None, or a function that says of a block why it cannot run here ("": it can)."""
    return MAKERS[page](folder) if page in MAKERS else None


def begin(page):
    """The folder inside of the scratch folder in which the commands of the page run."""
    return "examples/firmware" if page == "examples/firmware/README.md" else "."
