"""--weights external: the blob is a file that the program maps, or memory that it is handed, and no part of it."""

import pathlib
import shutil

import numpy as np
import onnx
from checks import TOOL, run

# Two instances share what is mapped; then one on memory of the caller's. Prints one number for each thing that goes wrong.
CALLER = """#include "m.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static float x[4096], y[3][4096];
int main(int argc, char **argv)
{
  const void *weights = &x, *none = &x;
  void *own = aligned_alloc(M_ALIGN, (M_WEIGHTS_BYTES + M_ALIGN - 1) / M_ALIGN * M_ALIGN);
  FILE *file = fopen(argv[1], "rb");
  m a, b, c;
  m_inputs in = {x};
  m_outputs out[3] = {{y[0]}, {y[1]}, {y[2]}};
  for (int i = 0; i < 4096; i++) x[i] = (float)(i % 13) - 6;
  if (argc < 2 || !file || fread(own, 1, M_WEIGHTS_BYTES, file) != M_WEIGHTS_BYTES || fgetc(file) != EOF) return 1;
  if (m_map_weights(NULL, &weights) != M_E_ARG || m_map_weights(argv[1], NULL) != M_E_ARG || m_init(&a, NULL, 0, NULL, 0) != M_E_ARG) return 2;
  if (m_map_weights("nothing here", &none) != M_E_FILE || none) return 3;
  if (m_map_weights(argv[1], &weights) != M_OK || !m_check_weights(weights) || memcmp(weights, own, M_WEIGHTS_BYTES) != 0) return 4;
  if (m_init(&a, weights, M_WEIGHTS_BYTES - 1, NULL, 0) != M_E_WEIGHTS || m_init(&a, (const char *)weights + 1, M_WEIGHTS_BYTES, NULL, 0) != M_E_ALIGN) return 5;
  if (m_init(&a, weights, M_WEIGHTS_BYTES, NULL, 0) || m_init(&b, weights, M_WEIGHTS_BYTES, NULL, 0) || m_init(&c, own, M_WEIGHTS_BYTES, NULL, 0)) return 6;
  if (m_run(&a, &in, &out[0]) || m_run(&b, &in, &out[1])) return 7;
  m_free(&a);
  m_free(&b);
  m_unmap_weights(weights);
  m_unmap_weights(NULL);
  if (m_run(&c, &in, &out[2])) return 8;
  m_free(&c);
  free(own);
  fclose(file);
  if (memcmp(y[0], y[1], sizeof y[0]) || memcmp(y[0], y[2], sizeof y[0]) || y[0][0] == 0) return 9;
  puts(m_strerror(M_E_FILE));
  return 0;
}
"""


def sources(folder):
    return [s for s in (*sorted(folder.glob("*.c")), *sorted(folder.glob("kernels/*.c"))) if s.name != "main.c"]


def is_the_same_program(check, tmp, model, io):
    """make and CMake; beside the program, from elsewhere, by --weights."""
    linked = check.emit(model, tmp / "linked", "--name", "m")
    package = check.emit(model, tmp / "external", "--name", "m", "--weights", "external")
    check("the blob of weights is the same", (linked / "m_weights.bin").read_bytes() == (package / "m_weights.bin").read_bytes() and not (package / "m_weights.S").exists())
    built = run("make", "-s", "-C", package, "TC_VARIANTS=", "m", "m_profile")
    if not check("external weights: make", built.returncode == 0, built.stderr[-300:]):
        return
    program = package / "m"
    size, blob = program.stat().st_size, (package / "m_weights.bin").stat().st_size
    check("the program is without the weights", (package / "m_weights.bin").read_bytes()[64:] not in program.read_bytes(), f"{size} of {blob}")
    for label, words, cwd in (("beside the program", [program], "/"), ("by a relative path", ["./m"], package), ("of a program with hooks", [package / "m_profile"], "/")):
        told = run(*words, "--inputs", io, "--expect", io, cwd=cwd)
        check(f"the weights are found {label}", told.returncode == 0 and "PASS" in told.stdout, told.stdout + told.stderr)
    moved = tmp / "moved"
    moved.mkdir()
    shutil.copy(program, moved)
    told = run(moved / "m", "--inputs", io)
    check("weights that are not there", told.returncode == 1 and told.stderr.strip() == f"error: {moved}/m_weights.bin: the file of weights cannot be read", told.stderr)
    told = run(moved / "m", "--inputs", io, "--expect", io, "--weights", package / "m_weights.bin")
    check("weights by --weights", told.returncode == 0 and "PASS" in told.stdout, told.stderr)
    built = run("cmake", "-S", package, "-B", tmp / "cmake", "-DTC_VARIANTS=") if shutil.which("cmake") else None
    built = run("cmake", "--build", tmp / "cmake", "--target", "m_program") if built and built.returncode == 0 else built
    if built and check("external weights: CMake", built.returncode == 0, built.stderr[-300:]):
        told = run(tmp / "cmake" / "m", "--inputs", io, "--expect", io, cwd="/")
        check("CMake puts the weights beside the program", told.returncode == 0 and "PASS" in told.stdout, told.stderr)
    bad_files(check, tmp, package, program)


