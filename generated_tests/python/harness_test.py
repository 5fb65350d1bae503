#!/usr/bin/env python3
"""Tests of what the scripts share: scripts/packages.sh, with stand-ins for dpkg and apt."""
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Packages(unittest.TestCase):
    def installs(self, known):
        """What need_packages asks apt for when it needs a and b, and dpkg knows `known` of them."""
        with tempfile.TemporaryDirectory() as folder:
            tools = pathlib.Path(folder)
            stand_ins = {"dpkg-query": "".join(f"echo 'ii  {name}'\n" for name in known) + f"exit {0 if len(known) == 2 else 1}",
                         "apt-get": f'echo "$@" >> {tools}/asked', "sudo": '"$@"'}
            for name, body in stand_ins.items():
                (tools / name).write_text(f"#!/bin/bash\n{body}\n")
                (tools / name).chmod(0o755)
            subprocess.run(["bash", "-euo", "pipefail", "-c", "source scripts/packages.sh; need_packages a b"], cwd=ROOT, check=True,
                           env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}, stdout=subprocess.DEVNULL)
            asked = tools / "asked"
            return asked.read_text().split()[-(2 - len(known)):] if asked.exists() else []

    def test_a_machine_that_knows_none_of_them(self):
        self.assertEqual(self.installs([]), ["a", "b"])

    def test_one_is_missing(self):
        self.assertEqual(self.installs(["a"]), ["b"])

    def test_none_is_missing(self):
        self.assertEqual(self.installs(["a", "b"]), [])


if __name__ == "__main__":
    unittest.main()
