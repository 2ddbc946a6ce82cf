"""Preprocessing written as arithmetic in one variable, like ``(x/255 - 0.1307)/0.3081``, for all
inputs or, behind a name, for one: ``image=x/255; mask=none``.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.names import names_of
from luciole.ir.value import Value
from luciole.tools.data.errors import AskedError
from luciole.tools.data.fitting import Transform

ALLOWED = "allowed are x, numbers, + - * /, unary minus and parentheses"

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

_LONGEST = 200
"""Characters; also bounds how deep the expression nests."""

_LARGEST = float(np.finfo(np.float32).max)


def transforms_of(text: str, graph: Graph) -> list[Transform | None]:
    """Compile the expression for each input of a graph, in order, None for an input without one.

    Expressions are separated by semicolons. One behind ``NAME=``, a tensor's or a signature's, is
    for that input, one without for all others. Raises AskedError for what is not understood, and
    where nothing has such a name.
    """
    default: Transform | None = None
    named: dict[Value, Transform | None] = {}
    for part in text.split(";"):
        name, equals, expression = part.rpartition("=")
        transform = parse_preprocess(expression)
        if equals:
            named[_input(graph, name.strip())] = transform
        else:
            default = transform
    return [named.get(value, default) for value in graph.inputs]


def _input(graph: Graph, name: str) -> Value:
    matching = [value for value in graph.inputs if name in names_of(value)]
    if len(matching) != 1:
        known = ", ".join(repr(n) for value in graph.inputs for n in names_of(value))
        raise AskedError(f"preprocess: {name!r} is no input, there is {known}")
    return matching[0]


def parse_preprocess(text: str) -> Transform | None:
    """Compile the function that an expression describes, None for ``none``.

    It maps float32 arrays of at least one axis to float32 arrays of the same shape; numbers are
    rounded to float32 when they meet ``x``, as NumPy does. Raises AskedError for anything but
    arithmetic in ``x``.
    """
    if text.strip() == "none":
        return None
    tree = _parse(text)
    _check(tree, text)
    if not any(isinstance(node, ast.Name) for node in ast.walk(tree)):
        raise AskedError(f"preprocess {text!r} does not use x, e.g. x/255")
    return lambda x: np.asarray(_evaluate(tree, x), np.float32)


def _parse(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise AskedError(f"preprocess has {len(text)} characters, at most {_LONGEST} are allowed")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise AskedError(f"preprocess {text!r} is not an expression: {ALLOWED}") from error


def _check(node: ast.expr, text: str) -> float | None:
    """Check a part, and return its value where it is without ``x``, None where it is not; refuse
    what is not arithmetic.
    """
    if isinstance(node, ast.Name) and node.id == "x":
        return None
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _constant(lambda: _number(node), node, text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _check(node.operand, text)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _check(node.left, text), _check(node.right, text)
        if right == 0 and isinstance(node.op, ast.Div):
            raise AskedError(f"preprocess {text!r} divides by zero")
        if left is None or right is None:
            return None
        return _constant(lambda: _OPERATORS[type(node.op)](left, right), node, text)
    raise AskedError(f"preprocess {text!r}: {_source(node, text)} is not understood; {ALLOWED}")


def _number(node: ast.Constant) -> float:
    value: Any = node.value
    return float(value)


def _constant(compute: Callable[[], float], node: ast.expr, text: str) -> float:
    try:
        value = compute()
    except OverflowError:
        value = math.inf
    if abs(value) <= _LARGEST:
        return value
    raise AskedError(f"preprocess {text!r}: {_source(node, text)} is too large for float32")


def _source(node: ast.expr, text: str) -> str:
    return repr(ast.get_source_segment(text.strip(), node) or ast.unparse(node))


def _evaluate(node: ast.expr, x: Array) -> Any:
    """Compute a checked expression: an array, or a float where ``x`` does not occur."""
    if isinstance(node, ast.Constant):
        return _number(node)
    if isinstance(node, ast.UnaryOp):
        return -_evaluate(node.operand, x)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, x), _evaluate(node.right, x))
    return x
