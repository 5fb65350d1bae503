#!/usr/bin/env python3
"""Tests of the package that the checks of the support text write: it knows every hole of the texts."""
import pathlib
import tempfile
import unittest

import echo_package


class Holes(unittest.TestCase):
    def test_all_are_filled(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "echo"
            echo_package.write_package(out)
            for name in ("main.c", "Makefile", "CMakeLists.txt", "echo.h"):
                self.assertNotIn("{{", (out / name).read_text().replace("${{", ""), name)


if __name__ == "__main__":
    unittest.main()
