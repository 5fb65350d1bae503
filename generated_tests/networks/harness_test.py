#!/usr/bin/env python3
"""Tests of what judges the networks: that it can fail. Run it with `scripts/python_env base`."""
import unittest

import numpy as np

import judge


class Judges(unittest.TestCase):
    reference = np.float32([[1, 2, 4], [3, 1, 0]])

    def test_error_is_relative_to_the_norm(self):
        self.assertAlmostEqual(judge.relative_error(self.reference * np.float32(1.001), self.reference), 1e-3, places=6)
        self.assertEqual(judge.relative_error(self.reference, self.reference), 0)

    def test_other_shape_type_or_nan_is_infinitely_wrong(self):
        for value in (self.reference[:1], self.reference.astype(np.float64), self.reference * np.float32(np.nan)):
            self.assertEqual(judge.relative_error(value, self.reference), float("inf"))

    def test_choice(self):
        self.assertTrue(judge.same_choice(self.reference + 1, self.reference))
        self.assertFalse(judge.same_choice(self.reference[:, ::-1], self.reference))
        tie = np.float32([[1, 1.000001, 0]])
        self.assertTrue(judge.same_choice(np.float32([[1.000001, 1, 0]]), tie))
        near = np.float32([[1, 1.005, 0]])
        self.assertFalse(judge.same_choice(np.float32([[1.005, 1, 0]]), near))
        self.assertTrue(judge.same_choice(np.float32([[1.005, 1, 0]]), near, noise=1e-2))


if __name__ == "__main__":
    unittest.main()
