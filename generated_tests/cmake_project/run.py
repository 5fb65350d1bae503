"""find_package(tc-emit) from an installation, as a project meets it: examples/cmake_project with Ninja and Make, what is emitted
again and when, a vendored package that is out of date, CUDA, and mistakes. Every check prints one line; the last line counts them."""
import os
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import onnx.helper
import onnx.numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from checks import ROOT, TOOL, Checks, run  # noqa: E402

check = Checks()
GENERATORS = ("Ninja", "Unix Makefiles")
HEAD = "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(tc-emit 0.1 REQUIRED)\nenable_testing()\n"
MAIN = """#include "m.h"
#include <stdio.h>
int main(void)
{
  static float x[4], y[4];
  m model;
  if (m_init(&model, NULL, 0, NULL, 0) != M_OK) return 1;
  const m_inputs in = {.x = x};
  const m_outputs out = {.y = y};
  const m_status status = m_run(&model, &in, &out);
  m_free(&model);
  printf("%g %g\\n", (double)y[0], (double)y[3]);
  return (int)status;
}
"""


def configure(source, build, *words):
    return run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={PREFIX}", *words)


def build(folder, *words):
    return run("cmake", "--build", folder, "--parallel", "2", *words)


def test_of(folder):
    return run("ctest", "--output-on-failure", cwd=folder)


def save_model(path, weights, operator="Add"):
    """y = x operator w, with w in w.bin beside the model."""
    tensor = onnx.numpy_helper.from_array(np.array(weights, np.float32), "w")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node(operator, ["x", "w"], ["y"])], "g", [x], [y], [tensor])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    for old in (path, path.parent / "w.bin"):
        old.unlink(missing_ok=True)
    onnx.save_model(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)


def example(tmp, generator):
    """The example with everything that it shows, two models, one of them in a subdirectory."""
    folder = tmp / "example" / "cmake_project"
    if not folder.exists():
        shutil.copytree(ROOT / "examples" / "digits", tmp / "example" / "digits")
        shutil.copytree(ROOT / "examples" / "cmake_project", folder)
        run(TOOL, "--quiet", "--name", "digits", "--cpu", "generic", tmp / "example" / "digits" / "digits.onnx", "-o", folder / "third_party" / "digits")
    there = folder / "build" / generator.split()[0]
    made = configure(folder, there, "-G", generator)
    check(f"{generator}: the example configures", made.returncode == 0, made.stderr)
    check(f"{generator}: nothing is emitted yet but what CMake reads", [p.name for p in (there / "tc-emit" / "digits").iterdir()] == ["CMakeLists.txt"])
    made = build(there)
    check(f"{generator}: the example builds without warnings", made.returncode == 0 and "warning" not in made.stdout + made.stderr, made.stdout[-300:] + made.stderr)
    tested = test_of(there)
    check(f"{generator}: it recognises a picture, and the vendored package is up to date", tested.returncode == 0 and "0 tests failed out of 2" in tested.stdout, tested.stdout)
    again = build(there).stdout
    check(f"{generator}: a second build does nothing", "Building" not in again and "Emitting" not in again, again)
    return folder, there


def vendored(folder, there):
    """The test of a vendored package that was edited fails with the diff."""
    header = folder / "third_party" / "digits" / "digits.h"
    header.write_text(header.read_text().replace("digits_run", "digits_walk", 1))
    tested = test_of(there)
    check("an edited vendored package fails with the diff", tested.returncode and "+digits_status digits_run" in tested.stdout and "-o " in tested.stdout, tested.stdout[-600:])
    check("and is left as it is", "digits_walk" in header.read_text())


