"""List the names of operators and their options in ONE's model recipes, and the defaults that
differ.

A recipe is a model in protobuf's text format (``compiler/tflchef``, ``compiler/circlechef``). Names
follow rules; what departs from them stands in one table each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from luciole.schema.enums import (
    BuiltinOperator,
    BuiltinOptions,
    BuiltinOptions2,
    Padding,
    TensorType,
)
from luciole.schema.numbers import numbers_of
from luciole.schema.table import TABLES, Field, Table

_TYPES = {
    "BATCH_TO_SPACE_ND": "BatchToSpaceND",
    "BCQ_FULLY_CONNECTED": "BCQFullyConnected",
    "BCQ_GATHER": "BCQGather",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "BidirectionalSequenceLSTM",
    "BATCH_MATMUL": "BatchMatMul",
    "CUMSUM": "CumSum",
    "ELU": "ELU",
    "GRU": "GRU",
    "L2_NORMALIZATION": "L2Normalize",
    "LQ_CONV_2D": "LQConv2D",
    "LQ_FULLY_CONNECTED": "LQFullyConnected",
    "PADV2": "PadV2",
    "PRELU": "PRelu",
    "RELU": "ReLU",
    "RELU6": "ReLU6",
    "RELU_0_TO_1": "ReLU0To1",
    "RELU_N1_TO_1": "ReLUN1To1",
    "ROPE": "RoPE",
    "SPACE_TO_BATCH_ND": "SpaceToBatchND",
    "SVDF": "SVDF",
    "TOPK_V2": "TopKV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
}
"""Operator types that are not the builtin's words, each with a capital."""

_MESSAGES = {
    "ARG_MAX": "argmax",
    "ARG_MIN": "argmin",
    "AVERAGE_POOL_2D": "averagepool2d",
    "BATCH_TO_SPACE_ND": "batch_to_space",
    "CONV_2D": "conv2d",
    "DEPTHWISE_CONV_2D": "depthwiseconv2d",
    "FAKE_QUANT": "fakequant",
    "FLOOR_DIV": "floordiv",
    "FLOOR_MOD": "floormod",
    "FULLY_CONNECTED": "fullyconnected",
    "GREATER_EQUAL": "greaterequal",
    "L2_NORMALIZATION": "l2norm",
    "L2_POOL_2D": "l2pool2d",
    "LESS_EQUAL": "lessequal",
    "MAX_POOL_2D": "maxpool2d",
    "MIRROR_PAD": "mirrorpad",
    "NOT_EQUAL": "notequal",
    "ONE_HOT": "onehot",
    "PADV2": "padv2",
    "REVERSE_V2": "reversev2",
}
"""Options messages (before ``_options``) that are not the builtin's name in lower case."""

_TABLES = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MULTINOMIAL": "RandomOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions",
    "RANDOM_UNIFORM": "RandomOptions",
    "REDUCE_ALL": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "SUM": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
}
"""Options tables that are not called as their operator."""

FIELDS = {
    "activation": "fused_activation_function",
    "adj_x": "adjoint_lhs",
    "adj_y": "adjoint_rhs",
    "squeeze_dim": "squeeze_dims",
}
"""Fields of options messages that the schema calls otherwise."""

_DEFAULTS: dict[tuple[str, str], object] = {
    **{
        (table, field): value
        for table in ("Conv2DOptions", "DepthwiseConv2DOptions", "TransposeConvOptions")
        for field, value in (("padding", Padding.VALID), ("stride_w", 1), ("stride_h", 1))
    },
    ("DepthwiseConv2DOptions", "depth_multiplier"): 1,
    ("Pool2DOptions", "padding"): Padding.VALID,
    ("Pool2DOptions", "stride_w"): 1,
    ("Pool2DOptions", "stride_h"): 1,
    ("Pool2DOptions", "filter_width"): 1,
    ("Pool2DOptions", "filter_height"): 1,
    ("ArgMaxOptions", "output_type"): TensorType.INT64,
    ("ArgMinOptions", "output_type"): TensorType.INT64,
    ("ShapeOptions", "out_type"): TensorType.INT32,
    ("OneHotOptions", "axis"): -1,
    ("LocalResponseNormalizationOptions", "radius"): 5,
    ("LocalResponseNormalizationOptions", "bias"): 1.0,
    ("LocalResponseNormalizationOptions", "alpha"): 1.0,
    ("LocalResponseNormalizationOptions", "beta"): 0.5,
    ("LeakyReluOptions", "alpha"): 0.2,
    ("SparseToDenseOptions", "validate_indices"): True,
    ("InstanceNormOptions", "epsilon"): 1e-5,
    ("BidirectionalSequenceLSTMOptions", "time_major"): True,
}
"""Defaults of options that are not the schema's, by table and field."""

_MAX_POOL = {
    "filter_width": 1,
    "filter_height": 1,
    "stride_w": 1,
    "stride_h": 1,
    "padding": Padding.VALID,
    "output_type": TensorType.INT64,
    "include_batch_in_index": False,
}

CUSTOM: dict[str, Mapping[str, Any]] = {
    "AddV2": {"T": TensorType.FLOAT32},
    "All": {"Tidx": TensorType.INT32, "keep_dims": False},
    "BroadcastTo": {"T": TensorType.FLOAT32, "Tidx": TensorType.INT32},
    "BatchMatMulV2": {"adj_x": False, "adj_y": False, "T": TensorType.FLOAT32},
    "Erf": {"T": TensorType.FLOAT32},
    "MatMul": {"transpose_a": False, "transpose_b": False, "T": TensorType.FLOAT32},
    "MatrixBandPart": {"T": TensorType.FLOAT32, "Tindex": TensorType.INT64},
    "MaxPoolWithArgMax": _MAX_POOL,
    "MaxPoolWithArgmax": _MAX_POOL,
}
"""TensorFlow's operators that ONE keeps as CUSTOM: their options and defaults. TFLite has come to
have some of them; recipes call those by their code, BROADCAST_TO.
"""

