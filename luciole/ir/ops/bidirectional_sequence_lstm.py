"""BIDIRECTIONAL_SEQUENCE_LSTM."""

from collections.abc import Iterator

from luciole.ir.fields import REQUIRED, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.recurrent import (
    LSTM_AUXILIARY,
    WEIGHTS,
    BothWays,
    clip_faults,
    lstm_outputs,
    sequence_macs,
    state_faults,
)
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


class BidirectionalSequenceLSTM(
    Op,
    code=BuiltinOperator.BIDIRECTIONAL_SEQUENCE_LSTM,
    options="BidirectionalSequenceLSTMOptions",
):
    """Two LSTMs over a sequence, one from its begin (fw) and one from its end (bw).

    Input [time, batch, inputs], or [batch, time, inputs] without ``time_major``; results the
    outputs of each, or with ``merge_outputs`` those of both in one tensor. ``auxillary_input``, of
    the same batch and time, is a second input where there are weights for it, and the input of the
    second LSTM where there are none. All else as for UNIDIRECTIONAL_SEQUENCE_LSTM.
    """

    input: Value = operand()
    fw_input_to_input_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    fw_input_to_forget_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    fw_input_to_cell_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    fw_input_to_output_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    fw_recurrent_to_input_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    fw_recurrent_to_forget_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    fw_recurrent_to_cell_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    fw_recurrent_to_output_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    fw_cell_to_input_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    fw_cell_to_forget_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    fw_cell_to_output_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    fw_input_gate_bias: Value | None = operand(default=None)
    fw_forget_gate_bias: Value = operand(default=REQUIRED)
    fw_cell_gate_bias: Value = operand(default=REQUIRED)
    fw_output_gate_bias: Value = operand(default=REQUIRED)
    fw_projection_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    fw_projection_bias: Value | None = operand(default=None)
    bw_input_to_input_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    bw_input_to_forget_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    bw_input_to_cell_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    bw_input_to_output_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    bw_recurrent_to_input_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    bw_recurrent_to_forget_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    bw_recurrent_to_cell_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    bw_recurrent_to_output_weights: Value = operand(default=REQUIRED, dtype=WEIGHTS)
    bw_cell_to_input_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    bw_cell_to_forget_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    bw_cell_to_output_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    bw_input_gate_bias: Value | None = operand(default=None)
    bw_forget_gate_bias: Value = operand(default=REQUIRED)
    bw_cell_gate_bias: Value = operand(default=REQUIRED)
    bw_output_gate_bias: Value = operand(default=REQUIRED)
    bw_projection_weights: Value | None = operand(default=None, dtype=WEIGHTS)
    bw_projection_bias: Value | None = operand(default=None)
    fw_activation_state: Value = operand(default=REQUIRED)
    fw_cell_state: Value = operand(default=REQUIRED)
    bw_activation_state: Value = operand(default=REQUIRED)
    bw_cell_state: Value = operand(default=REQUIRED)
    auxillary_input: Value | None = operand(default=None, explicit=True)
    fw_auxillary_input_to_input_weights: Value | None = operand(
        default=None, dtype=WEIGHTS, explicit=True
    )
    fw_auxillary_input_to_forget_weights: Value | None = operand(
        default=None, dtype=WEIGHTS, explicit=True
    )
    fw_auxillary_input_to_cell_weights: Value | None = operand(
        default=None, dtype=WEIGHTS, explicit=True
    )
    fw_auxillary_input_to_output_weights: Value | None = operand(
        default=None, dtype=WEIGHTS, explicit=True
    )
    bw_auxillary_input_to_input_weights: Value | None = operand(
        default=None, dtype=WEIGHTS, explicit=True
    )
    bw_auxillary_input_to_forget_weights: Value | None = operand(
        default=None, dtype=WEIGHTS, explicit=True
    )
    bw_auxillary_input_to_cell_weights: Value | None = operand(
        default=None, dtype=WEIGHTS, explicit=True
    )
    bw_auxillary_input_to_output_weights: Value | None = operand(
        default=None, dtype=WEIGHTS, explicit=True
    )

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    cell_clip: float = attr(default=0.0, dump="cell_clip")
    proj_clip: float = attr(default=0.0, dump="proj_clip")
    time_major: bool = attr(default=True, dump="time_major")
    asymmetric_quantize_inputs: bool = attr(default=False, dump="asymmetric_quantize_inputs")
    merge_outputs: bool = attr(default=False, dump="merge_outputs")

    variadic_results = True
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> tuple[Shape, ...]:
        operands = self.given_operands()
        layers = BothWays(
            self.input, self.auxillary_input, operands, LSTM_AUXILIARY, self.time_major
        )
        return layers.shapes(lstm_outputs, self.merge_outputs)

    def verify(self, /) -> Iterator[str]:
        yield from clip_faults(cell_clip=self.cell_clip, proj_clip=self.proj_clip)
        operands = dict(self.named_operands())
        states = {name: value for name, value in operands.items() if name.endswith("_state")}
        yield from state_faults(**states)

    def macs(self, /) -> int:
        return sequence_macs(self)
