#!/usr/bin/env python3
"""Tests of what the scripts share: scripts/packages.sh, with stand-ins for dpkg and apt; and of the names that they take from one another."""
import ast
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


def defined(tree):
    """The names that a module binds, in whatever statement of it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return names


def missing_names(files):
    """`file: module.name` of each name that one of the files takes from another and that it does not define; files of one name stand for each other."""
    trees = {path: ast.parse(path.read_text()) for path in files}
    modules = {}
    for path, tree in trees.items():
        modules.setdefault(path.stem, {"__doc__", "__file__", "__name__"}).update(defined(tree))
    missing = set()
    for path, tree in trees.items():
        local = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                local.update((alias.asname or alias.name, alias.name) for alias in node.names if alias.name in modules)
            elif isinstance(node, ast.ImportFrom) and node.module in modules:
                missing.update(f"{path}: {node.module}.{alias.name}" for alias in node.names if alias.name not in modules[node.module])
        rebound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        rebound.update(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in rebound:
                module = local.get(node.value.id)
                if module and node.attr not in modules[module]:
                    missing.add(f"{path}: {module}.{node.attr}")
    return sorted(missing)


class Names(unittest.TestCase):
    """A function that moved is found by the one test that reads it, in the last minute of all tests; this finds it in the first."""

    def test_every_name_is_defined_where_it_is_read_from(self):
        files = [path for folder in ("generated_tests", "bench", "python", "scripts") for path in sorted((ROOT / folder).rglob("*.py"))]
        self.assertGreater(len(files), 100)
        self.assertEqual(missing_names(files), [])

    def test_a_name_that_moved(self):
        with tempfile.TemporaryDirectory() as folder:
            old, reader = pathlib.Path(folder, "old.py"), pathlib.Path(folder, "reader.py")
            old.write_text("def stays():\n    pass\n")
            reader.write_text("import old\nfrom old import gone\nold.stays()\nold.moved()\n")
            self.assertEqual(missing_names([old, reader]), [f"{reader}: old.gone", f"{reader}: old.moved"])


if __name__ == "__main__":
    unittest.main()
