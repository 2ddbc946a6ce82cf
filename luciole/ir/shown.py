"""Let notebooks show objects: the room of the models only knows that somebody draws them."""

from __future__ import annotations

from collections.abc import Callable

Drawer = Callable[[object], str | None]
"""Makes the HTML of an object, None where there is none."""

Writer = Callable[[object], str]
"""Writes the text of an object that ``print`` shows."""

_drawers: list[Drawer] = []
_writers: list[Writer] = []


def show_with(drawer: Drawer, writer: Writer) -> None:
    """Set who draws, and who writes, everything from now on."""
    _drawers[:], _writers[:] = [drawer], [writer]


class Shown:
    """Has a picture in notebooks, where there is somebody who draws it."""

    def _repr_html_(self) -> str | None:
        """Return the HTML that notebooks show, None where they show the text."""
        return _drawers[0](self) if _drawers else None


class Written(Shown):
    """Has a text of several lines, which ``print`` shows, where there is somebody who writes it."""

    def __str__(self) -> str:
        """Return the text, the short one that ``repr`` has where nobody writes it."""
        return _writers[0](self) if _writers else repr(self)
