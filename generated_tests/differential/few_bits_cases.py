"""Sums of products with weights of few bits: bits, blocks, zero points, odd sizes; one row, a few, and many.

With --activations int8 what they are multiplied with is rounded to bytes: ONNX Runtime, which multiplies floats, gets the rounded numbers.

Weights that take more than a mebibyte as floats stay packed behind DequantizeLinear; those of MatMulNBits always do.
"""
import dataclasses

import ml_dtypes
import numpy as np

from case import Case

F16, F32 = np.float16, np.float32
RANGES = {ml_dtypes.int4: (-8, 8), ml_dtypes.uint4: (0, 16), np.int8: (-128, 128), np.uint8: (0, 256)}


def packed_case(rng, name, rows, columns, depth, bits, block, zeros="", t=F32, more="", behind="", accuracy=0, order=False):
    """MatMulNBits. zeros: "" (the middle of the range), "bytes" (packed), "float"."""
    blocks = -(-depth // block)
    weights = {"w": rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8), "s": (rng.random((columns, blocks)) * 0.02 + 0.001).astype(t)}
    if zeros == "bytes":
        weights["z"] = rng.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
    elif zeros:
        weights["z"] = (rng.random((columns, blocks)) * 2**bits).astype(t)
    if order:
        weights["g"] = rng.permutation(np.repeat(np.arange(blocks), block))[:depth].astype(np.int32)
    if more:
        weights["b"] = rng.standard_normal(columns).astype(t)
    operands = ", ".join(["x", "w", "s", "z" if zeros else "", "g" if order else "", "b" if more else ""]).rstrip(", ")
    result = "t" if behind else "y"
    body = (f"{result} = com.microsoft.MatMulNBits <K = {depth}, N = {columns}, bits = {bits}, block_size = {block}, accuracy_level = {accuracy}> ({operands})\n{behind}")
    return Case(name, body, {"x": rng.standard_normal((*rows, depth)).astype(t)}, weights, bar=3e-3 if t == F16 else 1e-4 if accuracy else 1e-5,
                only_in_c=accuracy == 4 and not order)


def packed_cases(rng):
    shapes = {"row": (1,), "rows": (3,), "many": (128,)}
    for word, rows in shapes.items():
        for bits, block, zeros, columns, depth in ((4, 32, "", 37, 100), (4, 16, "bytes", 64, 96), (4, 256, "float", 33, 300), (8, 64, "bytes", 70, 200),
                                                   (8, 32, "", 48, 129), (2, 64, "", 40, 200), (4, 128, "bytes", 50, 256)):
            yield packed_case(rng, f"few_bits_{word}_{bits}_{block}_{zeros or 'middle'}", rows, columns, depth, bits, block, zeros)
    yield packed_case(rng, "few_bits_batch", (2, 3), 40, 96, 4, 32)
    yield packed_case(rng, "few_bits_two_blocks_of_rows", (150,), 300, 96, 4, 32, "bytes")
    yield packed_case(rng, "few_bits_bias", (7,), 50, 96, 4, 32, more="b", behind="y = Relu (t)")
    yield packed_case(rng, "few_bits_bias_of_a_row", (1,), 50, 96, 4, 32, more="b", behind="y = Sigmoid (t)")
    yield packed_case(rng, "few_bits_half", (3,), 40, 96, 4, 32, t=F16)
    yield packed_case(rng, "few_bits_order", (3,), 40, 96, 4, 32, order=True)
    yield packed_case(rng, "few_bits_bytes_order", (3,), 40, 96, 4, 32, accuracy=4, order=True)
    yield packed_case(rng, "few_bits_few_columns", (3,), 3, 96, 4, 32)


