"""Models and helpers for the tests of the text forms."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.ir import Buffer, Graph, Model, Signature, TensorType, UnknownOp, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.text.listing import dump
from luciole.schema.enums import (
    ActivationFunctionType,
    BuiltinOperator,
    Padding,
)
from luciole.schema.tables import (
    QuantizationParameters,
)

BLANK = "␣"
"""Stands for a blank at a line's end in expected texts."""

LEGEND = """\
Operands: T(subgraph index : tensor index) TYPE (shape) (shape_signature) \
B(buffer index) (variable) OperandName
"""
OPERATORS = """\
Operators: O(subgraph index : operator index) OpCodeName␣
    Option(values) ... <-- depending on OpCode
    I T(tensor index) OperandName <-- as input
    O T(tensor index) OperandName <-- as output
"""
DOUBLE_RULE = "=" * 67 + "\n"
RULE = "-" * 67 + "\n"


def expected(text: str) -> str:
    return text.replace(BLANK, " ")


def f32(*numbers: float) -> NDArray[np.float32]:
    return np.array(numbers, np.float32)


def u8(*numbers: int) -> NDArray[np.uint8]:
    return np.array(numbers, np.uint8)


def one_graph() -> tuple[Model, Graph]:
    model = Model()
    return model, model.add_graph(Graph("main"))


def conv_model() -> Model:
    """A convolution with an unknown batch, quantized at its borders, that a signature calls."""
    model, graph = one_graph()
    model.description = "made by a test"
    x = graph.add_input("image", (None, 4, 4, 1))
    x.quantization = QuantizationParameters(
        min=f32(-1),
        max=f32(1),
        scale=f32(1 / 127),
        zero_point=np.zeros(1, np.int64),
    )
    kernel = graph.add_constant("kernel", np.arange(-4, 4, dtype=np.int8).reshape(2, 2, 2, 1))
    kernel.quantization = QuantizationParameters(
        scale=f32(0.5, 0.25), zero_point=np.zeros(2, np.int64), quantized_dimension=0
    )
    op = Conv2D(x, kernel, padding=Padding.VALID, stride_w=2, stride_h=1)
    op.activation = ActivationFunctionType.RELU6
    op.version = 3
    graph.append(op, "features")
    graph.outputs = [op.output]
    model.signatures.append(Signature("serve", graph, [("in", x)], [("out", op.output)]))
    return model


def lines(model: Model, start: str) -> list[str]:
    """The lines from the one that starts so up to the next empty one."""
    found = dump(model, "m").split("\n")
    first = next(i for i, line in enumerate(found) if line.startswith(start))
    return found[first : found.index("", first)]


def custom(options: bytes | None, **given: Any) -> Model:
    model, graph = one_graph()
    data = None if options is None else np.frombuffer(options, np.uint8)
    op = UnknownOp(
        BuiltinOperator.CUSTOM,
        [graph.add_input("x", (1,))],
        custom_code="Magic",
        custom_options=data,
        **given,
    )
    graph.append(op, results=[graph.add_value(Value("y", TensorType.FLOAT32, (1,)))])
    return model


def with_metadata(**entries: bytes) -> Model:
    model, _ = one_graph()
    for name, raw in entries.items():
        model.metadata.append((name, Buffer(np.frombuffer(raw, np.uint8))))
    return model


def source_table(entries: dict[int, bytes]) -> bytes:
    packed = (struct.pack("<II", i, len(n) + 1) + n + b"\0" for i, n in entries.items())
    return struct.pack("<I", len(entries)) + b"".join(packed)


def op_table(entries: dict[int, list[int]]) -> bytes:
    packed = (struct.pack(f"<II{len(o)}I", i, len(o), *o) for i, o in entries.items())
    return struct.pack("<I", len(entries)) + b"".join(packed)


def every_kind() -> bytes:
    """A map with a value of every kind that the builder makes."""
    b = flexbuffers.Builder()
    with b.Map():
        b.String("text", 'a"b\\\n\x1f\x7fé\U0001f600')
        b.Int("int", -3)
        b.UInt("uint", 300)
        b.Float("float", 0.1)
        b.Bool("bool", True)
        b.Key("null")
        b.Null()
        b.Key("vector")
        with b.Vector():
            b.Int(1)
            b.String("x")
            b.Bool(False)
        b.Key("map")
        with b.Map():
            b.Int("z", 1)
            b.String("y", "q")
        b.Key("empty")
        with b.Vector():
            pass
        for key, numbers in {
            "typed": [1, 2, 300],
            "bools": [True, False],
            "floats": [1.5, -2.0],
        }.items():
            b.Key(key)
            b.TypedVectorFromElements(numbers)
        b.Key("fixed")
        b.FixedTypedVectorFromElements([1.5, 2.5, 3.0])
        b.Key("blob")
        b.Blob(b"\x00\x01\xff")
        b.Key("indirect")
        b.IndirectInt(7)
        for key, number in {"large": 1e30, "inf": float("inf"), "tiny": 1e-20}.items():
            b.Float(key, number)
    return bytes(b.Finish())
