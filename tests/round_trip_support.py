"""What is read of a file."""

from __future__ import annotations

from luciole.importers import import_model
from luciole.ir import Model
from luciole.ir.findings import Severity
from luciole.schema.dialect import TFLITE, Dialect
from luciole.schema.writer import write
from tests.samples import whole_model


def imported(dialect: Dialect = TFLITE) -> Model:
    model, findings = import_model(write(whole_model(), dialect))
    assert [f for f in findings if f.severity is Severity.ERROR] == []
    return model
