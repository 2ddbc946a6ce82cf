"""Let PAD put zeros around."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import Logistic, Relu, Relu0To1, Relu6
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import number_of
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType, Padding


@rewrite(PadV2)
def substitute_padv2_to_pad(graph: Graph, op: PadV2) -> bool:
    """PADV2(x, 0) -> PAD(x), MAX_POOL_2D(PADV2(RELU(x), -inf)) -> MAX_POOL_2D(PAD(RELU(x)))."""
    number = number_of(op.constant_values)
    if not is_float(op.input) or number is None:
        return False
    if number != 0 and not (number < 0 and _is_positive(op.input) and _only_maxima(op)):
        return False
    become(graph, op, Pad(op.input, op.paddings))
    return True


def _is_positive(value: Value) -> bool:
    """Return whether no element of a value is below 0."""
    op = value.producer.op if value.producer is not None else None
    if isinstance(op, Relu | Relu6 | Relu0To1 | Logistic):
        return True
    fused = None if op is None else op.attributes().get("activation")
    return fused in (ActivationFunctionType.RELU, ActivationFunctionType.RELU6)


def _only_maxima(op: PadV2) -> bool:
    """Return whether only maxima of windows with an element of the input read the result."""
    pools = [use.op for use in op.output.users]
    borders = op.paddings.data
    if op.output.is_output or borders is None or borders.shape != (4, 2):
        return False
    return all(
        isinstance(pool, MaxPool2D)
        and pool.padding == Padding.VALID
        and max(borders[1]) < pool.filter_height
        and max(borders[2]) < pool.filter_width
        and not borders[[0, 3]].any()
        for pool in pools
    )
