#!/usr/bin/env python3
"""Tests of the harness: that it can fail. Run it with `scripts/python_env base`."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

import cases
import compare
import report
import run
import toolchain


class Difference(unittest.TestCase):
    one = np.ones((2, 3), np.float32)

    def test_equal_values_pass(self):
        self.assertEqual(compare.difference(self.one, self.one * (1 + 5e-4)), "")
        self.assertEqual(compare.difference(np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf])), "")

    def test_other_shape_type_or_number_fails(self):
        self.assertIn("shape", compare.difference(self.one.ravel(), self.one))
        self.assertIn("type", compare.difference(self.one.astype(np.float64), self.one))
        self.assertIn("first [0]", compare.difference(self.one * 1.01, self.one))
        self.assertIn("differ", compare.difference(np.float32([np.nan]), np.float32([0])))

    def test_shapes_only_looks_at_no_number(self):
        self.assertEqual(compare.difference(self.one * 9, self.one, shapes_only=True), "")
        self.assertIn("shape", compare.difference(self.one[:1], self.one, shapes_only=True))

    def test_sequences_strings_and_optionals(self):
        self.assertEqual(compare.difference([self.one], [self.one]), "")
        self.assertIn("sequence of 1", compare.difference([self.one], [self.one, self.one]))
        self.assertIn("element 1", compare.difference([self.one, self.one + 1], [self.one, self.one]))
        self.assertIn("empty optional", compare.difference(self.one, None))
        self.assertIn("strings", compare.difference(np.array(["a"]), np.array([b"b"], object)))


class Random(unittest.TestCase):
    def test_bernoulli(self):
        chance = np.float32([0, 0.5, 1])
        self.assertEqual(compare.random_difference("Bernoulli", [chance], [np.float32([0, 1, 1])]), "")
        self.assertIn("neither", compare.random_difference("Bernoulli", [chance], [np.float32([0, 0.5, 1])]))
        self.assertIn("impossible", compare.random_difference("Bernoulli", [chance], [np.float32([1, 0, 1])]))

    def test_dropout(self):
        given, ratio = np.float32([1, 2, 3]), np.float32(0.75)
        self.assertEqual(compare.random_difference("Dropout", [given, ratio], [np.float32([4, 0, 12])]), "")
        self.assertIn("scaled", compare.random_difference("Dropout", [given, ratio], [np.float32([1, 0, 3])]))
        self.assertIn("none", compare.random_difference("Dropout", [given, ratio], [given * 4]))
        mask = np.array([True, True, False])
        self.assertIn("scaled", compare.random_difference("Dropout", [given, ratio], [np.float32([4, 0, 12]), mask]))


class ReadOutput(unittest.TestCase):
    def read(self, stored, elem_type):
        kind = helper.make_tensor_type_proto(elem_type, None)
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "output_0.npy", stored)
            return compare.read_output(Path(folder), 0, kind)

    def test_types_that_numpy_cannot_name(self):
        value = np.float32([1.5, -2]).astype(ml_dtypes.bfloat16)
        self.assertEqual(self.read(value.view(np.uint16), TensorProto.BFLOAT16).tolist(), value.tolist())
        self.assertEqual(self.read(np.int8([-8, 7, 3]), TensorProto.INT4).tolist(), [-8, 7, 3])

    def test_packed_elements(self):
        raw = np.array([0x8F, 0x07], np.uint8)
        self.assertEqual(compare.unpack(raw, np.dtype(ml_dtypes.int4), 3).tolist(), [-1, -8, 7])
        self.assertEqual(compare.unpack(raw, np.dtype(ml_dtypes.uint4), 3).tolist(), [15, 8, 7])


class Suite(unittest.TestCase):
    def test_the_suite_is_whole(self):
        found = cases.all_cases()
        self.assertEqual(len(found), 1914)
        self.assertEqual(len({case.label for case in found}), 1914)
        self.assertEqual(sum(case.random for case in found), 10)

    def test_open_sizes_are_bound(self):
        case = next(c for c in cases.all_cases() if c.name == "test_sequence_map_identity_1_sequence_1_tensor")
        flags = cases.shape_flags(case, onnx.load(case.model))
        self.assertEqual(flags[::2], ["--elements", "--input-shape"])
        self.assertRegex(flags[1], r"^x0=\d+(,\d+)*$")
        self.assertRegex(flags[3], r"^x1=\d+$")

    def test_values_that_decide_sizes_are_fixed(self):
        case = next(c for c in cases.all_cases() if c.name == "test_loop13_seq")
        model = onnx.load(case.model)
        self.assertEqual(cases.fixed_values(case, model), {"trip_count": "5", "cond": "1"})
        self.assertEqual(cases.shape_flags(case, model, {"trip_count": "5"}), ["--elements", "seq_empty="])
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(list(cases.write_inputs(case, model, Path(folder) / "io", {"trip_count": "5"}).iterdir())), 1)

    def test_lists_are_their_tensors(self):
        tensor = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
        sequence = helper.make_sequence_type_proto(tensor)
        optional = helper.make_optional_type_proto(sequence)
        self.assertEqual([array for array, _ in cases.tensors_in([1, 2], optional)], [1, 2])
        self.assertEqual(cases.tensors_in(None, optional), [])
        self.assertEqual(cases.tensors_in(3, tensor), [(3, tensor)])


MAIN = """#include "tc_main.h"
#include <string.h>
static const int64_t dims[] = {3};
static const tc_io_info info[] = {{"x", TC_FLOAT, 1, dims}};
static int open_model(void *m, const void *weights, size_t bytes, int cpu, const int64_t *sizes) { (void)m, (void)weights, (void)bytes, (void)cpu, (void)sizes; return 0; }
static int run_model(void *m, const void *const *in, const int64_t *sizes, void *const *out, int64_t *const *out_dims)
{
  (void)m;
  (void)sizes;
  (void)out_dims;
  memcpy(out[0], in[0], 12);
  return 0;
}
static void close_model(void *m) { (void)m; }
static const char *message(int status) { (void)status; return "?"; }
int main(int argc, char **argv)
{
  const tc_model model = {"copy", 1, 1, info, info, NULL, 0, NULL, 0, NULL, 0, 0, 0, NULL, 64, NULL, NULL, NULL, open_model, NULL, run_model, close_model, NULL, message};
  return tc_main(&model, argc, argv);
}
"""


class Tools(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.package = self.folder / "package"
        self.package.mkdir()
        self.tools = toolchain.Toolchain(self.folder, run.FLAGS["c"])
        for name, text in self.tools.texts.items():
            (self.package / name).write_bytes(text)
        (self.package / "main.c").write_text(MAIN)

    def build_and_run(self):
        """The number of compiler calls, and what the program makes of [1, 2, 3]."""
        commands = self.tools.commands(self.package, self.folder / "program")
        for command in commands:
            subprocess.run(command, check=True)
        np.save(self.package / "input_0.npy", np.float32([1, 2, 3]))
        subprocess.run([self.folder / "program", "--inputs", self.package, "--outputs", self.package], check=True,
                       capture_output=True)
        return len(commands), np.load(self.package / "output_0.npy").tolist()

    def test_the_program_around_a_model_is_compiled_once(self):
        self.assertEqual(self.build_and_run(), (2, [1, 2, 3]))

    def test_other_text_is_compiled_whole(self):
        with open(self.package / "tc_io.h", "a") as text:
            text.write("/* changed */\n")
        self.assertEqual(self.build_and_run(), (1, [1, 2, 3]))


class Report(unittest.TestCase):
    def test_what_passed_once_is_missed_when_it_is_refused(self):
        case = cases.Case("node", "test_x", Path("m"), Path("d"))
        with tempfile.TemporaryDirectory() as folder:
            document = Path(folder) / "suite.md"
            document.write_text(report.markdown([run.Result(case, "passed")]))
            self.assertEqual(report.lost([run.Result(case, "passed")], document), [])
            self.assertEqual(report.lost([run.Result(case, "refused", "a|b")], document), ["node/test_x"])

    def test_the_reason_names_no_path(self):
        text = 'error[TC3107] /tmp/a/model.onnx: node "n": no | row\n  note: more\n'
        self.assertEqual(toolchain.refusal(text), 'TC3107 node "n": no | row')


if __name__ == "__main__":
    unittest.main()
