"""The wheel in a clean virtual environment: first with nothing else in it, then with the pinned packages beside it, for the module's
own tests (python/tests). Every check prints one line; the last line counts them."""
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from checks import ROOT, Checks, run  # noqa: E402

DIGITS = ROOT / "examples" / "digits"
check = Checks()

ALONE = """
import sys, tc_emit
p = tc_emit.emit(sys.argv[1], sys.argv[2])
assert p.manifest["name"] == "digits" and all(f.is_file() for f in p.files)
m = tc_emit.load(sys.argv[2])
assert len(m.kernels) == 5
try:
    m.run([[0]])
except tc_emit.RunError as problem:
    print(problem)
"""
README = """
import numpy as np, tc_emit
m = tc_emit.compile(sys.argv[1] + "/digits.onnx", cpu="native")
x = np.load(sys.argv[1] + "/pictures/7/input_0.npy")
print(m.run({"image": x})["probability"].argmax())
"""
NARROW = """
import numpy as np, onnx.parser, torch, tc_emit
m = tc_emit.compile(onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>g (bfloat16[2, 3] x) => (bfloat16[2, 3] y) { y = Neg(x) }'), name="narrow")
x = torch.arange(6, dtype=torch.bfloat16).reshape(3, 2).t()
print(np.array_equal(m.run(x)[0].astype(float), -x.double().numpy()))
"""


def alone(venv, tmp, environment):
    """What works without NumPy, without a compiler and with nothing on PATH but the environment."""
    version = run(venv / "bin" / "tc-emit", "--version", env=environment)
    check("the command", re.fullmatch(r"tc-emit [0-9.]+, operator set \d+\n", version.stdout), version)
    check("python -m tc_emit", run(venv / "bin" / "python", "-m", "tc_emit", "--version", env=environment).stdout == version.stdout)
    told = run(venv / "bin" / "python", "-c", ALONE, DIGITS / "digits.onnx", tmp / "out", env=environment)
    check("emit works without NumPy, run says what is missing", told.returncode == 0 and "pip install numpy" in told.stdout, told)
    same = run(ROOT / "build" / "tc-emit", "--check", DIGITS / "digits.onnx", "-o", tmp / "out")
    check("the program of the wheel writes the same bytes", same.returncode == 0, same.stdout)
    program = next(venv.rglob("site-packages/tc_emit/bin/tc-emit"))
    needs = run("readelf", "-d", program).stdout
    check("it needs no shared library", "NEEDED" not in needs, needs)
    data = ["lib/cmake/tc-emit/tc-emit-config.cmake", "share/man/man1/tc-emit.1", "share/bash-completion/completions/tc-emit"]
    check("manual page, completions and CMake package", all((venv / name).is_file() for name in data))
    stated = run(venv / "bin" / "python", "-c", "import tc_emit; print(tc_emit.__version__)", env=environment).stdout.strip()
    changelog = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    check("versions of module, command and changelog", version.stdout.split()[1] == stated + "," and stated == changelog, (stated, version.stdout, changelog))
    project = tmp / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(tc-emit REQUIRED)\n"
                                            f"tc_emit_add_model(digits MODEL {DIGITS}/digits.onnx SINGLE_FILE)\n")
    with_cmake = {**os.environ, "PATH": f"{venv}/bin:{os.environ['PATH']}"}  # an environment that is active
    made = run("cmake", "-S", project, "-B", project / "build", env=with_cmake)
    check("find_package finds the active environment", made.returncode == 0, made.stderr)
    made = run("cmake", "--build", project / "build", "--target", "digits_emit", env=with_cmake)
    check("and emits with it", made.returncode == 0 and (project / "build" / "tc-emit" / "digits" / "digits.c").is_file(), made.stderr)


def own_tests(venv, tmp, environment):
    """python/tests, against what is installed."""
    result = run(venv / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", ROOT / "python" / "tests", cwd=tmp, env=environment)
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", result.stdout.splitlines()[-1] if result.stdout else "")}
    check.passed += counts.get("passed", 0)
    check.failed += counts.get("failed", 0) + counts.get("error", 0)
    print(result.stdout[-3000:] if result.returncode else f"ok    pytest: {counts.get('passed')} tests")
    check("all of them ran", result.returncode == 0 and counts.get("passed", 0) > 40, result.stdout[-300:] + result.stderr[-300:])
    seven = run(venv / "bin" / "python", "-c", "import sys" + README, DIGITS, env=environment)
    check("the lines of the README recognise a picture", seven.stdout == "7\n", seven)


def torch_backend(venv, environment):
    """The example of a backend of torch.compile, which needs the large environment."""
    python = run(ROOT / "scripts" / "python_env", "nets").stdout.strip()
    module = next(venv.rglob("site-packages/tc_emit")).parent
    result = run(python, ROOT / "examples" / "torch_backend.py", env={**environment, "PYTHONPATH": str(module)})
    narrow = run(python, "-c", NARROW, env={**environment, "PYTHONPATH": str(module)})
    check("tensors of bfloat16, which NumPy does not have", narrow.stdout == "True\n", narrow)
    check("torch.compile runs what was emitted", result.returncode == 0 and "largest difference" in result.stdout, result.stderr[-400:])


def main():
    wheels = sorted((ROOT / "dist").glob("tc_emit-*.whl"))
    check("one wheel, for any Linux", len(wheels) == 1 and "manylinux" in wheels[0].name, wheels)
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        venv, environment = tmp / "venv", {**os.environ, "TC_EMIT_CACHE": str(tmp / "cache"), "PYTHONPATH": "", "TC_EMIT": ""}
        subprocess.run(["python3", "-m", "venv", venv], check=True)
        installed = run(venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", wheels[0])
        check("pip install dist/*.whl", installed.returncode == 0, installed.stderr)
        alone(venv, tmp, {**environment, "PATH": f"{venv}/bin"})
        # The pinned packages, seen from the clean environment.
        site = next(venv.glob("lib/python*/site-packages"))
        (site / "pinned.pth").write_text(sysconfig.get_path("purelib") + "\n")
        own_tests(venv, tmp, environment)
        if "TC_TEST_TURN" not in os.environ:
            torch_backend(venv, environment)
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
