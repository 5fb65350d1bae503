"""The wheel and the .deb as somebody has them who has nothing else: in a chroot with a fresh Debian of this machine's version, first without a
compiler, then with one. Every check prints one line; the last line counts them. Needs root and debootstrap, and says so where they
are missing; the folders of Debian are kept in ~/.cache/tc-emit, so that only the first run fetches packages."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from checks import ROOT, Checks, run  # noqa: E402

DIGITS = ROOT / "examples" / "digits"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tc-emit"
BARE = ["python3", "python3-venv"]  # minbase has no Python
TOOLS = ["gcc", "libc6-dev", "make", "cmake"]
check = Checks()

WITHOUT_NUMPY = """
import sys, tc_emit
print(tc_emit.emit("/digits/digits.onnx", "/tmp/python").manifest["name"])
try:
    tc_emit.load("/tmp/python").run([[0]])
except tc_emit.RunError as problem:
    print(problem)
"""
RECOGNISES = """
import numpy as np, tc_emit
m = tc_emit.compile("/digits/digits.onnx")
print(m.run(np.load("/digits/pictures/7/input_0.npy"))[0].argmax())
"""
BACKEND = """
import onnx.backend.test, tc_emit.onnx_backend
tests = onnx.backend.test.BackendTest(tc_emit.onnx_backend.TcEmitBackend, __name__)
globals().update(tests.include("test_relu").include("test_softmax_axis").include("test_lstm").test_cases)
"""


def missing():
    """Why this cannot run here; None if it can."""
    if os.geteuid() != 0:
        return "a chroot needs root"
    if not shutil.which("debootstrap"):
        return "debootstrap is missing (apt-get install debootstrap)"
    return None if codename() else "this is no Debian, and the package is for the Debian that it was built on"


def codename():
    facts = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return facts.get("VERSION_CODENAME", "").strip('"') if facts.get("ID") == "debian" else ""


def must(*command):
    done = run(*command)
    if done.returncode:
        raise SystemExit(f"chroot: {' '.join(map(str, command))[:200]}: {done.stdout[-500:]}{done.stderr[-1000:]}")


def packed(name, make):
    """The archive of a Debian below CACHE; `make` fills a folder if there is none."""
    key = hashlib.sha256(" ".join([codename(), *BARE, *TOOLS, name]).encode()).hexdigest()[:12]
    archive = CACHE / f"chroot-{name}-{key}.tar"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            debian = pathlib.Path(folder) / "debian"
            make(debian)
            must("tar", "-C", debian, "-cf", f"{folder}/tar", ".")
            os.replace(f"{folder}/tar", archive)
    return archive


def bare(debian):
    must("debootstrap", "--variant=minbase", f"--include={','.join(BARE)}", codename(), debian)
    shutil.rmtree(debian / "var/cache/apt/archives")


def with_tools(debian):
    unpack(packed("bare", bare), debian)
    shutil.copy("/etc/resolv.conf", debian / "etc/resolv.conf")
    Debian(debian).must("apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends " + " ".join(TOOLS) + " && apt-get clean")


def unpack(archive, folder):
    folder.mkdir()
    must("tar", "-C", folder, "-xf", archive)


class Debian:
    """A folder with a Debian in it. Commands are lines of the shell, which see nothing of this machine's environment."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, line, path="/usr/sbin:/usr/bin:/sbin:/bin"):
        return run("chroot", self.folder, "/usr/bin/env", "-i", f"PATH={path}", "HOME=/root", "LC_ALL=C.UTF-8", "/bin/sh", "-c", line)

    def must(self, line):
        done = self(line)
        if done.returncode:
            raise SystemExit(f"chroot: {line[:200]}: {done.stdout[-500:]}{done.stderr[-1000:]}")


def with_files(archive, folder, wheel, numpy, deb):
    unpack(archive, folder)
    for path in (wheel, numpy, deb):
        shutil.copy(path, folder / path.name)
    shutil.copytree(DIGITS, folder / "digits")
    shutil.copytree(ROOT / "examples" / "cmake_project", folder / "project", ignore=shutil.ignore_patterns("build", "third_party"))
    return Debian(folder)


def venv(debian, *wheels):
    debian.must("python3 -m venv /venv && /venv/bin/pip install --quiet --no-index --no-deps " + " ".join(f"/{w.name}" for w in wheels))
    return lambda line: debian(line, path="/venv/bin:/usr/bin:/bin")


