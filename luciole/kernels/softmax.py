"""SOFTMAX and LOG_SOFTMAX kernels."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.value import element_count
from luciole.kernels import jit
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import reach
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import reduce, strided, unary
from luciole.kernels.formulas.elementwise import Binary, Unary
from luciole.kernels.jit import LANES, Single
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.portable.calls import CCall, PortableContext, portable

MAXIMUM, ADD = int(Binary.MAXIMUM), int(Binary.ADD)
SCALE, SCALED_EXP, LESS_BOTH = int(Unary.SCALE), int(Unary.SCALED_EXP), int(Unary.LESS_BOTH)
LOG = int(Unary.LOG)
LOWEST, ONE = np.float32(-np.inf), np.float32(1)


def _below_largest(x: Array) -> Array:
    """Subtract the largest element of each row: no exponential of the differences overflows."""
    return x - x.max(axis=-1, keepdims=True) if x.size else x.copy()


@reference(Softmax, TensorType.FLOAT32)
def softmax(op: Softmax, x: Array) -> Array:
    """Compute e^(beta (x - largest)), divided by the row's sum of it."""
    beta = x.dtype.type(op.beta)
    with np.errstate(all="ignore"):
        powers = np.exp(_below_largest(-x if beta < 0 else x) * abs(beta))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True), x.dtype)


@reference(LogSoftmax, TensorType.FLOAT32)
def log_softmax(op: LogSoftmax, x: Array) -> Array:
    """Compute x - largest - log(the row's sum of e^(x - largest))."""
    with np.errstate(all="ignore"):
        below = _below_largest(x)
        return np.asarray(below - np.log(np.exp(below).sum(axis=-1, keepdims=True)), x.dtype)


@native(Softmax, TensorType.FLOAT32)
def build_softmax(op: Softmax, context: Context) -> NativeStep | None:
    """Find the largest element of each row, compute the exponentials and their sum, then divide."""
    return _step(context, op.beta, _softmax()) if op.beta > 0 else None


@native(LogSoftmax, TensorType.FLOAT32)
def build_log_softmax(op: LogSoftmax, context: Context) -> NativeStep:
    """Find the largest element of each row, compute the sum of the exponentials, then subtract."""
    return _step(context, 1, _log_softmax())


@portable(Softmax, TensorType.FLOAT32)
def softmax_in_c(op: Softmax, context: PortableContext) -> list[CCall]:
    """Call SOFTMAX of floats, with an exponential of its own."""
    del context
    x = op.logits
    if op.beta <= 0 or not element_count(x.dims):
        raise UnsupportedError(f"beta is {op.beta}; a positive one is needed, and elements")
    fields = {"rows": element_count(x.dims[:-1]), "depth": x.dims[-1], "beta": op.beta}
    return [CCall("luc_softmax", fields, (x,), op.results)]


class SoftmaxRecord(Shared):
    """Rows of a result and an operand, n floats each."""

    y: int
    x: int
    n: int
    beta: float


def _step(context: Context, beta: float, kernel: jit.Kernel) -> NativeStep:
    x, y = context.first, context.results[0]
    n = x.shape[-1]
    rows = x.size // max(n, 1)
    to, source = (reach(t, 4 * n * rows) for t in (y, x))
    record = SoftmaxRecord(begin=0, end=rows, y=to, x=source, n=n, beta=beta)
    return strided.step(kernel, record, x.size)


@cache
def _softmax() -> jit.Kernel:
    """Make the kernel of SOFTMAX."""

    @jit.kernel
    def softmax(r: SoftmaxRecord) -> None:
        n, beta = r.n, r.beta
        scale = elementwise.function(SCALE)
        for row in range(r.begin, r.end):
            y, x = r.y + 4 * n * row, r.x + 4 * n * row
            if n <= LANES:
                _short(y, x, n, beta)
            else:
                total = _powers(y, x, n, _largest(x, n), beta)
                unary.apply(scale, y, y, n, ONE / total, ONE)

    return softmax


@cache
def _log_softmax() -> jit.Kernel:
    """Make the kernel of LOG_SOFTMAX. The exponentials stand in the result's place for a while."""

    @jit.kernel
    def log_softmax(r: SoftmaxRecord) -> None:
        n = r.n
        less, logarithm = elementwise.function(LESS_BOTH), elementwise.function(LOG)
        maximum = elementwise.function(MAXIMUM)
        for row in range(r.begin, r.end):
            y, x = r.y + 4 * n * row, r.x + 4 * n * row
            largest = _largest(x, n)
            total = _powers(y, x, n, largest, ONE)
            log = elementwise.mapped(logarithm, elementwise.spread(total), ONE, ONE)
            unary.apply(less, y, x, n, largest, elementwise.folded(maximum, log))

    return log_softmax


@jit.inlined
def _short(y: int, x: int, n: int, beta: Single) -> None:
    """Compute a row that fits into one vector; lanes beyond the last count 0."""
    numbers = elementwise.load_first(x, n, LOWEST)
    largest = elementwise.folded(elementwise.function(MAXIMUM), numbers)
    powers = elementwise.mapped(elementwise.function(SCALED_EXP), numbers, largest, beta)
    total = elementwise.folded(elementwise.function(ADD), powers)
    scaled = elementwise.mapped(elementwise.function(SCALE), powers, ONE / total, ONE)
    elementwise.store_first(scaled, y, n)


@jit.separate
def _largest(x: int, n: int) -> Single:
    """Find the largest of n floats, NaN aside."""
    maximum = elementwise.function(MAXIMUM)
    result: Single = elementwise.folded(maximum, reduce.row(maximum, x, n, LOWEST))
    return result


@jit.separate
def _powers(y: int, x: int, n: int, largest: Single, beta: Single) -> Single:
    """Write e^(beta (x - largest)) of n floats to y; their sum. Lanes beyond the last count 0."""
    power, add = elementwise.function(SCALED_EXP), elementwise.function(ADD)
    total = elementwise.spread(np.float32(0))
    for _ in range(n // LANES):
        powers = elementwise.mapped(power, elementwise.load_vector(x), largest, beta)
        elementwise.store_vector(powers, y)
        total = elementwise.combined(add, powers, total)
        x += 4 * LANES
        y += 4 * LANES
    rest = n % LANES
    if rest:
        powers = elementwise.mapped(power, elementwise.load_first(x, rest, LOWEST), largest, beta)
        elementwise.store_first(powers, y, rest)
        total = elementwise.combined(add, powers, total)
    result: Single = elementwise.folded(add, total)
    return result


@portable(LogSoftmax, TensorType.FLOAT32)
def log_softmax_in_c(op: LogSoftmax, context: PortableContext) -> list[CCall]:
    """Call LOG_SOFTMAX of floats."""
    del context
    x = op.logits
    fields = {"rows": element_count(x.dims[:-1]), "depth": x.dims[-1]}
    return [CCall("luc_log_softmax", fields, (x,), op.results)]
