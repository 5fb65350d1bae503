#!/usr/bin/env python3
"""Tests of the driver of CUDA on the CPU: what it takes for right has said so."""
import subprocess
import unittest

import check


def ended(code, out="", err=""):
    return subprocess.CompletedProcess([], code, out, err)


class Judging(unittest.TestCase):
    def test_a_program_without_the_checker_is_not_checked(self):
        self.assertIsNone(check.found_nothing(ended(0, "PASS", "cuda_on_cpu_check: nothing found\n")))
        self.assertTrue(check.found_nothing(ended(0, "PASS")))
        self.assertTrue(check.found_nothing(ended(0)))
        self.assertIn("race", check.found_nothing(ended(66, "PASS", "race at bugs.cu:7")))

    def test_a_failure_without_a_word_is_told(self):
        self.assertTrue(check.wrong_sample(ended(0)))
        self.assertTrue(check.wrong_sample(ended(1)))
        self.assertTrue(check.wrong_sample(ended(0, "PASS\nFAIL")))
        self.assertIsNone(check.wrong_sample(ended(0, "PASS")))
        self.assertTrue(check.not_found(ended(0), "race", "kernel"))
        self.assertTrue(check.not_found(ended(66), "race", "kernel"))


if __name__ == "__main__":
    unittest.main()
