"""Compares what an emitted program wrote with the values that ONNX stored, as strictly as ONNX's own runner does."""
import numpy as np
import onnx
from onnx import helper, numpy_helper

RTOL, ATOL = 1e-3, 1e-7  # of ONNX's runner; types, shapes and strings have to be exactly equal


def stored_noise(model):
    """The absolute tolerance that the stored outputs of `model` allow.

    NumPy transforms single precision in single precision, so that where the exact result of a DFT is 0 the suite stores
    up to 2e-7; an emitted program, which sums in double precision, gives 3e-15 there.
    """
    return 1e-6 if any(node.op_type == "DFT" for node in model.graph.node) else ATOL


def unpack(raw, dtype, size):
    """`size` elements of a type that numpy's files cannot name, from bytes: one a byte, or as many as fit in it."""
    bits = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}.get(dtype.name)
    if bits is None:
        return raw.view(dtype)
    if raw.size == size:
        return raw.view(np.int8).astype(dtype) if "int" in dtype.name else raw.view(dtype)
    shifts = np.arange(0, 8, bits)
    codes = ((raw[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:size].astype(np.uint8)
    if dtype.name in ("int4", "int2"):
        codes = (codes.astype(np.int8) << (8 - bits)) >> (8 - bits)
    return codes.astype(dtype) if "int" in dtype.name else codes.view(dtype)


def read_output(folder, index, type_proto):
    """Output `index` as the program wrote it: output_N.pb (a TensorProto, SequenceProto or OptionalProto) or output_N.npy."""
    stored = folder / f"output_{index}.pb"
    if stored.exists():
        raw, kind = stored.read_bytes(), type_proto.WhichOneof("value")
        if kind == "sequence_type":
            return numpy_helper.to_list(onnx.SequenceProto.FromString(raw))
        if kind == "optional_type":
            return numpy_helper.to_optional(onnx.OptionalProto.FromString(raw))
        return numpy_helper.to_array(onnx.TensorProto.FromString(raw))
    value = np.load(folder / f"output_{index}.npy", allow_pickle=False)
    if not type_proto.HasField("tensor_type"):
        return value
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(type_proto.tensor_type.elem_type))
    if dtype.kind in "biufcO" and dtype.isbuiltin == 1 or value.dtype == dtype:
        return value
    size = int(np.prod(value.shape))
    return unpack(np.frombuffer(value.tobytes(), np.uint8), dtype, size).reshape(value.shape)


def difference(actual, expected, shapes_only=False, atol=ATOL):
    """"" if the values agree, or what differs."""
    if isinstance(expected, list) or expected is None:
        if isinstance(actual, np.ndarray) or type(actual) is not type(expected):
            return f"expected {'a sequence' if isinstance(expected, list) else 'an empty optional'}, got something else"
        if expected is None:
            return ""
        if len(actual) != len(expected):
            return f"sequence of {len(actual)} instead of {len(expected)}"
        parts = [difference(a, e, shapes_only, atol) for a, e in zip(actual, expected)]
        return next((f"element {i}: {part}" for i, part in enumerate(parts) if part), "")
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)} instead of {list(expected.shape)}"
    text = [value.dtype.kind in "OSU" for value in (actual, expected)]
    if text[0] != text[1] or not text[0] and actual.dtype != expected.dtype:
        return f"type {actual.dtype} instead of {expected.dtype}"
    if shapes_only:
        return ""
    if text[0]:
        words = [[w.decode() if isinstance(w, bytes) else str(w) for w in value.ravel()] for value in (actual, expected)]
        return "" if words[0] == words[1] else f"strings {words[0][:4]} instead of {words[1][:4]}"
    return number_difference(actual, expected, atol)


def number_difference(actual, expected, atol=ATOL):
    """As `difference`, for arrays of numbers of one shape and type."""
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, e = actual.astype(wide).ravel(), expected.astype(wide).ravel()
    close = np.isclose(a, e, rtol=RTOL, atol=atol, equal_nan=True)
    if close.all():
        return ""
    worst = int(np.argmax(~close))
    return f"{int((~close).sum())} of {close.size} elements differ, first [{worst}]: {a[worst]:.9g} instead of {e[worst]:.9g}"


def random_difference(op_type, inputs, outputs):
    """"" if `outputs` are what a random operator may give for `inputs`, or why not.

    Which elements it draws is its own affair; what a drawn element looks like is not.
    """
    if op_type == "Bernoulli":
        chance, drawn = (np.asarray(value, np.float64) for value in (inputs[0], outputs[0]))
        if not np.isin(drawn, (0, 1)).all():
            return "an element is neither 0 nor 1"
        return "an impossible element was drawn" if ((chance <= 0) & (drawn == 1) | (chance >= 1) & (drawn == 0)).any() else ""
    if op_type == "Dropout":
        ratio = float(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else 0.5
        given, result = (np.asarray(value, np.float64) for value in (inputs[0], outputs[0]))
        kept = np.asarray(outputs[1]) if len(outputs) > 1 else result != 0
        if not np.allclose(result, np.where(kept, given / (1 - ratio), 0), rtol=RTOL, atol=ATOL):
            return "an element is neither dropped nor scaled"
        return "" if 0 < kept.sum() < kept.size else "all elements were kept, or none"
    return ""
