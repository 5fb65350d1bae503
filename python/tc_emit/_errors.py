"""What goes wrong, as exceptions with the diagnostics as data."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence


@dataclass(frozen=True)
class Diagnostic:
    """A message of tc-emit; what it does not tell is None."""

    code: str | None  #: "TC0301"; `tc-emit explain TC0301` says more
    severity: str  #: "error" or "warning"
    message: str  #: what is wrong, and why
    notes: tuple[str, ...] = ()  #: the ways out
    file: str | None = None
    node: str | None = None  #: the node's name in the model
    op: str | None = None  #: "Conv"
    value: str | None = None  #: name of a tensor
    input: int | None = None  #: its place among the node's inputs, from 0
    exit_code: int = 0
    output: str | None = None  #: what a node without a name makes

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Diagnostic:
        return cls(**{**{k: fields.get(k) for k in cls.__dataclass_fields__}, "notes": tuple(fields.get("notes") or ())})

    def __str__(self) -> str:
        place = [f'node "{self.node}"' if self.node else "", f"({self.op})" if self.op else "", f'that makes "{self.output}"' if self.output else "",
                 f"input {self.input}" if self.input is not None else "", f'"{self.value}"' if self.value else ""]
        where = " ".join(part for part in place if part)
        text = self.severity + (f"[{self.code}]" if self.code else "") + (f" {self.file}" if self.file else "") + ": "
        return text + (f"{where}: " if where else "") + "\n  note: ".join((self.message, *self.notes))


class TcEmitError(Exception):
    """Every error of this module.

    diagnostics: all messages, warnings too, in the order in which they were found.
    exit_code: what the command ends with; None where the module itself complains.
    """

    exit_code: int | None = None

    def __init__(self, message: str = "", diagnostics: Sequence[Diagnostic] = (), exit_code: int | None = None) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        if exit_code is not None:
            self.exit_code = exit_code
        super().__init__(message or "\n".join(map(str, self.diagnostics)))


class ModelRejected(TcEmitError):
    """The model is wrong, or has sizes that `dims` has to bind."""

    exit_code = 1


class UsageError(TcEmitError, ValueError):
    """An argument makes no sense."""

    exit_code = 2


class Unsupported(TcEmitError):
    """The model needs something that is not supported."""

    exit_code = 3


class Mismatch(TcEmitError):
    """`verify` found a difference."""

    exit_code = 4


class LimitExceeded(TcEmitError):
    """The model is larger than a limit."""

    exit_code = 5


class FileError(TcEmitError, OSError):
    """A file could not be read or written."""

    exit_code = 6


class ToolFailed(TcEmitError):
    """make, CMake or the compiler failed; the message has what they said."""

    exit_code = 7


class CompilerMissing(ToolFailed):
    """Nothing here can build a package; the message says what is missing."""


class InternalError(TcEmitError):
    """A defect of tc-emit."""

    exit_code = 70


class RunError(TcEmitError, ValueError):
    """Inputs do not fit the model, or a run ended with another status than OK."""


BY_EXIT_CODE: dict[int, type[TcEmitError]] = {
    error.exit_code: error  # type: ignore[misc]
    for error in (ModelRejected, UsageError, Unsupported, Mismatch, LimitExceeded, FileError, ToolFailed, InternalError)}
