"""What observers are told, in which order, and that watching changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import luciole
from luciole.interpreter import ActivationSaver, Interpreter, Observer
from luciole.ir import Array, Model, Op, Value
from tests.networks import network, random, two_inputs, value_named

X = random(1, 6, 20)


class Log(Observer):
    """Writes down every call, with the tensor's contents."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.arrays: dict[str, Array] = {}
        self.ops: list[Op] = []
        self.values: list[Value] = []

    def before_operator(self, op: Op) -> None:
        self.calls.append(("before", op.name))
        self.ops.append(op)

    def after_operator(self, op: Op) -> None:
        self.calls.append(("after", op.name))

    def after_tensor_write(self, value: Value, array: Array) -> None:
        self.calls.append(("write", value.name))
        self.values.append(value)
        self.arrays[value.name] = array.copy()


def quantized() -> Model:
    """Compiled kernels next to each other and next to a reference one."""
    return luciole.quantize(network((20, 16, 12, 4)), X, encode_bits=2).model


def watched(interpreter: Interpreter, x: Array) -> Log:
    log = Log()
    interpreter.attach_observer(log)
    interpreter.run(x)
    interpreter.detach_observer(log)
    return log


def test_callbacks_come_in_order() -> None:
    log = watched(Interpreter(network()), X)
    assert log.calls == [
        ("write", "x"),
        ("before", "fc1"),
        ("after", "fc1"),
        ("write", "fc1"),
        ("before", "act1"),
        ("after", "act1"),
        ("write", "act1"),
        ("before", "fc2"),
        ("after", "fc2"),
        ("write", "fc2"),
    ]


def test_inputs_are_reported_before_the_first_operator() -> None:
    interpreter = Interpreter(two_inputs())
    log = Log()
    interpreter.attach_observer(log)
    interpreter.run({"right": X[:1, :9], "left": X[:1, :6]})
    assert log.calls[:3] == [("write", "left"), ("write", "right"), ("before", "fc_left")]
    np.testing.assert_array_equal(log.arrays["right"], X[:1, :9])


def test_observers_are_given_the_models_own_operators_and_tensors() -> None:
    model = network()
    log = watched(Interpreter(model), X)
    assert log.ops == model.graph.ops
    assert [log.values[0]] == model.graph.inputs
    assert set(log.values) <= set(model.graph.values)


def test_arrays_are_what_the_tensors_hold() -> None:
    model = network()
    interpreter = Interpreter(model)
    log = watched(interpreter, X)
    for name, array in log.arrays.items():
        place = model.graph.values.index(value_named(model, name))
        np.testing.assert_array_equal(interpreter.get_tensor(place), array)


def test_several_observers_hear_the_same() -> None:
    interpreter = Interpreter(network())
    first, second = Log(), Log()
    interpreter.attach_observer(first)
    interpreter.attach_observer(second)
    interpreter.run(X)
    assert first.calls == second.calls != []
    interpreter.detach_observer(first)
    heard = len(first.calls)
    interpreter.run(X)
    assert len(first.calls) == heard
    assert len(second.calls) == 2 * heard


@pytest.mark.parametrize("make", [network, quantized])
def test_observed_and_unobserved_runs_give_equal_numbers(make: Callable[[], Model]) -> None:
    model = make()
    alone = Interpreter(model).run(X)
    interpreter = Interpreter(model)
    log = watched(interpreter, X)
    name = model.graph.outputs[0].name
    np.testing.assert_array_equal(log.arrays[name], alone[name])
    np.testing.assert_array_equal(interpreter.run(X)[name], alone[name])


def test_compiled_steps_are_observed_one_by_one() -> None:
    log = watched(Interpreter(quantized()), X)
    assert [name for kind, name in log.calls if kind == "before"] == ["act1", "act2", "fc3"]
    assert all(np.isfinite(a).all() for a in log.arrays.values())


def test_attach_observer_refuses_one_that_watches_already() -> None:
    interpreter = Interpreter(network())
    log = Log()
    interpreter.attach_observer(log)
    with pytest.raises(ValueError, match="this observer is attached already"):
        interpreter.attach_observer(log)


def test_detach_observer_refuses_a_stranger() -> None:
    with pytest.raises(ValueError, match="this observer is not attached"):
        Interpreter(network()).detach_observer(Log())


def test_activation_saver_keeps_chosen_tensors_run_by_run() -> None:
    model = network()
    chosen = [value_named(model, "act1"), model.graph.inputs[0]]
    saver = ActivationSaver(chosen)
    interpreter = Interpreter(model)
    interpreter.attach_observer(saver)
    hidden = []
    for rows in (X[:1], X[1:4], X[4:]):
        interpreter.run(rows)
        hidden.append(interpreter.get_tensor(model.graph.values.index(chosen[0])))
    np.testing.assert_array_equal(saver.saved(chosen[1]), X)
    np.testing.assert_array_equal(saver.saved(chosen[0]), np.concatenate(hidden))


def test_activation_saver_refuses_a_tensor_that_it_was_not_asked_for() -> None:
    model = network()
    saver = ActivationSaver([])
    with pytest.raises(KeyError):
        saver.saved(value_named(model, "fc1"))


def test_an_observer_that_overrides_nothing_is_fine() -> None:
    interpreter = Interpreter(network())
    wanted = interpreter.run(X)["fc2"]
    interpreter.attach_observer(Observer())
    np.testing.assert_array_equal(interpreter.run(X)["fc2"], wanted)
