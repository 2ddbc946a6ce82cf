"""Say why an operator is not compiled: what builders say while they decline, or else what shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from luciole.ir import Op
from luciole.schema.enums import ActivationFunctionType

_HEARD: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@dataclass(frozen=True)
class Declined:
    """An operator that is left to its reference kernel, and why."""

    reason: str


def decline(reason: str) -> None:
    """Say why a builder is about to decline. Of several reasons the last counts."""
    heard = _HEARD.get()
    if heard is not None:
        heard.append(reason)


@contextmanager
def listening() -> Iterator[list[str]]:
    """Collect the reasons that are given while the context lasts."""
    heard: list[str] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def apparent(op: Op) -> str:
    """Find the reason for which a builder declined that said none: an index that is computed, or a
    fused activation.
    """
    for slot, (name, value) in enumerate(op.named_operands()):
        is_index = bool(op.operand_field(slot).dtypes)
        if value is not None and is_index and not value.is_constant:
            return f"{name} is computed when the model runs"
    fused = op.attributes().get("activation")
    if isinstance(fused, ActivationFunctionType) and fused != ActivationFunctionType.NONE:
        return f"no compiled form with a fused {fused.name}, or of these shapes and attributes"
    return "no compiled form of these shapes and attributes"
