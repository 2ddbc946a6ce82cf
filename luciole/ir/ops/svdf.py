"""SVDF."""

from collections.abc import Iterator

from luciole.ir.errors import ShapeError
from luciole.ir.fields import REQUIRED, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.recurrent import WEIGHTS, Sizes, check_extents, sequence_macs, state_faults
from luciole.ir.rules import product, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType

WEIGHED = {"weights_feature": ("filters", "inputs"), "weights_time": ("filters", "memory")}
REST = {
    "bias": ("units",),
    "state": ("batch", "filters * memory"),
}
"""The axes of the operands."""


class SVDF(Op, code=BuiltinOperator.SVDF, options="SVDFOptions"):
    """A layer over the last inputs, whose weights are sums of ``rank_`` products of rank one.

    Each filter weighs the inputs, remembers the last sums [memory] in ``state``, and weighs these;
    a unit is the activation of the sum of ``rank_`` filters and its bias. The state is a variable
    [batch, filters memory]. Weights are FLOAT32, or symmetric INT8: a FLOAT32 input is then
    quantized on the way, an INT8 one has an INT16 state, and INT16 weights over time. Source:
    Nakkiran et al., Compressing deep neural networks using a rank-constrained topology,
    Interspeech 2015.
    """

    input: Value = operand()
    weights_feature: Value = operand(dtype=WEIGHTS)
    weights_time: Value = operand(dtype=(*WEIGHTS, TensorType.INT16))
    bias: Value | None = operand(default=None)
    state: Value = operand(default=REQUIRED)

    rank_: int = attr(default=0, field="rank", dump="rank")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="activation"
    )
    asymmetric_quantize_inputs: bool = attr(default=False, dump="asymmetric_quantize_inputs")

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        batch, inputs = rank(self.input, "input", 2)
        sizes: Sizes = {"batch": batch, "inputs": inputs}
        operands = self.given_operands()
        check_extents(operands, WEIGHED, sizes)
        filters, memory = sizes["filters"], sizes["memory"]
        sizes["units"] = _units(filters, self.rank_)
        sizes["filters * memory"] = product([filters, memory])
        check_extents(operands, REST, sizes)
        return (batch, sizes["units"])

    def verify(self, /) -> Iterator[str]:
        yield from state_faults(state=self.state)

    def macs(self, /) -> int:
        return sequence_macs(self)


def _units(filters: int | None, together: int) -> int | None:
    if together < 1 or (filters is not None and filters % together):
        raise ShapeError(f"rank is {together}, the {filters} filters do not divide by it")
    return None if filters is None else filters // together
