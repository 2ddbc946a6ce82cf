"""BIDIRECTIONAL_SEQUENCE_RNN."""

from collections.abc import Iterator

from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.recurrent import (
    RNN_AUXILIARY,
    WEIGHTS,
    BothWays,
    rnn_outputs,
    sequence_macs,
    state_faults,
)
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


class BidirectionalSequenceRNN(
    Op,
    code=BuiltinOperator.BIDIRECTIONAL_SEQUENCE_RNN,
    options="BidirectionalSequenceRNNOptions",
):
    """Two basic recurrent layers over a sequence, from its begin (fw) and from its end (bw).

    Input [batch, time, inputs]; ``time_major`` swaps the first two axes. Results and ``aux_input``
    as for BIDIRECTIONAL_SEQUENCE_LSTM, all else as for UNIDIRECTIONAL_SEQUENCE_RNN.
    """

    input: Value = operand()
    fw_weights: Value = operand(dtype=WEIGHTS)
    fw_recurrent_weights: Value = operand(dtype=WEIGHTS)
    fw_bias: Value = operand()
    fw_hidden_state: Value = operand()
    bw_weights: Value = operand(dtype=WEIGHTS)
    bw_recurrent_weights: Value = operand(dtype=WEIGHTS)
    bw_bias: Value = operand()
    bw_hidden_state: Value = operand()
    aux_input: Value | None = operand(default=None, explicit=True)
    fw_aux_weights: Value | None = operand(default=None, dtype=WEIGHTS, explicit=True)
    bw_aux_weights: Value | None = operand(default=None, dtype=WEIGHTS, explicit=True)

    time_major: bool = attr(default=False)
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    merge_outputs: bool = attr(default=False)
    asymmetric_quantize_inputs: bool = attr(default=False)

    variadic_results = True
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> tuple[Shape, ...]:
        operands = self.given_operands()
        layers = BothWays(self.input, self.aux_input, operands, RNN_AUXILIARY, self.time_major)
        return layers.shapes(rnn_outputs, self.merge_outputs)

    def verify(self, /) -> Iterator[str]:
        yield from state_faults(
            fw_hidden_state=self.fw_hidden_state, bw_hidden_state=self.bw_hidden_state
        )

    def macs(self, /) -> int:
        return sequence_macs(self)
