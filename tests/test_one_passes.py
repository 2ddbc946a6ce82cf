"""Samsung ONE's tests of circle2circle, and what old converters wrote as CUSTOM."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.unknown_op import UnknownOp
from luciole.schema.enums import BuiltinOperator
from tests.one_passes import REASONS, outcomes
from tests.support import data_path


def test_ones_tests_hold_but_for_those_with_a_reason() -> None:
    found = outcomes(data_path("one_passes"))
    assert len(found) == 56
    assert {one.test for one in found if not one.holds} == set(REASONS)
    assert sum(one.distance is not None for one in found) > 40


def custom(code: str, operands: Sequence[Array], *shapes: tuple[int, ...]) -> Model:
    """A model of one CUSTOM operator: what is no constant of int32 is an input."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    values = [
        graph.add_constant(f"c{i}", a) if a.dtype == np.int32 else graph.add_input(f"x{i}", a.shape)
        for i, a in enumerate(operands)
    ]
    results = [
        graph.add_value(Value(f"y{i}", TensorType.FLOAT32, shape)) for i, shape in enumerate(shapes)
    ]
    op = UnknownOp(BuiltinOperator.CUSTOM, values, custom_code=code)
    graph.append(op, results=results)
    graph.outputs = results
    return model


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(0, 1, shape).astype(np.float32)


CASES: dict[str, tuple[str, tuple[Array, ...], Callable[..., Array]]] = {
    "AddV2": ("resolve_customop_add", (numbers(2, 3), numbers(3)), np.add),
    "BatchMatMulV2": ("resolve_customop_batchmatmul", (numbers(2, 3), numbers(3, 4)), np.matmul),
    "MatMul": ("resolve_customop_matmul", (numbers(2, 3), numbers(3, 4)), np.matmul),
    "BroadcastTo": (
        "resolve_former_customop",
        (numbers(3), np.array([2, 3], np.int32)),
        np.broadcast_to,
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_custom_operators_of_old_converters_run(code: str) -> None:
    name, operands, compute = CASES[code]
    expected = compute(*operands)
    simpler = luciole.optimize(custom(code, operands, expected.shape), [name])
    assert not any(isinstance(op, UnknownOp) for op in simpler.graph.ops)
    given = {f"x{i}": a for i, a in enumerate(operands) if a.dtype != np.int32}
    (found,) = luciole.Interpreter(simpler).run(given).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_split_v_of_old_converters_runs() -> None:
    x = numbers(2, 5)
    sizes, axis = np.array([2, 3], np.int32), np.array(1, np.int32)
    model = custom("SplitV", (x, sizes, axis), (2, 2), (2, 3))
    simpler = luciole.optimize(model, ["resolve_customop_splitv"])
    first, second = luciole.Interpreter(simpler).run({"x0": x}).values()
    assert np.array_equal(first, x[:, :2])
    assert np.array_equal(second, x[:, 2:])
