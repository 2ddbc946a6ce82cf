"""A network on its way to integers: it computes with floats that are rounded already."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from luciole.ir import Model, Op
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.lquantizer.rewrite.ends import set_ends
from luciole.lquantizer.rewrite.integers import to_integers


@dataclass(frozen=True)
class Rounded:
    """A float network with QUANTIZE and DEQUANTIZE around its tensors and DEQUANTIZE behind its
    layers' weights, the operators that shall compute with integers, and the element types that the
    file's inputs and outputs shall have.
    """

    model: Model
    chosen: frozenset[Op]
    input_type: str = "float32"
    output_type: str = "float32"

    def copy(self) -> Self:
        """Copy it, to be changed."""
        made, twins = _copied(self.model, self.chosen)
        return replace(self, model=made, chosen=twins)

    def integers(self) -> Model:
        """Copy it with operators that compute with the integers themselves."""
        made, twins = _copied(self.model, self.chosen)
        finish(made, twins, self.input_type, self.output_type)
        return made


def _copied(model: Model, chosen: Collection[Op]) -> tuple[Model, frozenset[Op]]:
    """Copy a network, and find some operators again in the copy."""
    made = model.clone()
    pairs = zip(model.graph.ops, made.graph.ops, strict=True)
    return made, frozenset(twin for op, twin in pairs if op in chosen)


def finish(model: Model, chosen: Collection[Op], input_type: str, output_type: str) -> None:
    """Make chosen operators of a rounded network compute with the integers themselves."""
    to_integers(model.graph, chosen)
    set_ends(model.graph, input_type, output_type)
    remove_dead(model.graph)
    remove_dead_buffers(model)
