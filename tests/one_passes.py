"""``python -m tests.one_passes``: which of Samsung ONE's tests of circle2circle hold.

Each test is a recipe, the switches that are set, and rules on the result as ``circle-inspect``
would print it. The data are found as all others are (``LUCIOLE_DATA``). Where a model runs, the
numbers before and after are compared, too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import luciole
from luciole.ir import LucioleError, Model
from luciole.ir.findings import Severity
from luciole.ir.graph import all_ops
from luciole.ir.verify import verify
from luciole.lquantizer.judging.records import Judges
from tests.support import HERE

FOLDER = Path(os.environ.get("LUCIOLE_DATA", HERE.parent.parent / "shared" / "data")) / "one_passes"


_AT_ONCE = "the bias is a constant at once, ONE leaves a layer of constants"
_SHORTER = "the place in an image is computed by fewer operators than ONE's"
_REFUSED = "LiteRT refuses TRANSPOSE_CONV of an input that SAME would not make of the result"
REASONS = {
    "MaxPoolWithArgmax_000": _SHORTER,
    "MaxPoolWithArgmax_001": _SHORTER,
    "MaxPoolWithArgmax_002": _SHORTER,
    "Net_Add_FullyConnected_000": _AT_ONCE,
    "Net_Add_FullyConnected_001": _AT_ONCE,
    "Net_Add_FullyConnected_002": _AT_ONCE,
    "Net_TConv_Slice_001": _REFUSED,
    "Net_TConv_Slice_003": _REFUSED,
}
"""Why some tests do not hold."""
LOSSY = {"remove_fakequant", "remove_quantdequant"}
"""Passes that drop a rounding: the numbers are to be others."""


@dataclass
class Outcome:
    """What became of a test: the rules that do not hold, and how far the numbers are off."""

    test: str
    passes: list[str]
    broken: list[str] = field(default_factory=list)
    distance: float | None = None
    """Largest difference over the range of an output; None where the model does not run here."""

    @property
    def holds(self) -> bool:
        return not self.broken and (self.distance is None or self.distance <= 1e-5)


def outcomes(folder: Path) -> list[Outcome]:
    """Try every test of a folder with ``tests.json`` and ``recipes``."""
    tests = json.loads((folder / "tests.json").read_text())
    return [outcome(folder, test) for test in tests]


def outcome(folder: Path, test: Mapping[str, Any]) -> Outcome:
    """Cook a recipe, run the passes, write and read the file, and ask its rules."""
    found = Outcome(test["test"], test["passes"])
    try:
        model = luciole.load(folder / "recipes" / f"{found.test}.recipe")
        passes = [*test["passes"], "infer_shapes", "remove_dead"]
        after = luciole.optimize(model, passes, target="circle")
        with TemporaryDirectory() as place:
            luciole.save(after, Path(place) / "after.circle")
            after = luciole.load(Path(place) / "after.circle")
    except LucioleError as error:
        found.broken.append(str(error))
        return found
    found.broken += [text for rule in test["rules"] if (text := _broken(after, rule))]
    if not LOSSY & set(test["passes"]):
        found.distance = distance(model, after)
    return found


def _broken(model: Model, rule: Mapping[str, Any]) -> str | None:
    """Say what is otherwise than a rule has it, None where it holds."""
    value = _answer(model, rule["ask"], rule["arguments"])
    if str(value) == rule["value"].replace(" ", ""):
        return None
    asked = f"{rule['ask']}({', '.join(rule['arguments'])})"
    return f"{rule['name']}: {asked} is {value}, {rule['value']} is right"


def _answer(model: Model, ask: str, arguments: Sequence[str]) -> object:
    """Answer what ``circle-inspect`` would."""
    graph, ops = model.graph, list(all_ops(model.graphs))
    if ask == "verify_file_format":
        return int(not any(finding.severity is Severity.ERROR for finding in verify(model)))
    if ask == "op_count":
        return sum(op.kind == arguments[0] for op in ops)
    if ask == "op_version":
        return next(op.version for op in ops if op.kind == arguments[0])
    named = [value for value in graph.values if value.name == arguments[0]]
    if ask == "const_count":
        return sum(value.is_constant for value in named)
    if ask == "tensor_shape":
        return f"[{','.join('-1' if n is None else str(n) for n in named[0].shape)}]"
    raise AssertionError(f"no rule asks {ask!r}")


def distance(before: Model, after: Model) -> float | None:
    """Run two models on the same numbers: the largest difference over an output's range."""
    try:
        records = Judges.made_up(before).records
        feeds = [{name: array[:1] for name, array in records.items()}]
        first, second = ([luciole.Interpreter(m).run(f) for f in feeds] for m in (before, after))
    except (LucioleError, ValueError):
        return None
    return max(
        _apart(one[name], other[name])
        for one, other in zip(first, second, strict=True)
        for name in one
    )


def _apart(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    wide = one.astype(np.float64)
    span = float(np.ptp(wide)) or 1.0
    return float(np.abs(wide - other.astype(np.float64).reshape(wide.shape)).max() / span)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each test, and how many hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.one_passes", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args(argv)
    found = outcomes(given.folder)
    for one in found:
        figure = "not run" if one.distance is None else f"{one.distance:.1e}"
        print(f"{'ok  ' if one.holds else 'FAIL'} {one.test:40} {figure:8} {'; '.join(one.broken)}")
        if not one.holds:
            print(f"     {REASONS.get(one.test, 'no reason is known')}")
    print(f"{sum(one.holds for one in found)} of {len(found)} hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
