"""Runtimes with LiteRT's calls: LiteRT itself, and luciole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from luciole.ir import Array
from luciole.tools.bench.runtime import Port, Runtime, Shape, filled
from luciole.tools.common.timing import Call


class LiteRTCalls(Protocol):
    """Methods that an interpreter has to have."""

    def allocate_tensors(self) -> None:
        """Take memory."""

    def get_input_details(self) -> Sequence[Mapping[str, Any]]:
        """Return dictionaries of the inputs."""

    def get_output_details(self) -> Sequence[Mapping[str, Any]]:
        """Return dictionaries of the outputs."""

    def resize_tensor_input(self, input_index: int, tensor_size: Shape, /) -> None:
        """Give an input another shape."""

    def set_tensor(self, tensor_index: int, value: Array, /) -> None:
        """Copy into a tensor."""

    def get_tensor(self, tensor_index: int, /) -> Array:
        """Copy a tensor."""

    def invoke(self) -> None:
        """Run."""

    def reset_all_variables(self) -> None:
        """Set variables to their first contents."""


class TensorRuntime(Runtime):
    """A runtime whose tensors have numbers."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._inputs: list[int] = []
        self._outputs: list[int] = []

    def start(self, interpreter: LiteRTCalls, shapes: Sequence[Shape]) -> None:
        """Give the inputs their shapes and take memory."""
        self.resize(interpreter, shapes)
        interpreter.allocate_tensors()
        ins, outs = interpreter.get_input_details(), interpreter.get_output_details()
        self.inputs, self.outputs = [_port(d) for d in ins], [_port(d) for d in outs]
        self._inputs, self._outputs = [d["index"] for d in ins], [d["index"] for d in outs]
        self._set, self._get = interpreter.set_tensor, interpreter.get_tensor
        self.invoke, self._forget = interpreter.invoke, interpreter.reset_all_variables

    def resize(self, interpreter: LiteRTCalls, shapes: Sequence[Shape]) -> None:
        """Resize inputs where the file leaves extents open, and nothing else."""
        for detail, shape in zip(interpreter.get_input_details(), shapes, strict=False):
            signature = detail["shape_signature"].tolist()
            if -1 in signature:
                interpreter.resize_tensor_input(detail["index"], filled(signature, shape))

    def feed(self, arrays: Sequence[Array]) -> None:
        """Call ``set_tensor`` for each input."""
        for index, array in zip(self._inputs, arrays, strict=True):
            self._set(index, array)

    def fetch(self) -> list[Array]:
        """Call ``get_tensor`` for each output."""
        return [self._get(index) for index in self._outputs]

    def with_copies(self, arrays: Sequence[Array]) -> list[Array]:
        """Feed, invoke and fetch, variables being as they were at first."""
        self._forget()
        return super().with_copies(arrays)

    def copying(self, arrays: Sequence[Array]) -> Call:
        """Put as little Python around the calls as there can be, because it is timed."""
        inputs, outputs = list(enumerate(self._inputs)), self._outputs
        set_tensor, invoke, get_tensor = self._set, self.invoke, self._get

        def call() -> None:
            for place, index in inputs:
                set_tensor(index, arrays[place])
            invoke()
            for index in outputs:
                get_tensor(index)

        return call


def _port(detail: Mapping[str, Any]) -> Port:
    return Port.of(detail["name"], detail["dtype"], detail["shape"], *detail["quantization"])