def same_bytes(debian, name):
    same = run(ROOT / "build" / "tc-emit", "--check", "--quiet", DIGITS / "digits.onnx", "-o", debian.folder / name)
    check(f"{name}: the bytes that are written elsewhere, too", same.returncode == 0, same.stdout)


def nothing_but_python(debian, wheel, numpy):
    shell = venv(debian, wheel)
    made = shell("tc-emit /digits/digits.onnx -o /wheel")
    check("the wheel writes a package in a bare Debian", made.returncode == 0 and "wrote     /wheel" in made.stdout, made)
    same_bytes(debian, "wheel")
    doctor = shell("tc-emit doctor")
    check("doctor says that compiler and make are missing, and how to have them", doctor.returncode == 7 and "missing  C compiler" in doctor.stdout and "apt install make" in doctor.stdout, doctor)
    for command in ("verify", "run", "bench"):
        told = shell(f"tc-emit {command} /digits/digits.onnx")
        check(f"{command} without make says so", told.returncode == 7 and "no make on this machine" in told.stderr and "apt install" in told.stderr, told)
    (debian.folder / "alone.py").write_text(WITHOUT_NUMPY)
    told = shell("python /alone.py")
    check("the module emits without NumPy, and says what run() needs", told.returncode == 0 and told.stdout.startswith("digits\n") and "pip install numpy" in told.stdout, told)
    debian.must(f"/venv/bin/pip install --quiet --no-index /{numpy.name}")
    (debian.folder / "seven.py").write_text(RECOGNISES)
    told = shell("python /seven.py")
    check("and with NumPy that a compiler is missing", told.returncode and "CompilerMissing" in told.stderr and "apt install" in told.stderr, told.stderr)
    check("what failed left nothing in the cache", not [p for p in (debian.folder / "root/.cache").rglob("*") if p.suffix in (".so", ".tmp")])


def installed_by_dpkg(debian, deb):
    told = debian(f"dpkg -i /{deb.name}")
    check("dpkg -i needs nothing that Debian does not have already", told.returncode == 0, told)
    made = debian("tc-emit /digits/digits.onnx -o /deb")
    check("the program of the package runs", made.returncode == 0, made)
    same_bytes(debian, "deb")
    there = [name for name in ("usr/lib/cmake/tc-emit/tc-emit-config.cmake", "usr/share/bash-completion/completions/tc-emit") if (debian.folder / name).is_file()]
    check("CMake package and completions", len(there) == 2, there)
    debian("dpkg -r tc-emit")
    check("dpkg -r takes all of it away", not list(debian.folder.glob("usr/**/*tc-emit*")), list(debian.folder.glob("usr/**/*tc-emit*")))


def with_a_compiler(debian, wheel, numpy, deb):
    shell = venv(debian, wheel, numpy)
    (debian.folder / "seven.py").write_text(RECOGNISES)
    seven = shell("python /seven.py")
    check("the module compiles and runs", seven.stdout == "7\n", seven)
    top = shell("tc-emit run --inputs image=/digits/pictures/3/input_0.npy --print-top 1 /digits/digits.onnx")
    check("tc-emit run", "row 0: 3 (" in top.stdout, top)
    verified = shell("tc-emit verify /digits/digits.onnx")
    check("verify, with the interpreter where there is no ONNX Runtime", verified.returncode == 0 and "PASS" in verified.stdout and "interpreter" in verified.stdout + verified.stderr, verified)
    check("doctor is content", shell("tc-emit doctor").returncode == 0)
    every_command(debian, shell)
    backend_of_onnx(debian, shell)
    project(shell, "the wheel", "/by_wheel")
    debian.must(f"dpkg -i /{deb.name}")
    project(debian, "the .deb", "/by_deb")