def bad_files(check, tmp, package, program):
    """Whatever the file is, a message and an exit code."""
    good = (package / "m_weights.bin").read_bytes()
    folder = tmp / "bad"
    folder.mkdir()
    files = {"cut off": good[:-1], "cut off behind the header": good[:64], "cut off in the header": good[:20], "too long": good + b"\0", "empty": b"",
             "of another layout": good[:24] + bytes(8) + good[32:], "of zeros": bytes(len(good)), "damaged": good[:-1] + bytes([good[-1] ^ 1])}
    for label, data in files.items():
        (folder / "w.bin").write_bytes(data)
        told = run(program, "--weights", folder / "w.bin")
        check(f"weights {label} are refused", told.returncode == 1 and "do not belong" in told.stderr, f"{told.returncode} {told.stderr}")
    told = run(program, "--weights", folder)
    check("weights that are a folder are refused", told.returncode == 1 and "cannot be read" in told.stderr, told.stderr)
    if shutil.which("mkfifo") and run("mkfifo", folder / "pipe").returncode == 0:
        told = run(program, "--weights", folder / "pipe", timeout=20)
        check("weights that are a pipe are refused", told.returncode == 1 and "cannot be read" in told.stderr, told.stderr)


def calls(check, tmp, model, sanitize):
    """The API, under sanitizers: mapped, and as it is where there is no mmap."""
    for label, flags, more in (("mapped", [], []), ("read", [], ["-U__unix__", "-U__APPLE__"]), ("one file", ["--single-file"], [])):
        package = check.emit(model, tmp / f"calls_{label.replace(' ', '_')}", "--name", "m", "--weights", "external", *flags)
        (package / "caller.c").write_text(CALLER)
        files = [s.relative_to(package) for s in sources(package)]
        built = run("gcc", "-std=c11", *sanitize, *more, "-I.", *files, "-lm", "-o", "caller", cwd=package)
        if check(f"a caller of external weights compiles: {label}", built.returncode == 0, built.stderr[-400:]):
            told = run("./caller", "m_weights.bin", cwd=package)
            check(f"weights are shared and handed over: {label}", told.returncode == 0 and "cannot be read" in told.stdout, f"{told.returncode} {told.stderr[:400]}")


def too_large_to_link(check, tmp):
    """2 GiB that are not on the disk: a model's external data with a hole."""
    free = next((int(line.split()[1]) for line in pathlib.Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable")), 0)
    if free < 6 << 20:
        return
    rows = (2 << 30) // 4096 + 1
    w = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[rows, 1024], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", "w.data"), ("length", str(rows * 4096))):
        w.external_data.add(key=key, value=value)
    with open(tmp / "w.data", "wb") as file:
        file.truncate(rows * 4096)
    node = onnx.helper.make_node("Gather", ["w", "i"], ["y"], axis=0)
    graph = onnx.helper.make_graph([node], "large", [onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [1])],
                                   [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 1024])], [w])
    (tmp / "large.onnx").write_bytes(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10).SerializeToString())
    told = run(TOOL, "check", tmp / "large.onnx")
    check("weights that are too large to be linked: the way out", told.returncode == 5 and "TC0504" in told.stderr and "--weights external" in told.stderr, told.stderr)
    told = run(TOOL, "check", "--weights", "external", tmp / "large.onnx")
    check("and it is one", told.returncode == 0, told.stderr)


def model_of(path):
    """A model with a weight that is packed, one that is not, and text beside them."""
    rng = np.random.default_rng(3)
    tensors = [onnx.numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in (("w", (64, 48)), ("b", (1, 48)), ("t", (7, 48)))]
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["xw"]), onnx.helper.make_node("Add", ["xw", "b"], ["h"]), onnx.helper.make_node("MatMul", ["h", "v"], ["y"])]
    tensors.append(onnx.numpy_helper.from_array(rng.standard_normal((48, 64)).astype(np.float32), "v"))
    graph = onnx.helper.make_graph(nodes, "m", [onnx.helper.make_tensor_value_info("x", 1, [64, 64])], [onnx.helper.make_tensor_value_info("y", 1, [64, 64])], tensors)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10), path)
    io = path.parent / "m_io"
    io.mkdir()
    x = rng.standard_normal((64, 64)).astype(np.float32)
    values = {t.name: onnx.numpy_helper.to_array(t).astype(np.float64) for t in tensors}
    np.save(io / "input_0.npy", x)
    np.save(io / "output_0.npy", ((x @ values["w"] + values["b"]) @ values["v"]).astype(np.float32))
    return path, io


def work(check, tmp, sanitize):
    tmp = tmp / "external_weights"
    tmp.mkdir()
    model, io = model_of(tmp / "m.onnx")
    is_the_same_program(check, tmp, model, io)
    calls(check, tmp, model, sanitize)
    too_large_to_link(check, tmp)