def emitted_again(tmp, generator):
    """Weights, kernels and the set of files follow the model, and what does not change is not compiled."""
    source = tmp / f"again {generator}"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(HEAD + "tc_emit_add_model(m MODEL 'm.onnx')\nadd_executable(app main.c)\ntarget_link_libraries(app PRIVATE m::m)\n".replace("'", '"'))
    (source / "main.c").write_text(MAIN)
    save_model(source / "m.onnx", [1, 2, 3, 4])
    there = source / "build"
    configure(source, there, "-G", generator)
    made = build(there)
    check(f"{generator}: a path with a space", run(there / "app").stdout == "1 4\n", made.stdout[-300:] + made.stderr)
    save_model(source / "m.onnx", [5, 2, 3, 7])
    os.utime(source / "m.onnx", (1e9, 1e9))
    made = build(there).stdout
    check(f"{generator}: external data that changes", run(there / "app").stdout == "5 7\n", made)
    check(f"{generator}: and no kernel is compiled for it", "Emitting m" in made and "kernels/" not in made, made)
    save_model(source / "m.onnx", [5, 2, 3, 7], "Mul")
    made = build(there)
    check(f"{generator}: another kernel, another file", made.returncode == 0 and run(there / "app").stdout == "0 0\n", made.stdout + made.stderr)
    check(f"{generator}: then there is nothing to do", "Emitting" not in build(there).stdout)
    (source / "m.onnx").write_bytes(b"no model")
    made = build(there)
    check(f"{generator}: a model that breaks stops the build with the reason", made.returncode and "TC0102" in made.stderr, made.stderr)


def own_operators(tmp):
    """A formula that changes is emitted again."""
    source = tmp / "operators"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(HEAD + "tc_emit_add_model(m MODEL m.onnxtxt OPS my.tc)\nadd_executable(app main.c)\ntarget_link_libraries(app PRIVATE m::m)\n")
    (source / "main.c").write_text(MAIN)
    (source / "m.onnxtxt").write_text('<ir_version: 10, opset_import: ["" : 21, "my" : 1]>\ng (float[4] x) => (float[4] y) { y = my.F (x) }\n')
    formula = "op my.F(x: f32[N]) -> y: f32[N]\n  y[i] = x[i] + {}\n"
    (source / "my.tc").write_text(formula.format(3))
    configure(source, source / "build", "-G", "Ninja")
    made = build(source / "build")
    check("operators of the user's", run(source / "build" / "app").stdout == "3 3\n", made.stdout[-300:] + made.stderr)
    (source / "my.tc").write_text(formula.format("x[i] + 5"))
    made = build(source / "build")
    check("and a formula that changes", run(source / "build" / "app").stdout == "5 5\n", made.stdout[-300:] + made.stderr)
    check("then there is nothing to do", "Emitting" not in build(source / "build").stdout)


def tuned(tmp):
    """Schedules come from a file that is read again when it changes, in a subdirectory; states of an instance."""
    source = tmp / "tuned"
    (source / "net").mkdir(parents=True)
    (source / "CMakeLists.txt").write_text(HEAD + "add_subdirectory(net)\nadd_executable(app main.c)\ntarget_link_libraries(app PRIVATE m::m)\n")
    (source / "net" / "CMakeLists.txt").write_text("tc_emit_add_model(m MODEL m.onnxtxt CPU generic SCHEDULES chosen.tc STATES past=present)\n")
    (source / "net" / "m.onnxtxt").write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (float[4] x, float[4] past) => (float[4] y, float[4] present)\n'
                                              "<float[4] one = {1, 1, 1, 1}> { present = Add (past, one) y = Exp (present) }\n")
    (source / "main.c").write_text(MAIN.replace("static float x[4], y[4];", "static float y[4];").replace("{.x = x}", "{0}"))
    words = ("--name", "m", "--cpu", "generic", "--state", "past=present", source / "net" / "m.onnxtxt")
    run(TOOL, "--quiet", *words, "--write-schedules", source / "net" / "chosen.tc")
    made = configure(source, source / "build", "-G", "Ninja")
    made = build(source / "build") if made.returncode == 0 else made
    check("SCHEDULES and STATES, in a subdirectory", made.returncode == 0 and "m_reset(" in (source / "build/net/tc-emit/m/m.h").read_text(), made.stdout[-300:] + made.stderr[-300:])
    chosen = source / "net" / "chosen.tc"
    chosen.write_text("# read again\n" + chosen.read_text())
    check("a file of schedules that changes is read again", "Emitting m" in build(source / "build").stdout)
    chosen.write_text("nonsense\n")
    made = build(source / "build")
    check("and one that is wrong stops the build", made.returncode and "chosen.tc" in made.stderr + made.stdout, made.stdout[-300:] + made.stderr[-300:])


