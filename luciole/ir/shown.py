"""Let notebooks show objects: the room of the models only knows that somebody draws them."""

from __future__ import annotations

from collections.abc import Callable

Drawer = Callable[[object], str | None]
"""Makes the HTML of an object, None where there is none."""

_drawers: list[Drawer] = []


def show_with(drawer: Drawer) -> None:
    """Set the drawer that draws everything from now on."""
    _drawers[:] = [drawer]


class Shown:
    """Has a picture in notebooks, where there is somebody who draws it."""

    def _repr_html_(self) -> str | None:
        """Return the HTML that notebooks show, None where they show the text."""
        return _drawers[0](self) if _drawers else None
