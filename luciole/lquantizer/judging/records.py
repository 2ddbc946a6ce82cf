"""Part records into those that a network is learned from and those that judge its file."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from luciole.interpreter.errors import NO_ARRAY
from luciole.interpreter.records import Records, digest, digests
from luciole.interpreter.samples import Selection
from luciole.ir import Array, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.errors import ChoiceError
from luciole.ir.quantization import affine_of
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError

HELD_BACK, SAME, MADE_UP = "held back", "that it was learned from", "made up"
NOT_TAUGHT = "that nothing was learned from"
"""Where the records that judge come from: "on 100 records held back"."""
_SHARE, _FEWEST, _MOST = 10, 8, 256
"""One record in so many is held back, of at least and at most this number."""
_MADE_UP = 16
"""Records that are made up where there are none."""
_EACH = 5
"""The last of so many records judges the choices that the others make."""
MOST_JUDGES = 1000
"""Records that judge choices, at the most."""
FEW_JUDGES = 256
"""Of these, where each of many layers is measured for itself."""


@dataclass(frozen=True)
class Judges:
    """Records by the name of the float network's inputs, where they come from, and their labels if
    there are any.
    """

    records: Records
    origin: str = HELD_BACK
    labels: Array | None = None

    @property
    def count(self) -> int:
        """Number of records."""
        return len(next(iter(self.records.values())))

    def some(self, most: int) -> Judges:
        """Take at most ``most`` records, evenly far apart."""
        places = spread(np.arange(self.count), most)
        labels = None if self.labels is None else self.labels[places]
        return Judges(taken(self.records, places), self.origin, labels)

    @classmethod
    def made_up(cls, model: Model, seed: int = 0) -> Self:
        """Make records for a network without any: normal numbers, within the range of an input that
        states one, and zeros or ones for an input that counts or tells. Raises QuantizeError for a
        network without inputs and for types that nothing is made up of.
        """
        generator = np.random.default_rng(seed)
        inputs = model.graph.inputs
        if not inputs:
            raise QuantizeError("it has no input")
        return cls({v.name: _made_up(v, generator) for v in inputs}, MADE_UP)


def _made_up(value: Value, generator: np.random.Generator) -> Array:
    """Make records [_MADE_UP, ...] of an input."""
    dims = [1 if extent is None else extent for extent in value.shape]
    shape = (_MADE_UP, *(dims[1:] if dims[:1] == [1] else dims))
    affine, dtype = affine_of(value), NUMPY.get(value.dtype)
    if affine is not None:
        low, high = affine.range
        return affine.encode(generator.uniform(low[0], high[0], shape))
    if dtype is None or dtype.kind not in "fiub":
        raise QuantizeError(f"input {value.name!r} is {value.dtype.name}: no records are made up")
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


@dataclass(frozen=True)
class Split:
    """Records that a network is learned from, with their labels if there are any, and those that
    judge it.
    """

    learned: Records
    judges: Judges
    labels: Array | None = None

    @classmethod
    def of(
        cls,
        records: Records,
        most: int | None = None,
        labels: Array | None = None,
        known: Container[bytes] = (),
    ) -> Self:
        """Hold back a tenth of the records where there are at least 8, of those whose ``digest`` is
        not ``known`` where there are such; of fewer, all teach and judge.

        With ``most`` the first of them teach, and those behind judge where there are any. Raises
        QuantizeError for numbers that are not finite.
        """
        check_finite(records)
        count = len(next(iter(records.values())))
        places = np.arange(count)
        if most is not None and count > most:
            judging = spread(places[most:], _MOST)
            teachers = places[:most]
        elif count >= _FEWEST:
            new = places[[not known or digest(records, int(n)) not in known for n in places]]
            judging = spread(new if len(new) else places, min(_MOST, max(1, count // _SHARE)))
            teachers = np.delete(places, judging)
        else:
            return cls.same(records, labels)
        return cls.at(records, labels, teachers, judging)

    @classmethod
    def for_choices(
        cls, records: Records, labels: Array | None = None, most: int = MOST_JUDGES
    ) -> Self:
        """Part records for choices: those at ``judging_places`` judge, all others teach. Raises
        QuantizeError for fewer than two records, and for more or fewer labels.
        """
        count = check_labels(records, labels)
        if count < 2:
            raise QuantizeError("at least 2 records are needed: some judge what others taught")
        judging = judging_places(count, most)
        return cls.at(records, labels, np.delete(np.arange(count), judging), judging)

    @classmethod
    def at(
        cls,
        records: Records,
        labels: Array | None,
        teachers: NDArray[np.intp],
        judging: NDArray[np.intp],
    ) -> Self:
        """Part records by their places."""
        taught, judged = (None if labels is None else labels[p] for p in (teachers, judging))
        judges = Judges(taken(records, judging), HELD_BACK, judged)
        learned = {name: Selection.of(array, teachers) for name, array in records.items()}
        return cls(learned, judges, taught)

    @classmethod
    def same(cls, records: Records, labels: Array | None = None) -> Self:
        """Return a split in which all records teach, and judge as well."""
        return cls(records, Judges(records, SAME, labels), labels)

    @classmethod
    def judged_by(cls, records: Records, judges: Records, labels: Array | None = None) -> Self:
        """Return a split in which all records teach, and others judge."""
        is_new = digests(records).isdisjoint(digests(judges))
        return cls(records, Judges(judges, HELD_BACK if is_new else SAME), labels)


def labels_of(labels: ArrayLike | None) -> Array | None:
    """Take labels as an array. Raises ChoiceError where they make none."""
    if labels is None:
        return None
    try:
        array = np.asarray(labels)
    except NO_ARRAY as error:
        raise ChoiceError(f"labels are no array: {error}") from None
    if array.ndim == 0:
        raise ChoiceError(f"labels are an array whose first axis counts records, found {labels!r}")
    return array


def check_labels(records: Records, labels: Array | None) -> int:
    """Count the records. Raises QuantizeError where labels are more or fewer."""
    count = len(next(iter(records.values())))
    if labels is not None and len(labels) != count:
        raise QuantizeError(f"{count} records have {len(labels)} labels")
    return count


def judges_beside(learned: int) -> int:
    """Count the records to read as judges behind ``learned`` records, which then all teach."""
    return min(_MOST, max(_MADE_UP, learned // _SHARE))


def judging_places(count: int, most: int = MOST_JUDGES) -> NDArray[np.intp]:
    """Choose which of ``count`` records judge choices: the last of each five, or the very last of
    fewer; at most ``most`` of these, evenly far apart.
    """
    places = np.arange(count)
    judging = places[is_judge(places)]
    return spread(judging if len(judging) else places[-1:], most)


def is_judge(numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return whether records of these numbers judge: the last of each five."""
    return np.asarray(numbers % _EACH == _EACH - 1)


def spread(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Choose at most ``count`` places, evenly far apart, the last one among them."""
    count = min(most, len(places))
    return places[((np.arange(count) + 1) * len(places) // max(count, 1)) - 1]


def evenly(records: Records, most: int) -> dict[str, Array]:
    """Copy at most ``count`` records, evenly far apart."""
    return taken(records, spread(np.arange(len(next(iter(records.values())))), most))


def taken(records: Records, places: NDArray[np.intp]) -> dict[str, Array]:
    """Copy the records at some places."""
    return {name: np.asarray(array[places]) for name, array in records.items()}
