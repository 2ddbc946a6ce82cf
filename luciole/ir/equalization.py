"""Tensors that hold the contents of another network's, divided channel by channel by known factors.

Equalization divides the outputs of one layer and multiplies the weights of the next (Nagel et al.
2019, "Data-Free Quantization Through Weight Equalization and Bias Correction", section 4.1). Such
a tensor gets another name, because it does not hold what its name promised; whose it was and by
what it was divided is kept in the model's metadata, so that both networks can be compared.

The entry ``luciole.equalized`` is a table of little-endian numbers: a 32-bit count, and for each
tensor the length of its name and the name (UTF-8), how many bytes of it are the original name, how
many channels there are, and their factors as 16-bit floats, within 2^-11 of the true ones.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph, Model
from luciole.ir.value import Buffer, Value

METADATA = "luciole.equalized"
"""The name of the metadata entry."""

SUFFIX = "/equalized"
"""Ending of a divided tensor's name."""

_HALF = np.finfo(np.float16)
_U32 = struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class Equalized:
    """Whose contents a tensor holds, divided along the last axis by factors [channels], float32."""

    original: str
    factors: Array

    def text(self) -> str:
        """Return words on the range of the factors."""
        low, high = float(self.factors.min()), float(self.factors.max())
        return f"equalized: each channel divided by its factor, {low:.3g} to {high:.3g}"


def rename(value: Value, factors: Array) -> None:
    """Give a tensor that is divided by factors [channels] from now on another name, and note its
    old name in its model. Dividing twice multiplies the factors.
    """
    assert value.graph is not None, "a tensor that is divided is part of a graph"
    model = value.graph.model
    known = {} if model is None else _read(model)
    before = known.pop(value.name, Equalized(value.name, np.ones(1, np.float32)))
    value.name = value.graph.unique_name(f"{value.name}{SUFFIX}")
    known[value.name] = Equalized(before.original, before.factors * factors)
    if model is not None:
        _write(model, known)


def forget_missing(model: Model) -> None:
    """Remove the notes about tensors that are not there any more."""
    known = _read(model)
    names = {value.name for graph in model.graphs for value in graph.values}
    kept = {name: note for name, note in known.items() if name in names}
    if len(kept) < len(known):
        _write(model, kept)


def equalized(graph: Graph) -> dict[Value, Equalized]:
    """Find the graph's divided tensors. Notes that do not fit a tensor are left out: another number
    of channels than it has, factors that are not positive and finite.
    """
    known = {} if graph.model is None else _read(graph.model)
    notes = {value: known[value.name] for value in graph.values if value.name in known}
    return {value: note for value, note in notes.items() if _fits(value, note.factors)}


def original_name(value: Value, known: Mapping[Value, Equalized]) -> str:
    """Return the name of a tensor in the network whose contents it holds."""
    return known[value].original if value in known else value.name


def _fits(value: Value, factors: Array) -> bool:
    sound = factors.size and (np.isfinite(factors) & (factors > 0)).all()
    return value.shape[-1:] == factors.shape and bool(sound)


def _write(model: Model, known: Mapping[str, Equalized]) -> None:
    entries = [(name, buffer) for name, buffer in model.metadata if name != METADATA]
    raw = _U32.pack(len(known)) + b"".join(_entry(*item) for item in known.items())
    data = np.frombuffer(raw, np.uint8)  # of bytes, so nobody can write to it
    model.metadata = [*entries, (METADATA, Buffer(data))] if known else entries


def _entry(name: str, note: Equalized) -> bytes:
    raw, original = (_bytes(text) for text in (name, note.original))
    factors = np.clip(note.factors, _HALF.smallest_subnormal, _HALF.max)
    counts = struct.pack("<II", len(original), len(note.factors))
    return _U32.pack(len(raw)) + raw + counts + factors.astype("<f2").tobytes()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _read(model: Model) -> dict[str, Equalized]:
    """Read the notes by tensor name; none where the table is damaged."""
    data = next((buffer.data for name, buffer in model.metadata if name == METADATA), None)
    if data is None:
        return {}
    try:
        return _entries(data.tobytes())
    except struct.error:
        return {}


def _entries(raw: bytes) -> dict[str, Equalized]:
    (count,), at = _U32.unpack_from(raw, 0), _U32.size
    notes: dict[str, Equalized] = {}
    for _ in range(count):
        (length,) = _U32.unpack_from(raw, at)
        name, prefix, channels = struct.unpack_from(f"<{length}sII", raw, at + _U32.size)
        at += _U32.size + length + 2 * _U32.size
        (factors,) = struct.unpack_from(f"<{2 * channels}s", raw, at)
        at += 2 * channels
        texts = [part.decode("utf-8", "surrogateescape") for part in (name, name[:prefix])]
        notes[texts[0]] = Equalized(texts[1], np.frombuffer(factors, "<f2").astype(np.float32))
    return notes
