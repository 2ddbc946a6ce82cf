"""Tasks of a search, done from plain values by a worker that holds the model and the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from luciole.interpreter.records import Records
from luciole.ir import Model
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import Judges
from luciole.lquantizer.search import latency
from luciole.lquantizer.search.evaluate import Bench
from luciole.lquantizer.search.finishing import Finish, finished, is_finish
from luciole.lquantizer.search.runners import Task
from luciole.lquantizer.search.space import Space


@dataclass(frozen=True)
class Materials:
    """Materials of a worker: a model's bytes, and the functions that read and write models; the
    records layers are fitted to, and others that judge.
    """

    model: bytes
    read: Callable[[bytes], Model]
    write: Callable[[Model], bytes]
    records: Records
    judges: Judges
    space: Space
    timed: bool
    seed: int = 0
    few: int = 100
    training: Records | None = None
    """Records for fine-tuning a front: all that do not judge; None where it is not fine-tuned."""
    metric: Metric | None = None

    def __call__(self) -> Evaluator:
        """Begin: read the model and run it."""
        return Evaluator(self)


class Evaluator:
    """Does tasks: layers alone, shortened fits, and full ones, whose model comes back too."""

    def __init__(self, materials: Materials) -> None:
        self._materials = materials
        self._bench = Bench(
            materials.read(materials.model),
            materials.records,
            materials.judges,
            self._size,
            latency.measured if materials.timed else None,
            materials.seed,
            materials.few,
            materials.metric,
        )

    def _size(self, model: Model) -> int:
        return len(self._materials.write(model))

    def __call__(self, task: Task) -> dict[str, Any]:
        """Do a task of plain values, with a result of plain values."""
        if task["stage"] == "alone":
            layers = self._bench.alone(task["layer"], task["options"])
            return {"alone": [asdict(one) for one in layers]}
        if is_finish(task["stage"]):
            return self._finished(task)
        space, candidate, ways = self._materials.space, task["candidate"], task.get("ways")
        by_layer = None if ways is None else dict(zip(space.learned(candidate), ways, strict=True))
        result = self._bench.fit(space.by_layer(candidate), by_layer)
        return self._judged(result.model, kept=task["stage"] == "fitted")

    def _finished(self, task: Task) -> dict[str, Any]:
        """Fit a candidate in full and fine-tune it."""
        training = self._materials.training
        assert training is not None, "who asks for training gives records for it"
        chosen = self._materials.space.by_layer(task["candidate"])
        model = finished(self._bench, chosen, training, Finish.parse(task["stage"]))
        return self._judged(model, kept=True)

    def _judged(self, model: Model, *, kept: bool) -> dict[str, Any]:
        """Judge a candidate by its file: its bytes are read back, and returned where kept."""
        content = self._materials.write(model)
        figures = self._bench.figures(self._materials.read(content), len(content))
        return {"figures": asdict(figures), "model": content if kept else None}
