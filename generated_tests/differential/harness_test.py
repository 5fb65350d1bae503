#!/usr/bin/env python3
"""Tests of what judges the differential cases: that it can fail. Run it with `scripts/python_env base`."""
import pathlib
import re
import unittest

import numpy as np

import cases
import run


class Difference(unittest.TestCase):
    def test_floats(self):
        one = np.ones((3, 4), np.float32)
        self.assertEqual(run.difference(one * np.float32(1 + 1e-6), one), "")
        self.assertIn("relative error", run.difference(one * np.float32(1.0001), one))
        spike = np.zeros(100000, np.float32)
        spike[7] = 2e-4
        self.assertIn("at worst", run.difference(spike + 1, np.ones_like(spike)))
        self.assertIn("instead of", run.difference(one.T, one))
        self.assertIn("nan", run.difference(one * np.float32(np.nan), one))

    def test_infinities_agree_with_themselves(self):
        value = np.float32([np.inf, 1])
        self.assertEqual(run.difference(value, value), "")

    def test_integers_are_equal(self):
        self.assertIn("1 of 2", run.difference(np.int32([1, 2]), np.int32([1, 3])))


# Rows of the operator table without a case, and what tries them.
ELSEWHERE = {
    "newer than operator set 21: ONNX's suite": {"Swish", "SwiGLU", "BitCast", "CumProd", "TensorScatter", "RMSNormalization", "TreeEnsemble"},
    "no float tensors, or not in this operator set: ONNX's suite": {"OptionalHasElement", "OptionalGetElement", "SequenceConstruct", "Optional", "Scatter"},
    "ONNX Runtime wants a locale for it: ONNX's suite": {"StringNormalizer"},
    "training: ONNX's suite": {"Adagrad", "Adam", "Momentum"},
    "random numbers, judged by shape and type: ONNX's suite": {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial"},
    "not in ONNX Runtime for processors: unit tests": {"NhwcConv", "NhwcFusedConv", "GroupNorm", "SkipGroupNorm", "BiasSplitGelu", "BiasAdd", "BiasDropout", "BiasSoftmax"},
}


class Cases(unittest.TestCase):
    def test_every_row_has_a_case(self):
        table = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "operators.md").read_text()
        rows = re.findall(r"^\| (ai\.onnx[a-z.]*|com\.microsoft) \| (\w+) \|", table, re.MULTILINE)
        self.assertGreater(len(rows), 200)
        used, graphs = set(), [case.model(None).graph for case in cases.all_cases()]
        while graphs:
            for node in graphs.pop().node:
                used.add(node.op_type)
                graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        self.assertEqual({name for _, name in rows} - used, set.union(*ELSEWHERE.values()))

    def test_every_reference_says_something(self):
        for case in cases.all_cases():
            _, _, outputs = run.reference(case)
            for value in outputs:
                if value.dtype.kind == "f":
                    self.assertTrue(np.isfinite(value).all(), case.name)
                if not case.counted:  # nothing may be what is counted, and zero its sum
                    self.assertGreater(value.size, 0, case.name)
                    self.assertTrue(value.dtype.kind != "f" or value.any(), case.name)


if __name__ == "__main__":
    unittest.main()
