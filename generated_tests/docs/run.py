"""Runs every command of the documentation, in scratch folders with what the pages speak of (fixtures.py), and compares exit codes and
what is shown; what cannot run here is marked in the page and counted. What a page must look like: pages.py.

usage: run.py [--only REGEX] [--keep DIR]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import fixtures  # noqa: E402
import pages  # noqa: E402
import site_checks  # noqa: E402
import workflow  # noqa: E402
from checks import ROOT, TOOL, Checks  # noqa: E402

SECONDS = 600  # a page

# Runs a command in this very shell, so that folders, variables and $? go on to the next one.
SHELL = r"""
step() {
  (exit $status)
  eval "$2" > "$log/$1.out" 2>&1 < /dev/null
  status=$?
  echo $status > "$log/$1.status"
}
status=0
"""


def page_names():
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md"]
    found += sorted((ROOT / "docs").glob("**/*.md")) + sorted((ROOT / "examples").glob("*/README.md"))
    return [str(path.relative_to(ROOT)) for path in found]


def write_file(folder, block):
    path = folder / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(block.lines) + "\n")


def run_commands(folder, log, script, environment):
    log.mkdir()
    text = SHELL.replace("$log", str(log)) + "".join(script)
    subprocess.run(["bash", "-c", text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=SECONDS, check=False)
    return log


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


class Page:
    def __init__(self, name, check, not_run):
        self.name, self.check, self.not_run = name, check, not_run
        self.text = (ROOT / name).read_text()

    def run(self, scratch):
        for number, line in pages.strays(self.text):
            self.check(f"{self.name}:{number} is a block of commands", False, line)
        blocks = pages.blocks(self.text)
        folder = scratch / "page"
        folder.mkdir(parents=True)
        if not any(b.is_commands and not b.not_run for b in blocks):
            self.not_run.update(b.not_run for b in blocks if b.not_run for _ in b.commands())
            return
        environment = {**os.environ, "PATH": f"{scratch / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(scratch),
                       "LC_ALL": "C.UTF-8", "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(Path.home() / ".cache" / "ccache"))}
        (scratch / "bin").mkdir()
        (scratch / "bin" / "tc-emit").symlink_to(TOOL)
        missing = fixtures.prepare(self.name, folder)
        script, commands = [], []
        for block in blocks:
            if block.not_run or (block.is_commands and missing and missing(block)):
                why = block.not_run or missing(block)
                self.not_run.update(why for _ in block.commands())
            elif block.file:
                write_file(scratch / "files" / str(len(script)), block)
                script.append(f"cp -r {scratch / 'files' / str(len(script))}/. .\n")
            elif block.is_commands:
                for c in block.commands():
                    script.append(f"step {len(commands)} {quoted(c.text)}\n")
                    commands.append(c)
        self.compare(commands, run_commands(folder / fixtures.begin(self.name), scratch / "log", script, environment))

    def compare(self, commands, log):
        for k, c in enumerate(commands):
            name = f"{self.name}:{c.line} {c.text}"
            if not (log / f"{k}.status").exists():
                self.check(name, False, "it was not reached")
                continue
            printed = (log / f"{k}.out").read_text(errors="replace").splitlines()
            status = int((log / f"{k}.status").read_text())
            tells_status = k + 1 < len(commands) and commands[k + 1].text == "echo $?"
            if status and not tells_status:
                self.check(name, False, f"exit code {status}: {' | '.join(printed[-5:])}")
            elif c.text == "echo $?":
                self.check(name, [s.strip() for s in c.shown if s.strip()] == printed, printed)
            elif [s for s in c.shown if s.strip()]:
                shown = [s for s in c.shown if s.strip()]
                self.check(name, pages.matches(shown, [s for s in printed if s.strip()]), "printed " + " | ".join(printed[:30]))
            else:
                self.check(name, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="pages whose names have it")
    parser.add_argument("--keep", type=Path, help="keep the scratch folders here")
    options = parser.parse_args()
    check, not_run = Checks(only_failures=True), Counter()
    if re.search(options.only, "site"):
        site_checks.lists(check)
        site_checks.figures(check)
        with tempfile.TemporaryDirectory() as scratch:
            site_checks.builds(check, Path(scratch))
    if re.search(options.only, "workflow"):
        with tempfile.TemporaryDirectory() as scratch:
            workflow.tries(check, Path(scratch))
    names = [n for n in page_names() if re.search(options.only, n)]
    if os.environ.get("TC_TEST_TURN"):
        print(f"not run today: {len(fixtures.SLOW)} pages that take long")
        names = [n for n in names if n not in fixtures.SLOW]
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            Page(name, check, not_run).run((options.keep or Path(scratch)) / name.replace("/", "_"))
    for why, count in sorted(not_run.items()):
        print(f"not run: {count} commands: {why}")
    return check.summary()


if __name__ == "__main__":
    sys.exit(main())
