"""Name what can go wrong while a model is quantized."""

from luciole.ir import LucioleError


class QuantizeError(LucioleError, ValueError):
    """Settings, config or data that a quantization cannot use."""


def check_drop(points: float | None) -> None:
    """Refuse points of accuracy that cannot be lost."""
    if points is not None and not 0 <= points <= 100:
        raise QuantizeError(f"target_drop is {points}: 0 to 100 points are possible")


def check_seed(seed: int) -> None:
    """Refuse a seed that no generator takes."""
    if seed < 0:
        raise QuantizeError(f"seed is {seed}: 0 and more are possible")
