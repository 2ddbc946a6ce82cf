"""Say why ONNX cannot say an operator."""

from __future__ import annotations

from luciole.ir import LucioleError


class RefusedError(LucioleError):
    """Why ONNX cannot say an operator."""
