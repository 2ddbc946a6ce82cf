"""Files of learned layers, taken apart and put together again in the three forms that are read."""

from __future__ import annotations

from collections.abc import Callable

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Model
from luciole.schema import tables
from luciole.schema.dialect import CIRCLE
from luciole.schema.enums import BuiltinOperator
from luciole.schema.reader import read
from luciole.schema.writer import write

Edit = Callable[[tables.OperatorCode, tables.Operator], None]


def written(model: Model) -> tuple[tables.Model, tables.OperatorCode, tables.Operator]:
    """The tables of the file that we write, its operator code and its operator."""
    root, unknown = read(to_bytes(model))
    assert unknown == []
    assert root.operator_codes is not None
    assert root.subgraphs is not None
    operators = root.subgraphs[0].operators
    assert operators is not None
    return root, root.operator_codes[0], operators[0]


def reread(model: Model, edit: Edit) -> Model:
    """The model behind the same file after a change to its tables."""
    root, code, operator = written(model)
    edit(code, operator)
    return from_bytes(write(root, CIRCLE))


def as_written(code: tables.OperatorCode, operator: tables.Operator) -> None:
    """Both builtin fields and custom ones: what we write."""


def the_code_in_both_fields(code: tables.OperatorCode, operator: tables.Operator) -> None:
    """The new code in the old field too, nothing for readers of custom operators."""
    code.deprecated_builtin_code, code.custom_code = int(code.builtin_code), None
    operator.custom_options = None


def custom_alone(code: tables.OperatorCode, operator: tables.Operator) -> None:
    """A custom operator with a FlexBuffer, nothing for readers of the new code."""
    code.builtin_code = BuiltinOperator.CUSTOM
    operator.builtin_options = None


FORMS: tuple[Edit, ...] = (as_written, the_code_in_both_fields, custom_alone)
