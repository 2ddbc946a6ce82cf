"""Kernels of the activations that are operators of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.ir.ops import activations as ops
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.arrays.logistic import logistic
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import unary
from luciole.kernels.formulas.elementwise import Unary
from luciole.schema.enums import ActivationFunctionType


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _hard_swish(x: Array) -> Array:
    return np.asarray(x * np.clip(x + 3, 0, 6) / 6)


def _fused(activation: ActivationFunctionType) -> Callable[[Array], Array]:
    return lambda x: activate(x, activation)


def _register(cls: type[Op], function: Callable[[Array], Array], *types: TensorType) -> None:
    @reference(cls, TensorType.FLOAT32, *types)
    def kernel(op: Op, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(x), x.dtype)


_register(ops.Tanh, np.tanh, TensorType.FLOAT16)
_register(ops.Logistic, logistic, TensorType.FLOAT16)
_register(ops.Relu, _fused(ActivationFunctionType.RELU))
_register(ops.Relu6, _fused(ActivationFunctionType.RELU6))
_register(ops.ReluN1To1, _fused(ActivationFunctionType.RELU_N1_TO_1))
_register(ops.Relu0To1, lambda x: np.clip(x, *ops.Relu0To1.limits))
_register(ops.Elu, _elu)
_register(ops.HardSwish, _hard_swish)

unary.register(ops.Tanh, Unary.TANH)
unary.register(ops.Logistic, Unary.LOGISTIC)
for _clamp in (ops.Relu, ops.Relu6, ops.ReluN1To1, ops.Relu0To1):
    unary.register(_clamp, Unary.CLAMP, *_clamp.limits)
unary.register(ops.Elu, Unary.ELU)
unary.register(ops.HardSwish, Unary.HARD_SWISH)
