#!/usr/bin/env python3
"""Makes the real networks, their inputs and ONNX Runtime's answers, in a folder of the user's cache.

usage: export.py [--cache DIR] [--list] [NAME ...]        (all networks without a NAME; run it with `scripts/python_env nets`)

Each network gets a folder DIR/NAME: model.onnx (and model.onnx.data), inputs/input_0.npy ..., outputs/output_0.npy ...
and, last, case.json {"name", "flags", "inputs", "outputs", "torch_error"}. A folder that has its case.json is kept. The
default DIR carries a hash of these scripts and of the pinned packages, so that what is there always fits them.
"""
import argparse
import contextlib
import gc
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

from outline import outline

HERE = Path(__file__).resolve().parent
MAX_TORCH_ERROR = 1e-4  # beyond this the export itself is broken, and its reference worth nothing


def default_cache():
    """The cache folder of what these scripts make with these packages."""
    hashed = [HERE / name for name in ("builders.py", "catalog.py", "export.py", "outline.py", "quantised.py")]
    hashed += [HERE.parent / "python" / name for name in ("base.txt", "nets.txt")]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in hashed)).hexdigest()[:12]
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return root / "tc-emit" / f"networks-{key}"


def export_module(built, exporter, path):
    """Writes built.module as an ONNX file."""
    import torch
    args = tuple(torch.from_numpy(value) for value in built.inputs.values())
    names = {"input_names": list(built.inputs), "output_names": built.outputs}
    if exporter == "old":
        torch.onnx.export(built.module, args, path, dynamo=False, opset_version=17, dynamic_axes=built.dynamic, **names)
        return
    shapes = None
    if built.dynamic:
        symbols = {symbol: torch.export.Dim(symbol, min=2, max=512)
                   for axes in built.dynamic.values() for symbol in axes.values()}
        shapes = tuple({axis: symbols[symbol] for axis, symbol in axes.items()} for axes in built.dynamic.values())
    torch.onnx.export(built.module, args, path, dynamo=True, dynamic_shapes=shapes, external_data=True, **names)
    if exporter == "functions":
        outline(path)


def run_reference(path, inputs):
    """ONNX Runtime's outputs, one array an output."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")  # exact products of bytes without VNNI
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == list(inputs), "the exporter renamed or dropped an input"
    return [value.name for value in session.get_outputs()], session.run(None, inputs)


def torch_error(built, outputs):
    """The largest relative difference between ONNX Runtime's outputs and torch's own."""
    import numpy as np
    import torch
    with torch.no_grad():
        expected = built.module(*(torch.from_numpy(value) for value in built.inputs.values()))
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    return max(float(np.linalg.norm(a - b.numpy()) / np.linalg.norm(b.numpy())) for a, b in zip(outputs, expected, strict=True))


def make(network, folder):
    """Makes one network's folder; case.json is written last."""
    import numpy as np
    import torch
    torch.manual_seed(network.seed)
    built = network.build()
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("inputs", "outputs"):
        (folder / name).mkdir(parents=True)
    path = folder / "model.onnx"
    if built.model:
        shutil.copyfile(built.model, path)
    else:
        with torch.no_grad():
            export_module(built, network.exporter, str(path))
    names, outputs = run_reference(path, built.inputs)
    error = torch_error(built, outputs) if built.module is not None else 0.0
    if not error < MAX_TORCH_ERROR:
        raise RuntimeError(f"{network.name}: ONNX Runtime and torch differ by {error:.2e}")
    for kind, values in (("input", built.inputs.values()), ("output", outputs)):
        for index, value in enumerate(values):
            np.save(folder / f"{kind}s" / f"{kind}_{index}.npy", np.ascontiguousarray(value))
    case = {"name": network.name, "flags": list(network.flags), "inputs": list(built.inputs), "outputs": names,
            "torch_error": error}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def prepare(networks, cache, report=print):
    """Makes what is missing of `networks` under `cache` and returns {name: folder}."""
    import torch
    torch.backends.mha.set_fastpath_enabled(False)  # the old exporter knows no fused attention
    torch.set_num_threads(1)  # sums of another split would give other weights
    folders = {}
    for network in networks:
        folder = cache / network.name
        folders[network.name] = folder
        if (folder / "case.json").exists():
            continue
        start = time.monotonic()
        talk = io.StringIO()  # the exporters talk a lot; it is shown when they fail
        try:
            with contextlib.redirect_stdout(talk), contextlib.redirect_stderr(talk), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                make(network, folder)
        except Exception:
            sys.stderr.write(talk.getvalue())
            raise
        gc.collect()
        report(f"made {network.name} in {time.monotonic() - start:.1f} s", flush=True)
    return folders


def make_missing(names, cache):
    """Runs this script for those networks that `cache` lacks, in a process of its own: torch stays out of the caller's."""
    missing = [name for name in names if not (cache / name / "case.json").exists()]
    if missing:
        subprocess.run([sys.executable, HERE / "export.py", "--cache", cache, *missing], check=True)


def main():
    sys.path.insert(0, str(HERE))
    from catalog import ALL, NETWORKS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    known = [network.name for network in ALL]
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"unknown network {', '.join(unknown)}; known are {', '.join(known)}")
    if options.list:
        print("\n".join(known))
        return
    os.environ["HF_HUB_OFFLINE"] = "1"
    prepare([n for n in ALL if n.name in options.names] if options.names else NETWORKS, options.cache)
    print(options.cache)


if __name__ == "__main__":
    main()
