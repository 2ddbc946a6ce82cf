"""Students whose integers keep to any number of bits, with batch normalizations still to fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from luciole.ir import Array, Model, Op
from luciole.ir.ops.quantize import Quantize
from luciole.lquantizer.rewrite.narrowed import Narrowed
from luciole.lquantizer.training.folded_weights import FoldedWeights, Phase
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.tensorflow import Tensor
from luciole.lquantizer.training.tf_graph import Forward, TensorGraph
from luciole.lquantizer.training.uniform_layers import Weights
from luciole.lquantizer.training.uniform_parameters import IntegerWeights, TiedTensors
from luciole.lquantizer.training.uniform_settings import NarrowSettings
from luciole.lquantizer.training.uniform_trainer import UniformTrainer


class NarrowTrainer(UniformTrainer):
    """Trains a narrowed network."""

    def __init__(
        self,
        student: Narrowed,
        teacher: Model,
        settings: NarrowSettings,
        latents: Mapping[str, Array] | None = None,
        labels: Labels | None = None,
    ) -> None:
        self._narrowed, self._narrow_settings = student, settings
        super().__init__(student, teacher, settings, latents, labels)

    def _begin(self, latents: Mapping[str, Array]) -> TensorGraph:
        self._phase = Phase(self.tf)
        return super()._begin(latents)

    def _integers(self) -> list[IntegerWeights]:
        widths = self._narrowed.weight_bits
        return [replace(w, width=widths.get(w.op.name)) for w in super()._integers()]

    def _tensors(self) -> list[TiedTensors]:
        return [replace(tied, width=self._width(tied)) for tied in super()._tensors()]

    def _width(self, tied: TiedTensors) -> int | None:
        """Return the most bits that any layer gives tied tensors, None unless all have a width."""
        widths = [self._narrowed.result_bits.get(name) for name in _makers(tied)]
        bits_known = [bits for bits in widths if bits is not None]
        return max(bits_known) if bits_known and len(bits_known) == len(widths) else None

    def _rounded_weights(self, weights: IntegerWeights, target: Array | None) -> Weights:
        normalized = self._narrowed.norms.get(weights.op.name)
        if normalized is None:
            return super()._rounded_weights(weights, target)
        return FoldedWeights(self.tf, weights, normalized, self._narrow_settings, self._phase)

    @property
    def folded(self) -> list[FoldedWeights]:
        """The layers whose batch normalizations are folded while they are trained."""
        return [weights for weights in self._weights if isinstance(weights, FoldedWeights)]

    def layers(self) -> dict[Op, Forward]:
        """Return the functions of operators that round, and of layers that are normalized."""
        return super().layers() | {one.weights.op: one.forward for one in self.folded}

    def prepare(self, step: int, steps: int) -> Array:
        """Switch on rounding, following and freezing for a step."""
        schedule = super().prepare(step, steps)
        if not self._narrow_settings.round_tensors:
            self._rounds.assign(0.0)
        self._phase.frozen.assign(step >= self._narrow_settings.freeze_norms * steps)
        return schedule

    def _step(
        self, schedule: Tensor, inputs: Sequence[Tensor], targets: Sequence[Tensor], labels: Tensor
    ) -> Tensor:
        self._phase.training = True
        try:
            return super()._step(schedule, inputs, targets, labels)
        finally:
            self._phase.training = False

    def rounded(self) -> Narrowed:
        """Clone the student as it is by now, batch normalizations folded."""
        made = super().rounded()
        assert isinstance(made, Narrowed), "a copy is of the same class"
        values = dict(zip(self.model.graph.values, made.model.graph.values, strict=True))
        for one in self.folded:
            assert one.weights.bias is not None, "folding makes one"
            values[one.weights.bias].set_data(one.bias())
        return made


def _makers(tied: TiedTensors) -> list[str]:
    """Name the operators whose results are rounded to tied tensors."""
    names = []
    for codes in tied.codes:
        op = None if codes.producer is None else codes.producer.op
        maker = op.input.producer if isinstance(op, Quantize) else None
        if maker is not None:
            names.append(maker.op.name)
    return names
