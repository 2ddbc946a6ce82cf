"""Tasks of a search: which there are, how workers are kept busy with them, what is kept of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from luciole.lquantizer.assignment.layer_format import parse
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.evaluate import Stage
from luciole.lquantizer.search.networks import candidate_of, key_of
from luciole.lquantizer.search.runners import Outcome, Runner, Task
from luciole.lquantizer.search.space import Candidate, Space, is_learned
from luciole.lquantizer.search.storage import Storage


def tasks_of(space: Space) -> Iterator[dict[str, Any]]:
    """Yield the tasks that measure each layer alone; options with equally wide weights are one."""
    for gene in space.genes:
        learned = [option for option in gene.options if is_learned(option)]
        widths = sorted({parse(option).weights for option in learned})
        together = [[o for o in learned if parse(o).weights == width] for width in widths]
        together += [[option] for option in gene.options if not is_learned(option)]
        for layer in gene.measured:
            for options in together:
                yield {"stage": "alone", "layer": layer, "options": options}


def drive(
    runner: Runner, tasks: Iterator[tuple[str, Task]], ended: Callable[[str, Outcome], None]
) -> None:
    """Keep all workers busy with tasks until there are none; each is asked for when a worker is
    free.
    """
    under_way: set[str] = set()
    while True:
        while len(under_way) < runner.capacity and (task := next(tasks, None)) is not None:
            under_way.add(task[0])
            runner.submit(*task)
        if not under_way:
            return
        outcome = runner.next()
        if not outcome.key:
            raise QuantizeError(outcome.error or "a worker ended")
        if outcome.key in under_way:  # others are left from what was interrupted
            under_way.remove(outcome.key)
            ended(outcome.key, outcome)


def evaluate(
    storage: Storage,
    runner: Runner,
    stage: Stage,
    candidates: Iterable[Candidate],
    ended: Callable[[str, Outcome], None],
    details: Callable[[Candidate], Task] = lambda _: {},
) -> None:
    """Evaluate candidates in a stage, each noted as begun when a worker is free; ``details`` are
    what the stage needs to know besides.
    """

    def tasks() -> Iterator[tuple[str, Task]]:
        for candidate in candidates:
            storage.begin(stage, candidate)
            task = {"stage": stage, "candidate": candidate, **details(candidate)}
            yield key_of(candidate), task

    drive(runner, tasks(), ended)


def keep(storage: Storage, stage: Stage, key: str, outcome: Outcome) -> None:
    """Keep an evaluation's outcome."""
    candidate = candidate_of(key)
    if outcome.error is not None:
        storage.failed(stage, candidate, outcome.error)
        return
    figures, model = outcome.result["figures"], outcome.result["model"]
    storage.done(stage, candidate, figures, outcome.seconds, outcome.worker, model)


def is_known(task: Mapping[str, Any], known: set[tuple[str, str]]) -> bool:
    """Check whether all options of a task are measured."""
    return all((task["layer"], option) in known for option in task["options"])
