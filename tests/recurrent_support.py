"""Recurrent layers of a single operator, run several times here and in LiteRT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from luciole.exporters import to_bytes
from luciole.interpreter import compile_graph
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops.svdf import SVDF
from luciole.kernels.core import evaluation, registry
from luciole.schema.enums import ActivationFunctionType
from tests.support import Affine, one_op

Shapes = Mapping[str, tuple[int, ...]]


def layer(
    cls: type[Op],
    shapes: Shapes,
    inputs: Sequence[str] = ("input",),
    hybrid: bool = False,
    **given: Any,
) -> Model:
    """A model of one operator with random parameters. Those named in ``inputs`` are inputs, those
    that end with state are variables; ``hybrid`` makes weights integers.
    """
    graph, random = Model().add_graph(Graph("main")), np.random.default_rng(11)
    operands: dict[str, Any] = {}
    for name, shape in shapes.items():
        if name in inputs:
            operands[name] = graph.add_input(name, shape)
            continue
        numbers = random.normal(0, 0.7, shape).astype(np.float32)
        if name.endswith("state"):
            operands[name] = graph.add_value(Value(name, TensorType.FLOAT32, shape))
            operands[name].is_variable = True
        elif hybrid and "weights" in name:
            operands[name] = graph.add_constant(name, quantized(numbers))
            Affine(1 / 40).give(operands[name])
        else:
            operands[name] = graph.add_constant(name, numbers)
    op = cls(**operands, **given)
    graph.append(op, *[f"y{i}" for i in range(len(op.result_shapes()))])
    graph.outputs = list(op.results)
    assert graph.model is not None
    return graph.model


def quantized(numbers: Array) -> Array:
    """Steps of 1/40."""
    return np.clip(np.round(numbers * 40), -127, 127).astype(np.int8)


def sequences(model: Model, count: int = 3) -> list[list[Array]]:
    """Inputs for several runs."""
    random = np.random.default_rng(12)
    shapes = [tuple(n or 1 for n in value.shape) for value in model.graph.inputs]
    return [[random.normal(0, 1, s).astype(np.float32) for s in shapes] for _ in range(count)]


def outputs_here(model: Model, runs: list[list[Array]]) -> list[tuple[Array, ...]]:
    """The results of several runs, one after the other, by the reference kernel."""
    op = model.graph.ops[0]
    kernel = registry.find_reference(op)
    states = {v: np.zeros(v.dims, np.float32) for v in op.operands if v and v.is_variable}
    results = []
    for arrays in runs:
        given = dict(zip(model.graph.inputs, arrays, strict=True)) | states
        operands = [None if v is None else given.get(v, v.data) for v in op.operands]
        found = evaluation.call(kernel, op, operands)
        for value, array in zip(op.results, found, strict=True):
            assert value.shape == array.shape
            assert array.dtype == np.dtype(np.float32)
        results.append(tuple(a.copy() for a in found))
    return results


def outputs_in_litert(model: Model, runs: list[list[Array]]) -> list[tuple[Array, ...]]:
    """The same in LiteRT's reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=to_bytes(model, "tflite"),
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    results = []
    for arrays in runs:
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        found = (interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details())
        results.append(tuple(found))
    return results


def outputs_of_plan(model: Model, runs: list[list[Array]]) -> list[tuple[Array, ...]]:
    """The same by a plan, which keeps the states."""
    graph = model.graph
    plan = compile_graph(graph, {v: v.dims for v in graph.inputs})
    plan.reset_variables()
    results = []
    for arrays in runs:
        for value, array in zip(graph.inputs, arrays, strict=True):
            place = plan.array(value)
            assert place is not None
            place[...] = array
        plan.run()
        found = [plan.array(value) for value in graph.outputs]
        results.append(tuple(a.copy() for a in found if a is not None))
    return results


def check_runs(model: Model, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Three runs, the states of which follow from the runs before, give what LiteRT gives."""
    runs = sequences(model)
    theirs = outputs_in_litert(model, runs)
    for ours in (outputs_here(model, runs), outputs_of_plan(model, runs)):
        for mine, other in zip(ours, theirs, strict=True):
            for a, b in zip(mine, other, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def integer_svdf(
    activation: ActivationFunctionType = ActivationFunctionType.RELU, bias: bool = True
) -> Model:
    """A model in INT8 with a state in INT16."""
    random = np.random.default_rng(3)
    arrays: list[Array | None] = [
        np.zeros((3, 5), np.int8),
        random.integers(-127, 128, (8, 5)).astype(np.int8),
        random.integers(-9000, 9000, (8, 6)).astype(np.int16),
        random.integers(-900, 900, 4).astype(np.int32) if bias else None,
        np.zeros((3, 48), np.int16),
    ]
    affine = [Affine(0.02, 3), Affine(0.01), Affine(1e-4), Affine(1e-8), Affine(1e-4)]
    model = one_op(
        SVDF,
        arrays,
        (1, 2, 3),
        affine=affine,
        results=[Affine(0.03, -20)],
        rank_=2,
        activation=activation,
    )
    state = model.graph.inputs.pop()
    state.is_variable = True
    return model
