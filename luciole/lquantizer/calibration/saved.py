"""Ranges of tensors in a file: what calibration found, to be read, edited and merged.

A file is a JSON object. ``tensors`` has an entry for each tensor by its name: ``low`` and ``high``,
which its integers reach and which people may edit, and beside them what was ``found``. ``rescaled``
says what the channels between two layers were multiplied by, as ranges are those of the rescaled
network. ``floats`` names what operators give that stay float, because integers would lose it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from luciole.files import write_file
from luciole.files.json_reading import read_json
from luciole.files.places import Path_
from luciole.ir import Graph, Model, TensorType
from luciole.ir.equalization import equalized, original_name
from luciole.ir.errors import expect
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.quantization import Affine, affine_of
from luciole.lquantizer.calibration.seen import Seen
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.affine import Range
from luciole.lquantizer.reading import refuse_others
from luciole.lquantizer.report import shown

_SHARES = (0.01, 0.1, 1, 10, 50, 90, 99, 99.9, 99.99)
"""Percentiles of a tensor's elements that a file tells."""
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Found:
    """A tensor's calibration: the range that was chosen, the extremes, the innermost extremes of
    single records, and percentiles of all elements.
    """

    low: float
    high: float
    least: float
    most: float
    highest_low: float
    lowest_high: float
    percentiles: Mapping[str, float]

    @classmethod
    def of(cls, seen: Seen, chosen: Range) -> Found:
        """Sum up a tensor's statistics and the range that was chosen from them."""
        return cls(
            *chosen, seen.low, seen.high, max(seen.lows), min(seen.highs), _percentiles(seen)
        )


def _percentiles(seen: Seen) -> dict[str, float]:
    middles, counts = seen.histogram()
    order = np.argsort(middles)
    below = np.cumsum(counts[order]) / counts.sum()
    places = np.minimum(np.searchsorted(below, np.array(_SHARES) / 100), len(order) - 1)
    percentiles = np.clip(middles[order][places], seen.low, seen.high)
    return {f"{share:g}": float(x) for share, x in zip(_SHARES, percentiles, strict=True)}


@dataclass(frozen=True)
class TensorRange:
    """The least and the largest number that a tensor's integers reach, and its calibration."""

    low: float
    high: float
    found: Found | None = None

    @property
    def is_edited(self) -> bool:
        """Whether people chose the range."""
        return self.found is None or (self.low, self.high) != (self.found.low, self.found.high)


def _integers(graph: Graph) -> dict[str, Affine]:
    """Find how integers stand for tensors, by the names of these in the float network: an end that
    stays float is one of what a QUANTIZE makes of it, or a DEQUANTIZE makes it of.
    """
    notes = equalized(graph)
    affines: dict[str, Affine] = {}
    pairs = [(value, value) for value in graph.values]
    for op in graph.ops:
        if isinstance(op, Quantize | Dequantize):
            pairs += [(op.input, op.output), (op.output, op.input)]
    for value, coded in pairs:
        affine = affine_of(coded)
        if affine is not None:
            affines.setdefault(original_name(value, notes), affine)
    return affines


def _reached(affine: Affine) -> tuple[float, float]:
    """Find the least and the largest number of a tensor's integers; those of 16 bits, whose zero
    point is 0, are made of what reaches as far on both sides.
    """
    (low, *_), (high, *_) = affine.range
    return float(-high if affine.dtype == TensorType.INT16 else low), float(high)


@dataclass(frozen=True)
class Rescaled:
    """The factors of the channels between two layers, by the names of their results."""

    front: str
    back: str
    scales: tuple[float, ...]


