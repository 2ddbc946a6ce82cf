"""Rules: one function for each operator class, found in the modules of ``operators``."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, wraps
from typing import Any, TypeVar

from luciole.exporters.onnx.building import Building, data_of, to_first
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.ir import Op, Value
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.resize import ResizeBilinear
from luciole.ir.passes.split_quantization import computes_with_integers
from luciole.ir.quant import Like
from luciole.ir.quantization import affine_of
from luciole.ir.value import UNRANKED

Made = Term | Sequence[Term] | None
"""An operator's results in the model's layout, None where the rule has put them itself."""
Rule = Callable[[Building, Any], Made]
_R = TypeVar("_R", bound=Rule)

_RULES: dict[type[Op], Rule] = {}
_EXACT: dict[type[Op], list[tuple[Callable[[Any], bool], Rule]]] = defaultdict(list)


def rule(*kinds: type[Op]) -> Callable[[_R], _R]:
    """Register a function as the rule of operator classes. Raises TypeError for a second one."""

    def register(function: _R) -> _R:
        for kind in kinds:
            if kind in _RULES:
                raise TypeError(f"{kind.__name__} has a rule already")
            _RULES[kind] = function
        return function

    return register


def exact_rule(*kinds: type[Op], fits: Callable[[Any], bool]) -> Callable[[_R], _R]:
    """Register a function as the rule that writes operators of int8 in exact arithmetic, for
    operators for which ``fits`` is true.
    """

    def register(function: _R) -> _R:
        for kind in kinds:
            _EXACT[kind].append((fits, function))
        return function

    return register


def is_exact(op: Op) -> bool:
    """Return whether an operator can be written in exact arithmetic."""
    rules()
    return any(fits(op) for fits, _ in _EXACT.get(type(op), ()))


def inexact(ops: Iterable[Op]) -> list[Op]:
    """List the operators on quantized integers that are written in real numbers between codes,
    which are rounded otherwise than kernels round, where others are written exactly.
    """
    return [op for op in ops if computes_with_integers(op) and not (is_exact(op) or _moves(op))]


def _moves(op: Op) -> bool:
    """Return whether an operator gives codes of its operand as they are."""
    if op.quant is None or not isinstance(op.quant.result, Like):
        return False
    parameters = [affine_of(v) for v in (*op.operands, *op.results) if v is not None]
    grids = [affine for affine in parameters if affine is not None]
    alike = all(affine.same_numbers(grids[0]) for affine in grids)
    return alike and not isinstance(op, AveragePool2D | ResizeBilinear)


def apply_exactly(k: Building, op: Op) -> None:
    """Write an operator of which ``is_exact`` tells."""
    next(write for fits, write in _EXACT[type(op)] if fits(op))(k, op)


def elementwise(*kinds: type[Op]) -> Callable[[Callable[..., Term]], Callable[..., Term]]:
    """Register a rule that works element by element, so that any layout will do: it is given the
    operands as tensors, channels first where one of them is there so.
    """

    def register(function: Callable[..., Term]) -> Callable[..., Term]:
        @wraps(function)
        def ruled(k: Building, op: Op) -> Made:
            operands = [value for value in op.operands if value is not None]
            if not _goes_first(k, operands, op.results[0]):
                return function(k, op, *map(k.of, operands))
            rank = len(op.results[0].shape)
            k.put_first(op.results[0], function(k, op, *(_first(k, v, rank) for v in operands)))
            return None

        rule(*kinds)(ruled)
        return function

    return register


def _goes_first(k: Building, operands: Iterable[Value], result: Value) -> bool:
    """Return whether operands are to be read with their channels first."""
    computed = [value for value in operands if not value.is_constant]
    if result.shape is UNRANKED or any(value.shape is UNRANKED for value in computed):
        return False
    rank = len(result.shape)
    fits = all(len(value.shape) in (0, rank) for value in computed)
    return rank >= 3 and fits and any(k.is_first(value) for value in computed)


def _first(k: Building, value: Value, rank: int) -> Term:
    """Find an operand with its channels first, whose missing leading axes are ones."""
    if len(value.shape) == rank:
        return k.channels_first(value)
    if not value.is_constant or not value.shape:
        return k.of(value)
    array = data_of(value)
    whole = array.reshape((1,) * (rank - array.ndim) + array.shape)
    return k.constant(whole.transpose(to_first(rank)).copy(), value.name, value.dtype)


@cache
def rules() -> dict[type[Op], Rule]:
    """Find all rules."""
    folder = importlib.import_module("luciole.exporters.onnx.operators")
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    return _RULES


def apply(k: Building, op: Op) -> None:
    """Write one operator. Raises RefusedError where ONNX cannot say it."""
    write = rules().get(type(op))
    if write is None:
        raise RefusedError("ONNX has no operator for it")
    _refuse_codes(op)
    made = write(k, op)
    terms = [made] if isinstance(made, Term) else made or ()
    for value, term in zip(op.results, terms, strict=False):
        k.put(value, term)


def _refuse_codes(op: Op) -> None:
    """Refuse to compute with codes: an operator that was not spelled out as real numbers may only
    move them.
    """
    if isinstance(op, Quantize | Dequantize) or op.called_graphs():
        return
    values = [value for value in (*op.operands, *op.results) if value is not None]
    parameters = [affine for value in values if (affine := affine_of(value)) is not None]
    alike = all(affine.same_numbers(parameters[0]) for affine in parameters)
    if parameters and (op.quant is not None or not alike):
        raise RefusedError("it computes with integers in a way that real numbers do not")
