"""Runs compiled kernels of single operators on arrays behind which memory cannot be touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from luciole.ir import Array, Op
from luciole.ir.dtypes import NUMPY
from luciole.ir.rules import settled
from luciole.kernels import jit
from luciole.kernels.core import registry
from luciole.kernels.core.allocation import chosen
from luciole.kernels.core.contract import Context, NativeStep, Stage
from tests.guard.memory import Guard
from tests.support import one_op, run_reference


def guarded(array: Array) -> Array:
    """A copy that ends where a page of memory begins that nobody may read or write, or at the end
    that ``--guard`` says.
    """
    guard = chosen()
    return (guard if isinstance(guard, Guard) else Guard("behind")).copy(array)


def built(op: Op, operands: Sequence[Array | None]) -> tuple[NativeStep | None, Context]:
    """An operator's compiled step, None where it declines, and where its operands and results (full
    of set bits) are.
    """
    context = placed(op, operands)
    build = registry.find_native(op)
    assert build is not None, f"{op} has no compiled kernel"
    made = build(op, context)
    return made if isinstance(made, NativeStep) else None, context


def placed(op: Op, operands: Sequence[Array | None]) -> Context:
    """Guarded copies of operands, and guarded results full of set bits."""
    copies = tuple(None if a is None else guarded(np.asarray(a)) for a in operands)
    results = []
    for value, shape in zip(op.results, op.result_shapes(), strict=True):
        empty = np.zeros(settled(shape), NUMPY[value.dtype])
        empty.reshape(-1).view(np.uint8)[:] = 0xFF
        results.append(guarded(empty))
    return Context(copies, tuple(results))


def run_steps(step: NativeStep, records: Sequence[Array]) -> None:
    """Run a step's kernel on records, one after the other."""
    rows = [(step.address, record.ctypes.data) for record in records]
    jit.caller(np.array(rows, np.int64).reshape(-1, 2))()


def in_turn(stages: Sequence[Stage]) -> list[Array]:
    """List the records of stages for one thread: those of a stage in any order."""
    return [record for stage in stages for record in reversed(stage)]


def run_compiled(
    cls: type[Op], operands: Sequence[Array | None], constant: Sequence[int] = (), **attributes: Any
) -> tuple[Array, ...]:
    """The results of the compiled kernel; fails where the reference would have run instead.

    Where threads may share the step, the shares give the same.
    """
    op = one_op(cls, operands, constant, **attributes).graph.ops[0]
    step, context = built(op, operands)
    assert step is not None, f"{op} declines"
    run_steps(step, [step.record])
    whole = tuple(result.copy() for result in context.results)
    stages = step.split(3) if step.split else ()
    if stages:
        for result in context.results:
            result.reshape(-1).view(np.uint8)[:] = 0xFF
        run_steps(step, in_turn(stages))
        for result, before in zip(context.results, whole, strict=True):
            np.testing.assert_array_equal(result, before)
    return whole


def declines(
    cls: type[Op], operands: Sequence[Array | None], constant: Sequence[int] = (), **attributes: Any
) -> bool:
    """Whether there is a compiled kernel that leaves this operator to the reference."""
    op = one_op(cls, operands, constant, **attributes).graph.ops[0]
    return built(op, operands)[0] is None


def declines_computed(
    cls: type[Op],
    operands: Sequence[Array],
    constant: Sequence[int],
    computed: int,
    **attributes: Any,
) -> bool:
    """Whether an operator is left to the reference when one of its constant operands is known only
    when it runs, and is compiled otherwise.
    """
    op = one_op(cls, operands, constant, **attributes).graph.ops[0]
    context, build = placed(op, operands), registry.find_native(op)
    assert build is not None
    assert op.graph is not None
    assert build(op, context) is not None
    field, known = op.operand_fields()[computed], op.operands[computed]
    assert known is not None
    setattr(op, field.name, op.graph.add_input(field.name, known.shape, known.dtype))
    return build(op, context) is None


def check_compiled(
    cls: type[Op],
    operands: Sequence[Array | None],
    constant: Sequence[int] = (),
    rtol: float = 0,
    atol: float = 0,
    **attributes: Any,
) -> None:
    """The compiled kernel gives what the reference gives: exactly, unless tolerances are given."""
    ours = run_compiled(cls, operands, constant, **attributes)
    wanted = run_reference(cls, operands, constant, **attributes)
    for a, b in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, strict=True)
