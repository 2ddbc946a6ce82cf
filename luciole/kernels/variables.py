"""VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, Value
from luciole.ir.ops import variables as ops
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import stateful, stateful_native
from luciole.kernels.core.state import State
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import whole


@stateful(ops.VarHandle)
def var_handle(op: ops.VarHandle, state: State) -> Array:
    """Return the variable's number."""
    number = _number(op, state)
    return np.full(op.output.dims, number, np.int32)


@stateful(ops.ReadVariable)
def read_variable(op: ops.ReadVariable, state: State, resource: Array) -> Array:
    """Return the value that was assigned last."""
    return state.read(_handle(resource))


@stateful(ops.AssignVariable)
def assign_variable(
    op: ops.AssignVariable, state: State, resource: Array, value: Array
) -> tuple[()]:
    """Assign a value; nothing is returned."""
    state.assign(_handle(resource), value)
    return ()


def _number(op: ops.VarHandle, state: State) -> int:
    return state.handle(op.container or "", op.shared_name or "")


def _handle(resource: Array) -> int:
    if resource.size != 1:
        raise LucioleError(f"the resource has {resource.size} elements, 1 is needed")
    return int(resource.reshape(-1)[0])


@stateful_native(ops.VarHandle)
def build_var_handle(op: ops.VarHandle, state: State, context: Context) -> NativeStep | None:
    """Write the variable's number."""
    number = placed(var_handle(op, state))
    return copy.step([(context.results[0], number)], number)


@stateful_native(ops.ReadVariable)
def build_read_variable(op: ops.ReadVariable, state: State, context: Context) -> NativeStep | None:
    """Copy from the variable's place."""
    held = _place(op.resource, state)
    return _copy(context.results[0], held, held)


@stateful_native(ops.AssignVariable)
def build_assign_variable(
    op: ops.AssignVariable, state: State, context: Context
) -> NativeStep | None:
    """Copy to the variable's place."""
    held = _place(op.resource, state)
    return _copy(held, context.operands[1], held)


def _place(resource: Value, state: State) -> Array | None:
    """Return where a variable is kept that the same graph names, None for one that it is given."""
    producer = resource.producer
    if producer is None or not isinstance(producer.op, ops.VarHandle):
        return None
    return state.place(_number(producer.op, state))


def _copy(to: Array | None, source: Array | None, held: Array | None) -> NativeStep | None:
    """Copy an array that another one is like; ``held`` is kept alive."""
    if to is None or source is None or held is None:
        return None
    alike = to.dtype == source.dtype and to.shape == source.shape
    return copy.step([(to, source)], held) if alike else None


@portable(ops.VarHandle, ())
def handle_in_c(op: ops.VarHandle, context: PortableContext) -> list[CCall]:
    """Do nothing: programs know where each variable lies."""
    del op, context
    return []


@portable(ops.ReadVariable, ())
def read_in_c(op: ops.ReadVariable, context: PortableContext) -> list[CCall]:
    """Copy from the variable's place."""
    return [whole(context.variables[op.resource], op.output)]


@portable(ops.AssignVariable, *MOVED)
def assign_in_c(op: ops.AssignVariable, context: PortableContext) -> list[CCall]:
    """Copy to the variable's place."""
    return [whole(op.value, context.variables[op.resource])]
