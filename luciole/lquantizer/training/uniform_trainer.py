"""Students of uniform integers: thresholds, and what else is asked for, are what is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from luciole.ir import Array, Model, Op, Value
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.quantization import affine_of
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.rewrite.rounded import Rounded
from luciole.lquantizer.training.distillation import Contents, root_distance
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.layers import Trained
from luciole.lquantizer.training.leveled_weights import LeveledWeights
from luciole.lquantizer.training.tensorflow import Tensor
from luciole.lquantizer.training.tf_graph import Forward, TensorGraph
from luciole.lquantizer.training.trainer import Trainer
from luciole.lquantizer.training.uniform_layers import (
    RoundedTensor,
    RoundedWeights,
    Thresholds,
    Weights,
)
from luciole.lquantizer.training.uniform_parameters import (
    IntegerWeights,
    TiedTensors,
    integer_weights,
    is_nearest,
    latents_of,
    tied_tensors,
)
from luciole.lquantizer.training.uniform_settings import UniformSettings

_BIASES_FACTOR = 0.05
"""Biases, in units of the width of their layer's result, learn at this share of the rate."""


class UniformTrainer(Trainer):
    """Trains a rounded network; what becomes integers has a QUANTIZE, constants a DEQUANTIZE."""

    def __init__(
        self,
        student: Rounded,
        teacher: Model,
        settings: UniformSettings,
        latents: Mapping[str, Array] | None = None,
        labels: Labels | None = None,
    ) -> None:
        self.given, self.settings = student, settings
        super().__init__(student.model, teacher, settings, latents, labels)

    def _begin(self, latents: Mapping[str, Array]) -> TensorGraph:
        """Make thresholds for QUANTIZE, shadow weights for weights, and variables for biases."""
        graph, tf = self.model.graph, self.tf
        self._rounds, self._follows = tf.Variable(1.0), tf.Variable(0.0)
        self._thresholds = [Thresholds(tf, t, self.settings) for t in self._tensors()]
        integers = self._integers()
        if not self._thresholds and not integers:
            raise QuantizeError("nothing in the student becomes integers: quantize it first")
        self._weights = [self._rounded_weights(w, latents.get(w.op.name)) for w in integers]
        biases = [w for w in integers if w.bias is not None and self.settings.train_biases]
        self._biases = {w.bias: (tf.Variable(w.bias.data), _width(w.op)) for w in biases if w.bias}
        return TensorGraph(graph, self.layers(), self.variables())

    def _tensors(self) -> list[TiedTensors]:
        """List the tensors that become integers."""
        return tied_tensors(self.model.graph)

    def _integers(self) -> list[IntegerWeights]:
        """List the weights that are integers."""
        return integer_weights(self.model.graph)

    def _rounded_weights(self, weights: IntegerWeights, target: Array | None) -> Weights:
        """Train a layer's weights from shadow weights; codes that are not the nearest ones, but
        fitted, are kept: to round anew as thresholds move would undo the fit.
        """
        choice, levels = self.settings, self.given.levels.get(weights.op)
        if levels is not None:
            return LeveledWeights(self.tf, weights, levels, target, choice)
        fitted = target is None or not is_nearest(weights, target)
        kept = fitted and not (choice.train_points or choice.train_weights)
        rows = latents_of(weights, None if kept else target, choice.margin)
        return RoundedWeights(self.tf, weights, rows, choice, kept)

    def variables(self) -> dict[Value, Tensor]:
        """Return the variables of constants: shadow weights for codes, and biases that learn."""
        latents = {w.weights.codes: w.latents for w in self._weights}
        return latents | {value: variable for value, (variable, _) in self._biases.items()}

    def layers(self) -> dict[Op, Forward]:
        """Return the functions of the operators that round."""
        layers: dict[Op, Forward] = {w.weights.dequantize: w for w in self._weights}
        for thresholds in self._thresholds:
            forward = RoundedTensor(self.tf, thresholds, self.settings, self._rounds)
            makers = [codes.producer for codes in thresholds.tied.codes]  # constants have none
            layers |= {maker.op: forward for maker in makers if maker is not None}
        for op in self.model.graph.ops:
            if isinstance(op, Dequantize) and not op.input.is_constant:
                layers[op] = _as_it_is
        return layers

    @property
    def count(self) -> int:
        """The number of trained numbers, those that follow batches left out."""
        follow = self._thresholds if self.settings.momentum is not None else []
        return super().count - sum(len(t.start) for t in follow if t.tied.is_free)

    def _trained(self) -> Iterator[Trained]:
        for thresholds in self._thresholds:
            yield from thresholds.trained()
        for weights in self._weights:
            yield from weights.trained()
        for variable, width in self._biases.values():
            yield Trained("bias", variable, self.settings.rate * _BIASES_FACTOR, width)

    def prepare(self, step: int, steps: int) -> Array:
        """Switch on rounding and following, too."""
        choice = self.settings
        if choice.delay:
            self._rounds.assign(float(step >= choice.delay * steps))
        if choice.momentum is not None:
            self._follows.assign((1 - choice.momentum) * float(step < choice.freeze * steps))
        return super().prepare(step, steps)

    def _after_step(self, contents: Contents) -> None:
        for thresholds in self._thresholds:
            if self.settings.momentum is not None and thresholds.tied.is_free:
                thresholds.follow(*self._extremes(thresholds, contents), self._follows)
            thresholds.keep_in_reach()
        for weights in self._weights:
            weights.keep_in_reach()

    def _extremes(self, thresholds: Thresholds, contents: Contents) -> tuple[Tensor, Tensor]:
        """Find the least and the largest number in tied tensors, 0 among them."""
        tf, arrays = self.tf, []
        for codes in thresholds.tied.codes:
            assert codes.producer is not None, "they are computed"
            assert isinstance(codes.producer.op, Quantize), "a QUANTIZE makes it"
            arrays.append(contents[codes.producer.op.input])
        low = tf.reduce_min(tf.stack([tf.reduce_min(x) for x in arrays]))
        high = tf.reduce_max(tf.stack([tf.reduce_max(x) for x in arrays]))
        return tf.minimum(low, 0.0), tf.maximum(high, 0.0)

    def _distance(self, student: Contents, targets: Sequence[Tensor]) -> Tensor:
        if self.settings.loss == "rmse":
            return root_distance(self.tf, self._pairs, student, targets)
        return super()._distance(student, targets)

    def rounded(self) -> Rounded:
        """Clone the student with thresholds, weights and biases as they are by now."""
        made = self.given.copy()
        values = dict(zip(self.model.graph.values, made.model.graph.values, strict=True))
        for thresholds in self._thresholds:
            for codes in thresholds.tied.codes:
                values[codes].quantization = thresholds.affine().table()
        for weights in self._weights:
            learned, affine = weights.learned()
            twin = values[weights.weights.codes]
            twin.make_constant(learned, affine.dtype)
            twin.quantization = affine.table()
        for value, (variable, _) in self._biases.items():
            values[value].set_data(variable.numpy())
        twins = dict(zip(self.model.graph.ops, made.model.graph.ops, strict=True))
        leveled = [one for one in self._weights if isinstance(one, LeveledWeights)]
        return replace(made, levels={twins[one.weights.op]: one.stored() for one in leveled})

    def exported(self) -> Model:
        """Make the network of integers of the student's present state."""
        return self.rounded().integers()


def _as_it_is(x: Tensor) -> Tensor:
    return x


def _width(op: Op) -> float:
    """Return the distance of the limits of a layer's result; 1 where it is not rounded."""
    for use in op.results[0].users:
        affine = affine_of(use.op.output) if isinstance(use.op, Quantize) else None
        if affine is not None:
            low, high = affine.range
            return float(high[0] - low[0])
    return 1.0
