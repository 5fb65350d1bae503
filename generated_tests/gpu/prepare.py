#!/usr/bin/env python3
"""Packs emitted networks, inputs and ONNX Runtime's results for a machine with a GPU.

usage: prepare.py [--list default|small|large|kernels] [--tool build/tc-emit] [--bundle DIR] [--flags "..."] [NAME[@PRECISION][+jit] ...]
                                                                               (run it with `scripts/python_env nets`)

Writes bundle/NAME/{package/, io/input_K.npy, io/output_K.npy, item.json} and bundle/bundle.json. Weights are stored as
NAME_weights.bin.xz.
"""
import argparse
import json
import lzma
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "generated_tests" / "networks"), str(ROOT / "generated_tests" / "python")]
import export  # noqa: E402
from answers import answers  # noqa: E402
from catalog import NETWORKS  # noqa: E402

LISTS = {
    "jit": ["ppocr_cls+jit", "lstm_tagger+jit", "mobilenet_v2+jit", "bert_base@fp16+jit"],
    "small": ["lstm_tagger", "gru_tagger", "ppocr_cls", "mobilenet_v2"],
    "large": ["resnet50", "bert_base"],
    "default": ["lstm_tagger", "gru_tagger", "mobilenet_v2", "efficientnet_b0", "resnet50", "resnet50@tf32", "resnet50@fp16", "vit_b_16", "vit_b_16@fp16",
                "bert_base", "bert_base@tf32", "bert_base@fp16"],
    "kernels": ["matmul_4096", "matmul_4096@tf32", "matmul_4096@fp16", "matmul_4096_half", "attention_half", "add_relu_64m", "layer_norm_16m",
                "softmax_16m", "transpose_16m", "reduce_sum_16m"],
}
LEVELS = 7  # on either side of zero
SANITIZED = ["lstm_tagger", "gru_tagger", "ppocr_cls"]  # others take minutes
PERIOD = 65537  # weights repeat after so many; a prime, so that no two rows are equal
MAX_ERROR = {"": 1e-5, "fp32": 1e-5, "tf32": 2e-3, "fp16": 1e-2, "bf16": 2e-2}


def rounded(model):
    """The weights of a model on 15 values a tensor, and periodic; small tensors stay."""
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or np.prod(tensor.dims) < 4096:
            continue
        value = numpy_helper.to_array(tensor)
        scale = max(float(np.abs(value).max()), 1e-30) / LEVELS
        levels = np.resize(np.round(value / scale).ravel()[:PERIOD], value.shape)
        tensor.CopyFrom(numpy_helper.from_array((levels * np.float32(scale)).astype(np.float32), tensor.name))
    return model


def kernel_model(name):
    """A single operator on large tensors, to be timed: (model, whether its results are compared)."""
    node, f32, f16 = helper.make_node, TensorProto.FLOAT, TensorProto.FLOAT16
    m, heads = 1 << 20, [8, 16, 2048, 64]
    rows = {
        "matmul_4096": ([node("MatMul", ["a", "b"], ["y"])], [("a", [4096, 4096]), ("b", [4096, 4096])], [4096, 4096]),
        "add_relu_64m": ([node("Add", ["a", "b"], ["s"]), node("Relu", ["s"], ["y"])], [("a", [64 * m]), ("b", [64 * m])], [64 * m]),
        "layer_norm_16m": ([node("LayerNormalization", ["a", "g"], ["y"])], [("a", [16 * 1024, 1024]), ("g", [1024])], [16 * 1024, 1024]),
        "matmul_4096_half": ([node("MatMul", ["a", "b"], ["y"])], [("a", [4096, 4096]), ("b", [4096, 4096])], [4096, 4096]),
        "attention_half": ([node("Attention", ["q", "k", "v"], ["y"])], [(n, heads) for n in "qkv"], heads),
        "reduce_sum_16m": ([node("ReduceSum", ["a"], ["y"], keepdims=0)], [("a", [16 * m])], []),
        "softmax_16m": ([node("Softmax", ["a"], ["y"])], [("a", [16 * 1024, 1024])], [16 * 1024, 1024]),
        "transpose_16m": ([node("Transpose", ["a"], ["y"], perm=[1, 0])], [("a", [4096, 4096])], [4096, 4096]),
    }
    nodes, inputs, out = rows[name]
    dtype = f16 if name.endswith("_half") else f32
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, dtype, s) for n, s in inputs],
                              [helper.make_tensor_value_info("y", dtype, out)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def file_name(label):
    return label.replace("@", "_").replace("+", "_")


def pack(label, options):
    words, _, jit = label.partition("+")
    name, _, precision = words.partition("@")
    label = file_name(label)
    folder = options.bundle / label
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    network = next((n for n in NETWORKS if n.name == name), None)
    model_path = folder / "model.onnx"
    if network:
        onnx.save(rounded(onnx.load(options.cache / name / "model.onnx")), model_path)
        answers(model_path, folder / "io", lambda k, _: np.load(options.cache / name / "inputs" / f"input_{k}.npy"))
    else:
        onnx.save(kernel_model(name), model_path)
    flags = [*(network.flags if network else ()), *(["--precision", precision] if precision else []), *options.flags, *(["--jit"] if jit else [])]
    subprocess.run([options.tool, "--quiet", "--target", "cuda", *flags, "--name", label, model_path, "-o", folder / "package"],
                   check=True)
    model_path.unlink()
    weights = folder / "package" / f"{label}_weights.bin"
    weights.with_suffix(".bin.xz").write_bytes(lzma.compress(weights.read_bytes(), preset=3))
    weights.unlink()
    manifest = json.loads((folder / "package" / "manifest.json").read_text())
    launches = sum(path.read_text().count("tc_launch(") for path in (folder / "package" / "kernels").glob("*.cu"))
    item = {"name": label, "inputs": manifest["inputs"], "outputs": manifest["outputs"], "compare": bool(network), "launches": launches,
            "max_error": MAX_ERROR[precision], "flags": flags, "jit": bool(jit), "small": label in SANITIZED}
    (folder / "item.json").write_text(json.dumps(item, indent=1) + "\n")
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", default="default", choices=list(LISTS))
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--bundle", type=Path, default=HERE / "bundle")
    parser.add_argument("--cache", type=Path, default=export.default_cache())
    parser.add_argument("--flags", type=str.split, default=["--arch", "sm_90"])
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = options.names or LISTS[options.list]
    export.make_missing([n.name for n in NETWORKS if n.name in {re.split("[@+]", name)[0] for name in names}], options.cache)
    options.bundle.mkdir(parents=True, exist_ok=True)
    sizes = {name: pack(name, options) for name in names}
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    labels = [file_name(name) for name in names]
    (options.bundle / "bundle.json").write_text(json.dumps({"commit": commit, "names": labels}, indent=1) + "\n")
    for name, size in sizes.items():
        print(f"{name:20} {size / 2**20:7.1f} MiB")
    print(f"{'all':20} {sum(sizes.values()) / 2**20:7.1f} MiB in {options.bundle}")


if __name__ == "__main__":
    main()
