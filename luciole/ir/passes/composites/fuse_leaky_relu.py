"""Put LEAKY_RELU together."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Maximum, Mul
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by, number_of, with_constant
from luciole.ir.value import Value


@rewrite(Maximum, makes=(LeakyRelu,))
def fuse_leaky_relu(graph: Graph, op: Maximum) -> bool:
    """MAXIMUM(x, MUL(x, a)) -> LEAKY_RELU(x), a between 0 and 1."""
    for x, product in ((op.x, op.y), (op.y, op.x)):
        slope = _slope(product, x) if is_float(x) else None
        if slope is not None and 0 < slope < 1 and x.shape == op.output.shape:
            become(graph, op, LeakyRelu(x, alpha=slope))
            return True
    return False


def _slope(product: Value, x: Value) -> float | None:
    """Read a of a product a x."""
    mul = made_by(product, Mul)
    pair = with_constant(mul) if mul is not None and is_plain(mul) else None
    return number_of(pair[1]) if pair is not None and pair[0] is x else None
