"""Operators beside each other in one model: one start of a compiler for many cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from luciole.compiler import Compiled
from luciole.compiler.self_test import random_records, self_test
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.quantization import zero_code
from tests.compiler_support import built, interpreted, program_of, run_sound
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
    ) -> None:
        """Put an operator beside the others, as ``one_op`` makes it; ``dtypes`` are those of its
        results where they are not what it says.
        """
        lone = one_op(cls, operands, constant, affine=affine, results=results, **attributes)
        computed = [np.asarray(a) for k, a in enumerate(operands) if k not in constant]
        made = self.join(lone, [array for array in computed if array.dtype != object])
        for result, dtype in zip(made, dtypes, strict=False):
            result.dtype = dtype

    def join(self, model: Model, inputs: Sequence[Array]) -> list[Value]:
        """Put the only operator of a model beside the others; its results."""
        (op,) = model.graph.ops
        kind, number = type(op).__name__, len(self._names)
        own: dict[Value, Value] = {}
        for place, value in enumerate(op.operands):
            if value is not None and value not in own:
                own[value] = self._operand(f"{kind}_{number}_{place}", value)
        for value, array in zip(model.graph.inputs, inputs, strict=True):
            self.given[own[value].name] = array
        operands = [None if v is None else own[v] for v in op.operands]
        attributes = {f.name: getattr(op, f.name) for f in op.attr_fields()}
        made = type(op).from_operands(operands, attributes)
        self.graph.append(made, *[f"{kind}_{number}_y{k}" for k in range(len(op.results))])
        for result, original in zip(made.results, op.results, strict=True):
            result.dtype, result.quantization = original.dtype, original.quantization
        self.graph.outputs = [*self.graph.outputs, *made.results]
        self._names += [f"{kind} {number}"] * len(made.results)
        return list(made.results)

    def _operand(self, name: str, like: Value) -> Value:
        if like.is_constant:
            assert like.data is not None
            value = self.graph.add_constant(name, like.data, like.dtype)
        elif like.is_variable:
            value = self.graph.add_value(Value(name, like.dtype, like.shape))
            value.is_variable = True
        else:
            value = self.graph.add_input(name, like.shape)
            value.dtype = like.dtype
        value.quantization, (scales, _) = like.quantization, like.block_tensors
        if scales is not None:
            value.block_tensors = self._operand(f"{name}_scales", scales), None
        return value

    def check(self, folder: Path, within: float = 0.0, runs: int = 1) -> Compiled:
        """Compile all, run once or more often, and compare with the reference kernels: integers
        exactly, floats within so many times the larger of 1 and their size. Returns what ran.
        """
        compiled = built(program_of(self.model), folder)
        variables = (value for value in self.graph.values if value.is_variable)
        states = {v: np.full(v.dims, zero_code(v), NUMPY[v.dtype]) for v in variables}
        for _ in range(runs):
            found = compiled.run(self.given)
            wanted = interpreted(self.model, self.given, states)
            pairs = zip(self._names, found, wanted, strict=True)
            wrong = [
                f"{name}: {one.ravel()[:8]}, not {other.ravel()[:8]}"
                for name, one, other in pairs
                if not _alike(one, other.reshape(one.shape), within)
            ]
            assert not wrong, "\n".join(wrong)
        return compiled


def sound(every: SideBySide, folder: Path, within: float = 0.0) -> None:
    """Compare with the reference kernels, and run under sanitizers."""
    compiled, program = every.check(folder, within), program_of(every.model)
    test = self_test(program, compiled, random_records(program))
    assert run_sound(program, folder, test) == 0


def _alike(found: Array, wanted: Array, within: float) -> bool:
    if wanted.dtype.kind != "f":
        return np.array_equal(found, wanted)
    return bool(np.allclose(found, wanted, rtol=within, atol=within, equal_nan=True))
