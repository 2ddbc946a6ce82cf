"""UNIDIRECTIONAL_SEQUENCE_LSTM."""

from collections.abc import Container, Iterator

from luciole.ir.errors import ShapeError
from luciole.ir.op import REQUIRED, Op, attr, dtype_of, operand
from luciole.ir.rules import rank
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator

GATES = ("input", "forget", "cell", "output")

INPUT_GATE = ("input_to_input_weights", "recurrent_to_input_weights", "input_gate_bias")
PEEPHOLES = ("cell_to_input_weights", "cell_to_forget_weights", "cell_to_output_weights")
NORMS = tuple(f"{gate}_layer_norm_coefficients" for gate in GATES)

EXTENTS: dict[str, tuple[str, ...]] = {
    **{f"input_to_{gate}_weights": ("cells", "inputs") for gate in GATES},
    **{f"recurrent_to_{gate}_weights": ("cells", "outputs") for gate in GATES},
    **{f"{gate}_gate_bias": ("cells",) for gate in GATES},
    **dict.fromkeys(PEEPHOLES + NORMS, ("cells",)),
    "projection_weights": ("outputs", "cells"),
    "projection_bias": ("outputs",),
    "output_state": ("batch", "outputs"),
    "cell_state": ("batch", "cells"),
}
"""The axes of every operand but the input."""


class UnidirectionalSequenceLSTM(
    Op,
    code=BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM,
    options="UnidirectionalSequenceLSTMOptions",
):
    """Long short-term memory over a sequence.

    Input [batch, time, inputs], result [batch, time, outputs]; ``time_major`` swaps the first two
    axes. Without weights into the input gate, that gate is 1 - forget gate. ``output_state`` and
    ``cell_state`` are variables: a run starts from them and leaves its last step in them. The
    activation is that of the cell gate and of the output; a clip of 0 is none.
    ``diagonal_recurrent_tensors``: recurrent weights are the diagonals [cells] of matrices.
    """

    input: Value = operand()
    # REQUIRED is spelled out because type checkers let nothing without a default follow a default.
    input_to_input_weights: Value | None = operand(default=None)
    input_to_forget_weights: Value = operand(default=REQUIRED)
    input_to_cell_weights: Value = operand(default=REQUIRED)
    input_to_output_weights: Value = operand(default=REQUIRED)
    recurrent_to_input_weights: Value | None = operand(default=None)
    recurrent_to_forget_weights: Value = operand(default=REQUIRED)
    recurrent_to_cell_weights: Value = operand(default=REQUIRED)
    recurrent_to_output_weights: Value = operand(default=REQUIRED)
    cell_to_input_weights: Value | None = operand(default=None)
    cell_to_forget_weights: Value | None = operand(default=None)
    cell_to_output_weights: Value | None = operand(default=None)
    input_gate_bias: Value | None = operand(default=None)
    forget_gate_bias: Value = operand(default=REQUIRED)
    cell_gate_bias: Value = operand(default=REQUIRED)
    output_gate_bias: Value = operand(default=REQUIRED)
    projection_weights: Value | None = operand(default=None)
    projection_bias: Value | None = operand(default=None)
    output_state: Value = operand(default=REQUIRED)
    cell_state: Value = operand(default=REQUIRED)
    input_layer_norm_coefficients: Value | None = operand(default=None, explicit=True)
    forget_layer_norm_coefficients: Value | None = operand(default=None, explicit=True)
    cell_layer_norm_coefficients: Value | None = operand(default=None, explicit=True)
    output_layer_norm_coefficients: Value | None = operand(default=None, explicit=True)

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    cell_clip: float = attr(default=0.0, dump="cell_clip")
    proj_clip: float = attr(default=0.0, dump="proj_clip")
    time_major: bool = attr(default=False, dump="time_major")
    asymmetric_quantize_inputs: bool = attr(default=False, dump="asymmetric_quantize_inputs")
    diagonal_recurrent_tensors: bool = attr(default=False)

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        first, second, inputs = rank(self.input, "input", 3)
        sizes = {"inputs": inputs, "batch": second if self.time_major else first}
        given = {name: value for name, value in self.named_operands() if value is not None}
        _check_presence(given.keys())
        for name, extents in EXTENTS.items():
            if name in given:
                diagonal = self.diagonal_recurrent_tensors and name.startswith("recurrent_to_")
                _check_extents(given[name], name, extents[:1] if diagonal else extents, sizes)
        if self.projection_weights is None and sizes["outputs"] != sizes["cells"]:
            raise ShapeError(
                f"{sizes['cells']} cells give {sizes['outputs']} outputs: without "
                "projection_weights the numbers must be equal"
            )
        return (first, second, sizes["outputs"])

    def verify(self, /) -> Iterator[str]:
        for name in ("cell_clip", "proj_clip"):
            limit = self.attributes()[name]
            if not limit >= 0:
                yield f"{name} is {limit}; it must be 0 (no clipping) or positive"
        for name, value in (("output_state", self.output_state), ("cell_state", self.cell_state)):
            if not value.is_variable:
                yield f"{name} {value.name!r} is not a variable tensor: it must be one"


def _check_extents(
    value: Value, name: str, extents: tuple[str, ...], sizes: dict[str, int | None]
) -> None:
    """Refuse a shape that disagrees with the sizes known so far; learn from it otherwise."""
    shape = rank(value, name, len(extents))
    for extent, n in zip(extents, shape, strict=True):
        known = sizes.get(extent)
        if n is not None and known is not None and n != known:
            wanted = ", ".join(f"{e} {sizes.get(e) or '?'}" for e in extents)
            raise ShapeError(f"{name} has shape {shape_text(shape)}, [{wanted}] is needed")
        sizes[extent] = n if known is None else known


def _check_presence(given: Container[str]) -> None:
    """Refuse half of what only works together."""
    of_no_gate = () if INPUT_GATE[0] in given else (PEEPHOLES[0], NORMS[0])
    groups = (INPUT_GATE, *(tuple(n for n in g if n not in of_no_gate) for g in (PEEPHOLES, NORMS)))
    for group in groups:
        here = [name for name in group if name in given]
        missing = [name for name in group if name not in given]
        if here and missing:
            raise ShapeError(f"{missing[0]} is absent and {here[0]} is given: both or neither")
    for name, base in (
        *((n, INPUT_GATE[0]) for n in of_no_gate),
        ("projection_bias", "projection_weights"),
    ):
        if name in given and base not in given:
            raise ShapeError(f"{name} is given without {base}: it would have no effect")
