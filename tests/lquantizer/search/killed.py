"""Searches a small network, in a process that a test may kill: ``python -m
tests.lquantizer.search.killed FOLDER EVALUATIONS WORKERS [ADDRESS [PATIENCE]]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import luciole
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.search import cluster
from luciole.lquantizer.search.options import SearchOptions
from tests.networks import network, random

OPTIONS = ("levels:w2a4", "dynamic:int8", "float")


def main(folder: str, evaluations: str, workers: str, address: str = "", patience: str = "") -> int:
    """Search, and say in a line what was wrong."""
    if patience:
        cluster._PATIENCE = int(patience)
    options = SearchOptions(
        evaluations=int(evaluations),
        options=OPTIONS,
        files=2,
        few=40,
        workers=int(workers),
        cluster=address or None,
    )
    try:
        luciole.search(network((24, 20, 16, 16, 4)), random(1, 40, 24), Path(folder), options)
    except QuantizeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
