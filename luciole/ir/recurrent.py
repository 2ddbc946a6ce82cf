"""Infer shapes of operators with recurrent layers: extents that their operands share."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from luciole.ir.errors import ShapeError
from luciole.ir.rules import agree, rank
from luciole.ir.value import Shape, Value, element_count, shape_text
from luciole.schema.enums import TensorType

if TYPE_CHECKING:
    from luciole.ir.op import Op

WEIGHTS = (TensorType.FLOAT32, TensorType.INT8)
"""Element types of weights under float inputs."""

Extents = Mapping[str, tuple[str, ...]]
"""The names of the axes of each operand."""

Sizes = dict[str, int | None]
"""Extents by the names of axes, as far as they are known."""

GATES = ("input", "forget", "cell", "output")
INPUT_GATE = ("input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias")
PEEPHOLES = ("cell_to_input_weights", "cell_to_forget_weights", "cell_to_output_weights")
NORMS = tuple(f"{gate}_layer_norm_coefficients" for gate in GATES)
LSTM: Extents = {
    **{f"input_to_{gate}_weights": ("cells", "inputs") for gate in GATES},
    **{f"recurrent_to_{gate}_weights": ("cells", "outputs") for gate in GATES},
    **{f"{gate}_gate_bias": ("cells",) for gate in GATES},
    **dict.fromkeys(PEEPHOLES + NORMS, ("cells",)),
    "projection_weights": ("outputs", "cells"),
    "projection_bias": ("outputs",),
    "output_state": ("batch", "outputs"),
    "cell_state": ("batch", "cells"),
}
"""The axes of every operand of an LSTM but the input."""


LSTM_AUXILIARY: Extents = {
    f"auxillary_input_to_{gate}_weights": ("cells", "auxillary inputs") for gate in GATES
}
RNN: Extents = {
    "weights": ("units", "inputs"),
    "recurrent_weights": ("units", "units"),
    "bias": ("units",),
    "hidden_state": ("batch", "units"),
}
RNN_AUXILIARY: Extents = {"aux_weights": ("units", "auxillary inputs")}


def sequence_macs(op: Op) -> int:
    """Count multiply-accumulates of recurrent layers: every constant matrix once for each step of
    each sequence, which is the first operand.
    """
    matrices = [v for v in op.operands if v is not None and v.is_constant and len(v.dims) == 2]
    first = op.operands[0]
    steps = 0 if first is None else element_count(first.dims[:-1])
    return steps * sum(element_count(v.dims) for v in matrices)


def check_extents(operands: Mapping[str, Value], extents: Extents, sizes: Sizes) -> None:
    """Refuse shapes that disagree with the sizes known so far; learn from them otherwise."""
    for name, names in extents.items():
        if name in operands:
            _check_shape(operands[name], name, names, sizes)


def _check_shape(value: Value, name: str, extents: tuple[str, ...], sizes: Sizes) -> None:
    shape = rank(value, name, len(extents))
    for extent, n in zip(extents, shape, strict=True):
        known = sizes.get(extent)
        if n is not None and known is not None and n != known:
            known_sizes = ((e, sizes.get(e)) for e in extents)
            needed = ", ".join(f"{e} {'?' if size is None else size}" for e, size in known_sizes)
            raise ShapeError(f"{name} has shape {shape_text(shape)}, [{needed}] is needed")
        sizes[extent] = n if known is None else known


def lstm_outputs(operands: Mapping[str, Value], sizes: Sizes, diagonal: bool = False) -> int | None:
    """Count the outputs of an LSTM. ``sizes`` knows its batch and inputs.

    Raises ShapeError for operands that do not fit together, or that only half of are there.
    """
    _check_presence(operands.keys())
    extents = {
        name: names[:1] if diagonal and name.startswith("recurrent_to_") else names
        for name, names in LSTM.items()
    }
    check_extents(operands, extents, sizes)
    if "projection_weights" not in operands and sizes["outputs"] != sizes["cells"]:
        raise ShapeError(
            f"{sizes['cells']} cells give {sizes['outputs']} outputs: without "
            "projection_weights the numbers must be equal"
        )
    return sizes["outputs"]


def _check_presence(names: Container[str]) -> None:
    """Refuse operands that need others which are absent."""
    of_no_gate = () if INPUT_GATE[0] in names else (PEEPHOLES[0], NORMS[0])
    groups = (INPUT_GATE, *(tuple(n for n in g if n not in of_no_gate) for g in (PEEPHOLES, NORMS)))
    for group in groups:
        here = [name for name in group if name in names]
        missing = [name for name in group if name not in names]
        if here and missing:
            raise ShapeError(f"{missing[0]} is absent and {here[0]} is given: both or neither")
    for name, base in (
        *((n, INPUT_GATE[0]) for n in of_no_gate),
        ("projection_bias", "projection_weights"),
    ):
        if name in names and base not in names:
            raise ShapeError(f"{name} is given without {base}: it would have no effect")


def rnn_outputs(operands: Mapping[str, Value], sizes: Sizes) -> int | None:
    """Count the units of a basic recurrent layer. ``sizes`` knows its batch and inputs.

    Raises ShapeError for operands that do not fit together.
    """
    check_extents(operands, RNN, sizes)
    return sizes["units"]


@dataclass(frozen=True)
class BothWays:
    """Two layers over a sequence, one in each direction.

    ``given`` are all operands by their names, those of each direction with fw_ and bw_ before
    them, ``other`` is the auxiliary one; ``auxiliary`` are the weights that it may meet.
    """

    input: Value
    other: Value | None
    given: Mapping[str, Value]
    auxiliary: Extents
    time_major: bool

    def shapes(
        self, outputs_of: Callable[[Mapping[str, Value], Sizes], int | None], merged: bool
    ) -> tuple[Shape, ...]:
        """Infer the shapes of both results, or the one of both together."""
        ahead, back = (self._outputs(direction, outputs_of) for direction in WAYS)
        time = self.input.shape[:2]
        if not merged:
            return ((*time, ahead), (*time, back))
        return ((*time, None if ahead is None or back is None else ahead + back),)

    def _outputs(
        self, direction: str, outputs_of: Callable[[Mapping[str, Value], Sizes], int | None]
    ) -> int | None:
        own = directed(self.given, direction)
        meets = any(name in directed(self.given, w) for name in self.auxiliary for w in WAYS)
        first, second, inputs = rank(self.input, "input", 3)
        other = self._other_shape()
        if other is None and meets:
            raise ShapeError("there are weights for an auxillary input, and no such input")
        if direction == "bw" and other is not None and not meets:
            inputs = other[2]
        sizes: Sizes = {"batch": second if self.time_major else first, "inputs": inputs}
        outputs = outputs_of(own, sizes)
        if meets and other is not None:
            sizes["auxillary inputs"] = other[2]
            self._check_auxiliary(own, sizes)
        return outputs

    def _other_shape(self) -> Shape | None:
        """Find the shape of the auxiliary input, of the same batch and time as the input."""
        if self.other is None:
            return None
        shape = rank(self.other, "the auxillary input", 3)
        for axis, (n, m) in enumerate(zip(shape, self.input.shape[:2], strict=False)):
            agree(f"axis {axis}", n, m, "the auxillary input", "input")
        return shape

    def _check_auxiliary(self, own: Mapping[str, Value], sizes: Sizes) -> None:
        gateless = INPUT_GATE[0] not in own and "weights" not in own
        for name in self.auxiliary:
            if (name in own) == (gateless and name == "auxillary_input_to_input_weights"):
                there = "given" if name in own else "absent"
                raise ShapeError(f"{name} is {there}, the others are not")
        check_extents(own, self.auxiliary, sizes)


WAYS = ("fw", "bw")
"""Prefixes of the operands of both directions."""

V = TypeVar("V")


def directed(operands: Mapping[str, V], direction: str) -> dict[str, V]:
    """List the operands of one direction, by the names that they have where there is but one."""
    own = {
        n.removeprefix(f"{direction}_"): v
        for n, v in operands.items()
        if n.startswith(f"{direction}_")
    }
    if "activation_state" in own:
        own["output_state"] = own.pop("activation_state")
    return own


def clip_faults(**limits: float) -> Iterator[str]:
    """List, in a sentence each, the limits that cannot be one."""
    for name, limit in limits.items():
        if not limit >= 0:
            yield f"{name} is {limit}; it must be 0 (no clipping) or positive"


def state_faults(**states: Value | None) -> Iterator[str]:
    """List, in a sentence each, the states that are not kept from run to run."""
    for name, value in states.items():
        if value is not None and not value.is_variable:
            yield f"{name} {value.name!r} is not a variable tensor: it must be one"
