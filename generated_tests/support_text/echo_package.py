"""A package of emitted form, without tc-emit: a model that copies its inputs of every type to its outputs; and data for it."""
import pathlib
import shutil

TEXT = pathlib.Path(__file__).resolve().parents[2] / "templates" / "text"
DTYPES = [
    ("FLOAT", "float"), ("UINT8", "uint8_t"), ("INT8", "int8_t"), ("UINT16", "uint16_t"), ("INT16", "int16_t"), ("INT32", "int32_t"),
    ("INT64", "int64_t"), ("BOOL", "uint8_t"), ("FLOAT16", "uint16_t"), ("DOUBLE", "double"), ("UINT32", "uint32_t"), ("UINT64", "uint64_t"),
    ("COMPLEX64", "float"), ("COMPLEX128", "double"), ("BFLOAT16", "uint16_t"), ("FLOAT8E4M3FN", "uint8_t"), ("FLOAT8E4M3FNUZ", "uint8_t"),
    ("FLOAT8E5M2", "uint8_t"), ("FLOAT8E5M2FNUZ", "uint8_t"), ("UINT4", "uint8_t"), ("INT4", "int8_t"), ("FLOAT4E2M1", "uint8_t"), ("FLOAT8E8M0", "uint8_t"),
]
DIMS = [3, 5]


def fill(name, holes):
    text = (TEXT / name).read_text()
    for hole, value in holes.items():
        text = text.replace("{{" + hole + "}}", value)
    assert "{{" not in text.replace("${{", "") or name == "CMakeLists.txt.in", name
    return text


def write_package(out):
    """A package whose model copies each input to the output of the same number."""
    out.mkdir()
    (out / "kernels").mkdir()
    for p in TEXT.glob("tc_*.h"):
        shutil.copy(p, out)
    fields = "".join(f"  {{const}}{c} *t{i};\n" for i, (_, c) in enumerate(DTYPES))
    (out / "echo.h").write_text(
        "#ifndef ECHO_H\n#define ECHO_H\n#include <stddef.h>\n#include <stdint.h>\n#define ECHO_ALIGN 64\n"
        "typedef enum { ECHO_OK = 0, ECHO_E_WEIGHTS = 3 } echo_status;\ntypedef struct { int nothing; } echo;\n"
        "typedef struct {\n" + fields.replace("{const}", "const ") + "} echo_inputs;\ntypedef struct {\n" + fields.replace("{const}", "") + "} echo_outputs;\n"
        "echo_status echo_init(echo *m, const void *weights, size_t weights_bytes, void *workspace, size_t workspace_bytes);\n"
        "echo_status echo_run(const echo *m, const echo_inputs *in, const echo_outputs *out);\nvoid echo_free(echo *m);\n"
        "const void *echo_weights(void);\nint echo_check_weights(const void *weights);\nconst char *echo_strerror(echo_status s);\n#endif\n")
    copies = "".join(f"  memcpy(out->t{i}, in->t{i}, 15 * sizeof *in->t{i}{' * 2' if 'COMPLEX' in n else ''});\n" for i, (n, _) in enumerate(DTYPES))
    (out / "echo.c").write_text(
        '#include "echo.h"\n#include <string.h>\nextern const unsigned char echo_weights_blob[];\nvoid echo_copy(const echo_inputs *in, const echo_outputs *out);\n'
        "echo_status echo_init(echo *m, const void *w, size_t n, void *p, size_t k) { (void)w; (void)n; (void)p; (void)k; m->nothing = 0; return ECHO_OK; }\n"
        "#ifdef TC_PROFILE\n#include \"tc_trace.h\"\n#define echo_copy(...) TC_TRACE(\"echo_copy(\" #__VA_ARGS__ \")\", echo_copy(__VA_ARGS__))\n#endif\n"
        "echo_status echo_run(const echo *m, const echo_inputs *in, const echo_outputs *out) { (void)m; echo_copy(in, out); return ECHO_OK; }\n"
        "void echo_free(echo *m) { (void)m; }\nconst void *echo_weights(void) { return echo_weights_blob; }\n"
        "int echo_check_weights(const void *w) { return memcmp(w, \"weights\", 7) == 0; }\nconst char *echo_strerror(echo_status s) { return s ? \"no\" : \"ok\"; }\n")
    (out / "kernels" / "copy.c").write_text('#include "../echo.h"\n#include <string.h>\nvoid echo_copy(const echo_inputs *in, const echo_outputs *out);\n'
                                            "void echo_copy(const echo_inputs *in, const echo_outputs *out)\n{\n" + copies + "}\n")
    (out / "echo_weights.bin").write_bytes(b"weights")
    (out / "echo_weights.S").write_text("  .section .rodata\n  .globl echo_weights_blob\necho_weights_blob:\n  .incbin \"echo_weights.bin\"\n  .section .note.GNU-stack,\"\",%progbits\n")
    rows = ",\n".join(f'  {{"x/{n.lower()}", TC_{n}, 2, dims}}' for n, _ in DTYPES)
    holes = {
        "name": "echo", "NAME": "ECHO", "sizes": "", "size_list": "NULL", "n_sizes": "0", "axis_list": "NULL", "n_axes": "0", "threads": "", "includes": '#include "tc_simd.h"\n', "dims": "static const int64_t dims[] = {3, 5};", "inputs": rows, "outputs": rows,
        "input_args": "\n".join(f"  i.t{i} = (const {c} *)in[{i}];" for i, (_, c) in enumerate(DTYPES)),
        "output_args": "\n".join(f"  o.t{i} = ({c} *)out[{i}];" for i, (_, c) in enumerate(DTYPES)),
        "n_inputs": str(len(DTYPES)), "n_outputs": str(len(DTYPES)), "lanes": "16", "built_lanes": "TC_VL",
        "weights_file": "NULL", "map": "", "map_name": "NULL", "unmap_name": "NULL", "opened": "weights != NULL ? weights : echo_weights()",
        "cpus": "", "cpu_list": "NULL", "n_cpus": "0", "init": "echo_init((echo *)instance, weights, bytes, NULL, 0);\n  (void)cpu;\n  (void)sizes_;",
        "room": "", "status": "const echo_status s = ", "shape": "", "shape_name": "NULL",
        "counts": "", "reset": "", "reset_name": "NULL", "run": "  return (int)echo_run((const echo *)instance, &i, &o);",
    }
    (out / "main.c").write_text(fill("main.c.in", holes))
    (out / "echo_profile.h").write_text('static const tc_work echo_work[] = {\n  {"cop", 0, 1, 0, 1},\n  {"copy", 1500, 3000, 2, 1},\n  {"copy_2", 0, 1, 0, 1}\n};\n')
    build = {"name": "echo", "march_flags": "-march=x86-64-v3", "objects": "OBJECTS = echo.o kernels/copy.o echo_weights.o", "sources": "  echo.c\n  kernels/copy.c",
             "arch_help": "", "pool": "", "variants": "", "variant_rules": "", "profiled_variants": "",
             "weights_rule": "\necho_weights.o: echo_weights.S echo_weights.bin\n\t$(CC) -c $< -o $@\n", "asm": " ASM", "weights_source": "\n  echo_weights.S",
             "weights_properties": fill("weights_linked.cmake.in", {"name": "echo"}), "weights_beside": ""}
    (out / "Makefile").write_text(fill("Makefile.in", {**build, "profiled": "echo.profile.o", "cleaned": "$(OBJECTS) main.o main.profile.o echo.profile.o"}))
    (out / "CMakeLists.txt").write_text(fill("CMakeLists.txt.in", {**build, "profiled": "echo.c"}))


