#!/usr/bin/env python3
"""Compares single operators with ONNX Runtime on one core of this machine.

usage: ops.py [--tool build/tc-emit] [--cpu native] [--cc gcc] [--rounds 5] [--seconds 0.2] [--bar RATIO]
              [--packages DIR] [--list] [REGEX]                                (run it with `scripts/python_env base`)

Each row of the table is a graph of one operator, of sizes that networks have; REGEX picks rows by name. Before anything
is timed the outputs are compared. The engines take turns, each in a process of its own on the same core. A figure is the
smallest over the rounds of a round's median, in microseconds: operators take so little time that whatever else runs only
ever adds to it. ONNX Runtime's figure includes what it takes to start a graph, some 3 us. Rows above --bar are marked,
and make the exit code 1.
"""
import argparse
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import machine

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "generated_tests" / "differential"))
from case import Case, ints  # noqa: E402
from few_bits_cases import packed_case  # noqa: E402

MAX_ERROR = 1e-4  # relative, in norm, where a row states no larger one


def boxes(count, size):
    """(x1, y1, x2, y2) of seeded boxes inside of a picture."""
    rng = np.random.default_rng(1)
    corner, extent = rng.random((count, 2)) * size * 0.6, (0.05 + rng.random((count, 2)) * 0.35) * size
    return np.concatenate([corner, corner + extent], axis=1).astype(np.float32)


