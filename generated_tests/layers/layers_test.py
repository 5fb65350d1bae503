#!/usr/bin/env python3
"""Includes run one way: each folder of the compiler sees those below it, and no other. docs/architecture.md shows the layers."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EMITTED = "templates/text"  # plain C of the packages, which the tool uses, too: it needs nothing, and all may see it
LAYERS = ["support", "ir", "passes", "templates", "emit_c", "emit_cuda", "cli"]
BELOW = {layer: {EMITTED, *LAYERS[:k + 1]} for k, layer in enumerate(LAYERS)} | {EMITTED: {EMITTED}, "importer": {EMITTED, "support", "ir", "importer"}}
BELOW["cli"].add("importer")
# Folders inside of a layer that have an order, too: each sees those before it, and the layer's own files see which they like.
INNER = [["ir/loop", "ir/interpreter", "ir/graph", "ir/ops", "ir/language"], ["passes/analysis", "passes/schedule", "passes/loop", "passes/program"]]
TEST = re.compile(r"_test\.cc$|(^|/)test_[a-z_]*\.(h|cc)$|/(testing|[a-z_]*_testing)\.h$")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def layer_of(path):
    return EMITTED if path.startswith(EMITTED + "/") else path.split("/")[0]


def edges(root):
    """(file, included file) for all includes of the compiler between its folders, tests left out."""
    for layer in (*LAYERS, "importer"):
        for path in sorted((root / layer).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".cc", ".h") and not TEST.search(name):
                for included in INCLUDE.findall(path.read_text()):
                    if "/" in included:
                        yield name, included


def runs_up(name, included):
    if layer_of(included) not in BELOW[layer_of(name)]:
        return True
    places = [[next((k for k, folder in enumerate(order) if path.startswith(folder + "/")), None) for path in (name, included)] for order in INNER]
    return any(None not in (own, other) and other > own for own, other in places)


def upward(root):
    return [f"{name} includes {included}" for name, included in edges(root) if runs_up(name, included)]


class Layers(unittest.TestCase):
    def test_no_include_runs_up(self):
        self.assertGreater(len(list(edges(ROOT))), 500)
        self.assertEqual(upward(ROOT), [])

    def test_one_that_does_is_found(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {"passes/a.cc": '#include "templates/cpu/tile.h"\n', "passes/b_test.cc": '#include "templates/target.h"\n',
                               "ir/c.cc": '#include "templates/text/tc_rt.h"\n', "importer/d.h": '#include "passes/pass.h"\n',
                               "ir/graph/e.h": '#include "ir/ops/op.h"\n', "ir/ops/f.h": '#include "ir/graph/graph.h"\n'}.items():
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(text)
            self.assertEqual(upward(Path(folder)), ["ir/graph/e.h includes ir/ops/op.h", "passes/a.cc includes templates/cpu/tile.h", "importer/d.h includes passes/pass.h"])


if __name__ == "__main__":
    unittest.main()
