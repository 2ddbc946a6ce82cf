"""Keras networks of several kinds, shortly trained on digits, as integers: two inputs, attention
with layer normalization, an LSTM, a U-Net.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Model, TensorType
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.quantization import is_affine
from tests.lquantizer.runs import QUICK
from tests.support import data_path

NAMES = ["two_inputs", "attention", "lstm", "u_net"]

MAY_BE_FLOAT = {
    "two_inputs": set(),
    "attention": {"SQUARED_DIFFERENCE", "SUB", "MUL", "MEAN", "ADD", "RSQRT"},
    "lstm": {"WHILE"},
    "u_net": set(),
}
"""What the report may list, and why: the variance of a layer normalization, whose small numbers
decide; graphs that are called."""
TESTED = 400
"""Images; half a point of them is two."""

REASONS = (
    "small inputs decide its result, and integers would lose them",
    "it calls graphs, which have integers for their weights alone",
)


def digits(part: str, count: int) -> tuple[Array, Array]:
    with np.load(data_path("mnist.npz")) as data:
        images = np.asarray(data[f"x_{part}"][:count] / 255, np.float32)
        return images, np.asarray(data[f"y_{part}"][:count], np.int64)


def two_inputs(keras: Any) -> Any:
    layers = keras.layers
    a, b = keras.Input((28, 14, 1)), keras.Input((28, 14, 1))
    left = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(a)
    right = layers.LeakyReLU()(layers.Conv2D(8, 3, strides=2, padding="same")(b))
    joined = layers.Concatenate()([left, right])
    gated = layers.Multiply()([joined, layers.Activation("sigmoid")(joined)])
    flat = layers.Flatten()(layers.MaxPooling2D()(gated))
    return keras.Model([a, b], layers.Dense(10, activation="softmax")(flat))


def attention(keras: Any) -> Any:
    layers = keras.layers
    x = keras.Input((14, 28))
    y = layers.Dense(16)(x)
    z = layers.LayerNormalization()(y)
    y = layers.Add()([y, layers.MultiHeadAttention(2, 8)(z, z)])
    z = layers.LayerNormalization()(y)
    y = layers.Add()([y, layers.Dense(16)(layers.Dense(32, activation="gelu")(z))])
    return keras.Model(x, layers.Dense(10, activation="softmax")(layers.Flatten()(y)))


def lstm(keras: Any) -> Any:
    x = keras.Input((14, 28))
    answer = keras.layers.Dense(10, activation="softmax")
    return keras.Model(x, answer(keras.layers.LSTM(64)(x)))


def u_net(keras: Any) -> Any:
    """Tells which pixels are part of the digit."""
    layers = keras.layers
    x = keras.Input((28, 28, 1))
    wide = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    deep = layers.Conv2D(8, 3, padding="same", activation="relu")(layers.MaxPooling2D()(wide))
    up = layers.Conv2DTranspose(4, 2, strides=2, activation="relu")(deep)
    joined = layers.Concatenate()([up, wide])
    return keras.Model(x, layers.Conv2D(1, 3, padding="same", activation="sigmoid")(joined))


MAKERS = {"two_inputs": two_inputs, "attention": attention, "lstm": lstm, "u_net": u_net}


def arguments(name: str, images: Array) -> list[Array]:
    if name == "two_inputs":
        return [images[:, :, :14, None], images[:, :, 14:, None]]
    return [images[..., None] if name == "u_net" else images[:, ::2]]


def trained(tensorflow: Any, name: str) -> Any:
    keras = tensorflow.keras
    keras.utils.set_random_seed(1)
    images, labels = digits("train", 1000 if name == "u_net" else 3000)
    model, inputs = MAKERS[name](keras), arguments(name, images)
    step, right = training_step(tensorflow, model), wanted(name, images, labels)
    for first in 2 * list(range(0, len(images), 50)):
        batch = slice(first, first + 50)
        step([x[batch] for x in inputs], right[batch].astype(np.float32))
    return model


def training_step(tensorflow: Any, model: Any) -> Any:
    """A step of Adam, traced once: ``fit`` of Keras traces it for longer than it trains."""
    losses, optimizer = tensorflow.keras.losses, tensorflow.keras.optimizers.Adam(1e-2)
    is_binary = model.output_shape[-1] == 1
    loss = losses.BinaryCrossentropy() if is_binary else losses.SparseCategoricalCrossentropy()
    variables = model.trainable_variables
    optimizer.build(variables)

    def step(inputs: list[Any], right: Any) -> None:
        with tensorflow.GradientTape() as tape:
            error = loss(right, model(inputs if len(inputs) > 1 else inputs[0], training=True))
        optimizer.apply(tape.gradient(error, variables))

    return tensorflow.function(step, autograph=False)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    tensorflow = pytest.importorskip("tensorflow", reason="needs the extra tensorflow")
    folder = tmp_path_factory.mktemp("keras")
    found = {}
    for name in NAMES:
        path = folder / f"{name}.keras"
        trained(tensorflow, name).save(path)
        found[name] = luciole.load(path)
    return found


@pytest.fixture(scope="module")
def nearest(networks: dict[str, Model]) -> Callable[[str], Model]:
    """Bytes without what takes long to learn, made once for each network."""
    choices: dict[str, Any] = {"rescale": "none", "rounding": "nearest", **QUICK}

    @cache
    def make(name: str) -> Model:
        data = feed(name, networks[name], digits("train", 30)[0])
        return luciole.quantize(networks[name], data, scheme="int8", **choices).model

    return make


def feed(name: str, model: Model, images: Array) -> dict[str, Array]:
    names = [value.name for value in model.graph.inputs]
    return dict(zip(names, arguments(name, images), strict=True))


def answers(model: Model, data: dict[str, Array]) -> Array:
    interpreter = luciole.Interpreter(model)
    count = len(next(iter(data.values())))
    runs = ({n: a[k : k + 1] for n, a in data.items()} for k in range(count))
    return np.concatenate([next(iter(interpreter.run(one).values())) for one in runs])


@pytest.fixture(scope="module")
def before(networks: dict[str, Model]) -> dict[str, Array]:
    """The float networks' decisions about the tested images."""
    images = digits("test", TESTED)[0]
    fed = {name: feed(name, model, images) for name, model in networks.items()}
    return {name: decided(name, answers(networks[name], data)) for name, data in fed.items()}


