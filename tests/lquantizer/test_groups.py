"""Groups of channels are learned at once as each would be alone."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.lquantizer.calibration.moments import Part
from luciole.lquantizer.methods.weight_codes import fit_steps
from tests.networks import random

GROUPS, ROWS, INPUTS, OUTPUTS = 7, 500, 9, 2
Z = np.maximum(np.cumsum(random(1, GROUPS, ROWS, INPUTS), -1), 0).astype(np.float32)
WEIGHTS = random(2, GROUPS, INPUTS, OUTPUTS)
TARGETS = np.asarray(Z @ WEIGHTS + 0.1 * random(3, GROUPS, ROWS, OUTPUTS), np.float32)
SCALES = np.asarray(np.abs(WEIGHTS).max(-2) / 7, np.float32)


@pytest.mark.parametrize("rectified", [False, True])
def test_groups_together_are_groups_alone(rectified: bool) -> None:
    floors = np.zeros_like(TARGETS) if rectified else None
    whole = Part(Z, TARGETS, floors)
    aims = whole.refitted(WEIGHTS, 0.05, rectified)
    together = fit_steps(whole.moments.damped(0.05), aims, SCALES, 7, 3, True)
    biases = whole.bias(together.values())
    for group in range(GROUPS):
        part = Part(Z[group], TARGETS[group], None if floors is None else floors[group])
        aim = part.refitted(WEIGHTS[group], 0.05, rectified)
        np.testing.assert_allclose(aims[group], aim, atol=1e-4)
        alone = fit_steps(part.moments.damped(0.05), aim, SCALES[group], 7, 3, True)
        np.testing.assert_array_equal(together.code[group], alone.code)
        np.testing.assert_allclose(together.scale[group], alone.scale, rtol=1e-5)
        np.testing.assert_allclose(biases[group], part.bias(alone.values()), atol=1e-3)
