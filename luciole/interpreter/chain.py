"""Run models one behind the other: parts of one that was split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from luciole.interpreter.errors import InputError
from luciole.interpreter.inputs import call_by_names, inputs_by_name
from luciole.interpreter.interpreter import Interpreter
from luciole.ir import Array, Graph, LucioleError, Model, Value
from luciole.ir.names import Way


class Chain:
    """Runs models in a row. What one gives, those behind it take under the same name; ``inputs``
    and ``outputs`` name the tensors that the caller gives and gets.

    ``graph`` has these as its ends, and all tensors that models give, but no operators. Raises
    LucioleError where a model takes what nobody before it gives.
    """

    def __init__(
        self,
        models: Sequence[Model],
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        num_threads: int = 1,
        compiled: bool = True,
    ) -> None:
        self.graph = _joined([model.graph for model in models], inputs, outputs)
        self._interpreters = [
            Interpreter(model, num_threads=num_threads, compiled=compiled) for model in models
        ]

    def run(self, inputs: Mapping[str, Any] | Any) -> dict[str, Array]:
        """Run all models on arrays by input name (one array alone where there is one input); return
        the outputs by name. Raises InputError for names, types or shapes that they do not take.
        """
        values = self.graph.outputs
        arrays = self.computed(inputs, values)
        return {value.name: array for value, array in zip(values, arrays, strict=True)}

    def computed(self, inputs: Mapping[str, Any] | Any, values: Sequence[Value]) -> list[Array]:
        """Run all models as ``run`` does; return tensors of ``graph``."""
        known = dict(inputs_by_name(inputs, self.graph))
        call_by_names(known, [Way([v.name for v in self.graph.inputs], [])])
        for interpreter in self._interpreters:
            known |= interpreter.run({v.name: known[v.name] for v in interpreter.graph.inputs})
        return [known[value.name] for value in values]

    def reset_before_run(self) -> None:
        """Give the next run fresh variables."""
        for interpreter in self._interpreters:
            interpreter.reset_before_run()


def _joined(graphs: Sequence[Graph], inputs: Sequence[str], outputs: Sequence[str]) -> Graph:
    """Make a graph of the tensors that models take and give, those of ``inputs`` first."""
    whole = Graph("parts")
    known: dict[str, Value] = {}
    taken = {value.name: value for graph in graphs[::-1] for value in graph.inputs}
    for name in inputs:
        if name not in taken:
            raise InputError(f"no part takes input {name!r}")
        known[name] = whole.add_value(taken[name].clone())
    whole.inputs = list(known.values())
    for graph in graphs:
        for value in graph.inputs:
            _check_same(value, known.get(value.name))
        for value in graph.outputs:
            if value.name not in known:
                known[value.name] = whole.add_value(value.clone())
    missing = [name for name in outputs if name not in known]
    if missing:
        raise InputError(f"no part gives output {missing[0]!r}")
    whole.outputs = [known[name] for name in outputs]
    return whole


def _check_same(value: Value, before: Value | None) -> None:
    if before is None:
        raise LucioleError(f"a part takes {value.name!r}, which no part before it gives")
    if before.dtype != value.dtype:
        types = f"{before.dtype.name}, a part takes {value.dtype.name}"
        raise LucioleError(f"{value.name!r} is {types}")
