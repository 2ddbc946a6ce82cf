"""C forms of operators on floats, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

from luciole.ir import UnsupportedError, Value
from luciole.ir.ops.activations import LIMITS
from luciole.ir.value import element_count
from luciole.kernels.formulas.elementwise import Applied, Unary
from luciole.kernels.portable.calls import CCall, Field, made
from luciole.kernels.portable.printed import loop_name, parameters_of
from luciole.schema.enums import ActivationFunctionType as Activation
from luciole.schema.enums import TensorType

CLAMP = "luc_clamp"


def unary_call(formula: Applied, x: Value, y: Value) -> CCall:
    """Apply a formula to floats."""
    fields: dict[str, Field] = {"count": element_count(x.dims)}
    if formula.function == Unary.CLAMP:
        return CCall(CLAMP, {**fields, **limits(formula.a, formula.b)}, (x,), (y,))
    parameters = {"a": formula.a, "b": formula.b}
    fields |= {name: parameters[name] for name in parameters_of(formula.function)}
    return CCall(loop_name(formula.function), fields, (x,), (y,))


def _fused(activation: Activation) -> Applied:
    """Return the formula of a fused activation."""
    if activation in LIMITS:
        return Applied(Unary.CLAMP, *LIMITS[activation])
    if activation == Activation.TANH:
        return Applied(Unary.TANH)
    raise UnsupportedError(f"fused activation {activation.name} has no C form")


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
    formula = _fused(activation)
    before = made(y, "sum", TensorType.FLOAT32)
    return [compute(before), unary_call(formula, before, y)]
