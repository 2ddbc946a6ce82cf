"""Small models that several tests train, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

import luciole
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, learned_levels
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.softmax import Softmax
from luciole.lquantizer.training import FinetuneResult, FinetuneSettings, finetune
from luciole.lquantizer.training.parameters import TrainableParameters, trained_ops, write
from luciole.lquantizer.training.tensorflow import tensorflow
from luciole.schema.enums import ActivationFunctionType, Padding


@cache
def digits() -> tuple[Model, Model, dict[str, Array], Array]:
    """The bundled float network, its quantized form at one bit, unlabelled records, labels."""
    with resources.as_file(resources.files("luciole") / "demo_data") as folder:
        model = luciole.load(folder / "digits.circle")
        with np.load(folder / "digits.npz") as data:
            images, labels = data["x_train"], data["y_train"]
    name = model.graph.inputs[0].name
    shape = (-1, *[n or 1 for n in model.graph.inputs[0].shape[1:]])
    records = {name: ((images.reshape(shape) - 4.884) / 6.017).astype(np.float32)}
    few = {name: records[name][:200]}
    student = luciole.quantize(model, few, encode_bits=1, proof=False).model
    blunt(student, model, (float(np.abs(records[name]).mean()), 0.8))
    return model, student, records, labels


def blunt(student: Model, teacher: Model, inputs: tuple[float, ...]) -> None:
    """Give dense layers one bit at its simplest, however well they were fitted: the signs of the
    float weights times their mean size, and inputs of plus or minus a number.
    """
    dense = [op for op in teacher.graph.ops if isinstance(op, FullyConnected)]
    for op, source, size in zip(trained_ops(student.graph), dense, inputs, strict=True):
        weights = data_of(source, "weights")
        learned = TrainableParameters(
            weights,
            np.abs(weights).mean(axis=1, keepdims=True),
            np.zeros(len(weights), np.float32),
            np.array([size], np.float32),
            np.array(0, np.float32),
            data_of(source, "bias"),
        )
        write([op], learned)


def run(model: Model, records: dict[str, Array]) -> Array:
    """The first output for all records."""
    return next(iter(Interpreter(model).run(records).values()))


def data_of(op: Op, name: str) -> Array:
    """The contents of a constant operand."""
    value = dict(op.named_operands())[name]
    assert value is not None
    assert value.data is not None
    return value.data


def random_constant(generator: np.random.Generator, *shape: int) -> Array:
    return generator.normal(0, 0.5, shape).astype(np.float32)


def convolutional(
    padding: Padding = Padding.SAME, stride: int = 1, dilation: int = 1
) -> tuple[Model, Model, Array]:
    """A float network with a convolution, its quantized form with offsets, and the filter."""
    generator = np.random.default_rng(5)
    filter = random_constant(generator, 6, 3, 2, 5)
    window: dict[str, Any] = {
        "padding": padding,
        "stride_h": stride,
        "stride_w": stride,
        "dilation_h_factor": dilation,
        "dilation_w_factor": dilation,
        "activation": ActivationFunctionType.RELU,
    }
    teacher, student = Model(), Model()
    for model in (teacher, student):
        graph = model.add_graph(Graph("main"))
        x = graph.add_input("image", (None, 8, 7, 5))
        if model is teacher:
            op: Op = Conv2D(x, graph.add_constant("filter", filter), **window)
        else:
            op = _learned(graph, filter, window)
        graph.append(op, "features")
        where = graph.add_constant("where", np.array([1, 2], np.int32))
        mean = graph.append(Mean(op.output, where), "logits")
        graph.outputs = [graph.append(Softmax(mean.output, beta=1.0), "classes").output]
    return teacher, student, filter


def _learned(graph: Graph, filter: Array, window: dict[str, Any]) -> LQConv2D:
    """Two bits for inputs and weights, levels made up."""
    basis = np.abs(filter).reshape(6, -1).mean(1)[:, None] * np.array([[0.6, 1.1]])
    scales, offsets = basis.astype(np.float32), np.full(6, 0.05, np.float32)
    levels, order = learned_levels.levels(scales, offsets)
    index = learned_levels.encode_rows(filter.reshape(6, -1), learned_levels.thresholds(levels))
    numbers = np.take_along_axis(order, index, 1).reshape(filter.shape)
    signs = np.stack([(numbers >> k) & 1 for k in range(2)], axis=1).astype(np.bool_)
    return LQConv2D(
        graph.inputs[0],
        graph.add_constant("input_scales", np.array([0.4, 0.9], np.float32)),
        graph.add_constant("weights_scales", scales),
        graph.add_constant("weights_binary", learned_levels.pack(signs)),
        weights_offsets=graph.add_constant("weights_offsets", offsets),
        input_channels=5,
        input_offset=0.125,
        **window,
    )


def regression() -> tuple[Model, Model, dict[str, Array]]:
    """A dense layer without a softmax behind it, its quantized form at two bits, and records."""
    teacher, student, records = _regression()
    return teacher.clone(), student.clone(), dict(records)


@cache
def _regression() -> tuple[Model, Model, dict[str, Array]]:
    generator = np.random.default_rng(0)
    model = Model()
    graph = model.add_graph(Graph("main"))
    weights = graph.add_constant("w", generator.normal(0, 1, (3, 40)).astype(np.float32))
    bias = graph.add_constant("b", np.zeros(3, np.float32))
    x = graph.add_input("x", (1, 40))
    graph.outputs = [graph.append(FullyConnected(x, weights, bias), "y").output]
    records = {"x": generator.normal(0, 1, (1200, 40)).astype(np.float32)}
    student = luciole.quantize(model, records, encode_bits=2, proof=False).model
    return model, student, records


def recurrent() -> Model:
    """Three dense layers that share their weights and bias."""
    generator = np.random.default_rng(6)
    model = Model()
    graph = model.add_graph(Graph("main"))
    weights = graph.add_constant("w", random_constant(generator, 8, 8))
    bias = graph.add_constant("b", random_constant(generator, 8))
    state = graph.add_input("x", (1, 8))
    for step in range(3):
        op = FullyConnected(state, weights, bias, activation=ActivationFunctionType.TANH)
        state = graph.append(op, f"step{step}").output
    graph.outputs = [graph.append(Softmax(state, beta=1.0), "classes").output]
    return model


FEW: dict[str, Any] = {"held_back": 0.25, "batch": 50}


EPOCHS = 3


def tune(
    epochs: int = EPOCHS, settings: FinetuneSettings | None = None, **options: Any
) -> FinetuneResult:
    """The digits student trained for a little while."""
    teacher, student, records, _ = digits()
    settings = settings or FinetuneSettings(**FEW)
    return finetune(student, teacher, records, epochs=epochs, settings=settings, **options)


@contextmanager
def step_by_step() -> Iterator[None]:
    """Compile nothing: to trace graphs takes far longer than the few steps of some runs. Others
    train by graphs as users do.
    """
    config = tensorflow().config
    config.run_functions_eagerly(True)
    try:
        yield
    finally:
        config.run_functions_eagerly(False)


def two_steps(settings: FinetuneSettings | None = None, **options: Any) -> FinetuneResult:
    """The digits student trained for a single epoch of two steps, by 150 records."""
    teacher, student, records, _ = digits()
    few = {name: array[:150] for name, array in records.items()}
    settings = settings or FinetuneSettings(**FEW)
    with step_by_step():
        return finetune(student, teacher, few, epochs=1, settings=settings, **options)


class Plain(NamedTuple):
    """A run by the usual settings: what it told, and how many steps it began with and took."""

    result: FinetuneResult
    lines: list[str]
    done: list[int]


@cache
def plain() -> Plain:
    """The digits student trained by the usual settings, once for all tests."""
    lines, done = list[str](), list[int]()

    def track(what: str, total: int) -> Callable[[int], None]:
        done.append(-total)
        return done.append

    return Plain(tune(report=lines.append, track=track), lines, done)


def constants(model: Model) -> list[bytes]:
    return [v.data.tobytes() for v in model.graph.values if v.data is not None]
