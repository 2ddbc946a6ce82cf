"""The base of every error that luciole raises on purpose, and the one for bad bytes."""


class LucioleError(Exception):
    """Something the caller can act on; the message is one line and names who, what and what would
    be right.
    """


class FormatError(LucioleError, ValueError):
    """The bytes are not a model file, or are damaged."""
