"""Hold the result of reading a file."""

from __future__ import annotations

from typing import NamedTuple

from luciole.ir import Model
from luciole.ir.errors import FormatError
from luciole.ir.findings import Finding, refusal
from luciole.schema.dialect import CIRCLE, Dialect


class Imported(NamedTuple):
    """A model, everything that is wrong with it, and its file's dialect: CIRCLE for files that have
    none.
    """

    model: Model
    findings: list[Finding]
    dialect: Dialect = CIRCLE

    def sound(self) -> Model:
        """Return the model. Raises FormatError with the first error among the findings."""
        reason = refusal(self.findings)
        if reason is not None:
            raise FormatError(reason)
        return self.model
