"""compile, load and run: NumPy in and out."""
import os
import pathlib
import subprocess
import threading

import numpy as np
import onnx.parser
import pytest

import tc_emit
from conftest import SCALE, model
from tc_emit import _tool
from tc_emit._model import DeviceArray

DIGITS = pathlib.Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"

X = np.arange(6, dtype=np.float32).reshape(3, 2)
W = np.array([2, 10], np.float32)


def check(outputs, x=X):
    assert np.array_equal(outputs["y"], x * W) and np.array_equal(outputs[1], x * W + W)


def test_inputs_come_by_name_in_order_or_as_keywords(scale):
    for outputs in (scale.run({"w": W, "x": X}), scale.run([X, W]), scale.run(x=X, w=W), scale((X, W))):
        check(outputs)
    assert outputs.names == ("y", "z") and list(dict(outputs)) == ["y", "z"] and len(list(outputs)) == 2
    with pytest.raises(KeyError, match="outputs are y, z"):
        outputs["v"]


def test_results_are_new_arrays(scale):
    first, second = scale.run([X, W]), scale.run([X + 1, W])
    check(first)
    check(second, X + 1)


def runs_with_rows(m, *sizes):
    for n in sizes:
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        outputs = m.run([x, W])
        assert outputs["y"].shape == (n, 2)
        check(outputs, x)


def test_sizes_that_the_arrays_choose():
    m = tc_emit.compile(SCALE, dims={"n": (1, 5)}, name="sized")
    assert m.sizes == {"n": (1, 5)} and [p.name for p in m.inputs] == ["x", "w"] and m.inputs[0].counted == ((0, "n"),)
    runs_with_rows(m, 5, 1, 3)
    with pytest.raises(tc_emit.RunError, match="n is from 1 to 5"):
        m.run([np.zeros((6, 2), np.float32), W])
    with pytest.raises(tc_emit.RunError, match="shape"):
        m.run([np.zeros((3, 3), np.float32), W])


def test_sizes_without_an_upper_bound():
    m = tc_emit.compile(SCALE, dims={"n": (1, None)}, name="endless")
    assert m.sizes == {"n": (1, None)}
    runs_with_rows(m, 5, 1, 3000, 7)
    with pytest.raises(tc_emit.RunError, match="n is 1 or more"):
        m.run([np.zeros((0, 2), np.float32), W])


def test_views_that_are_not_contiguous(scale):
    check(scale.run([np.asfortranarray(X), W]))
    check(scale.run([np.repeat(X, 2, 0)[::2], np.stack([W, W], 1)[:, 0]]))


def test_dlpack(scale):
    class Tensor:  # speaks DLPack and nothing else
        __dlpack__, __dlpack_device__ = X.__dlpack__, X.__dlpack_device__

    check(scale.run([Tensor(), W]))
    assert np.array_equal(np.from_dlpack(scale.run([X, W])["y"]), X * W)


def test_lists_and_threads(scale):
    results = {}

    def work(k):
        for _ in range(50):
            results.setdefault(k, []).append(np.array_equal(scale.run([X + k, W])["y"], (X + k) * W))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(all(r) and len(r) == 50 for r in results.values()) and len(results) == 4


@pytest.mark.parametrize("inputs, message", [
    ([X], "the model has 2 inputs, not 1"), ({"x": X}, "inputs are missing: w"), ({"x": X, "w": W, "v": W}, "there are no inputs v"),
    ([X.astype(np.float64), W], r"astype\('float32'\)"), ([X[:2], W], r'input "x" float \[3, 2\] has shape \[2, 2\]'),
    ([object(), W], "has type object"), (None, "inputs are missing: x, w")])
def test_inputs_that_do_not_fit(scale, inputs, message):
    with pytest.raises(tc_emit.RunError, match=message):
        scale.run(inputs)


