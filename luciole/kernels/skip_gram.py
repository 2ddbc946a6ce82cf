"""SKIP_GRAM kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from luciole.ir import Array, ShapeError, TensorType
from luciole.ir.ops.skip_gram import SkipGram
from luciole.ir.strings import array_of, most_memory
from luciole.kernels.core.limits import room
from luciole.kernels.core.registry import reference

SPACE = re.compile(rb"[ \t\n\v\f\r]")


@reference(SkipGram, TensorType.STRING)
def skip_gram(op: SkipGram, texts: Array) -> Array:
    """Join words as long as there is room for the results."""
    if not texts.size:
        raise ShapeError("there is no text")
    grams: list[bytes] = []
    size = 0
    for gram in _grams(op, _words(texts.flat[0])):
        size += most_memory(1, len(gram))
        room(size, "sequences of words")
        grams.append(gram)
    return array_of(grams, (len(grams),))


def _words(text: bytes) -> list[bytes]:
    """Split a text as TFLite does: one space in front of the first word counts as part of it, and
    both are left out where a space follows.
    """
    words, begin = [], 0
    for space in SPACE.finditer(text, 1):
        end = space.start()
        if end > begin and not SPACE.match(text, begin):
            words.append(text[begin:end])
        begin = end + 1
    return [*words, text[begin:]] if len(text) > begin else words


def _grams(op: SkipGram, words: list[bytes]) -> Iterator[bytes]:
    """Yield all sequences, longer ones before the sequence that they begin with.

    Where only whole ones are asked for, none is begun that too few words are left for.
    """
    size, every = op.ngram_size, op.include_all_ngrams
    if not 0 < size <= len(words):
        return
    chosen, after = [0], 1
    while chosen:
        missing = size - len(chosen)
        last = min(chosen[-1] + op.max_skip_size + 1, len(words) - (1 if every else missing))
        if missing and after <= last:
            chosen.append(after)
            after += 1
            continue
        if every or not missing:
            yield b" ".join([words[place] for place in chosen])
        after = chosen.pop() + 1
        if not chosen and after <= len(words) - (1 if every else size):
            chosen, after = [after], after + 1
