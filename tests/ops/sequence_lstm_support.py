"""UNIDIRECTIONAL_SEQUENCE_LSTM layers and the loops that compute them."""

from __future__ import annotations

from typing import Any

import numpy as np

from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.recurrent import INPUT_GATE, NORMS, PEEPHOLES
from luciole.ir.recurrent import LSTM as EXTENTS
from luciole.kernels.core import evaluation
from luciole.schema.enums import ActivationFunctionType

STATES = ("output_state", "cell_state")
PROJECTION = ("projection_weights", "projection_bias")
TIME = 6
PLAIN = (*PEEPHOLES, *NORMS, *PROJECTION)
CIFG = (*INPUT_GATE, PEEPHOLES[0], NORMS[0])
VARIANTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "plain": (PLAIN, {}),
    "clipped": (PLAIN, {"cell_clip": 0.3}),
    "time major": (PLAIN, {"time_major": True}),
    "relu": (PLAIN, {"activation": ActivationFunctionType.RELU}),
    "relu6": (PLAIN, {"activation": ActivationFunctionType.RELU6}),
    "no input gate": ((*PLAIN, *CIFG), {}),
    "peepholes": ((*NORMS, *PROJECTION), {}),
    "normalized": ((*PEEPHOLES, *PROJECTION), {}),
    "projected": ((*PEEPHOLES, *NORMS), {"proj_clip": 0.2}),
    "projected without bias": ((*PEEPHOLES, *NORMS, "projection_bias"), {}),
    "everything": ((), {"cell_clip": 2.0, "proj_clip": 0.5}),
    "everything but the input gate": (CIFG, {"time_major": True}),
}
"""What is left out, and the attributes."""


def lstm(left_out: tuple[str, ...], sizes: dict[str, int], **attributes: Any) -> Model:
    """A model of one operator with random parameters."""
    attributes = {"activation": ActivationFunctionType.TANH, **attributes}
    graph = Model().add_graph(Graph("main"))
    random = np.random.default_rng(11)
    first = (TIME, sizes["batch"]) if attributes.get("time_major") else (sizes["batch"], TIME)
    operands: dict[str, Value] = {"input": graph.add_input("x", (*first, sizes["inputs"]))}
    for name, extents in EXTENTS.items():
        shape = tuple(sizes[e] for e in extents)
        if name in STATES:
            operands[name] = graph.add_value(Value(name, TensorType.FLOAT32, shape))
            operands[name].is_variable = True
        elif name not in left_out:
            operands[name] = graph.add_constant(
                name, random.normal(0, 0.7, shape).astype(np.float32)
            )
    given: dict[str, Any] = {**operands, **attributes}
    graph.append(UnidirectionalSequenceLSTM(**given), "y")
    graph.outputs = list(graph.ops[0].results)
    assert graph.model is not None
    return graph.model


def states(model: Model) -> list[Array]:
    """Both states as they are before the first run."""
    return [
        np.zeros(value.dims, np.float32) for value in model.graph.ops[0].operands[18:20] if value
    ]


def run_here(model: Model, x: Array, state: list[Array]) -> Array:
    """The result of the reference kernel, which updates the states."""
    op = model.graph.ops[0]
    rest = [None if value is None else value.data for value in op.operands]
    arrays = [x, *rest[1:18], *state, *rest[20:]]
    return evaluation.computed(op, arrays)[0]


def outputs_here(model: Model, runs: list[Array]) -> list[Array]:
    """The results of several runs, one after the other, by the reference kernel."""
    state = states(model)
    return [run_here(model, x, state) for x in runs]


def outputs_in_litert(content: bytes, runs: list[Array], output: int | None = None) -> list[Array]:
    """The same in LiteRT; ``output`` is the index of an inner tensor, to see that instead."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    index = interpreter.get_output_details()[0]["index"] if output is None else output
    results = []
    for x in runs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        results.append(interpreter.get_tensor(index))
    return results
