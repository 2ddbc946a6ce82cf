"""What an output answers: a class for each record, and for each of its steps."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.interpreter import InputError
from luciole.interpreter.answers import (
    Reference,
    agreement,
    answers_of,
    labels_for,
    scores_classes,
)
from luciole.interpreter.records import first_output
from luciole.ir import Array, Graph, Value
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.schema.tables import QuantizationParameters
from tests.networks import random, steps

ROOM = Path(luciole.__file__).parent

ELSEWHERE = {
    "lquantizer/formats/integers.py": "which weight of a filter moves",
    "lquantizer/search/thinning.py": "which candidate a goal needs",
    "tools/confusion.py": "the commonest wrong answer",
}
"""Where else the largest of some numbers is looked for, and what for."""


def output(shape: tuple[int, ...]) -> Value:
    """Make an output that no operator says anything of."""
    return Graph("main").add_input("y", shape)


def probabilities(*shape: int) -> Array:
    powers = np.exp(random(1, *shape))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def test_one_module_says_what_answers_are() -> None:
    rooms = ("interpreter", "lquantizer", "tools", "compiler")
    files = [path for room in rooms for path in (ROOM / room).rglob("*.py")]
    finders = {
        path.relative_to(ROOM).as_posix() for path in files if "argmax(" in path.read_text("utf-8")
    }
    assert finders == {"interpreter/answers.py", *ELSEWHERE}


@pytest.mark.parametrize(
    ("numbers", "is_classifier"),
    [
        (random(1, 8, 10), True),
        (random(1, 8, 1, 1, 10), True),
        (probabilities(8, 5, 10), True),
        (probabilities(8, 4, 6, 3), True),
        (random(1, 8, 5, 10), False),
        (random(1, 8, 4, 6, 3), False),
        (random(1, 8, 1), False),
        (random(1, 8, 5, 1), False),
        (random(1, 8), False),
    ],
    ids=lambda item: str(item.shape) if isinstance(item, np.ndarray) else None,
)
def test_rows_and_probabilities_score_classes(numbers: Array, is_classifier: bool) -> None:
    assert scores_classes(output(numbers.shape), numbers) == is_classifier


@pytest.mark.parametrize("end", ["", "rounded", "reshaped"])
def test_what_a_softmax_makes_scores_classes(end: str) -> None:
    graph = Graph("main")
    value = graph.append(Softmax(graph.add_input("x", (1, 5, 10)), beta=1.0), "y").output
    if end == "reshaped":
        shape = graph.add_constant("shape", np.array([1, 1, 5, 10], np.int32))
        value = graph.append(Reshape(value, shape), "r").output
    if end == "rounded":
        op = graph.append(Quantize(value), "q")
        op.output.quantization = QuantizationParameters(
            scale=np.array([1 / 256], np.float32), zero_point=np.array([-128])
        )
        value = graph.append(Dequantize(op.output), "d").output
    coarse = np.zeros((8, 5, 10), np.float32)  # rounded until nothing sums to 1
    assert scores_classes(value, coarse)
    assert not scores_classes(output((1, 5, 10)), coarse)


def test_a_softmax_over_another_axis_scores_no_classes() -> None:
    graph = Graph("main")
    rows = graph.append(Softmax(graph.add_input("x", (1, 5, 10)), beta=1.0), "y").output
    shape = graph.add_constant("shape", np.array([1, 10, 5], np.int32))
    assert not scores_classes(graph.append(Reshape(rows, shape), "r").output, random(1, 8, 10, 5))


def test_labels_of_each_step_say_that_there_are_classes() -> None:
    numbers = random(1, 8, 5, 10)
    assert scores_classes(output((1, 5, 10)), numbers, np.zeros((8, 5)))
    assert scores_classes(output((1, 5, 10)), numbers, np.zeros((8, 5, 1)))
    assert not scores_classes(output((1, 5, 10)), numbers, np.zeros(8))


def test_answers_are_those_of_a_loop() -> None:
    numbers = random(1, 6, 4, 10)
    wanted = [[max(range(10), key=step.__getitem__) for step in record] for record in numbers]
    assert answers_of(numbers).tolist() == wanted
    assert answers_of(numbers[:, :1]).tolist() == [record[0] for record in wanted]
    others = numbers.copy()
    others[0, 0, (wanted[0][0] + 1) % 10] = 99
    assert agreement(numbers, others) == 23 / 24
    assert Reference(numbers.astype(np.float64), True).agreement(others) == 23 / 24
    assert Reference(numbers.astype(np.float64), False).agreement(others) is None


def test_labels_come_in_the_shape_of_answers() -> None:
    assert labels_for(np.ones((6, 4, 1)), (6, 4)).shape == (6, 4)
    assert labels_for(np.ones((6, 1)), (6,)).shape == (6,)


@pytest.mark.parametrize("shape", [(6,), (24,), (6, 5), (4, 6)])
def test_labels_refuses_another_shape(shape: tuple[int, ...]) -> None:
    text = f"the labels have shape {list(shape)}, the answers [6, 4]: one label for each answer"
    with pytest.raises(InputError, match=re.escape(text)):
        labels_for(np.zeros(shape), (6, 4))


def test_the_first_output_keeps_its_steps() -> None:
    model = steps()
    data = random(2, 7, 6, 20)
    assert first_output(model, {"x": data}).shape == (7, 6, 4)
