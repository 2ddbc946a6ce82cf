"""Keep what other frameworks print away from the user's terminal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep messages back that a framework prints while it loads and converts."""
    with open(os.devnull, "w") as nowhere:
        saved = os.dup(1), os.dup(2)
        try:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            os.close(saved[0])
            os.close(saved[1])


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Keep quiet, without Python's messages: that stays in a buffer until all is over."""
    with quiet(), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
