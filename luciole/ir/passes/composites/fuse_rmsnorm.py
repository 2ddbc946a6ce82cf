"""Put RMS_NORM together."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Div, Mul
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.rewriting.algebra import equals, expand, monomial
from luciole.ir.rewriting.edits import become, constant, is_float
from luciole.ir.rewriting.norms import Scaled, scaled_by_root
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import axes_of, is_plain, made_by


@rewrite(Mul, Div, makes=(RmsNorm,), last_first=True, on_request=True)
def fuse_rmsnorm(graph: Graph, op: Mul | Div) -> bool:
    """x / sqrt(MEAN(x^2) + e) c -> RMS_NORM(x, c), the mean along the last axis."""
    norm = scaled_by_root(op) if is_float(op.output) and is_plain(op) else None
    if norm is None or norm.shift is not None or not _is_mean_square(norm):
        return False
    x, channels = norm.x, norm.x.shape[-1] if norm.x.shape else None
    if channels is None or x.shape != op.output.shape or norm.scale.size not in (1, channels):
        return False
    if norm.scale.size > 1 and norm.scale.shape[-1] != channels:
        return False
    gamma = np.broadcast_to(norm.scale.reshape(-1), (channels,))
    gamma_of = constant(graph, f"{op.name}/gamma", gamma)
    become(graph, op, RmsNorm(x, gamma_of, epsilon=norm.epsilon))
    return True


def _is_mean_square(norm: Scaled) -> bool:
    mean = made_by(norm.moment, Mean)
    if mean is None or not mean.keep_dims or axes_of(mean) != (len(norm.x.shape) - 1,):
        return False
    return equals(expand(mean.input, (norm.x,)), {monomial((norm.x, 2.0)): 1.0})
