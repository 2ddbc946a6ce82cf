"""Read what CUSTOM operators of TensorFlow's old converters are set to."""

from __future__ import annotations

import numpy as np

from luciole.ir.text.flexbuffer import read_map
from luciole.ir.unknown_op import UnknownOp


def options_of(op: UnknownOp) -> dict[str, object] | None:
    """Read custom options by name, none where there are no bytes; None for what is no map."""
    options = op.custom_options
    if options is None or not len(options):
        return {}
    raw = options.tobytes() if isinstance(options, np.ndarray) else bytes(options)
    return read_map(raw)


def flags_of(op: UnknownOp) -> dict[str, bool] | None:
    """Read custom options that are on or off; None for what is no map."""
    options = options_of(op)
    if options is None:
        return None
    return {name: value for name, value in options.items() if isinstance(value, bool)}
