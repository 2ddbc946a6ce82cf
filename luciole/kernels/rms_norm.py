"""RMS_NORM kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.value import element_count
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import reach
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import norms, strided
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable

_LEAST = 1e-70
"""Whatever is added to mean squares, their inverse roots are floats then."""


@reference(RmsNorm, TensorType.FLOAT32)
def rms_norm(op: RmsNorm, x: Array, gamma: Array) -> Array:
    """Divide by the root of the mean square, in double precision."""
    wide, factors = x.astype(np.float64), np.broadcast_to(gamma, x.shape[-1:])
    mean = (wide * wide).sum(axis=-1, keepdims=True) / max(x.shape[-1], 1)
    return np.asarray(factors * wide / np.sqrt(mean + op.epsilon), x.dtype)


@native(RmsNorm, TensorType.FLOAT32)
def build(op: RmsNorm, context: Context) -> NativeStep:
    """Divide row by row."""
    x, gamma = context.pair
    n = x.shape[-1]
    record = norms.NormRecord(
        begin=0,
        end=x.size // max(n, 1),
        y=reach(context.results[0], 4 * x.size),
        x=reach(x, 4 * x.size),
        scale=reach(gamma, 4 * gamma.size),
        shift=0,
        count=n,
        channels=1,
        blocks=1,
        scale_step=0,
        shift_step=0,
        epsilon=op.epsilon,
        low=-np.inf,
        high=np.inf,
    )
    return strided.step(
        norms.rows_by_root(int(gamma.size > 1), int(op.epsilon > _LEAST)), record, x.size
    )


@portable(RmsNorm, TensorType.FLOAT32)
def in_c(op: RmsNorm, context: PortableContext) -> list[CCall]:
    """Call the normalization of rows."""
    x, depth = op.input, op.input.dims[-1]
    fields: dict[str, Field] = {"rows": element_count(x.dims[:-1]), "depth": depth}
    scale = np.broadcast_to(context.constant(op.gamma), depth)
    fields |= {"epsilon": op.epsilon, "scale": scale}
    return [CCall("luc_rms_norm", fields, (x,), op.results)]
