"""Attributes that a file cannot hold are refused, by the types of the schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import CUSTOM_OPS, OPS, Graph, Model, Op, TensorType, UnknownOp, Value
from luciole.ir.errors import FormatError, ShapeError
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.split import Split
from luciole.ir.stored import unstorable
from luciole.ir.verify import verify
from luciole.schema.enums import ActivationFunctionType


def bare(cls: type[Op], **attributes: Any) -> Op:
    """An operator on no tensors."""
    return cls.restored(attributes)


@pytest.mark.parametrize("cls", sorted({*OPS.values(), *CUSTOM_OPS.values()}, key=str))
def test_defaults_can_be_stored(cls: type[Op]) -> None:
    assert list(unstorable(bare(cls))) == []


@pytest.mark.parametrize(
    ("cls", "name", "value", "needed"),
    [
        (Add, "activation", 99, "a member of ActivationFunctionType"),
        (Add, "activation", "RELU", "a member of ActivationFunctionType"),
        (Add, "activation", 1, "a member of ActivationFunctionType"),
        (Add, "version", "2", "a whole number from"),
        (Add, "debug_metadata_index", 1 << 40, "a whole number from"),
        (Add, "mutating_variable_inputs", (True, "no"), "a tuple, each of it True or False"),
        (Split, "num_splits", 1 << 31, "a whole number from -2147483648 to 2147483647"),
        (Split, "num_splits", 1.0, "a whole number from -2147483648 to 2147483647"),
        (LeakyRelu, "alpha", 1e39, "a number that float32 holds"),
        (LeakyRelu, "alpha", None, "a number that float32 holds"),
        (BatchMatMul, "adjoint_lhs", "no", "True or False"),
        (BatchMatMul, "adjoint_lhs", 2, "True or False"),
        (Reshape, "new_shape", [1, 4], "a tuple, each of it a whole number"),
        (Reshape, "new_shape", (1, "4"), "a tuple, each of it a whole number"),
        (LevelsDecode, "axis", 0.5, "a whole number from"),
    ],
)
def test_attribute_refuses_values_that_its_type_does_not_hold(
    cls: type[Op], name: str, value: Any, needed: str
) -> None:
    (sentence,) = unstorable(bare(cls, **{name: value}))
    assert sentence.startswith(f"{name} is {value!r}, {needed}")
    assert sentence.endswith(" is needed")


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (Add, "activation", ActivationFunctionType.RELU),
        (Split, "num_splits", np.int64(3)),
        (LeakyRelu, "alpha", 1),
        (LeakyRelu, "alpha", float("inf")),
        (LeakyRelu, "alpha", float("nan")),
        (BatchMatMul, "adjoint_lhs", np.True_),
        (Reshape, "new_shape", (1, np.int32(4))),
    ],
)
def test_attribute_takes_values_that_its_type_holds(cls: type[Op], name: str, value: Any) -> None:
    assert list(unstorable(bare(cls, **{name: value}))) == []


def test_save_and_run_refuse_an_activation_that_is_none() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4))
    op = graph.append(Add(x, x), "y")
    graph.outputs = [op.output]
    op.activation = 99  # type: ignore[attr-defined]  # on purpose
    needed = "Add 'y': activation is 99, a member of ActivationFunctionType is needed"
    assert [f.sentence for f in verify(model)] == [needed]
    with pytest.raises(FormatError, match=needed):
        to_bytes(model)
    with pytest.raises(ShapeError, match=f"^{needed}"):
        Interpreter(model).run({"x": np.zeros((1, 4), np.float32)})


def test_verify_refuses_a_version_that_is_no_number_of_an_unknown_operator() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    op = UnknownOp(32, [graph.add_input("x", (1, 4))], custom_code="mine")
    y = graph.add_value(Value("y", TensorType.FLOAT32, (1, 4)))
    graph.append(op, results=[y])
    graph.outputs = [y]
    op.version = "two"  # type: ignore[assignment]  # on purpose
    (finding,) = verify(model)
    assert finding.sentence.startswith("CUSTOM(mine) 'y': version is 'two', a whole number from")
