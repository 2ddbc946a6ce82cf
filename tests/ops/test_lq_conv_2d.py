"""LQ_CONV_2D: the reference and the compiled kernel against the formula.

Counts are integers, so only the sums of their products differ: by at most 1e-6 of the largest
result for the reference (float64) and 1e-5 for the compiled kernel (float32).

A kernel is compiled for a tile of pixels, planes and outputs, so that layers of the same bits share
it where their rows are as long as a tile and their outputs fill as many vectors.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from luciole.interpreter import Interpreter, compile_graph
from luciole.ir import Array
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.kernels.core.allocation import use
from luciole.kernels.layers.levels import counting
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.guard.memory import Poison
from tests.lq_conv_support import ConvLayer, oracle, random_conv, with_offsets
from tests.lq_support import check_parts, random_input
from tests.support import one_op


def check(layer: ConvLayer, x: Array, native: bool = True) -> None:
    """Reference and compiled kernel give what the formula gives."""
    wanted = oracle(layer, x)
    scale = max(float(np.abs(oracle(replace(layer, activation=Act.NONE), x)).max(initial=0)), 1e-30)
    found = [(layer.reference(x), 1e-6)] + ([(layer.native(x), 1e-5)] if native else [])
    for y, tolerance in found:
        assert y.dtype == np.float32
        assert y.shape == wanted.shape
        np.testing.assert_allclose(y, wanted, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("c", [1, 3, 31, 32, 33, 64, 70])
@pytest.mark.parametrize("o", [1, 16, 17, 40])
def test_any_number_of_channels_gives_what_the_formula_gives(c: int, o: int) -> None:
    check(with_offsets(random_conv((3, 3), c, o, 3, 2)), random_input((1, 5, 6, c)))


@pytest.mark.parametrize(("kx", "kw"), list(product(range(1, 9), range(1, 5))))
def test_the_reference_takes_any_width(kx: int, kw: int) -> None:
    check(with_offsets(random_conv((2, 2), 9, 3, kx, kw)), random_input((1, 3, 4, 9)), native=False)


@pytest.mark.parametrize(
    ("kx", "kw"),
    [(1, 1), (2, 2), (3, 3), (7, 4), (8, 4)],
)
def test_any_width_gives_what_the_formula_gives(kx: int, kw: int) -> None:
    layer = random_conv((3, 3), 37, 18, kx, kw)
    check(layer, random_input((1, 4, 6, 37)))
    check(with_offsets(layer), random_input((1, 4, 6, 37)))


@pytest.mark.parametrize(("kx", "kw"), [(7, 4), (3, 2)])
def test_an_input_s_basis_is_read_to_its_end_only(kx: int, kw: int) -> None:
    """Planes that are counted in several passes are more than the basis has elements."""
    before = use(Poison())
    try:
        check(with_offsets(random_conv((3, 3), 37, 18, kx, kw)), random_input((1, 4, 6, 37)))
    finally:
        use(before)


KERNELS = [(1, 1), (3, 3), (5, 3), (1, 4), (2, 2)]
STEPS = [((1, 1), (1, 1)), ((2, 1), (1, 1)), ((3, 2), (1, 1)), ((1, 1), (2, 3)), ((2, 2), (1, 2))]


@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("strides", "dilations"), STEPS)
def test_any_window_gives_what_the_formula_gives(
    padding: Padding, kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int]
) -> None:
    window: dict[str, Any] = {"padding": padding, "strides": strides, "dilations": dilations}
    layer = with_offsets(random_conv(kernel, 20, 5, 3, 2, **window))
    check(layer, random_input((1, 9, 15, 20)))


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (4, 1), (2, 2)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 3)])
def test_windows_that_are_larger_than_the_image(
    size: tuple[int, int], dilations: tuple[int, int]
) -> None:
    layer = random_conv((5, 4), 3, 50, 2, 2, dilations=dilations)
    check(with_offsets(layer), random_input((1, *size, 3)))


def test_a_window_that_meets_padding_alone_gives_the_bias() -> None:
    layer = with_offsets(random_conv((2, 2), 5, 50, 2, 2, dilations=(2, 2)))
    x = random_input((1, 1, 1, 5))
    assert layer.bias is not None
    for y in (layer.reference(x), layer.native(x)):
        assert y.reshape(-1).tolist() == layer.bias.tolist()


def test_images_of_a_batch_do_not_mix() -> None:
    layer = with_offsets(random_conv((3, 3), 20, 5, 1, 2))
    x = random_input((3, 4, 5, 20))
    together = layer.native(x)
    for image in range(3):
        np.testing.assert_array_equal(
            together[image : image + 1], layer.native(x[image : image + 1])
        )


@pytest.mark.parametrize("activation", [Act.NONE, Act.RELU_N1_TO_1, Act.TANH])
@pytest.mark.parametrize("offsets", [False, True])
def test_every_activation_after_bias_and_offsets(activation: Act, offsets: bool) -> None:
    layer = random_conv((3, 3), 20, 33, 1, 2)
    layer = with_offsets(layer) if offsets else layer
    x = random_input((1, 5, 5, 20))
    raw = oracle(layer, x)
    assert raw.min() < -1  # there is something to cut off on both sides
    assert raw.max() > 1
    check(replace(layer, activation=activation), x)


def test_a_bias_an_input_offset_and_a_weights_offset_alone() -> None:
    layer = random_conv((3, 3), 20, 5, 1, 2)
    x = random_input((1, 4, 5, 20))
    check(replace(layer, bias=np.linspace(-2, 2, 5, dtype=np.float32)), x)
    check(replace(layer, input_offset=-1.25), x)
    check(replace(layer, weights_offsets=np.array([0.1, 0, -0.2, 0.3, 0], np.float32)), x)


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1e-45, -1e-40, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 0.5]
)
@pytest.mark.parametrize("kx", [1, 3])
def test_inputs_that_are_all_one_extreme(value: float, kx: int) -> None:
    layer = with_offsets(random_conv((3, 3), 20, 5, kx, 2))
    check(layer, np.full((1, 4, 5, 20), value, np.float32))


@pytest.mark.parametrize("kx", [1, 3])
def test_extremes_between_ordinary_inputs(kx: int) -> None:
    x = random_input((1, 4, 5, 37))
    for start, value in enumerate((np.nan, np.inf, -np.inf, 1e-42, 0.0)):
        x[..., start::7] = value
    check(random_conv((3, 3), 37, 5, kx, 2), x)


def one_weight(scales: list[float]) -> ConvLayer:
    """A layer of 1 x 1 whose one weight of +1 shows the level that an input takes."""
    ones = np.ones((1, 1), np.float32)
    return ConvLayer(np.array(scales, np.float32), ones, np.ones((1, 1, 1, 1, 1), np.bool_))


def test_nan_is_the_lowest_level_and_the_infinities_are_the_ends() -> None:
    x = np.array([np.nan, -np.inf, np.inf] * 2, np.float32).reshape(1, 2, 3, 1)
    layer = one_weight([1.0, 0.5])
    for y in (layer.reference(x), layer.native(x)):
        assert y.reshape(-1).tolist() == [-1.5, -1.5, 1.5] * 2


@pytest.mark.parametrize("scales", [[0.5, 0.25], [0.25, 0.5], [-0.25, 0.5], [-0.5, -0.25]])
def test_inputs_exactly_on_thresholds_take_the_lower_level(scales: list[float]) -> None:
    """Levels -0.75 -0.25 0.25 0.75 with thresholds -0.5 0 0.5, whatever the basis' order."""
    edges = np.array([-0.5, 0, 0.5], np.float32)
    above = np.nextafter(edges, np.float32(np.inf))
    x = np.concatenate([edges, above]).reshape(1, 2, 3, 1)
    layer = one_weight(scales)
    for y in (layer.reference(x), layer.native(x)):
        assert y.reshape(-1).tolist() == [-0.75, -0.25, 0.25, -0.25, 0.25, 0.75]


