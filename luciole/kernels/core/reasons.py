"""Give the reason for which an operator is not compiled: its builder's, or else what shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from luciole.ir import LucioleError, Op
from luciole.schema.enums import ActivationFunctionType

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Declined:
    """The reason for which an operator is left to its reference kernel."""

    reason: str


UNFIT = Declined("no compiled form of these shapes and attributes")
"""Reason of builders that have no kernel for the operator as it is."""


def accepted(read: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R | Declined:
    """Call a function; the reason where it refuses with a LucioleError.

    For builders, which then decline: the reference kernel refuses again when the operator runs.
    """
    try:
        return read(*args, **kwargs)
    except LucioleError as error:
        return Declined(str(error))


def apparent(op: Op) -> Declined:
    """Find the reason for which a builder declined that returned none: an index that is computed,
    or a fused activation.
    """
    for slot, (name, value) in enumerate(op.named_operands()):
        is_index = bool(op.operand_field(slot).dtypes)
        if value is not None and is_index and not value.is_constant:
            return Declined(f"{name} is computed when the model runs")
    fused = op.attributes().get("activation")
    if isinstance(fused, ActivationFunctionType) and fused != ActivationFunctionType.NONE:
        which = f"a fused {fused.name}, or of these shapes and attributes"
        return Declined(f"no compiled form with {which}")
    return UNFIT