def operators():
    """The table."""
    half = np.random.default_rng(2).standard_normal((1, 64, 56, 56)).astype(np.float16)
    byte = np.random.default_rng(3).integers(0, 255, (1, 64, 56, 56), np.uint8)
    image = {"x": (1, 64, 56, 56)}
    doubles = np.random.default_rng(4).standard_normal((256, 1000))
    yield Case("double_product", "y = MatMul (x, w)", {"x": doubles[:128, :256]}, {"w": doubles[:, 256:512].copy()})
    yield Case("double_softmax", "y = Softmax (x)", {"x": doubles})
    yield Case("double_mean_of_columns", "y = ReduceMean <keepdims = 0> (x, a)", {"x": doubles}, {"a": ints(0)})
    yield Case("double_tanh", "y = Tanh (x)", {"x": doubles})
    yield Case("argmax_21_channels", "y = ArgMax <axis = 1, keepdims = 0> (x)", {"x": (1, 21, 128, 128)})
    yield Case("argmax_150_channels", "y = ArgMax <axis = 1> (x)", {"x": (1, 150, 64, 63)})
    yield Case("argmax_last", "y = ArgMax <axis = -1> (x)", {"x": (64, 1000)})
    yield Case("power", "y = Pow (x, p)", {"x": np.abs(np.random.default_rng(5).standard_normal((64, 1000))).astype(np.float32)}, {"p": np.float32(2.2)})
    yield Case("top_1", "y, i = TopK <axis = -1> (x, k)", {"x": (64, 1000)}, {"k": ints(1)})
    yield Case("hardmax", "y = Hardmax <axis = -1> (x)", {"x": (64, 1000)})
    yield Case("outer_product", "y = MatMul (x, z)", {"x": (512, 1), "z": (1, 512)})
    yield Case("to_channels_last", "y = Transpose <perm = [0,2,3,1]> (x)", image)
    yield Case("to_channels_first", "y = Transpose <perm = [0,3,1,2]> (x)", {"x": (1, 56, 56, 64)})
    yield Case("to_channels_last_f16", "y = Transpose <perm = [0,2,3,1]> (x)", {"x": half})
    yield Case("to_channels_last_u8", "y = Transpose <perm = [0,2,3,1]> (x)", {"x": byte})
    yield Case("to_channels_last_3", "y = Transpose <perm = [0,2,3,1]> (x)", {"x": (1, 3, 224, 224)})
    yield Case("to_channels_first_3", "y = Transpose <perm = [0,3,1,2]> (x)", {"x": (1, 224, 224, 3)})
    yield Case("transpose_197x768", "y = Transpose <perm = [1,0]> (x)", {"x": (197, 768)})
    yield Case("transpose_1024", "y = Transpose <perm = [1,0]> (x)", {"x": (1024, 1024)})
    yield Case("split_heads", "y = Transpose <perm = [0,2,1,3]> (x)", {"x": (1, 197, 12, 64)})
    yield Case("transpose_keys", "y = Transpose <perm = [0,2,3,1]> (x)", {"x": (1, 197, 12, 64)})
    yield Case("log_softmax_1000", "y = LogSoftmax (x)", {"x": (64, 1000)})
    yield Case("log_softmax_30522", "y = LogSoftmax (x)", {"x": (8, 30522)})
    yield Case("softmax_197", "y = Softmax (x)", {"x": (12, 197, 197)})
    yield Case("softmax_49", "y = Softmax (x)", {"x": (64, 49, 49)})
    yield Case("softmax_1000", "y = Softmax (x)", {"x": (64, 1000)})
    yield Case("softmax_channels", "y = Softmax <axis = 1> (x)", {"x": (1, 21, 128, 128)})
    yield Case("depthwise_56", "y = Conv <group = 64, pads = [1,1,1,1]> (x, w, b)", image, {"w": (64, 1, 3, 3), "b": (64,)})
    yield Case("depthwise_14", "y = Conv <group = 384, pads = [1,1,1,1]> (x, w, b)", {"x": (1, 384, 14, 14)},
               {"w": (384, 1, 3, 3), "b": (384,)})
    yield Case("depthwise_112_stride_2", "y = Conv <group = 32, pads = [1,1,1,1], strides = [2,2]> (x, w, b)", {"x": (1, 32, 112, 112)},
               {"w": (32, 1, 3, 3), "b": (32,)})
    yield Case("depthwise_28_k5", "y = Conv <group = 120, pads = [2,2,2,2]> (x, w, b)", {"x": (1, 120, 28, 28)},
               {"w": (120, 1, 5, 5), "b": (120,)})
    aligned = 'mode = "linear", coordinate_transformation_mode = "align_corners"'
    yield Case("resize_align_corners_14", f"y = Resize <{aligned}> (x, , , sizes)", {"x": (1, 64, 14, 14)}, {"sizes": ints(1, 64, 28, 28)})
    yield Case("resize_align_corners_56", f"y = Resize <{aligned}> (x, , , sizes)", {"x": (1, 21, 56, 56)}, {"sizes": ints(1, 21, 224, 224)})
    yield Case("resize_half_pixel_28", 'y = Resize <mode = "linear"> (x, , s)', {"x": (1, 32, 28, 28)}, {"s": np.float32([1, 1, 2, 2])})
    yield Case("resize_nearest_28", 'y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (x, , s)',
               {"x": (1, 64, 28, 28)}, {"s": np.float32([1, 1, 2, 2])})
    # Alone, channels first on both sides; and what networks end in: few channels.
    for name, x, w, more in (("7x1", (1, 64, 17, 17), (64, 64, 7, 1), "pads = [3,0,3,0]"), ("3x3", (1, 64, 17, 17), (64, 64, 3, 3), "pads = [1,1,1,1]"),
                             ("dilated", (1, 64, 32, 32), (64, 64, 3, 3), "pads = [6,6,6,6], dilations = [6,6]"), ("groups", (1, 64, 28, 28), (64, 16, 3, 3), "group = 4, pads = [1,1,1,1]"),
                             ("mask", (1, 64, 128, 128), (1, 64, 3, 3), "pads = [1,1,1,1]"), ("picture", (1, 64, 128, 128), (3, 64, 3, 3), "pads = [1,1,1,1]"),
                             ("gray", (1, 1, 128, 128), (64, 1, 9, 9), "pads = [4,4,4,4]"), ("signal", (1, 1, 16000), (512, 1, 10), "strides = [5]"),
                             ("wave", (1, 32, 16000), (1, 32, 7), "pads = [3,3]")):
        yield Case(f"conv_alone_{name}", f"y = Conv <{more}> (x, w, b)", {"x": x}, {"w": w, "b": (w[0],)})
    yield Case("conv_transpose_picture", "y = ConvTranspose <strides = [2,2], pads = [1,1,1,1]> (x, w)", {"x": (1, 64, 64, 64)}, {"w": (64, 3, 4, 4)})
    yield Case("conv_transpose_mask", "y = ConvTranspose <strides = [2,2]> (x, w)", {"x": (1, 32, 64, 64)}, {"w": (32, 1, 2, 2)})
    yield Case("conv_transpose_waveform", "y = ConvTranspose <strides = [8]> (x, w)", {"x": (1, 128, 1000)}, {"w": (128, 1, 16)})
    yield Case("conv_transpose_k2s2", "y = ConvTranspose <strides = [2,2]> (x, w, b)", {"x": (1, 64, 28, 28)}, {"w": (64, 32, 2, 2), "b": (32,)})
    yield Case("conv_transpose_k4s2", "y = ConvTranspose <strides = [2,2], pads = [1,1,1,1]> (x, w, b)", {"x": (1, 64, 28, 28)},
               {"w": (64, 32, 4, 4), "b": (32,)})
    yield Case("roi_align", 'y = RoiAlign <output_height = 7, output_width = 7, sampling_ratio = 2, spatial_scale = 0.0625> (x, r, i)',
               {"x": (1, 64, 50, 50), "r": boxes(100, 800)}, {"i": np.zeros(100, np.int64)})
    image, regions, one = {"x": (1, 64, 50, 50)}, {"r": boxes(100, 800)}, {"i": np.zeros(100, np.int64)}
    for mode in ("avg", "max"):
        yield Case(f"roi_align_adaptive_{mode}", f'y = RoiAlign <output_height = 7, output_width = 7, spatial_scale = 0.0625, mode = "{mode}"> (x, r, i)',
                   image | regions, one)
    yield Case("max_roi_pool", "y = MaxRoiPool <pooled_shape = [7,7], spatial_scale = 0.0625> (x, r)",
               image | {"r": np.concatenate([np.zeros((100, 1), np.float32), regions["r"]], axis=1)})
    for count, classes, limit in ((1000, 1, 100), (300, 20, 50), (8400, 80, 100)):
        yield Case(f"non_max_suppression_{count}_{classes}", "y = NonMaxSuppression (b, s, k, i, t)",
                   {"b": boxes(count, 100)[None], "s": np.random.default_rng(2).random((1, classes, count)).astype(np.float32)},
                   {"k": ints(limit), "i": np.float32([0.5]), "t": np.float32([0.7])}, counted=True)
    yield Case("top_k_300", "v, y = TopK (x, k)", {"x": (1, 8400)}, {"k": ints(300)}, outputs=("v", "y"))
    yield Case("top_k_5", "v, y = TopK (x, k)", {"x": (8, 1000)}, {"k": ints(5)}, outputs=("v", "y"))
    yield Case("top_k_rows", "v, y = TopK (x, k)", {"x": (64, 8400)}, {"k": ints(50)}, outputs=("v", "y"))
    yield Case("grid_sample", 'y = GridSample <mode = "linear", align_corners = 0> (x, g)',
               {"x": (1, 32, 64, 64), "g": np.random.default_rng(4).uniform(-1, 1, (1, 64, 64, 2)).astype(np.float32)})
    yield Case("deform_conv", "y = DeformConv <pads = [1,1,1,1], kernel_shape = [3,3]> (x, w, o, b, m)",
               {"x": (1, 32, 28, 28), "o": (1, 18, 28, 28), "m": np.random.default_rng(5).random((1, 9, 28, 28)).astype(np.float32)},
               {"w": (32, 32, 3, 3), "b": (32,)})
    rng = np.random.default_rng(6)
    for bits, accuracy in ((4, 0), (4, 4), (8, 4)):
        for rows, columns, depth in ((1, 2048, 2048), (1, 4096, 4096), (1, 5632, 2048), (1, 11008, 4096), (128, 2048, 2048)):
            name = f"weights_of_{bits}_bits_{rows}x{depth}x{columns}{'_bytes' if accuracy else ''}"
            yield packed_case(rng, name, (rows,), columns, depth, bits, 32, accuracy=accuracy)
    for points in (512, 1024, 2048):
        yield Case(f"dft_{points}", "y = DFT (x, , a)", {"x": (1, points, 1)}, {"a": np.int64(1)})
    yield from functions_of_elements(np.random.default_rng(9))
    yield from moved_and_counted(np.random.default_rng(7))
    yield from attention()
    yield from language_layers(np.random.default_rng(8))


