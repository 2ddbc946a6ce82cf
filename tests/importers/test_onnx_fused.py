"""Operators of onnxruntime's own domain, one by one: its results are luciole's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import DTypeLike

import luciole
from luciole.importers.onnx.model import from_proto
from luciole.ir import Array, Model, TensorType, UnsupportedError
from luciole.ir.blockwise import Blockwise
from luciole.ir.ops.fully_connected import FullyConnected

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper

RANDOM = np.random.default_rng(0)
STEP = 1
"""How far integers may be apart: TFLite's arithmetic of sums and tables rounds in fixed point."""


class Case(NamedTuple):
    """A node: operands, None for those left out, which are constant, and which results it has."""

    kind: str
    operands: Sequence[Array | np.generic | None]
    constant: Sequence[int] = ()
    attributes: Mapping[str, object] = {}
    results: Sequence[int] = (0,)
    domain: str = "com.microsoft"


def floats(*shape: int) -> Array:
    """Random numbers of a size that products keep."""
    spread = max(1, int(np.prod(shape[1:]))) ** -0.5
    return np.asarray(RANDOM.standard_normal(shape) * spread, np.float32)


def positive(*shape: int) -> Array:
    """Random scales."""
    return np.asarray(np.abs(floats(*shape)) + 0.01, np.float32)


def codes(dtype: DTypeLike, *shape: int) -> Array:
    """Random integers of 8 bits."""
    return RANDOM.integers(0, 256, shape).astype(np.uint8).view(dtype)


def steps(scale: float, point: int, dtype: DTypeLike) -> tuple[np.float32, Array]:
    """A scale and a zero point."""
    return np.float32(scale), np.array(point, dtype)


def linear(dtype: DTypeLike) -> dict[str, Case]:
    """Operators on integers of a type."""
    x, y = steps(0.02, 3, dtype), steps(0.03, 5, dtype)
    plain, share = steps(0.01, 0, np.int8), steps(1 / 256, np.iinfo(dtype).min, dtype)
    a, b = codes(dtype, 2, 3, 6, 6), codes(dtype, 2, 3, 6, 6)
    weights, bias = codes(np.int8, 8, 16), RANDOM.integers(-99, 99, 8).astype(np.int32)
    image = {"kernel_shape": [2, 2], "strides": [2, 2]}
    cases = [
        Case("QLinearAdd", [a, *x, b, *y, *y], (1, 2, 4, 5, 6, 7)),
        Case("QLinearMul", [a, *x, b, *y, *y], (1, 2, 4, 5, 6, 7)),
        Case("QLinearAveragePool", [a, *x, *x], (1, 2, 3, 4), image),
        Case("QLinearGlobalAveragePool", [a, *x, *x], (1, 2, 3, 4), {"channels_last": 1}),
        Case("QLinearConcat", [*y, a, *x, b, *y], (0, 1, 3, 4, 6, 7), {"axis": 1}),
        Case("QLinearLeakyRelu", [a, *x, *x], (1, 2, 3, 4), {"alpha": 0.2}),
        Case("QLinearSigmoid", [a, *x, *share], (1, 2, 3, 4)),
        Case("QLinearSoftmax", [a, *x, *share], (1, 2, 3, 4), {"axis": -1, "opset": 13}),
        Case("QLinearWhere", [a > 3, a, *x, b, *y, *y], (2, 3, 5, 6, 7, 8)),
        Case(
            "QGemm",
            [codes(dtype, 4, 16), *x, weights, positive(8), np.zeros(8, np.int8), bias, *y],
            range(1, 9),
            {"transB": 1},
        ),
        Case(
            "QLinearConv",
            [codes(dtype, 2, 6, 6, 4), *x, codes(np.int8, 8, 4, 3, 3), *plain, *y, bias],
            range(1, 9),
            {"channels_last": 1, "pads": [1] * 4},
        ),
        Case("NhwcMaxPool", [codes(dtype, 2, 6, 6, 3)], (), image),
        Case("DequantizeLinear", [a, *x], (1, 2)),
        Case("QuantizeLinear", [floats(4, 16) * 3, *x], (1, 2)),
    ]
    return {f"{case.kind} {np.dtype(dtype).name}": case for case in cases}