CODES_THAT_RISE = [0.25, -1.0, 0.5]
CODES_THAT_DO_NOT = [0.5, -0.7, 0.6]


@pytest.mark.parametrize("scales", [CODES_THAT_RISE, CODES_THAT_DO_NOT])
def test_inputs_on_the_thresholds_of_three_element_bases(scales: list[float]) -> None:
    signs = np.array([[1 if c >> i & 1 else -1 for i in range(3)] for c in range(8)])
    rising = np.sort(signs @ np.array(scales, np.float32).astype(np.float64))
    between = ((rising[1:] + rising[:-1]) / 2).astype(np.float32)
    x = np.resize([*between, *np.nextafter(between, np.float32(9))], (1, 4, 5, 37))
    layer = replace(random_conv((3, 3), 37, 5, 3, 2), input_scales=np.array(scales, np.float32))
    check(layer, x.astype(np.float32))


@pytest.mark.parametrize(
    "scales", [[0.0], [0.0] * 3, [1.0, 1.0, 0.5], [1.0, -1.0, 3.0], [1.0, 0.0, 1.0]]
)
def test_bases_that_repeat_levels(scales: list[float]) -> None:
    layer = random_conv((3, 3), 20, 5, 1, 2)
    check(replace(layer, input_scales=np.array(scales, np.float32)), random_input((1, 4, 5, 20)))


