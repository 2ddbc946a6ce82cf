"""A sample of ONNX's own tests of nodes, and the page that says what came of all."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("onnx")

from tests.onnx_nodes import PAGE, PASSED, WRONG, outcome, rules_text, some_cases

SAMPLE = (
    "conv",
    "gemm",
    "maxpool",
    "averagepool",
    "slice",
    "resize",
    "gather",
    "topk",
    "einsum",
    "nonmaxsuppression",
)
LEAST = 1649


def row(operator: str) -> tuple[int, int, int]:
    """What the page says of an operator: passed, refused, wrong."""
    (found,) = re.findall(rf"^\| {operator} \| (\d*) \| (\d*) \| (\d*) \|", PAGE.read_text(), re.M)
    passed, refused, wrong = (int(n or 0) for n in found)
    return passed, refused, wrong


def test_a_sample_of_onnxs_tests_passes() -> None:
    """What differs from the page: see the head of ``tests/onnx_nodes.py``. Small examples, whose
    results are written down, have larger ones of the same attributes beside them. The first of each
    operator runs compiled: to compile all takes longer than the rest.
    """
    kinds: set[str] = set()
    found = []
    for case in some_cases(*SAMPLE):
        if "_precomputed_" not in case.name:
            kind = case.model.graph.node[0].op_type
            found.append(outcome(case, compiled=kind not in kinds))
            kinds.add(kind)
    assert len(found) > 100
    assert [o.name for o in found if o.state == WRONG] == []
    for operator in ("Conv", "MaxPool", "Einsum"):
        of_it = [o for o in found if o.operators == (operator,)]
        passed, refused, _ = row(operator)
        assert sum(o.state == PASSED for o in of_it) <= passed
        assert sum(o.state != PASSED for o in of_it) <= refused


def test_the_page_lists_every_rule() -> None:
    assert PAGE.read_text().endswith(rules_text())


def test_the_page_says_that_none_is_wrong() -> None:
    (numbers,) = re.findall(
        r"of which (\d+) pass, (\d+) are refused\nand (\d+) wrong", PAGE.read_text()
    )
    assert int(numbers[0]) >= LEAST
    assert numbers[2] == "0"
