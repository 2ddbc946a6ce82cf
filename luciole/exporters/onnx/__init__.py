"""ONNX files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from luciole.exporters.writer import ModelWriter

if TYPE_CHECKING:
    from luciole.ir import Model, Op


class OnnxWriter(ModelWriter):
    """Writes .onnx files of an operator set, 18 or what their integers need unless it is given."""

    extension = ".onnx"

    def __init__(self, opset: int | None = None, exact: bool = False) -> None:
        self.opset = opset
        self.exact = exact

    def of_opset(self, opset: int) -> OnnxWriter:
        """Make a writer of another operator set."""
        return OnnxWriter(opset, self.exact)

    def exactly(self) -> OnnxWriter:
        """Make a writer of int8 layers whose codes are those of TFLite's kernels."""
        return OnnxWriter(self.opset, True)

    def inexact(self, model: Model) -> list[Op]:
        """List the operators on integers that have no form in exact arithmetic, where one is asked
        for: QuantizeLinear rounds once, halves to even.
        """
        from luciole.exporters.onnx.rules import inexact
        from luciole.ir.graph import all_ops

        return inexact(all_ops(model.graphs)) if self.exact else []

    def parts(self, model: Model, use_buffer_offset: bool = False) -> Iterator[memoryview]:
        """Give a file's bytes in one part: constants have no other place than among the nodes."""
        from luciole.exporters.onnx.whole import export_model

        yield memoryview(export_model(model, self.opset, self.exact))
