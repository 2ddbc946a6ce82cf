"""Errors of operators that compute."""

from __future__ import annotations

from luciole.ir import LucioleError


class ExecutionError(LucioleError):
    """An operator could not compute its result from its operands."""


class MemoryLimitError(ExecutionError, MemoryError):
    """A model asks for more memory than the caller allows."""
