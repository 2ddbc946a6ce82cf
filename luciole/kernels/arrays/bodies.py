"""Functions of two numbers that graphs of one operator compute, as StableHLO's operators have."""

from __future__ import annotations

import numpy as np

from luciole.ir import Graph, Op, UnsupportedError
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul
from luciole.ir.ops.logical import LogicalAnd, LogicalOr
from luciole.ir.ops.stablehlo_elementwise import (
    StablehloAdd,
    StablehloAnd,
    StablehloMaximum,
    StablehloMinimum,
    StablehloMultiply,
)

FUNCTIONS: dict[type[Op], np.ufunc] = {
    **dict.fromkeys((Add, StablehloAdd), np.add),
    **dict.fromkeys((Mul, StablehloMultiply), np.multiply),
    **dict.fromkeys((Maximum, StablehloMaximum), np.maximum),
    **dict.fromkeys((Minimum, StablehloMinimum), np.minimum),
    LogicalAnd: np.logical_and,
    LogicalOr: np.logical_or,
    StablehloAnd: np.bitwise_and,
}
"""Functions that both runtimes know; in all of them the order of two numbers does not matter."""


def function_of(graph: Graph | None) -> np.ufunc | None:
    """Find the function that a graph computes of its two inputs, None where it returns the second
    one. Raises UnsupportedError for all others.
    """
    if graph is not None and len(graph.inputs) == 2 and len(graph.outputs) == 1:
        (output,) = graph.outputs
        if output is graph.inputs[1] and not graph.ops:
            return None
        op = output.producer.op if output.producer is not None else None
        if len(graph.ops) == 1 and op is not None and set(op.operands) == set(graph.inputs):
            function = FUNCTIONS.get(type(op))
            if function is not None:
                return function
    names = sorted({cls.__name__ for cls in FUNCTIONS})
    raise UnsupportedError(f"its graph is not one operator of two numbers: {', '.join(names)}")
