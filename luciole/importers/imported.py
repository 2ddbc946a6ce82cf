"""Hold the result of reading a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from luciole.ir import Model
from luciole.ir.analysis.origins import SourceNode
from luciole.ir.errors import FormatError
from luciole.ir.findings import Finding, refusal
from luciole.schema.dialect import CIRCLE, Dialect


class Imported(NamedTuple):
    """A model, everything that is wrong with it, its file's dialect (CIRCLE for files that have
    none), and the nodes that its main graph was made of: none where operators are taken over one by
    one.
    """

    model: Model
    findings: list[Finding]
    dialect: Dialect = CIRCLE
    nodes: Sequence[SourceNode] = ()

    def sound(self) -> Model:
        """Return the model. Raises FormatError with the first error among the findings."""
        reason = refusal(self.findings)
        if reason is not None:
            raise FormatError(reason)
        return self.model
