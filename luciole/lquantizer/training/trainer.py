"""Student, teacher and optimiser, ready to take steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from luciole.interpreter import Interpreter
from luciole.ir import Array, Model, TensorType, Value
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training import distillation
from luciole.lquantizer.training.export import exported
from luciole.lquantizer.training.layers import TrainableLayer, Trained
from luciole.lquantizer.training.optimizer import Adam
from luciole.lquantizer.training.parameters import LQOp, read, trained_ops
from luciole.lquantizer.training.settings import RATES, FinetuneSettings
from luciole.lquantizer.training.tensorflow import Tensor, tensorflow
from luciole.lquantizer.training.tf_graph import TensorGraph

_TOLERANCE = 1e-3


class Trainer:
    """The student's layers as variables, and compiled functions that train and judge them.

    ``teach(*inputs)`` gives the teacher's outputs, ``step(schedule, inputs, wanted, labels)`` takes
    a training step and gives its loss, ``judge(inputs, wanted)`` the distance and the agreement.
    """

    def __init__(
        self,
        student: Model,
        teacher: Model,
        settings: FinetuneSettings,
        latents: Mapping[str, Array] | None = None,
        labelled: bool = False,
    ) -> None:
        self.tf = tensorflow()
        self.model = student
        self.teacher_model = teacher
        self.settings, self._labelled = settings, labelled
        distillation.match_inputs(student.graph, teacher.graph)
        self._pairs = distillation.match_outputs(student.graph, teacher.graph)
        self._hints = distillation.match_hints(student.graph, teacher.graph, settings.hints)
        if labelled:
            _check_labelled(self._pairs)
        self._layers = self._trainable(latents or {})
        self._biases = self._trainable_biases() if settings.float_biases else {}
        self.student = TensorGraph(student.graph, self._layers, self._biases)
        self._teacher = TensorGraph(teacher.graph)
        self.adam = Adam(self.tf, self._trained())
        self._compile()

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

    def _trained(self) -> list[Trained]:
        """List everything that learns, by names that are unique as those in a file need not be."""
        found = [trained for layer in self._layers.values() for trained in layer.trained()]
        rate = self.settings.rate(len(RATES))
        found += [Trained("float_bias", variable, rate) for variable in self._biases.values()]
        return [t._replace(name=f"{i}/{t.name}") for i, t in enumerate(found)]

    def _compile(self) -> None:
        tf = self.tf
        inputs = self.student.signature()
        self.teach = tf.function(
            self._teach, autograph=False, input_signature=self._teacher.signature()
        )
        outputs = self.teach.get_concrete_function().structured_outputs
        wanted = [tf.TensorSpec(t.shape, t.dtype) for t in outputs]
        labels = tf.TensorSpec((None,), tf.int64)
        self.judge = tf.function(self._judge, autograph=False, input_signature=(inputs, wanted))
        self.step = tf.function(
            self._step,
            autograph=False,
            input_signature=(tf.TensorSpec((3,), tf.float32), inputs, wanted, labels),
        )

    def _teach(self, *inputs: Tensor) -> list[Tensor]:
        contents = self._teacher(inputs)
        return [self.tf.convert_to_tensor(pair.teacher.of(contents)) for pair in self._pairs]

    def _judge(self, inputs: Sequence[Tensor], wanted: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        contents, tf = self.student(inputs), self.tf
        loss = distillation.distance(tf, self._pairs, contents, wanted, self.settings.temperature)
        return loss, distillation.agreement(tf, self._pairs, contents, wanted)

    def _step(
        self, schedule: Tensor, inputs: Sequence[Tensor], wanted: Sequence[Tensor], labels: Tensor
    ) -> Tensor:
        teacher = self._teacher(inputs) if self._hints else {}
        with self.tf.GradientTape() as tape:
            loss = self._loss(self.student(inputs), teacher, wanted, labels)
        self.adam.apply(tape.gradient(loss, self.adam.variables), schedule)
        for layer in self._layers.values():
            layer.keep_in_reach()
        return loss

    def _loss(
        self,
        student: distillation.Contents,
        teacher: distillation.Contents,
        wanted: Sequence[Tensor],
        labels: Tensor,
    ) -> Tensor:
        tf, choice = self.tf, self.settings
        loss = distillation.distance(tf, self._pairs, student, wanted, choice.temperature)
        if self._labelled:
            entropy = distillation.cross_entropy(tf, self._pairs[0], student, labels)
            loss = (1 - choice.label_weight) * loss + choice.label_weight * entropy
        if self._hints:
            error = distillation.relative_error(tf, self._hints, student, teacher)
            loss += choice.hint_weight * error
        return loss

    def check_teacher(self, inputs: Sequence[Array]) -> None:
        """Run up to two records together, and one by one in the interpreter.

        Raises QuantizeError where that differs: the model mixes its records, or is made for one.
        """
        outputs = self.teacher_model.graph.outputs
        interpreter = Interpreter(self.teacher_model)
        names = [v.name for v in self.teacher_model.graph.inputs]
        pairs = [array[:2] for array in inputs]
        together = self._teacher.function(outputs)(*pairs)
        for i in range(len(pairs[0])):
            interpreter.reset_before_run()
            alone = interpreter.run({n: a[i : i + 1] for n, a in zip(names, pairs, strict=True)})
            for value, found in zip(outputs, together, strict=True):
                wanted = alone[value.name]
                if not _close(np.asarray(found)[i : i + 1], wanted):
                    raise QuantizeError(
                        f"output {value.name!r}: records that run together give other results than "
                        "alone, the model cannot be trained on batches"
                    )

    def exported(self) -> Model:
        """Clone the student in its present state."""
        learned = {op: layer.learned() for op, layer in self._layers.items()}
        return exported(self.model, learned, {v: b.numpy() for v, b in self._biases.items()})


def _close(found: Array, wanted: Array) -> bool:
    scale = float(np.max(np.abs(wanted), initial=0.0))
    return found.shape == wanted.shape and np.allclose(
        found, wanted, _TOLERANCE, _TOLERANCE * scale
    )


def _check_labelled(pairs: Sequence[distillation.Pair]) -> None:
    if len(pairs) != 1 or not pairs[0].student.is_logits:
        raise QuantizeError("labels need a model with one output that is a softmax")
