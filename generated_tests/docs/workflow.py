"""The workflow that docs/workflows has for pull requests: its steps are run as GitHub runs them, in a repository that vendors a package,
with a `gh` that writes down how it is called."""
import os
import re
import textwrap

from checks import ROOT, TOOL, run

WORKFLOW = ROOT / "docs" / "workflows" / "tc-emit-diff.yml"
PACKAGE = "third_party/digits"
GH = """#!/bin/sh
echo "$@" >> "$LOG"
case "$*" in *--jq*) cat "$OLD" ;; esac
"""


def steps():
    """{name: script} of those steps that run one; of the first, which has no name, "install"."""
    found = {}
    for block in re.split(r"^      - ", WORKFLOW.read_text(), flags=re.M)[1:]:
        name = re.match(r"name: (.*)", block)
        script = re.search(r"^(?:        )?run: (?:\|\n((?:          .*\n|\n)+)|(.*))", block, re.M)
        if script:
            found[name[1] if name else "install"] = textwrap.dedent(script[1] or script[2])
    return found


class PullRequest:
    """A repository whose branch main has a package, or none, and whose work tree is the head of a pull request."""

    def __init__(self, folder, with_package):
        self.folder, self.environment = folder, folder / "environment"
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "gh").write_text(GH)
        (folder / "bin" / "gh").chmod(0o755)
        (folder / "bin" / "tc-emit").symlink_to(TOOL)
        (folder / "old").write_text("")
        self.git("init", "--quiet", "--initial-branch=main")
        if with_package:
            self.emit()
        (folder / "main.c").write_text("int main(void) { return 0; }\n")
        self.git("add", "main.c", *[PACKAGE] * with_package)
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "Begin")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")

    def git(self, *words):
        assert run("git", *words, cwd=self.folder).returncode == 0, words

    def emit(self, *flags):
        assert run(TOOL, "--quiet", *flags, ROOT / "examples/digits/digits.onnx", "-o", self.folder / PACKAGE).returncode == 0

    def look(self):
        """(exit codes, calls of gh, the comment) of the steps behind the installation."""
        run("rm", "-rf", self.folder / "before", self.folder / "log", self.environment, self.folder / "summary")
        values = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "LOG": str(self.folder / "log"), "OLD": str(self.folder / "old"),
                  "GITHUB_ENV": str(self.environment), "GITHUB_STEP_SUMMARY": str(self.folder / "summary"), "GITHUB_BASE_REF": "main",
                  "GITHUB_REPOSITORY": "some/body", "PACKAGE": PACKAGE, "NUMBER": "7"}
        codes = []
        for name, script in steps().items():
            if name == "install":
                continue
            if self.environment.exists():
                values.update(line.split("=", 1) for line in self.environment.read_text().splitlines())
            codes.append(run("bash", "-e", "-c", script, cwd=self.folder, env=values).returncode)
        log = self.folder / "log"
        return codes, log.read_text() if log.exists() else "", (self.folder / "comment.md").read_text()


def tries(check, scratch):
    check("the workflow has its steps", list(steps()) == ["install", "The package as it was", "Compare", "Comment"], list(steps()))
    same = PullRequest(scratch / "same", with_package=True)
    codes, calls, comment = same.look()
    check("nothing changed: no comment", codes == [0, 0, 0] and "pr comment" not in calls and "PATCH" not in calls, (codes, calls))
    same.emit("--fp", "strict")
    codes, calls, comment = same.look()
    check("something changed: a comment", codes == [0, 0, 0] and "pr comment 7 --body-file comment.md" in calls and comment.startswith(f"<!-- tc-emit diff of {PACKAGE} -->\n###") and "--fp" in comment, (codes, calls, comment[:300]))
    check("and the summary of the job", (same.folder / "summary").read_text() == comment)
    (same.folder / "old").write_text("42\n43\n")
    codes, calls, _ = same.look()
    check("changed again: the comment is replaced", codes == [0, 0, 0] and "-X PATCH repos/some/body/issues/comments/42 " in calls and "pr comment" not in calls, (codes, calls))
    new = PullRequest(scratch / "new", with_package=False)
    new.emit()
    codes, calls, comment = new.look()
    check("a package that is new", codes == [0, 0, 0] and "pr comment" in calls and "is new" in comment, (codes, calls, comment))
    (new.folder / PACKAGE / "manifest.json").write_text("{}")
    new.git("add", PACKAGE)
    new.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "Break")
    new.git("update-ref", "refs/remotes/origin/main", "HEAD")
    codes, calls, _ = new.look()
    check("a package that is none fails the job", codes[1] != 0, codes)
