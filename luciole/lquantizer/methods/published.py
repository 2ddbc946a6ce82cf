"""The published method: learn levels for weights and inputs of every dense layer from unlabelled
data.

Three stages (LQ-Nets' quantizer applied after training): (a) weights, one basis for each output;
(b) one basis for each layer's input, fitted on the float network's activations; (c) the input bases
refitted layer by layer, on the quantized network's own activations against the float network's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from luciole.ir import Array
from luciole.lquantizer.assignment.config import Choice
from luciole.lquantizer.formats import levels
from luciole.lquantizer.formats.coded import Coded
from luciole.lquantizer.formats.levels import Fit, Samples, Settings
from luciole.lquantizer.network.problem import LayerProblem, LearnedLayer, Scope
from luciole.lquantizer.rewrite.learned_levels import nearest_codes

_SCOPE = Scope(
    convolutions=False, together=False, float_rows=True, corrects_biases=False, rescales=False
)


@dataclass(frozen=True)
class Published:
    """The baseline, for dense layers: no offsets, weights fitted as they are, biases kept."""

    settings: Settings = field(default_factory=Settings)
    scope: Scope = _SCOPE

    @property
    def seed(self) -> int:
        """The seed of the first bases."""
        return self.settings.seed

    def learn(self, problem: LayerProblem, choice: Choice) -> LearnedLayer:
        """Learn a layer; deterministic for a given seed."""
        weights = levels.fit(Samples.of(problem.weights), choice.weight_bits, self.settings)
        code = nearest_codes(problem.weights, weights.basis.astype(np.float32)).T
        inputs = self._inputs(problem, choice)
        coded = Coded(code, weights.basis, weights.offset, problem.weights.T)
        warning = _warning(problem, choice)
        return LearnedLayer(inputs, coded, problem.bias, warning=warning)

    def _inputs(self, problem: LayerProblem, choice: Choice) -> Fit:
        """Run stages (b) and (c): codes come from what the quantized network computes, levels get
        close to what the float network does.
        """
        assert problem.float_rows is not None, "the scope asks for them"
        floats, own = problem.float_rows.values, problem.rows.values
        first = levels.fit(Samples.compressed(floats), choice.input_bits, self.settings)
        if np.array_equal(own, floats):
            return first
        samples = Samples.compressed(own, floats)
        return levels.fit(samples, choice.input_bits, self.settings, start=first.basis)


def _warning(problem: LayerProblem, choice: Choice) -> str | None:
    """Warn of inputs that one bit cannot tell apart, None where there is no doubt."""
    assert problem.float_rows is not None, "the scope asks for them"
    low, high = _range(problem.float_rows.values)
    if choice.input_bits > 1 or low < 0 or high <= 0:
        return None
    return (
        f"inputs lie between {low:.3g} and {high:.3g}, and one bit without an offset has levels -a "
        "and +a only: standardise the data (say x/255 -> (x/255 - mean)/std) or give the layer "
        "more input bits"
    )


def _range(values: Array) -> tuple[float, float]:
    return float(values.min()), float(values.max())
