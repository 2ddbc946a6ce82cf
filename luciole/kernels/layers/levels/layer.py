"""Constants of one layer of learned levels, prepared for a compiled kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Op, learned_levels
from luciole.ir.ops.activations import APPLIED, LIMITS
from luciole.kernels.core.contract import Context
from luciole.kernels.layers.levels.encoding import Encoding
from luciole.schema.enums import ActivationFunctionType

Ending: TypeAlias = tuple[float, float, int]
"""Where results are cut off, and whether TANH is taken before."""


_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, dtype=np.uint8)
"""How many bits of a byte are set."""


def or_zero(array: Array | None) -> Array:
    """Return an optional operand, 0 for every output where it is absent."""
    return np.zeros(1, np.float32) if array is None else array


def without_padding(binary: Array, n: int) -> NDArray[np.uint32]:
    """Copy words [..., ceil(n / 32)] and clear their padding bits, whatever a file holds there."""
    words = np.array(binary, np.int32, order="C").view(np.uint32)
    if n % learned_levels.WORD:
        words[..., -1] &= np.uint32((1 << n % learned_levels.WORD) - 1)
    return words


def ending(activation: ActivationFunctionType) -> Ending:
    """Return where an activation clamps (both limits known when a kernel is compiled, so that an
    infinite one costs nothing), and whether TANH is taken before.
    """
    low, high = LIMITS.get(activation, (-np.inf, np.inf))
    return low, high, int(activation == ActivationFunctionType.TANH)


class Operands(NamedTuple):
    """The arrays of a layer of learned levels, in the order of a file."""

    x: Array
    ax: Array
    aw: Array
    binary: Array
    bias: Array | None
    offsets: Array | None

    @classmethod
    def of(cls, op: Op, context: Context) -> Operands | None:
        """Take a builder's arrays; None where one but the input is computed when the model runs,
        or the fused activation is none that compiled kernels apply.
        """
        x, ax, aw, binary, *optional = context.operands
        if x is None or ax is None or aw is None or binary is None:
            return None
        constant = all(value is None or value.is_constant for value in op.operands[1:])
        if not constant or op.attributes()["activation"] not in APPLIED:
            return None
        bias, offsets = (*optional, None, None)[:2]
        return cls(x, ax, aw, binary, bias, offsets)


@dataclass(frozen=True)
class LevelsLayer:
    """The constants of one LQ_FULLY_CONNECTED: scales ``ax`` [kx] and ``aw`` [o, kw], words of
    ``binary`` [o, kw, ceil(n / 32)], and what may be absent.
    """

    inputs: int
    input_offset: float
    activation: ActivationFunctionType
    ax: Array
    aw: Array
    binary: Array
    bias: Array | None
    offsets: Array | None

    @cached_property
    def encoding(self) -> Encoding:
        """The encoding of inputs."""
        return Encoding.of(self.ax, self.input_offset)

    @property
    def outputs(self) -> int:
        """Rows of the weight matrix."""
        return len(self.aw)

    @property
    def weight_planes(self) -> int:
        """Elements of a weight's basis."""
        return int(self.aw.shape[1])

    @property
    def row(self) -> int:
        """Words of one plane of a row of inputs."""
        return -(-self.inputs // learned_levels.WORD)

    @cached_property
    def words(self) -> NDArray[np.uint32]:
        """The weights' words without padding bits, [o, kw, ceil(n / 32)]."""
        return without_padding(self.binary, self.inputs)

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """The sum of every output's weights, [o]."""
        n, octets = self.inputs, np.ascontiguousarray(self.words).view(np.uint8)
        ones = _ONES[octets].sum(-1, dtype=np.int64)
        return np.asarray(
            (self.aw.astype(np.float64) * (2 * ones - n)).sum(1)
            + n * or_zero(self.offsets).astype(np.float64)
        )

    @property
    def starts(self) -> NDArray[np.float32]:
        """Starts of results, [o]: bias and the input offset's share."""
        share = self.input_offset * self.sums if self.input_offset else np.zeros(self.outputs)
        return np.asarray(or_zero(self.bias) + share, np.float32)

    @property
    def ending(self) -> Ending:
        """The limits and the activation that a kernel is compiled for, see ``ending``."""
        return ending(self.activation)
