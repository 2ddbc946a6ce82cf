"""Let an operator apply the activation that follows it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import FUSED_AS
from luciole.ir.quantization import affine_of
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator

_NOT_INTO = (
    BuiltinOperator.CONCATENATION,
    BuiltinOperator.TRANSPOSE_CONV,
    BuiltinOperator.L2_NORMALIZATION,
)
"""ONE's rule: their kernels do not apply every activation elsewhere."""


_LEARNED = (BuiltinOperator.LQ_FULLY_CONNECTED, BuiltinOperator.LQ_CONV_2D)
"""The only operators to take a TANH: TFLite's kernels ignore or refuse it in theirs."""


def fuse_activation_function(graph: Graph) -> bool:
    """RELU(ADD(x, y)) -> ADD(x, y, activation=RELU): likewise all that carry activations.

    RELU, RELU6 and RELU_N1_TO_1, and TANH where learned levels are, become part of the operator
    before, where nothing else sees its result and integers stand for the same numbers on both
    sides.
    """
    changes = [_fuse(graph, op) for op in list(graph.ops)]
    return any(changes)


def _fuse(graph: Graph, op: Op) -> bool:
    activation = FUSED_AS.get(type(op))
    before = (
        op.operands[0].producer.op
        if op.operands and op.operands[0] and op.operands[0].producer
        else None
    )
    if activation is None or before is None or not _takes(before, activation):
        return False
    between = before.output
    if len(between.users) != 1 or between.is_output or not _share(between, op.output):
        return False
    before.activation = activation  # type: ignore[attr-defined]  # _takes looked
    _take_over(graph, op, before)
    return True


def _share(between: Value, result: Value) -> bool:
    """Return whether two tensors are real numbers, or integers of one scale and zero point."""
    before, behind = affine_of(between), affine_of(result)
    if before is None or behind is None:
        return before is behind
    return before.same_numbers(behind)


def _takes(op: Op, activation: ActivationFunctionType) -> bool:
    if not any(f.name == "activation" for f in op.attr_fields()) or op.code in _NOT_INTO:
        return False
    if activation == ActivationFunctionType.TANH and op.code not in _LEARNED:
        return False
    return bool(op.attributes()["activation"] == ActivationFunctionType.NONE)


def _take_over(graph: Graph, op: Op, before: Op) -> None:
    """Give ``before`` the activation's result: its name is the one that people know."""
    between, result = before.output, op.output
    between.quantization = result.quantization
    name = result.name
    result.replace_with(between)
    graph.remove(op)
    between.name = name
