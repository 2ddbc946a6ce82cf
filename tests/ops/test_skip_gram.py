"""SKIP_GRAM against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Graph, ShapeError, TensorType
from luciole.ir.ops.skip_gram import SkipGram
from luciole.ir.strings import array_of
from luciole.kernels.core.errors import MemoryLimitError
from tests.litert_support import check_same
from tests.support import one_op, run_reference

TEXTS = [
    b"The quick brown fox jumps over the lazy dog!",
    b"one",
    b"one two",
    b"",
    b" ",
    b"  ",
    b" a",
    b"  a",
    b" a b",
    b" a b  c\td \n",
    b"a\xa0b c\0d e",
    b"\t\v\f\r\n a",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [-1, 0, 1, 2, 3, 5])
@pytest.mark.parametrize("skip", [-1, 0, 1, 2, 9])
@pytest.mark.parametrize("every", [True, False])
def test_sequences_are_those_of_litert(text: bytes, size: int, skip: int, every: bool) -> None:
    given = [array_of([text], (1,))]
    check_same(SkipGram, given, ngram_size=size, max_skip_size=skip, include_all_ngrams=every)


def test_only_the_first_text_counts() -> None:
    (found,) = check_same(SkipGram, [array_of([b"a b", b"c d"], (2,))], ngram_size=2)
    assert found.tolist() == [b"a b"]


def test_the_number_of_sequences_is_not_known() -> None:
    op = SkipGram(Graph().add_input("x", (1,), TensorType.STRING))
    assert (op.infer_shape(), op.infer_dtype()) == ((None,), TensorType.STRING)


def test_skip_gram_refuses_no_text() -> None:
    with pytest.raises(ShapeError, match="there is no text"):
        run_reference(SkipGram, [array_of([], (0,))])


def test_skip_gram_refuses_more_sequences_than_the_limit() -> None:
    """2^40 of them are not begun."""
    given = array_of([b"a b c d e f g h i j " * 4], (1,))
    model = one_op(SkipGram, [given], ngram_size=20, max_skip_size=40)
    with pytest.raises(MemoryLimitError, match="sequences of words would take"):
        Interpreter(model, memory_limit=1 << 20).run(given)


def test_long_sequences_need_no_deep_calls() -> None:
    text = b"a " * 5000 + b"a"
    (found,) = run_reference(SkipGram, [array_of([text], (1,))], ngram_size=5001)
    np.testing.assert_array_equal(found, array_of([text], (1,)))
