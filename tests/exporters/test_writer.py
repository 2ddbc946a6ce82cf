"""Writers: found by their folders, asked for by the extension of a file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from luciole.exporters import to_bytes
from luciole.exporters.writer import ModelWriter, writable, writer_of, writers
from luciole.ir import LucioleError, Model
from luciole.schema.dialect import DIALECTS


def test_each_dialect_has_a_writer() -> None:
    formats = {writer.format for writer in writers()}
    assert formats == {"onnx", *(dialect.name for dialect in DIALECTS)}
    assert writable() == ".circle, .tflite or .onnx"


@pytest.mark.parametrize(
    ("name", "format"), [("x", "circle"), ("x.CIRCLE", "circle"), ("x.y.tflite", "tflite")]
)
def test_extensions_decide(name: str, format: str) -> None:
    assert writer_of(Path(name)).format == format


def test_writing_refuses_other_formats() -> None:
    text = r"^model\.pt: can write \.circle, \.tflite and \.onnx, not \.pt$"
    with pytest.raises(LucioleError, match=text):
        to_bytes(Model(), "pt")


@pytest.mark.parametrize("extension", ["", "odd", ".ODD"])
def test_writers_refuse_classes_that_no_name_asks_for(extension: str) -> None:
    with pytest.raises(TypeError, match=rf"^writer Odd: '{extension}' is not like '\.circle'$"):
        type("Odd", (ModelWriter,), {"extension": extension})
