"""What a graph goes through once all nodes are imported."""

from __future__ import annotations

from luciole.ir import Model
from luciole.ir.passes import run_passes
from luciole.ir.passes.fuse_activation import fuse_activation
from luciole.ir.passes.fuse_batch_norm import fuse_batch_norm
from luciole.ir.passes.remove_dead import remove_dead, remove_dead_buffers


def finish(model: Model) -> None:
    """Run the usual passes on all graphs."""
    for graph in model.graphs:
        run_passes(graph, (fuse_batch_norm, fuse_activation, remove_dead))
    remove_dead_buffers(model)
