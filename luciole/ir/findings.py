"""Describe faults of a file or a model, in words that people and programs read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

LONGEST = 2000
"""Characters of a place or a sentence."""


class Severity(Enum):
    """How bad a finding is: an ERROR stops a model from being loaded."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing that ``verify`` found; ``code`` is stable, ``path`` says where, ``sentence`` says
    what.
    """

    severity: Severity
    code: str
    path: str
    sentence: str

    def __post_init__(self) -> None:
        """Cut off text that no person reads."""
        for part in ("path", "sentence"):
            text: str = vars(self)[part]
            if len(text) > LONGEST:
                object.__setattr__(self, part, f"{text[:LONGEST]}... ({len(text)} characters)")

    def as_json(self) -> dict[str, str]:
        """Turn the finding into JSON values for programs."""
        return {
            "severity": self.severity.value,
            "code": self.code,
            "path": self.path,
            "sentence": self.sentence,
        }

    def __str__(self) -> str:
        return f"{self.severity.value} [{self.code}] {self.path}: {self.sentence}"


def refusal(findings: Sequence[Finding]) -> str | None:
    """Return the first error and how many more there are, on one line; None where there is none."""
    errors = [f for f in findings if f.severity is Severity.ERROR]
    if not errors:
        return None
    others = f" (and {len(errors) - 1} more: see luciole verify)" if len(errors) > 1 else ""
    return f"{errors[0]}{others}"
