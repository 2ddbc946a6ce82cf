"""Automatic widths: measured sensitivities, the path through them, and the two targets."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.config import Choice, Config
from luciole.lquantizer.search.auto_bits import Option, path, sensitivities
from tests.networks import network, random

X = random(1, 40, 20)


def options(*errors_and_bytes: tuple[float, int]) -> list[Option]:
    return [Option(Choice(k, k), size, e) for k, (e, size) in enumerate(errors_and_bytes, 1)]


def test_the_step_that_pays_most_is_taken_first() -> None:
    given = {
        "cheap": options((0.5, 10), (0.1, 20), (0.05, 30)),
        "dear": options((0.6, 100), (0.1, 1100), (0.0, 2100)),
    }
    taken = [tuple(o.choice.weight_bits for o in a.values()) for a in path(given)]
    assert taken == [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3)]


def test_sensitivities_fall_with_width_and_bytes_are_those_of_the_file() -> None:
    found = sensitivities(network(), {"x": X}, Config())
    assert list(found) == ["fc1", "fc2"]
    for layer in found.values():
        errors, sizes = [o.error for o in layer], [o.bytes for o in layer]
        assert errors == sorted(errors, reverse=True)
        assert sizes == sorted(sizes)
    report = luciole.quantize(network(), X, encode_bits=3).report
    assert [r.bytes_after for r in report.layers] == [found[n][2].bytes for n in found]


def test_a_target_size_is_kept_and_used() -> None:
    small, large = (
        len(to_bytes(luciole.quantize(network(), X, encode_bits=k).model)) for k in (1, 4)
    )
    target = (small + large) // 2
    result = luciole.quantize(network(), X, target_size=target)
    assert small < len(to_bytes(result.model)) <= target
    assert len(result.report.options) == 8


def test_a_target_size_refuses_what_cannot_be_reached() -> None:
    with pytest.raises(
        QuantizeError, match="no allocation fits into 100 bytes: the smallest takes"
    ):
        luciole.quantize(network(), X, target_size=100)


def test_a_loose_target_drop_gives_the_smallest_widths_and_an_impossible_one_warns() -> None:
    loose = luciole.quantize(network(), X, target_drop=100.0)
    assert [layer.weight_bits for layer in loose.report.layers] == [1, 1]
    strict = luciole.quantize(network(), X, target_drop=-1.0)
    assert [layer.weight_bits for layer in strict.report.layers] == [4, 4]
    assert "-1 % were wanted" in strict.report.warnings[0]


def test_a_target_drop_refuses_too_few_records() -> None:
    with pytest.raises(QuantizeError, match="needs at least 5 records"):
        luciole.quantize(network(), np.asarray(X[:4]), target_drop=1.0)
