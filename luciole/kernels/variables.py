"""VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError
from luciole.ir.ops import variables as ops
from luciole.kernels.core.registry import stateful
from luciole.kernels.core.state import State


@stateful(ops.VarHandle)
def var_handle(op: ops.VarHandle, state: State) -> Array:
    """Return the variable's number."""
    number = state.handle(op.container or "", op.shared_name or "")
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


def _handle(resource: Array) -> int:
    if resource.size != 1:
        raise LucioleError(f"the resource has {resource.size} elements, 1 is needed")
    return int(resource.reshape(-1)[0])