def fused() -> dict[str, Case]:
    """Operators on floats."""
    x, row, ids = floats(2, 5, 16), floats(16), RANDOM.integers(0, 20, (2, 5)).astype(np.int32)
    filters = (floats(1, 3, 6, 6), floats(4, 3, 3, 3), floats(4))
    tables = (floats(20, 16), floats(8, 16), floats(2, 16), 1 + row, row)
    clip = {"activation": "Clip", "activation_params": [0.0, 0.5]}
    leaky = {"activation": "LeakyRelu", "activation_alpha": 0.3, "transB": 1}
    return {
        "turned": Case("FusedMatMul", [floats(2, 6, 5), floats(2, 6, 7)], (), {"transA": 1}),
        "scaled": Case("FusedMatMul", [x, floats(7, 16)], (1,), {"transB": 1, "alpha": 0.3}),
        "BiasGelu": Case("BiasGelu", [x, row], (1,)),
        "FastGelu": Case("FastGelu", [x, row], (1,)),
        "Gelu": Case("Gelu", [x]),
        "QuickGelu": Case("QuickGelu", [x], (), {"alpha": 1.7}),
        "skip": Case(
            "SkipLayerNormalization",
            [x, floats(2, 5, 16), 1 + row, row, row],
            (2, 3, 4),
            {},
            (0, 3),
        ),
        "skip simplified": Case(
            "SkipSimplifiedLayerNormalization", [x, x + 1, 1 + row, row], (2, 3), {}, (0, 3)
        ),
        "simplified": Case("SimplifiedLayerNormalization", [x, 1 + row], (1,), {}, (0,), ""),
        "embeddings": Case(
            "EmbedLayerNormalization",
            [ids, ids % 2, *tables, (ids > 5).astype(np.int32)],
            (2, 3, 4, 5, 6),
            {},
            (0, 1, 2),
        ),
        "words": Case(
            "EmbedLayerNormalization",
            [ids, None, *tables[:2], None, *tables[3:]],
            (2, 3, 5, 6),
            {},
            (0, 1),
        ),
        "image added": Case(
            "FusedConv", [*filters, floats(1, 4, 4, 4)], (1, 2), {"activation": "Relu"}
        ),
        "clipped": Case("FusedConv", filters, (1, 2), clip),
        "FusedGemm": Case("FusedGemm", [floats(2, 6), floats(4, 6), floats(4)], (1, 2), leaky),
    }


def attending() -> dict[str, Case]:
    """Attention with masks of each kind, and of integers."""
    x, weights, bias = floats(2, 5, 16), floats(16, 48) * 4, floats(48)
    masks = {
        "all words": None,
        "words": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
        "lengths": np.array([3, 5], np.int32),
        "pairs": (RANDOM.random((2, 5, 5)) < 0.7).astype(np.int32),
    }
    heads: dict[str, object] = {"num_heads": 4}
    cases = {
        name: Case("Attention", [x, weights, bias, mask], (1, 2), heads)
        for name, mask in masks.items()
    }
    causal = Case("Attention", [x, weights, bias], (1, 2), heads | {"unidirectional": 1})
    sizes = heads | {"qkv_hidden_sizes": [16, 16, 24]}
    wide = Case("Attention", [x, floats(16, 56), floats(56)], (1, 2), sizes)
    parts = [x, floats(2, 7, 16), floats(2, 7, 24), floats(56)]
    grid = [np.float32(0.02), positive(48), None, np.uint8(120), np.zeros(48, np.int8)]
    integers = [codes(np.uint8, 2, 5, 16), codes(np.int8, 16, 48), bias, *grid]
    return cases | {
        "earlier words": causal,
        "wide values": wide,
        "heads": Case("MultiHeadAttention", parts, (3,), heads),
        "integers": Case("QAttention", integers, (1, 2, 3, 4, 6, 7), heads),
    }


def packed(array: Array) -> Array:
    """Two codes of 4 bits in a byte, the first one in the low bits."""
    return np.asarray((array[..., 0::2] | (array[..., 1::2] << 4)).astype(np.uint8), np.uint8)


