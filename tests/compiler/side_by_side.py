"""Operators beside each other in one model: one start of a compiler for many cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from luciole.ir import Array, Graph, Model, Op
from tests.compiler_support import built, interpreted, program_of
from tests.support import Affine, one_op


class SideBySide:
    """A model that grows by operators of operands of their own, and its inputs."""

    def __init__(self) -> None:
        self.model = Model()
        self.graph = self.model.add_graph(Graph("main"))
        self.given: dict[str, Array] = {}
        self._names: list[str] = []

    def add(
        self,
        cls: type[Op],
        operands: Sequence[Array | None],
        constant: Sequence[int] = (),
        *,
        affine: Sequence[Affine | None] = (),
        results: Sequence[Affine | None] = (),
        dtypes: Sequence[Any] = (),
        **attributes: Any,
    ) -> Op:
        """Put an operator beside the others, as ``one_op`` makes it."""
        lone = one_op(cls, operands, constant, affine=affine, results=results, **attributes).graph
        number, (op,) = len(self._names), lone.ops
        own = dict[Any, Any]()
        for place, value in enumerate(op.operands):
            if value is None:
                continue
            name = f"{cls.__name__}_{number}_{place}"
            if value.is_constant:
                assert value.data is not None
                own[value] = self.graph.add_constant(name, value.data, value.dtype)
            else:
                own[value] = self.graph.add_input(name, value.shape)
                own[value].dtype = value.dtype
                self.given[name] = np.asarray(operands[place])
            own[value].quantization = value.quantization
        made = cls.from_operands([own.get(v) for v in op.operands], attributes)
        self.graph.append(made, *[f"{cls.__name__}_{number}_y{k}" for k in range(len(op.results))])
        for result, original in zip(made.results, op.results, strict=True):
            result.dtype, result.quantization = original.dtype, original.quantization
        for result, dtype in zip(made.results, dtypes, strict=False):
            result.dtype = dtype
        self.graph.outputs = [*self.graph.outputs, *made.results]
        self._names += [f"{cls.__name__} {number}"] * len(made.results)
        return made

    def check(self, folder: Path, within: float = 0.0) -> None:
        """Compile all, run once, and compare with the reference kernels: integers exactly, floats
        within so many times the larger of 1 and their size.
        """
        wrong = []
        found = built(program_of(self.model), folder).run(self.given)
        wanted = interpreted(self.model, self.given)
        for name, one, other in zip(self._names, found, wanted, strict=True):
            same = np.array_equal(one, other.reshape(one.shape), equal_nan=other.dtype.kind == "f")
            if same or (other.dtype.kind == "f" and _close(one, other, within)):
                continue
            wrong.append(f"{name}: {one.ravel()[:8]}, not {other.ravel()[:8]}")
        assert not wrong, "\n".join(wrong)


def _close(found: Array, wanted: Array, within: float) -> bool:
    other = wanted.reshape(found.shape)
    return bool(np.allclose(found, other, rtol=within, atol=within, equal_nan=True))
