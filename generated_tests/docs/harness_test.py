"""The reader of pages and the comparison of output are able to fail."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pages  # noqa: E402

PAGE = """Text.

`a/main.c`:

```c
int x;
```

```console
$ make -s \\
    all
built 3 files
...
$ echo $?
0
```

```console
# not run by the tests: a GPU
$ nvidia-smi
```

    tc-emit model.onnx -o out

```
tc-emit check model.onnx
```
"""


class Reader(unittest.TestCase):
    def test_blocks(self):
        c, console, gpu, _ = pages.blocks(PAGE)
        self.assertEqual((c.file, c.lines), ("a/main.c", ["int x;"]))
        self.assertEqual([(k.text, k.shown) for k in console.commands()], [("make -s all", ["built 3 files", "..."]), ("echo $?", ["0"])])
        self.assertEqual((console.file, console.not_run, gpu.not_run), ("", "", "a GPU"))

    def test_strays(self):
        self.assertEqual([text for _, text in pages.strays(PAGE)], ["tc-emit model.onnx -o out", "tc-emit check model.onnx"])


class Comparison(unittest.TestCase):
    def test_numbers_hashes_and_processors_are_equal(self):
        self.assertTrue(pages.matches(["--cpu native is znver4", "max 1e-05  kernel_1f3a"], ["--cpu native is x86-64-v3", "max 2.5 kernel_00ab"]))

    def test_words_are_not(self):
        self.assertFalse(pages.matches(["wrote 3 files"], ["wrote 3 folders"]))
        self.assertFalse(pages.matches(["one"], ["one", "two"]))
        self.assertFalse(pages.matches(["one", "two"], ["one"]))

    def test_omissions(self):
        self.assertTrue(pages.matches(["one", "...", "four"], ["one", "two", "three", "four"]))
        self.assertTrue(pages.matches(["one ... two"], ["one and a half two"]))
        self.assertFalse(pages.matches(["one ... two"], ["one and a half"]))


if __name__ == "__main__":
    unittest.main()
