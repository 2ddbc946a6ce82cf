"""LQ_FULLY_CONNECTED: a dense layer whose inputs and weights have learned levels."""

from collections.abc import Iterator

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.learned_levels import WORD
from luciole.ir.op import Op
from luciole.ir.ops.fully_connected import rows
from luciole.ir.quant import Quant
from luciole.ir.rules import agree, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType

MAX_INPUT_BITS, MAX_WEIGHT_BITS = 8, 4


class LQLayer(Op):
    """Base of the layers whose inputs and weights have learned levels."""

    input: Value = operand()
    input_scales: Value = operand()
    weights_scales: Value = operand()
    weights_binary: Value = operand(dtype=(TensorType.INT32,))
    bias: Value | None = operand(default=None)
    weights_offsets: Value | None = operand(default=None)

    quant = Quant(weight="weights_binary", axis=0, bias="bias")
    infer_dtype = dtype_of("input")


class LQFullyConnected(
    LQLayer,
    code=BuiltinOperator.LQ_FULLY_CONNECTED,
    options="LQFullyConnectedOptions",
    custom_code="LQFullyConnected",
):
    """y = activation(q(x) W^T + b), with q(x) and W made of levels offset + sum_i (+-a_i).

    Input [..., n], input_scales [kx], weights_scales [o, kw], weights_binary [o, kw, ceil(n / 32)],
    bias [o], weights_offsets [o]; result [..., o]. q takes each input to the nearest level, a tie
    to the lower one.
    """

    hidden_size: int = attr(default=0, dump="hidden_size")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    input_offset: float = attr(default=0.0, dump="input_offset")

    def verify(self, /) -> Iterator[str]:
        if self.hidden_size < 1:
            yield f"hidden_size is {self.hidden_size}, it must be at least 1"

    def weight_shape(self, /) -> tuple[int, ...]:
        return (*self.weights_binary.dims[:1], self.hidden_size)

    def infer_shape(self, /) -> Shape:
        n = self.hidden_size
        _, _, words = rank(self.weights_binary, "weights_binary", 3)
        o = outputs_of(self)
        agree("words", words, -(-n // WORD), "weights_binary", f"hidden_size {n}")
        return (*rows(self.input, n, keep_num_dims=True), o)


def outputs_of(op: LQLayer) -> int | None:
    """Count the number of outputs, on which bases, bit planes, bias and offsets agree.

    Raises ShapeError where they do not, or where a basis has more elements than kernels take.
    """
    (kx,) = rank(op.input_scales, "input_scales", 1)
    o, kw = rank(op.weights_scales, "weights_scales", 2)
    _check_bits("input", kx, MAX_INPUT_BITS)
    _check_bits("weight", kw, MAX_WEIGHT_BITS)
    outputs, planes = op.weights_binary.shape[:2]
    agree("outputs", outputs, o, "weights_binary", "weights_scales")
    agree("weight bits", planes, kw, "weights_binary", "weights_scales")
    for name, value in (("bias", op.bias), ("weights_offsets", op.weights_offsets)):
        if value is not None:
            agree("outputs", rank(value, name, 1)[0], o, name, "weights_scales")
    return o


def _check_bits(what: str, bits: int | None, most: int) -> None:
    if bits is not None and not 1 <= bits <= most:
        raise ShapeError(f"{bits} {what} bits, 1 to {most} are possible")
