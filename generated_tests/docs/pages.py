"""Commands of a page, read from its Markdown.

A block of commands is fenced and each command begins with "$ "; a line that ends with a backslash goes on in the next. What stands below a
command is what it prints: compared word by word, with numbers, hashes and processors for equal; "..." stands for any words of a line, alone
on a line for any lines. A command succeeds, unless the one behind it is "echo $?", which shows its exit code. A block whose first line is

    # not run by the tests: REASON

is counted. A block behind a line that says nothing but a file's name in backquotes and a colon is a file of the reader's, which is written.
"""
import re
from dataclasses import dataclass, field

NOT_RUN = "# not run by the tests: "
COMMANDS = r"(?:tc-emit|make|cmake|ctest|pip|python3?|gcc|git|patch|sudo|qemu-\S+|(?:scripts|generated_tests|build|out)/\S+|\$python)\b"


@dataclass
class Command:
    line: int
    text: str
    shown: list = field(default_factory=list)  # lines


@dataclass
class Block:
    line: int
    language: str
    lines: list
    file: str = ""     # what the reader is to call it
    not_run: str = ""  # why

    def commands(self):
        found = []
        for k, line in enumerate(self.lines):
            if line.startswith("$ "):
                found.append(Command(self.line + k + 1, line[2:]))
            elif found and not found[-1].shown and found[-1].text.endswith("\\"):
                found[-1].text = found[-1].text[:-1] + line.strip()
            elif found:
                found[-1].shown.append(line)
        return found

    @property
    def is_commands(self):
        return any(line.startswith("$ ") for line in self.lines)


def blocks(text):
    """The fenced blocks of a page, in order."""
    found, open_block, before = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.fullmatch(r"\s*```(\S*).*", line)
        if fence and open_block is None:
            named = re.fullmatch(r"`([\w./-]+)`:", before)
            open_block = Block(number, fence[1], [], file=named[1] if named else "")
        elif fence:
            if open_block.lines and open_block.lines[0].startswith(NOT_RUN):
                open_block.not_run = open_block.lines[0][len(NOT_RUN):]
            found.append(open_block)
            open_block, before = None, ""
        elif open_block is not None:
            open_block.lines.append(line)
        elif line.strip():
            before = line.strip()
    return found


def strays(text):
    """Lines with commands that are no block of commands, so that nobody would run them: in indented blocks, or without "$ "."""
    found, inside, is_text = [], None, True
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*```", line):
            inside = None if inside is not None else line.strip()[3:]
            continue
        code = inside in ("", "console", "sh", "bash") if inside is not None else line.startswith("    ") and is_text
        if code and re.match(rf"\s*{COMMANDS} +[^=|:]", line):
            found.append((number, line.strip()))
        if inside is None and not line.startswith("    "):
            is_text = not line.strip() or not re.match(r"\s*[-*\d]", line)  # lists go on with indented lines
    return found


def masked(line):
    """The line with numbers, hashes and processors made equal, and runs of spaces one."""
    line = re.sub(r"--cpu native is [\w-]+", "--cpu native is CPU", line.strip())
    line = re.sub(r"_[0-9a-f]{4}\b", "_#", line)
    line = re.sub(r"\b[0-9a-f]{16,}\b", "#", line)
    line = re.sub(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b(?:nan|inf)\b", "#", line)
    return re.sub(r"\s+", " ", line)


def matches(shown, printed):
    """Does the output have the shown form? Both are lists of lines."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += r"[^\n]*".join(re.escape(part) for part in masked(line).split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(masked(line) + "\n" for line in printed)) is not None
