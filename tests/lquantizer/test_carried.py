"""Recurrent cells that stand step by step: 16 bits between operators in files of bytes, and weights
that all steps share.
"""

from __future__ import annotations

from functools import cache

import numpy as np

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, Model, TensorType, Value
from luciole.ir.ops.activations import Logistic, Tanh
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.split import Split
from luciole.ir.quantization import Affine
from luciole.lquantizer.network.carried import cells
from tests.lquantizer.networks import Builder, images
from tests.lquantizer.test_poles import answers, decibels
from tests.networks import random
from tests.support import litert

STEPS, UNITS = 6, 8
KINDS = ("FULLY_CONNECTED", "SPLIT", "ADD", "MUL", "LOGISTIC", "TANH")


@cache
def network() -> Model:
    """A state that one gate carries on, and to which another one adds what a step reads, behind a
    dense layer for each; the last state is scored.
    """
    b = Builder()
    x = b.graph.add_input("x", (1, STEPS * UNITS))
    split = Split(b.constant(np.array(1, np.int32)), x, num_splits=STEPS)
    steps = b.graph.append(split, *(f"x{n}" for n in range(STEPS))).results
    gates = [(b.weights(UNITS, UNITS), b.weights(UNITS, UNITS), b.weights(UNITS)) for _ in range(3)]
    state: Value | None = None
    for step in steps:
        forget, enter, new = (_sum(b, step, state, *gate) for gate in gates)
        made = b.add(Mul(b.add(Logistic(enter)), b.add(Tanh(new))))
        kept = None if state is None else b.add(Mul(b.add(Logistic(forget)), state))
        state = made if kept is None else b.add(Add(kept, made))
    assert state is not None
    b.graph.outputs = [b.add(FullyConnected(state, b.weights(4, UNITS)))]
    return b.model


def _sum(
    b: Builder, x: Value, state: Value | None, own: Value, recurrent: Value, bias: Value
) -> Value:
    read = b.add(FullyConnected(x, own, bias))
    return read if state is None else b.add(Add(read, b.add(FullyConnected(state, recurrent))))


def records(seed: int) -> Array:
    return random(seed, 60, STEPS * UNITS)


@cache
def made(word: str = "", input_type: str = "float32") -> Model:
    """The network in int8; its operators' formats by a rule for each kind, if there is a word."""
    rules = {"layers": [{"operator": kind, "scheme": word} for kind in KINDS]} if word else None
    result = luciole.quantize(
        network(), records(1), scheme="int8", config=rules, proof=False, input_type=input_type
    )
    return result.model


def test_cells_keep_more_than_in_bytes_here_and_in_litert() -> None:
    unseen = records(2)
    exact, content = answers(network(), unseen), to_bytes(made(), "tflite")
    theirs = np.concatenate([litert(content, [row[None]])[0] for row in unseen])
    least = decibels(exact, answers(made("int:w8a8"), unseen)) + 2
    assert min(decibels(exact, answers(content, unseen)), decibels(exact, theirs)) > least


def test_a_rule_that_asks_for_bytes_gets_them() -> None:
    assert TensorType.INT16 not in {v.dtype for v in made("int:w8a8").graph.values}


def test_all_but_the_scores_has_16_bits_and_weights_stand_once() -> None:
    ops = [op for op in made().graph.ops if not isinstance(op, Quantize | Dequantize)]
    assert {op.results[0].dtype for op in ops[:-1]} == {TensorType.INT16}
    assert ops[-1].results[0].dtype == TensorType.INT8
    layers = [op for op in ops if isinstance(op, FullyConnected)]
    assert len(layers) == (3 * STEPS - 1) + 3 * (STEPS - 1) + 1
    assert len({op.weights for op in layers}) == 3 + 3 + 1


def test_an_input_of_bytes_is_rounded_once_more_where_cells_read_it() -> None:
    work, x = made(input_type="int8"), records(2)
    (given,) = work.graph.inputs
    assert given.dtype == TensorType.INT8
    assert TensorType.INT16 in {value.dtype for value in work.graph.values}
    codes = Affine.of(given, "the input").encode(x)
    assert decibels(answers(network(), x), answers(work, codes)) > 30


def test_no_cells_are_found_where_no_state_is_carried() -> None:
    assert not cells(images().graph)
    assert cells(network().graph)