def cuda(folder):
    """nvcc where there is one, else the CPU."""
    on_cpu = not shutil.which("nvcc")
    there = folder / "build" / "cuda"
    made = configure(folder, there, "-G", "Ninja", "-DDIGITS_ON_CUDA=ON", "-DTC_CUDA_ON_CPU=ON" if on_cpu else "-DCMAKE_CUDA_ARCHITECTURES=80")
    made = build(there, "--target", "recognise") if made.returncode == 0 else made
    check("CUDA " + ("on the CPU" if on_cpu else "by nvcc"), made.returncode == 0 and (there / "recognise").exists(), made.stdout[-300:] + made.stderr[-300:])
    if on_cpu:
        check("and it recognises a picture", test_of(there).returncode == 0)


MISTAKES = [
    ("no MODEL", "tc_emit_add_model(m)", "MODEL is missing"),
    ("a model that is not there", "tc_emit_add_model(m MODEL n.onnx)", "has to be there when CMake configures"),
    ("an unknown option", "tc_emit_add_model(m MODEL m.onnx SPEED 3)", "unknown argument \"SPEED;3\"; known: MODEL, TARGET"),
    ("an option without its value", "tc_emit_add_model(m MODEL m.onnx CPU)", "CPU needs a value"),
    ("a processor that does not exist", "tc_emit_add_model(m MODEL m.onnx CPU znver)", "did you mean 'znver4'"),
    ("a size of no dimension", "tc_emit_add_model(m MODEL m.onnx DIMS batch)", "--dim needs NAME=VALUE"),
    ("a name that is no identifier", "tc_emit_add_model(m-1 MODEL m.onnx)", "--name needs a C identifier"),
    ("a name twice", "tc_emit_add_model(m MODEL m.onnx)\ntc_emit_add_model(m MODEL m.onnx)", "a package needs a name of its own"),
    ("CUDA without its languages", "tc_emit_add_model(m MODEL m.onnx TARGET cuda)", "LANGUAGES C CXX CUDA"),
    ("no DIR", "tc_emit_vendored(m MODEL m.onnx)", "DIR is missing"),
    ("a version that is too new", "find_package(tc-emit 9 REQUIRED)", "requested version \"9\""),
]


def mistakes(tmp):
    for k, (name, lines, message) in enumerate(MISTAKES):
        source = tmp / f"mistake{k}"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(HEAD.replace("LANGUAGES C", "LANGUAGES NONE") + lines + "\n" if "twice" not in name else HEAD + lines + "\n")
        save_model(source / "m.onnx", [1, 2, 3, 4])
        made = configure(source, source / "build")
        told = " ".join(made.stderr.split())
        check(name, made.returncode and message in told, told[:300])


def main():
    global PREFIX
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        PREFIX = tmp / "installed"
        installed = run("cmake", "--install", ROOT / "build", "--prefix", PREFIX)
        check("cmake --install", installed.returncode == 0 and run(PREFIX / "bin" / "tc-emit", "--version").stdout.startswith("tc-emit "), installed.stderr)
        for generator in GENERATORS:
            project, there = example(tmp, generator)
            emitted_again(tmp, generator)
        vendored(project, there)
        own_operators(tmp)
        tuned(tmp)
        cuda(project)
        mistakes(tmp)
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
