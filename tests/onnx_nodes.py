"""Run ONNX's own tests of nodes: which pass, which are refused and why, and which are wrong.

    python3 -m tests.onnx_nodes              # a table by operator; exit code 1 where one is wrong
    python3 -m tests.onnx_nodes --update     # and write docs/reference/onnx.md
    python3 -m tests.onnx_nodes Conv         # those of operators with this in their names

Onnx makes the tests itself (``onnx.backend.test``): models of a node each, inputs, and results by
its NumPy definitions. Inputs that say shapes, axes and the like are given as constants, as files
have them.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import luciole
from luciole.importers.onnx.model import from_proto
from luciole.ir import Array, LucioleError, UnsupportedError

CONSTANT = {
    "AffineGrid": [1],
    "CenterCropPad": [1],
    "Clip": [1, 2],
    "ConstantOfShape": [0],
    "ConvTranspose": [1],
    "CumProd": [1],
    "CumSum": [1],
    "DFT": [1, 2],
    "DeformConv": [1],
    "Dropout": [1, 2],
    "Expand": [1],
    "GRU": [1, 2, 3],
    "If": [0],
    "LSTM": [1, 2, 3, 7],
    "Loop": [0, 1],
    "OneHot": [1, 2],
    "Pad": [1, 2, 3],
    "RNN": [1, 2, 3],
    "Range": [0, 1, 2],
    "Reshape": [1],
    "Resize": [1, 2, 3],
    "STFT": [1, 2, 3],
    "Slice": [1, 2, 3, 4],
    "Split": [1],
    "Squeeze": [1],
    "Tile": [1],
    "TopK": [1],
    "Trilu": [1],
    "Unsqueeze": [1],
    "Upsample": [1],
}
"""Operands that are constant in files: those that say extents, axes, counts, or are weights."""
REDUCTION = "Reduce"

PASSED, REFUSED, WRONG = "passed", "refused", "wrong"


class Outcome(NamedTuple):
    """What came of one test."""

    name: str
    operators: tuple[str, ...]
    state: str
    reason: str


def cases() -> list[Any]:
    """Make the tests, as the installed onnx has them."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(load_model_tests(kind="node"))


def constants(model: Any, feeds: dict[str, Any]) -> set[str]:
    """The inputs that are constant in files."""
    found = set()
    for node in model.graph.node:
        slots = [1] if node.op_type.startswith(REDUCTION) else CONSTANT.get(node.op_type, [])
        found |= {node.input[i] for i in slots if i < len(node.input)}
    return found & set(feeds)


def outcome(case: Any) -> Outcome:
    """Import and run one test, and compare what it gives."""
    model = case.model
    operators = tuple(sorted({_called(node) for node in model.graph.node}))
    inputs, wanted = case.data_sets[0]
    feeds = dict(zip((v.name for v in model.graph.input), map(_array, inputs), strict=False))
    fixed = constants(model, feeds)
    try:
        arrays = {name: np.asarray(feed) for name, feed in feeds.items() if _is_tensor(feed)}
        imported = from_proto(model, {n: arrays[n] for n in fixed if n in arrays})
        given = {name: a for name, a in arrays.items() if name not in fixed}
        got = list(luciole.Interpreter(imported).run(given).values())
    except UnsupportedError as error:
        return Outcome(case.name, operators, REFUSED, "; ".join(error.missing))
    except LucioleError as error:
        return Outcome(case.name, operators, REFUSED, f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome(case.name, operators, WRONG, f"{type(error).__name__}: {error}")
    reason = difference(got, wanted, case.rtol or 1e-3, case.atol or 1e-6)
    return Outcome(case.name, operators, WRONG if reason else PASSED, reason)


def _array(given: Any) -> Any:
    """Inputs may be protos; lists and optionals stay as they are."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(given) if isinstance(given, TensorProto) else given


def _is_tensor(given: Any) -> bool:
    return isinstance(given, np.ndarray | np.generic)


def _called(node: Any) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)


def difference(got: Sequence[Array], wanted: Sequence[Any], rtol: float, atol: float) -> str:
    """Say how results differ, nothing where they do not."""
    if len(got) != len(wanted):
        return f"{len(got)} results, not {len(wanted)}"
    for found, right in zip(got, (np.asarray(_array(w)) for w in wanted), strict=True):
        if (found.dtype, found.shape) != (right.dtype, right.shape):
            return f"{found.dtype}{list(found.shape)}, not {right.dtype}{list(right.shape)}"
        if found.dtype.kind in "OUS":
            same = found.tolist() == right.tolist()
        else:
            same = bool(np.allclose(found, right, rtol, atol, equal_nan=True))
        if not same:
            return "other numbers"
    return ""


def run(wanted: str = "") -> Iterator[Outcome]:
    """Run the tests of operators with this in their names."""
    for case in cases():
        if not wanted or any(wanted in node.op_type for node in case.model.graph.node):
            yield outcome(case)


def table(outcomes: Iterable[Outcome]) -> str:
    """A line for each operator: passed, refused, wrong, and why tests of it are refused."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for found in outcomes:
        for name in found.operators:
            counts[name][found.state] += 1
    lines = ["| operator | passed | refused | wrong |", "|---|---|---|---|"]
    for name, states in sorted(counts.items()):
        numbers = " | ".join(str(states[s] or "") for s in (PASSED, REFUSED, WRONG))
        lines.append(f"| {name} | {numbers} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table, and what is refused and wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", nargs="?", default="")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    outcomes = list(run(arguments.wanted))
    if not arguments.wanted:
        print(table(outcomes))
    for found in outcomes:
        if found.state != PASSED:
            print(f"{found.state} {found.name}: {found.reason[:200]}")
    states = collections.Counter(found.state for found in outcomes)
    print(f"{len(outcomes)} tests: {dict(states)}")
    return 1 if states[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
