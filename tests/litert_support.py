"""Single operators, here and in LiteRT, that must give the very same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from luciole.exporters import to_bytes
from luciole.ir import Array, Op
from tests.support import litert, one_op, run_reference


def check_same(
    cls: type[Op],
    operands: Sequence[Array],
    constant: Sequence[int] = (),
    resolver: str = "BUILTIN_REF",
    **attributes: Any,
) -> tuple[Array, ...]:
    """The results of the reference kernel, after all were found equal to LiteRT's."""
    ours = run_reference(cls, operands, constant, **attributes)
    content = to_bytes(one_op(cls, operands, constant, **attributes), "tflite")
    given = [a for i, a in enumerate(operands) if i not in constant]
    theirs = litert(content, given, resolver)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    return ours


def ints(*numbers: Any) -> Array:
    """An index operand."""
    return np.array(numbers, np.int32)


def counted(*shape: int, dtype: Any = np.float32) -> Array:
    """Different numbers 1, 2, 3, ... as far as the type has them."""
    return np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)