INDEX_VECTORS = {
    "SparseIdxVecType_NONE": None,
    "INT32VEC": "Int32Vector",
    "UINT16VEC": "Uint16Vector",
    "UINT8VEC": "Uint8Vector",
}
"""Tables of a sparse tensor's indices by the name that recipes have for their width."""

CUSTOM_MESSAGES = {
    "BatchMatMulV2": "batch_matmul",
    "MaxPoolWithArgMax": "max_pool_with_argmax",
    "MaxPoolWithArgmax": "max_pool_with_argmax",
}
"""Options messages of custom operators that another operator's name stands for."""


def plain(name: str) -> str:
    """Write a name without capitals and underscores, by which recipes and the schema agree."""
    return name.replace("_", "").lower()


def _camel(name: str) -> str:
    words = name.split("_")
    return "".join(word if word[:1].isdigit() else word.capitalize() for word in words)


_BY_TYPE = {plain(_TYPES.get(code.name, code.name)): code for code in BuiltinOperator}
_BY_TABLE = {
    plain(tag.name): tag.name for union in (BuiltinOptions2, BuiltinOptions) for tag in union
}


def builtin_of(type_: str) -> BuiltinOperator | None:
    """Find the operator that a recipe's ``type`` names, None for a custom one."""
    return None if type_ in CUSTOM else _BY_TYPE.get(plain(type_))


def type_of(code: BuiltinOperator) -> str:
    """Find the name of an operator in recipes."""
    name = _TYPES.get(code.name, _camel(code.name))
    return code.name if name in CUSTOM else name


def message_of(code: BuiltinOperator) -> str:
    """Find the name of an operator's options in recipes."""
    return f"{_MESSAGES.get(code.name, code.name.lower())}_options"


def custom_message_of(type_: str) -> str:
    """Find the name of a custom operator's options in recipes."""
    return f"{CUSTOM_MESSAGES.get(type_, plain(type_))}_options"


def table_of(code: BuiltinOperator) -> type[Table] | None:
    """Find the options table of an operator, None where the schema has none."""
    name = _TABLES.get(code.name) or _BY_TABLE.get(f"{plain(code.name)}options")
    return None if name is None else TABLES[name]


def default_of(table: type[Table], field: str) -> object:
    """Find the value of an options field that a recipe leaves out."""
    of_schema = {f.name: f.default for f in table.fields}[field]
    value = _DEFAULTS.get((table.__name__, field), of_schema)
    return float(np.float32(value)) if isinstance(value, float) else value


def told(options: Table) -> Iterator[tuple[Field, Any]]:
    """List the options that a recipe spells out: those that are not its default or not the
    schema's.
    """
    for field in options.fields:
        value = getattr(options, field.name)
        if field.kind != "scalar":
            if value is not None and len(value):
                yield field, value
        elif value != field.default or value != default_of(type(options), field.name):
            yield field, value


def custom_bytes(type_: str, options: Mapping[str, Any]) -> bytes:
    """Write a custom operator's options as a FlexBuffer map, in which enum members are numbers."""
    stored = _pool_entries(options) if CUSTOM.get(type_) is _MAX_POOL else options
    if not stored:
        return b""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in stored.items():
            builder.Key(name)
            if isinstance(value, list):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(int(value) if isinstance(value, IntEnum) else value)
    return bytes(builder.Finish())


def custom_options(type_: str, entries: Mapping[str, Any]) -> dict[str, Any] | None:
    """Find the options that a recipe gives a custom operator for the entries of its map, None where
    none do; the entries themselves for operators that ONE does not know.
    """
    defaults = CUSTOM.get(type_, {})
    options = _pool_options(entries) if defaults is _MAX_POOL else entries
    if options.keys() != defaults.keys():
        return None
    return {name: _as(default, options[name]) for name, default in defaults.items()}


def _as(default: object, value: object) -> object:
    kind = type(default)
    if issubclass(kind, IntEnum) and isinstance(value, int) and value in numbers_of(kind):
        return kind(value)
    return bool(value) if isinstance(default, bool) else value


def _pool_entries(options: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a pool's options into TensorFlow's attributes, with the width first as ONE has it."""
    return {
        "ksize": [1, options["filter_width"], options["filter_height"], 1],
        "strides": [1, options["stride_w"], options["stride_h"], 1],
        "Targmax": options["output_type"],
        "padding": Padding(options["padding"]).name,
        "include_batch_in_index": options["include_batch_in_index"],
        "T": TensorType.FLOAT32,
    }


def _pool_options(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Turn TensorFlow's attributes into a pool's options; empty where they are not all there."""
    attributes: tuple[Any, ...] = tuple(entries.get(n) for n in ("ksize", "strides", "padding"))
    kernel, strides, padding = attributes
    if not (_is_window(kernel) and _is_window(strides) and padding in ("SAME", "VALID")):
        return {}
    _, width, height, _ = kernel
    _, stride_w, stride_h, _ = strides
    return {
        "filter_width": width,
        "filter_height": height,
        "stride_w": stride_w,
        "stride_h": stride_h,
        "padding": Padding[padding],
        "output_type": entries.get("Targmax"),
        "include_batch_in_index": entries.get("include_batch_in_index"),
    }


def _is_window(size: object) -> bool:
    """Return whether an attribute is an extent for each of four axes."""
    return isinstance(size, list) and len(size) == 4 and all(type(n) is int for n in size)
