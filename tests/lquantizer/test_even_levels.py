"""Evenly spaced levels: the least squared error by brute force, layers in the form of learned
levels, and what they compute.
"""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.ir import Array, learned_levels
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.calibration.gram import Full
from luciole.lquantizer.formats.even_levels import even_basis, even_fit, is_even
from luciole.lquantizer.formats.levels import Samples
from luciole.lquantizer.methods.weight_codes import fit_codes, plain_codes
from tests.lquantizer.layer_support import loss, moments, weights_of
from tests.lquantizer.networks import images
from tests.lquantizer.runs import QUICK, answers, kinds, records, weights_by_kind


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("middle", [0.0, 3.7])
def test_levels_that_are_even_already_are_found_again(bits: int, middle: float) -> None:
    basis = even_basis(np.array([0.3]), bits)
    levels, _ = learned_levels.levels(basis, np.array([middle]))
    found = even_fit(Samples.of(np.repeat(levels, 3, 1)), bits, offset=middle != 0)
    np.testing.assert_allclose(np.diff(np.sort(learned_levels.spanned(found.basis[0]))), 0.3)
    assert found.offset[0] == pytest.approx(middle)
    assert found.mse[0] == pytest.approx(0, abs=1e-9)
    assert is_even(found.basis) == (bits > 1)


@pytest.mark.parametrize("bits", [2, 4])
def test_no_step_of_a_fine_search_is_much_better(bits: int) -> None:
    x = np.random.default_rng(bits).normal(0, 1, (4, 300))
    found = even_fit(Samples.of(x), bits, offset=False)
    most = (2**bits - 1) / 2
    for row, mse in zip(x, found.mse, strict=True):
        errors = []
        for step in np.linspace(0.05, 3, 1500):
            codes = np.clip(np.floor(row / step) + 0.5, -most, most)
            errors.append(np.mean((codes * step - row) ** 2))
        assert mse <= 1.02 * min(errors)


def test_doubling_is_told_exactly() -> None:
    assert is_even(np.array([[0.1, 0.2, 0.4], [1, 2, 4]], np.float32))
    assert not is_even(np.array([0.1, 0.2000001, 0.4], np.float32))
    assert not is_even(np.array([0.1], np.float32)), "one element has nothing to be twice of"


@pytest.mark.parametrize("bits", [2, 3])
def test_even_codes_fitted_to_the_output_have_a_smaller_output_error(bits: int) -> None:
    h, weights = moments(70), weights_of(70, 6)
    plain = plain_codes(weights, bits, False, even=True)
    fitted = fit_codes(Full(h), weights, plain, False, even=True)
    assert is_even(fitted.basis)
    assert loss(h, weights, fitted) < 0.5 * loss(h, weights, plain)
    present = loss(h, weights, fitted)
    for factor in (0.97, 1.03):  # the steps are the best ones for the codes, but for the last sweep
        fitted.basis = fitted.basis * factor
        assert loss(h, weights, fitted) > 0.98 * present
        fitted.basis = fitted.basis / factor


def _bases(model: luciole.ir.Model) -> list[Array]:
    ops = [op for op in model.graph.ops if isinstance(op, LQConv2D)]
    return [
        v.data for op in ops for v in (op.input_scales, op.weights_scales) if v.data is not None
    ]


def test_a_scheme_of_few_bits_is_of_even_levels_and_integers_beside_them() -> None:
    model = images()
    even = luciole.quantize(model, records(model), scheme="w4a4", proof=False)
    assert kinds(even.model).count("LQ_CONV_2D") == 2
    assert all(map(is_even, _bases(even.model)))
    assert {len(basis.reshape(-1, basis.shape[-1])[0]) for basis in _bases(even.model)} == {4}
    assert len({t.name for t in weights_by_kind(even.model)["FULLY_CONNECTED"]}) == 1
    x = records(model, 8, seed=77)
    learned = luciole.quantize(
        model, records(model), encode_bits="w4a4", spared="int8", proof=False
    )
    assert not all(map(is_even, _bases(learned.model)))
    errors = [np.abs(answers(m, x) - answers(model, x)).mean() for m in (even.model, learned.model)]
    assert errors[0] < 2 * errors[1]


def test_eight_bits_between_operators_stay_a_scheme_of_integers() -> None:
    model = images()
    made = luciole.quantize(model, records(model), scheme="w4a8", **QUICK).model
    assert "LQ_CONV_2D" not in kinds(made)


@pytest.mark.parametrize("scheme", ["w5a4", "w4a9", "w0a4", "w4a4x"])
def test_schemes_that_there_are_not_are_refused(scheme: str) -> None:
    with pytest.raises(QuantizeError, match="scheme is"):
        luciole.quantize(images(), records(images()), scheme=scheme)