def functions_of_elements(rng):
    """Rows of functions, one element at a time."""
    x, unit = rng.standard_normal((64, 1024)).astype(np.float32), rng.uniform(-0.99, 0.99, (64, 1024)).astype(np.float32)
    for op in ("Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Exp", "Erf", "Softplus", "Mish", "Celu"):
        yield Case(f"elements_{op.lower()}", f"y = {op} (x)", {"x": x})
    for op in ("Asin", "Acos", "Atanh"):
        yield Case(f"elements_{op.lower()}", f"y = {op} (x)", {"x": unit})
    for op in ("Acosh", "Log"):
        yield Case(f"elements_{op.lower()}", f"y = {op} (x)", {"x": np.abs(x) + 1})
    yield Case("elements_remainder", "y = Mod <fmod = 1> (x, z)", {"x": x, "z": x[::-1].copy()})
    yield Case("elements_power", "y = Pow (x, z)", {"x": np.abs(x), "z": unit})


def moved_and_counted(rng):
    """Rows of what moves, compares, sorts and sums other types than floats."""
    scores, square = rng.standard_normal((12, 197, 197)).astype(np.float32), {"x": (12, 197, 197)}
    yield Case("trilu_197", "y = Trilu <upper = 0> (x)", square)
    yield Case("trilu_1024", "y = Trilu (x)", {"x": (1024, 1024)})
    yield Case("trilu_8x256", "y = Trilu <upper = 0> (x)", {"x": (8, 256, 256)})
    yield Case("unique_floats", "y = Unique (x)", {"x": np.round(rng.standard_normal(8400) * 100).astype(np.float32)}, counted=True)
    yield Case("unique_ids", "y, i, j, c = Unique (x)", {"x": rng.integers(0, 1000, 4096)}, outputs=("y", "i", "j", "c"), counted=True)
    yield Case("int64_product", "y = MatMul (x, w)", {"x": rng.integers(-99, 99, (64, 128))}, {"w": rng.integers(-99, 99, (128, 64))})
    yield Case("int32_product", "y = MatMul (x, w)", {"x": rng.integers(-99, 99, (64, 128), np.int32)}, {"w": rng.integers(-99, 99, (128, 64), np.int32)})
    yield Case("int64_sum", "y = ReduceSum <keepdims = 0> (x, a)", {"x": rng.integers(-99, 99, (64, 1000))}, {"a": ints(1)})
    yield Case("int64_mul_add", "z = Mul (x, w)\n y = Add (z, w)", {"x": rng.integers(-99, 99, (64, 1000)), "w": rng.integers(-99, 99, (64, 1000))})
    yield Case("gather_elements", "y = GatherElements <axis = 1> (x, i)", {"x": (64, 1000), "i": rng.integers(0, 1000, (64, 300))})
    yield Case("gather_elements_rows", "y = GatherElements <axis = 0> (x, i)", {"x": (1000, 64), "i": rng.integers(0, 1000, (300, 64))})
    yield Case("gather_rows", "y = Gather (x, i)", {"x": (1000, 768), "i": rng.integers(0, 1000, 128)})
    yield Case("scatter_elements", "y = ScatterElements <axis = 1> (x, i, u)", {"x": (64, 1000), "i": np.argsort(rng.random((64, 1000)), 1)[:, :300], "u": (64, 300)})
    yield Case("greater", "y = Greater (x, z)", square | {"z": scores})
    yield Case("greater_scalar", "y = Greater (x, z)", square, {"z": np.float32(0.1)})
    yield Case("equal_ids", "y = Equal (x, z)", {"x": rng.integers(0, 9, 65536), "z": rng.integers(0, 9, 65536)})
    yield Case("both", "y = And (x, z)", {"x": scores > 0, "z": scores > 0.5})
    yield Case("where", "y = Where (m, x, z)", square | {"m": scores > 0, "z": scores})
    yield Case("is_nan", "y = IsNaN (x)", square)
    yield Case("cast_bool", "y = Cast <to = 9> (x)", square)
    yield Case("cross_entropy_256", "y = SoftmaxCrossEntropyLoss (x, t)", {"x": (256, 1000), "t": rng.integers(0, 1000, 256)})
    yield Case("cross_entropy_pixels", "y = SoftmaxCrossEntropyLoss (x, t)", {"x": (1, 21, 128, 128), "t": rng.integers(0, 21, (1, 128, 128))})
    yield Case("mean_and_max", "y = ReduceMean <keepdims = 1> (x, a)\n z = ReduceMax <keepdims = 1> (x, a)", {"x": (1, 64, 56, 56)}, {"a": ints(1)}, ("y", "z"))
    yield Case("cum_sum", "y = CumSum (x, a)", {"x": (64, 1000)}, {"a": np.int64(1)})
    yield Case("cum_sum_rows", "y = CumSum (x, a)", {"x": (16, 128, 128)}, {"a": np.int64(1)})
    yield Case("cum_sum_int64", "y = CumSum (x, a)", {"x": rng.integers(0, 9, (512, 512))}, {"a": np.int64(1)})
    yield Case("hardmax", "y = Hardmax (x)", {"x": (512, 512)})
    yield Case("col2im", "y = Col2Im (x, s, b)", {"x": (1, 288, 900)}, {"s": ints(32, 32), "b": ints(3, 3)})
    places = np.arange(16)[:, None, None] * 4096 + np.arange(32)[:, None] * 128 + np.arange(32) * 2
    yield Case("max_unpool", "y = MaxUnpool <kernel_shape = [2,2], strides = [2,2]> (x, i)", {"x": (1, 16, 32, 32), "i": places[None]})
    yield Case("top_k_5_of_512", "v, y = TopK (x, k)", {"x": (512, 1000)}, {"k": ints(5)}, outputs=("v", "y"))
    yield Case("one_hot", "y = OneHot (i, d, v)", {"i": rng.integers(0, 1000, 256)}, {"d": np.int64(1000), "v": np.float32([0, 1])})
    yield Case("non_zero", "y = NonZero (x)", {"x": (scores > 0.5)[0]}, counted=True)


