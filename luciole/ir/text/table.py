"""Write tables, sizes and figures for people."""

from __future__ import annotations

from luciole.schema.columns import aligned, shortened, size_text

__all__ = ["aligned", "number_text", "percent_text", "shortened", "size_text"]


def percent_text(share: float | None) -> str:
    """Write a share in percent, a dash for none."""
    return "-" if share is None else f"{100 * share:.2f} %"


def number_text(value: float | None) -> str:
    """Write a figure with three digits, a dash for none."""
    return "-" if value is None else f"{value:.3g}"
