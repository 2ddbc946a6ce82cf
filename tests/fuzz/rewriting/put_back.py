"""Repaired faults, each put back by exchanging the functions that repaired it: the fuzzer must find
every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from luciole.exporters.onnx import rules
from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.nodes import Term
from luciole.interpreter.records import Records
from luciole.ir import Array, Model, Op, TensorType, Value, verify
from luciole.ir.ops.elementwise_binary import Maximum, Minimum
from luciole.ir.passes import fuse_quantization
from luciole.ir.quant import Like
from luciole.ir.quantization import Affine
from luciole.lquantizer.assignment.schemes import Scheme, UniformOptions
from luciole.lquantizer.calibration import seen
from luciole.lquantizer.network import grids, places
from luciole.lquantizer.whole import integer_layers, integers
from luciole.lquantizer.whole.integer_layers import Known
from luciole.lquantizer.whole.rescaling import rescale_channels


def _bound_one_by_one(op: Op, groups: dict[Value, Any], dtype: TensorType) -> None:
    """Join each result with the operand's group as it was before the first one joined it."""
    assert op.quant is not None, "an operator on integers says how it is quantized"
    fixed = op.quant.fixed(dtype)
    results = grids.floats_of(op)
    if fixed is not None:
        groups[results[0]].fixed = Affine.single(*fixed, dtype)
        groups[results[0]].fixed_by = op.kind
    if not isinstance(op.quant.result, Like) or not results:
        return
    operands = [op.operands[use.slot] for use in grids._bound(op)]
    near = [groups[v] for v in operands if v is not None and v in groups]
    near = [group for group in near if group.dtype == dtype]
    for result in results:
        grids._join(groups, groups[result], near if len(near) == 1 else [])
    if len(near) > 1:
        grids._join_several(groups, groups[results[0]], near)


def _not_a_number(k: Building, op: Op) -> Term:
    """Let ONNX's own node compute: it gives NaN where one of both is."""
    node = "Max" if isinstance(op, Maximum) else "Min"
    return k.add(node, *(k.of(value) for value in op.operands if value is not None))


def _nothing(*_: object) -> dict[Op, str]:
    """Find nothing that is wrong, nor near a pole."""
    return {}


def _everything(data: Array) -> Array:
    """Let infinities count as numbers."""
    return data


def _no_infinities(*_: object) -> dict[Value, frozenset[int]]:
    """Take no tensor for one that holds infinities."""
    return {}


@contextmanager
def _results_with_grids_of_their_own() -> Iterator[None]:
    with (
        patch.object(grids, "_bind", _bound_one_by_one),
        patch.object(fuse_quantization, "misplaced", _nothing),
        patch.object(verify, "check_moved", _nothing),
    ):
        yield


@contextmanager
def _poles_in_integers() -> Iterator[None]:
    with patch.object(integer_layers, "kept_from_poles", _nothing):
        yield


@contextmanager
def _infinite_constants() -> Iterator[None]:
    with (
        patch.object(grids, "bounded", _everything),
        patch.object(grids, "endless_tensors", _no_infinities),
        patch.object(seen, "endless_tensors", _no_infinities),
        patch.object(places, "beside_infinity", _no_infinities),
    ):
        yield


@contextmanager
def _nan_of_extremes() -> Iterator[None]:
    rules.rules()  # which finds them
    with patch.dict(rules._RULES, dict.fromkeys((Maximum, Minimum), _not_a_number)):
        yield


def _of_integers_alone(
    work: Model,
    records: Records | None,
    options: UniformOptions,
    known: Known,
    schemes: Mapping[Op, Scheme],
) -> None:
    """Rescale channels where tensors become integers alone."""
    if any(types.activations is not None for types in schemes.values()):
        rescale_channels(work, records, options, known, schemes)


@contextmanager
def _channels_as_they_are() -> Iterator[None]:
    with patch.object(integers, "rescale_channels", _of_integers_alone):
        yield


FAULTS: dict[int, Callable[[], Any]] = {
    1: _results_with_grids_of_their_own,
    2: _poles_in_integers,
    3: _infinite_constants,
    5: _channels_as_they_are,
    8: _nan_of_extremes,
}
"""By their numbers in the list that the fuzzer was made for: results of SPLIT and the like have
grids of their own; divisors, roots and logarithms near a pole are integers; constants of -inf bound
ranges; weights alone are never rescaled; MAXIMUM and MINIMUM of NaN differ between forms.
"""


@contextmanager
def fault(number: int | None) -> Iterator[None]:
    """Put a fault back while this lasts, none for no number."""
    if number is None:
        yield
        return
    with FAULTS[number]():
        yield
