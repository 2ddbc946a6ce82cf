"""Compare runtimes record by record: how often each is right, and how far it is from luciole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.interpreter.answers import answers_of, scores_classes
from luciole.interpreter.evaluation import check_labels, share_right
from luciole.interpreter.records import Progress
from luciole.ir import Array, Graph
from luciole.ir.errors import ChoiceError
from luciole.ir.value import has_batch_axis
from luciole.tools.bench.compare import Batch, Contender, Gaps, largest_difference, numbers
from luciole.tools.bench.inputs import data_inputs
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.runtime import CrashError, translated
from luciole.tools.data import Data

MOST_UNLABELLED = 1000
"""Records without labels that are compared: of labelled ones all are run anyway."""


class Judge:
    """Runs contenders over records, luciole first."""

    def __init__(
        self,
        contenders: Sequence[Contender],
        ours: Luciole,
        data: Data,
        ignored: int | None = None,
    ) -> None:
        self._contenders, self._ours, self._data = list(contenders), ours, data
        self._ignored = ignored
        tells = tells_classes(contenders[0].outputs, ours.graph, data)
        self._answers: list[list[Array]] | None = [[] for _ in contenders] if tells else None
        self.count = data.count if tells else min(data.count, MOST_UNLABELLED)
        """The records that are run."""

    def run(self, progress: Progress) -> list[str]:
        """Enter the figures; a line for each contender whose process ended."""
        if self._answers is None and len(self._contenders) == 1:
            return []
        lost: dict[int, str] = {}
        for contender in self._contenders:
            contender.gaps = Gaps()
        for arrays in data_inputs(self._ours, self._data, self.count):
            expected: list[Array] = []
            for place, contender in enumerate(self._contenders):
                if place in lost:
                    continue
                try:
                    outputs = self._outputs(place, arrays)
                except CrashError as crash:
                    lost[place] = str(crash)
                    continue
                expected = expected or outputs
                contender.gaps.add(largest_difference(outputs, expected))
            progress(records_at_once(self._ours))
        self._enter_shares(lost)
        return [*lost.values()]

    def _outputs(self, place: int, arrays: Batch) -> list[Array]:
        """Run a contender once, and keep its answers where they are wanted."""
        runtime = self._contenders[place].runtime
        outputs = runtime.with_copies(translated(arrays, self._ours, runtime))
        if self._answers is not None:
            self._answers[place].append(answers_of(_by_record(outputs[0], self._ours.graph)))
        return numbers(runtime, outputs)

    def _enter_shares(self, lost: dict[int, str]) -> None:
        if self._answers is None or self._data.labels is None:
            return
        for place, contender in enumerate(self._contenders):
            if place not in lost:
                answers = np.concatenate(self._answers[place])[: self._data.count]
                contender.top1 = share_right(answers, self._data.labels, self._ignored)


def check_classes(outputs: Sequence[Array], graph: Graph, data: Data, ignored: int | None) -> None:
    """Refuse labels that are no class of the first output, the ``ignored`` one left out, and to
    ignore one where nothing is labelled. Raises ChoiceError.
    """
    if tells_classes(outputs, graph, data):
        assert data.labels is not None, "they tell classes"
        check_labels(graph.outputs[0], outputs[0].shape[-1], data.labels, ignored)
    elif ignored is not None:
        raise ChoiceError("--ignore-label needs --labels, and a first output that scores classes")


def tells_classes(outputs: Sequence[Array], graph: Graph, data: Data) -> bool:
    """Return whether there are labels, and numbers of the first output score their classes."""
    if data.labels is None:
        return False
    scores = _by_record(outputs[0], graph)
    return scores_classes(graph.outputs[0], scores, data.labels[: len(scores)])


def _by_record(output: Array, graph: Graph) -> Array:
    """Give a first output an axis that counts records where it has none."""
    return output if has_batch_axis(graph.outputs[0]) else output[None]


def records_at_once(ours: Luciole) -> int:
    """Count the records that one invoke takes."""
    batched = (has_batch_axis(value) for value in ours.graph.inputs)
    sizes = [p.shape[0] for p, is_batch in zip(ours.inputs, batched, strict=True) if is_batch]
    return sizes[0] if sizes else 1
