"""Put INSTANCE_NORM together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.elementwise_binary import Add, Div, Mul, Sub
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.reshape import Reshape
from luciole.ir.rewriting.algebra import equals, expand, monomial
from luciole.ir.rewriting.edits import become, constant, is_float
from luciole.ir.rewriting.norms import Scaled, scaled_by_root
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import axes_of, made_by
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType


@rewrite(Add, Sub, Mul, Div, Reshape, makes=(InstanceNorm,), last_first=True)
def fuse_instnorm(graph: Graph, op: Add | Sub | Mul | Div | Reshape) -> bool:
    """c (x - MEAN(x)) / sqrt(MEAN((x - MEAN(x))^2) + e) + b -> INSTANCE_NORM(x, c, b).

    Means are of the pixels of [n, h, w, channels], or of the elements of [n, channels, elements];
    however it is written, and in the form with one more axis that a normalization of groups has.
    """
    result = op.tensor if isinstance(op, Reshape) else op.output
    last = result.producer.op if result.producer is not None else None
    if last is None or not is_float(result) or isinstance(last, Reshape):
        return False
    norm = _norm(last)
    x = None if norm is None else _image(norm.x, isinstance(op, Reshape))
    if norm is None or x is None or x.shape != op.output.shape or not _is_of_pixels(norm):
        return False
    channels = x.shape[-1 if len(x.shape) == 4 else 1]
    tail = (channels,) if len(norm.x.shape) == 4 else (channels, 1)
    parts = [_by_channel(part, channels, tail) for part in (norm.scale, norm.shift)]
    if parts[0] is None or parts[1] is None or channels is None:
        return False
    gamma = constant(graph, f"{op.name}/gamma", parts[0])
    beta = constant(graph, f"{op.name}/beta", parts[1])
    activation = last.attributes().get("activation", ActivationFunctionType.NONE)
    become(graph, op, InstanceNorm(x, gamma, beta, epsilon=norm.epsilon, activation=activation))
    return True


_AXES = {4: (1, 2), 3: (2,)}
"""What means are taken of, by the number of axes of x."""


def _norm(last: Op) -> Scaled | None:
    """Read the normalization that an operator ends, whatever activation it carries."""
    norm = scaled_by_root(last)
    return norm if norm is not None and norm.mean is not None else None


def _image(x: Value, is_reshaped: bool) -> Value | None:
    """Find the images [n, h, w, channels]: what is normalized, or what it was before a RESHAPE that
    adds an axis of extent 1.
    """
    if not is_reshaped:
        return x if len(x.shape) in _AXES else None
    before = made_by(x, Reshape)
    image = None if before is None else before.tensor
    return (
        image if image is not None and (*image.shape, 1) == x.shape and len(x.shape) == 5 else None
    )


def _is_of_pixels(norm: Scaled) -> bool:
    """Return whether mean and variance are those of x over its pixels."""
    axes = _AXES.get(len(norm.x.shape), (1, 2, 4))
    variance = made_by(norm.moment, Mean)
    if variance is None or norm.mean is None or not _is_mean(norm.mean, norm.x, axes):
        return False
    if not variance.keep_dims or axes_of(variance) != axes:
        return False
    return any(
        _is_mean(mean, norm.x, axes) and _is_square(variance.input, norm.x, mean)
        for mean in _means(norm.x)
    )


def _means(x: Value) -> list[Value]:
    """List the means of x that the graph has: converters take the same one twice."""
    return [use.op.output for use in x.users if isinstance(use.op, Mean)]


def _is_mean(value: Value, x: Value, axes: tuple[int, ...]) -> bool:
    mean = made_by(value, Mean)
    return mean is not None and mean.input is x and mean.keep_dims and axes_of(mean) == axes


def _is_square(value: Value, x: Value, mean: Value) -> bool:
    terms = {monomial((x, 2.0)): 1.0, monomial(x, mean): -2.0, monomial((mean, 2.0)): 1.0}
    return equals(expand(value, (x, mean)), terms)


def _by_channel(
    part: NDArray[np.float64] | None, channels: int | None, tail: tuple[int | None, ...]
) -> NDArray[np.float64] | None:
    """Write a constant as a number for each channel, 0 where there is none. The ``tail`` of its
    shape is to be that of a number for each channel.
    """
    if channels is None:
        return None
    if part is None:
        return np.zeros(channels)
    if part.size != 1 and (part.size != channels or part.shape[-len(tail) :] != tail):
        return None
    return np.broadcast_to(part.reshape(-1), (channels,)).copy()
