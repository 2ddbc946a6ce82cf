"""Variables by name (VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE) as states of a network in C, and
what CALL_ONCE sets them to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter.settle import Settled, settle
from luciole.ir import Array, Graph, Op, UnsupportedError, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.control_flow import CallOnce
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle

Key = tuple[str, str]
"""Container and name of a variable."""


@dataclass
class Variables:
    """Tensors that stand for variables: by the handles that operators name them by, and what they
    hold before the first run.
    """

    by_handle: dict[Value, Value] = field(default_factory=dict)
    begins: dict[Value, Array] = field(default_factory=dict)


def variables_of(settled: Settled, memory_limit: int) -> Variables:
    """Find the variables of a settled graph. Raises UnsupportedError for those whose type or shape
    changes, and for those that are read before anything was assigned.
    """
    keys = dict(_keys(settled.ops))
    first = dict(_assigned_once(settled.ops, memory_limit))
    variables, states = Variables(), dict[Key, Value]()
    for handle, content, is_read in _contents(settled.ops):
        key = keys.get(handle)
        if key is None:
            raise UnsupportedError(f"{handle.name!r} is no variable that the same graph names")
        if key not in states:
            states[key] = _state(key, content, first.get(key), is_read)
            begun = first.get(key)
            zeros = np.zeros(content.dims, NUMPY[content.dtype])
            variables.begins[states[key]] = zeros if begun is None else begun
        if (states[key].dtype, states[key].dims) != (content.dtype, content.dims):
            raise UnsupportedError(f"variable {key[1]!r} changes its type or shape")
    variables.by_handle = {handle: states[key] for handle, key in keys.items() if key in states}
    return variables


def _keys(ops: Sequence[Op]) -> Iterator[tuple[Value, Key]]:
    for op in ops:
        if isinstance(op, VarHandle):
            yield op.output, (op.container or "", op.shared_name or "")


def _contents(ops: Sequence[Op]) -> Iterator[tuple[Value, Value, bool]]:
    """Yield handles, what is read or assigned, and whether it is read, in the order of a run."""
    for op in ops:
        if isinstance(op, ReadVariable):
            yield op.resource, op.output, True
        elif isinstance(op, AssignVariable):
            yield op.resource, op.value, False


def _state(key: Key, content: Value, begun: Array | None, is_read: bool) -> Value:
    name = key[1] or "variable"
    if begun is None and is_read:
        raise UnsupportedError(f"variable {name!r} is read before anything was assigned to it")
    if begun is not None and (begun.shape, begun.dtype) != (content.dims, NUMPY[content.dtype]):
        raise UnsupportedError(f"variable {name!r} begins with another type or shape")
    return Value(name, content.dtype, content.dims)


def _assigned_once(ops: Sequence[Op], memory_limit: int) -> Iterator[tuple[Key, Array]]:
    """Yield the variables that the graphs of CALL_ONCE set, and their contents."""
    touched = False
    for op in ops:
        touched |= isinstance(op, ReadVariable | AssignVariable)
        if isinstance(op, CallOnce):
            if touched:
                raise UnsupportedError(f"{op} comes behind operators on variables")
            yield from _constants_of(op.init_graph, memory_limit)


def _constants_of(graph: Graph, memory_limit: int) -> Iterator[tuple[Key, Array]]:
    settled = settle(graph, {}, memory_limit, simulates=False)
    keys = dict(_keys(settled.ops))
    for op in settled.ops:
        if isinstance(op, VarHandle):
            continue
        is_set = isinstance(op, AssignVariable) and op.value in settled.constants
        if not isinstance(op, AssignVariable) or not is_set or op.resource not in keys:
            raise UnsupportedError(
                f"graph {graph.name!r}, called once, does more than set variables"
            )
        yield keys[op.resource], settled.constants[op.value]