def wanted(name: str, images: Array, labels: Array) -> Array:
    return images[..., None] > 0.5 if name == "u_net" else labels


def decided(name: str, found: Array) -> Array:
    return found > 0.5 if name == "u_net" else found.argmax(-1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("scheme", "least"), [("int8", 0.97), ("int16x8", 0.985)])
def test_answers_are_those_of_the_float_network(
    networks: dict[str, Model], before: dict[str, Array], name: str, scheme: str, least: float
) -> None:
    model = networks[name]
    data = feed(name, model, digits("train", 60)[0])
    result = luciole.quantize(model, data, scheme=scheme, rescale="none", proof=False)
    kinds = {text.split()[0] for text in result.report.floats}
    assert kinds <= MAY_BE_FLOAT[name]
    assert all(text.endswith(REASONS) for text in result.report.floats)
    test = feed(name, model, digits("test", TESTED)[0])
    after = decided(name, answers(result.model, test))
    assert (before[name] == after).mean() >= least
    right = wanted(name, *digits("test", TESTED))
    hits = [(found == right).mean() for found in (before[name], after)]
    assert hits[0] > 0.75
    assert hits[1] >= hits[0] - 0.005


def test_products_of_attention_are_of_bytes(nearest: Callable[[str], Model]) -> None:
    """Of two computed tensors each."""
    products = [op for op in nearest("attention").graph.ops if isinstance(op, BatchMatMul)]
    operands = [v for op in products for v in (*op.operands, op.output) if v is not None]
    assert len(products) == 2
    assert {v.dtype for v in operands} == {TensorType.INT8}
    assert all(v.producer is not None for v in operands)


@pytest.mark.parametrize("name", NAMES)
def test_integers_are_those_of_litert(
    networks: dict[str, Model], nearest: Callable[[str], Model], name: str, tmp_path: Path
) -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    made, path = nearest(name), tmp_path / "q.tflite"
    for op in made.graph.ops:  # LiteRT's reference resolver stops there
        op.version = min(op.version, 6) if isinstance(op, DepthwiseConv2D) else op.version
    luciole.save(made, path)
    ours = luciole.Interpreter(path, keep_tensors=True)
    one = feed(name, networks[name], digits("train", 1)[0])
    ours.run(one)
    peer = Interpreter(
        str(path),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    peer.allocate_tensors()
    for detail in peer.get_input_details():
        peer.set_tensor(detail["index"], one[detail["name"]])
    peer.invoke()
    theirs = {d["name"]: d["index"] for d in peer.get_tensor_details()}
    compared = 0
    for number, value in enumerate(ours.graph.values):
        if value.producer is None or value.dtype != TensorType.INT8 or not is_affine(value):
            continue
        found, wanted = ours.get_tensor(number), peer.get_tensor(theirs[value.name])
        np.testing.assert_array_equal(found, wanted, value.name)
        compared += 1
    assert compared >= 4
