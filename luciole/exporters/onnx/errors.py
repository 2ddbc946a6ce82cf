"""Refuse operators that ONNX has no form of."""

from __future__ import annotations

from luciole.ir import LucioleError


class RefusedError(LucioleError):
    """An operator that ONNX has no form of; the sentence gives the reason."""