def test_all_problems_of_inputs_at_once(scale):
    with pytest.raises(tc_emit.RunError, match='"x".*"w"'):
        scale.run([X.astype(int), W[:1]])


def test_ports_kernels_and_source(scale):
    assert [str(p) for p in scale.inputs] == ['"x" float [3, 2]', '"w" float [2]']
    assert len(scale.kernels) == len(list(scale.kernels)) > 0 and scale.kernels.schedule(scale.kernels[0])
    for name in scale.kernels:
        assert f"void scale_{name}(" in scale.source(name)
    assert "scale_run(" in scale.source("scale.h")
    assert scale.manifest["name"] == "scale" and scale.manifest["files"]
    with pytest.raises(tc_emit.UsageError, match="there is no kernel or file 'conv'; kernels are"):
        scale.source("conv")


def test_source_of_one_file(tmp_path):
    tc_emit.emit(SCALE, tmp_path / "out", dims={"n": 3}, single_file=True, name="scale")
    made = tc_emit.load(tmp_path / "out")
    for name in made.kernels:
        text = made.source(name)
        assert text.startswith("/*") and text.count(f"scale_{name}(") == 1 and text.endswith("}\n")


def test_what_is_built_is_kept(scale, cache):
    before = sorted(cache.iterdir())
    again = tc_emit.compile(SCALE, dims={"n": 3}, name="scale")
    assert again.folder == scale.folder and sorted(cache.iterdir()) == before and again.build() == scale.build()
    check(again.run([X, W]))


def test_load_takes_the_library_of_the_folder(tmp_path, monkeypatch):
    out = tmp_path / "out"
    tc_emit.emit(SCALE, out, dims={"n": 3})
    name = tc_emit.load(out).name
    subprocess.run(["make", "-s", "-C", out, f"lib{name}.so"], check=True)
    monkeypatch.setenv("PATH", "/nowhere")  # there is no compiler any more
    check(tc_emit.load(out).run([X, W]))
    assert tc_emit.load(out).build() == out / f"lib{name}.so"
    os.utime(out / f"{name}.c", (4e9, 4e9))
    with pytest.raises(tc_emit.CompilerMissing):  # the text is newer
        tc_emit.load(out).run([X, W])


def test_types_strings_and_sizes_that_depend_on_data():
    made = tc_emit.compile(model("g (string[3] s, float16[4] h, bool[2] b) => (string[3] t, int64[1,k] nz, float16[4] a, bool[2] c) {"
                                 " t = Identity(s)\n nz = NonZero(h)\n a = Abs(h)\n c = Not(b) }"))
    h, words = np.array([0, -1, 0, 2.5], np.float16), ["a", "Grüße", ""]
    for s in (words, np.array(words), np.array(words, object), [w.encode() for w in words]):
        y = made.run([s, h, np.array([True, False])])
        assert y["t"].tolist() == words and y["nz"].tolist() == [[1, 3]] and y["nz"].dtype == np.int64
        assert y["a"].tolist() == [0, 1, 0, 2.5] and y["a"].dtype == np.float16 and y["c"].tolist() == [False, True]
    assert made.run([words, np.zeros(4, np.float16), np.array([True, False])])["nz"].shape == (1, 0)
    assert [p.name for p in made.outputs] == ["t", "nz", "a", "c"]


def test_scalars_bfloat16_and_indices_out_of_range():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    made = tc_emit.compile(model("g (bfloat16[3] x, int64 i) => (bfloat16 y) { y = Gather<axis=0>(x, i) }"))
    x = np.array([1, 2, 3], ml_dtypes.bfloat16)
    assert made.run([x, 1])["y"] == 2 and made.run([x, np.int64(2)])["y"].dtype == ml_dtypes.bfloat16
    with pytest.raises(tc_emit.RunError, match="range"):
        made.run([x, 7])


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_numbers_of_few_bits(name):
    """Whatever lies in the upper bits of the bytes of ml_dtypes, which has no say."""
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    made = tc_emit.compile(onnx.parser.parse_model(f'<ir_version: 13, opset_import: ["" : 25]> g ({name}[16] x) => (float[16] y, {name}[16] z) {{ y = Cast<to = 1>(x)\n z = Identity(x) }}'))
    for upper in (0, 0x30, 0xF0):
        x = (np.arange(16) & (15 if "4" in name else 3) | upper).astype(np.uint8).view(dtype)
        y = made.run(x)
        assert y["y"].tolist() == x.astype(np.float32).tolist() == y["z"].astype(np.float32).tolist()


