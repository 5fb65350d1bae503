"""Tests of verdicts.py and shares.py, run by harness_test.py: each thing that a verdict depends on changes its key."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy as np

import shares
import verdicts
from toolchain import Toolchain


class WithVerdicts(unittest.TestCase):
    """Has a package and what is judged by, in `parts`."""

    def setUp(self):
        self.folder = self.enter_folder()
        self.enterContext(mock.patch.dict(os.environ))
        os.environ.pop("TC_TEST_NO_CACHE", None)
        (self.folder / "package" / "kernels").mkdir(parents=True)
        self.kernel = self.folder / "package" / "kernels" / "k.c"
        self.kernel.write_bytes(b"void k(void) {}\n")
        self.judge = types.ModuleType("judge")
        self.judge.__file__ = str(verdicts.ROOT / "generated_tests" / "python" / "no_such_judge.py")
        self.parts = {"package": self.folder / "package", "input": np.float32([1, 2]), "reference": [np.float32([3, 4])], "bound": 1e-5,
                      "tools": ["gcc", "-O2"]}

    def verdicts(self, **changed):
        return verdicts.Verdicts(file=self.folder / "known.txt", **changed)

    def is_known(self, parts=None, **changed):
        some = self.verdicts(**changed)
        return some.key(parts or self.parts) in some

    def remember(self):
        some = self.verdicts()
        some.add(some.key(self.parts))
        self.assertTrue(self.is_known())

    def enter_folder(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))


class Keys(WithVerdicts):
    """One component changes, and the verdict is not known any more."""

    def test_nothing_is_known_at_first(self):
        self.assertFalse(self.is_known())

    def test_each_byte_of_the_package(self):
        self.remember()
        text = self.kernel.read_bytes()
        for place in range(len(text)):
            self.kernel.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1:])
            self.assertFalse(self.is_known(), place)
        self.kernel.write_bytes(text)
        self.assertTrue(self.is_known())

    def test_names_and_number_of_files(self):
        self.remember()
        (self.folder / "package" / "more.c").write_bytes(b"")
        self.assertFalse(self.is_known())
        (self.folder / "package" / "more.c").unlink()
        self.kernel.rename(self.kernel.with_name("l.c"))
        self.assertFalse(self.is_known())

    def test_inputs_reference_bound_and_flags(self):
        self.remember()
        others = {"input": [np.float32([1, 3]), np.float64([1, 2]), np.float32([[1, 2]]), np.float32([1, 2, 0])],
                  "reference": [[np.float32([3, 5])], [], np.float32([3, 4])], "bound": [1e-4, None, "1e-05"],
                  "tools": [["gcc", "-O1"], ["clang", "-O2"], ["gcc", "-O2", "-march=native"], ["gcc-O2"], ["gcc -O2"]]}
        for name, values in others.items():
            for value in values:
                self.assertFalse(self.is_known({**self.parts, name: value}), (name, value))

    def test_strings_in_arrays(self):
        some = self.verdicts()
        one, two = (np.array(words, dtype=object) for words in (["a", "bc"], ["ab", "c"]))
        self.assertNotEqual(some.key(one), some.key(two))

    def test_what_has_no_bytes_is_no_part_of_a_key(self):
        with self.assertRaises(TypeError):
            self.verdicts().key(object())

    def test_the_compiler(self):
        """Its name, its version and each flag are in what a toolchain says of itself."""
        tools = [Toolchain(self.enter_folder(), flags, compiler, build=False).identity for flags, compiler in ((["-O1"], "gcc"), (["-O2"], "gcc"), (["-O1"], "cc"))]
        with mock.patch("toolchain.compiler_version", lambda name: "gcc version 99"):
            tools.append(Toolchain(self.enter_folder(), ["-O1"], "gcc", build=False).identity)
        some = self.verdicts()
        self.assertEqual(len({some.key(identity) for identity in tools}), len(tools))

    def test_the_surroundings(self):
        self.remember()
        self.assertFalse(self.is_known(surroundings=lambda: "another processor"))
        for what in ("pathlib.Path.read_text", "platform.libc_ver", "importlib.metadata.version"):  # processor, C library, packages
            with mock.patch(what, lambda *a, **k: "model name : other" if "read" in what else ("glibc", "9") if "libc" in what else "9.9"):
                verdicts.surroundings.cache_clear()
                self.assertFalse(self.is_known(), what)
        verdicts.surroundings.cache_clear()
        self.assertTrue(self.is_known())

    def test_the_judges(self):
        """A byte of a loaded module of this repository; not of one whose makings are in the key."""
        module = self.folder / "judge.py"
        module.write_text("bound = 1\n")
        self.judge.__file__ = str(module)
        with mock.patch.object(verdicts, "ROOT", self.folder.resolve()), mock.patch.dict(sys.modules, {"judge": self.judge}):
            self.remember()
            module.write_text("bound = 2\n")
            self.assertFalse(self.is_known())
            some = self.verdicts(makers=[self.judge])
            some.add(some.key(self.parts))
            module.write_text("bound = 3\n")
            self.assertTrue(self.is_known(makers=[self.judge]))

    def test_the_judges_of_this_test(self):
        self.assertIn("generated_tests/python/verdicts.py", verdicts.judges())
        self.assertIn("generated_tests/python/toolchain.py", verdicts.judges())


class Store(WithVerdicts):
    def test_another_process_knows_it(self):
        some = self.verdicts()
        some.add(some.key("a verdict"))
        self.assertTrue(some.key("a verdict") in self.verdicts())

    def test_switched_off(self):
        self.remember()
        os.environ["TC_TEST_NO_CACHE"] = "1"
        self.assertFalse(self.is_known())
        some = self.verdicts()
        some.add(some.key("new"))
        del os.environ["TC_TEST_NO_CACHE"]
        self.assertNotIn(some.key("new"), self.verdicts())

    def test_it_is_bounded(self):
        with mock.patch.object(verdicts, "MOST", 10):
            some = self.verdicts()
            keys = [some.key(k) for k in range(11)]
            for key in keys:
                some.add(key)
            again = self.verdicts()
        self.assertNotIn(keys[0], again)
        self.assertIn(keys[10], again)
        self.assertEqual(len((self.folder / "known.txt").read_text().splitlines()), 6)


class Shares(unittest.TestCase):
    def part(self, words, turn="", quick=3):
        with mock.patch.dict(os.environ, {"TC_TEST_TURN": turn}):
            parser = argparse.ArgumentParser()
            shares.add_option(parser, quick=quick)
            return shares.part(range(10), parser.parse_args(words))

    def test_all_of_them(self):
        self.assertEqual(self.part([]), list(range(10)))

    def test_shares_cover_everything_once(self):
        self.assertEqual(sorted(sum((self.part(["--share", f"{k}/4"]) for k in range(1, 5)), [])), list(range(10)))

    def test_days_cover_everything_once(self):
        self.assertEqual(sorted(sum((self.part([], turn) for turn in ("20000", "20001", "20002")), [])), list(range(10)))

    def test_an_option_goes_before_the_day(self):
        self.assertEqual(self.part(["--share", "1/1"], "7"), list(range(10)))

    def test_no_share_is_empty(self):
        self.assertEqual(len(self.part(["--share", "40/40"])), 1)

    def test_what_is_no_share(self):
        for text in ("0/3", "4/3", "1", "a/b", "1/0"):
            run = subprocess.run([sys.executable, "-c", f"import shares; shares.share({text!r})"], cwd=pathlib.Path(shares.__file__).parent, capture_output=True)
            self.assertNotEqual(run.returncode, 0)


if __name__ == "__main__":
    unittest.main()
