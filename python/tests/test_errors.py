"""What goes wrong: exceptions with diagnostics, the ways out, and nothing half written."""
import os
import stat

import numpy as np
import pytest

import tc_emit
from conftest import SCALE, model


def test_a_model_that_needs_dims(tmp_path):
    with pytest.raises(tc_emit.ModelRejected) as caught:
        tc_emit.emit(SCALE, tmp_path / "out")
    found = caught.value.diagnostics[0]
    assert found.code.startswith("TC0") and found.severity == "error" and "dim" in " ".join(found.notes) + found.message
    assert caught.value.exit_code == 1 and found.message in str(caught.value) and not (tmp_path / "out").exists()


def test_every_problem_has_its_node(tmp_path):
    text = tmp_path / "m.onnxtxt"
    text.write_text('<ir_version: 8, opset_import: ["" : 17]>\ng (float[2] x) => (float[2] y) { [first] t = Relux(x)\n [second] y = Relux(t) }\n')
    with pytest.raises(tc_emit.TcEmitError) as caught:
        tc_emit.compile(text)
    assert {(d.node, d.op) for d in caught.value.diagnostics} == {("first", "Relux"), ("second", "Relux")}


@pytest.mark.parametrize("options, message", [
    ({"cpu": "znver"}, "did you mean 'znver4'"), ({"frob": 1}, "there is no option 'frob'; known: target, cpu"),
    ({"dims": {"n": ["three"]}}, "option 'dims' cannot be"), ({"dims": [3]}, "option 'dims' cannot be"), ({"name": "int"}, "--name 'int' is a word"),
    ({"target": "cuda", "cpu": "generic"}, "--arch"), ({"input_shapes": {"x": 3}}, "option 'input_shapes'")])
def test_options_that_make_no_sense(tmp_path, options, message):
    with pytest.raises(tc_emit.UsageError, match=message):
        tc_emit.emit(SCALE, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given, error", [("none.onnx", tc_emit.TcEmitError), (b"no model", tc_emit.ModelRejected), (3, tc_emit.UsageError)])
def test_no_model(tmp_path, given, error):
    with pytest.raises(error):
        tc_emit.emit(given, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_that_are_no_packages(tmp_path):
    with pytest.raises(tc_emit.FileError, match="tc_emit.emit"):
        tc_emit.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(tc_emit.FileError, match="another generator"):
        tc_emit.load(tmp_path)
    tc_emit.emit(SCALE, tmp_path, dims={"n": 1}, name="m")
    (tmp_path / "m.c").unlink()
    with pytest.raises(tc_emit.FileError, match="it lacks m.c"):
        tc_emit.load(tmp_path)


def test_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    made = tc_emit.compile(model("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    assert made.kernels and made.source(made.kernels[0])
    with pytest.raises(tc_emit.CompilerMissing, match="none of cc, gcc, clang is on PATH. Debian: apt install gcc make"):
        made.run([np.zeros(2, np.float32)])
    with pytest.raises(tc_emit.CompilerMissing, match="no make on this machine"):
        tc_emit.verify(SCALE, dims={"n": 1}, against="interpreter")
    monkeypatch.setenv("CC", "mycc")
    with pytest.raises(tc_emit.CompilerMissing, match="CC is 'mycc', which is not on PATH"):
        made.run([np.zeros(2, np.float32)])


@pytest.mark.parametrize("options", [{"seconds": -1}, {"seconds": float("nan")}, {"threads": -1}])
def test_a_bench_that_makes_no_sense(options):
    with pytest.raises(tc_emit.UsageError, match="seconds and a number of threads"):
        tc_emit.compile(SCALE, dims={"n": 1}).bench(**options)


def test_a_compiler_that_fails(tmp_path, monkeypatch, cache):
    compiler = tmp_path / "mycc"
    compiler.write_text("#!/bin/sh\necho it burns >&2\nexit 3\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(tc_emit.ToolFailed, match="it burns"):
        tc_emit.compile(model("g (float[2] x) => (float[2] y) { y = Exp(x) }"))
    assert not [p for p in cache.rglob("build-*")] and not list(cache.glob("emit-*"))


def test_no_program(monkeypatch, tmp_path):
    monkeypatch.setenv("TC_EMIT", str(tmp_path / "none"))
    with pytest.raises(tc_emit.FileError, match="TC_EMIT"):
        tc_emit.emit(SCALE, tmp_path / "out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written(monkeypatch):
    monkeypatch.setenv("TC_EMIT_CACHE", "/proc/none")
    with pytest.raises(tc_emit.FileError, match="TC_EMIT_CACHE"):
        tc_emit.compile(SCALE, dims={"n": 1})


def test_emit_gives_files_and_warnings(tmp_path):
    package = tc_emit.emit(SCALE, tmp_path / "out", dims={"n": 1}, cpu="x86-64-v3", fp="strict", opt_level=1)
    assert package.manifest["cpu"] == "x86-64-v3" and all(f.is_file() for f in package.files) and package.warnings == ()
