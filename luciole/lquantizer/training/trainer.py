"""Student, teacher and optimiser, ready to take steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.answers import agreement, answers_of, labels_for
from luciole.ir import Array, Model
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training import distillation
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.layers import Trained
from luciole.lquantizer.training.optimizer import Adam, schedule
from luciole.lquantizer.training.settings import TrainingSettings
from luciole.lquantizer.training.tensorflow import Tensor, tensorflow
from luciole.lquantizer.training.tf_graph import TensorGraph

_TOLERANCE = 1e-3


class Trainer(ABC):
    """A student some of whose numbers are variables, and compiled functions that train and judge
    it. What the variables are, and how a model is made of them, each kind of student says.

    ``teach(*inputs)`` gives the teacher's outputs, ``step(schedule, inputs, wanted, labels)`` takes
    a training step and gives its loss, ``judge(inputs, wanted)`` the distance, what the student
    gives for ``wanted``, and its outputs.
    """

    tries_rates = False
    """Whether its usual rates may be too large for a network, so that trials choose."""

    def __init__(
        self,
        student: Model,
        teacher: Model,
        settings: TrainingSettings,
        latents: Mapping[str, Array] | None = None,
        labels: Labels | None = None,
    ) -> None:
        self.tf = tensorflow()
        self.model = student
        self.teacher_model = teacher
        self.options, self._labels = settings, labels
        distillation.match_inputs(student.graph, teacher.graph)
        self._pairs = distillation.match_outputs(student.graph, teacher.graph)
        self._hints = distillation.match_hints(student.graph, teacher.graph, settings.hints)
        if labels is not None:
            pair = self._pairs[labels.output].scoring(labels.are_probabilities)
            self._pairs[labels.output] = pair
        self.student = self._begin(latents or {})
        self._teacher = TensorGraph(teacher.graph)
        trained = enumerate(
            self._trained()
        )  # names that are unique, as those in a file need not be
        self.adam = Adam(self.tf, [t._replace(name=f"{i}/{t.name}") for i, t in trained])
        self._compile()

    @abstractmethod
    def _begin(self, latents: Mapping[str, Array]) -> TensorGraph:
        """Make the variables, from shadow weights where given, and the graph that uses them."""

    @abstractmethod
    def _trained(self) -> Iterable[Trained]:
        """List everything that learns."""

    @abstractmethod
    def _after_step(self, contents: distillation.Contents) -> None:
        """Bring variables back to where they may be, given every tensor that the step computed."""

    @abstractmethod
    def exported(self) -> Model:
        """Make a model of the student in its present state."""

    @property
    def count(self) -> int:
        """How many numbers are trained."""
        return sum(int(np.prod(variable.shape)) for variable in self.adam.variables)

    def prepare(self, step: int, steps: int) -> Array:
        """Prepare a step out of ``steps``, or judging; returns its ``schedule``."""
        cycle = -(-steps // (self.options.restarts + 1))
        if step % cycle == 0 and 0 < step < steps:
            self.adam.forget()
        return schedule(step % cycle, cycle)

    def _compile(self) -> None:
        tf = self.tf
        inputs = self.student.signature()
        self.teach = tf.function(
            self._teach, autograph=False, input_signature=self._teacher.signature()
        )
        outputs = self.teach.get_concrete_function().structured_outputs
        targets = [tf.TensorSpec(t.shape, t.dtype) for t in outputs]
        axes = 1 if self._labels is None else self._labels.numbers.ndim
        labels = tf.TensorSpec((None,) * axes, tf.int64)
        self.judge = tf.function(self._judge, autograph=False, input_signature=(inputs, targets))
        self.step = tf.function(
            self._step,
            autograph=False,
            input_signature=(tf.TensorSpec((3,), tf.float32), inputs, targets, labels),
        )

    def _teach(self, *inputs: Tensor) -> list[Tensor]:
        contents = self._teacher(inputs)
        return [self.tf.convert_to_tensor(pair.teacher.of(contents)) for pair in self._pairs]

    def _judge(
        self, inputs: Sequence[Tensor], targets: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        contents, tf = self.student(inputs), self.tf
        loss = distillation.distance(tf, self._pairs, contents, targets, self.options.temperature)
        numbers = [tf.convert_to_tensor(pair.student.of(contents)) for pair in self._pairs]
        outputs = [tf.convert_to_tensor(contents[v]) for v in self.student.graph.outputs]
        return loss, numbers, outputs

    def shares(
        self, numbers: Sequence[Array], targets: Sequence[Array], labels: Array
    ) -> tuple[float | None, float | None]:
        """Count the share of answers that equal the teacher's, a mean over outputs that score
        classes, and the share that equals the labels; None where there are none.
        """
        pairs = zip(self._pairs, numbers, targets, strict=True)
        same = [agreement(own, other) for pair, own, other in pairs if pair.student.is_logits]
        right = None
        if self._labels is not None:
            answers = answers_of(numbers[self._labels.output])
            right = float(np.mean(answers == labels_for(labels, answers.shape)))
        return (float(np.mean(same)) if same else None), right

    def _step(
        self, schedule: Tensor, inputs: Sequence[Tensor], targets: Sequence[Tensor], labels: Tensor
    ) -> Tensor:
        teacher = self._teacher(inputs) if self._hints else {}
        with self.tf.GradientTape() as tape:
            contents = self.student(inputs)
            loss = self._loss(contents, teacher, targets, labels)
        self.adam.apply(tape.gradient(loss, self.adam.variables), schedule)
        self._after_step(contents)
        return loss

    def _loss(
        self,
        student: distillation.Contents,
        teacher: distillation.Contents,
        targets: Sequence[Tensor],
        labels: Tensor,
    ) -> Tensor:
        tf, choice = self.tf, self.options
        loss = self._distance(student, targets)
        if self._labels is not None:
            pair = self._pairs[self._labels.output]
            entropy = distillation.cross_entropy(tf, pair, student, labels)
            loss = (1 - choice.label_weight) * loss + choice.label_weight * entropy
        if self._hints:
            error = distillation.relative_error(tf, self._hints, student, teacher)
            loss += choice.hint_weight * error
        return loss

    def _distance(self, student: distillation.Contents, targets: Sequence[Tensor]) -> Tensor:
        """Measure the student's distance from the teacher, which training makes small."""
        t = self.options.temperature
        return distillation.distance(self.tf, self._pairs, student, targets, t)


