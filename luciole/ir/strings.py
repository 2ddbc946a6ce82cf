"""String tensors: arrays of objects, each of which is bytes; and how a file has them.

A buffer is their number, where each begins and the last ends, and their bytes. Numbers are int32,
little endian, counted from the buffer's beginning: TFLite's string_util.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from luciole.ir.value import Value

Texts = NDArray[Any]
"""Array of objects, each of which is bytes."""

OBJECTS: np.dtype[Any] = np.dtype(object)
"""Element type of arrays of texts. They are pointers: nothing compiled may see them."""


def decode(raw: NDArray[np.uint8]) -> list[bytes] | None:
    """Read the texts of a buffer, None where it holds none."""
    offsets = ends(raw)
    if offsets is None:
        return None
    content = raw.tobytes()
    return [content[a:b] for a, b in pairwise(offsets.tolist())]


def ends(raw: NDArray[np.uint8]) -> NDArray[np.int32] | None:
    """Read where a buffer's first text begins and where each ends; None where one of these lies
    outside, or before the one in front of it. An empty buffer holds no texts.
    """
    head = raw[: len(raw) // 4 * 4].view("<i4")
    if not len(raw):
        return np.zeros(1, np.int32)
    count = int(head[0]) if len(head) else -1
    if not 0 <= count <= len(head) - 2:
        return None
    offsets = head[1 : count + 2]
    inside = offsets[0] >= 4 * (count + 2) and offsets[-1] <= len(raw)
    return offsets if inside and bool((offsets[1:] >= offsets[:-1]).all()) else None


def encode(texts: Sequence[bytes]) -> NDArray[np.uint8]:
    """Write the buffer of texts, the inverse of ``decode``."""
    whole = np.empty(encoded_bytes(texts), np.uint8)
    first = 4 * (len(texts) + 2)
    head = whole[:first].view(np.dtype("<i4"))
    head[0] = len(texts)
    head[1:] = first + np.cumsum([0, *map(len, texts)], dtype=np.int64)
    whole[first:] = np.frombuffer(b"".join(texts), np.uint8)
    return whole


def encoded_bytes(texts: Sequence[bytes]) -> int:
    """Count the bytes of a buffer of texts."""
    return 4 * (len(texts) + 2) + sum(map(len, texts))


def array_of(texts: Iterable[bytes | str], shape: tuple[int, ...]) -> Texts:
    """Make an array of texts, given in C order. Raises ValueError for another number of them."""
    listed = list(texts)
    array = np.empty(len(listed), OBJECTS)
    array[:] = listed
    return array.reshape(shape)


def given(texts: object) -> Texts:
    """Make an array of a caller's texts for a string tensor: an array (of NumPy's S, U, StringDType
    or objects) or nested lists of bytes and str, which become UTF-8.

    Raises TypeError for an element that is neither, ValueError for a str that UTF-8 has not.
    """
    array = np.array(texts, dtype=object)
    return array_of(map(_bytes, array.flat), array.shape)


def _bytes(text: object) -> bytes:
    if isinstance(text, bytes):
        return bytes(text)
    if isinstance(text, str):
        return text.encode()
    raise TypeError(f"texts are bytes or str, found {type(text).__name__}")


def is_texts(array: NDArray[Any]) -> bool:
    """Return whether an array holds texts and nothing else."""
    return array.dtype == OBJECTS and all(type(text) is bytes for text in array.flat)


def memory_of(texts: Texts) -> int:
    """Count the bytes of an array's texts, without the array; one that is in there twice counts
    twice.
    """
    return sum(map(sys.getsizeof, texts.flat))


def most_memory(count: int, size: int) -> int:
    """Bound the bytes that ``count`` texts of ``size`` bytes together take, before they are
    made.
    """
    return count * (sys.getsizeof(b"") + OBJECTS.itemsize) + size


def blank(shape: tuple[int, ...]) -> Texts:
    """Make an array of empty texts."""
    return np.full(shape, b"", OBJECTS)


def shown(text: bytes) -> str:
    """Turn a text's bytes into characters: those that are no UTF-8 become single surrogates, which
    ``surrogateescape`` turns back.
    """
    return text.decode("utf-8", "surrogateescape")


def strings_of(value: Value) -> NDArray[Any] | None:
    """Read the texts of a constant as characters, an array of objects in its shape; None where it
    has none. Raises GraphError as ``value.texts`` does.
    """
    texts = value.texts
    return None if texts is None else array_of(map(shown, texts.flat), texts.shape)
