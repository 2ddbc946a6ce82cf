"""Random sound float networks, the same by number, and records for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, Model, TensorType, Value
from luciole.ir.ops.softmax import Softmax
from tests.fuzz.rewriting import anywhere, images, sequences
from tests.fuzz.rewriting.maker import Maker

RECORDS = 16
_BROKEN = 4
"""Records with elements that are no numbers."""
_MOST_OPERATORS = 60
_UNUSUAL = 0.12
"""The share of such elements."""

Block = Callable[[Maker, Value], Value]
Records = Mapping[str, Array]


@dataclass(frozen=True)
class Network:
    """A float network, what it is made of, and its records [n, ...] by input name; ``broken`` ones
    have elements that are no numbers. ``uneven`` ones have layers with channels of uneven sizes
    between them, ``cut_off`` ones a RELU6 there.
    """

    number: int
    model: Model
    what: str
    records: Records
    broken: Records
    uneven: bool
    cut_off: bool


def network(seed: int, number: int, even: bool = False) -> Network:
    """Make the network of a number; with ``even`` channels it computes the same."""
    maker = Maker((seed, number), even)
    parts: list[str] = []
    first = maker.one_of((_image, _image, _sequence, _sequence, _vector))
    end = _continued(maker, first(maker, parts), parts)
    _finish(maker, end, parts)
    rng = np.random.default_rng((seed, number, 1))
    records = _records(maker.model, rng)
    what = " ".join(parts)
    broken = _broken(records, rng)
    return Network(number, maker.model, what, records, broken, maker.uneven, maker.cut_off)


def _image(m: Maker, parts: list[str]) -> Value:
    side = m.count(2, 4) * 2
    parts.append(f"image{side}")
    return m.input((1, side, side, m.count(1, 3) * 2))


def _sequence(m: Maker, parts: list[str]) -> Value:
    if m.chance(0.2):
        parts.append("words")
        return sequences.words(m)
    parts.append("sequence")
    return m.input((1, m.count(3, 5), m.count(2, 5) * 2))


def _vector(m: Maker, parts: list[str]) -> Value:
    parts.append("vector")
    return m.input((1, m.count(3, 8) * 2))


_OF_RANK: dict[int, tuple[Block, ...]] = {
    2: anywhere.BLOCKS,
    3: (*sequences.BLOCKS, *sequences.BLOCKS, *anywhere.BLOCKS),
    4: (*images.BLOCKS, *images.BLOCKS, *anywhere.BLOCKS),
}
_PLAIN: dict[int, tuple[Block, ...]] = {
    2: anywhere.PLAIN,
    3: (*sequences.PLAIN, *anywhere.PLAIN),
    4: (*images.PLAIN, *images.PLAIN, *anywhere.PLAIN),
}


def _continued(m: Maker, x: Value, parts: list[str]) -> Value:
    """Append blocks; a sequence or an image is perhaps made a row on the way."""
    for _ in range(m.count(1, 4)):
        if len(m.graph.ops) > _MOST_OPERATORS:
            break
        block = m.one_of((_PLAIN if m.plain else _OF_RANK)[len(x.dims)])
        parts.append(block.__name__)
        x = block(m, x)
        if m.chance(0.2):
            m.extras.append(x)
        if len(x.dims) > 2 and m.chance(0.2):
            x = _flattened(m, x)
    return x


def _flattened(m: Maker, x: Value) -> Value:
    return sequences.flattened(m, x) if len(x.dims) == 3 else images.flattened(m, x)


def _finish(m: Maker, x: Value, parts: list[str]) -> None:
    """End a network as classifiers, regressions or encoders end, with more outputs perhaps."""
    kind = m.count(0, 3)
    if len(x.dims) > 2 and kind > 0:
        x = _flattened(m, x)
    if kind > 1:
        parts.append("dense")
        x = m.dense(x, m.count(2, 8))
    if kind == 3:
        parts.append("softmax")
        x = m.add(Softmax(x, beta=1.0))
    elif x.is_input or x.is_constant:
        x = anywhere.dense(m, x)
    others = [v for v in m.extras if v is not x and not v.is_input and not v.is_constant]
    outputs = [x, *(v for v in others if m.chance(0.4))][:3]
    parts.append(f"{len(outputs)} outputs" if len(outputs) > 1 else "")
    m.graph.outputs = list(dict.fromkeys(outputs))


def _records(model: Model, rng: np.random.Generator) -> Records:
    """Draw records, larger and smaller ones, with rare large numbers perhaps, the last perhaps of
    zeros.
    """
    tails = rng.random() < 0.3
    sizes = np.exp(rng.normal(0, 0.3, RECORDS)).astype(np.float32)
    if rng.random() < 0.3:
        sizes[-1] = 0
    made: dict[str, Array] = {}
    for value in model.graph.inputs:
        shape = (RECORDS, *value.dims[1:])
        if value.dtype == TensorType.INT32:
            made[value.name] = rng.integers(0, sequences.WORDS, shape).astype(np.int32)
        elif _is_mask(value):
            there = (rng.random(shape) < 0.8).astype(np.float32)
            there[:, 0] = 1  # whoever sees nothing has no shares
            made[value.name] = there
        else:
            drawn = (rng.standard_t(3, shape) if tails else rng.normal(size=shape)).astype("f4")
            made[value.name] = drawn * sizes.reshape(-1, *[1] * (len(shape) - 1))
    return made


def _is_mask(value: Value) -> bool:
    return value.name != "x0"


def _broken(records: Records, rng: np.random.Generator) -> Records:
    """Take a few records, with NaN here and there where they are real numbers."""
    made = {}
    for name, array in records.items():
        some = array[:_BROKEN].copy()
        if some.dtype == np.float32:
            some[rng.random(some.shape) < _UNUSUAL] = np.nan
        made[name] = some
    return made
