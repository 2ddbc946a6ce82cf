"""Check labels before anything is trained: which output they are of, and that it scores them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter import Interpreter
from luciole.interpreter.answers import (
    answers_of,
    distribution_of,
    is_probability,
    labels_for,
    no_class,
    scores_classes,
)
from luciole.interpreter.records import Records, check_records, outputs_of
from luciole.ir import Array, Graph, Model
from luciole.ir.names import called, names_of
from luciole.lquantizer.errors import QuantizeError

_WITHOUT = "(without labels, training follows the float network's answers)"
_SOME = 2
"""Records that are run to see the shape and numbers of an output."""


@dataclass(frozen=True)
class Labels:
    """Class numbers [records, ...steps], the place of the output that scores these classes, and
    whether that holds probabilities, else logits; what a softmax makes is read before it.
    """

    numbers: NDArray[np.int64]
    output: int = 0
    are_probabilities: bool = False

    @classmethod
    def of(cls, model: Model, records: Records, labels: Array, output: str | None = None) -> Labels:
        """Read labels of the ``output`` of a name, or of a float network's only one.

        Raises QuantizeError for an output that scores no classes, and for labels that are none of
        its classes, InputError for labels of another shape.
        """
        place = _place(model.graph, output)
        value = model.graph.outputs[place]
        count = check_records(model.graph, records)
        if labels.dtype.kind not in "iu":
            raise QuantizeError(f"the labels are {labels.dtype}, class numbers are needed")
        first_records = {name: array[:_SOME] for name, array in records.items()}
        numbers = outputs_of(Interpreter(model), first_records, batch=1)[value.name]
        if numbers.dtype.kind != "f" or not scores_classes(value, numbers, labels[:_SOME]):
            raise QuantizeError(f"labels need classes: output {called(value)!r} scores none")
        labels = labels_for(labels, (count, *answers_of(numbers).shape[1:]))
        sentence = no_class(labels, value, numbers.shape[-1])
        if sentence is not None:
            raise QuantizeError(f"{sentence} {_WITHOUT}")
        made = distribution_of(value) is not None
        return cls(labels.astype(np.int64), place, not made and is_probability(numbers))

    def at(self, places: Array) -> Labels:
        """Take the labels of some records."""
        return replace(self, numbers=self.numbers[places])


def _place(graph: Graph, name: str | None) -> int:
    """Find an output by a name, a tensor's or a signature's."""
    outputs = graph.outputs
    places = [n for n, v in enumerate(outputs) if name is None or name in names_of(v)]
    if len(places) == 1:
        return places[0]
    known = ", ".join(sorted(map(called, outputs)))
    if name is None:
        raise QuantizeError(
            f"labels are of one output, the model has {len(outputs)}: labelled_output says which "
            f"of {known}"
        )
    raise QuantizeError(f"there is no output {name!r} that labels could be of, only {known}")
