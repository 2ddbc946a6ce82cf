"""Errors of a model that is fed."""

from luciole.ir import LucioleError

NO_ARRAY = (TypeError, ValueError, RuntimeError)
"""Exceptions where something becomes no array: RuntimeError of a torch tensor with a gradient."""


class InputError(LucioleError, ValueError):
    """A tensor was given something that does not fit it."""


class BusyError(LucioleError, RuntimeError):
    """An interpreter is asked for something while it runs."""


class NotPickledError(LucioleError, TypeError):
    """Something belongs to this process alone."""
