"""``python -m benchmarks.search front/ --model MODEL --data DATA``: what a search's files are worth
on labelled records it never saw, and the share of a box that they dominate.

The box is 28 to 70 KB times 30 % to the float network's accuracy, made for ResNet-8 on CIFAR-10;
at each size counts the file that the search preferred, at its own accuracy. Beside the files stand
the uniform networks of the same search, fitted in full as they are; ``--fit RECORDS``, what the
search was given, fits the greedy ones, too. ``--claims`` says what else a front is to be.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter.records import outputs_of
from luciole.lquantizer.assignment.layer_format import levels_format
from luciole.lquantizer.judging.records import evenly
from luciole.lquantizer.search.begin import split
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.space import Space, is_learned, recipe
from luciole.tools.data.load import Data, load_data

BOX = (28_000, 70_000)
LOWEST = 30.0
NARROW = (
    "levels:w1a1",
    "levels:w1a2",
    "levels:w1a4",
    "levels:w2a2",
    "levels:w2a4",
    "levels:w3a3",
    "levels:w4a4",
    "dynamic:int8",
)
"""The uniform networks that the study of the search has."""

Row = Mapping[str, Any]
"""A network of a report."""


def accuracy(model: luciole.Model, data: Data) -> float:
    """Percent of the labels that a model's first output is largest at."""
    assert data.labels is not None, "records have labels"
    found = outputs_of(luciole.Interpreter(model), data.records)[model.graph.outputs[0].name]
    right = found.reshape(len(found), -1).argmax(1) == data.labels.reshape(-1)
    return 100 * float(np.mean(right))


def covered(files: Sequence[tuple[int, float, float]], highest: float) -> float:
    """Share of the box below files (bytes, loss, accuracy): at each size counts the accuracy of
    that of least loss.
    """
    left, right = BOX
    inside, least = [], np.inf
    for size, loss, found in sorted(files):
        if size < right and loss < least:
            least = loss
            inside.append((max(size, left), found))
    ends = [size for size, _ in inside[1:]] + [right]
    heights = [min(max(found, LOWEST), highest) - LOWEST for _, found in inside]
    area = sum((b - a) * h for (a, _), b, h in zip(inside, ends, heights, strict=True))
    return area / ((right - left) * (highest - LOWEST))


def told(name: str, one: Row, found: float) -> tuple[int, float, float]:
    """Print a network's line, and give what counts of it."""
    print(
        f"{name:12} {one['bytes']:>8,} bytes {one['us']:6.0f} us  loss {one['loss']:.4f}  "
        f"{found:.2f} %  {' '.join(one['candidate'])}"
    )
    return one["bytes"], one["loss"], found


def fitted(folder: Path, candidate: Sequence[str]) -> luciole.Model:
    """Read a network that the search fitted in full."""
    with sqlite3.connect(f"file:{folder / 'search.db'}?mode=ro", uri=True) as db:
        wanted = "select model from evaluation where stage='fitted' and candidate=?"
        (content,) = db.execute(wanted, (json.dumps(candidate),)).fetchone()
    return from_bytes(content)


def greedy(report: Row, whole: luciole.Model, data: Data, judges: Data) -> list[Any]:
    """Fit the greedy networks of a report as its files were, and judge them."""
    options = SearchOptions()
    records = evenly(split(whole, data.records, options).learned, options.calibration)
    space, found = Space.of(whole.graph), []
    for one in report["greedy"]:
        config = recipe(space.by_layer(tuple(one["candidate"])))
        model = luciole.quantize(
            whole, records, config=config, seed=options.seed, proof=False
        ).model
        row = {**one, "bytes": len(to_bytes(model))}
        found.append(told("greedy", row, accuracy(model, judges)))
    return found


def claims(report: Row) -> None:
    """Print what a mixed front is expected to be, and whether it is."""
    front, uniform = report["front"], report["uniform"].values()
    beaten = sum(u["bytes"] <= f["bytes"] and u["loss"] < f["loss"] for u in uniform for f in front)
    print(f"files that a uniform network of no more bytes is better than: {beaten}")
    bits = np.array([[_bits(option) for option in one["candidate"]] for one in front])
    ranks = [np.argsort(np.argsort(row)) for row in (bits.mean(0), np.array(report["weights"]))]
    related = np.corrcoef(ranks[0], ranks[1])[0, 1]
    print(f"rank correlation of mean weight bits and weights: {related:.2f}")
    grown = report["hypervolume"]
    marks = [n for n in (10, 28, 50, 100, 180) if n <= len(grown)]
    print("hypervolume after", ", ".join(f"{n}: {grown[n - 1]:.4f}" for n in marks))


def _bits(option: str) -> int:
    if option == "float":
        return 32
    return levels_format(option).weights if is_learned(option) else 8


def main() -> None:
    """Print a line for each network, and the shares of the box."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", required=True, help="labelled records")
    parser.add_argument("--model", required=True, help="the float network")
    parser.add_argument("--fit", metavar="RECORDS", help="fit the greedy networks, too")
    parser.add_argument("--claims", action="store_true", help="check what is claimed")
    arguments = parser.parse_args()
    folder, report = arguments.folder, json.loads((arguments.folder / "report.json").read_text())
    whole = luciole.load(arguments.model)
    data = load_data(arguments.data, whole.graph)
    highest = accuracy(whole, data)
    print(f"float        {report['float']['bytes']:>8,} bytes  {highest:.2f} %")
    uniform = {}
    for name, one in sorted(report["uniform"].items(), key=lambda item: int(item[1]["bytes"])):
        found = accuracy(fitted(folder, one["candidate"]), data)
        uniform[name] = told(name, one, found)
    groups = {"uniform": list(uniform.values())}
    groups["uniform, study's"] = [one for name, one in uniform.items() if name in NARROW]
    if arguments.fit:
        groups["greedy"] = greedy(report, whole, load_data(arguments.fit, whole.graph), data)
    groups["files"] = [
        told(one["file"][:8], one, accuracy(luciole.load(folder / one["file"]), data))
        for one in report["front"]
    ]
    for name, files in groups.items():
        print(f"share of the box, {name}: {covered(files, highest):.3f}")
    if arguments.claims:
        claims(report)


if __name__ == "__main__":
    main()