def every_command(debian, shell):
    """What needs a compiler or shows a package, each as the documentation calls it; what is wrong leaves nothing."""
    model, out = "/digits/digits.onnx", debian.folder / "all"
    listed = shell(f"tc-emit --list-outputs {model}").stdout.split()
    shell(f"tc-emit --quiet {model} -o /all")
    check("--list-outputs", sorted(listed) == sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()), listed)
    told = shell("make -s -C /all digits_profile libdigits.so && /all/digits_profile --bench 0.05 --profile --trace /all/t.json")
    check("the program's --profile and --trace", told.returncode == 0 and "kernel" in told.stdout and "traceEvents" in (out / "t.json").read_text(), told)
    told = shell("python -c 'import tc_emit; print(tc_emit.load(\"/all\").build())'")
    check("a library that make has built is loaded", told.stdout == "/all/libdigits.so\n", told)
    for words, wanted in (("run --profile --seconds 0.05", "kernel"), ("verify --per-node", "none is off"), ("bench --seconds 0.05", "median"), ("run --target cuda --fill-mode ones", "probability"),
                          ("diff /all", "/all"), ("report -o /page.html", "/page.html"), ("reduce --keep true -o /small.onnx", "/small.onnx")):
        told = shell(f"tc-emit {words} {model}")
        right = 7 if "cuda" in words else 0  # there is no C++ compiler, which is what it says
        check(f"tc-emit {words}", told.returncode == right and (wanted in told.stdout if right == 0 else "no C++ compiler 'c++' on this machine" in told.stderr), told)
    told = shell(f"tc-emit --quiet {model} -o /shown; tc-emit --progress plain {model} -o /shown > /dev/null")
    check("progress as lines where it is asked for, nothing else in a pipe", told.returncode == 0 and told.stdout == "" and len(re.findall(r"digits.onnx: \w+ [\d.]+ s\n", told.stderr)) == len(told.stderr.splitlines()) > 4, told)
    broken = shell(f"head -c 1000 {model} > /torn.onnx; tc-emit /torn.onnx -o /torn")
    check("half a model is refused, and nothing is written", broken.returncode == 1 and "error[TC0" in broken.stderr and not (debian.folder / "torn").exists(), broken)
    left = [str(p) for p in (debian.folder / "tmp").iterdir()]
    check("nothing is left in /tmp", not left, left)


def backend_of_onnx(debian, shell):
    """ONNX's own tests of backends, as docs/python.md has them."""
    debian.must("/venv/bin/pip install --quiet --no-index --find-links /wheels onnx")
    (debian.folder / "test_onnx.py").write_text(BACKEND)
    told = shell("cd / && python -m unittest test_onnx")
    ran = re.search(r"Ran (\d+) tests", told.stderr)
    check("ONNX's own test runner, with tc-emit as its backend", told.returncode == 0 and ran and int(ran[1]) > 4, told.stderr[-600:])


def project(shell, what, folder):
    """The example finds the package where CMake looks by itself, and recognises its picture; the vendored package is what its model gives."""
    shell("tc-emit --quiet --name digits --cpu generic /digits/digits.onnx -o /project/third_party/digits")
    made = shell(f"cmake -S /project -B {folder} && cmake --build {folder} && cd {folder} && ctest --output-on-failure")
    check(f"find_package(tc-emit) with {what}", made.returncode == 0 and "0 tests failed out of 2" in made.stdout, made.stdout[-300:] + made.stderr[-600:])


def wheels():
    """The folder with the wheels of onnx and of what it needs, as base.txt pins them; numpy's is the first of the result."""
    pins = ROOT / "generated_tests/python/base.txt"
    folder = CACHE / "downloads" / f"chroot-{hashlib.sha256(pins.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            must(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", f"{fresh}/wheels", "--constraint", pins, "onnx", "numpy")
            folder.parent.mkdir(exist_ok=True)
            os.replace(f"{fresh}/wheels", folder)
    return next(folder.glob("numpy-*.whl")), folder


def debian_package(folder):
    must("cmake", "--build", ROOT / "build")
    must("cpack", "--config", ROOT / "build" / "CPackConfig.cmake", "-B", folder)
    return next(folder.glob("*.deb"))


def main():
    if why := missing():
        print(f"note  nothing was tried: {why}\n0 passed, 0 failed")
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run([ROOT / "scripts" / "wheel"], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = (ROOT / "dist").glob("tc_emit-*.whl")
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        numpy, others = wheels()
        files = (wheel, numpy, debian_package(tmp / "deb"))
        first = with_files(packed("bare", bare), tmp / "bare", *files)
        nothing_but_python(first, *files[:2])
        installed_by_dpkg(first, files[2])
        second = with_files(packed("tools", with_tools), tmp / "tools", *files)
        shutil.copytree(others, second.folder / "wheels")
        with_a_compiler(second, *files)
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