def test_states_of_few_bits():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    m = tc_emit.compile(onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (int4[3] x, int4[3] last) => (float[3] y, int4[3] next) { y = Cast<to = 1>(last)\n next = Identity(x) }'),
                        states={"last": "next"})
    x = np.array([-8, 7, -1], ml_dtypes.int4)
    assert m.run(x)["y"].tolist() == [0, 0, 0] and m.run(x)["y"].tolist() == [-8, 7, -1]
    assert m.states["last"].tolist() == [-8, 7, -1]
    m.states["last"][:] = np.array([1, -2, 3], ml_dtypes.int4)
    assert m.run(x)["y"].tolist() == [1, -2, 3]


def test_weights_outside_of_the_library(tmp_path, cache):
    text = "g (float[4,32] x) => (float[4,32] y) <float[32,32] w = {%s}> { y = MatMul(x, w) }" % ", ".join(str(i % 7 - 3) for i in range(1024))
    x, w = np.arange(128, dtype=np.float32).reshape(4, 32), (np.arange(1024) % 7 - 3).reshape(32, 32)
    for target in ("c", "cuda"):
        made = tc_emit.compile(model(text), name="m", target=target, weights="external")
        np.testing.assert_array_equal(made.run(x)["y"], x @ w)
        assert made.bench(0.02).runs > 0
        out = tmp_path / target
        tc_emit.emit(model(text), out, name="m", target=target, weights="external")
        blob = (out / "m_weights.bin").read_bytes()
        (out / "m_weights.bin").write_bytes(blob[:-1])
        with pytest.raises(tc_emit.RunError, match="m_weights.bin: these weights do not belong to this code"):
            tc_emit.load(out).run(x)


def test_bench(scale):
    timing = scale.bench(0.05)
    assert timing.runs > 0 and 0 < timing.min_ms <= timing.median_ms <= timing.p99_ms


def test_operators_of_ones_own(tmp_path):
    ops = tmp_path / "my.tc"
    ops.write_text("op my.Shift(x: f32[N], by: int) -> y: f32[N - by]\n  y[i] = x[i + by] - x[i]\n")
    text = '<ir_version: 10, opset_import: ["" : 21, "my" : 1]>\ng (float[5] x) => (float[3] y) { y = my.Shift <by = 2> (x) }\n'
    shift = tmp_path / "shift.onnxtxt"
    shift.write_text(text)
    for given in (ops, [str(ops)]):
        y = tc_emit.compile(shift, ops=given).run(np.array([1, 2, 4, 8, 16], np.float32))
        np.testing.assert_array_equal(y["y"], [3, 6, 12])
    ops.write_text("op my.Shift(x: f32[N], by: int) -> y: f32[N]\n  y[i] = z[i]\n")
    with pytest.raises(tc_emit.ModelRejected, match="my.tc:2:10: no tensor is called 'z' here"):
        tc_emit.compile(shift, ops=ops)


