"""Greedy allocations: from narrow levels, layer by layer, to wide ones."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.lquantizer.assignment.layer_format import Levels
from luciole.lquantizer.search.additive import Table
from luciole.lquantizer.search.space import UNCHANGED, Candidate

_TIED = tuple(str(Levels(bits, bits)) for bits in (1, 2, 3, 4))


def greedy(table: Table) -> list[Candidate]:
    """Widen layer by layer, each step the one that takes most loss away for each byte, with inputs
    as wide as weights and float ends: allocations from the smallest to the largest.
    """
    ladders = []
    for gene, row in zip(table.space.genes, table.rows, strict=True):
        learned = [] if gene.is_end else [option for option in _TIED if option in row]
        ladders.append(learned or [UNCHANGED if UNCHANGED in row else gene.options[-1]])
    place = [0] * len(ladders)
    candidates = [_at(ladders, place)]
    while gains := _gains(table, ladders, place):
        place[max(gains, key=gains.__getitem__)] += 1
        candidates.append(_at(ladders, place))
    return candidates[:: max(1, len(candidates) // 6)]


def _at(ladders: Sequence[Sequence[str]], place: Sequence[int]) -> Candidate:
    return tuple(ladder[at] for ladder, at in zip(ladders, place, strict=True))


def _gains(
    table: Table, ladders: Sequence[Sequence[str]], place: Sequence[int]
) -> dict[int, float]:
    """Compute for each gene the loss that its next step saves for each byte."""
    gains = {}
    for gene, (ladder, at) in enumerate(zip(ladders, place, strict=True)):
        if at + 1 < len(ladder):
            now, then = table.rows[gene][ladder[at]], table.rows[gene][ladder[at + 1]]
            gains[gene] = (now.loss - then.loss) / max(then.bytes - now.bytes, 1)
    return gains
