"""Operator codes in their two generations: one byte until TFLite 2.3, a byte and an int32 since."""

from __future__ import annotations

from luciole.schema.dialect import CIRCLE, Dialect
from luciole.schema.enums import BuiltinOperator
from luciole.schema.errors import FormatError
from luciole.schema.numbers import numbers_of
from luciole.schema.tables import OperatorCode

_PLACEHOLDER = BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES
LAST_OF_ONE = -9
"""ONE's own operators are -2 to -9; luciole's lie below and hide behind CUSTOM, so that others can
show them.
"""


def resolve(code: OperatorCode) -> int:
    """Find the operator number that a file's entry means.

    A negative ``builtin_code`` comes first: that is how luciole's operators stand behind CUSTOM.
    The old byte is signed (252 to 254 of old circle files are -4 to -2) and wins unless it is the
    placeholder; files that never wrote it have 0 there, so the larger of the two is meant, as in
    TFLite.
    """
    old, new = code.deprecated_builtin_code, int(code.builtin_code)
    if new < 0:
        return new
    if old == _PLACEHOLDER:
        return new
    return old if old < 0 else max(old, new)


def encode(
    builtin: int, version: int, custom_code: str | None, dialect: Dialect = CIRCLE
) -> OperatorCode:
    """Make the file's entry for an operator number. Raises FormatError when the format has no such
    operator.
    """
    member = dialect.member(BuiltinOperator, builtin)
    if member is None:
        name = custom_code or _name(builtin)
        hint = "" if dialect is CIRCLE else "; save it as .circle"
        raise FormatError(f"{dialect.name} has no operator {name}{hint}")
    old = BuiltinOperator.CUSTOM if builtin < LAST_OF_ONE else min(builtin, _PLACEHOLDER)
    return OperatorCode(
        deprecated_builtin_code=int(old),
        builtin_code=BuiltinOperator(member),
        custom_code=custom_code,
        version=version,
    )


def _name(builtin: int) -> str:
    return BuiltinOperator(builtin).name if builtin in numbers_of(BuiltinOperator) else str(builtin)
