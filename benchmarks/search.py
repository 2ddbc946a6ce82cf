"""``python -m benchmarks.search front/ --model MODEL --data DATA``: what a search's files are worth
on labelled records it never saw, and the share of a box that they dominate.

The box is 28 to 70 KB times 30 % to the float network's accuracy, as in ``docs/how-to/search.md``;
at each size counts the file that the search preferred, at its own accuracy.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import luciole
from luciole.interpreter.records import outputs_of
from luciole.tools.data.load import Data, load_data

BOX = (28_000, 70_000)
LOWEST = 30.0


def accuracy(model: luciole.Model, data: Data) -> float:
    """Percent of the labels that a model's first output is largest at."""
    assert data.labels is not None, "records have labels"
    found = outputs_of(luciole.Interpreter(model), data.records)[model.graph.outputs[0].name]
    right = found.reshape(len(found), -1).argmax(1) == data.labels.reshape(-1)
    return 100 * float(np.mean(right))


def covered(files: list[tuple[int, float]], highest: float) -> float:
    """Share of the box below files (bytes, accuracy), each better by the search than all smaller
    ones.
    """
    left, right = BOX
    inside = sorted((max(size, left), found) for size, found in files if size < right)
    ends = [size for size, _ in inside[1:]] + [right]
    heights = [min(max(found, LOWEST), highest) - LOWEST for _, found in inside]
    area = sum((b - a) * h for (a, _), b, h in zip(inside, ends, heights, strict=True))
    return area / ((right - left) * (highest - LOWEST))


def main() -> None:
    """Print a line for each file, and the share of the box."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", required=True, help="labelled records")
    parser.add_argument("--model", required=True, help="the float network")
    arguments = parser.parse_args()
    report = json.loads((arguments.folder / "report.json").read_text())
    whole = luciole.load(arguments.model)
    data = load_data(arguments.data, whole.graph)
    highest = accuracy(whole, data)
    print(f"float  {report['float']['bytes']:>9,} bytes  {highest:.2f} %")
    files = []
    for one in report["front"]:
        found = accuracy(luciole.load(arguments.folder / one["file"]), data)
        files.append((int(one["bytes"]), found))
        print(f"{one['file']}  loss {one['loss']:.4f}  {found:.2f} %  {' '.join(one['candidate'])}")
    print(f"share of the box: {covered(files, highest):.3f}")


if __name__ == "__main__":
    main()