def test_schedules_and_passes_of_ones_own(tmp_path):
    text = _tool.checked(["emit", "--quiet", "--cpu", "x86-64-v3", "--write-schedules", str(tmp_path / "s.tc"), "--", str(DIGITS)])[0]
    assert text == "" and (tmp_path / "s.tc").read_text()
    same = tc_emit.emit(DIGITS, tmp_path / "same", cpu="x86-64-v3", schedules=tmp_path / "s.tc").manifest
    plain = tc_emit.emit(DIGITS, tmp_path / "plain", cpu="x86-64-v3").manifest
    assert [k["name"] for k in same["kernels"]] == [k["name"] for k in plain["kernels"]]
    unfused = tc_emit.emit(DIGITS, tmp_path / "unfused", cpu="x86-64-v3", disable_pass=["fuse_ops", "convert_layout"]).manifest
    assert len(unfused["steps"]) > len(plain["steps"])
    with pytest.raises(tc_emit.TcEmitError, match="none.jsonl"):
        tc_emit.emit(DIGITS, tmp_path / "tuned", cpu="x86-64-v3", records=tmp_path / "none.jsonl")


def test_verify():
    result = tc_emit.verify(SCALE, dims={"n": 3}, against="interpreter", seed=3)
    assert result.against == "the interpreter" and result.report.count("PASS") == 2


DECODER = """<ir_version: 8, opset_import: ["" : 18]>
decoder (float[1, "past", 2] past, float[1, "seq", 2] x, float[1, "total", 2] mask) => (float[1, 2] y, float[1, "total", 2] present) {
  present = Concat <axis = 1> (past, x)
  seen = Mul (present, mask)
  axis = Constant <value = int64[1] {1}> ()
  y = ReduceSum <keepdims = 0> (seen, axis)
}
"""


@pytest.mark.parametrize("target", [{"cpu": "generic"}, {"target": "cuda"}], ids=["c", "cuda"])
def test_states_grow_are_rewound_and_reset(tmp_path, target):
    path = tmp_path / "decoder.onnx"
    onnx.save(onnx.parser.parse_model(DECODER), path)
    m = tc_emit.compile(path, dims={"seq": (1, 4), "past": (0, 8), "total": "past+seq"}, states={"past": "present"}, **target)
    assert [p.name for p in m.inputs] == ["x", "mask"] and [p.name for p in m.outputs] == ["y"] and m.sizes == {"seq": (1, 4)}
    x = np.arange(24, dtype=np.float32).reshape(1, 12, 2)

    def run(a, b, total):
        return m.run([x[:, a:b], np.ones((1, total, 2), np.float32)])["y"]

    assert np.array_equal(run(0, 3, 3), x[:, 0:3].sum(1))
    assert np.array_equal(run(3, 4, 4), x[:, 0:4].sum(1))
    with pytest.raises(tc_emit.RunError, match="not 5"):
        run(4, 5, 4)
    m.rewind(2)
    assert np.array_equal(m.states["past"], x[:, 0:2]) and m.states["past"].base is not None
    assert np.array_equal(run(6, 10, 6), x[:, 0:2].sum(1) + x[:, 6:10].sum(1))
    with pytest.raises(tc_emit.RunError, match="no room"):
        run(0, 4, 10)
    assert np.array_equal(run(0, 2, 8), x[:, 0:2].sum(1) * 2 + x[:, 6:10].sum(1))
    with pytest.raises(tc_emit.RunError, match="fewer"):
        m.rewind(9)
    m.reset()
    assert np.array_equal(run(5, 6, 1), x[:, 5:6].sum(1))


def test_arrays_of_a_gpu_say_where_they_are():
    a = DeviceArray((1, 3, 2), np.dtype(np.float32), (64, 8, 4), 4096)
    assert a.__cuda_array_interface__ == {"shape": (1, 3, 2), "typestr": "<f4", "data": (4096, False), "strides": (64, 8, 4), "version": 3}
    assert DeviceArray((0, 2), np.dtype(np.int64), (16, 8), 4096).__cuda_array_interface__["data"] == (0, False)


def test_packages_without_states_say_so(scale):
    for call in (scale.reset, lambda: scale.rewind(1), lambda: scale.states):
        with pytest.raises(tc_emit.UsageError, match="no states"):
            call()
