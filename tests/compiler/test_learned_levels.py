"""LQ_FULLY_CONNECTED in C: against the formula of the file format, whatever the shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.compiler import Compiled, compile_model
from luciole.compiler.host import build_library
from luciole.compiler.options import CompileOptions, OptionError, Transform
from luciole.compiler.self_test import random_records, self_test
from luciole.ir import Array, Model, TensorType, UnsupportedError, Value, learned_levels
from luciole.kernels.layers.levels.layer import LevelsLayer
from luciole.kernels.portable.calls import Vectors
from luciole.kernels.portable.levels import FixedLayer, lane_words
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.tools.random_models import dense, in_int8, lq_dense
from tests.compiler.side_by_side import SideBySide
from tests.compiler_support import (
    COMPILERS,
    built,
    close,
    interpreted,
    needs_compiler,
    program_of,
    run_sound,
)
from tests.lq_support import Layer, oracle, packed, random_input, random_layer, with_offsets

SHAPES = [
    (1, 1, 1, 1),
    (7, 3, 2, 1),
    (33, 9, 3, 2),
    (64, 40, 1, 3),
    (300, 17, 4, 4),
    (530, 5, 2, 2),
]


def check(layers: Sequence[tuple[Layer, Array]], folder: Path) -> None:
    """Compare layers, beside each other in a program, with the formula."""
    every = SideBySide()
    for layer, x in layers:
        every.join(layer.model(x), [x])
    found = built(program_of(every.model), folder).run(every.given)
    for (layer, x), y in zip(layers, found, strict=True):
        close(y, oracle(layer, x))


@needs_compiler
def test_a_layer_is_what_the_format_says(tmp_path: Path) -> None:
    layers = [(random_layer(*shape), random_input((3, shape[0]))) for shape in SHAPES]
    check(layers, tmp_path)


@needs_compiler
def test_offsets_and_activations(tmp_path: Path) -> None:
    layer, x = with_offsets(random_layer(37, 11, 2, 3)), random_input((2, 37))
    activations = (Act.TANH, Act.RELU, Act.RELU6, Act.RELU_N1_TO_1)
    check([(replace(layer, activation=each), x) for each in activations], tmp_path)


@needs_compiler
def test_inputs_that_mostly_share_a_level_and_that_are_no_numbers(tmp_path: Path) -> None:
    layer, x = random_layer(260, 6, 3, 2), random_input((4, 260))
    x[0], x[1, 7:], x[2, ::2], x[3, :2] = 0.0, -9.0, np.nan, (np.inf, -np.inf)
    check([(layer, x)], tmp_path)


@needs_compiler
def test_a_tie_goes_to_the_lower_level(tmp_path: Path) -> None:
    signs = np.ones((1, 1, 4), np.bool_)
    layer = Layer(np.array([0.5, 1.0], np.float32), np.ones((1, 1), np.float32), signs)
    x = np.array([[-1.0, 0.0, -0.0, 1.0]], np.float32)  # each lies between two levels
    check([(layer, x)], tmp_path)


@needs_compiler
@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_a_network_gives_the_interpreters_scores(bits: int, tmp_path: Path) -> None:
    model = lq_dense((50, 70, 33, 10), bits)
    compiled = built(program_of(model), tmp_path)
    rng = np.random.default_rng(bits)
    far = 0
    for _ in range(40):
        given = {"x": rng.normal(size=(1, 50)).astype(np.float32)}
        (y,), (wanted,) = compiled.run(given), interpreted(model, given)
        far += np.abs(y - wanted).max() > 1e-4
    assert far <= 1, "a hidden value may lie on a threshold"


def test_between_input_and_last_layer_there_are_no_floats() -> None:
    model = lq_dense((50, 70, 33, 10), 2)
    program = program_of(model, target="cortex-m0plus", input="bytes")
    names = [call.function for call in program.calls]
    assert names == ["luc_bytes_of_bytes", *["luc_lq_fully_connected"] * 3]
    assert program.outputs[0].places is not None
    code = re.sub(r"/\*.*?\*/", "", program.source, flags=re.S)
    assert "luc_weigh" in code
    assert not re.search(r"\b(float|double)\b|\d\.\d", code)


@needs_compiler
def test_fixed_point_and_classes(tmp_path: Path) -> None:
    model = lq_dense((40, 30, 10), 2)
    given = {"x": random_input((1, 40))}
    fixed = built(program_of(model, output="fixed"), tmp_path, "a.so")
    (scores,), (places,) = fixed.run(given), fixed.places
    (chosen,) = built(program_of(model, output="class"), tmp_path, "b.so").run(given)
    (wanted,) = interpreted(model, given)
    powers = np.exp(scores * 2.0 ** -(places or 0))
    close(powers / powers.sum(), wanted)
    assert chosen.tolist() == [wanted.argmax()]


@needs_compiler
@pytest.mark.parametrize("make", [lambda m: m, in_int8], ids=["float", "int8"])
def test_classes_of_floats_and_bytes(make: Callable[[Model], Model], tmp_path: Path) -> None:
    model = make(dense((20, 9)))
    compiled = built(program_of(model, output="class"), tmp_path)
    for seed in range(8):
        given = {"x": random_input((1, 20), seed)}
        if make is in_int8:
            given = {"x": np.clip(given["x"] * 40, -128, 127).astype(np.int8)}
        (chosen,), (scores,) = compiled.run(given), interpreted(model, given)
        assert chosen.tolist() == [scores.argmax()]


@needs_compiler
def test_bytes_are_what_preprocessing_makes_of_them(tmp_path: Path) -> None:
    model = lq_dense((40, 30, 10), 3)
    options = CompileOptions("net", "bytes", preprocess=[lambda x: (x - 100) / 70])
    program = compile_model(model, options)
    x = np.random.default_rng(3).integers(0, 256, (1, 40), np.uint8)
    (y,) = built(program, tmp_path).run({"x": x})
    (wanted,) = interpreted(model, {"x": ((x.astype(np.float32) - 100) / 70).astype(np.float32)})
    close(y, wanted)
    assert program.calls[0].function == "luc_bytes_of_bytes"


@pytest.mark.parametrize(
    ("preprocess", "reason"),
    [
        (lambda x: x[:100], r"preprocess makes \[100\] of all bytes, \[256\]: it is to take each"),
        (lambda x: x[None], r"preprocess makes \[1,256\] of all bytes"),
        (lambda x: x.mean(), r"preprocess makes \[\] of all bytes"),
        (lambda x: x.reshape(3, -1), r"preprocess fails \(ValueError: cannot reshape"),
    ],
)
def test_compile_refuses_preprocessing_that_is_not_elementwise(
    preprocess: Transform, reason: str, tmp_path: Path
) -> None:
    model = lq_dense((40, 30, 10), 3)
    with pytest.raises(OptionError, match=f"^input 'x': {reason}"):
        luciole.compile(model, tmp_path, "net", input="bytes", preprocess=preprocess)
    with pytest.raises(OptionError, match=r"^preprocess is of bytes: give input='bytes'"):
        luciole.compile(model, tmp_path, "net", preprocess=preprocess)


@needs_compiler
@pytest.mark.parametrize(
    ("compiler", "choices"),
    [
        *((compiler, {"arena": "caller", "input": "bytes"}) for compiler in COMPILERS),
        *((compiler, {}) for compiler in COMPILERS[:1]),
    ],
)
def test_a_program_is_clean_and_passes_its_own_test(
    compiler: str, choices: dict[str, str], tmp_path: Path
) -> None:
    program = program_of(lq_dense((40, 37, 10), 3), **choices)
    test = self_test(program, built(program, tmp_path), random_records(program))
    assert run_sound(program, tmp_path, test, compiler) == 0
    wrong = test.replace("wanted_0[40] = {", "wanted_0[40] = {9.0f + ", 1)
    assert wrong != test
    assert run_sound(program, tmp_path, wrong, compiler) == 1


WIDE = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "native")
"""Targets whose registers hold several words; what they compute any machine compiles. ``aarch64``
has the code of the first one.
"""


VECTORED = [
    *(zip((1, 2, 3, 4), COMPILERS[:1] * 4, (WIDE[1:2], WIDE[:1], WIDE[2:3], WIDE), strict=False)),
    *((4, compiler, WIDE[2:]) for compiler in COMPILERS[1:]),
]
"""Widths, compilers and targets: every width by the first compiler, the last by the others."""


@needs_compiler
@pytest.mark.parametrize(("bits", "compiler", "targets"), VECTORED)
def test_vectors_give_the_same_bits(
    bits: int,
    compiler: str,
    targets: Sequence[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("luciole.compiler.targets.COMPILERS", (compiler,))
    model = lq_dense((83, 70, 33, 300, 10), bits, rows=2)
    x = random_input((2, 83))
    x[0, :60], x[1, 7:9] = 0.0, (np.nan, -0.0)
    (wanted,) = built(program_of(model, "model", "fixed"), tmp_path, "one.so").run({"x": x})
    for target in targets:
        program = program_of(model, "model", "fixed", target)
        (found,) = built(program, tmp_path, f"{target}.so").run({"x": x})
        np.testing.assert_array_equal(found, wanted)


@needs_compiler
@pytest.mark.parametrize("bits", [1, 3])
def test_this_machines_vectors_give_the_same_bits(bits: int, tmp_path: Path) -> None:
    model = with_offsets(random_layer(300, 50, bits, 3)).model(random_input((3, 300)))
    x = random_input((3, 300), seed=7)
    name = model.graph.inputs[0].name
    found = []
    for target in ("portable", "native"):
        build_library(program_of(model, target=target), tmp_path / f"{target}.so")
        found += Compiled(tmp_path / f"{target}.so").run({name: x})
    np.testing.assert_array_equal(found[0], found[1])


def test_whether_bits_are_counted_or_added_depends_on_the_layer() -> None:
    x, y = (Value(name, TensorType.FLOAT32, (1, 9)) for name in "xy")
    for inputs, outputs, function in (
        (784, 690, "luc_lq_fully_connected"),
        (690, 9, "luc_lq_counted"),
    ):
        layer = fixed_layer(random_layer(inputs, outputs, 3, 3))
        assert layer.call(x, y, 1, Vectors(16, counts_bits=True)).function == function
        assert layer.call(x, y, 1, Vectors(16)).function == "luc_lq_fully_connected"


def fixed_layer(layer: Layer) -> FixedLayer:
    binary, n = packed(layer.signs), layer.signs.shape[-1]
    given = (layer.input_scales, layer.weights_scales, binary, layer.bias, layer.weights_offsets)
    return FixedLayer(LevelsLayer(n, layer.input_offset, layer.activation, *given))


def test_results_fit_into_32_bits_and_are_as_near_as_is_said() -> None:
    for bias in (1e-3, 1.0, 1e6):
        layer = replace(random_layer(100, 4, 3, 2), bias=np.full(4, bias, np.float32))
        fixed = fixed_layer(layer)
        largest = max(abs(np.abs(layer.weights_scales).sum(1) * 400).max(), bias)
        assert 2**31 > largest * 2.0**fixed.places > 2**22
        assert fixed.error < 1e-3 * max(bias, 1)


def test_lanes_come_out_in_order() -> None:
    rng = np.random.default_rng(0)
    lanes = rng.integers(0, 2, (40, 5)).astype(np.bool_)
    words = lane_words(lanes).reshape(2, 6)
    assert words[:, 5].tolist() == [0, 0]
    for lane in range(40):
        bit = 8 * (lane % 4) + lane % 32 // 4
        assert (words[lane // 32, :5] >> bit & 1).tolist() == lanes[lane].tolist()


def test_it_refuses_more_bits_than_c_takes() -> None:
    layer, x = random_layer(9, 2, 5, 1), random_input((1, 9))
    with pytest.raises(UnsupportedError, match="inputs have 5 bits, in C up to 4"):
        program_of(layer.model(x))


def test_it_refuses_numbers_without_a_fixed_point() -> None:
    layer, x = random_layer(9, 2, 2, 1), random_input((1, 9))
    for scale in (np.inf, np.nan, 1e-38):
        odd = replace(layer, weights_scales=np.full((2, 1), scale, np.float32))
        with pytest.raises(UnsupportedError, match=r"not finite|no common fixed point"):
            program_of(odd.model(x))


def test_it_refuses_an_output_so_large_that_the_others_have_no_places(tmp_path: Path) -> None:
    """A thousand times larger is fine still, and within what the program states."""
    layer, x = random_layer(40, 9, 2, 2), random_input((1, 40))
    for factor, is_refused in ((1e3, False), (1e9, True), (1e20, True)):
        layer.weights_scales[3] *= np.float32(factor)
        model = layer.model(x)
        if is_refused:
            with pytest.raises(UnsupportedError, match=r"half of its outputs reach .* another"):
                program_of(model)
            continue
        program = program_of(model)
        stated = max(call.fixed.error for call in program.calls if call.fixed)
        (found,) = built(program, tmp_path).run({model.graph.inputs[0].name: x})
        others = np.arange(9) != 3
        off = np.abs(found - oracle(layer, x))[:, others].max()
        assert off <= stated < 0.01


def test_it_refuses_an_offset_that_is_no_number() -> None:
    x = random_input((1, 9))
    odd = replace(random_layer(9, 3, 1, 1), input_offset=np.nan)
    with pytest.raises(UnsupportedError, match="bases, biases or offsets are not finite"):
        program_of(odd.model(x))


def test_it_refuses_what_does_not_suit_the_model() -> None:
    model = lq_dense((9, 3), 2)
    with pytest.raises(OptionError, match="is float: give bytes or float"):
        program_of(model, input="quantized")
    with pytest.raises(OptionError, match="letters, digits"):
        CompileOptions("9 lives")
    with pytest.raises(OptionError, match="target is 'z80': it is one of portable"):
        program_of(model, target="z80")


def test_packing_is_that_of_the_format() -> None:
    signs = random_layer(70, 3, 1, 2).signs
    np.testing.assert_array_equal(learned_levels.unpack(packed(signs), 70), signs)
