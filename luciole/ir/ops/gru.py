"""GRU of circle."""

from collections.abc import Iterator

from luciole.ir.errors import ShapeError
from luciole.ir.fields import REQUIRED, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.recurrent import sequence_macs
from luciole.ir.rules import agree, rank
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator

GATES = 3
"""Update, reset and candidate, in this order in the rows of weights and biases."""


class GRU(Op, code=BuiltinOperator.GRU, options="GRUOptions"):
    """A gated recurrent unit over a sequence [time, batch, inputs], as luci-interpreter has it.

    z, r = logistic of a + b, n = tanh(a + r b), state = z state + (1 - z) n, where a is what the
    weights make of the input and b what they make of the state, biases included. The result is the
    last state [1, batch, units], all of them [time, batch, units] with ``return_sequences``.

    luci-interpreter multiplies the input by ``hidden_hidden`` and the state by ``hidden_input``,
    against their names, while ONE's own files give them shapes that fit the names. Which is which
    follows from the shapes, [3 units, inputs] and [3 units, units]; where both fit, it is as
    luci-interpreter has it. Biases go with their weights. Time is the first axis whatever
    ``time_major`` says, and TANH is the candidate's activation whatever the fused one is.
    """

    input: Value = operand()
    # REQUIRED is spelled out because type checkers let nothing without a default follow a default.
    hidden_hidden: Value = operand(default=REQUIRED)
    hidden_hidden_bias: Value | None = operand(default=None)
    hidden_input: Value = operand(default=REQUIRED)
    hidden_input_bias: Value | None = operand(default=None)
    state: Value = operand(default=REQUIRED)

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    return_sequences: bool = attr(default=False, dump="return_sequences")
    time_major: bool = attr(default=False, dump="time_major")

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        time, batch, inputs = rank(self.input, "input", 3)
        states, units = rank(self.state, "state", 2)
        for name, value in self.named_operands():
            if value is not None and name.startswith("hidden_"):
                rank(value, name, 1 if name.endswith("_bias") else 2)
                rows = None if units is None else GATES * units
                agree("rows", value.shape[0], rows, name, "three times the state")
        crossed(self.hidden_hidden.shape, self.hidden_input.shape, inputs, units)
        agree("batches", states, batch, "state", "input")
        return (time if self.return_sequences else 1, batch, units)

    def verify(self, /) -> Iterator[str]:
        if self.activation not in (ActivationFunctionType.NONE, ActivationFunctionType.TANH):
            yield f"the fused activation is {self.activation.name}, NONE or TANH is needed"

    def macs(self, /) -> int:
        return sequence_macs(self)


def crossed(hidden: Shape, input: Shape, inputs: int | None, units: int | None) -> bool:
    """Return whether the input meets ``hidden_hidden``. Raises ShapeError when it fits neither
    way.
    """

    def fits(of_input: Shape, of_state: Shape) -> bool:
        pairs = ((of_input[1], inputs), (of_state[1], units))
        return all(n is None or m is None or n == m for n, m in pairs)

    if not fits(hidden, input) and not fits(input, hidden):
        raise ShapeError(
            f"hidden_hidden is {shape_text(hidden)} and hidden_input {shape_text(input)}: columns "
            f"for {inputs} inputs and for {units} units are needed"
        )
    return fits(hidden, input)
