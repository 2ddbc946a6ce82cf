"""Call a model by the names that one of its signatures gives to arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

from luciole.interpreter.details import TensorDetails
from luciole.interpreter.errors import InputError
from luciole.ir import Array, Graph, Signature, Value


class Runs(Protocol):
    """An interpreter of a signature's graph."""

    graph: Graph

    def computed(self, inputs: Mapping[str, Any], values: Sequence[Value], /) -> list[Array]:
        """Run the graph on arrays by input name; return copies of tensors."""

    def get_tensor_details(self) -> list[TensorDetails]:
        """Return LiteRT's dictionaries of all tensors."""


class SignatureRunner:
    """``runner(name=array, ...)`` runs the model and returns the results by name, as in LiteRT:
    in alphabetical order.
    """

    def __init__(self, interpreter: Runs, signature: Signature) -> None:
        self._interpreter = interpreter
        self._signature = signature

    def __call__(self, **arguments: Any) -> dict[str, Array]:
        """Run the model. Raises InputError for names, types or shapes that it does not take."""
        names = dict(self._signature.inputs)
        if arguments.keys() != names.keys():
            raise InputError(
                f"{self._signature.key} takes {sorted(names)}, given were {sorted(arguments)}"
            )
        inputs = {names[name].name: array for name, array in arguments.items()}
        outputs = sorted(self._signature.outputs, key=itemgetter(0))
        results = self._interpreter.computed(inputs, [value for _, value in outputs])
        return {name: array for (name, _), array in zip(outputs, results, strict=True)}

    def get_input_details(self) -> dict[str, TensorDetails]:
        """Return LiteRT's dictionaries of the arguments, by name."""
        return self._details(self._signature.inputs)

    def get_output_details(self) -> dict[str, TensorDetails]:
        """Return LiteRT's dictionaries of the results, by name."""
        return self._details(self._signature.outputs)

    def _details(self, side: list[tuple[str, Value]]) -> dict[str, TensorDetails]:
        details = self._interpreter.get_tensor_details()
        return {n: details[self._index(v)] for n, v in sorted(side, key=itemgetter(0))}

    def _index(self, value: Value) -> int:
        return self._interpreter.graph.values.index(value)
