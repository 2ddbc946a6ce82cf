"""``python -m benchmarks.search_networks``: whether files of a search are anywhere worse than a
uniform network, on kinds of networks.

Each network is searched on unlabelled training records with a small budget. Beside each uniform
network of the report stands the best file of no more bytes; losses are on records that nothing was
fitted to. ``--keep`` has the networks that are trained here, and the searches.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import luciole
from benchmarks.accuracy_networks import drawn, one_thread, subject
from luciole.ir import LucioleError
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import SearchResult

NETWORKS = ("mbnet", "cnn", "lstm", "transformer", "autoencoder")
FEW = (
    "levels:w1a2",
    "levels:w2a2",
    "levels:w2a4",
    "levels:w3a4",
    "levels:w4a8",
    "dynamic:int8",
    "dynamic:int4",
    "float",
)
"""What layers may be."""


def searched(name: str, data: Path, keep: Path, options: SearchOptions) -> SearchResult:
    """Search a network on as many records as the options want."""
    model, records = subject(name, data, keep)
    count = options.calibration + options.judges
    x = drawn(records.train, count)
    return luciole.search(model, x, keep / f"{name}-front", options, say=lambda line: None)


def rows(found: SearchResult) -> list[tuple[str, int, float, int, float]]:
    """List uniform networks, bytes and losses, with those of the best file that is no larger."""
    table = []
    for name, one in sorted(found.uniform.items(), key=lambda item: item[1].bytes):
        files = [file.found for file in found.front if file.found.bytes <= one.bytes]
        best = min(files, key=lambda file: file.loss, default=None)
        figures = (0, float("inf")) if best is None else (best.bytes, best.loss)
        table.append((name, one.bytes, one.loss, *figures))
    return table


def told(name: str, found: SearchResult) -> int:
    """Print a network's table; returns how often a uniform network is better."""
    table = rows(found)
    worse = sum(file > uniform for _, _, uniform, _, file in table)
    count = f"{len(found.evaluated)} evaluated, {found.failed} failed"
    print(f"\n{name}: {count}, {len(found.front)} files, {worse} worse")
    for uniform, size, loss, file, lost in table:
        gain = loss / lost if lost else float("inf")
        print(f"{uniform:10} {size:9,} B {loss:9.3g}   {file:9,} B {lost:9.3g}  {gain:6.1f} times")
    return worse


def main() -> None:
    """Print what there is for each network, and how often a uniform one is better."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("LUCIOLE_DATA", "data"))
    parser.add_argument("--keep", type=Path, help="a folder")
    parser.add_argument("--only", default=",".join(NETWORKS), metavar="NAMES")
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--records", type=int, default=100, help="to fit, and as many judge")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    one_thread()
    options = SearchOptions(
        evaluations=given.evaluations,
        options=FEW,
        calibration=given.records,
        judges=given.records,
        few=given.records // 2,
        workers=given.workers,
        files=6,
    )
    worse = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only.split(","):
            keep = given.keep or Path(folder)
            try:
                worse += told(name, searched(name, Path(given.data), keep, options))
            except LucioleError as error:
                print(f"\n{name}: {error}")
                worse += 1
    print(f"\nuniform networks that are better than all files of no more bytes: {worse}")


if __name__ == "__main__":
    main()
