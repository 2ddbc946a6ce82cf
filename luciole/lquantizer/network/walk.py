"""Walk over a network and let a method learn every layer.

Layers are learned one after the other in execution order. Each sees what the quantized network in
front of it computes and aims at what the float network computes; where its result is added to
another branch, it also makes up for that branch's error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from luciole.interpreter.records import Progress
from luciole.ir import Array, Model, Op
from luciole.ir.analysis.ends import is_last
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.quantization import Affine, is_affine
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.rows import Product, Rows, Sampling, bias_of, weight_rows
from luciole.lquantizer.network.aims import Aims, unchanged
from luciole.lquantizer.network.branches import Aim, Branches, floors
from luciole.lquantizer.network.problem import LayerProblem, Method, Scope
from luciole.lquantizer.network.sampling import Sampled

Format = TypeVar("Format")
Learned = TypeVar("Learned")


@dataclass(frozen=True)
class Job(Generic[Format]):
    """Layers that share their weights and are learned as one, and their format."""

    name: str
    ops: Sequence[Op]
    format: Format
    sampling: Sampling
    units: Array | None = None
    """[o]: what outputs were divided by in front, and are judged times."""
    trained: Affine | None = None
    """The integers that the weights were trained to be."""

    @property
    def products(self) -> list[Product]:
        """The layers of which rows can be taken."""
        return [op for op in self.ops if isinstance(op, Product)]


@dataclass(frozen=True)
class Network:
    """A float network, its twin that is on its way, as far as it was run on some records (None:
    there are none), and the branches that are added to layers' results.
    """

    reference: Model
    branches: Branches
    front: Front | None

    def aims(
        self,
        jobs: Sequence[Job[Format]],
        progress: Progress | None = None,
        change: Callable[[Op, Aim], Aim] = unchanged,
    ) -> Mapping[Op, Aim]:
        """Take rows of each layer's targets from the float network, in the order in which layers
        are learned; ``change`` gives each its last form.
        """
        if self.front is None:
            return {}
        ordered = [jobs[number] for number in self.branches.order([job.ops for job in jobs])]
        layers = {op: job.sampling for job in ordered for op in job.products}
        front = self.front.of(self.reference)
        return Aims(front, layers, self.branches, progress, change)

    def walk(
        self,
        jobs: Sequence[Job[Format]],
        aims: Mapping[Op, Aim],
        method: Method[Format, Learned],
        write: Callable[[Job[Format], LayerProblem, Learned], None],
        step: Progress,
    ) -> None:
        """Learn one job after the other, on the half-finished network, and ``write`` each result
        into it.
        """
        left = {op for job in jobs for op in job.ops}
        for number in self.branches.order([job.ops for job in jobs]):
            job = jobs[number]
            waiting = [one for one in jobs if one is not job and left.issuperset(one.ops)]
            problem = self._problem(job, aims, left, waiting, method.scope)
            write(job, problem, method.learn(problem, job.format))
            left.difference_update(job.ops)
            step(1)

    def alone(
        self, job: Job[Format], aims: Mapping[Op, Aim], jobs: Iterable[Job[Format]]
    ) -> LayerProblem:
        """State the problem of a job in the float network, where nothing else was learned and
        outputs are not rescaled; tensors that other ``jobs`` need are kept.
        """
        assert self.front is not None, "rows are of records"
        later = self.branches.seen_by(op for one in jobs for op in one.ops)
        sampled = Sampled.of(self.front, job.products, job.sampling, later=later)
        own = Branches.of(self.branches.twins, [])
        return _problem_of(replace(job, units=None), sampled, aims, own)

    def _problem(
        self,
        job: Job[Format],
        aims: Mapping[Op, Aim],
        left: set[Op],
        waiting: Sequence[Job[Format]],
        scope: Scope,
    ) -> LayerProblem:
        if self.front is None or not aims.keys() >= set(job.ops):
            return _without_rows(job)
        later = self.branches.seen_by(op for one in waiting for op in one.ops)
        beside = [self.branches.in_work(op, left) for op in job.ops]
        sampled = Sampled.of(
            self.front, job.products, job.sampling, beside, later, left, masked=scope.masked
        )
        problem = _problem_of(job, sampled, aims, self.branches)
        return replace(problem, float_rows=self._float_rows(job)) if scope.float_rows else problem

    def _float_rows(self, job: Job[Format]) -> Rows:
        """Take the rows that layers meet in the float network."""
        assert self.front is not None, "rows are of records"
        twins = [twin for op in job.ops if isinstance(twin := self.branches.twins[op], Product)]
        front = self.front.of(self.reference)
        return Sampled.of(front, twins, job.sampling).rows


def _problem_of(
    job: Job[Format], sampled: Sampled, aims: Mapping[Op, Aim], branches: Branches
) -> LayerProblem:
    """State the problem of a job's layers, given the rows that they meet in the quantized
    network.
    """
    ops, targets, lowest = job.ops, [], []
    for op, branch in zip(ops, sampled.branches, strict=True):
        targets.append(aims[op].beside(branch))
        lowest.append(floors(branches.twins[op], targets[-1], branch))
    cut = [floor for floor in lowest if floor is not None]
    return LayerProblem(
        sampled.rows,
        _joined(targets),
        weight_rows(ops[0]),
        bias_of(ops[0]),
        sampled.records,
        is_last(ops[0]) and not any(op in branches.uses for op in ops),
        job.sampling.seed,
        _joined(cut) if len(cut) == len(ops) else None,
        job.units,
        with_branch=all(branch is not None for branch in sampled.branches),
        step=_step_of_inputs(ops),
        trained=job.trained,
    )


def _joined(parts: Sequence[Array]) -> Array:
    """Join rows; those of one layer are not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _without_rows(job: Job[Format]) -> LayerProblem:
    """State the problem of a layer of which the weights are all that is known."""
    op, step = job.ops[0], _step_of_inputs(job.ops)
    problem = LayerProblem.without_rows(weight_rows(op), bias_of(op), job.sampling.seed)
    return replace(problem, step=step, trained=job.trained)


def _step_of_inputs(ops: Iterable[Op]) -> float | None:
    """Return the least scale of layers' inputs; None where none is integers."""
    read = (op.operands[0] for op in ops)
    makers = (v.producer.op for v in read if v is not None and v.producer is not None)
    whole = (op.input for op in makers if isinstance(op, Dequantize) and is_affine(op.input))
    return min((float(Affine.of(value, "the input").scale[0]) for value in whole), default=None)
