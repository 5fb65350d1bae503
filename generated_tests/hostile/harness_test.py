#!/usr/bin/env python3
"""Tests of what judges the hostile models: that it can fail. Fake tools misbehave in every way that is looked for."""
import stat
import tempfile
import types
import unittest
from pathlib import Path

import run  # finds the modules of generated_tests/python
import cases
import payloads

OUT = 'while [ "$1" != -o ]; do shift; done; out=$2\n'
REFUSE = 'echo "error[TC0102] model.onnx: this is not an ONNX model" >&2; exit 1\n'


class Refused(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = Path(folder.name)
        self.addCleanup(setattr, run, "SECONDS", run.SECONDS)
        run.SECONDS = 1
        (self.tmp / "earlier").mkdir()
        (self.tmp / "earlier" / "notes.txt").write_text("mine\n")

    def judge(self, script):
        tool = self.tmp / "tool"
        tool.write_text("#!/bin/bash\n" + script)
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        scratch = self.tmp / "scratch"
        scratch.mkdir()
        options = types.SimpleNamespace(tool=tool, earlier=self.tmp / "earlier", scale=1)
        run.refuse(cases.raw("empty", 1, "TC0102", "not an ONNX model", b""), options, scratch)

    def test_what_is_right_passes(self):
        self.judge(REFUSE)

    def test_exit_code_code_and_words(self):
        for k, script in enumerate((REFUSE.replace("exit 1", "exit 3"), REFUSE.replace("TC0102", "TC0101"), REFUSE.replace("not an", "an"), "exit 0\n")):
            with self.subTest(k), self.assertRaisesRegex(run.Failed, "exit code"):
                self.setUp()
                self.judge(script)

    def test_crash(self):
        with self.assertRaisesRegex(run.Failed, "signal 11"):
            self.judge("kill -SEGV $$\n")

    def test_hang(self):
        with self.assertRaisesRegex(run.Failed, "no end"):
            self.judge("exec sleep 30\n")

    def test_output_folder(self):
        for k, harm in enumerate(('touch "$out"/more', 'rm "$out"/notes.txt', 'echo other > "$out"/notes.txt', 'touch "$out"/notes.txt', 'chmod 600 "$out"/notes.txt')):
            with self.subTest(harm), self.assertRaisesRegex(run.Failed, "touched"):
                self.setUp()
                self.judge(OUT + harm + "\n" + REFUSE)

    def test_reports_of_sanitizers(self):
        with self.assertRaisesRegex(run.Failed, "compiler's checks"):
            self.judge("echo 'x.cc:1:2: runtime error: shift exponent -1 is negative' >&2\n" + REFUSE)

    def test_words_of_those_who_built_the_tool(self):
        for words in ("x.h:12: adapt: failed", "Assertion `a` failed", "map::at", "std::bad_alloc"):
            with self.subTest(words), self.assertRaisesRegex(run.Failed, "a message that says"):
                self.setUp()
                self.judge(f"echo '{words}' >&2\n" + REFUSE)

    def test_escape_sequences_in_a_message(self):
        with self.assertRaisesRegex(run.Failed, "not printable"):
            self.judge("printf '\\033[2J' >&2\n" + REFUSE)


class Text(unittest.TestCase):
    def test_code_is_what_is_neither_comment_nor_string(self):
        self.assertEqual(payloads.code_of('a /* b "c */ = "d /* e"; // f').split(), ["a", "=", '"";'])
        for open_end in ('a "b', "a /* b", '"a\\"'):
            with self.assertRaises(payloads.Failed):
                payloads.code_of(open_end)

    def test_another_token_is_another_shape(self):
        self.assertEqual(payloads.shape_of("int a = f(b);"), payloads.shape_of("int c = g(d);"))
        self.assertNotEqual(payloads.shape_of("int a = f(b);"), payloads.shape_of("int a = f(b); int c;"))
        self.assertNotEqual(payloads.shape_of("#include <a.h>"), payloads.shape_of("#error <a.h>\n#"))

    def test_every_text_is_in_the_model(self):
        self.assertGreaterEqual(payloads.model_with("hostile").count(b"hostile"), 25)


if __name__ == "__main__":
    unittest.main()
