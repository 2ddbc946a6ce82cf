"""Networks as a search evaluated them, and the keys that name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern

from luciole.lquantizer.search.additive import Sum, spacing
from luciole.lquantizer.search.space import Candidate

SEPARATOR = " "
"""Between the options of a candidate, in its key."""
_LETTER = ord("A")
"""The first letter of a key: there are fewer options than letters and signs from there on."""


@dataclass(frozen=True)
class Found:
    """A candidate as it was evaluated: an option for each gene, the bytes of its file, what it
    loses, the microseconds that its operators take together, and the share of equal answers.
    """

    candidate: Candidate
    bytes: int
    loss: float
    us: float
    agreement: float | None
    drop: float | None = None
    """Its loss in the judge's unit."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Its costs on other devices, or other figures of it, by name."""
    before: Found | None = None
    """Its figures before it was fine-tuned."""

    @property
    def sum(self) -> Sum:
        """Its loss, bytes and times."""
        return Sum(self.candidate, self.loss, self.bytes, self.us, self.costs)

    def values(self, objectives: Sequence[str]) -> tuple[float, ...]:
        """Take the objectives, as they are spaced."""
        return spacing(self.sum, objectives)


@dataclass
class Searched:
    """Results of a search: evaluations in their order and the greedy networks among them; fitted in
    full the uniform networks that no other uniform one beats, and the front, from the smallest to
    the largest, as files.
    """

    evaluated: list[Found]
    uniform: dict[str, Found]
    greedy: list[Found]
    front: list[Found]
    failed: int = 0
    unreached: int = 0
    """Networks that a search begins with, but for its budget."""


def key_of(candidate: Candidate) -> str:
    """Write a candidate as a key: a letter for each gene, and the options that the letters stand
    for.
    """
    options = list(dict.fromkeys(candidate))
    letters = "".join(chr(_LETTER + options.index(option)) for option in candidate)
    return SEPARATOR.join((letters, *options))


def candidate_of(key: str) -> Candidate:
    """Read a candidate off its key: options are the same objects wherever they are, and sent
    once.
    """
    letters, *options = map(intern, key.split(SEPARATOR))
    return tuple(options[ord(letter) - _LETTER] for letter in letters)
