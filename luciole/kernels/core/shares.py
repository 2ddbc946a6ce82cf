"""Cut the work of a compiled step for threads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from luciole.kernels.core.allocation import placed
from luciole.kernels.core.contract import Stage
from luciole.kernels.jit.record import Record, Shared


def ranges(count: int, threads: int, least: int = 1) -> list[tuple[int, int]]:
    """Cut ``count`` pieces of work evenly for ``threads`` threads: (first, behind the last) of each
    share of at least ``least`` pieces, none where a single share is left.
    """
    parts = min(threads, count // max(least, 1))
    edges = np.linspace(0, count, parts + 1).astype(np.int64).tolist() if parts > 1 else []
    return list(pairwise(edges))


def cuts(count: int, threads: int) -> list[tuple[int, int]]:
    """Cut pieces of work as ``ranges`` does; one share is all of them."""
    return ranges(count, threads) or [(0, count)]


def shares(record: Shared, threads: int, least: int = 1) -> list[Stage]:
    """Copy a record for each of several threads that share its pieces of work, see ``ranges``."""
    parts = ranges(record.end - record.begin, threads, least)
    return stages([record.replace(begin=b, end=e) for b, e in parts])


def stages(*records: Sequence[Record]) -> list[Stage]:
    """Keep the records of each stage, of those that have some."""
    return [[placed(record.words()) for record in some] for some in records if some]
