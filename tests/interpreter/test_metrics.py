"""The measures of ONE's visq and circle-eval-diff, spelled out in NumPy as those tools do it."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter.metrics import ErrorSums, Measures, top_k_match
from tests.networks import random

A = random(0, 7, 12).astype(np.float64)
B = A + 0.1 * random(1, 7, 12)


def summed(a: np.ndarray, b: np.ndarray, scale: float | None = None, batch: int = 3) -> Measures:
    sums = ErrorSums(scale)
    for start in range(0, len(a), batch):
        sums.add(a[start : start + batch], b[start : start + batch])
    return sums.measures()


def test_the_measures_are_those_of_visq_and_circle_eval_diff() -> None:
    found = summed(A, B, scale=0.25)
    records = list(zip(A, B, strict=True))
    peaks = [np.max(np.abs(a - b)) / (np.max(a) - np.min(a) + 0.000001) for a, b in records]
    assert found.mpeir == pytest.approx(np.mean(peaks))
    mse = np.mean([np.square(a - b).mean() for a, b in records])
    assert found.mse == pytest.approx(mse)
    assert found.srmse == pytest.approx(np.sqrt(mse) / 0.25)
    assert found.tae == pytest.approx(np.mean([np.sum(np.abs(a - b)) for a, b in records]))
    assert found.mae == pytest.approx(np.mean(np.abs(A - B)))
    assert found.mape == pytest.approx(100 * np.mean(np.abs((A - B) / A)))
    assert found.largest == pytest.approx(np.max(np.abs(A - B)))


def test_relative_error_and_cosine_are_over_everything() -> None:
    found = summed(A, B)
    relative = np.linalg.norm(A - B) / np.linalg.norm(A)
    assert found.relative == pytest.approx(relative)
    assert found.snr_db == pytest.approx(-20 * np.log10(relative))
    cosine = np.sum(A * B) / np.linalg.norm(A) / np.linalg.norm(B)
    assert found.cosine == pytest.approx(cosine)
    assert found.srmse is None


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_how_records_come_changes_nothing(batch: int) -> None:
    found, wanted = summed(A, B, 0.5, batch).as_dict(), summed(A, B, 0.5).as_dict()
    assert found == pytest.approx(wanted)


def test_ranges_are_those_of_single_records() -> None:
    sums = ErrorSums()
    assert sums.range("mse") is None
    sums.add(A[:4], B[:4])
    sums.add(A[4:], B[4:])
    by_record = np.square(A - B).mean(1)
    assert sums.range("mse") == pytest.approx((by_record.min(), by_record.max()))
    totals = np.abs(A - B).sum(1)
    assert sums.range("tae") == pytest.approx((totals.min(), totals.max()))


def test_equal_tensors_have_no_error() -> None:
    found = summed(A, A, 1.0).as_dict()
    assert (found.pop("cosine"), found.pop("snr_db")) == (1.0, None)
    assert set(found.values()) == {0.0}


def test_what_has_no_value_is_none() -> None:
    zeros = np.zeros((2, 3))
    found = summed(zeros, zeros + 1)
    assert (found.relative, found.snr_db, found.cosine, found.mape) == (None, None, None, None)
    assert found.mpeir == pytest.approx(1e6)
    damaged = summed(np.full((1, 2), np.nan), np.ones((1, 2)))
    assert damaged.mse is None
    assert damaged.largest is None
    assert set(summed(zeros[:, :0], zeros[:, :0]).as_dict().values()) == {None}


def test_top_k_counts_what_both_have() -> None:
    a = np.array([[1.0, 5, 3, 3, 0], [2, 2, 2, 2, 2]])
    b = np.array([[0.0, 3, 9, 1, 2], [2, 2, 2, 2, 3]])
    assert top_k_match(a, b, 1).tolist() == [0, 0]
    assert top_k_match(a, b, 2).tolist() == [1, 0.5]  # of equal ones the first count
    assert top_k_match(a, b, 5).tolist() == [1, 1]
