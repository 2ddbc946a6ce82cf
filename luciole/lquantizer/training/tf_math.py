"""TensorFlow forms of the operators that compute: products, reductions, element by element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array, Op, UnsupportedError
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops import activations as act
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops import elementwise_unary as unary
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.reduce import Mean, ReduceMax, ReduceMin, ReduceProd, Reduction, Sum
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.rules import axes
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow
from luciole.lquantizer.training.tf_table import differentiable
from luciole.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat


def activate(tf: TensorFlow, x: Tensor, activation: ActivationFunctionType) -> Tensor:
    """Apply a fused activation. Raises UnsupportedError for one that no kernel has."""
    if activation == ActivationFunctionType.NONE:
        return x
    if activation not in act.FUSED:
        raise UnsupportedError(f"fused activation {activation.name} is not supported")
    return _FUSED[act.FUSED[activation]](tf, x)


_FUSED: dict[type[Op], Callable[[TensorFlow, Tensor], Tensor]] = {
    act.Relu: lambda tf, x: tf.nn.relu(x),
    act.Relu6: lambda tf, x: tf.nn.relu6(x),
    act.ReluN1To1: lambda tf, x: tf.clip_by_value(x, *act.ReluN1To1.limits),
    act.Tanh: lambda tf, x: tf.tanh(x),
}
"""Forms of operators that others have fused into them."""


def dense(tf: TensorFlow, x: Tensor, weights: Tensor) -> Tensor:
    """Multiply x W^T over the last axis: x [..., n], weights [o, n]."""
    if len(x.shape) == 2:
        return tf.matmul(x, weights, transpose_b=True)
    return tf.tensordot(x, weights, [[-1], [1]])


@differentiable(FullyConnected)
def fully_connected(
    tf: TensorFlow, op: FullyConnected, x: Tensor, weights: Tensor, bias: Tensor | None
) -> Tensor:
    """Compute a dense layer, all rows in one matrix unless the operator keeps the axes."""
    y = dense_products(tf, op, x, weights)
    return activate(tf, y if bias is None else y + bias, op.activation)


def dense_products(tf: TensorFlow, op: FullyConnected, x: Tensor, weights: Tensor) -> Tensor:
    """Multiply without bias and activation."""
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise UnsupportedError(f"weights format {op.weights_format.name} is not supported")
    rows = x if op.keep_num_dims else tf.reshape(x, (-1, weights.shape[1]))
    return dense(tf, rows, weights)


@differentiable(BatchMatMul)
def batch_matmul(tf: TensorFlow, op: BatchMatMul, x: Tensor, y: Tensor) -> Tensor:
    """Multiply matrices batch by batch."""
    return tf.matmul(x, y, transpose_a=op.adjoint_lhs, transpose_b=op.adjoint_rhs)


def _unary(cls: type[Op], function: Callable[[TensorFlow, Tensor], Tensor]) -> None:
    @differentiable(cls)
    def apply(tf: TensorFlow, op: Op, x: Tensor) -> Tensor:
        return function(tf, x)


_unary(unary.Abs, lambda tf, x: tf.abs(x))
_unary(unary.Neg, lambda tf, x: tf.negative(x))
_unary(unary.Exp, lambda tf, x: tf.exp(x))
_unary(unary.Log, lambda tf, x: tf.math.log(x))
_unary(unary.Sqrt, lambda tf, x: tf.sqrt(x))
_unary(unary.Rsqrt, lambda tf, x: tf.math.rsqrt(x))
_unary(unary.Sin, lambda tf, x: tf.sin(x))
_unary(unary.Cos, lambda tf, x: tf.cos(x))
_unary(unary.Square, lambda tf, x: tf.square(x))
_unary(act.Logistic, lambda tf, x: tf.sigmoid(x))
_unary(act.Elu, lambda tf, x: tf.nn.elu(x))
_unary(act.HardSwish, lambda tf, x: x * tf.nn.relu6(x + 3) / 6)
for _op, _form in _FUSED.items():
    _unary(_op, _form)


@differentiable(Gelu)
def gelu(tf: TensorFlow, op: Gelu, x: Tensor) -> Tensor:
    """Apply GELU, exact or approximated with tanh."""
    return tf.nn.gelu(x, approximate=op.approximate)


@differentiable(LeakyRelu)
def leaky_relu(tf: TensorFlow, op: LeakyRelu, x: Tensor) -> Tensor:
    """Take x where it is positive, else alpha x."""
    return tf.where(x > 0, x, x * np.float32(op.alpha))


@differentiable(PRelu)
def prelu(tf: TensorFlow, op: PRelu, x: Tensor, alpha: Tensor) -> Tensor:
    """Take x where it is not negative, else alpha x."""
    return tf.where(x >= 0, x, x * alpha)


def _arithmetic(
    cls: type[binary.Arithmetic], function: Callable[[TensorFlow, Tensor, Tensor], Tensor]
) -> None:
    @differentiable(cls)
    def apply(tf: TensorFlow, op: binary.Arithmetic, x: Tensor, y: Tensor) -> Tensor:
        return activate(tf, function(tf, x, y), op.activation)


_arithmetic(binary.Add, lambda tf, x, y: tf.add(x, y))
_arithmetic(binary.Sub, lambda tf, x, y: tf.subtract(x, y))
_arithmetic(binary.Mul, lambda tf, x, y: tf.multiply(x, y))


@differentiable(binary.Div)
def div(tf: TensorFlow, op: binary.Div, x: Tensor, y: Tensor) -> Tensor:
    """Divide, integers toward zero."""
    is_float = NUMPY[op.x.dtype].kind == "f"
    quotient = tf.divide(x, y) if is_float else tf.truncatediv(x, y)
    return activate(tf, quotient, op.activation)


def _binary(cls: type[Op], function: Callable[[TensorFlow, Tensor, Tensor], Tensor]) -> None:
    @differentiable(cls)
    def apply(tf: TensorFlow, op: Op, x: Tensor, y: Tensor) -> Tensor:
        return function(tf, x, y)


_binary(binary.Maximum, lambda tf, x, y: tf.where(x > y, x, y))  # y where one of them is NaN
_binary(binary.Minimum, lambda tf, x, y: tf.where(x < y, x, y))
_binary(binary.SquaredDifference, lambda tf, x, y: tf.math.squared_difference(x, y))
_binary(binary.Pow, lambda tf, x, y: tf.pow(x, y))


_REDUCTIONS: dict[type[Op], str] = {
    Mean: "reduce_mean",
    Sum: "reduce_sum",
    ReduceMax: "reduce_max",
    ReduceMin: "reduce_min",
    ReduceProd: "reduce_prod",
}


@differentiable(*_REDUCTIONS)
def reduction(tf: TensorFlow, op: Reduction, x: Tensor, indices: Array) -> Tensor:
    """Reduce axes, which may repeat in a file but not in TensorFlow."""
    reduce = getattr(tf, _REDUCTIONS[type(op)])
    if not isinstance(indices, np.ndarray):
        raise UnsupportedError("the reduction axes are computed, constant ones are needed")
    where = axes(np.atleast_1d(indices).tolist(), len(x.shape), "a reduction axis")
    return reduce(x, axis=where, keepdims=op.keep_dims)


@differentiable(Softmax)
def softmax(tf: TensorFlow, op: Softmax, x: Tensor) -> Tensor:
    """Make a distribution over the last axis."""
    return tf.nn.softmax(x * np.float32(op.beta))


@differentiable(LogSoftmax)
def log_softmax(tf: TensorFlow, op: LogSoftmax, x: Tensor) -> Tensor:
    """Compute the logarithms of a distribution over the last axis."""
    return tf.nn.log_softmax(x)


@differentiable(Cast)
def cast(tf: TensorFlow, op: Cast, x: Tensor) -> Tensor:
    """Convert numbers to the result's own type, floats to integers toward zero."""
    is_whole = NUMPY[op.output.dtype].kind in "iu"
    return (tf.saturate_cast if is_whole else tf.cast)(x, NUMPY[op.output.dtype])
