"""Refuse extents that a caller asks for and no tensor has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from luciole.ir.errors import ShapeError, expect

_MOST = 1 << 31


def check_extents(extents: Mapping[str, object]) -> None:
    """Refuse extents by their names that are neither None nor 1 and more. Raises ShapeError."""
    for name, extent in extents.items():
        expect(extent, (int, np.integer, type(None)), f"{name}: a whole number")
        if isinstance(extent, int | np.integer) and not 1 <= extent < _MOST:
            raise ShapeError(f"{name} is {extent}: 1 to {_MOST - 1:,} are possible")


def check_shapes(shapes: Mapping[str, Sequence[object]]) -> None:
    """Refuse shapes by input that hold such extents. Raises ShapeError."""
    for name, shape in shapes.items():
        expect(shape, (list, tuple, np.ndarray), f"the shape of {name}: a list of extents")
        check_extents({f"extent {place} of {name}": n for place, n in enumerate(shape)})
