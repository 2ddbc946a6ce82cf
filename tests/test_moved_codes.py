"""Operators that move integers as they are: ``verify`` says of other scales behind them what
kernels do, here and in LiteRT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.exporters import to_bytes
from luciole.importers import from_bytes, import_model
from luciole.interpreter import Interpreter
from luciole.ir import OPS, Array, LucioleError, Model, Op, TensorType
from luciole.ir.errors import FormatError
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.reshape import Reshape
from luciole.ir.quant import Like
from luciole.ir.verify import Finding, Severity, verify
from luciole.schema.enums import BuiltinOperator, Padding
from tests.support import Affine, invoked, litert, one_op

Codes = Callable[[Any], list[Array]]


@dataclass(frozen=True)
class Case:
    """An operator with codes of a type, which of its operands are constants, and its attributes."""

    operands: Codes
    constant: tuple[int, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


def _ints(*numbers: Any) -> Array:
    return np.array(numbers, np.int32)


def _codes(*shape: int) -> Codes:
    first = {np.int8: 0, np.uint8: 100, np.int16: 0}
    count = int(np.prod(shape))
    return lambda dtype: [(np.arange(count).reshape(shape) + first[dtype]).astype(dtype)]


def _with(codes: Codes, *indices: Array) -> Codes:
    return lambda dtype: [*codes(dtype), *indices]


def _twice(codes: Codes) -> Codes:
    return lambda dtype: codes(dtype) * 2


_MATRIX, _IMAGE = _codes(4, 4), _codes(1, 4, 4, 1)
_NONE = np.zeros((2, 2), np.int32)
_WINDOW = {"filter_width": 2, "filter_height": 2, "stride_w": 1, "stride_h": 1}
_TRUE = np.ones((4, 4), np.bool_)
CASES = {
    "AVERAGE_POOL_2D": Case(_IMAGE, (), _WINDOW),
    "BATCH_TO_SPACE_ND": Case(_with(_codes(4, 4, 4, 1), _ints(2, 2), _NONE), (1, 2)),
    "BROADCAST_TO": Case(_with(_MATRIX, _ints(4, 4)), (1,)),
    "CONCATENATION": Case(_twice(_MATRIX), (), {"axis": 0}),
    "DEPTH_TO_SPACE": Case(_codes(1, 4, 4, 4), (), {"block_size": 2}),
    "DYNAMIC_UPDATE_SLICE": Case(_with(_twice(_MATRIX), _ints(0, 0)), (2,)),
    "EMBEDDING_LOOKUP": Case(lambda dtype: [_ints(0, 1), *_MATRIX(dtype)], (0,)),
    "EXPAND_DIMS": Case(_with(_MATRIX, _ints(0)), (1,)),
    "GATHER": Case(_with(_MATRIX, _ints(0, 1)), (1,)),
    "GATHER_ND": Case(_with(_MATRIX, _ints([0], [1])), (1,)),
    "MAXIMUM": Case(_twice(_MATRIX)),
    "MAX_POOL_2D": Case(_IMAGE, (), _WINDOW),
    "MINIMUM": Case(_twice(_MATRIX)),
    "MIRROR_PAD": Case(_with(_MATRIX, _NONE), (1,)),
    "PACK": Case(_twice(_MATRIX), (), {"axis": 0, "values_count": 2}),
    "PAD": Case(_with(_MATRIX, _NONE), (1,)),
    "PADV2": Case(lambda dtype: [*_MATRIX(dtype), _NONE, np.array([5], dtype)], (1, 2)),
    "REDUCE_MAX": Case(_with(_MATRIX, _ints(1)), (1,)),
    "REDUCE_MIN": Case(_with(_MATRIX, _ints(1)), (1,)),
    "RESHAPE": Case(_with(_MATRIX, _ints(2, 8)), (1,)),
    "RESIZE_BILINEAR": Case(_with(_IMAGE, _ints(4, 4)), (1,)),
    "RESIZE_NEAREST_NEIGHBOR": Case(_with(_IMAGE, _ints(4, 4)), (1,)),
    "REVERSE_V2": Case(_with(_MATRIX, _ints(0)), (1,)),
    "SELECT": Case(lambda dtype: [_TRUE, *_twice(_MATRIX)(dtype)]),
    "SELECT_V2": Case(lambda dtype: [_TRUE, *_twice(_MATRIX)(dtype)]),
    "SLICE": Case(_with(_MATRIX, _ints(0, 0), _ints(2, 4)), (1, 2)),
    "SPACE_TO_BATCH_ND": Case(_with(_IMAGE, _ints(2, 2), _NONE), (1, 2)),
    "SPACE_TO_DEPTH": Case(_IMAGE, (), {"block_size": 2}),
    "SPLIT": Case(lambda dtype: [_ints(0)[0], *_MATRIX(dtype)], (0,), {"num_splits": 2}),
    "SPLIT_V": Case(_with(_MATRIX, _ints(1, 3), _ints(0)[0]), (1, 2), {"num_splits": 2}),
    "SQUEEZE": Case(_IMAGE),
    "STRIDED_SLICE": Case(_with(_MATRIX, _ints(0, 0), _ints(2, 4), _ints(1, 1)), (1, 2, 3)),
    "TILE": Case(_with(_MATRIX, _ints(1, 1)), (1,)),
    "TOPK_V2": Case(_with(_MATRIX, _ints(2)[0]), (1,)),
    "TRANSPOSE": Case(_with(_MATRIX, _ints(1, 0)), (1,)),
    "UNPACK": Case(_MATRIX, (), {"num": 4, "axis": 0}),
}
TYPES = (np.int8, np.uint8, np.int16)
POINTS = {np.int8: 3, np.uint8: 103, np.int16: 0}


def _moving() -> list[type[Op]]:
    return [c for c in OPS.values() if c.quant is not None and isinstance(c.quant.result, Like)]


def test_every_operator_that_moves_elements_has_a_case() -> None:
    assert {cls.code.name for cls in _moving()} == set(CASES)


def _model(name: str, dtype: Any, own: Affine, results: Affine, other: Affine | None) -> Model:
    """Build the operator: operands on a grid, the last on another where there is one."""
    case = CASES[name]
    arrays = case.operands(dtype)
    moved = [number for number, array in enumerate(arrays) if array.dtype == dtype]
    affine: list[Affine | None] = [own if n in moved else None for n in range(len(arrays))]
    if other is not None:
        affine[moved[-1]] = other
    cls = OPS[BuiltinOperator[name]]
    model = one_op(cls, arrays, case.constant, affine=affine, **case.attributes)
    for value in model.graph.ops[0].results:
        if value.dtype.name.lower() == np.dtype(dtype).name:
            results.give(value)
    return model


def _others(name: str, dtype: Any) -> Iterator[Model]:
    """Build the operator with another scale, then another zero point, of results or an operand."""
    own = Affine(0.5, POINTS[dtype])
    changes = [replace_scale(own)] if dtype == np.int16 else [replace_scale(own), moved(own)]
    several = sum(array.dtype == dtype for array in CASES[name].operands(dtype)) > 1
    for other in changes:
        yield _model(name, dtype, own, other, None)
        if several:
            yield _model(name, dtype, own, own, other)


def replace_scale(affine: Affine) -> Affine:
    return affine._replace(scale=1.0)


def moved(affine: Affine) -> Affine:
    assert isinstance(affine.zero_point, int)
    return affine._replace(zero_point=affine.zero_point + 2)


def _here(model: Model, arrays: Sequence[Array], constant: Sequence[int]) -> Sequence[Array] | None:
    inputs = [a for number, a in enumerate(arrays) if number not in constant]
    try:
        return invoked(Interpreter(model), inputs)
    except LucioleError:
        return None


def _there(model: Model, arrays: Sequence[Array], constant: Sequence[int]) -> Any:
    inputs = [a for number, a in enumerate(arrays) if number not in constant]
    try:
        return litert(to_bytes(model, "tflite"), inputs)
    except (RuntimeError, ValueError):
        return None


def _same(found: Sequence[Array] | None, plain: Sequence[Array] | None) -> bool:
    assert found is not None
    assert plain is not None
    return all(np.array_equal(a, b) for a, b in zip(found, plain, strict=True))


@pytest.mark.parametrize(("name", "dtype"), list(product(CASES, TYPES)))
def test_other_scales_are_refused_where_kernels_move_integers_as_they_are(
    name: str, dtype: Any
) -> None:
    """An error: all copy or refuse. A warning: LiteRT does. Nothing: both rescale."""
    case, own = CASES[name], Affine(0.5, POINTS[dtype])
    arrays = case.operands(dtype)
    plain = _model(name, dtype, own, own, None)
    assert [f for f in verify(plain) if f.code == "GRIDS"] == []
    kept = _here(plain, arrays, case.constant), _there(plain, arrays, case.constant)
    for model in _others(name, dtype):
        said = {f.severity for f in verify(model) if f.code == "GRIDS"}
        ours, theirs = (run(model, arrays, case.constant) for run in (_here, _there))
        ours_copies = ours is None or _same(ours, kept[0])
        theirs_copies = theirs is None or _same(theirs, kept[1])
        expected = {Severity.ERROR} if ours_copies else {Severity.WARNING}
        assert said == (expected if theirs_copies else set())
        assert theirs_copies or not ours_copies


def test_verify_refuses_integers_that_are_moved_to_another_scale() -> None:
    x = np.zeros((2, 3), np.int8)
    given: dict[str, Any] = {"affine": [Affine(0.5, 3)], "results": [Affine(0.25, -1)]}
    model = one_op(Reshape, [x, _ints(3, 2)], (1,), **given)
    (finding,) = verify(model)
    assert finding == Finding(
        Severity.ERROR,
        "GRIDS",
        "subgraphs[0].operators[0]",
        "Reshape 'y0': 'x0' (scale 0.5, zero point 3) and 'y0' (scale 0.25, zero point -1) must "
        "have one scale and zero point: integers are moved as they are",
    )
    with pytest.raises(FormatError, match="GRIDS"):
        from_bytes(to_bytes(model))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", TYPES)
def test_files_of_luci_are_brought_to_the_scales_that_they_have(name: str, dtype: Any) -> None:
    """Samsung ONE gives each tensor its own. The numbers are those of floats in between."""
    case = CASES[name]
    arrays = case.operands(dtype)
    inputs = [a for number, a in enumerate(arrays) if number not in case.constant]
    plain = _model(name, dtype, Affine(0.5, POINTS[dtype]), Affine(0.5, POINTS[dtype]), None)
    kept = invoked(Interpreter(plain), inputs)[0].astype(np.float64)
    to = Affine(1.0, POINTS[dtype])
    model = _model(name, dtype, Affine(0.5, POINTS[dtype]), to, None)
    model.description = "nnpackage"
    content = to_bytes(model, check=False)
    assert not [f for f in verify(from_bytes(content)) if f.severity == Severity.ERROR]
    (y, *_) = invoked(Interpreter(from_bytes(content)), inputs)
    assert np.abs(y - ((kept - POINTS[dtype]) / 2 + POINTS[dtype])).max() <= 0.51
    said = [f for f in import_model(content)[1] if f.code == "GRIDS"]
    assert {f.severity for f in said} <= {Severity.WARNING}
    model.description = "of another program"
    errors = [f for f in verify(model) if f.severity == Severity.ERROR]
    if errors:
        assert "a QUANTIZE brings integers to the second one" in said[0].sentence
        with pytest.raises(FormatError, match="GRIDS"):
            from_bytes(to_bytes(model, check=False))


def test_a_file_of_luci_with_another_fault_is_refused() -> None:
    given: dict[str, Any] = {"affine": [Affine(0.5, 3)], "results": [Affine(0.25, -1)]}
    model = one_op(Reshape, [np.zeros((2, 3), np.int8), _ints(3, 2)], (1,), **given)
    model.description = "nnpackage"
    table = model.graph.ops[0].output.quantization
    assert table is not None
    table.scale = np.array([-1], np.float32)
    with pytest.raises(FormatError, match="SCALE"):
        from_bytes(to_bytes(model, check=False))


@pytest.mark.parametrize("cls", [AveragePool2D, MaxPool2D])
def test_pools_with_two_scales_are_computed_in_floats(cls: type[Op]) -> None:
    """Samsung ONE gives both tensors scales of their own."""
    x = np.random.default_rng(1).integers(0, 256, (1, 4, 4, 2)).astype(np.uint8)
    given: dict[str, Any] = {"affine": [Affine(0.5, 3)], "results": [Affine(0.25, 40)]}
    given |= {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2}
    given["padding"] = Padding.VALID
    model = one_op(cls, [x], **given)
    (finding,) = verify(model)
    assert (finding.severity, finding.code) == (Severity.WARNING, "GRIDS")
    assert finding.sentence.endswith(
        "must have one scale and zero point in TFLite: it is computed in floats here"
    )
    interpreter = Interpreter(from_bytes(to_bytes(model)))
    (y,) = interpreter.run({"x0": x}).values()
    windows = (x.astype(np.float32) - 3).reshape(1, 2, 2, 2, 2, 2) / 2
    real = windows.mean((2, 4)) if cls is AveragePool2D else windows.max((2, 4))
    np.testing.assert_array_equal(y, np.clip(np.floor(real * 4 + 0.5) + 40, 0, 255))
    assert len(interpreter.plan.simulated) == 1


def test_verify_warns_of_joined_integers_that_tflite_does_not_rescale() -> None:
    x = np.zeros((2, 3), np.int8)
    given: dict[str, Any] = {
        "affine": [Affine(0.5), Affine(0.25)],
        "results": [Affine(0.5)],
        "axis": 0,
    }
    (finding,) = verify(one_op(Concatenation, [x, x], **given))
    assert (finding.severity, finding.code) == (Severity.WARNING, "GRIDS")
    assert finding.sentence == (
        "Concatenation 'y0': 'x1' (scale 0.25, zero point 0) and 'y0' (scale 0.5, zero point 0) "
        "must have one scale and zero point in TFLite, which rescales UINT8 alone"
    )
    assert verify(one_op(Concatenation, [x.view(np.uint8)] * 2, **given)) == []


@pytest.mark.parametrize(
    ("dtype", "factor", "accepted"),
    [
        (np.int8, 1 + 2**-23, True),
        (np.int8, 1 + 0.49 / 128, True),
        (np.int8, 1 + 0.53 / 128, False),
        (np.int8, 1 - 0.53 / 128, False),
        (np.uint8, 1 + 0.49 / 255, True),
        (np.uint8, 1 + 0.53 / 255, False),
        (np.int16, 1 + 2**-23, True),
        (np.int16, 1 + 0.49 / 32768, True),
        (np.int16, 1 + 0.53 / 32768, False),
    ],
)
def test_scales_may_differ_by_what_changes_no_code(
    dtype: Any, factor: float, accepted: bool
) -> None:
    """A rescaling would give every code back: all of them are tried here."""
    scale = np.float32(0.1)
    given: dict[str, Any] = {"affine": [Affine(float(scale))]}
    model = one_op(Reshape, [np.zeros(4, dtype), _ints(2, 2)], (1,), **given)
    Affine(float(scale) * factor).give(model.graph.ops[0].output)
    assert (verify(model) == []) == accepted
    codes = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
    rescaled = np.round(codes * (float(scale) / float(np.float32(float(scale) * factor))))
    assert np.array_equal(rescaled, codes) == accepted


def test_tensors_with_a_scale_for_each_channel_are_not_compared() -> None:
    table, given = np.zeros((3, 2), np.int8), Affine([0.5, 0.25, 0.125], [0, 0, 0], axis=0)
    model = one_op(Gather, [table, _ints(2, 0)], affine=[given])
    Affine([0.125, 0.5], [0, 0], axis=0).give(model.graph.ops[0].output)
    assert verify(model) == []


@pytest.mark.parametrize("side", ["operand", "result"])
def test_integers_without_scales_are_not_compared(side: str) -> None:
    x = np.zeros((2, 2), np.int16)
    model = one_op(Pack, [x, x], axis=0, values_count=2)
    op = model.graph.ops[0]
    Affine(0.5).give(op.operands[0] if side == "operand" else op.output)  # type: ignore[arg-type]
    assert verify(model) == []


def test_a_pair_of_types_is_left_to_the_check_of_types() -> None:
    model = one_op(Reshape, [np.zeros(4, np.int8), _ints(2, 2)], (1,), affine=[Affine(0.5)])
    Affine(0.25, dtype=TensorType.UINT8).give(model.graph.ops[0].output)
    assert [finding.code for finding in verify(model)] == ["DTYPE"]
