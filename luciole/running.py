"""Running models from Python: apart from the other calls, whose rooms a model needs not to run."""

from __future__ import annotations

import os

from luciole import interpreter
from luciole.importers import from_bytes, load
from luciole.interpreter.calls import DEFAULT_LOOP_LIMIT
from luciole.interpreter.compile import DEFAULT_MEMORY_LIMIT
from luciole.ir import Graph, Model

__all__ = ["Interpreter"]


class Interpreter(interpreter.Interpreter):
    """Runs a model, given as a path, as bytes (``model_content``) or as a Model.

    The calls are LiteRT's; every intermediate tensor can be read. ``graph`` is another one of a
    Model's than the main one. See ``luciole.interpreter.Interpreter``.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | Model | None = None,
        model_content: bytes | None = None,
        *,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        keep_tensors: bool = False,
        num_threads: int = 1,
        loop_limit: int = DEFAULT_LOOP_LIMIT,
        graph: Graph | None = None,
    ) -> None:
        super().__init__(
            _model_of(model_path, model_content),
            memory_limit=memory_limit,
            keep_tensors=keep_tensors,
            num_threads=num_threads,
            loop_limit=loop_limit,
            graph=graph,
        )


def _model_of(source: str | os.PathLike[str] | Model | None, content: bytes | None) -> Model:
    """Read the model of a path or of bytes. Raises TypeError where not one of both is given."""
    if (source is None) == (content is None):
        raise TypeError("give either a model or its bytes as model_content")
    if content is not None:
        return from_bytes(content)
    return source if isinstance(source, Model) else load(source)  # type: ignore[arg-type]  # given
