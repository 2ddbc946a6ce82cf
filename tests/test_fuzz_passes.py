"""Passes on random graphs around what they look for, see ``tests.fuzz.passes``."""

from __future__ import annotations

import pytest

from luciole.ir.passes.registry import all_passes
from luciole.ir.rewriting import scaling
from tests.fuzz.passes.trying import names, try_passes

ELSEWHERE = {
    "fold_densify": "tests/test_one_passes.py",
    "fold_sparse_to_dense": "tests/passes/test_fold_constants.py",
    "fuse_list_writes": "tests/interpreter/test_loops.py",
    "inline_calls": "tests/passes/test_inline_calls.py",
    "resolve_customop_add": "tests/test_one_passes.py",
    "resolve_customop_batchmatmul": "tests/test_one_passes.py",
    "resolve_customop_matmul": "tests/test_one_passes.py",
    "resolve_customop_max_pool_with_argmax": "tests/test_one_passes.py",
    "resolve_customop_splitv": "tests/test_one_passes.py",
    "resolve_former_customop": "tests/test_one_passes.py",
    "unpack_levels": "tests/lquantizer/test_integer_levels.py",
    "unroll_unidirseqlstm": "tests/passes/test_unroll_unidirseqlstm.py",
}
"""Passes whose operators have no kernel to compare with, or tests of random graphs of their own."""


def test_passes_change_no_number_and_no_name() -> None:
    result = try_passes(range(len(names())))
    assert result.wrong == []
    assert result.quantized > 5
    assert len(result.fired) > 40


def test_every_pass_has_graphs_around_what_it_looks_for() -> None:
    assert set(all_passes()) - set(names()) == set(ELSEWHERE)


def test_a_pass_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(*arguments: object) -> None:
        graph, layer, factor = arguments
        scale(graph, layer, 2 * factor)  # type: ignore[arg-type, operator]  # as the pass calls it

    scale = scaling.scale_layer
    monkeypatch.setattr(scaling, "scale_layer", doubled)
    place = names().index("fuse_batch_norm")
    seeds = (place + number * len(names()) for number in range(9))
    assert any(try_passes(range(seed, seed + 1)).wrong for seed in seeds)
