"""A stage that is measured on the finished network; the fit's own figures and NumPy are oracles."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Model
from luciole.lquantizer.network.measure import add_stage
from tests.lquantizer.networks import classifier, residual, twice, uneven
from tests.lquantizer.runs import IMAGES, VECTORS
from tests.networks import random


@pytest.mark.parametrize(
    ("model", "records"),
    [(classifier(), VECTORS), (twice(), VECTORS), (residual(), IMAGES)],
)
def test_the_fit_s_result_measures_as_the_fit_says(model: Model, records: Array) -> None:
    """Not the same to the digit: the fit judges what it learned from the other records."""
    result = luciole.quantize(model, records, encode_bits=3, spared="float", proof=False)
    add_stage(result.report, "again", model, result.model, result.traces, {"x": records})
    stages = [r.stages for r in result.report.layers if r.skipped is None]
    assert stages
    for stage in stages:
        assert list(stage)[-1] == "again"
        fitted, again = stage["output_aware"], stage["again"]
        assert fitted is not None
        assert again == pytest.approx(fitted, abs=1.5)


def test_the_last_layer_s_error_is_that_of_numpy_on_every_fifth_record() -> None:
    model = uneven()
    result = luciole.quantize(model, VECTORS, encode_bits=2, proof=False)
    add_stage(result.report, "again", model, result.model, result.traces, {"x": VECTORS})
    held = VECTORS[4::5]
    wanted, found = (luciole.Interpreter(m).run(held)["fc2"] for m in (model, result.model))
    mse = np.mean((wanted.astype(np.float64) - found) ** 2)
    last = result.report.layers[-1]
    assert last.mse == pytest.approx(mse, rel=1e-4)
    ratio = 10 * np.log10(np.mean(wanted.astype(np.float64) ** 2) / mse)
    assert last.stages["again"] == last.snr_db == pytest.approx(ratio, abs=1e-3)


def test_a_worse_network_measures_worse() -> None:
    model, records = classifier(), {"x": random(50, 300, 20)}
    fine, coarse = (
        luciole.quantize(model, records, encode_bits=bits, proof=False) for bits in (3, 1)
    )
    add_stage(fine.report, "coarse", model, coarse.model, coarse.traces, records)
    for layer in fine.report.layers:
        before, after = layer.stages["output_aware"], layer.stages["coarse"]
        assert before is not None
        assert after is not None
        assert after < before - 3


def test_few_records_judge_all_together() -> None:
    model, records = classifier(), {"x": VECTORS[:3]}
    result = luciole.quantize(model, records, encode_bits=3, proof=False)
    add_stage(result.report, "again", model, result.model, result.traces, records)
    assert all(np.isfinite(layer.stages["again"] or 0) for layer in result.report.layers)
