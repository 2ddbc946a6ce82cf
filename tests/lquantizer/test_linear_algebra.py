"""One thread of linear algebra while a network is quantized."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.lquantizer import linear_algebra
from tests.networks import network, random


def test_one_thread_computes_and_the_others_come_back() -> None:
    library = linear_algebra.open_blas()
    if library is None:
        pytest.skip("NumPy has another library")
    before = library.count()
    with linear_algebra.one_thread():
        with linear_algebra.one_thread():
            assert library.count() == 1
        assert library.count() == 1
    assert library.count() == before
    with pytest.raises(KeyError), linear_algebra.one_thread():
        raise KeyError
    assert library.count() == before


def test_libraries_that_are_not_known_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_algebra, "open_blas", lambda: None)
    with linear_algebra.one_thread():
        np.testing.assert_allclose(np.eye(3) @ np.eye(3), np.eye(3))


def test_layers_are_learned_with_one_thread() -> None:
    library = linear_algebra.open_blas()
    if library is None:
        pytest.skip("NumPy has another library")
    counts: list[int] = []

    def track(what: str, total: int) -> object:
        return lambda done: counts.append(library.count())

    luciole.quantize(network(), random(3, 20, 20), scheme="int8", track=track)  # type: ignore[arg-type]  # it returns what it must
    assert counts
    assert set(counts) == {1}
