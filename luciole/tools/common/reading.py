"""How programs that look at models read them: also what ``verify`` refuses, also from stdin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from luciole.files import map_file
from luciole.importers import files, import_model
from luciole.importers.recipe.cook import import_recipe, is_recipe
from luciole.ir import Model
from luciole.ir.findings import Finding, refusal
from luciole.ir.verify import verify
from luciole.schema.dialect import CIRCLE, Dialect
from luciole.schema.reader import dialect_of
from luciole.tools.common import console
from luciole.tools.common.command import FAILED, FINE


class Looked(NamedTuple):
    """What there is to look at: a model, its file's format, and what is wrong with it."""

    model: Model
    dialect: Dialect
    findings: list[Finding]


def read_model(path: str) -> Looked:
    """The model behind a path (``-``: standard input) and its file's format; CIRCLE for what has
    none. Looking is how people find out why ``verify`` refuses a file.
    """
    if path == "-":
        return _read_bytes(sys.stdin.buffer.read())
    model, findings = files.load_with_findings(path)
    known = dialect_of(map_file(Path(path))) if files.is_flatbuffer(Path(path)) else None
    return Looked(model, known or CIRCLE, findings)


def _read_bytes(data: bytes) -> Looked:
    if is_recipe(data):
        model = import_recipe(data.decode("utf-8", "surrogateescape"))
        return Looked(model, CIRCLE, verify(model))
    model, findings = import_model(data)
    return Looked(model, dialect_of(data) or CIRCLE, findings)


def judged(path: str, findings: Sequence[Finding]) -> int:
    """Say the first error of a file that was shown all the same; the exit code that it makes."""
    reason = refusal(findings)
    if reason is None:
        return FINE
    console.say(f"luciole: error: {Path(path).name}: {reason}")
    return FAILED
