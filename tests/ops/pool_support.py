"""Mediapipe's pools."""

from __future__ import annotations

from typing import Any

from luciole.ir.ops.mediapipe import StructPadding

SAME, VALID = StructPadding.SAME, StructPadding.VALID


def pool(width: int, height: int, padding: StructPadding = VALID) -> dict[str, Any]:
    sizes = {"stride_width": width, "filter_width": width}
    return {"padding": padding, "stride_height": height, "filter_height": height, **sizes}
