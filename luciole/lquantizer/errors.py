"""Name what can go wrong while a model is quantized."""

from luciole.ir import LucioleError


class QuantizeError(LucioleError, ValueError):
    """Settings, config or data that a quantization cannot use."""