@dataclass(frozen=True)
class Ranges:
    """Ranges of tensors by name, with how they were found: from how many records, by which rule,
    and in a network whose channels were rescaled so.
    """

    tensors: Mapping[str, TensorRange]
    rescaled: tuple[Rescaled, ...] = ()
    records: int = 0
    rule: str = ""
    floats: tuple[str, ...] = ()
    """Results of operators that integers would ruin."""
    source: str = field(default="ranges", compare=False)
    """The name of the ranges in sentences."""

    def of_integers(self, model: Model) -> Ranges:
        """Give the tensors that are integers in a network the ranges that these reach, as after a
        training; of others what is known stays.
        """
        known = _integers(model.graph)
        tensors = dict(self.tensors)
        for name in known.keys() & tensors.keys():
            low, high = _reached(known[name])
            tensors[name] = replace(tensors[name], low=low, high=high)
        return replace(self, tensors=tensors)

    def to_json(self) -> dict[str, Any]:
        """Turn the ranges into plain JSON values."""
        content = asdict(self)
        del content["source"]
        content["floats"] = list(self.floats)
        content["rescaled"] = [{**asdict(r), "scales": list(r.scales)} for r in self.rescaled]
        for entry in content["tensors"].values():
            if entry["found"] is None:
                del entry["found"]
        return content

    def save(self, path: Path_) -> None:
        """Write a file that ``read`` reads, whole or not at all."""
        write_file(path, json.dumps(self.to_json(), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path_) -> Ranges:
        """Read a file. Raises QuantizeError that says what was not understood."""
        expect(path, (str, os.PathLike), "ranges: a file's path, Ranges or a dictionary")
        return cls.parse(read_json(path, QuantizeError, "ranges"), f"ranges {path}")

    @classmethod
    def parse(cls, content: Any, source: str = "ranges") -> Ranges:
        """Read a file's content. Raises QuantizeError in the name of ``source``."""
        tensors = content.get("tensors") if isinstance(content, dict) else None
        if not isinstance(tensors, dict):
            raise QuantizeError(f'{source}: an object with an object "tensors" is needed')
        known = {"tensors", "rescaled", "records", "rule", "floats"}
        refuse_others(source, content, known)
        read = {name: _tensor(f"{source}: tensor {_name(name)}", e) for name, e in tensors.items()}
        pairs = content.get("rescaled", [])
        if not isinstance(pairs, list):
            raise QuantizeError(f"{source}: rescaled is {pairs!r}, a list is needed")
        rescaled = tuple(_rescaled(source, entry) for entry in pairs)
        records, rule = content.get("records", 0), content.get("rule", "")
        if type(records) is not int or not isinstance(rule, str):
            raise QuantizeError(f"{source}: records is a whole number and rule is text")
        floats = content.get("floats", [])
        if not isinstance(floats, list) or not all(isinstance(name, str) for name in floats):
            raise QuantizeError(f"{source}: floats is {floats!r}, a list of names is needed")
        return cls(read, rescaled, records, rule, tuple(floats), source)

    def check_names(self, names: Sequence[str]) -> None:
        """Raise QuantizeError for a tensor that the network does not have."""
        for name in self.tensors.keys() - set(names):
            near = get_close_matches(name, names, 1)
            hint = f", did you mean {_name(near[0])}?" if near else ""
            raise QuantizeError(
                f"{self.source}: the network has no tensor {_name(name)} between operators{hint}"
            )


def merged(ranges: Sequence[Ranges]) -> Ranges:
    """Merge ranges: of a tensor that somebody edited, the last edited range; of others the range
    that holds all. Statistics of several ranges are dropped.

    Raises QuantizeError where they are of networks that were rescaled differently.
    """
    if len(ranges) == 1:
        return ranges[0]
    first = ranges[0]
    for other in ranges[1:]:
        if other.rescaled != first.rescaled:
            raise QuantizeError(
                f"{other.source} is of a network whose channels were rescaled otherwise than that "
                f"of {first.source}: save both with rescale none"
            )
    names = dict.fromkeys(name for one in ranges for name in one.tensors)
    joined = {
        name: _joined([r.tensors[name] for r in ranges if name in r.tensors]) for name in names
    }
    rules = ", ".join(dict.fromkeys(r.rule for r in ranges if r.rule))
    floats = tuple(dict.fromkeys(name for one in ranges for name in one.floats))
    return Ranges(joined, first.rescaled, sum(r.records for r in ranges), rules, floats)


def _joined(ranges: Sequence[TensorRange]) -> TensorRange:
    edited = [one for one in ranges if one.is_edited]
    if edited:
        return edited[-1]
    if len(ranges) == 1:
        return ranges[0]
    return TensorRange(min(one.low for one in ranges), max(one.high for one in ranges))


def _tensor(where: str, entry: Any) -> TensorRange:
    if not isinstance(entry, dict):
        raise QuantizeError(f'{where}: an object with "low" and "high" is needed')
    refuse_others(where, entry, {"low", "high", "found"})
    low, high = (_number(where, entry, key) for key in ("low", "high"))
    if low > high:
        raise QuantizeError(f"{where}: low {low:g} is above high {high:g}")
    calibrated = entry.get("found")
    return TensorRange(low, high, None if calibrated is None else _found(where, calibrated))


def _found(where: str, entry: Any) -> Found:
    keys = ("low", "high", "least", "most", "highest_low", "lowest_high")
    if not isinstance(entry, dict) or not isinstance(entry.get("percentiles"), dict):
        raise QuantizeError(f"{where}: found is not what calibration writes")
    refuse_others(where, entry, {*keys, "percentiles"})
    shares = entry["percentiles"]
    percentiles = {share: _number(where, shares, share) for share in shares}
    numbers = {key: _number(where, entry, key) for key in keys}
    return Found(percentiles=percentiles, **numbers)


def _rescaled(source: str, entry: Any) -> Rescaled:
    where = f"{source}: rescaled"
    if not isinstance(entry, dict) or entry.keys() != {"front", "back", "scales"}:
        raise QuantizeError(f"{where}: an entry has front, back and scales")
    scales = entry["scales"]
    if not isinstance(scales, list) or not all(
        isinstance(entry[k], str) for k in ("front", "back")
    ):
        raise QuantizeError(f"{where}: front and back are names, scales a list")
    numbers = tuple(_number(where, dict(enumerate(scales)), n) for n in range(len(scales)))
    if not all(number > 0 for number in numbers):
        raise QuantizeError(f"{where}: scales are above 0")
    return Rescaled(entry["front"], entry["back"], numbers)


def _number(where: str, entry: dict[Any, Any], key: Any) -> float:
    value: Any = entry.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= _LARGEST:  # which NaN is not
        raise QuantizeError(f"{where}: {key} is {value!r}, a finite number is needed")
    return float(value)


def _name(name: str) -> str:
    return repr(shown(name))
