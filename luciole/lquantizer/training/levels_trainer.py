"""Students with learned levels: their layers' parameters are what is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from luciole.ir import Array, Model, TensorType, Value
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training.distillation import Contents
from luciole.lquantizer.training.export import exported
from luciole.lquantizer.training.layers import TrainableLayer, Trained
from luciole.lquantizer.training.parameters import LQOp, read, trained_ops
from luciole.lquantizer.training.settings import RATES, FinetuneSettings
from luciole.lquantizer.training.tensorflow import Tensor
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
        labelled: bool = False,
    ) -> None:
        self.settings = settings
        super().__init__(student, teacher, settings, latents, labelled)

    def _begin(self, latents: Mapping[str, Array]) -> TensorGraph:
        self._layers = self._trainable(latents)
        self._biases = self._trainable_biases() if self.settings.float_biases else {}
        return TensorGraph(self.model.graph, self._layers, self._biases)

    def _trainable(self, latents: Mapping[str, Array]) -> dict[LQOp, TrainableLayer]:
        ops = trained_ops(self.model.graph)
        unknown = latents.keys() - {op.name for op in ops}
        if unknown:
            names = ", ".join(repr(op.name) for op in ops)
            raise QuantizeError(
                f"latents: {sorted(unknown)[0]!r} is no layer with learned levels, there is {names}"
            )
        margin = self.settings.margin
        starts = {op: read(op, latents.get(op.name), margin) for op in ops}
        return {op: TrainableLayer(self.tf, op, p, self.settings) for op, p in starts.items()}

    def _trainable_biases(self) -> dict[Value, Tensor]:
        """Variables for the biases of float layers."""
        found: dict[Value, Tensor] = {}
        for op in self.model.graph.ops:
            if op in self._layers or op.quant is None or op.quant.bias is None:
                continue
            value = dict(op.named_operands()).get(op.quant.bias)
            if value is not None and value.data is not None and value.dtype == TensorType.FLOAT32:
                found[value] = self.tf.Variable(value.data)
        return found

    def _trained(self) -> Iterator[Trained]:
        for layer in self._layers.values():
            yield from layer.trained()
        rate = self.settings.rate(len(RATES))
        for variable in self._biases.values():
            yield Trained("float_bias", variable, rate)

    def _after_step(self, contents: Contents) -> None:
        for layer in self._layers.values():
            layer.keep_in_reach()

    def exported(self) -> Model:
        """Clone the student with layers and biases as they are by now."""
        learned = {op: layer.learned() for op, layer in self._layers.items()}
        return exported(self.model, learned, {v: b.numpy() for v, b in self._biases.items()})
