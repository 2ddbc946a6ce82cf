"""FULLY_CONNECTED."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Quant, Versions
from luciole.ir.rules import agree, product, rank
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import (
    ActivationFunctionType,
    BuiltinOperator,
    FullyConnectedOptionsWeightsFormat,
    TensorType,
)


def rows(input: Value, hidden: int | None, keep_num_dims: bool) -> Shape:
    """List the leading axes of a dense layer's result: all of the input's but the last, or all rows
    in one.
    """
    if hidden is not None and hidden < 1:
        raise ShapeError(f"weights have {hidden} columns, at least 1 is needed")
    if keep_num_dims:
        agree("last axis", input.shape[-1] if input.shape else 1, hidden, "input", "weights")
        return input.shape[:-1]
    count = product(input.shape)
    if count is None or hidden is None:
        return (None,)
    if count % hidden:
        raise ShapeError(f"input {shape_text(input.shape)} does not divide into rows of {hidden}")
    return (count // hidden,)


class FullyConnected(Op, code=BuiltinOperator.FULLY_CONNECTED, options="FullyConnectedOptions"):
    """y = activation(x W^T + b). Input [..., n], weights [o, n], bias [o], result [rows, o]."""

    input: Value = operand()
    weights: Value = operand()
    bias: Value | None = operand(default=None, explicit=True)

    weights_format: FullyConnectedOptionsWeightsFormat = attr(
        default=FullyConnectedOptionsWeightsFormat.DEFAULT, dump="WeightFormat"
    )
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    keep_num_dims: bool = attr(default=False, dump="keep_num_dims")
    asymmetric_quantize_inputs: bool = attr(default=False)
    quantized_bias_type: TensorType = attr(default=TensorType.FLOAT32)

    quant = Quant(weight="weights", axis=0, bias="bias", since=Versions(4, 7, int4=10, hybrid=9))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        o, n = rank(self.weights, "weights", 2)
        if self.bias is not None:
            agree("outputs", product(self.bias.shape), o, "bias", "weights")
        return (*rows(self.input, n, self.keep_num_dims), o)
