"""Interpreters that threads share, and observers that meddle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import luciole
from luciole.interpreter import Interpreter, Observer
from luciole.ir import Array, Graph, Model, Op, Signature, TensorType, UnknownOp, Value
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Abs, Exp
from luciole.schema.enums import BuiltinOperator

SIZE = 200_000
"""Elements that two threads share, and that take long enough for others to run meanwhile."""


def behind(graph: Graph, x: Value, code: str, name: str) -> Value:
    """The result of a CUSTOM operator."""
    op = UnknownOp(int(BuiltinOperator.CUSTOM), [x], custom_code=code)
    result = graph.add_value(Value(name, TensorType.FLOAT32, x.shape))
    graph.append(op, results=[result])
    return result


def model_with(code: str) -> Model:
    """y = |f(|x|)| of four elements, f being a CUSTOM operator, and a second graph z = x + x."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    first = graph.append(Abs(graph.add_input("x", (4,))), "first").output
    graph.append(Abs(behind(graph, first, code, "middle")), "y")
    graph.outputs = [graph.values[-1]]
    other = model.add_graph(Graph("other"))
    x = other.add_input("x", (4,))
    other.append(Add(x, x), "z")
    other.outputs = [other.values[-1]]
    for key, of in (("main", graph), ("other", other)):
        ends = [("x", of.inputs[0])], [("y", of.outputs[0])]
        model.signatures.append(Signature(key, of, *ends))
    return model


class Held:
    """An interpreter that runs in another thread and waits inside a CUSTOM operator."""

    def __init__(self, **settings: Any) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        luciole.custom_operator("Hold")(self._hold)
        self.interpreter = Interpreter(model_with("Hold"), **settings)
        self.other = self.interpreter.get_signature_runner("other")
        self.other(x=np.zeros(4, np.float32))
        self.interpreter.allocate_tensors()
        self.interpreter.set_tensor(0, np.array([1, -2, 3, -4], np.float32))
        self.thread = threading.Thread(target=self.interpreter.invoke)
        self.thread.start()
        self.begun.wait()

    def _hold(self, x: Array) -> Array:
        self.begun.set()
        self.released.wait()
        return x + 1

    def end(self) -> None:
        """Let it end."""
        self.released.set()
        self.thread.join()

    def release(self) -> list[float]:
        """Let it end; gives the result."""
        self.end()
        found: list[float] = self.interpreter.get_tensor(3).tolist()
        return found


class Meddler(Observer):
    """Calls something while it watches."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self.found: list[object] = []

    def after_operator(self, op: Op) -> None:
        self.found.append(self._call())


def exponentials(count: int = 3, size: int = 8) -> Model:
    """exp(exp(...x)): later ones take the memory of earlier ones."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = graph.add_input("x", (size,))
    for number in range(count):
        value = graph.append(Exp(value), f"y{number}").output
    graph.outputs = [value]
    return model


def in_threads(work: Callable[[int], None]) -> None:
    """Run something with 0 and 1 at once, and raise what it raises."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # for the thread that waits
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error
