"""A network on its way to integers: it computes with floats that are rounded already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from luciole.ir import Graph, Model, Op
from luciole.ir.analysis.endless import endless_tensors
from luciole.ir.ops.elementwise_binary import Maximum, Minimum
from luciole.ir.ops.quantize import Quantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.quantization import affine_of, zero_code
from luciole.lquantizer.formats.stored_levels import StoredLevels
from luciole.lquantizer.rewrite.ends import set_ends
from luciole.lquantizer.rewrite.integers import to_integers
from luciole.lquantizer.rewrite.stored_levels import read_integers


@dataclass(frozen=True)
class Rounded:
    """A float network with QUANTIZE and DEQUANTIZE around its tensors and DEQUANTIZE behind its
    layers' weights, the operators that shall compute with integers, the element types that the
    file's inputs and outputs shall have, and the learned levels of layers' integers.
    """

    model: Model
    chosen: frozenset[Op]
    input_type: str = "float32"
    output_type: str = "float32"
    levels: Mapping[Op, StoredLevels] = field(default_factory=dict)

    def copy(self) -> Self:
        """Copy it, to be changed."""
        made, twins = self._twins()
        chosen = frozenset(twins[op] for op in self.chosen)
        levels = {twins[op]: levels for op, levels in self.levels.items()}
        return replace(self, model=made, chosen=chosen, levels=levels)

    def integers(self) -> Model:
        """Copy it with operators that compute with the integers themselves."""
        copy = self.copy()
        copy.finish()
        return copy.model

    def finish(self) -> None:
        """Make the chosen operators compute with the integers themselves."""
        to_integers(self.model.graph, self.chosen)
        read_integers(self.model.graph, self.levels)
        set_ends(self.model.graph, self.input_type, self.output_type)
        saturate(self.model.graph)
        remove_dead(self.model.graph)
        remove_dead_buffers(self.model)

    def _twins(self) -> tuple[Model, dict[Op, Op]]:
        """Copy the network, and find its operators again in the copy."""
        made = self.model.clone()
        return made, dict(zip(self.model.graph.ops, made.graph.ops, strict=True))


def saturate(graph: Graph) -> None:
    """Bound floats that stand for infinities where a QUANTIZE reads them.

    TFLite's kernels turn x / scale into an int32 before they add the zero point: what lies far
    below becomes the least int32, and a zero point below 0 takes that around to the largest
    integer; far above it is the processor that decides.
    """
    endless = endless_tensors(graph)
    for op in [op for op in graph.ops if isinstance(op, Quantize) and op.input in endless]:
        affine, is_low = affine_of(op.output), -1 in endless[op.input]
        if affine is None or (is_low and zero_code(op.output) >= 0):
            continue
        limit = affine.range[0 if is_low else 1].astype(np.float32).reshape(())
        name = graph.unique_name(f"{op.input.name}/limit")
        bound = (Maximum if is_low else Minimum)(op.input, graph.add_constant(name, limit))
        made = graph.insert_before(op, bound, graph.unique_name(f"{op.input.name}/bounded"))
        op.set_operand(0, made.output)
