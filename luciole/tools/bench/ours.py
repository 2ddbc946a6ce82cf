"""luciole itself as a runtime, and facts that only it gives: memory, kernels compiled,
operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from luciole.importers import load
from luciole.interpreter import Interpreter
from luciole.interpreter.plan import Plan
from luciole.ir import Graph, Model
from luciole.kernels.jit import kernel_cache
from luciole.tools.bench.runtime import BenchError, Shape
from luciole.tools.bench.tensors import LiteRTCalls, TensorRuntime


class Luciole(TensorRuntime):
    """A model run by luciole's interpreter, its inputs in the shapes given, in order."""

    def __init__(self, path: Path, threads: int = 1, shapes: Sequence[Shape] = ()) -> None:
        super().__init__(path)
        with self.phases.timed("load"):
            self.model: Model = load(path)
        cache = kernel_cache()
        before = cache.compiled
        with self.phases.timed("compile"):
            self.interpreter = Interpreter(self.model, num_threads=threads)
            self.start(self.interpreter, shapes)
        self.kernels_compiled = cache.compiled - before
        self.keeps_kernels = not cache.fault

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        return self.model.graph

    @property
    def plan(self) -> Plan:
        """Plan that runs: steps, memory."""
        return self.interpreter.plan

    def resize(self, interpreter: LiteRTCalls, shapes: Sequence[Shape]) -> None:
        """Give all inputs just these shapes. Raises BenchError when their number differs."""
        details = interpreter.get_input_details()
        if shapes and len(shapes) != len(details):
            raise BenchError(
                f"the model has {len(details)} inputs, given were {len(shapes)} shapes"
            )
        for detail, shape in zip(details, shapes, strict=False):
            interpreter.resize_tensor_input(detail["index"], shape)


class LuciolePeer(Luciole):
    """Another model, whose inputs change only where the file leaves extents open."""

    resize = TensorRuntime.resize
