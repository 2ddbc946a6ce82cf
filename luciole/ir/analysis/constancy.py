"""Find tensors with the same contents for every record, and the memory of an operator's
constants.
"""

from __future__ import annotations

from luciole.ir.op import Op
from luciole.ir.value import Value


def is_fixed(value: Value) -> bool:
    """Return whether nothing that a caller feeds reaches a tensor."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        if value.is_input or value.is_variable:
            return False
        operands = value.producer.op.operands if value.producer else []
        new = [v for v in operands if v is not None and v not in seen]
        pending += new
        seen.update(new)
    return True


def constant_bytes(op: Op) -> int:
    """Count the bytes of an operator's constant operands; operands that share a buffer count
    once.
    """
    buffers = {
        id(v.buffer): v.buffer for v in op.operands if isinstance(v, Value) and v.is_constant
    }
    return sum(len(b) for b in buffers.values() if b is not None)