def onnx_type(name):
    import onnx
    return getattr(onnx.TensorProto, name)


def samples(seed):
    """One array of each type, with special values."""
    import ml_dtypes
    import numpy as np
    import onnx
    rng = np.random.default_rng(seed)
    arrays = []
    for name, _ in DTYPES:
        t = onnx.helper.tensor_dtype_to_np_dtype(onnx_type(name))
        if name.startswith("COMPLEX"):
            a = (rng.normal(size=DIMS) + 1j * rng.normal(size=DIMS)).astype(t)
        elif "INT" in name:
            info = ml_dtypes.iinfo(t)
            a = np.array([int(info.min) + int(rng.integers(0, 2**62)) % (int(info.max) - int(info.min) + 1) for _ in range(15)], dtype=object).reshape(DIMS).astype(t)
        elif name == "BOOL":
            a = rng.integers(0, 2, DIMS).astype(t)
        else:
            a = np.abs(rng.normal(size=DIMS) * 3).astype(t) if name == "FLOAT8E8M0" else (rng.normal(size=DIMS) * 3).astype(t)
            if name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"):
                a[0, :3] = [np.inf, np.nan, -0.0]
        arrays.append(a)
    return arrays


def proto(array, name, typed):
    """A TensorProto: raw data, or the typed field of its type."""
    import numpy as np
    import onnx
    from onnx import numpy_helper
    t = numpy_helper.from_array(array)
    assert t.data_type == onnx_type(name)
    if not typed:
        return t
    raw, bits = t.raw_data, {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4}.get(name, 0)
    t.ClearField("raw_data")
    flat = array.reshape(-1)
    if name in ("FLOAT", "COMPLEX64"):
        t.float_data.extend(flat.view(np.float32).tolist())
    elif name in ("DOUBLE", "COMPLEX128"):
        t.double_data.extend(flat.view(np.float64).tolist())
    elif name == "INT64":
        t.int64_data.extend(flat.tolist())
    elif name in ("UINT32", "UINT64"):
        t.uint64_data.extend(flat.tolist())
    elif bits:
        t.int32_data.extend(raw)
    elif array.dtype.itemsize == 2 and name not in ("INT16", "UINT16"):
        t.int32_data.extend(flat.view(np.uint16).tolist())
    elif "FLOAT8" in name:
        t.int32_data.extend(flat.view(np.uint8).tolist())
    else:
        t.int32_data.extend(int(v) for v in flat)
    return t


def read_back(folder, k):
    import numpy as np
    import onnx
    from onnx import numpy_helper
    npy, pb = folder / f"output_{k}.npy", folder / f"output_{k}.pb"
    if npy.exists():
        return np.load(npy)
    t = onnx.TensorProto()
    t.ParseFromString(pb.read_bytes())
    return numpy_helper.to_array(t)
