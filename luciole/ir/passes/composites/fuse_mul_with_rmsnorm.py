"""Fold a multiplication into RMS_NORM."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.rewriting.edits import become, constant, is_private
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import constant_of, is_plain, made_by, with_constant


@rewrite(Mul, makes=(RmsNorm,), on_request=True)
def fuse_mul_with_rmsnorm(graph: Graph, op: Mul) -> bool:
    """MUL(RMS_NORM(x, c), m) -> RMS_NORM(x, c m)."""
    pair = with_constant(op)
    norm = made_by(pair[0], RmsNorm) if pair is not None else None
    factor = None if pair is None else constant_of(pair[1])
    gamma = None if norm is None else constant_of(norm.gamma)
    if pair is None or norm is None or factor is None or gamma is None or not is_plain(op):
        return False
    channels = norm.input.shape[-1]
    if not is_private(norm.output) or op.output.shape != norm.output.shape or channels is None:
        return False
    if factor.size not in (1, channels) or (factor.size > 1 and factor.shape[-1] != channels):
        return False
    scale = np.broadcast_to(gamma, (channels,)) * factor.reshape(-1)
    new = RmsNorm(norm.input, constant(graph, f"{op.name}/gamma", scale), epsilon=norm.epsilon)
    become(graph, op, new)
    return True
