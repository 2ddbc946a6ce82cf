"""ONE's recipes, cooked with one seed: what they compute here, and in LiteRT or by definition."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers.recipe.cook import cook_file
from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError, Model, TensorType, Value
from luciole.ir.dtypes import NUMPY
from luciole.kernels.core import custom
from luciole.schema.enums import Padding
from tests.schema.recipes import recipes
from tests.support import invoked, invoked_again, litert

SEEDS = range(2)

OTHER_KERNELS = ("CEIL", "ELU", "ROUND", "SEGMENT_SUM", "LOCAL_RESPONSE_NORMALIZATION")
"""What LiteRT's reference kernels do not have, or (the last) compute without the last of the
neighbours: its optimized ones run instead.
"""

RANGES = {"GatherNd_000": 2, "GatherNd_001": 1}
"""Where inputs are indices: how many there are."""

GIVEN = {"ReverseV2_000": {"axis": [3, 2]}, "Net_ZeroDim_001": {"input_shape": [1, 0, 8, 64]}}
"""Inputs that are axes and shapes."""

LITERT_CANNOT = {
    "All_000": "unresolved custom op: All",
    "BatchMatMulV2": "unresolved custom op: BatchMatMulV2",
    "BroadcastTo_000": "unresolved custom op: BroadcastTo",
    "DepthwiseConv2D_U8_001": "input->type == kTfLiteInt8",
    "Fill": "NumDimensions(value) != 0 (1 != 0)",
    "L2Pool2D_U8_000": "input->type != kTfLiteFloat32",
    "MatMul_000": "unresolved custom op: MatMul",
    "MatrixBandPart_000": "unresolved custom op: MatrixBandPart",
    "MaxPoolWithArgMax": "unresolved custom op: MaxPoolWithArgMax",
    "Net_BroadcastTo_AddV2": "unresolved custom op: BroadcastTo",
    "UnidirectionalSequenceLSTM_001": "output_state != nullptr was not true",
}
"""By the beginning of the name: what runs here, and what LiteRT says to it."""

BOTH_REFUSE = {
    "ExpandDims_001": ("axis is 1, the tensor has 1 axes", "axis <= input_dims.size was not"),
    "ExpandDims_002": ("axis is 1, the tensor has 1 axes", "axis <= input_dims.size was not"),
    "Net_Dangle_001": ("nothing computed it yet", "Tensor data is null"),
    "PadV2_000": ("no kernel for FLOAT32 x INT32", "op_context.input->type"),
    "Reshape_003": ("[1,1,1,10] does not reshape to []", "num_input_elements"),
    "Slice_001": ("begin -1 and size 1 do not fit", "Invalid begin"),
    "UnidirectionalSequenceLSTM_000": ("output_state has shape", "output_state != nullptr"),
    "While_003": ("the condition has 0 elements", "cond_output->dims->size"),
}
"""What nobody runs: our sentence and LiteRT's."""


def all_(x: Array, axes: Array, keep_dims: bool, **_: Any) -> Array:
    return np.asarray(np.all(x, tuple(axes.reshape(-1)), keepdims=keep_dims), x.dtype)


def matrix_product(x: Array, y: Array, **options: Any) -> Array:
    turned = (options.get(n, False) for n in ("adj_x", "adj_y"))
    x, y = (np.swapaxes(a, -1, -2) if t else a for a, t in zip((x, y), turned, strict=True))
    return x @ y


def band(x: Array, lower: Array, upper: Array, **_: Any) -> Array:
    """All but what lies further than so many diagonals below and above the main one."""
    rows, columns = np.indices(x.shape[-2:])
    return np.where((rows - columns <= lower) & (columns - rows <= upper), x, np.float32(0))


