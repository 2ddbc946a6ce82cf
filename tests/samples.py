"""Made-up tables and models that use everything the format has."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from luciole.schema import tables as t
from luciole.schema.enums import (
    ActivationFunctionType,
    BuiltinOperator,
    DimensionType,
    Padding,
    TensorType,
)
from luciole.schema.table import SCALARS, TABLES, UNIONS, Field, Table


def filled(cls: type[Table]) -> Any:
    """A table in which no field has its default; unions hold their first kind."""
    return cls(**{f.name: content(f, 3 + i) for i, f in enumerate(cls.fields)})


def content(field: Field, number: int) -> Any:
    """Something that a field can hold and that is not its default."""
    if field.kind == "scalar":
        return _scalar(field, number)
    if field.kind == "vector":
        numbers = [0, 1] if field.of == "bool" else [number, 0, number + 1]
        return np.array(numbers, np.bool_ if field.of == "bool" else SCALARS[field.of])
    if field.kind == "string":
        return f"{field.name} ünïcode"
    if field.kind == "union":
        return filled(TABLES[next(tag.name for tag in UNIONS[field.of] if tag)])
    inner = TABLES[field.of]
    return [filled(inner), inner()] if field.kind == "tables" else filled(inner)


def _scalar(field: Field, number: int) -> Any:
    if field.enum is not None:
        others = (member for member in field.enum if member > 0 and member != field.default)
        return next(others, field.default)
    if field.of == "bool":
        return not field.default
    return number + 0.5 if field.of in ("float", "double") else number


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def octets(*numbers: int) -> Any:
    return np.array(numbers, np.uint8)


def _tensor(name: str, shape: Any, kind: TensorType = TensorType.FLOAT32, **more: Any) -> t.Tensor:
    return t.Tensor(name=name, shape=shape, type=kind, **more)


def _quantized(**details: Any) -> t.QuantizationParameters:
    return t.QuantizationParameters(
        min=floats(-1, -2),
        max=floats(1, 2),
        scale=floats(0.5, 0.25),
        zero_point=np.array([3, -4], np.int64),
        quantized_dimension=0,
        **details,
    )


def _sparse() -> t.SparsityParameters:
    return t.SparsityParameters(
        traversal_order=ints(0, 1, 2),
        block_map=ints(1),
        dim_metadata=[
            t.DimensionMetadata(dense_size=2),
            t.DimensionMetadata(
                format=DimensionType.SPARSE_CSR,
                array_segments=t.Int32Vector(values=ints(0, 1, 2)),
                array_indices=t.Uint8Vector(values=octets(1, 0)),
            ),
            t.DimensionMetadata(dense_size=1),
        ],
    )


def _code(number: BuiltinOperator, version: int, custom: str | None = None) -> t.OperatorCode:
    old = min(int(number), 127)
    return t.OperatorCode(
        deprecated_builtin_code=old, builtin_code=number, version=version, custom_code=custom
    )


def whole_model() -> t.Model:
    """A model file's tables with everything that a round trip must keep; also valid as TFLite."""
    main = t.SubGraph(
        tensors=_tensors(),
        inputs=ints(0),
        outputs=ints(2, 7),
        operators=_operators(),
        name="main",
        debug_metadata_index=4,
    )
    second = t.SubGraph(tensors=[_tensor("x", ints())], inputs=ints(0), outputs=ints(0), name="2nd")
    serve = t.SignatureDef(
        inputs=[t.TensorMap(name="x", tensor_index=0)],
        outputs=[t.TensorMap(name="y", tensor_index=2)],
        signature_key="serve",
    )
    other = t.SignatureDef(inputs=[], outputs=[], signature_key="other", subgraph_index=1)
    return t.Model(
        version=3,
        operator_codes=[
            _code(BuiltinOperator.CUSTOM, 7, "Mine"),
            _code(BuiltinOperator.CONV_2D, 5),
            _code(BuiltinOperator.STABLEHLO_TRANSPOSE, 1),
        ],
        subgraphs=[main, second],
        description="made by hand",
        buffers=_buffers(),
        metadata=[t.Metadata(name="min_runtime_version", buffer=6)],
        metadata_buffer=ints(7),
        signature_defs=[serve, other],
    )