def test_padding_bits_that_a_file_left_set_do_not_count() -> None:
    layer = random_conv((3, 3), 40, 4, 1, 2)
    x = random_input((1, 4, 5, 40))
    model = layer.model(x)
    binary = model.graph.ops[0].operands[3]
    assert binary is not None
    assert binary.data is not None
    filled = binary.data.copy()
    filled[..., 1] |= -1 << 8
    binary.set_data(filled)
    y = Interpreter(model).run(x)["y0"]
    np.testing.assert_allclose(y, oracle(layer, x), rtol=0, atol=1e-5 * np.abs(y).max())


def test_scales_that_are_not_constant_are_read_at_every_run() -> None:
    layer = random_conv((3, 3), 20, 4, 2, 2)
    x = random_input((1, 4, 5, 20))
    model = one_op(LQConv2D, layer.operands(x), (3,), **layer.attributes())
    interpreter = Interpreter(model)
    for factor in (1, 3):
        scaled = replace(layer, input_scales=layer.input_scales * factor)
        given = scaled.operands(x)
        y = interpreter.run({"x0": x, "x1": given[1], "x2": given[2]})["y0"]
        np.testing.assert_allclose(y, oracle(scaled, x), rtol=0, atol=1e-5 * np.abs(y).max())


def test_a_kernel_as_large_as_a_large_image_is_left_to_the_reference() -> None:
    layer = random_conv((1, 5000), 1, 1, 1, 1)
    model = layer.model(np.zeros((1, 1, 5000, 1), np.float32))
    (step,) = compile_graph(model.graph, {}).steps
    assert step.native is None


@pytest.mark.parametrize("seed", range(8))
def test_random_layers_give_what_the_formula_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    c, o = int(rng.choice([2, 32, 45, 64])), int(rng.choice([3, 16, 32, 45]))
    layer = random_conv(
        *(kernel, c, o, 3, 2, seed),
        padding=Padding(int(rng.integers(2))),
        strides=(int(rng.integers(1, 4)), int(rng.integers(1, 4))),
        dilations=(int(rng.integers(1, 3)), int(rng.integers(1, 3))),
    )
    x = random_input((int(rng.integers(1, 3)), *(int(n) for n in rng.integers(9, 13, 2)), c), seed)
    check(with_offsets(layer) if seed % 2 else layer, x)


PARTS: list[tuple[tuple[int, int], int, dict[str, Any]]] = [
    ((3, 3), 32, {}),
    ((3, 3), 20, {"strides": (2, 2)}),
    ((1, 1), 33, {}),
    ((1, 5), 64, {"padding": Padding.VALID}),
    ((5, 3), 7, {"padding": Padding.VALID, "strides": (3, 1), "dilations": (1, 2)}),
    ((3, 3), 40, {"dilations": (4, 3)}),
]


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize(("kernel", "channels", "window"), PARTS)
def test_parts_for_threads_do_together_what_one_does(
    threads: int,
    kernel: tuple[int, int],
    channels: int,
    window: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "LEAST_WORK", 1)
    layer = with_offsets(random_conv(kernel, channels, 37, 3, 2, **window))
    for shape in ((2, 13, 11, channels), (1, 1 if kernel[0] == 1 else 17, 29, channels)):
        x = random_input(shape)
        check_parts(layer.model(x), x, threads)


def test_a_layer_of_little_work_is_not_shared() -> None:
    x = random_input((1, 5, 5, 20))
    plan = compile_graph(random_conv((3, 3), 20, 5, 1, 2).model(x).graph, {})
    step = plan.steps[0].native
    assert step is not None
    assert step.split is not None
    assert not step.split(2)
