"""Measure a student: how far its outputs are from the teacher's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from luciole.interpreter.answers import distribution_of
from luciole.ir import Graph, TensorType, Value
from luciole.ir.names import is_like
from luciole.ir.ops.softmax import Softmax
from luciole.ir.value import shape_text
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow, tensorflow

Contents = Mapping[Value, Tensor]
"""Every tensor of a graph."""

_LEAST = 1e-7
"""The smallest probability that a logarithm is taken of."""


@dataclass(frozen=True)
class Head:
    """One output: ``value`` is compared, times ``scale``; logits where a softmax follows, or where
    labels say that it scores classes, if need be the logarithms of probabilities.
    """

    value: Value
    is_logits: bool
    scale: float = 1.0
    is_probability: bool = False

    def of(self, contents: Contents) -> Tensor:
        """Return the numbers of an output that are compared: scaled, or as logarithms."""
        numbers = contents[self.value]
        if self.is_probability:
            tf = tensorflow()
            return tf.math.log(tf.maximum(numbers, _LEAST))
        return numbers if self.scale == 1.0 else numbers * self.scale

    def scoring(self, is_probability: bool) -> Head:
        """Return a head that scores classes, as labels ask for."""
        return (
            self if self.is_logits else replace(self, is_logits=True, is_probability=is_probability)
        )


@dataclass(frozen=True)
class Pair:
    """An output of the student and the teacher's in its place."""

    student: Head
    teacher: Head

    def scoring(self, is_probability: bool) -> Pair:
        """Return a pair of outputs that score classes."""
        return Pair(self.student.scoring(is_probability), self.teacher.scoring(is_probability))


def head_of(output: Value) -> Head:
    """Find the logits of an output that is a softmax, rounded or not, else the output itself."""
    op = distribution_of(output)
    if op is None:
        return Head(output, False)
    return Head(op.logits, True, op.beta if isinstance(op, Softmax) else 1.0)


def match_inputs(student: Graph, teacher: Graph) -> None:
    """Raise QuantizeError unless the inputs agree, in order."""
    _match("input", student.inputs, teacher.inputs)


def match_outputs(student: Graph, teacher: Graph) -> list[Pair]:
    """Pair outputs in order. Raises QuantizeError where they cannot be compared."""
    _match("output", student.outputs, teacher.outputs)
    pairs = []
    for own, other in zip(student.outputs, teacher.outputs, strict=True):
        pair = Pair(head_of(own), head_of(other))
        if pair.student.is_logits != pair.teacher.is_logits:
            who = "student" if pair.student.is_logits else "teacher"
            raise QuantizeError(f"output {own.name!r} is a softmax in the {who} only")
        if own.dtype != TensorType.FLOAT32:
            raise QuantizeError(f"output {own.name!r} is {own.dtype.name}, FLOAT32 is needed")
        pairs.append(pair)
    return pairs


def match_hints(student: Graph, teacher: Graph, patterns: Sequence[str]) -> list[Pair]:
    """Find tensors that both compute. Raises QuantizeError for a pattern without any."""
    theirs = {value.name: value for value in _computed(teacher)}
    pairs = []
    for pattern in patterns:
        own = [v for v in _computed(student) if v.name in theirs and is_like(v.name, pattern)]
        if not own:
            raise QuantizeError(f"hint {pattern!r}: student and teacher share no such tensor")
        _match("hint", own, [theirs[v.name] for v in own])
        pairs += [Pair(Head(v, False), Head(theirs[v.name], False)) for v in own]
    return list(dict.fromkeys(pairs))


def _computed(graph: Graph) -> Iterator[Value]:
    return (v for op in graph.ops for v in op.results if v.dtype == TensorType.FLOAT32)


def _match(what: str, own: Sequence[Value], others: Sequence[Value]) -> None:
    """Raise QuantizeError unless number, types and shapes behind the first axis agree."""
    if len(own) != len(others):
        raise QuantizeError(f"the student has {len(own)} {what}s, the teacher {len(others)}")
    for a, b in zip(own, others, strict=True):
        fits = len(a.shape) == len(b.shape) and a.dtype == b.dtype
        if not fits or any(
            None not in (n, m) and n != m for n, m in zip(a.shape[1:], b.shape[1:], strict=True)
        ):
            raise QuantizeError(
                f"{what} {a.name!r} is {a.dtype.name} {shape_text(a.shape)} in the student, "
                f"{b.dtype.name} {shape_text(b.shape)} in the teacher"
            )


def divergence(tf: TensorFlow, student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Compute T^2 KL(teacher || student) of softmax(logits / T), a mean over rows (Hinton et al.
    2015).
    """
    teacher_logs = tf.nn.log_softmax(teacher / temperature)
    student_logs = tf.nn.log_softmax(student / temperature)
    rows = tf.reduce_sum(tf.exp(teacher_logs) * (teacher_logs - student_logs), -1)
    return tf.reduce_mean(rows) * temperature**2


def distance(
    tf: TensorFlow, pairs: Sequence[Pair], student: Contents, targets: Sequence[Tensor], t: float
) -> Tensor:
    """Add up over outputs: divergence of distributions, mean squared error of other outputs."""
    total = 0.0
    for pair, teacher in zip(pairs, targets, strict=True):
        own = pair.student.of(student)
        if pair.student.is_logits:
            total += divergence(tf, own, teacher, t)
        else:
            total += tf.reduce_mean(tf.square(own - teacher))
    return total


def root_distance(
    tf: TensorFlow, pairs: Sequence[Pair], student: Contents, targets: Sequence[Tensor]
) -> Tensor:
    """Sum the root mean squared errors of outputs, of logits where they are distributions."""
    errors = [
        tf.sqrt(tf.reduce_mean(tf.square(pair.student.of(student) - teacher)) + 1e-12)
        for pair, teacher in zip(pairs, targets, strict=True)
    ]
    return tf.add_n(errors)


def relative_error(
    tf: TensorFlow, pairs: Sequence[Pair], student: Contents, teacher: Contents
) -> Tensor:
    """Sum mean squared errors, each as a share of the teacher's mean square."""
    total = 0.0
    for pair in pairs:
        target = pair.teacher.of(teacher)
        error = tf.reduce_mean(tf.square(pair.student.of(student) - target))
        total += error / (tf.reduce_mean(tf.square(target)) + 1e-12)
    return total


def cross_entropy(tf: TensorFlow, pair: Pair, student: Contents, labels: Tensor) -> Tensor:
    """Average the cross-entropy with class numbers [records, ...steps]."""
    logits = pair.student.of(student)
    numbers = tf.reshape(labels, tf.shape(logits)[:-1])
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=numbers, logits=logits)
    )
