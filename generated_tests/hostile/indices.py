"""Indices that come when the program runs: each that is out of range is told, none is followed."""
import subprocess

import numpy as np
import onnx.parser

import cases
from toolchain import Failed

# Six operators that follow indices; a program stops at the first bad one.
MODEL = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (float[ROWS, 2] x, int64[1] gather, int64[1, 2] elements, int64[1, 2] nd, int64[1, 2] scatter, int64[1, 1] scatter_nd, int64[1] blocks)
 => (float[1, 2] a, float[1, 2] b, float[1] c, float[ROWS, 2] d, float[ROWS, 2] e, float[1, 16] f)
<float[1, 2] u = {5, 6}, float[1, 2] v = {7, 8}, int64[2] packed = {ROWS, 8}, int64[2] scaled = {ROWS, 1}>
{
  a = Gather <axis = 0> (x, gather)
  b = GatherElements <axis = 0> (x, elements)
  c = GatherND (x, nd)
  d = ScatterElements <axis = 0> (x, scatter, u)
  e = ScatterND (x, scatter_nd, v)
  zeros = ConstantOfShape (packed)
  bytes = Cast <to = 2> (zeros)
  scales = ConstantOfShape (scaled)
  f = com.microsoft.GatherBlockQuantized <bits = 4, block_size = 16, gather_axis = 0, quantize_axis = 1> (bytes, blocks, scales)
}"""
SHAPES = {"gather": (1,), "elements": (1, 2), "nd": (1, 2), "scatter": (1, 2), "scatter_nd": (1, 1), "blocks": (1,)}


def check(options, emit, scratch):
    """Builds the model with the compilers' checks and runs it with good and bad indices, with several rows and with one, where no
    index but 0 is right; raises Failed."""
    for rows in (3, 1):
        (scratch / str(rows)).mkdir()
        check_rows(options, emit, scratch / str(rows), rows)


def check_rows(options, emit, scratch, rows):
    model = cases.save(scratch, onnx.parser.parse_model(MODEL.replace("ROWS", str(rows))).SerializeToString())
    package, program = scratch / "out", scratch / "program"
    code, told = emit(options.tool, model, package, scale=options.scale)
    if code:
        raise Failed(f"exit code {code}: {told[:500]}")
    sources = [*package.rglob("*.c"), *package.rglob("*.S")]
    command = ["gcc", "-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{package}", *sources, "-lm", "-o", program]
    subprocess.run([str(word) for word in command], check=True)
    np.save(scratch / "input_0.npy", np.arange(2 * rows, dtype=np.float32).reshape(rows, 2))

    def run(**indices):
        for k, (name, shape) in enumerate(SHAPES.items()):
            np.save(scratch / f"input_{k + 1}.npy", np.full(shape, indices.get(name, 0), np.int64))
        return subprocess.run([str(program), "--inputs", str(scratch), "--outputs", str(scratch)], capture_output=True, text=True, timeout=60)

    for name in SHAPES:
        for index in (0, rows - 1, -1, -rows):
            # The last axis of the two-element index has two columns: 0 and -1 are good in both.
            result = run(**{name: index if name != "nd" else 0 if index >= 0 else -1})
            if result.returncode:
                raise Failed(f"{name}, index {index}: {result.stderr.strip()[:300]}")
        for index in (rows, -rows - 1, 2 ** 31, -2 ** 31 - 1, 2 ** 32, 2 ** 63 - 1, -2 ** 63):
            result = run(**{name: index})
            if result.returncode == 0 or "range" not in result.stderr + result.stdout or "Sanitizer" in result.stderr or "runtime error" in result.stderr:
                raise Failed(f"{name} of {rows} rows, index {index}: exit code {result.returncode}: {(result.stdout + result.stderr).strip()[:300]}")
