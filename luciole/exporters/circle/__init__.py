"""Circle and TFLite files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from luciole.exporters.writer import ModelWriter

if TYPE_CHECKING:
    from luciole.ir import Model


class CircleWriter(ModelWriter):
    """Writes .circle files."""

    extension = ".circle"

    def parts(self, model: Model, use_buffer_offset: bool = False) -> Iterator[memoryview]:
        """Give a file's bytes in parts."""
        from luciole.exporters.circle.tables import export_model
        from luciole.schema.dialect import CIRCLE

        return export_model(model, CIRCLE, use_buffer_offset)


class TFLiteWriter(ModelWriter):
    """Writes .tflite files."""

    extension = ".tflite"

    def parts(self, model: Model, use_buffer_offset: bool = False) -> Iterator[memoryview]:
        """Give a file's bytes in parts."""
        from luciole.exporters.circle.tables import export_model
        from luciole.schema.dialect import TFLITE

        return export_model(model, TFLITE, use_buffer_offset)
