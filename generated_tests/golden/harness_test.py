#!/usr/bin/env python3
"""Tests of the golden packages' driver: it sees every change, and no wrong package becomes golden."""
import shutil
import tempfile
import unittest
from pathlib import Path

import run

TOOL = run.ROOT / "build" / "tc-emit"


class Golden(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = Path(folder.name)
        self.case = self.tmp / "perceptron"
        shutil.copytree(run.HERE / "perceptron", self.case)
        self.package = self.tmp / "package"
        run.emit(TOOL, self.case, self.package)

    def told(self):
        return "\n".join(run.differences(self.package, self.case / "out"))

    def test_every_change_is_told(self):
        run.update(self.case, self.package, self.tmp)
        self.assertEqual(self.told(), "")
        for name in ("perceptron.c", "perceptron_weights.bin", "README.md", "tc_rt.h"):
            path = self.package / name
            before = path.read_bytes()
            path.write_bytes(before + b"\n")
            self.assertIn(name, self.told())
            path.write_bytes(before)
        (self.package / "more.c").write_text("int x;\n")
        self.assertEqual(self.told(), "more.c is new")
        (self.package / "more.c").unlink()
        (self.package / "main.c").unlink()
        self.assertEqual(self.told(), "main.c is gone")

    def test_wrong_numbers_are_no_standard(self):
        before = run.files_of(self.case)
        kernel = next((self.package / "kernels").glob("*softmax*.c"))
        text = kernel.read_text()
        wrong = text.split("{", 1)[1].replace("tc_exp(", "tc_abs(")
        self.assertNotIn(wrong, text)
        kernel.write_text(text.split("{", 1)[0] + "{" + wrong)
        with self.assertRaisesRegex(run.Failed, "ONNX Runtime"):
            run.update(self.case, self.package, self.tmp)
        self.assertEqual(run.files_of(self.case), before)

    def test_text_that_does_not_compile_is_no_standard(self):
        source = self.package / "perceptron.c"
        source.write_text(source.read_text() + "int unfinished(\n")
        with self.assertRaisesRegex(run.Failed, "compile"):
            run.update(self.case, self.package, self.tmp)


if __name__ == "__main__":
    unittest.main()
