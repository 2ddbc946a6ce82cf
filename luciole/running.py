"""Running models from Python: apart from the other calls, whose rooms a model needs not to run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from luciole import interpreter
from luciole.importers import from_bytes, load
from luciole.interpreter.calls import DEFAULT_LOOP_LIMIT
from luciole.interpreter.compile import DEFAULT_MEMORY_LIMIT
from luciole.interpreter.inputs import call_by_names
from luciole.interpreter.records import (
    Data,
    Runs,
    Track,
    check_batch,
    outputs_of,
    records_of,
    untracked,
)
from luciole.ir import Array, Graph, LucioleError, Model, Value
from luciole.ir.checked import checked
from luciole.ir.errors import expect
from luciole.ir.names import main_tensor, ways
from luciole.surgery import Parts

__all__ = ["Interpreter", "run"]


class Interpreter(interpreter.Interpreter):
    """Runs a model, given as a path, as bytes (``model_content``) or as a Model.

    The calls are LiteRT's; every intermediate tensor can be read. ``graph`` is another one of a
    Model's than the main one. See ``luciole.interpreter.Interpreter``.
    """

    @checked
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
        compiled: bool = True,
    ) -> None:
        model = _model_of(model_path, model_content)
        if graph is not None and graph not in model.graphs:
            raise LucioleError("graph: a Graph of the model is needed, found one of another model")
        super().__init__(
            model,
            memory_limit=memory_limit,
            keep_tensors=keep_tensors,
            num_threads=num_threads,
            loop_limit=loop_limit,
            graph=graph,
            compiled=compiled,
        )


def _model_of(source: str | os.PathLike[str] | Model | None, content: bytes | None) -> Model:
    """Read the model of a path or of bytes. Raises TypeError where not one of both is given."""
    if (source is None) == (content is None):
        raise TypeError("give either a model or its bytes as model_content")
    if content is not None:
        expect(content, (bytes, bytearray, memoryview), "model_content: the bytes of a model")
        return from_bytes(content)
    return source if isinstance(source, Model) else load(source)


@checked
def run(
    model: str | os.PathLike[str] | Model | Parts,
    data: Data,
    outputs: str | Sequence[str] | None = None,
    *,
    batch: int | None = None,
    num_threads: int = 1,
    compiled: bool = True,
    track: Track = untracked,
) -> dict[str, Array]:
    """Run a model, or the parts of one (``split``, or the .json file that describes them), over
    records and return what it computes of each: arrays by name, whose first axis counts records.

    ``data`` are records: arrays by input name (a tensor's or a signature's; one array alone for a
    model with one input) whose first axis counts them. uint8 and floats are quantized for a
    quantized input; its own integers are fed as they are. ``outputs`` are names of tensors, of any
    in the main graph; all outputs unless some are named, by a signature's names where the data came
    by those. Results are what the tensors store: integers of quantized ones.

    ``batch`` records are run at once: as many as give the same results as one by one unless it is
    said. Unless kernels are to be ``compiled``, NumPy computes everything. Variables (an LSTM's
    state) start afresh for each batch. Raises InputError for data that the model does not take, and
    LucioleError for names that no tensor has.
    """
    runner = _runner(opened(model), num_threads, compiled)
    graph = runner.graph
    records = records_of(graph, data)
    if batch is not None:
        check_batch(graph, batch)
    tensors = _asked(graph, outputs, data)
    count = len(next(iter(records.values()), ()))
    return outputs_of(runner, records, track("records", count), batch, tensors)


def opened(model: str | os.PathLike[str] | Model | Parts) -> Model | Parts:
    """Read the model of a path, or the parts that a .json file describes."""
    if isinstance(model, Model | Parts):
        return model
    is_path = isinstance(model, str | os.PathLike)
    return Parts.load(model) if is_path and Path(model).suffix.lower() == ".json" else load(model)


def _runner(model: Model | Parts, num_threads: int, compiled: bool) -> Runs:
    """Make an interpreter of a model, or a chain of the parts of one."""
    if isinstance(model, Parts):
        return model.chain(num_threads, compiled)
    return Interpreter(model, num_threads=num_threads, compiled=compiled)


def _asked(graph: Graph, outputs: Sequence[str] | None, data: Data) -> dict[str, Value] | None:
    """Find the tensors that results are asked of, by name; None for the outputs by their own."""
    if outputs is not None:
        if not outputs:
            raise LucioleError("outputs: at least one name is needed")
        return {name: main_tensor(graph, name) for name in outputs}
    if not isinstance(data, Mapping) or {v.name for v in graph.inputs} == set(data):
        return None
    return dict(call_by_names(map(str, data), ways(graph)).outputs)
