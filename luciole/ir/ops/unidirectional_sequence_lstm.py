"""LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM: long short-term memory, one step or a sequence."""

from collections.abc import Iterator, Mapping, Sequence

from luciole.ir.errors import UnsupportedError
from luciole.ir.fields import REQUIRED, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Quant
from luciole.ir.recurrent import (
    WEIGHTS,
    Sizes,
    clip_faults,
    lstm_outputs,
    sequence_macs,
    state_faults,
)
from luciole.ir.rules import rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, LSTMKernelType, TensorType

PEEPHOLES = (*WEIGHTS, TensorType.INT16)


class LSTMLayer(Op):
    """Base of both LSTM layers: the parameters of the gates and the states.

    Without weights into the input gate, that gate is 1 - forget gate. ``output_state`` and
    ``cell_state`` are variables: a run starts from them and leaves its last step in them. The
    activation is that of the cell gate and of the output; a clip of 0 is none. Weights are FLOAT32,
    or symmetric INT8: what is FLOAT32 and meets them is then quantized on the way. An INT8 input
    has INT16 cells, coefficients and peepholes, and five intermediate tensors with the scales in
    between.
    """

    input: Value = operand()
    # REQUIRED is spelled out because type checkers let nothing without a default follow a default.
    input_to_input_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    input_to_forget_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    input_to_cell_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    input_to_output_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    recurrent_to_input_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    recurrent_to_forget_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    recurrent_to_cell_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    recurrent_to_output_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    cell_to_input_weights: Value | None = operand(default=None, dtype=PEEPHOLES)
    cell_to_forget_weights: Value | None = operand(default=None, dtype=PEEPHOLES)
    cell_to_output_weights: Value | None = operand(default=None, dtype=PEEPHOLES)
    input_gate_bias: Value | None = operand(default=None)
    forget_gate_bias: Value = operand(default=REQUIRED)
    cell_gate_bias: Value = operand(default=REQUIRED)
    output_gate_bias: Value = operand(default=REQUIRED)
    projection_weights: Value | None = operand(default=None, dtype=WEIGHTS)
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

    infer_dtype = dtype_of("input")
    quant = Quant(since=FIRST, own=True)

    def verify(self, /) -> Iterator[str]:
        yield from clip_faults(cell_clip=self.cell_clip, proj_clip=self.proj_clip)
        yield from state_faults(output_state=self.output_state, cell_state=self.cell_state)

    def macs(self, /) -> int:
        return sequence_macs(self)


class LSTM(LSTMLayer, code=BuiltinOperator.LSTM, options="LSTMOptions"):
    """One step of long short-term memory: [batch, inputs] to [batch, outputs].

    Only the full kernel, which has an operand for each gate, is known.
    """

    kernel_type: LSTMKernelType = attr(default=LSTMKernelType.FULL)
    asymmetric_quantize_inputs: bool = attr(default=False, dump="asymmetric_quantize_inputs")

    @classmethod
    def from_operands(cls, slots: Sequence[Value | None], attributes: Mapping[str, object]) -> Op:
        """Make the operator as every operator is made. Raises UnsupportedError for the basic
        kernel, which has five operands of its own: such an operator is kept as it is.
        """
        if len(slots) == 5 and attributes.get("kernel_type") == LSTMKernelType.BASIC:
            raise UnsupportedError("kernel_type is BASIC, only FULL is understood")
        return super().from_operands(slots, dict(attributes))

    def infer_shape(self, /) -> Shape:
        batch, inputs = rank(self.input, "input", 2)
        return (batch, _outputs(self, {"batch": batch, "inputs": inputs}))

    def verify(self, /) -> Iterator[str]:
        yield from super().verify()
        if self.kernel_type != LSTMKernelType.FULL:
            yield f"kernel_type is {self.kernel_type.name}, FULL is needed for these operands"


class UnidirectionalSequenceLSTM(
    LSTMLayer,
    code=BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM,
    options="UnidirectionalSequenceLSTMOptions",
):
    """Long short-term memory over a sequence.

    Input [batch, time, inputs], result [batch, time, outputs]; ``time_major`` swaps the first two
    axes. ``diagonal_recurrent_tensors``: recurrent weights are the diagonals [cells] of matrices.
    """

    time_major: bool = attr(default=False, dump="time_major")
    asymmetric_quantize_inputs: bool = attr(default=False, dump="asymmetric_quantize_inputs")
    diagonal_recurrent_tensors: bool = attr(default=False)

    def infer_shape(self, /) -> Shape:
        first, second, inputs = rank(self.input, "input", 3)
        sizes = {"inputs": inputs, "batch": second if self.time_major else first}
        return (first, second, _outputs(self, sizes, self.diagonal_recurrent_tensors))


def _outputs(op: LSTMLayer, sizes: Sizes, diagonal: bool = False) -> int | None:
    return lstm_outputs(op.given_operands(), sizes, diagonal)
