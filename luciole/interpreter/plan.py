"""From a graph to steps: shapes settled, constants folded, an implementation chosen for every
operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter.memory import allocate
from luciole.interpreter.observe import Observer
from luciole.ir import Array, Graph, Op, UnsupportedError, Value
from luciole.ir.passes.fold_constants import folded
from luciole.ir.passes.infer_shapes import infer_op
from luciole.ir.value import element_count
from luciole.kernels import jit, registry
from luciole.kernels.registry import Context, NativeStep, Reference

DEFAULT_MEMORY_LIMIT = 4 << 30
"""Bytes of tensors that a model may ask for unless the caller raises it."""


@dataclass
class Step:
    """One operator, ready to run: ``native`` where a kernel was built, else the reference."""

    op: Op
    source: Op
    reference: Reference
    native: NativeStep | None = None
    in_place: bool = True
    """Whether all results have a place of their own; if not, shapes are known only when it ran."""


@dataclass
class Run:
    """Native steps that follow each other: rows of (kernel, record) for one call of the driver."""

    steps: list[Step]
    table: Array = field(init=False)

    def __post_init__(self) -> None:
        rows = [(s.native.address, s.native.record.ctypes.data) for s in self.steps if s.native]
        self.table = np.array(rows, np.int64)


class Plan:
    """A graph with settled input shapes, ready to run any number of times.

    The plan works on a copy of the graph and owns every array that its steps point into. ``arrays``
    gives the contents of every tensor of the original graph that exists so far.
    """

    def __init__(
        self,
        graph: Graph,
        shapes: Mapping[Value, tuple[int, ...]],
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
    ) -> None:
        self._memory_limit = memory_limit
        self.graph, values = graph.clone()
        self.values = values
        self._sources = dict(zip(self.graph.ops, graph.ops, strict=True))
        self._originals = {copy: value for value, copy in values.items()}
        for value, shape in shapes.items():
            values[value].shape = shape
        self._constants: dict[Value, Array] = {
            v: v.data for v in self.graph.values if v.data is not None
        }
        remaining = self._settle()
        self._contents: dict[Value, Array] = dict(self._constants)
        self._contents.update(allocate(self._placed(remaining), memory_limit))
        with np.errstate(all="ignore"):
            self.steps = [self._step(op) for op in remaining]
        self._schedule = _grouped(self.steps)

    def _settle(self) -> list[Op]:
        """Infer shapes in order and compute what is constant; returns the operators that are left
        to run.
        """
        _refuse_unsupported(self.graph.ops)
        remaining = []
        for op in self.graph.ops:
            infer_op(op, declared=False)
            for value, dtype in zip(op.results, op.result_dtypes(), strict=True):
                value.dtype = dtype  # what kernels write, whatever the file says
            results = folded(op, registry.evaluate) if self._is_modest(op) else None
            if results is None:
                remaining.append(op)
                continue
            for value, array in zip(op.results, results, strict=True):
                value.producer = None
                value.set_data(array)
                self._constants[value] = array
        return remaining

    def _is_modest(self, op: Op) -> bool:
        """Whether an operator's results may be computed before anyone asked for their memory."""
        return all(element_count(value.dims) <= self._memory_limit for value in op.results)

    def _placed(self, ops: Sequence[Op]) -> list[Value]:
        """Tensors whose size is settled and that something fills: inputs, variables, results."""
        results = [v for op in ops for v in op.results if None not in v.shape]
        variables = [v for v in self.graph.values if v.is_variable]
        return list(dict.fromkeys([*self.graph.inputs, *variables, *results]))

    def _step(self, op: Op) -> Step:
        in_place = all(value in self._contents for value in op.results)
        step = Step(op, self._sources[op], registry.find_reference(op), in_place=in_place)
        build = registry.find_native(op)
        known = all(value is None or value in self._contents for value in op.operands)
        if build is not None and in_place and known:
            operands = tuple(None if v is None else self._contents[v] for v in op.operands)
            step.native = build(op, Context(operands, tuple(self._contents[v] for v in op.results)))
        return step

    def array(self, value: Value) -> Array | None:
        """The contents of a tensor of the original graph, None where it has none yet."""
        return self._contents.get(self.values[value])

    def reset_variables(self) -> None:
        """Set every variable tensor to its initial contents: zeros, or what the file says."""
        for value in self.graph.values:
            if value.is_variable:
                raw = value.buffer.data if value.buffer is not None else None
                array = self._contents[value]
                array.reshape(-1).view(np.uint8)[:] = 0 if raw is None or not len(raw) else raw

    def run(self, observers: Sequence[Observer] = ()) -> None:
        """Run every step. With observers the same steps run one at a time."""
        if observers:
            self._run_observed(observers)
            return
        for group in self._schedule:
            if isinstance(group, Run):
                jit.run(group.table)
            else:
                self._run_reference(group)

    def _run_observed(self, observers: Sequence[Observer]) -> None:
        for value in self.graph.inputs:
            self._report(observers, value)
        for step in self.steps:
            for observer in observers:
                observer.before_operator(step.source)
            if step.native is not None:
                jit.run(Run([step]).table)
            else:
                self._run_reference(step)
            for observer in observers:
                observer.after_operator(step.source)
            for value in step.op.results:
                self._report(observers, value)

    def _report(self, observers: Sequence[Observer], value: Value) -> None:
        for observer in observers:
            observer.after_tensor_write(self._originals[value], self._contents[value])

    def _run_reference(self, step: Step) -> None:
        operands = [None if v is None else self._contents[v] for v in step.op.operands]
        results = registry.call(step.reference, step.op, operands)
        for value, array in zip(step.op.results, results, strict=True):
            if step.in_place:
                self._contents[value][...] = array
            else:
                self._contents[value] = array


def _refuse_unsupported(ops: Sequence[Op]) -> None:
    """Raise one UnsupportedError that lists everything that has no kernel."""
    reasons: dict[str, list[str]] = {}
    for op in ops:
        try:
            registry.find_reference(op)
        except UnsupportedError as error:
            reasons.setdefault(op.kind, []).append(str(error))
    if reasons:
        kinds = ", ".join(f"{kind} ({len(why)}x)" for kind, why in reasons.items())
        first = next(iter(reasons.values()))[0]
        raise UnsupportedError(f"cannot run {kinds}: {first}", list(reasons))


def _grouped(steps: Sequence[Step]) -> list[Run | Step]:
    """Steps in order, neighbours that are native joined into one run."""
    schedule: list[Run | Step] = []
    native: list[Step] = []
    for step in steps:
        if step.native is not None:
            native.append(step)
            continue
        if native:
            schedule.append(Run(native))
            native = []
        schedule.append(step)
    return [*schedule, Run(native)] if native else schedule