def attention():
    """The operator of ONNX, with heads apart and side by side."""
    for rows, heads in ((128, 12), (512, 12), (1024, 8)):
        apart = {name: (1, heads, rows, 64) for name in "qkv"}
        yield Case(f"attention_{rows}", "y = Attention (q, k, v)", apart, opset=23)
        yield Case(f"attention_{rows}_causal", "y = Attention <is_causal = 1> (q, k, v)", apart, opset=23)
    streams = {"q": (1, 512, 768), "k": (1, 512, 256), "v": (1, 512, 256)}
    yield Case("attention_side_by_side", "y = Attention <q_num_heads = 12, kv_num_heads = 4, is_causal = 1> (q, k, v)", streams, opset=23)
    yield Case("attention_ms", "y = com.microsoft.MultiHeadAttention <num_heads = 12> (q, k, v)", {name: (1, 512, 768) for name in "qkv"})


def language_layers(rng):
    """Layers of language models that no other row has: experts of few bits, attention as a recurrence."""
    experts, hidden, inner = 8, 512, 1024
    for bits, tokens in ((4, 1), (4, 16), (8, 1)):
        def few(columns, depth):
            scales = ((rng.random((experts, columns, depth // 32)) + 0.2) * 0.01).astype(np.float32)
            return rng.integers(0, 256, (experts, columns, depth * bits // 8)).astype(np.uint8), scales
        (w, s), (u, t) = few(2 * inner, hidden), few(hidden, inner)
        # ONNX Runtime multiplies weights of 8 bits as bytes, and those of 4 as floats.
        name, words = f"experts_of_{bits}_bits_{tokens}", ()
        if bits == 8:
            name, words = f"{name}_bytes", ("--activations", "int8")
        yield Case(name, f'y = com.microsoft.QMoE <k = 2, expert_weight_bits = {bits}, block_size = 32, activation_type = "swiglu", swiglu_fusion = 1, '
                   "activation_alpha = 1.702, activation_beta = 1.0, normalize_routing_weights = 1> (x, r, w, s, , u, t)",
                   {"x": (tokens, hidden), "r": (tokens, experts)}, {"w": w, "s": s, "u": u, "t": t}, bar=2e-2, words=words)
    for rule, tokens in itertools.product(("gated", "gated_delta"), (1, 64)):
        heads, size = 8, 64
        inputs = {name: (1, tokens, heads * size) for name in "qkv"} | {"s": (1, heads, size, size), "g": -rng.random((1, tokens, heads)).astype(np.float32)}
        if "delta" in rule:
            inputs["e"] = rng.random((1, tokens, heads)).astype(np.float32)
        inputs["k"] = (rng.standard_normal(inputs["k"]) * 0.1).astype(np.float32)  # that the state stays small
        yield Case(f"recurrence_{rule}_{tokens}", f'y, t = com.microsoft.LinearAttention <q_num_heads = {heads}, kv_num_heads = {heads}, update_rule = "{rule}"> '
                   f'(q, k, v, s, g{", e" if "e" in inputs else ""})', inputs, outputs=("y", "t"))


def prepare(case, folder, options):
    """Writes the model and its inputs, emits and compiles it; returns the program."""
    inputs = case.arrays(case.inputs)
    (folder / "inputs").mkdir(parents=True)
    for index, array in enumerate(inputs.values()):
        np.save(folder / "inputs" / f"input_{index}.npy", array)
    session = onnxruntime.InferenceSession(case.model(None).SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(list(case.outputs), inputs)
    onnx.save(case.model([(value.dtype, value.shape) for value in expected]), folder / "model.onnx")
    package = folder / "package"
    emit = [options.tool, folder / "model.onnx", "-o", package, "--name", case.name, "--target", "c", "--cpu", options.cpu, *case.words]
    for command in (emit, ["make", "-C", package, f"CC={options.cc}"]):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{case.name}: {command[0]} ended with {result.returncode}\n{result.stderr[-2000:]}")
    program = package / case.name
    subprocess.run([program, "--inputs", folder / "inputs", "--outputs", folder / "outputs"], check=True, capture_output=True)
    for index, value in enumerate(expected):
        told = np.load(folder / "outputs" / f"output_{index}.npy").astype(np.float64)
        error = np.linalg.norm(told - value) / max(np.linalg.norm(value.astype(np.float64)), 1e-30)
        if not error <= max(MAX_ERROR, case.bar):
            sys.exit(f"{case.name}: output {index} is {error:.1e} off ONNX Runtime's")
    return program


def time_both(program, folder, options):
    """Microseconds of (ONNX Runtime, ours)."""
    ours = [program, "--inputs", folder / "inputs", "--threads", 1, "--bench", options.seconds, "--json"]
    peer = [sys.executable, ROOT / "bench" / "peer.py", "onnxruntime", folder / "model.onnx", folder / "inputs",
            "--threads", 1, "--seconds", options.seconds]
    best = [float("inf")] * 2
    for _ in range(options.rounds):
        for index, command in enumerate((peer, ours)):
            code, text, _ = machine.run_pinned(command, 1)
            if code:
                sys.exit(f"{command[0]} ended with {code}: {text[-2000:]}")
            best[index] = min(best[index], json.loads(text.strip().splitlines()[-1])["median_ms"] * 1e3)
    return best


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build" / "tc-emit")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of measuring, for one engine in one round")
    parser.add_argument("--bar", type=float, default=1.0)
    parser.add_argument("--packages", type=Path, help="keep models and packages in this folder")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("regex", nargs="?", default="")
    return parser.parse_args()


def main():
    options = parse_options()
    chosen = [case for case in operators() if re.search(options.regex, case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    print(f"{machine.processor()}\n{'operator':28}{'ORT us':>10}{'tc-emit':>10}{'ratio':>8}", flush=True)
    slower = 0
    with tempfile.TemporaryDirectory() as scratch:
        for case in chosen:
            folder = (options.packages or Path(scratch)) / case.name
            shutil.rmtree(folder, ignore_errors=True)
            peer, ours = time_both(prepare(case, folder, options), folder, options)
            slower += ours > options.bar * peer
            print(f"{case.name:28}{peer:10.1f}{ours:10.1f}{ours / peer:8.2f}{' *' if ours > options.bar * peer else ''}", flush=True)
    print(f"{slower} of {len(chosen)} operators above {options.bar:g} of ONNX Runtime's time")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
