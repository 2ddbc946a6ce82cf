"""Circle and TFLite files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from luciole.exporters.writer import ModelWriter

if TYPE_CHECKING:
    from luciole.ir import Model, Op


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

    def refused(self, model: Model) -> list[Op]:
        """List quotients and powers of INT64, which LiteRT refuses."""
        from luciole.ir import TensorType
        from luciole.ir.graph import all_ops
        from luciole.ir.ops.elementwise_binary import Div, FloorDiv, Pow

        kinds = (Div, FloorDiv, Pow)
        ops = (op for op in all_ops(model.graphs) if isinstance(op, kinds))
        return [op for op in ops if op.x.dtype == TensorType.INT64]

    def parts(self, model: Model, use_buffer_offset: bool = False) -> Iterator[memoryview]:
        """Give a file's bytes in parts."""
        from luciole.exporters.circle.tables import export_model
        from luciole.schema.dialect import TFLITE

        return export_model(model, TFLITE, use_buffer_offset)
