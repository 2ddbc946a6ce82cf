"""RNN and UNIDIRECTIONAL_SEQUENCE_RNN: basic recurrent layers, one step or a sequence."""

from collections.abc import Iterator

from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.recurrent import WEIGHTS, Sizes, rnn_outputs, sequence_macs, state_faults
from luciole.ir.rules import rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


class Recurrent(Op):
    """Base of both layers: activation(weights x + recurrent_weights h + bias), h being the last
    output.

    ``hidden_state`` is a variable: a run starts from it and leaves its last output in it. Weights
    are FLOAT32, or symmetric INT8: what they meet is then quantized on the way.
    """

    input: Value = operand()
    weights: Value = operand(dtype=WEIGHTS)
    recurrent_weights: Value = operand(dtype=WEIGHTS)
    bias: Value = operand()
    hidden_state: Value = operand()

    infer_dtype = dtype_of("input")

    def verify(self, /) -> Iterator[str]:
        yield from state_faults(hidden_state=self.hidden_state)

    def macs(self, /) -> int:
        return sequence_macs(self)


class RNN(Recurrent, code=BuiltinOperator.RNN, options="RNNOptions"):
    """One step of a basic recurrent layer: [batch, inputs] to [batch, units]."""

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    asymmetric_quantize_inputs: bool = attr(default=False)

    def infer_shape(self, /) -> Shape:
        batch, inputs = rank(self.input, "input", 2)
        return (batch, _outputs(self, {"batch": batch, "inputs": inputs}))


class UnidirectionalSequenceRNN(
    Recurrent, code=BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_RNN, options="SequenceRNNOptions"
):
    """A basic recurrent layer over a sequence.

    Input [batch, time, inputs], result [batch, time, units]; ``time_major`` swaps the first two
    axes.
    """

    time_major: bool = attr(default=False)
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    asymmetric_quantize_inputs: bool = attr(default=False)

    def infer_shape(self, /) -> Shape:
        first, second, inputs = rank(self.input, "input", 3)
        batch = second if self.time_major else first
        return (first, second, _outputs(self, {"batch": batch, "inputs": inputs}))


def _outputs(op: Recurrent, sizes: Sizes) -> int | None:
    return rnn_outputs(op.given_operands(), sizes)
