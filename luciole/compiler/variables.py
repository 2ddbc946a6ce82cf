"""Variables by name (VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE) as states of a network in C, and
what CALL_ONCE sets them to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter.settle import Settled, settle
from luciole.ir import Array, Graph, Op, UnsupportedError, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.control_flow import CallOnce, If, StablehloCase, While
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle

Key = tuple[str, str]
"""Container and name of a variable."""


@dataclass
class Variables:
    """Tensors that stand for variables, and what they hold before the first run; ``first`` is what
    CALL_ONCE sets.
    """

    first: Mapping[Key, Array] = field(default_factory=dict)
    states: dict[Key, Value] = field(default_factory=dict)
    begins: dict[Value, Array] = field(default_factory=dict)

    def by_handle(self, ops: Sequence[Op], *, is_called: bool = False) -> dict[Value, Value]:
        """Find the variables of a graph's operators, by the handles that these name them by. One
        that ``is_called`` uses those that CALL_ONCE sets.

        Raises UnsupportedError for those whose type or shape changes, and for those that are read
        before anything was assigned.
        """
        keys = dict(_keys(ops))
        for handle, content, is_read in _contents(ops):
            key = keys.get(handle)
            if key is None:
                raise UnsupportedError(f"{handle.name!r} is no variable that the same graph names")
            if is_called and key not in self.first:
                raise UnsupportedError(f"variable {key[1]!r} has no value that CALL_ONCE sets")
            if key not in self.states:
                self._begin(key, content, is_read)
            state = self.states[key]
            if (state.dtype, state.dims) != (content.dtype, content.dims):
                raise UnsupportedError(f"variable {key[1]!r} changes its type or shape")
        return {handle: self.states[key] for handle, key in keys.items() if key in self.states}

    def _begin(self, key: Key, content: Value, is_read: bool) -> None:
        begun = self.first.get(key)
        self.states[key] = state = _state(key, content, begun, is_read)
        zeros = np.zeros(content.dims, NUMPY[content.dtype])
        self.begins[state] = zeros if begun is None else begun


def variables_of(settled: Settled, memory_limit: int) -> Variables:
    """Find the first contents of a settled graph's variables. Raises UnsupportedError where
    CALL_ONCE does more than set them.
    """
    return Variables(dict(_assigned_once(settled.ops, memory_limit)))


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
        touched |= isinstance(op, ReadVariable | AssignVariable | If | While | StablehloCase)
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