def check_teacher(model: Model, records: Sequence[Array]) -> None:
    """Run up to two records together through a model, and one by one in the interpreter.

    Raises UnsupportedError that lists operators without a differentiable form, and QuantizeError
    where results differ: the model mixes its records, or is made for one.
    """
    graph, interpreter = TensorGraph(model.graph), Interpreter(model)
    names = [v.name for v in model.graph.inputs]
    pairs = [array[:2] for array in records]
    together = _computed(graph, pairs)
    for i in range(len(pairs[0])):
        interpreter.reset_before_run()
        alone = interpreter.run({n: a[i : i + 1] for n, a in zip(names, pairs, strict=True)})
        for value, batch_result in zip(model.graph.outputs, together, strict=True):
            single_result = alone[value.name]
            if not _close(np.asarray(batch_result)[i : i + 1], single_result):
                raise QuantizeError(
                    f"output {value.name!r}: records that run together give other results than "
                    "alone, the model cannot be trained on batches"
                )


def _computed(graph: TensorGraph, inputs: Sequence[Array]) -> list[Tensor]:
    """Run a graph on several records. Raises QuantizeError where it is made for one."""
    try:
        return graph.function(graph.graph.outputs)(*inputs)
    except graph.tf.errors.OpError as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise QuantizeError(
            "the model is made for one record, it cannot be trained on batches: import it without "
            f"a fixed batch, where it has one ({line})"
        ) from None


def _close(one: Array, other: Array) -> bool:
    scale = float(np.max(np.abs(other), initial=0.0))
    return one.shape == other.shape and np.allclose(one, other, _TOLERANCE, _TOLERANCE * scale)
