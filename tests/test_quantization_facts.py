"""What operators tell a quantizer, against TFLite's specification and against LiteRT's kernels.

``SPECIFICATION`` is the table "int8 quantized operator specifications" of TFLite's 8-bit
quantization specification (https://ai.google.dev/edge/litert/models/quantization_spec), an entry
for each operator in its order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.ir import OPS, LucioleError, Op, TensorType
from luciole.ir.errors import DefinitionError
from luciole.ir.fields import operand
from luciole.ir.ops import elementwise_binary, elementwise_unary
from luciole.ir.ops.l2_normalization import L2Normalization
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.quant import FREE, Fixed, Grid, Like, Pole, Quant, Versions
from luciole.schema.dialect import TFLITE
from luciole.schema.enums import BuiltinOperator
from luciole.schema.tables import Buffer, Operator, OperatorCode, SubGraph, Tensor
from luciole.schema.tables import Model as File
from luciole.schema.writer import write
from tests.support import Affine, run_litert, run_reference


@dataclass(frozen=True)
class Rule:
    """An entry: the grid of the result where it is fixed, whether input and result must have the
    same, and of layers the slot of the weights, the axis of their scales and the slot of the bias.
    """

    same: bool = False
    fixed: Grid | None = None
    weights: tuple[int, int | None, int] | None = None


OWN, SAME = Rule(), Rule(same=True)
INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)

SPECIFICATION = {
    "ADD": OWN,
    "AVERAGE_POOL_2D": SAME,
    "CONCATENATION": SAME,
    "CONV_2D": Rule(weights=(1, 0, 2)),
    "DEPTHWISE_CONV_2D": Rule(weights=(1, 3, 2)),
    "FULLY_CONNECTED": Rule(weights=(1, None, 2)),
    "L2_NORMALIZATION": Rule(fixed=(1 / 128, 0)),
    "LOGISTIC": Rule(fixed=(1 / 256, -128)),
    "MAX_POOL_2D": SAME,
    "MUL": OWN,
    "RESHAPE": SAME,
    "RESIZE_BILINEAR": SAME,
    "SOFTMAX": Rule(fixed=(1 / 256, -128)),
    "SPACE_TO_DEPTH": SAME,
    "TANH": Rule(fixed=(1 / 128, 0)),
    "PAD": SAME,
    "GATHER": SAME,
    "BATCH_TO_SPACE_ND": SAME,
    "SPACE_TO_BATCH_ND": SAME,
    "TRANSPOSE": SAME,
    "MEAN": OWN,
    "SUB": OWN,
    "SUM": OWN,
    "SQUEEZE": SAME,
    "LOG_SOFTMAX": Rule(fixed=(16 / 256, 127)),
    "MAXIMUM": SAME,
    "ARG_MAX": OWN,
    "MINIMUM": SAME,
    "LESS": OWN,
    "PADV2": SAME,
    "GREATER": OWN,
    "GREATER_EQUAL": OWN,
    "LESS_EQUAL": OWN,
    "SLICE": SAME,
    "EQUAL": OWN,
    "NOT_EQUAL": OWN,
    "SHAPE": OWN,
    "QUANTIZE": OWN,
}

IN_16_BITS = {
    "LOGISTIC": (1 / 32768, 0),
    "TANH": (1 / 32768, 0),
    "SOFTMAX": (1 / 32768, 0),
}
"""What the converter gives to results of 16 bits."""

SAME_IN_THE_CONVERTER = (
    *("SPLIT", "SPLIT_V", "PACK", "UNPACK", "RESIZE_NEAREST_NEIGHBOR", "STRIDED_SLICE"),
    *("MIRROR_PAD", "REDUCE_MAX", "REDUCE_MIN"),
)
"""Operators that the specification does not list, and whose results the converter gives the grid of
their inputs.
"""


def class_of(name: str) -> type[Op]:
    return OPS[BuiltinOperator[name]]


@pytest.mark.parametrize("name", SPECIFICATION)
def test_results_are_bound_as_the_specification_says(name: str) -> None:
    quant, rule = class_of(name).quant, SPECIFICATION[name]
    assert quant is not None
    assert isinstance(quant.result, Like) == rule.same
    assert quant.fixed(TensorType.INT8) == rule.fixed
    assert (quant.result == FREE) == (not rule.same and rule.fixed is None)


@pytest.mark.parametrize("name", SPECIFICATION)
def test_weights_and_biases_are_those_of_the_specification(name: str) -> None:
    cls, rule = class_of(name), SPECIFICATION[name]
    assert cls.quant is not None
    if rule.weights is None:
        assert (cls.quant.weight, cls.quant.bias) == (None, None)
        return
    weight, axis, bias = rule.weights
    slots = [field.name for field in cls.operand_fields()]
    assert (cls.quant.weight, cls.quant.bias) == (slots[weight], slots[bias])
    assert cls.quant.axis == (0 if axis is None else axis)


@pytest.mark.parametrize("name", [n for n in SPECIFICATION if SPECIFICATION[n].same])
def test_operands_that_share_the_results_grid_are_those_with_data(name: str) -> None:
    cls = class_of(name)
    assert cls.quant is not None
    assert isinstance(cls.quant.result, Like)
    data = [field.name for field in cls.operand_fields() if not field.dtypes]
    assert list(cls.quant.result.operands) == data


@pytest.mark.parametrize("name", SAME_IN_THE_CONVERTER)
def test_operators_that_only_pick_or_move_keep_the_grid(name: str) -> None:
    quant = class_of(name).quant
    assert quant is not None
    assert isinstance(quant.result, Like)


def test_operators_that_reshape_keep_the_grid() -> None:
    silent = {"DENSIFY"}  # its operand is sparse: it is computed before anything is quantized
    for cls in OPS.values():
        if cls.reshapes and cls.code.name not in silent:
            assert cls.quant is not None
            assert isinstance(cls.quant.result, Like)


@pytest.mark.parametrize("name", IN_16_BITS)
def test_results_of_16_bits_are_those_of_the_converter(name: str) -> None:
    quant = class_of(name).quant
    assert quant is not None
    assert quant.fixed(TensorType.INT16) == IN_16_BITS[name]


def fixed_operators() -> list[tuple[type[Op], TensorType]]:
    types = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
    return [
        (cls, dtype)
        for cls in OPS.values()
        for dtype in types
        if cls.quant is not None and cls.quant.fixed(dtype) is not None
    ]


CODES = {TensorType.INT8: np.int8, TensorType.UINT8: np.uint8, TensorType.INT16: np.int16}
OPTIONS: dict[type[Op], dict[str, Any]] = {Softmax: {"beta": 1.0}}


@pytest.mark.parametrize(("cls", "dtype"), fixed_operators())
def test_fixed_grids_are_what_litert_computes_with(cls: type[Op], dtype: TensorType) -> None:
    assert cls.quant is not None
    grid = cls.quant.fixed(dtype)
    assert grid is not None
    middle = 128 if dtype == TensorType.UINT8 else 0
    options = {
        **OPTIONS.get(cls, {}),
        "affine": [Affine(0.0625 if dtype != TensorType.INT16 else 2**-12, middle)],
        "results": [Affine(*grid)],
    }
    x = (np.arange(-60, 60, 6).reshape(2, 10) + middle).astype(CODES[dtype])
    ours, theirs = (run(cls, [x], **options)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs)
    low, high = np.iinfo(ours.dtype).min, np.iinfo(ours.dtype).max
    assert low <= grid[1] <= high


@pytest.mark.parametrize("cls", [Softmax, LogSoftmax, L2Normalization])
def test_kernels_refuse_results_with_another_grid_than_the_fixed_one(cls: type[Op]) -> None:
    options = {**OPTIONS.get(cls, {}), "affine": [Affine(0.1)], "results": [Affine(0.125, 3)]}
    with pytest.raises(LucioleError, match=r"the result has scale 0\.125 and zero point 3"):
        run_reference(cls, [np.ones((1, 4), np.int8)], **options)


def test_other_types_have_no_fixed_grid() -> None:
    assert Fixed(int8=(1.0, 0), uint8=(1.0, 0)).grid(TensorType.INT16) is None
    assert Quant(result=Like("x")).fixed(TensorType.INT8) is None
    assert Quant(result=Fixed((0.5, 1), (0.5, 2))).fixed(TensorType.UINT8) == (0.5, 2)


WITH_POLES = [cls for cls in OPS.values() if cls.poles]


def test_operators_with_poles_are_known() -> None:
    divisions = {("DIV", "y"), ("FLOOR_DIV", "y"), ("FLOOR_MOD", "y")}
    functions = {("LOG", "x"), ("SQRT", "x"), ("RSQRT", "x"), ("POW", "x")}
    poles = {(cls.code.name, pole.operand) for cls in WITH_POLES for pole in cls.poles}
    assert poles == divisions | functions


@pytest.mark.parametrize("cls", [cls for cls in WITH_POLES if cls.quant is not None])
@pytest.mark.parametrize("run", [run_reference, run_litert])
def test_integer_kernels_refuse_numbers_at_poles_as_operators_say(cls: type[Op], run: Any) -> None:
    (pole,) = cls.poles
    point, binary = -3, issubclass(cls, elementwise_binary.Binary)
    grids = [Affine(0.05, point)] * (2 if binary else 1)
    refused = set()
    for sign, code in ((-1, point - 9), (0, point), (1, point + 9)):
        x = np.full((1, 4), code, np.int8)
        operands = [np.ones_like(x), x] if binary else [x]
        try:
            run(cls, operands, affine=grids, results=[Affine(0.1, -128)])
        except (LucioleError, RuntimeError):
            refused.add(sign)
    assert refused == set(pole.refused)


def test_functions_at_poles_are_infinite_or_none_in_floats() -> None:
    around = np.array([-0.0, 0.0], np.float32)
    for cls in (elementwise_unary.Log, elementwise_unary.Rsqrt):
        assert not np.isfinite(run_reference(cls, [around])[0]).any()
        assert not cls.poles[0].finite
    one = np.ones_like(around)
    assert not np.isfinite(run_reference(elementwise_binary.Div, [one, around])[0]).any()
    assert not np.isfinite(run_reference(elementwise_binary.Pow, [around, -one])[0]).any()
    assert np.isfinite(run_reference(elementwise_unary.Sqrt, [around])[0]).all()
    assert elementwise_unary.Sqrt.poles[0].finite


@pytest.mark.parametrize("pole", [Pole("z"), Pole("x", exponent="z")])
def test_a_definition_refuses_poles_of_operands_that_there_are_not(pole: Pole) -> None:
    with pytest.raises(
        DefinitionError, match=r"Bad\.poles speaks of 'z'; the operands are \['x'\]"
    ):

        class Bad(Op):
            x = operand()
            poles = (pole,)


def with_version(code: BuiltinOperator, version: int) -> bytes:
    """A file with one operator of a code and a version: reading it asks no more of a runtime."""
    tensors = [Tensor(shape=np.array([1], np.int32), name=name) for name in "xy"]
    ends = (np.array([0], np.int32), np.array([1], np.int32))
    operators = [Operator(opcode_index=0, inputs=ends[0], outputs=ends[1])]
    graph = SubGraph(tensors=tensors, inputs=ends[0], outputs=ends[1], operators=operators)
    old = min(int(code), 127)
    codes = [OperatorCode(deprecated_builtin_code=old, builtin_code=code, version=version)]
    return write(
        File(version=3, operator_codes=codes, subgraphs=[graph], buffers=[Buffer()]), TFLITE
    )


@pytest.mark.parametrize("cls", [cls for cls in OPS.values() if cls.quant is not None], ids=str)
def test_litert_has_the_versions_that_quantizers_write(cls: type[Op]) -> None:
    """A version that a runtime does not have makes it refuse the whole file."""
    code, since = cls.code, cls.quant.since if cls.quant is not None else Versions()
    if not isinstance(code, BuiltinOperator) or not 0 <= code < 206:
        pytest.skip("it is not of TFLite")
    versions = [since.of(dtype, None) for dtype in INTEGERS]
    written = {max(cls.oldest_version, version) for version in versions if version}
    if since.takes_int4:
        written |= {since.int4, since.hybrid}
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    said = [refusal(interpreter, with_version(code, version)) for version in sorted(written)]
    assert not any("find op for builtin opcode" in text for text in said)


def refusal(interpreter: Any, content: bytes) -> str:
    """What LiteRT says of a file that it does not read, which may be that options are missing."""
    try:
        interpreter(model_content=content)
    except ValueError as error:
        return str(error)
    return ""
