"""Students with learned levels: their layers' parameters are what is trained, and the weights and
biases of layers that stay float beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.passes.cleaning.remove_dead import remove_dead_buffers
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training.distillation import Contents
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.layers import TrainableLayer, Trained
from luciole.lquantizer.training.parameters import (
    LQOp,
    TrainableParameters,
    read,
    together,
    trained_ops,
    write,
)
from luciole.lquantizer.training.settings import FLOAT_RATE, FinetuneSettings
from luciole.lquantizer.training.tf_graph import TensorGraph
from luciole.lquantizer.training.trainer import Trainer
from luciole.lquantizer.training.units import of_sums, of_weights, sizes


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
        floats = {value: x.numpy() for value, x in self._variables.items()}
        return _with_learned(self.model, learned, floats)


def _with_learned(
    student: Model,
    learned: Sequence[tuple[Sequence[LQOp], TrainableParameters]],
    floats: Mapping[Value, Array],
) -> Model:
    """Clone the student with the learned parameters of layers (together, where they share them) and
    trained constants of float layers.

    Codes are encoded again from the shadow weights; everything else of the model stays.
    """
    copy = student.clone()
    ops: dict[Op, Op] = dict(zip(student.graph.ops, copy.graph.ops, strict=True))
    values = dict(zip(student.graph.values, copy.graph.values, strict=True))
    for group, parameters in learned:
        write([twin for op in group if isinstance(twin := ops[op], LQOp)], parameters)
    for value, array in floats.items():
        values[value].set_data(array)
    remove_dead_buffers(copy)
    return copy


class FloatConstant(NamedTuple):
    """Weights or a bias [...] of a float layer, and the units that learning rates count in."""

    value: Value
    start: Array
    unit: Array


def float_constants(graph: Graph, others: Collection[Op]) -> dict[Value, FloatConstant]:
    """Find the float weights and biases of all layers but others."""
    constants: dict[Value, FloatConstant] = {}
    for op in graph.ops:
        if op not in others:
            constants.update((constant.value, constant) for constant in _constants_of(op))
    return constants


def _constants_of(op: Op) -> Iterator[FloatConstant]:
    """List a layer's float weights and bias."""
    weights = None if op.quant is None or op.quant.weight is None else weight_constant(op)
    if op.quant is None or weights is None or (array := _floats(weights)) is None:
        return
    if not array.any():
        return
    means = sizes(array, op.quant.axis)
    yield FloatConstant(weights, array, of_weights(means))
    bias = op.given_operands().get(op.quant.bias or "")
    if bias is not None and (start := _floats(bias)) is not None and start.size == means.size:
        units = of_sums(means, array.size // means.size)
        yield FloatConstant(bias, start, units.reshape(start.shape))


def _floats(value: Value) -> Array | None:
    """Read a constant of floats that is not sparse and not empty."""
    if value.dtype != TensorType.FLOAT32 or value.sparsity is not None:
        return None
    return value.data if value.data is not None and value.data.size else None
