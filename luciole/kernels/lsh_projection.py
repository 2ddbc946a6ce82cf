"""LSH_PROJECTION kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, ShapeError
from luciole.ir.ops.lsh_projection import LshProjection, projected
from luciole.ir.rules import agree, settled
from luciole.ir.strings import OBJECTS, encode
from luciole.kernels.arrays.fingerprint import fingerprint64
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANYTHING, reference
from luciole.schema.enums import LSHProjectionType

BYTES = 1 << 14
"""Of keys, seeds before items, that are hashed at once."""


@reference(LshProjection, *ANYTHING)
def lsh_projection(op: LshProjection, hash: Array, x: Array, weight: Array | None) -> Array:
    """Hash all items with each seed, and look on which side of 0 their sum lies."""
    shape = affordable(op, settled(projected(op.type, *hash.shape)))
    if weight is not None:
        agree("items", len(x), len(weight), "input", "weight")
    items = _items(x)
    seeds = np.ascontiguousarray(hash).reshape(-1, 1).view(np.uint8)
    bits: Array = np.empty(len(seeds), np.int64)
    at_once = max(BYTES // (items.size + len(items) * seeds.shape[1]), 1)
    for start in range(0, len(seeds), at_once):
        some = slice(start, start + at_once)
        bits[some] = _bits(seeds[some], items, weight)
    bits = bits.reshape(hash.shape)
    if op.type == LSHProjectionType.DENSE:
        return bits.reshape(shape).astype(np.int32)
    count = hash.shape[1]
    numbers: Array = bits @ (1 << np.arange(count - 1, -1, -1, dtype=np.int64))
    numbers += np.arange(len(hash)) << count
    return numbers.astype(np.int32)


def _items(x: Array) -> Array:
    """Return the bytes of each item; of texts equal parts of the buffer that a file has of them, as
    TFLite takes them.
    """
    if not len(x):
        raise ShapeError("input has no items: its first axis counts them")
    raw = _texts(x) if x.dtype == OBJECTS else np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    size = len(raw) // len(x)
    return raw[: size * len(x)].reshape(len(x), size)


def _texts(x: Array) -> Array:
    return np.frombuffer(encode(list(x.flat)), np.uint8)


def _bits(seeds: Array, items: Array, weight: Array | None) -> Array:
    """Return for seeds [n, 4], as bytes, whether the sum of items' hashes lies above 0: [n]."""
    shape = len(seeds), len(items)
    begins = np.broadcast_to(seeds[:, None], (*shape, seeds.shape[1]))
    keys = np.concatenate([begins, np.broadcast_to(items, (*shape, items.shape[1]))], axis=2)
    hashes = fingerprint64(keys.reshape(-1, keys.shape[2]))
    values = hashes.view(np.int64).astype(np.float64).reshape(shape)
    weighed = values if weight is None else weight * values
    sums: Array = np.add.accumulate(weighed, axis=1)  # in order: sums of pairs round otherwise
    return sums[:, -1] > 0
