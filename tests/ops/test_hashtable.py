"""HASHTABLE, HASHTABLE_FIND, HASHTABLE_IMPORT and HASHTABLE_SIZE against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, LucioleError, Model, TensorType
from luciole.ir.ops.hashtable import Hashtable, HashtableFind, HashtableImport, HashtableSize
from luciole.ir.strings import array_of
from luciole.kernels.core.errors import MemoryLimitError
from tests.support import litert

INT64, STRING = TensorType.INT64, TensorType.STRING


def words(*texts: bytes) -> Array:
    return array_of(texts, (len(texts),))


def longs(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


FORWARD = words(b"b", b"a\0", b"b", b""), longs(1, 2, 3, 2**40)
BACKWARD = longs(7, -7, 7), words(b"x", b"", b"z")


def table(
    keys: Array, values: Array, default: Array, times: int = 1, types: Any = None, shape: Any = None
) -> Model:
    """Fill a table, again in the reverse order, and look something up."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    kinds = types or [STRING if a.dtype == object else INT64 for a in (keys, values)]
    op = Hashtable(table_id=3, key_dtype=kinds[0], value_dtype=kinds[1])
    handle = graph.append(op, "h").output
    for turn in range(times):
        pair = (keys, values) if turn == 0 else (keys, values[::-1].copy())
        graph.append(HashtableImport(handle, *(graph.add_constant("c", a) for a in pair)))
    query = graph.add_input("q", (None,) if shape is None else shape, kinds[0])
    found = graph.append(HashtableFind(handle, query, graph.add_constant("d", default)), "y")
    graph.outputs = [found.output, graph.append(HashtableSize(handle), "n").output]
    return model


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    ("pairs", "default", "query"),
    [
        (FORWARD, longs(-1), words(b"a\0", b"b", b"a", b"")),
        (FORWARD, longs(-1), words(b"a\0", b"?").reshape(1, 2)),
        (FORWARD, np.array(5, np.int64), words(b"?")),
        (FORWARD, longs(5, 6), words(b"?")),
        (BACKWARD, words(b"none"), longs(-7, 7, 8)),
    ],
)
def test_values_are_those_of_litert(
    pairs: tuple[Array, Array], default: Array, query: Array, times: int
) -> None:
    content = to_bytes(table(*pairs, default, times, shape=query.shape), "tflite")
    interpreter = Interpreter(from_bytes(content))
    for _ in range(2):
        found = interpreter.run(query)
        for ours, theirs in zip(found.values(), litert(content, [query], "AUTO"), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            assert ours.tolist() == theirs.tolist()


def test_interpreters_have_tables_of_their_own() -> None:
    first = Interpreter(table(*FORWARD, longs(-1)))
    assert first.run(words(b"b"))["y"].tolist() == [1]
    other = Interpreter(table(*FORWARD, longs(-1), times=0))
    with pytest.raises(LucioleError, match="hash table 3 is read before it was filled"):
        other.run(words(b"b"))


@pytest.mark.parametrize(
    ("pairs", "default", "types", "message"),
    [
        (FORWARD, longs(-1), (INT64, INT64), "it is from INT64 to INT64, INT64 to STRING or"),
        ((words(b"a"), longs(1, 2)), longs(-1), None, r"keys are \[1\] and values \[2\], both"),
        ((longs(1), longs(1)), longs(-1), (INT64, STRING), "keys and values are of one type"),
        (BACKWARD, longs(-1), None, "keys or default_value are not of the table's types"),
        (FORWARD, longs(), None, "default_value has no element"),
    ],
)
def test_hashtable_refuses_what_does_not_fit(
    pairs: tuple[Array, Array], default: Array, types: Any, message: str
) -> None:
    model = table(*pairs, default, types=types)
    query = longs(1) if model.graph.inputs[0].dtype == INT64 else words(b"a")
    with pytest.raises(LucioleError, match=message):
        Interpreter(model).run(query)


def test_hashtable_find_refuses_a_table_that_is_not_there() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    handle = graph.add_input("h", (1,), TensorType.RESOURCE)
    graph.outputs = [graph.append(HashtableSize(handle), "n").output]
    with pytest.raises(LucioleError, match="there is no hash table 5"):
        Interpreter(model).run(np.array([5], np.int32))


def test_hashtable_import_refuses_more_than_the_limit() -> None:
    keys = words(*(str(n).encode() for n in range(5000)))
    model = table(keys, np.arange(5000), longs(-1))
    assert Interpreter(model, memory_limit=4 << 20).run(words(b"4999"))["y"].tolist() == [4999]
    with pytest.raises(MemoryLimitError, match="bytes of texts are too many"):
        Interpreter(model, memory_limit=1 << 20).run(words(b"4999"))
