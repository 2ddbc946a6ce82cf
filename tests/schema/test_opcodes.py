"""Operator codes of both generations, in tables and in real bytes."""

from __future__ import annotations

import flatbuffers
import pytest

from luciole.importers import import_model
from luciole.ir import OPS
from luciole.schema.dialect import CIRCLE, TFLITE
from luciole.schema.enums import BuiltinOperator
from luciole.schema.errors import FormatError
from luciole.schema.opcodes import encode, resolve
from luciole.schema.reader import read
from luciole.schema.tables import Model, OperatorCode
from luciole.schema.writer import write

PLACEHOLDER = 127


def resolved(old: int, new: int) -> int:
    return resolve(OperatorCode(deprecated_builtin_code=old, builtin_code=new))  # type: ignore[arg-type]  # as read


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (9, 0, 9),  # before 2.3 there was only the byte
        (0, 0, 0),
        (126, 0, 126),
        (9, 9, 9),
        (0, 9, 9),  # the byte was never written
        (PLACEHOLDER, 127, 127),
        (PLACEHOLDER, 150, 150),
        (PLACEHOLDER, 206, 206),
        (-2, 0, -2),  # 254 as a signed byte
        (-3, 0, -3),
        (-4, 0, -4),
        (-4, -4, -4),
        (0, -5, -5),
        (PLACEHOLDER, -9, -9),
        (32, 0, 32),
        (32, 32, 32),
        (32, -64, -64),  # ours behind CUSTOM
        (-64, -64, -64),
        (32, -65, -65),
        (PLACEHOLDER, 9999, 9999),
    ],
)
def test_the_number_that_an_entry_means(old: int, new: int, expected: int) -> None:
    assert resolved(old, new) == expected


def one_code_file(identifier: bytes, byte: int, builtin: int | None, custom: str | None) -> bytes:
    """A file whose only operator has this code, its byte written unsigned, as old writers do."""
    builder = flatbuffers.Builder(256)
    name = None if custom is None else builder.CreateString(custom)
    builder.StartObject(4)
    builder.PrependUint8Slot(0, byte, 0)
    if name is not None:
        builder.PrependUOffsetTRelativeSlot(1, name, 0)
    if builtin is not None:
        builder.PrependInt32Slot(3, builtin, 0)
    code = builder.EndObject()
    builder.StartObject(4)
    operator = builder.EndObject()
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(operator)
    operators = builder.EndVector()
    builder.StartObject(5)
    builder.PrependUOffsetTRelativeSlot(3, operators, 0)
    graph = builder.EndObject()
    lists = []
    for item in (code, graph):
        builder.StartVector(4, 1, 4)
        builder.PrependUOffsetTRelative(item)
        lists.append(builder.EndVector())
    builder.StartObject(5)
    for slot, offset in enumerate(lists, 1):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.Finish(builder.EndObject(), file_identifier=identifier)
    return bytes(builder.Output())


@pytest.mark.parametrize(
    ("byte", "builtin", "custom", "kind"),
    [
        (252, None, None, "BCQ_GATHER"),
        (253, None, None, "BCQ_FULLY_CONNECTED"),
        (254, None, None, "INSTANCE_NORM"),
        (254, -2, None, "INSTANCE_NORM"),
        (PLACEHOLDER, -7, None, "ROPE"),
        (77, None, None, "SHAPE"),
        (PLACEHOLDER, 206, None, "STABLEHLO_COMPOSITE"),
        (32, None, "Mine", "CUSTOM(Mine)"),
        (32, 32, "Mine", "CUSTOM(Mine)"),
        (32, -64, "LQFullyConnected", "LQ_FULLY_CONNECTED"),
        (32, None, "LQFullyConnected", "CUSTOM(LQFullyConnected)"),
        (PLACEHOLDER, 9999, None, "9999"),
    ],
)
@pytest.mark.parametrize("identifier", [b"CIR0", b"TFL3"])
def test_codes_in_real_bytes(
    identifier: bytes, byte: int, builtin: int | None, custom: str | None, kind: str
) -> None:
    model, _ = import_model(one_code_file(identifier, byte, builtin, custom))
    assert model.graph.ops[0].kind == kind


@pytest.mark.parametrize("code", BuiltinOperator, ids=lambda code: code.name)
def test_what_is_written_is_read_as_the_same(code: BuiltinOperator) -> None:
    entry = encode(code, 3, None)
    assert resolve(entry) == code
    assert entry.builtin_code == code
    assert entry.version == 3
    again, _ = read(write(Model(operator_codes=[entry]), CIRCLE))
    assert again.operator_codes == [entry]


@pytest.mark.parametrize(
    ("code", "old"),
    [
        (BuiltinOperator.ADD, 0),
        (BuiltinOperator.CUSTOM, 32),
        (BuiltinOperator.BATCH_MATMUL, 126),
        (BuiltinOperator.CUMSUM, PLACEHOLDER),
        (BuiltinOperator.STABLEHLO_COMPOSITE, PLACEHOLDER),
        (BuiltinOperator.INSTANCE_NORM, -2),
        (BuiltinOperator.ATTENTION, -9),
        (BuiltinOperator.LQ_FULLY_CONNECTED, 32),
        (BuiltinOperator.LQ_CONV_2D, 32),
    ],
)
def test_the_old_byte(code: BuiltinOperator, old: int) -> None:
    assert encode(code, 1, None).deprecated_builtin_code == old


def test_tflite_reads_its_codes_as_the_larger_of_the_two() -> None:
    codes = [code for code in BuiltinOperator if code >= 0]
    assert len(codes) > 200
    for code in codes:
        entry = encode(code, 1, None, TFLITE)
        assert max(entry.deprecated_builtin_code, int(entry.builtin_code)) == code


NEGATIVE = [code for code in BuiltinOperator if code < 0]


@pytest.mark.parametrize("code", NEGATIVE, ids=lambda code: code.name)
def test_tflite_refuses_operators_of_circle_by_name(code: BuiltinOperator) -> None:
    with pytest.raises(
        FormatError, match=rf"^tflite has no operator {code.name}; save it as \.circle$"
    ):
        encode(code, 1, None, TFLITE)


def test_tflite_refuses_operators_of_ours_by_their_custom_name() -> None:
    (custom,) = {cls.custom_code for cls in OPS.values() if cls.code == -64}
    with pytest.raises(FormatError, match="tflite has no operator LQFullyConnected;"):
        encode(-64, 1, custom, TFLITE)


def test_writing_refuses_a_number_without_a_meaning() -> None:
    with pytest.raises(FormatError, match=r"^circle has no operator 9999$"):
        encode(9999, 1, None)