def table_cases(rng):
    """MatMulBnb4: codes of FP4 and NF4. Blocks lie in a column, hold several columns, or go on in the next one."""
    for word, rows in {"row": (1,), "rows": (2, 2), "many": (70,)}.items():
        for kind, block, columns, depth in ((0, 32, 37, 96), (1, 64, 64, 192), (1, 16, 100, 48), (0, 64, 33, 32), (1, 128, 40, 100)):
            weights = {"w": rng.integers(0, 256, -(-columns * depth // 2)).astype(np.uint8), "s": (rng.random(-(-columns * depth // block)) + 0.1).astype(F32)}
            yield Case(f"few_bits_{word}_{('fp4', 'nf4')[kind]}_{block}_{columns}x{depth}", f"t = com.microsoft.MatMulBnb4 <K = {depth}, N = {columns}, block_size = {block}, quant_type = {kind}> (x, w, s)\n"
                       "y = Relu (t)", {"x": rng.standard_normal((*rows, depth)).astype(F32)}, weights)


def byte_cases(rng):
    """accuracy_level 4: the left factor is rounded to bytes in blocks, as ONNX Runtime does; here and there a number next to a tie
    goes to the other side."""
    for turn, (word, rows) in enumerate({"row": (1,), "rows": (3,), "batch": (2, 7), "many": (70,)}.items()):
        for bits, block, zeros, columns, depth in ((4, 32, "", 37, 100), (4, 16, "bytes", 64, 96), (4, 128, "bytes", 50, 256), (8, 64, "bytes", 70, 200),
                                                   (8, 32, "", 48, 129), (4, 64, "", 40, 64))[turn % 2::2]:
            yield packed_case(rng, f"few_bits_bytes_{word}_{bits}_{block}_{zeros or 'middle'}_{depth}", rows, columns, depth, bits, block, zeros, accuracy=4)
    yield packed_case(rng, "few_bits_bytes_bias", (9,), 50, 96, 4, 32, more="b", behind="y = Relu (t)", accuracy=4)
    case = packed_case(rng, "few_bits_bytes_zeros", (2,), 40, 96, 4, 32, accuracy=4)
    case.inputs["x"][0, 32:64] = 0  # a block without a scale
    yield case


def dequantised(rng, name, t, shape, scale_shape, attributes, body, rows=3, zeros=True, weights=None, outputs=("y",)):
    low, high = RANGES[t]
    values = {"w": rng.integers(low, high, shape).astype(t), "s": (rng.random(scale_shape) * 0.02 + 0.001).astype(F32), **(weights or {})}
    if zeros:
        values["z"] = rng.integers(low, high, scale_shape).astype(t)
    depth = shape[1] if "transB" in body or "Transpose" in body else shape[0]
    return Case(name, f"d = DequantizeLinear {attributes and f'<{attributes}>'} (w, s{', z' if zeros else ''})\n{body}", {"x": rng.standard_normal((rows, depth)).astype(F32)}, values, outputs,
                too_large=True)


def dequantised_cases(rng):
    matmul, gemm = "y = MatMul (x, d)", "y = Gemm <transB = 1> (x, d, b)"
    for t in RANGES:
        word = np.dtype(t).name
        yield dequantised(rng, f"few_bits_tensor_{word}", t, (600, 512), (), "", matmul, zeros=t != np.int8)
        yield dequantised(rng, f"few_bits_axis_{word}", t, (600, 515), (515,), "axis = 1", matmul, rows=1 if t == np.int8 else 5)
        if t == np.int8:
            continue  # ONNX Runtime asked for exact products of bytes refuses blocks of int8
        yield dequantised(rng, f"few_bits_blocks_{word}", t, (640, 512), (20, 512), "axis = 0, block_size = 32", matmul, rows=1)
        yield dequantised(rng, f"few_bits_gemm_{word}", t, (512, 640), (512, 5), "axis = 1, block_size = 128", gemm, rows=9, weights={"b": rng.standard_normal(512).astype(F32)})


def in_bytes(x, block):
    """x, each block of its last axis rounded to multiples of its largest magnitude over 127."""
    length = x.shape[-1]
    whole = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -length % block)])
    blocks = whole.reshape(*x.shape[:-1], -1, block)
    steps = np.abs(blocks).max(-1, keepdims=True) / F32(127)
    inverse = np.divide(F32(1), steps, out=np.zeros_like(steps), where=steps != 0)
    return (np.clip(np.rint(blocks * inverse), -127, 127) * steps).astype(F32).reshape(whole.shape)[..., :length]


def rounded(case, block):
    """The case with --activations int8."""
    return dataclasses.replace(case, name=f"{case.name}_bytes", words=("--activations", "int8"), bar=1e-4, only_in_c=True, too_large=True,
                               seen=lambda inputs: {name: in_bytes(x, block) for name, x in inputs.items()})


