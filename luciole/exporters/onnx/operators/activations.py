"""Activations, fused ones too."""

from __future__ import annotations

import math

import numpy as np

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import elementwise
from luciole.ir.ops.activations import (
    LIMITS,
    Elu,
    HardSwish,
    Relu,
    Relu0To1,
    Relu6,
    ReluN1To1,
)
from luciole.ir.ops.fake_quant import FakeQuant, limits
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.prelu import PRelu
from luciole.schema.enums import ActivationFunctionType

_FUSED = {
    ActivationFunctionType.RELU: "Relu",
    ActivationFunctionType.TANH: "Tanh",
}


def activated(k: Building, term: Term, activation: ActivationFunctionType) -> Term:
    """Apply a fused activation. Raises RefusedError for one that kernels do not apply."""
    if activation == ActivationFunctionType.NONE:
        return term
    if activation in _FUSED:
        return k.add(_FUSED[activation], term)
    if activation not in LIMITS:
        raise RefusedError(f"fused activation {activation.name}")
    return clipped(k, term, *LIMITS[activation])


def clipped(k: Building, term: Term, low: float, high: float) -> Term:
    """Cut numbers off outside of two limits."""
    return k.add("Clip", term, k.number(low), k.number(high))


@elementwise(Relu)
def relu(k: Building, op: Relu, x: Term) -> Term:
    return k.add("Relu", x)


@elementwise(Relu6, ReluN1To1, Relu0To1)
def clamp(k: Building, op: Relu6 | ReluN1To1 | Relu0To1, x: Term) -> Term:
    return clipped(k, x, *op.limits)


@elementwise(Elu)
def elu(k: Building, op: Elu, x: Term) -> Term:
    return k.add("Elu", x, alpha=1.0)


@elementwise(HardSwish)
def hard_swish(k: Building, op: HardSwish, x: Term) -> Term:
    return k.add("HardSwish", x)


@elementwise(LeakyRelu)
def leaky_relu(k: Building, op: LeakyRelu, x: Term) -> Term:
    return k.add("LeakyRelu", x, alpha=float(op.alpha))


@elementwise(PRelu)
def prelu(k: Building, op: PRelu, x: Term, alpha: Term) -> Term:
    return k.add("PRelu", x, alpha)


@elementwise(Gelu)
def gelu(k: Building, op: Gelu, x: Term) -> Term:
    """Spell out Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", equations 1 and 2."""
    if k.opset >= 20:
        return k.add("Gelu", x, approximate="tanh" if op.approximate else "none")
    if op.approximate:
        cube = k.add("Mul", k.add("Mul", x, x), x)
        inner = k.add("Add", x, k.add("Mul", cube, k.number(0.044715)))
        turned = k.add("Tanh", k.add("Mul", inner, k.number(math.sqrt(2 / math.pi))))
    else:
        turned = k.add("Erf", k.add("Div", x, k.number(math.sqrt(2))))
    share = k.add("Add", turned, k.number(1.0))
    return k.add("Mul", k.add("Mul", x, k.number(0.5)), share)


@elementwise(FakeQuant)
def fake_quant(k: Building, op: FakeQuant, x: Term) -> Term:
    """Spell out TensorFlow's FakeQuantWithMinMaxArgs: limits are moved so that zero is
    expressible.
    """
    low, high, scale = (float(number) for number in limits(op))
    inside = k.add("Sub", clipped(k, x, low, high), k.number(low))
    steps = k.add("Mul", inside, k.number(float(np.float32(1) / np.float32(scale))))
    whole = k.add("Floor", k.add("Add", steps, k.number(0.5)))
    return k.add("Add", k.add("Mul", whole, k.number(scale)), k.number(low))
