"""C forms of what is computed on floats, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from luciole.ir import Op, UnsupportedError, Value
from luciole.ir.ops.activations import FUSED, LIMITS, Clamp, Logistic, Relu0To1, Tanh
from luciole.ir.value import element_count
from luciole.kernels.portable.calls import CCall, PortableContext, made
from luciole.schema.enums import ActivationFunctionType as Activation
from luciole.schema.enums import TensorType

TANH, LOGISTIC, CLAMP = "luc_tanh", "luc_logistic", "luc_clamp"

_PLAIN: dict[type[Op], str] = {Tanh: TANH, Logistic: LOGISTIC}


def activation_call(cls: type[Op], x: Value, y: Value) -> CCall:
    """Apply the activation of an operator class to floats."""
    count = element_count(x.dims)
    if issubclass(cls, Clamp):
        return CCall(CLAMP, {"count": count, **limits(*cls.limits)}, (x,), (y,))
    return CCall(_PLAIN[cls], {"count": count}, (x,), (y,))


def limits(low: float, high: float) -> dict[str, int | float]:
    """Write limits as the fields of C structs: what is infinite is none."""
    return {
        "has_least": int(math.isfinite(low)),
        "has_most": int(math.isfinite(high)),
        "least": low if math.isfinite(low) else 0.0,
        "most": high if math.isfinite(high) else 0.0,
    }


def as_limits(activation: Activation) -> tuple[Activation, Activation]:
    """Split an activation into one that cuts off and one that is computed behind it."""
    return (activation, Activation.NONE) if activation in LIMITS else (Activation.NONE, activation)


def activated(activation: Activation, y: Value, compute: Callable[[Value], CCall]) -> list[CCall]:
    """Compute a result, and apply a fused activation to it."""
    if activation == Activation.NONE:
        return [compute(y)]
    if activation not in FUSED:
        raise UnsupportedError(f"fused activation {activation.name} has no C form")
    before = made(y, "sum", TensorType.FLOAT32)
    return [compute(before), activation_call(FUSED[activation], before, y)]


def build_activation(op: Op, context: PortableContext) -> Sequence[CCall]:
    """Make the call of an activation that is an operator of its own."""
    del context
    x = op.operands[0]
    assert x is not None  # it is required
    return [activation_call(type(op), x, op.results[0])]


PORTABLE: tuple[type[Op], ...] = (*FUSED.values(), Logistic, Relu0To1)
"""Activations of floats that have a C form."""