def _tensors() -> list[t.Tensor]:
    """The main graph's, with every kind of quantization, sparsity and type."""
    tensors = [
        _tensor("in", ints(1, 4, 4, 2), shape_signature=ints(-1, 4, 4, 2), buffer=1, has_rank=True),
        _tensor("filter", ints(2, 1, 1, 2), TensorType.INT8, buffer=2, quantization=_quantized()),
        _tensor("out", ints(1, 4, 4, 2), shape_signature=ints(-1, 4, 4, 2), buffer=3),
        _tensor("blocks", ints(2, 2), TensorType.INT4, buffer=4),
        _tensor("state", ints(1, 2), is_variable=True),
        _tensor("sparse", ints(2, 2), buffer=5, sparsity=_sparse()),
        _tensor("twice", ints(2, 2), TensorType.INT4, buffer=4),
        _tensor("custom out", ints(2), buffer=3),
        _tensor("inner", ints(3), TensorType.INT32),
        _tensor("variant", ints(1), TensorType.VARIANT, is_variable=True),
        _tensor("transposed", ints(2, 1, 4, 4)),
        _tensor("scales", ints(2), TensorType.FLOAT16, buffer=8),
    ]
    tensors[3].quantization = t.QuantizationParameters(
        details=t.BlockwiseQuantization(scales=11, zero_points=-1, block_size=2)
    )
    tensors[9].variant_tensors = [t.VariantSubType(shape=ints(2), type=TensorType.INT8)]
    tensors[5].quantization = t.QuantizationParameters(
        details=t.CustomQuantization(custom=octets(1, 2, 3))
    )
    return tensors


def _operators() -> list[t.Operator]:
    """The main graph's: with options in a table, in bytes, and in the second union."""
    conv = t.Operator(
        opcode_index=1,
        inputs=ints(0, 1, -1),
        outputs=ints(2),
        builtin_options=t.Conv2DOptions(
            padding=Padding.SAME,
            stride_w=1,
            stride_h=1,
            fused_activation_function=ActivationFunctionType.RELU6,
        ),
        intermediates=ints(8),
        debug_metadata_index=2,
    )
    custom = t.Operator(
        opcode_index=0,
        inputs=ints(2, 4, -1, 5, 3, 6, 9),
        outputs=ints(7),
        custom_options=octets(9, 8, 7),
        mutating_variable_inputs=np.array([0, 1, 0, 0, 0, 0, 0], np.bool_),
    )
    newer = t.Operator(
        opcode_index=2,
        inputs=ints(2),
        outputs=ints(10),
        builtin_options_2=t.StablehloTransposeOptions(permutation=np.array([3, 0, 1, 2])),
    )
    return [conv, custom, newer]


def _buffers() -> list[t.Buffer]:
    contents = {
        2: octets(1, 2, 255, 254),
        4: octets(0x21, 0x43),
        5: octets(0, 0, 128, 63, 0, 0, 0, 64),
        6: octets(*b"1.5.0"),
        7: octets(7),
        8: octets(0, 60, 0, 64),
    }
    return [t.Buffer(data=contents[i]) if i in contents else t.Buffer() for i in range(9)]


def plain(value: Any) -> Any:
    """A table as the JSON that ``flatc`` prints for it, or part of one."""
    if isinstance(value, Table):
        return _plain_table(value)
    if isinstance(value, np.ndarray | list):
        return [plain(item) for item in value]
    if isinstance(value, IntEnum):
        return value.name
    return value.item() if isinstance(value, np.generic) else value


def _plain_table(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in table.fields:
        value = getattr(table, field.name)
        if value is None or (field.kind == "scalar" and value == field.default):
            continue
        if field.kind == "union":
            found[f"{field.name}_type"] = type(value).__name__
        found[field.name] = plain(value)
        if field.kind == "vector" and field.enum is not None:
            names = {int(member): member.name for member in field.enum}
            found[field.name] = [names.get(n, n) for n in found[field.name]]
    return found
