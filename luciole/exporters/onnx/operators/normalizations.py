"""Normalizations, and operators of attention."""

from __future__ import annotations

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.activations import activated
from luciole.exporters.onnx.rules import rule
from luciole.ir import Value
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.ir.ops.l2_normalization import L2Normalization
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.ops.rope import Rope
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.schema.enums import RoPEMode

_SHORTEST = 1e-6
"""Length by which L2_NORMALIZATION divides where a vector is shorter."""


@rule(Softmax)
def softmax(k: Building, op: Softmax) -> Term:
    x = k.of(op.logits)
    x = x if op.beta == 1 else k.add("Mul", x, k.number(op.beta))
    return k.add("Softmax", x, axis=-1)


@rule(LogSoftmax)
def log_softmax(k: Building, op: LogSoftmax) -> Term:
    return k.add("LogSoftmax", k.of(op.logits), axis=-1)


@rule(L2Normalization)
def l2_normalization(k: Building, op: L2Normalization) -> Term:
    x = k.of(op.input)
    squares = k.add("Mul", x, x)
    last = k.ints(len(op.input.shape) - 1)
    length = k.add("Sqrt", k.add("ReduceSum", squares, last, keepdims=1, noop_with_empty_axes=1))
    y = k.add("Div", x, k.add("Max", length, k.number(_SHORTEST)))
    return activated(k, y, op.activation)


@rule(RmsNorm)
def rms_norm(k: Building, op: RmsNorm) -> Term:
    x = k.of(op.input)
    mean = k.add("ReduceMean", k.add("Mul", x, x), k.ints(-1), keepdims=1)
    root = k.add("Sqrt", k.add("Add", mean, k.number(op.epsilon)))
    return k.add("Mul", k.add("Div", x, root), k.of(op.gamma))


@rule(InstanceNorm)
def instance_norm(k: Building, op: InstanceNorm) -> Term | None:
    """Normalize images; tensors of three axes have their channels first already."""
    images = len(op.input.shape) == 4
    x = k.channels_first(op.input) if images else k.of(op.input)
    sides = [_vector(k, value, op.input.shape[3 if images else 1]) for value in (op.gamma, op.beta)]
    y = k.add("InstanceNormalization", x, *sides, epsilon=op.epsilon)
    y = activated(k, y, op.activation)
    if not images:
        return y
    k.put_first(op.output, y)
    return None


def _vector(k: Building, value: Value, channels: int | None) -> Term:
    """Find a number for each channel, also where there is one for all."""
    if value.shape == (channels,) or channels is None:
        return k.of(value)
    return k.add("Expand", k.of(value), k.ints(channels))


@rule(Rope)
def rope(k: Building, op: Rope) -> Term:
    """Turn pairs: neighbours in GPT-J's form, elements of both halves in GPT-NeoX's."""
    half = (op.input.dims[-1]) // 2
    terms = [k.of(value) for value in (op.input, op.sin_table, op.cos_table)]
    shape = k.add("Shape", terms[0])
    whole = [terms[0], *(k.add("Expand", term, shape) for term in terms[1:])]
    pairs = [_pair(k, op.mode, term, half) for term in whole]
    (a, b), (sin_a, sin_b), (cos_a, cos_b) = pairs
    first = k.add("Sub", k.add("Mul", a, cos_a), k.add("Mul", b, sin_a))
    second = k.add("Add", k.add("Mul", a, sin_b), k.add("Mul", b, cos_b))
    if op.mode != RoPEMode.GPT_J:
        return k.add("Concat", first, second, axis=-1)
    last = k.ints(-1)
    both = [k.add("Unsqueeze", term, last) for term in (first, second)]
    return k.add("Reshape", k.add("Concat", *both, axis=-1), shape)


def _pair(k: Building, mode: RoPEMode, term: Term, half: int) -> tuple[Term, Term]:
    whole, axis = 2 * half, k.ints(-1)
    if mode == RoPEMode.GPT_J:
        cuts = [(0, whole, 2), (1, whole, 2)]
    else:
        cuts = [(0, half, 1), (half, whole, 1)]
    first, second = (
        k.add("Slice", term, k.ints(begin), k.ints(end), axis, k.ints(step))
        for begin, end, step in cuts
    )
    return first, second
