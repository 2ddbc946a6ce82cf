"""Models as ONNX files, checked by onnx and run by onnxruntime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]  # it has no types

from luciole.exporters import to_bytes
from luciole.importers.onnx.model import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op
from luciole.ir.dtypes import NUMPY, integer_range

OTHER = 1e-5
"""How far two runtimes' floats may be apart, of the largest number."""


def written(model: Model, opset: int | None = None, exact: bool = False) -> bytes:
    """The bytes of a model's file, which onnx finds sound in full."""
    content = to_bytes(model, "onnx", opset=opset, exact=exact, check=False)
    onnx.checker.check_model(content, full_check=True)
    return content


def session(
    content: bytes, entries: Mapping[str, str] = {}
) -> Callable[[Sequence[Array]], list[Array]]:
    """Load a file in onnxruntime, with entries of its session's configuration: what gives the
    outputs for inputs in its order.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    for name, entry in entries.items():
        options.add_session_config_entry(name, entry)
    loaded = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
    names = [slot.name for slot in loaded.get_inputs()]

    def run(inputs: Sequence[Array]) -> list[Array]:
        found: list[Array] = loaded.run(None, dict(zip(names, inputs, strict=True)))
        return found

    return run


def by_onnxruntime(content: bytes, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a file for inputs in its order."""
    return session(content)(inputs)


def ours(model: Model, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of the interpreter."""
    named = {v.name: a for v, a in zip(model.graph.inputs, inputs, strict=True)}
    found: Mapping[str, Array] = Interpreter(model).run(named)
    return [found[value.name] for value in model.graph.outputs]


def same(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    """Integers are equal, floats within 1e-5 of the largest."""
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if b.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        reach = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
        np.testing.assert_allclose(a, b, rtol=0, atol=OTHER * reach)


def kinds(content: bytes) -> Counter[str]:
    """How often each kind of node is in a file's graph."""
    return Counter(node.op_type for node in onnx.load_from_string(content).graph.node)


def constants(model: Model) -> list[bytes]:
    """The bytes of a model's constants."""
    held = [v.buffer.data for v in model.graph.values if v.is_constant and v.buffer is not None]
    return sorted(data.tobytes() for data in held if data is not None)


def back(content: bytes) -> Model:
    """The model that a file is read as."""
    return from_bytes(content).model


def codes(model: Model, seed: int) -> list[Array]:
    """Random codes of every input."""
    rng = np.random.default_rng(seed)
    limits = [integer_range(v.dtype) or (0, 1) for v in model.graph.inputs]
    pairs = zip(model.graph.inputs, limits, strict=True)
    return [rng.integers(low, high + 1, v.dims).astype(NUMPY[v.dtype]) for v, (low, high) in pairs]


def alone(op: Op, graph: Graph, *names: str) -> Model:
    """A graph whose outputs are an operator's results."""
    graph.append(op, *names)
    graph.outputs = list(op.results)
    model = Model()
    model.add_graph(graph)
    return model
