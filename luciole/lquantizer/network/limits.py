"""Find which numbers the integers of tensors reach: as a file of ranges says, else as data show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from luciole.interpreter.records import Progress, Records, check_records
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.text.common import first_named
from luciole.lquantizer.assignment.schemes import UniformOptions
from luciole.lquantizer.calibration.ranges import rule_of, symmetric
from luciole.lquantizer.calibration.recurrent import inner_tensors, seen_inside
from luciole.lquantizer.calibration.saved import Found, Ranges, Rescaled, TensorRange, merged
from luciole.lquantizer.calibration.seen import Seen, seen
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.affine import Range
from luciole.lquantizer.network.poles import FRAGILE
from luciole.lquantizer.network.uneven import room_for_others

_LISTED = 5
"""Names in a sentence."""


class Limits:
    """Chooses the ranges of a network's integers, and remembers them."""

    def __init__(self, options: UniformOptions, saved: Ranges | None = None) -> None:
        self.given = saved
        self.rescaled: tuple[Rescaled, ...] = () if saved is None else saved.rescaled
        rule = rule_of(options.ranges)
        self.rule_name, self._rule = options.ranges, symmetric(rule) if options.symmetric else rule
        floats = () if saved is None else saved.floats
        self.floats: dict[str, str] = dict.fromkeys(floats, FRAGILE)
        """Results of operators that integers would ruin, and why."""
        self.factors: dict[str, Array] = {}
        self._seen: dict[str, Seen] = {}
        self._room: Mapping[str, float] = {}
        self._chosen: dict[str, TensorRange] = {}
        self._records = 0

    def watch(
        self,
        model: Model,
        values: Sequence[Value],
        records: Records | None,
        batch: int,
        progress: Progress,
        layers: Sequence[LSTMLayer] = (),
    ) -> None:
        """Watch tensors, and the inner ones of recurrent ``layers``, on data, unless a saved range
        is there or they were watched before.

        Raises QuantizeError for ranges of other tensors, and for tensors without one where there
        are no data.
        """
        inner = {op: list(inner_tensors(op).values()) for op in layers}
        every = [*values, *(value for tensors in inner.values() for value in tensors)]
        if self.given is not None:
            self.given.check_names([value.name for value in every])
        self._chosen, self._room = {}, room_for_others(model.graph)
        known = {*self._seen, *({} if self.given is None else self.given.tensors)}
        left = [value for value in values if value.name not in known]
        unseen = [op for op in layers if not known.issuperset(v.name for v in inner[op])]
        if records is None:
            _refuse_missing([value for value in every if value.name not in known])
            return
        self._records = check_records(model.graph, records) if left or unseen else self._records
        if left:
            by_readers = self.rule_name == "mse"
            statistics = seen(model, left, records, batch, progress, by_readers)
            self._seen |= {value.name: one for value, one in statistics.items()}
        if unseen:
            self._seen |= seen_inside(model, unseen, records, batch)

    def seen_in(self, graph: Graph) -> dict[Value, Seen]:
        """Return the statistics of a graph's tensors that were watched."""
        return {v: self._seen[v.name] for v in graph.values if v.name in self._seen}

    def knows(self, value: Value) -> bool:
        """Check whether a tensor was watched, or has a saved range."""
        is_saved = self.given is not None and value.name in self.given.tensors
        return is_saved or value.name in self._seen

    def choose(self, value: Value, dtype: TensorType) -> Range:
        """Choose the least and the largest number that a tensor's integers reach, and remember
        them.
        """
        limits = self.of(value, dtype)
        chosen = self._given(value) or TensorRange(
            *limits, Found.of(self._seen[value.name], limits)
        )
        self._chosen.setdefault(value.name, chosen)  # what comes later is how one operator reads it
        return limits

    def of(self, value: Value, dtype: TensorType) -> Range:
        """Find the least and the largest number that a tensor's integers reach."""
        saved = self._given(value)
        if saved is not None:
            return saved.low, saved.high
        low, high = self._rule(self._seen[value.name], dtype)
        room = self._room.get(value.name, 1.0) if dtype == TensorType.INT16 else 1.0
        return room * low, room * high

    def is_judged_as_read(self, value: Value, dtype: TensorType) -> bool:
        """Check whether the results of saturating readers decided how far a tensor reaches."""
        statistics = self._seen.get(value.name) if self._given(value) is None else None
        return statistics is not None and statistics.judged(dtype) is not None

    def _given(self, value: Value) -> TensorRange | None:
        return None if self.given is None else self.given.tensors.get(value.name)

    def ranges(self) -> Ranges:
        """Give all ranges that were chosen."""
        records = self._records or (0 if self.given is None else self.given.records)
        floats = tuple(sorted(self.floats))
        return Ranges(self._chosen, self.rescaled, records, self.rule_name, floats)


def _refuse_missing(values: Sequence[Value]) -> None:
    if values:
        names = first_named([repr(value.name) for value in values], _LISTED)
        raise QuantizeError(f"no range is given for {names}: give them, or data")


def given_ranges(source: object) -> Ranges | None:
    """Read the ranges that ``ranges_from`` names, several merged. Raises QuantizeError that says
    what was not understood.
    """
    if source is None:
        return None
    sources = list(source) if isinstance(source, list | tuple) else [source]
    if not sources:
        raise QuantizeError("ranges_from names no ranges")
    return merged([_ranges(one) for one in sources])


def _ranges(source: object) -> Ranges:
    if isinstance(source, Ranges):
        return source
    if isinstance(source, Mapping):
        return Ranges.parse(dict(source))
    return Ranges.read(source)  # type: ignore[arg-type]  # a path: all else is one of the two
