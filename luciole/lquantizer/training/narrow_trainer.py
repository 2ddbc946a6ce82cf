"""Students whose integers keep to any number of bits, with batch normalizations still to fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from luciole.ir import Array, Model, Op
from luciole.ir.ops.quantize import Quantize
from luciole.lquantizer.rewrite.narrowed import Narrowed
from luciole.lquantizer.training.folded_weights import FoldedWeights, Phase
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.narrow_settings import NarrowSettings
from luciole.lquantizer.training.tensorflow import Tensor
from luciole.lquantizer.training.tf_graph import Forward, TensorGraph
from luciole.lquantizer.training.uniform_layers import RoundedWeights
from luciole.lquantizer.training.uniform_parameters import IntegerWeights, TiedTensors
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
        self._narrowed, self._how = student, settings
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
        """Find the most bits that any layer gives tied tensors, None where none says."""
        found = [self._narrowed.result_bits.get(name) for name in _makers(tied)]
        said = [bits for bits in found if bits is not None]
        return max(said) if said and len(said) == len(found) else None

    def _of(self, weights: IntegerWeights, target: Array | None) -> RoundedWeights:
        given = self._narrowed.norms.get(weights.op.name)
        if given is None:
            return super()._of(weights, target)
        return FoldedWeights(self.tf, weights, given, self._how, self._phase)

    @property
    def folded(self) -> list[FoldedWeights]:
        """The layers whose batch normalizations are folded while they are trained."""
        return [weights for weights in self._weights if isinstance(weights, FoldedWeights)]

    def layers(self) -> dict[Op, Forward]:
        """Say what stands for the operators that round, and for layers that are normalized."""
        return super().layers() | {one.weights.op: one.forward for one in self.folded}

    def prepare(self, step: int, steps: int) -> Array:
        """Switch on what rounds, what follows and what is frozen."""
        found = super().prepare(step, steps)
        if not self._how.round_tensors:
            self._rounds.assign(0.0)
        self._phase.frozen.assign(step >= self._how.freeze_norms * steps)
        return found

    def _step(
        self, schedule: Tensor, inputs: Sequence[Tensor], wanted: Sequence[Tensor], labels: Tensor
    ) -> Tensor:
        self._phase.training = True
        try:
            return super()._step(schedule, inputs, wanted, labels)
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
    found = []
    for codes in tied.codes:
        op = None if codes.producer is None else codes.producer.op
        maker = op.input.producer if isinstance(op, Quantize) else None
        if maker is not None:
            found.append(maker.op.name)
    return found
