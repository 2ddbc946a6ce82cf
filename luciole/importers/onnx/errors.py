"""Say why a node of an ONNX graph is not imported."""

from __future__ import annotations

from luciole.ir import LucioleError


class RefusedError(LucioleError):
    """One node says something that has no form here; the sentence says what. Another form of the
    node may have one: its function body is tried next.
    """
