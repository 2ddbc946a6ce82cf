"""The numbers that circle and TFLite files give different meanings, by hand."""

from __future__ import annotations

from enum import IntEnum

import pytest

import luciole.schema.tables  # noqa: F401  # fills TABLES
from luciole.schema.dialect import CIRCLE, TFLITE
from luciole.schema.enums import (
    BuiltinOperator,
    BuiltinOptions,
    FullyConnectedOptionsWeightsFormat,
    QuantizationDetails,
    TensorType,
)
from luciole.schema.table import TABLES

HAND: list[tuple[IntEnum, int, int | None]] = [
    (TensorType.FLOAT32, 0, 0),
    (TensorType.INT4, 17, 17),
    (TensorType.BFLOAT16, 18, 18),
    (TensorType.UINT4, -1, 20),
    (TensorType.GGML_Q4_0, -2, None),
    (TensorType.GGML_Q4_1, -3, None),
    (TensorType.GGML_Q8_0, -4, None),
    (TensorType.GGML_Q8_1, -5, None),
    (TensorType.MXFP4, -6, None),
    (TensorType.MXINT8, -7, None),
    (QuantizationDetails.CustomQuantization, 1, 1),
    (QuantizationDetails.MXQuantization, 2, None),
    (QuantizationDetails.BlockwiseQuantization, 3, 2),
    (BuiltinOperator.CONV_2D, 3, 3),
    (BuiltinOperator.INSTANCE_NORM, -2, None),
    (BuiltinOperator.BCQ_FULLY_CONNECTED, -3, None),
    (BuiltinOperator.BCQ_GATHER, -4, None),
    (BuiltinOperator.GRU, -5, None),
    (BuiltinOperator.RMS_NORM, -6, None),
    (BuiltinOperator.ROPE, -7, None),
    (BuiltinOperator.RUN_MODEL, -8, None),
    (BuiltinOperator.ATTENTION, -9, None),
    (BuiltinOperator.LQ_FULLY_CONNECTED, -64, None),
    (BuiltinOperator.LQ_CONV_2D, -65, None),
    (FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8, 1, 1),
    (FullyConnectedOptionsWeightsFormat.SHUFFLED16x1FLOAT32, 127, None),
    (BuiltinOptions.LQConv2DOptions, 190, None),
    (BuiltinOptions.LQFullyConnectedOptions, 191, None),
    (BuiltinOptions.AttentionOptions, 247, None),
    (BuiltinOptions.RunModelOptions, 248, None),
    (BuiltinOptions.RoPEOptions, 249, None),
    (BuiltinOptions.RmsNormOptions, 250, None),
    (BuiltinOptions.GRUOptions, 251, None),
    (BuiltinOptions.BCQGatherOptions, 252, None),
    (BuiltinOptions.BCQFullyConnectedOptions, 253, None),
    (BuiltinOptions.InstanceNormOptions, 254, None),
]
"""Members with their numbers in circle and in TFLite."""


@pytest.mark.parametrize(("member", "circle", "tflite"), HAND, ids=lambda m: getattr(m, "name", ""))
def test_numbers_of_both_formats(member: IntEnum, circle: int, tflite: int | None) -> None:
    assert (CIRCLE.number(member), TFLITE.number(member)) == (circle, tflite)
    assert CIRCLE.member(type(member), circle) is member
    if tflite is None:
        assert TFLITE.member(type(member), circle) is not member
    else:
        assert TFLITE.member(type(member), tflite) is member


def test_every_member_that_the_formats_number_differently_is_listed() -> None:
    moved = {(enum, name) for enum, names in TFLITE.numbers.items() for name in names}
    assert moved == {(type(m), m.name) for m, circle, tflite in HAND if circle != tflite}
    assert not CIRCLE.numbers
    assert not CIRCLE.slots


def test_a_number_that_tflite_moved_away_means_nothing_there() -> None:
    assert TFLITE.member(QuantizationDetails, 3) is None
    assert TFLITE.member(TensorType, -1) is None
    assert CIRCLE.member(TensorType, 20) is None
    assert CIRCLE.member(TensorType, 99) is TFLITE.member(TensorType, 99) is None


def test_slots_of_both_formats() -> None:
    metadata = next(f for f in TABLES["SubGraph"].fields if f.name == "debug_metadata_index")
    assert CIRCLE.slot("SubGraph", metadata.name, metadata.id) == 6
    assert TFLITE.slot("SubGraph", metadata.name, metadata.id) == 5
    compression = next(f for f in TABLES["Tensor"].fields if f.name == "compression_type")
    assert CIRCLE.slot("Tensor", compression.name, compression.id) == 10
    assert TFLITE.slot("Tensor", compression.name, compression.id) is None


def test_identifiers_and_versions() -> None:
    assert (CIRCLE.identifier, CIRCLE.model_version) == (b"CIR0", 0)
    assert (TFLITE.identifier, TFLITE.model_version) == (b"TFL3", 3)
