#!/usr/bin/env python3
"""Tests of what judges the differential cases: that it can fail. Run it with `scripts/python_env base`."""
import pathlib
import re
import unittest

import numpy as np
import onnx
import onnx.backend.test

import cases
import run


ROOT = pathlib.Path(__file__).resolve().parents[2]


class Distribution(unittest.TestCase):
    def test_other_numbers_of_one_kind_agree(self):
        rng = np.random.default_rng(1)
        self.assertEqual(run.distribution_difference(rng.normal(2, 3, (40, 500)), rng.normal(2, 3, (40, 500))), "")
        self.assertEqual(run.distribution_difference(rng.integers(0, 2, 20000), rng.integers(0, 2, 20000)), "")

    def test_other_kinds_do_not(self):
        rng = np.random.default_rng(1)
        normal = rng.normal(0, 1, 20000)
        for other in (rng.normal(0.1, 1, 20000), rng.normal(0, 1.1, 20000), rng.uniform(-1.7, 1.7, 20000), np.zeros(20000), normal[:100], normal * np.nan):
            self.assertNotEqual(run.distribution_difference(other, normal), "")


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


# Rows of the operator table without a case: those that models of ONNX's suite try, which pass, and those that unit tests do.
SUITE = {"Swish", "BitCast", "CumProd", "TensorScatter", "RMSNormalization", "TreeEnsemble",  # newer than operator set 21
         "OptionalHasElement", "OptionalGetElement", "SequenceConstruct", "Optional", "Scatter",  # no float tensors, or not in it
         "Adagrad", "Adam", "Momentum"}  # training
UNIT_TESTS = {"SwiGLU",  # in no model of it
              "DictVectorizer", "CastMap",  # of maps
              "NhwcConv", "NhwcFusedConv", "GroupNorm", "SkipGroupNorm", "BiasSplitGelu", "BiasAdd", "BiasDropout", "BiasSoftmax"}  # not in ONNX Runtime for processors


def operators_of_suite():
    """The operators of the models that pass, as the table of the suite says."""
    passed = re.findall(r"^\| `([^`]+)` \| passed \|", (ROOT / "docs" / "onnx_suite.md").read_text(), re.MULTILINE)
    data = pathlib.Path(onnx.backend.test.__file__).parent / "data"
    names, graphs = set(), []
    for label in passed:
        path = data / label / "model.onnx"
        if path.exists():
            graphs.append(onnx.load(path).graph)
    while graphs:
        for node in graphs.pop().node:
            names.add(node.op_type)
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return names


class Cases(unittest.TestCase):
    def test_every_row_has_a_case(self):
        table = (ROOT / "docs" / "operators.md").read_text()
        rows = re.findall(r"^\| (ai\.onnx[a-z.]*|com\.microsoft) \| (\w+) \|", table, re.MULTILINE)
        self.assertGreater(len(rows), 200)
        used, graphs = set(), [case.model(None).graph for case in cases.all_cases()]
        while graphs:
            for node in graphs.pop().node:
                used.add(node.op_type)
                graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        self.assertEqual({name for _, name in rows} - used, SUITE | UNIT_TESTS)

    def test_rows_without_a_case_are_tried_elsewhere(self):
        self.assertEqual(SUITE - operators_of_suite(), set())
        tests = "".join(path.read_text() for path in (ROOT / "ir" / "ops").glob("*_test.cc"))
        self.assertEqual({name for name in UNIT_TESTS if f'"{name}"' not in tests}, set())

    def test_every_reference_says_something(self):
        for case in cases.all_cases():
            _, _, outputs = run.reference(case)
            for value in outputs:
                if value.dtype.kind == "f" and not case.nothing:
                    self.assertTrue(np.isfinite(value).all(), case.name)
                if not case.counted and not case.nothing:  # nothing may be what is counted, and zero its sum
                    self.assertGreater(value.size, 0, case.name)
                    self.assertTrue(value.dtype.kind != "f" or value.any(), case.name)


if __name__ == "__main__":
    unittest.main()
