"""What FAKE_QUANT operators say becomes scales, and the network computes what it was trained to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.interpreter import Interpreter
from luciole.ir import Model, Op, TensorType, Value
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_unary import Sin
from luciole.ir.ops.fake_quant import FakeQuant, limits
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.quantization import Affine, affine_of
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.rewrite.integers import weight_slot
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.lquantizer.networks import Builder, images
from tests.lquantizer.runs import QUICK, integers_of_litert, is_float, records
from tests.networks import network, random


class Trained(Builder):
    """Appends operators whose results, and weights, are rounded by FAKE_QUANT."""

    def rounded(self, value: Value, low: float, high: float, bits: int = 8) -> Value:
        narrow = value.is_constant
        return self.add(FakeQuant(value, min=low, max=high, num_bits=bits, narrow_range=narrow))

    def layer(self, x: Value, shape: tuple[int, ...], reach: float, bits: int = 8) -> Value:
        weights = self.weights(*shape)
        data = weights.data
        assert data is not None
        peak = float(np.abs(data).max())
        self.conv = Conv2D(
            x,
            self.rounded(weights, -peak, peak, bits),
            self.constant(random(self.number, shape[0]) * np.float32(0.1)),
            stride_h=1,
            stride_w=1,
            activation=Act.RELU,
        )
        return self.rounded(self.add(self.conv), 0.0, reach)


def trained(bits: int = 8, between: int = 8) -> Model:
    """Two layers, a pool, a joined pair and a dense layer, everything rounded where QAT does."""
    b = Trained()
    x = b.rounded(b.graph.add_input("x", (1, 6, 6, 3)), -2.0, 2.1, between)
    left, right = (b.layer(x, (4, 3, 3, 3), reach, bits) for reach in (2.5, 1.5))
    joined = b.rounded(b.add(Concatenation((left, right), axis=3)), 0.0, 2.5)
    pool = b.add(
        MaxPool2D(
            joined, padding=Padding.VALID, stride_w=2, stride_h=2, filter_width=2, filter_height=2
        )
    )
    flat = b.add(Reshape(pool, b.constant(np.array([-1, 72], np.int32)), new_shape=(-1, 72)))
    weights = b.rounded(b.weights(5, 72), -0.3, 0.3, bits)
    dense = b.add(FullyConnected(flat, weights, b.weights(5)))
    b.graph.outputs = [b.rounded(dense, -3.0, 3.0)]
    return b.model


def fake_quants(model: Model) -> list[FakeQuant]:
    return [op for op in model.graph.ops if isinstance(op, FakeQuant)]


def given(model: Model) -> dict[str, np.ndarray]:
    return {"x": random(8, *model.graph.inputs[0].dims)}


@pytest.mark.parametrize("with_data", [False, True])
def test_every_range_is_that_of_its_operator(with_data: bool) -> None:
    model = trained()
    wanted = {
        tuple(round(float(end), 5) for end in limits(op)[:2])
        for op in fake_quants(model)
        if not op.inputs.is_constant
    }
    data = records(model) if with_data else None
    result = luciole.quantize(model, data, scheme="from_fake_quant")
    found = set()
    for op in result.model.graph.ops:
        if op.output.dtype == TensorType.INT8:
            low, high = Affine.of(op.output, "it").range
            found.add((round(float(low[0]), 5), round(float(high[0]), 5)))
    assert found == wanted
    kinds = [type(op) for op in result.model.graph.ops if any(is_float(v) for v in tensors(op))]
    assert kinds == [Quantize, Dequantize]
    assert (result.report.floats, result.report.warnings) == ([], [])


def tensors(op: Op) -> list[Value | None]:
    return [*op.operands, *op.results]


def test_weights_are_those_that_were_trained() -> None:
    model = trained()
    result = luciole.quantize(model, scheme="from_fake_quant").model
    rounds = [op for op in fake_quants(model) if op.inputs.is_constant]
    layers = [op for op in result.graph.ops if isinstance(op, Conv2D | FullyConnected)]
    assert len(rounds) == len(layers) == 3
    for fake, layer in zip(rounds, layers, strict=True):
        value = weight_slot(layer)[1]
        real = Affine.of(value, "it").decode(np.asarray(value.data))
        (rounded,) = Interpreter(alone(fake)).run({}).values()
        step = float(limits(fake)[2])
        assert np.abs(real - rounded).max() < step / 1000


def alone(fake: FakeQuant) -> Model:
    b = Builder()
    data = fake.inputs.data
    assert data is not None
    b.graph.outputs = [b.add(fake.clone([b.constant(data)]))]
    return b.model


@pytest.mark.parametrize("bits", [8, 4])
def test_answers_are_those_of_the_trained_network(bits: int) -> None:
    model = trained(bits)
    made = luciole.quantize(model, scheme="from_fake_quant").model
    types = {weight_slot(op)[1].dtype for op in made.graph.ops if isinstance(op, Conv2D)}
    assert types == {TensorType.INT4 if bits == 4 else TensorType.INT8}
    x = given(model)
    (wanted,) = Interpreter(model).run(x).values()
    (found,) = Interpreter(made).run(x).values()
    assert np.abs(found - wanted).max() <= 2 * 6 / 255 + 1e-5  # steps of the last FAKE_QUANT


def test_more_than_8_bits_between_operators_are_16() -> None:
    made = luciole.quantize(trained(between=16), scheme="from_fake_quant").model
    inside = {v.dtype for v in made.graph.values if v.producer is not None and not is_float(v)}
    assert inside == {TensorType.INT16}


def test_litert_computes_the_same_integers(tmp_path: Path) -> None:
    made = luciole.quantize(trained(), scheme="from_fake_quant").model
    path = tmp_path / "q.tflite"
    luciole.save(made, path)
    ours = luciole.Interpreter(path, keep_tensors=True)
    x = given(made)
    ours.run(x)
    named = {v.name: k for k, v in enumerate(ours.graph.values) if v.producer is not None}
    theirs = integers_of_litert(path, x["x"])
    both = named.keys() & theirs.keys()
    assert len(both) >= 7
    for name in both:
        np.testing.assert_array_equal(ours.get_tensor(named[name]), theirs[name], name)


def half_trained() -> Model:
    """A layer with ranges, a sine, and a layer whose result has none."""
    b = Trained()
    x = b.rounded(b.graph.add_input("x", (1, 6, 6, 3)), -2.0, 2.0)
    y = b.layer(x, (4, 3, 3, 3), 2.0)
    last = Conv2D(b.add(Sin(y)), b.weights(2, 1, 1, 4), None, stride_h=1, stride_w=1)
    b.graph.outputs = [b.add(last)]
    return b.model


def test_without_data_the_rest_stays_float_and_is_listed() -> None:
    result = luciole.quantize(half_trained(), scheme="from_fake_quant")
    kinds = [op.kind for op in result.model.graph.ops]
    assert kinds == ["QUANTIZE", "CONV_2D", "DEQUANTIZE", "SIN", "CONV_2D"]
    assert [text.split()[0] for text in result.report.floats] == ["SIN", "CONV_2D"]
    assert result.report.floats[0].endswith("the scheme has no form for it")
    assert result.report.floats[1].endswith("nothing says the range of what it reads or gives")


def test_with_data_the_rest_has_their_ranges_and_it_is_said() -> None:
    model = half_trained()
    result = luciole.quantize(model, records(model), scheme="from_fake_quant")
    kinds = [op.kind for op in result.model.graph.ops]
    assert kinds == [
        "QUANTIZE",
        "CONV_2D",
        "DEQUANTIZE",
        "SIN",
        "QUANTIZE",
        "CONV_2D",
        "DEQUANTIZE",
    ]
    (warning,) = [text for text in result.report.warnings if "FAKE_QUANT" in text]
    assert warning.startswith("no FAKE_QUANT says the range of ")
    assert warning.endswith(": it is from the data")


@pytest.mark.parametrize("scheme", ["int8", "w4a8", "int16x8"])
def test_pairs_of_quantize_and_dequantize_say_the_same(scheme: str) -> None:
    """A network of integers is what its own simulation says: every scale and every weight."""
    model = images()
    data = records(model)
    made = luciole.quantize(model, data, scheme=scheme, **QUICK).model
    again = luciole.quantize(luciole.simulate(made).model, scheme="from_fake_quant", proof=False)
    assert again.report.floats == again.report.warnings == []
    assert [op.kind for op in again.model.graph.ops] == [op.kind for op in made.graph.ops]
    for op, other in zip(again.model.graph.ops, made.graph.ops, strict=True):
        for value, twin in zip(tensors(op), tensors(other), strict=True):
            if value is not None and twin is not None and not is_float(value):
                check_same(value, twin)


def check_same(value: Value, twin: Value) -> None:
    """Two tensors of integers have one scale, and constants the same codes; weights of 4 bits have
    8, as those of some other layer do.
    """
    assert value.dtype == twin.dtype or (value.is_constant and twin.dtype == TensorType.INT4)
    affine, other = affine_of(value), affine_of(twin)
    assert (affine is None) == (other is None)
    if affine is not None and other is not None:
        np.testing.assert_allclose(affine.scale, other.scale, rtol=1e-6)
        np.testing.assert_array_equal(affine.parameters[1], other.parameters[1])
    if value.is_constant:
        np.testing.assert_array_equal(value.contents, twin.contents)


def test_a_pair_with_several_scales_between_operators_is_refused() -> None:
    model = luciole.simulate(
        luciole.quantize(images(), records(images(), 4), scheme="int8", **QUICK).model
    ).model
    (pair, *_) = [op for op in model.graph.ops if isinstance(op, Quantize)]
    count = pair.output.dims[-1]
    several = Affine.channels(
        np.ones(count), np.zeros(count), len(pair.output.dims) - 1, TensorType.INT8
    )
    pair.output.quantization = several.table()
    with pytest.raises(QuantizeError, match="a tensor between operators takes one scale"):
        luciole.quantize(model, scheme="from_fake_quant")


def test_other_schemes_take_them_out_and_say_so() -> None:
    model = trained()
    result = luciole.quantize(model, records(model), scheme="int8", rescale="none", **QUICK)
    assert not fake_quants(result.model)
    assert "5 FAKE_QUANT operators were taken out" in result.report.warnings[0]


def test_from_fake_quant_refuses_a_network_without_any() -> None:
    with pytest.raises(QuantizeError, match="no FAKE_QUANT operator says what is quantized"):
        luciole.quantize(network(), scheme="from_fake_quant")


@pytest.mark.parametrize(
    ("low", "high", "bits", "sentence"),
    [
        (1.0, 1.0, 8, "no range of numbers"),
        (float("nan"), 1.0, 8, "no range of numbers"),
        (0.0, 1.0, 40, "num_bits is 40"),
    ],
)
def test_from_fake_quant_refuses_impossible_ranges(
    low: float, high: float, bits: int, sentence: str
) -> None:
    b = Trained()
    x = b.rounded(b.graph.add_input("x", (1, 6, 6, 3)), low, high, bits)
    b.graph.outputs = [b.layer(x, (4, 3, 3, 3), 2.0)]
    with pytest.raises(QuantizeError, match=sentence):
        luciole.quantize(b.model, scheme="from_fake_quant")
