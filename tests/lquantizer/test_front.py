"""A network that is run piece by piece gives what it gives as a whole, each operator once."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.ops import Cast, Div, Shape, Sqrt, StridedSlice
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.transpose import Transpose
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.calibration import front as module
from luciole.lquantizer.calibration.front import Front
from luciole.schema.enums import TensorType

_RNG = np.random.default_rng(0)
_COUNT, _BATCH = 7, 3


@pytest.fixture
def model() -> Model:
    """Four dense layers, of which the second and the fourth are added to what is in front."""
    made = Model()
    graph = made.add_graph(Graph("main"))
    value = graph.add_input("x", (1, 4))
    for number in range(2):
        start = value
        for place in range(2):
            value = _dense(graph, value, f"{number}{place}")
        value = graph.append(Add(start, value), f"sum{number}").output
    graph.outputs = [value]
    return made


def _dense(graph: Graph, x: Value, name: str) -> Value:
    rows = _RNG.normal(size=(4, 4)).astype(np.float32)
    return graph.append(FullyConnected(x, graph.add_constant(f"w{name}", rows)), name).output


@pytest.fixture
def records() -> Records:
    """Some vectors."""
    return {"x": _RNG.normal(size=(_COUNT, 4)).astype(np.float32)}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many operators each piece has."""
    found: list[int] = []

    def counted(model: Model) -> Interpreter:
        found.append(len(model.graph.ops))
        return Interpreter(model)

    monkeypatch.setattr(module, "Interpreter", counted)
    return found


def _layers(model: Model) -> list[FullyConnected]:
    return [op for op in model.graph.ops if isinstance(op, FullyConnected)]


def _walked(front: Front, changing: bool = True) -> dict[str, Array]:
    """Take what each layer reads, one after the other."""
    layers, found = _layers(front.model), {}
    for number, op in enumerate(layers):
        later = [one.input for one in layers[number + 1 :]]
        left: list[Op] = [*layers[number:]] if changing else []
        batches = list(front.run([op.input], later, left))
        assert [len(records) for records, _ in batches] == [3, 3, 1]
        found[op.input.name] = np.concatenate([x for _, (x,) in batches])
    return found


def _whole(model: Model, records: Records) -> dict[str, Array]:
    """The same from runs of all of the network, record by record."""
    names = dict.fromkeys(op.input.name for op in _layers(model))
    copy = model.clone()
    copy.graph.outputs = [v for name in names for v in copy.graph.values if v.name == name]
    interpreter = Interpreter(copy)
    each = [interpreter.run({"x": x[None]}) for x in np.asarray(records["x"])]
    return {name: np.concatenate([one[name] for one in each]) for name in names}


@pytest.mark.parametrize("most", [1 << 20, 0])
def test_pieces_equal_the_whole(model: Model, records: Records, most: int) -> None:
    found = _walked(Front(model, records, _BATCH, most=most))
    for name, wanted in _whole(model, records).items():
        np.testing.assert_array_equal(found[name], wanted)


@pytest.mark.parametrize("times", [4, 7, 12])
def test_records_behind_a_transpose_are_told_apart(times: int) -> None:
    made = Model()
    graph = made.add_graph(Graph("main"))
    x = graph.add_input("x", (1, times, 3))
    order = graph.add_constant("order", np.array([1, 2, 0], np.int32))
    y = graph.append(Transpose(x, order), "y").output
    graph.outputs = [y]
    given = _RNG.normal(size=(12, times, 3)).astype(np.float32)
    ((_, (found,)),) = Front(made, {"x": given}, 12).run([y])
    np.testing.assert_array_equal(found.reshape(given.shape), given)


def test_each_operator_runs_once(model: Model, records: Records, runs: list[int]) -> None:
    _walked(Front(model, records, _BATCH))
    assert runs == [0, 1, 2, 1]  # the last layer and the sum behind it are read by none


def test_too_much_to_keep_runs_again(model: Model, records: Records, runs: list[int]) -> None:
    _walked(Front(model, records, _BATCH, most=0))
    assert runs == [0, 1, 3, 4]


def test_what_changes_runs_again(model: Model, records: Records) -> None:
    """A layer that is changed after it ran serves later ones as it is by then."""
    front, (first, second, *_) = Front(model, records, _BATCH), _layers(model)
    list(front.run([second.input], [second.output], [first]))
    first.set_operand(1, model.graph.add_constant("new", np.eye(4, dtype=np.float32)))
    found = np.concatenate([x for _, (x,) in front.run([second.input])])
    np.testing.assert_array_equal(found, records["x"])


def test_a_front_refuses_infinity(model: Model) -> None:
    layer = _layers(model)[0]
    records = {"x": np.full((2, 4), 3e38, np.float32)}
    layer.set_operand(1, model.graph.add_constant("new", np.full((4, 4), 3e38, np.float32)))
    with pytest.raises(QuantizeError, match="becomes NaN or infinite"):
        list(Front(model, records, 2).run([layer.output]))


def test_numbers_that_are_computed_from_shapes_are_the_same_for_all_records() -> None:
    """As torch's exporter with open extents divides by the root of a head's width."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (None, 3, 4))
    shape = graph.append(Shape(x, out_type=TensorType.INT32), "shape").output
    bounds = [graph.add_constant(f"bound{i}", np.array([i], np.int32)) for i in (2, 3, 1)]
    width = graph.append(StridedSlice(shape, *bounds), "width").output
    types = {"in_data_type": TensorType.INT32, "out_data_type": TensorType.FLOAT32}
    root = graph.append(Sqrt(graph.append(Cast(width, **types), "float").output), "root").output
    graph.outputs = [_dense(graph, graph.append(Div(x, root), "scaled").output, "y")]
    records = np.random.default_rng(1).normal(size=(40, 3, 4)).astype(np.float32)
    proof = luciole.quantize(model, records, scheme="int8").proof
    assert proof is not None
    snr = proof.outputs[0].file.snr_db
    assert snr is not None
    assert snr > 30
