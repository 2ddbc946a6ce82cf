"""LQ_CONV_2D in C: against the formula of the file format, whatever the window; and what stands
between such layers, in fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.compiler.self_test import random_records, self_test
from luciole.ir import Array, Model, Op, TensorType, UnsupportedError, Value
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reduce import Mean
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from luciole.tools.random_models import lq_convolution
from tests.compiler.side_by_side import SideBySide
from tests.compiler_support import (
    COMPILERS,
    built,
    interpreted,
    needs_compiler,
    program_of,
    run_sound,
)
from tests.lq_conv_support import ConvLayer, oracle, random_conv, with_offsets
from tests.lq_support import random_input
from tests.support import Affine

pytestmark = needs_compiler
BYTES = TensorType.INT8


def check(layers: Sequence[tuple[ConvLayer, Array]], folder: Path) -> None:
    """Compare layers, beside each other in a program. Differences are those that the program
    states, of the largest result.
    """
    every = SideBySide()
    for layer, x in layers:
        every.join(layer.model(x), [x])
    results = built(program_of(every.model), folder).run(every.given)
    for (layer, x), found in zip(layers, results, strict=True):
        scale = float(np.abs(oracle(replace(layer, activation=Act.NONE), x)).max())
        within = 1e-5 * max(scale, 1e-30)
        said = str(layer.attributes())
        np.testing.assert_allclose(found, oracle(layer, x), rtol=0, atol=within, err_msg=said)


def test_any_width_gives_what_the_formula_gives(tmp_path: Path) -> None:
    widths = [(1, 1), (2, 2), (1, 4), (3, 1), (3, 3), (4, 2), (4, 4)]
    layers = [random_conv((3, 3), 19, 11, *bits) for bits in widths]
    x = random_input((1, 4, 6, 19))
    check([(each, x) for one in layers for each in (one, with_offsets(one))], tmp_path)


WINDOWS = [
    ((1, 1), Padding.SAME, (1, 1), (1, 1)),
    ((1, 1), Padding.VALID, (2, 3), (1, 1)),
    ((3, 3), Padding.SAME, (2, 2), (1, 1)),
    ((3, 3), Padding.VALID, (2, 1), (1, 1)),
    ((1, 4), Padding.SAME, (1, 1), (2, 3)),
    ((2, 2), Padding.VALID, (3, 2), (1, 2)),
    ((3, 2), Padding.SAME, (1, 1), (2, 1)),
    ((2, 3), Padding.SAME, (5, 1), (1, 2)),
    ((2, 2), Padding.SAME, (1, 3), (3, 1)),
]
"""Kernel, padding, strides, dilations."""


def test_any_window_gives_what_the_formula_gives(tmp_path: Path) -> None:
    layers = []
    for kernel, padding, strides, dilations in WINDOWS:
        window: dict[str, Any] = {"padding": padding, "strides": strides, "dilations": dilations}
        layer = with_offsets(random_conv(kernel, 5, 3, 2, 2, **window))
        layers.append((layer, random_input((2, 7, 11, 5))))
    check(layers, tmp_path)


def test_windows_larger_than_the_image(tmp_path: Path) -> None:
    layer = with_offsets(random_conv((5, 4), 3, 2, 1, 2, dilations=(2, 3)))
    sizes = [(1, 1), (1, 7), (2, 2)]
    check([(layer, random_input((1, *size, 3))) for size in sizes], tmp_path)


def test_a_window_that_meets_padding_alone_gives_the_bias(tmp_path: Path) -> None:
    layer = with_offsets(random_conv((2, 2), 5, 3, 1, 2, dilations=(2, 2)))
    check([(layer, random_input((1, 1, 1, 5)))], tmp_path)


def test_many_inputs_of_a_level_make_several_segments(tmp_path: Path) -> None:
    layer, x = random_conv((3, 3), 70, 40, 2, 2), np.full((1, 3, 4, 70), 9, np.float32)
    x[0, 1] = random_input((4, 70))
    check([(layer, x)], tmp_path)


def in_between(*reductions: Callable[[Model, Value], Op]) -> Model:
    """A sum of bytes and of a convolution, one of two convolutions, pools, and bytes again."""
    model = lq_convolution(8, 6, 2)
    (first,) = model.graph.ops
    codes = appended(model, Quantize(model.graph.inputs[0]), Affine(0.05, 3, dtype=BYTES))
    real = appended(model, Dequantize(codes))
    both = Add(real, appended(model, like(first, real)))
    both.activation = Act.RELU
    total = appended(model, both)
    last = Add(appended(model, like(first, total)), appended(model, like(first, total)))
    large, outputs = appended(model, last), list[Value]()
    for reduced in reductions:
        shrunk = appended(model, reduced(model, large))
        outputs += [shrunk, appended(model, Quantize(shrunk), Affine(0.1, -5, dtype=BYTES))]
    model.graph.outputs = outputs
    model.graph.remove(first)
    return model


def appended(model: Model, op: Op, affine: Affine | None = None) -> Value:
    model.graph.append(op, f"t{len(model.graph.values)}")
    if affine is not None:
        affine.give(op.results[0])
    return op.results[0]


def like(op: Op, x: Value) -> Op:
    """The same layer, of another tensor, without its activation."""
    found = op.clone([x, *op.operands[1:]])
    found.activation = Act.NONE  # type: ignore[attr-defined]  # it is a convolution
    return found


def pool(cls: type[AveragePool2D | MaxPool2D], x: Value) -> Op:
    op = cls(x)
    op.filter_height, op.filter_width, op.stride_h, op.stride_w = 3, 2, 2, 1
    op.padding = Padding.SAME
    return op


def mean(model: Model, x: Value) -> Op:
    return Mean(x, model.graph.add_constant("axes", np.array([1, 2], np.int32)))


SHRINKING: dict[str, Callable[[Model, Value], Op]] = {
    "average": lambda model, x: pool(AveragePool2D, x),
    "largest": lambda model, x: pool(MaxPool2D, x),
    "mean": mean,
}


@pytest.mark.parametrize("kind", SHRINKING)
def test_sums_and_pools_between_layers_are_fixed_point(kind: str, tmp_path: Path) -> None:
    model = in_between(SHRINKING[kind])
    program = program_of(model)
    names = [call.function for call in program.calls]
    assert names.count("luc_floats_of_fixed") == 1  # of the float output
    assert names.count("luc_lq_conv_2d_add") == 2
    assert "luc_quantize_fixed" in names
    x = random_input((1, 8, 8, 6))
    found, codes = built(program, tmp_path).run({"x": x})
    wanted, bytes_ = interpreted(model, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(codes, bytes_)
    errors = [call.fixed.error for call in program.calls if call.fixed is not None]
    assert np.abs(found - wanted).max() <= errors[-1]
    assert "within" in program.source.split("*/", 1)[0]


def test_sums_that_no_convolution_can_take_are_fixed_point(tmp_path: Path) -> None:
    model = lq_convolution(8, 6, 2)
    graph = model.graph
    codes = appended(model, Quantize(graph.inputs[0]), Affine(0.05, 3, dtype=BYTES))
    (one, real) = graph.outputs[0], appended(model, Dequantize(codes))
    last = Add(appended(model, Add(real, one)), appended(model, Add(one, one)))
    last.activation = Act.RELU6
    graph.outputs = [appended(model, last)]
    program, x = program_of(model), random_input((1, 8, 8, 6))
    names = [call.function for call in program.calls]
    assert names.count("luc_add_fixed_to_bytes") == 1
    assert names.count("luc_add_fixed") == 2
    (found,), (wanted,) = built(program, tmp_path).run({"x": x}), interpreted(model, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def test_inputs_of_several_layers_are_encoded_once(tmp_path: Path) -> None:
    model = in_between(mean)
    names = [call.function for call in program_of(model).calls]
    assert names.count("luc_levels_of_fixed") == 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_program_is_clean_and_passes_its_own_test(compiler: str, tmp_path: Path) -> None:
    program = program_of(in_between(*SHRINKING.values()))
    test = self_test(program, built(program, tmp_path), random_records(program))
    assert run_sound(program, tmp_path, test, compiler) == 0


@pytest.mark.parametrize("name", ["too many", "wide"])
def test_it_refuses_what_does_not_fit(name: str) -> None:
    bits, width = (5, 3) if name == "too many" else (1, 700)
    layer, x = random_conv((1, 1), 100, 2, bits, 1), random_input((1, 1, width, 100))
    wanted = "inputs have 5 bits" if bits == 5 else "rows of images have up to 65535 inputs"
    with pytest.raises(UnsupportedError, match=wanted):
        program_of(layer.model(x))