def max_pool(x: Array, **options: Any) -> tuple[Array, Array]:
    """The largest of each window and its number in the image."""
    extents, strides = options["ksize"][2:0:-1], options["strides"][2:0:-1]
    (height, down), (width, right) = (
        _side(size, kernel, stride, Padding[options["padding"]])
        for size, kernel, stride in zip(x.shape[1:3], extents, strides, strict=True)
    )
    image = np.pad(x[0, :, :, 0], (height, width), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(image, extents)[::down, ::right]
    flat = windows.reshape(*windows.shape[:2], -1)
    row, column = np.divmod(flat.argmax(-1), extents[1])
    row += down * np.arange(len(flat))[:, None] - height[0]
    column += right * np.arange(flat.shape[1]) - width[0]
    number = (row * x.shape[2] + column).astype(NUMPY[TensorType(options["Targmax"])])
    return flat.max(-1)[None, :, :, None], number[None, :, :, None]


def _side(size: int, kernel: int, stride: int, padding: int) -> tuple[tuple[int, int], int]:
    """Padding before and after along one axis, and the stride once more."""
    reach = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    both = reach if padding == Padding.SAME else 0
    return (both // 2, both - both // 2), stride


FROM_TENSORFLOW: dict[str, Callable[..., Any]] = {
    "AddV2": lambda x, y, **_: x + y,
    "All": all_,
    "BatchMatMulV2": matrix_product,
    "BroadcastTo": lambda x, shape, **_: np.broadcast_to(x, shape),
    "MatMul": matrix_product,
    "MatrixBandPart": band,
    "MaxPoolWithArgMax": max_pool,
}
"""Operators of TensorFlow's that recipes have as CUSTOM, by what its documentation says."""


@pytest.fixture(autouse=True)
def custom_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "FUNCTIONS", dict(FROM_TENSORFLOW))


def cooked(name: str, folder: str = "tflite") -> Model:
    """The model, also where ``verify`` objects to it."""
    (path,) = (p for p in recipes(folder) if p.parent.name == name)
    return cook_file(path).model


def given(value: Value, name: str, seed: int) -> Array:
    """What an input is given: normal numbers, all of 8 bits, or small indices."""
    if value.name in GIVEN.get(name, {}):
        return np.array(GIVEN[name][value.name], NUMPY[value.dtype])
    random, dtype = np.random.default_rng(seed), NUMPY[value.dtype]
    if dtype.kind == "f":
        return random.standard_normal(value.dims).astype(dtype)
    limits = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
    if name == "FullyConnected_U8_000":  # symmetric weights, which have no -128
        return random.integers(-127, 128, value.dims).astype(np.int8).view(dtype)
    wide = dtype.itemsize == 1 and dtype.kind != "b"
    low, high = (limits.min, limits.max + 1) if wide else (0, RANGES.get(name, 3))
    return random.integers(low, high, value.dims).astype(dtype)


def ours(model: Model, inputs: list[Array]) -> list[Array]:
    """Run a model, several times where it calls graphs."""
    calls = any(op.called_graphs() for op in model.graph.ops)
    return (invoked_again if calls else invoked)(Interpreter(model), inputs)


def theirs(model: Model, content: bytes, inputs: list[Array]) -> tuple[Array, ...]:
    kinds = {op.kind for graph in model.graphs for op in graph.ops}
    resolver = "AUTO" if kinds & {*OTHER_KERNELS} else "BUILTIN_REF"
    return litert(content, inputs, resolver)


def same(a: Array, b: Array) -> None:
    """Integers are equal, floats within 1e-5 of the output's range."""
    if a.dtype.kind != "f":
        np.testing.assert_array_equal(a, b, strict=True)
        return
    finite = b[np.isfinite(b)]
    reach = np.ptp(finite) if finite.size > 1 else np.abs(finite).max(initial=0)
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * max(reach, 1e-30), strict=True)


def listed(name: str, table: dict[str, Any]) -> Any:
    return next((table[key] for key in table if name.startswith(key)), None)


def names(folder: str) -> list[str]:
    """All recipes of a folder, none where the data is not there."""
    try:
        return [path.parent.name for path in recipes(folder)]
    except pytest.skip.Exception:
        return []


@pytest.mark.parametrize("name", names("tflite"))
def test_a_recipe_computes_what_litert_does(name: str) -> None:
    model, refused, alone = cooked(name), listed(name, BOTH_REFUSE), listed(name, LITERT_CANNOT)
    content = to_bytes(model, "tflite", check=False)
    for seed in SEEDS:
        inputs = [given(value, name, seed) for value in model.graph.inputs]
        if refused is not None:
            with pytest.raises(LucioleError, match=re.escape(refused[0])):
                ours(model, inputs)
        if refused is not None or alone is not None:
            with pytest.raises((RuntimeError, ValueError), match=re.escape(alone or refused[1])):
                theirs(model, content, inputs)
        if refused is None:
            found = ours(model, inputs)
            wanted = found if alone else theirs(model, content, inputs)
            assert len(found) == len(wanted)
            for a, b in zip(found, wanted, strict=True):
                same(a, b)


def signs(words: Array) -> Array:
    """32 values of 1 or -1 for each word, its lowest bit first."""
    return np.where(words.view(np.uint32)[..., None] >> np.arange(32, dtype=np.uint32) & 1, 1, -1)


def dense(x: Array, scales: Array, words: Array, *bias: Array) -> Array:
    weights = scales[:, None] * signs(words[:, 0])
    return np.asarray(weights @ x + (bias[0][:, None] if len(bias) > 1 else 0))


def normalized(x: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    mean, variance = (f(x, axis=(1, 2), keepdims=True) for f in (np.mean, np.var))
    return np.asarray((x - mean) / np.sqrt(variance + epsilon) * gamma + beta)


BY_DEFINITION: dict[str, Callable[..., Array]] = {
    "BCQFullyConnected_000": dense,
    "BCQFullyConnected_001": dense,
    "BCQGather_000": lambda a, words, rows, _: (a[:, None] * signs(words[:, 0]))[rows],
    "CircleBatchMatMul_000": np.matmul,
    "InstanceNorm_000": partial(normalized, epsilon=0.00001),
    "InstanceNorm_001": partial(normalized, epsilon=0.001),
}


@pytest.mark.parametrize("name", names("circle"))
def test_a_recipe_of_circle_computes_what_its_operator_means(name: str) -> None:
    model = cooked(name, "circle")
    for seed in SEEDS:
        inputs = [given(value, name, seed) for value in model.graph.inputs]
        by_input = dict(zip(model.graph.inputs, inputs, strict=True))
        operands = [
            by_input.get(value, value.data) for value in model.graph.ops[0].operands if value
        ]
        (found,) = ours(model, inputs)
        same(found, np.asarray(BY_DEFINITION[name](*operands), np.float32))
