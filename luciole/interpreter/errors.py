"""What can go wrong while a model is fed."""

from luciole.ir import LucioleError


class InputError(LucioleError, ValueError):
    """A tensor was given something that does not fit it."""
