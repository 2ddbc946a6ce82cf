"""Run models: plans, memory, observers and the interpreter that people call."""

from luciole.interpreter.compile import compile_graph
from luciole.interpreter.errors import BusyError, InputError, NotPickledError
from luciole.interpreter.interpreter import Interpreter
from luciole.interpreter.observe import ActivationSaver, Observer
from luciole.interpreter.plan import Plan
from luciole.kernels.core.errors import ExecutionError

__all__ = [
    "ActivationSaver",
    "BusyError",
    "ExecutionError",
    "InputError",
    "Interpreter",
    "NotPickledError",
    "Observer",
    "Plan",
    "compile_graph",
]
