#!/usr/bin/env python3
"""Programs that are libraries end as programs do."""
import subprocess
import tempfile
import unittest
from pathlib import Path

from program_server import ProgramServers

TEXT = r"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
  char folder[4096];
  static int calls;
  printf("%d %s %s %d\n", argc, argv[argc - 1], getcwd(folder, sizeof folder), ++calls);
  fprintf(stderr, "told\n");
  fflush(stdout);
  if (!strcmp(argv[1], "exit")) exit(7);
  if (!strcmp(argv[1], "crash")) abort();
  if (!strcmp(argv[1], "hang")) for (;;) pause();
  return 3;
}
"""


class Servers(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "program.c").write_text(TEXT)
        self.program = self.folder / "program"
        subprocess.run(["gcc", "-shared", "-fPIC", self.folder / "program.c", "-o", self.program], check=True)
        self.servers = ProgramServers(self.folder)
        self.addCleanup(self.servers.close)

    def run_with(self, *arguments, seconds=20):
        return self.servers.run([self.program, *arguments], self.folder, seconds)

    def test_programs_end_as_by_themselves(self):
        for way, status in (("return", 3), ("exit", 7), ("crash", -6), ("return", 3)):
            ran = self.run_with(way, "a word")
            self.assertEqual(ran.returncode, status, way)
            self.assertIn(f"3 a word {self.folder} ", ran.stdout)
            self.assertIn("told", ran.stdout)

    def test_a_process_serves_many(self):
        self.run_with("return")
        self.assertEqual(self.servers.idle.qsize(), 1)
        self.run_with("return")
        self.assertEqual(self.servers.idle.qsize(), 1)

    def test_no_end_and_no_program(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.run_with("hang", seconds=0.3)
        missing = self.servers.run([self.folder / "missing"], self.folder, 20)
        self.assertEqual(missing.returncode, 127)
        self.assertIn("missing", missing.stdout)


if __name__ == "__main__":
    unittest.main()