def of_blocks() -> dict[str, Case]:
    """Weights of few bits with a scale for each of 3 blocks, the last one cut."""
    outputs, inputs, size = 24, 70, 32
    table = {"K": inputs, "N": outputs, "bits": 4, "block_size": size}
    short, scales = packed(RANDOM.integers(0, 16, (outputs, 3, size))), positive(3 * outputs)
    points = packed(RANDOM.integers(0, 16, (outputs, 4))).reshape(-1)
    x, kind = floats(2, 4, inputs), "MatMulNBits"
    return {
        "blocks": Case(kind, [x, short, scales], (1, 2), table),
        "points": Case(kind, [x, short, scales, points], (1, 2, 3), table),
        "bias": Case(kind, [x, short, scales, None, None, floats(24)], (1, 2, 5), table),
        "bytes": Case(kind, [x, codes(np.uint8, 24, 3, 32), scales], (1, 2), table | {"bits": 8}),
    }


CASES = linear(np.uint8) | linear(np.int8) | fused() | attending() | of_blocks()


def network(case: Case) -> tuple[Any, dict[str, Array]]:
    """A model of one node, and its inputs."""
    arrays = {f"i{n}": np.asarray(a) for n, a in enumerate(case.operands) if a is not None}
    names = [f"i{n}" if a is not None else "" for n, a in enumerate(case.operands)]
    fixed = [f"i{n}" for n in case.constant]
    outputs = [f"o{n}" if n in case.results else "" for n in range(max(case.results) + 1)]
    node = helper.make_node(case.kind, names, outputs, domain=case.domain, **case.attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in arrays.items()
        if n not in fixed
    ]
    tensors = [onnx.numpy_helper.from_array(arrays[n], n) for n in fixed if n in arrays]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    graph = helper.make_graph([node], "g", inputs, results, tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model, {n: a for n, a in arrays.items() if n not in fixed}


def imported(case: Case) -> Model:
    """Import a model of one node."""
    return from_proto(network(case)[0])


@pytest.mark.parametrize("name", CASES)
def test_operators_of_onnxruntime_give_its_results(name: str) -> None:
    model, feeds = network(CASES[name])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    # without VNNI, sums of unsigned products saturate unless asked not to
    exact = "int8" not in name or "uint8" in name
    options.add_session_config_entry("session.x64quantprecision", str(int(exact)))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    results = luciole.Interpreter(from_proto(model)).run(feeds).values()
    for result, expected in zip(results, session.run(None, feeds), strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        whole = expected.dtype.kind in "iu"
        # scales of blocks have 11 bits, as TFLite's; sums differ in their order
        share = 1e-3 if name in ("blocks", "points", "bias") else 2e-6
        most = STEP if whole else share * np.abs(expected).max()
        np.testing.assert_allclose(result.astype(float), expected.astype(float), rtol=0, atol=most)


def test_weights_of_four_bits_stay_blocks() -> None:
    (layer,) = (op for op in imported(CASES["blocks"]).graph.ops if isinstance(op, FullyConnected))
    blocks = Blockwise.given(layer.weights)
    assert blocks is not None
    assert (layer.weights.dtype, blocks.size) == (TensorType.INT4, 32)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda case: case._replace(attributes={"num_heads": 40}), "not shared by 40 heads"),
        (
            lambda case: case._replace(attributes={"num_heads": 4, "do_rotary": 1}),
            "by their places",
        ),
        (lambda case: case._replace(results=(0, 1)), "more than its first result"),
    ],
)
def test_attention_refuses_other_forms(change: Callable[[Case], Case], sentence: str) -> None:
    with pytest.raises(UnsupportedError, match=sentence):
        imported(change(CASES["all words"]))


def test_weights_of_few_bits_refuse_another_order() -> None:
    case = CASES["blocks"]
    order = [*case.operands, None, np.arange(70, dtype=np.int32)]
    with pytest.raises(UnsupportedError, match="in another order"):
        imported(case._replace(operands=order, constant=(1, 2, 4)))