def rounded_cases(rng):
    matmul, gemm = "y = MatMul (x, d)", "y = Gemm <transB = 1> (x, d, b)"
    turned, bias = "q = Transpose <perm = [1,0]> (d)\n y = MatMul (x, q)", {"b": rng.standard_normal(37).astype(F32)}
    for t in RANGES:
        word = np.dtype(t).name
        yield rounded(dequantised(rng, f"few_bits_tensor_{word}", t, (100, 37), (), "", matmul, rows=3), 128)
        yield rounded(dequantised(rng, f"few_bits_axis_{word}", t, (300, 37), (37,), "axis = 1", matmul, rows=1), 128)
        yield rounded(dequantised(rng, f"few_bits_turned_{word}", t, (37, 70), (37,), "axis = 0", turned, rows=20, zeros=t == np.int8), 96)
        if t == np.int8:
            continue  # ONNX Runtime asked for exact products of bytes refuses blocks of int8
        yield rounded(dequantised(rng, f"few_bits_blocks_{word}", t, (100, 37), (4, 37), "axis = 0, block_size = 32", matmul, rows=1), 32)
        yield rounded(dequantised(rng, f"few_bits_gemm_{word}", t, (37, 384), (37, 2), "axis = 1, block_size = 192", gemm, rows=5, weights=bias), 64)
        yield rounded(dequantised(rng, f"few_bits_whole_{word}", t, (37, 40), (37, 1), "axis = 1, block_size = 40", gemm, rows=2, weights=bias), 64)
    shared = "y = MatMul (x, d)\n z2 = MatMul (x, d)\n r = ReduceSum <keepdims = 0> (d)"
    yield rounded(dequantised(rng, "few_bits_shared", np.uint8, (64, 37), (37,), "axis = 1", shared, outputs=("y", "z2", "r")), 64)
    # Beside the form: what is multiplied stays as it is.
    for name, t, shape, scales, attributes, body in (("across", np.uint8, (64, 48), (64, 3), "axis = 1, block_size = 16", matmul), ("rows_scaled", np.int8, (64, 48), (64,), "axis = 0", matmul),
                                                     ("odd_blocks", np.uint8, (60, 48), (4, 48), "axis = 0, block_size = 15", matmul), ("three_columns", np.uint8, (64, 3), (), "", matmul)):
        yield dataclasses.replace(dequantised(rng, f"few_bits_{name}_bytes", t, shape, scales, attributes, body), words=("--activations", "int8"), only_in_c=True)


def gather_cases(rng):
    """Some rows of a table of few bits; a product reads the same table."""
    for t in (ml_dtypes.int4, np.uint8):
        low, high = RANGES[t]
        table = {"w": rng.integers(low, high, (600, 512)).astype(t), "s": (rng.random((600, 16)) * 0.02 + 0.001).astype(F32), "z": rng.integers(low, high, (600, 16)).astype(t)}
        rows = {"i": rng.integers(-600, 600, (2, 3)), "x": rng.standard_normal((3, 512)).astype(F32)}
        yield Case(f"few_bits_gather_{np.dtype(t).name}", "d = DequantizeLinear <axis = 1, block_size = 32> (w, s, z)\n y = Gather (d, i)\n q = Transpose <perm = [1,0]> (d)\n"
                   "v = MatMul (x, q)", rows, table, ("y", "v"), too_large=True)


def near_misses(rng):
    """Beside the form: others read the floats, blocks lie along the columns, a scale comes from outside."""
    i8 = np.int8
    yield dequantised(rng, "few_bits_shared", i8, (600, 512), (512,), "axis = 1", "y = MatMul (x, d)\n z2 = MatMul (x, d)\n r = ReduceSum <keepdims = 0> (d)", outputs=("y", "z2", "r"))
    yield dequantised(rng, "few_bits_across", np.uint8, (600, 512), (600, 16), "axis = 1, block_size = 32", "y = MatMul (x, d)")
    yield dequantised(rng, "few_bits_rows_scaled", i8, (600, 512), (600,), "axis = 0", "y = MatMul (x, d)")
    yield dequantised(rng, "few_bits_rounded", i8, (600, 512), (512,), "axis = 1", "h = Cast <to = 10> (d)\n f = Cast <to = 1> (h)\n y = MatMul (x, f)")
    yield dequantised(rng, "few_bits_squared", i8, (600, 512), (512,), "axis = 1", "q = Mul (d, d)\n y = MatMul (x, q)")
    yield dequantised(rng, "few_bits_turned", i8, (512, 600), (512,), "axis = 0", "q = Transpose <perm = [1,0]> (d)\n y = MatMul (x, q)")
    yield dequantised(rng, "few_bits_odd_blocks", np.uint8, (600, 512), (40, 512), "axis = 0, block_size = 15", "y = MatMul (x, d)")
    case = dequantised(rng, "few_bits_scale_outside", np.uint8, (600, 512), (512,), "axis = 1", "y = MatMul (x, d)", zeros=False)
    case.inputs["s"] = case.weights.pop("s")
    yield case


def cases():
    rng = np.random.default_rng(17)
    return [case for family in (packed_cases, table_cases, byte_cases, dequantised_cases, rounded_cases, gather_cases, near_misses) for case in family(rng)]
