"""Students with learned levels: their layers' parameters are what is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from luciole.ir import Array, Model
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training.distillation import Contents
from luciole.lquantizer.training.export import exported
from luciole.lquantizer.training.float_layers import float_constants
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.layers import TrainableLayer, Trained
from luciole.lquantizer.training.parameters import read, together, trained_ops
from luciole.lquantizer.training.settings import FLOAT_RATE, FinetuneSettings
from luciole.lquantizer.training.tf_graph import TensorGraph
from luciole.lquantizer.training.trainer import Trainer


class LevelsTrainer(Trainer):
    """Trains the layers of a student that have learned levels."""

    tries_rates = True

    def __init__(
        self,
        student: Model,
        teacher: Model,
        settings: FinetuneSettings,
        latents: Mapping[str, Array] | None = None,
        labels: Labels | None = None,
    ) -> None:
        self.settings = settings
        super().__init__(student, teacher, settings, latents, labels)

    def _begin(self, latents: Mapping[str, Array]) -> TensorGraph:
        graph = self.model.graph
        self._groups = together(graph)
        self._layers = self._trainable(latents)
        forward = {
            op: layer.forward(op)
            for ops, layer in zip(self._groups, self._layers, strict=True)
            for op in ops
        }
        self._floats = float_constants(graph, forward) if self.settings.float_layers else {}
        self._variables = {v: self.tf.Variable(c.start) for v, c in self._floats.items()}
        return TensorGraph(graph, forward, self._variables, self._before_pass)

    def _before_pass(self) -> None:
        """Round weights once for all operators that share them."""
        for layer in self._layers:
            layer.round_weights()

    def _trainable(self, latents: Mapping[str, Array]) -> list[TrainableLayer]:
        ops = trained_ops(self.model.graph)
        unknown = latents.keys() - {op.name for op in ops}
        if unknown:
            names = ", ".join(repr(op.name) for op in ops)
            raise QuantizeError(
                f"latents: {sorted(unknown)[0]!r} is no layer with learned levels, there is {names}"
            )
        margin = self.settings.margin
        firsts = [group[0] for group in self._groups]
        starts = ((op, read(op, latents.get(op.name), margin)) for op in firsts)
        return [TrainableLayer(self.tf, op, start, self.settings) for op, start in starts]

    def _trained(self) -> Iterator[Trained]:
        for layer in self._layers:
            yield from layer.trained()
        choice = self.settings
        rate = FLOAT_RATE if choice.learning_rate is None else choice.learning_rate
        for value, constant in self._floats.items():
            unit = constant.unit if choice.relative else 1.0
            yield Trained("float", self._variables[value], rate, unit)

    def _after_step(self, contents: Contents) -> None:
        for layer in self._layers:
            layer.keep_in_reach()

    def exported(self) -> Model:
        """Clone the student with layers and biases as they are by now."""
        parameters = [layer.learned() for layer in self._layers]
        learned = list(zip(self._groups, parameters, strict=True))
        return exported(self.model, learned, {v: x.numpy() for v, x in self._variables.items()})
