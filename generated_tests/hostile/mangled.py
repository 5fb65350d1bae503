"""Real models whose bytes or fields were changed at random: bit flips, truncations, exchanged fields, absurd sizes. Each gets an
answer in bounded time and memory, and a refused one leaves nothing behind. A mangled model has a number, which is its seed.
"""
import random
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test

from toolchain import Failed
from wire import fields_of, message_of

ROOT = Path(__file__).resolve().parents[2]
ABSURD = [0, 1, 127, 255, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
ANSWERS = {0, 1, 3, 5}  # exit codes: done, rejected, not supported, over a limit
SECONDS = 20


def originals():
    """[(file name, bytes, {name of a file beside it: bytes})]: networks, ONNX's text, weights in a file of their own."""
    light = Path(onnx.backend.test.__file__).parent / "data" / "light"
    real = [ROOT / "examples" / "digits" / "digits.onnx", *(light / f"light_{name}.onnx" for name in ("squeezenet", "shufflenet", "inception_v1"))]
    models = [("model.onnx", path.read_bytes(), {}) for path in real]
    models += [("model.onnxtxt", path.read_bytes(), {}) for path in sorted((ROOT / "generated_tests" / "golden").glob("*/model.onnxtxt"))]
    return models + [outside(onnx.load(real[0]))]


def outside(model):
    """The model with its weights in another file."""
    data = bytearray()
    for tensor in model.graph.initializer:
        raw = np.ascontiguousarray(onnx.numpy_helper.to_array(tensor)).tobytes()
        for name in ("float_data", "int64_data", "int32_data", "raw_data"):
            tensor.ClearField(name)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", len(data)), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        data += raw
    return "model.onnx", model.SerializeToString(), {"weights.bin": bytes(data)}


def flip_bits(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def cut(rng, data):
    return data[:rng.randrange(len(data))]


def move_bytes(rng, data):
    """A piece of the file stands, or stands once more, in another place."""
    first, at = sorted(rng.randrange(len(data)) for _ in range(2))
    piece = data[first:first + rng.choice([1, 2, 4, 16, 1000])]
    return data[:at] + piece + data[at + rng.choice([0, len(piece)]):]


def change_number(rng, data):
    """Digits of a text become another number; bytes of a binary one an absurd varint."""
    at = rng.randrange(len(data))
    digits = [k for k in range(at, min(at + 200, len(data))) if data[k:k + 1].isdigit()]
    where = digits[0] if digits else at
    return data[:where] + str(rng.choice(ABSURD)).encode() + data[where + 1:]


def change_field(rng, data):
    """A field somewhere in the tree of messages: exchanged with its neighbour, gone, twice, with another number, absurd, or holding
    a piece of another one."""
    fields = fields_of(data)
    if not fields:
        return flip_bits(rng, data) if data else b"\x08\x01"
    k = rng.randrange(len(fields))
    number, kind, payload = fields[k]
    if kind == 2 and len(payload) > 1 and rng.randrange(8) and (inner := fields_of(payload)) is not None and inner:
        fields[k] = (number, kind, change_field(rng, payload))
        return message_of(fields)
    other = rng.randrange(len(fields))
    change = rng.randrange(6)
    if change == 0:
        fields[k], fields[other] = fields[other], fields[k]
    elif change == 1:
        del fields[k]
    elif change == 2:
        fields.insert(other, fields[k])
    elif change == 3:
        fields[k] = (rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 20, 21]), kind, payload)
    elif change == 4:
        fields[k] = (number, 0, rng.choice(ABSURD)) if kind == 0 else (number, kind, payload[:rng.randrange(len(payload) + 1)] if kind == 2 else payload)
    elif kind == 2:
        fields[k] = (number, kind, fields[other][2] if isinstance(fields[other][2], bytes) else b"")
    return message_of(fields)


def mangled(number, models):
    """(file name, bytes, files beside it)."""
    rng = random.Random(number)
    name, data, files = rng.choice(models)
    ways = [flip_bits, cut, move_bytes, change_number] if name.endswith("txt") else [flip_bits, cut, move_bytes, change_number, *[change_field] * 6]
    for _ in range(rng.choice([1, 1, 2, 3])):
        data = rng.choice(ways)(rng, data) or b"\0"
    if files and rng.randrange(3) == 0:
        files = {name: cut(rng, content) for name, content in files.items()}
    return name, data, files


def check(number, models, options, emit, scratch):
    """Raises Failed if tc-emit does not answer as it should."""
    name, data, files = mangled(number, models)
    for file, content in {name: data, **files}.items():
        (scratch / file).write_bytes(content)
    out = scratch / "out"
    problem = None
    try:
        code, told = emit(options.tool, scratch / name, out, scale=options.scale, seconds=SECONDS)
        if code not in ANSWERS or (code and "error[TC" not in told):
            problem = f"exit code {code}: {told[:600]}"
        elif code and out.exists():
            problem = f"exit code {code}, and something was written"
    except Failed as failure:
        problem = str(failure)
    if problem:
        if options.keep:
            shutil.copytree(scratch, options.keep / f"mangled_{number}")
        raise Failed(problem)
