"""The backend under ONNX's own test runner: some of its models, of every kind that the interface has."""
import os
import tempfile

import numpy as np
import onnx.backend.test
import onnx.helper
import pytest

import tc_emit
from tc_emit.onnx_backend import TcEmitBackend

os.environ.setdefault("ONNX_HOME", tempfile.mkdtemp())
CHOSEN = {f"test_{name}_cpu" for name in (
    "add_bcast", "gemm_all_attributes", "softmax_axis_1", "nonzero_example", "strnormalizer_nostopwords_nochangecase",
    "sequence_insert_at_back", "cast_FLOAT_to_BFLOAT16", "basic_conv_with_padding", "clip_example")}
for name, case in onnx.backend.test.BackendTest(TcEmitBackend, __name__).test_cases.items():
    for test in [t for t in dir(case) if t.startswith("test_")]:
        if test not in CHOSEN:  # the others would be thousands of lines that say "skipped"
            delattr(case, test)
    globals()[name] = case


def test_run_node():
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    y = TcEmitBackend.run_node(node, [np.array([-1, 2], np.float32)])
    assert y.y.tolist() == [0, 2] and y[0] is y.y


def test_sizes_of_the_inputs_are_taken(cache):
    from conftest import SCALE
    prepared = TcEmitBackend.prepare(SCALE)
    for n in (1, 2):
        y, z = prepared.run([np.ones((n, 2), np.float32), np.ones(2, np.float32)])
        assert y.shape == (n, 2) and z.tolist() == [[2, 2]] * n


def test_other_devices():
    assert not TcEmitBackend.supports_device("CUDA")
    with pytest.raises(tc_emit.RunError, match="not on CUDA"):
        TcEmitBackend.prepare(None, "CUDA")
