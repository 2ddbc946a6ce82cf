"""A network's outputs for records, in each form that computes them: [records, ...] each, in the
order of the model's outputs, real numbers where they are integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it has no types

from luciole.compiler import Compiled, CompileOptions, compile_model
from luciole.compiler.host import build_library
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, LucioleError, Model, Op, TensorType
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.quantize import Quantize
from luciole.ir.quantization import affine_of
from tests.fuzz.rewriting.networks import Records

FLAGS = ("-std=c99", "-O0", "-w", "-fPIC", "-shared")
_LAST_BIT = 2.0**-22
_SHOWN = 200
_QUIET = 4

Outputs = list[Array]


def each(records: Records, graph: Graph, most: int | None = None) -> list[dict[str, Array]]:
    """List records as a graph reads them, one by one: integers where its inputs are."""
    count = len(next(iter(records.values())))
    coded = {v.name: _coded(graph, v.name, records[v.name]) for v in graph.inputs}
    return [{n: a[k : k + 1] for n, a in coded.items()} for k in range(min(count, most or count))]


def _coded(graph: Graph, name: str, array: Array) -> Array:
    value = next(v for v in graph.inputs if v.name == name)
    affine = affine_of(value)
    if value.dtype == TensorType.FLOAT32 or affine is None:
        return array
    return affine.encode(array)


def _real(graph: Graph, runs: Sequence[Sequence[Array]]) -> Outputs:
    """Put the outputs of all records together, as real numbers."""
    made = []
    for k, value in enumerate(graph.outputs):
        array, affine = np.stack([run[k] for run in runs]), affine_of(value)
        integer = value.dtype != TensorType.FLOAT32 and affine is not None
        real = affine.decode(array) if integer and affine is not None else array
        made.append(real.astype(np.float64))
    return made


def interpreted(interpreter: Interpreter, records: Records, most: int | None = None) -> Outputs:
    """Compute by the interpreter."""
    graph, runs = interpreter.graph, []
    for record in each(records, graph, most):
        interpreter.reset_all_variables()
        results = interpreter.run(record)
        runs.append([results[v.name].copy() for v in graph.outputs])
    return _real(graph, runs)


def of_model(model: Model, records: Records, most: int | None = None) -> Outputs:
    """Compute by an interpreter of its own."""
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    return interpreted(interpreter, records, most)


SIMULATED, INSIDE = 1 / 8, 1 / 64
"""Shares of a step by which tensors are tipped: all that are rounded, and those that are computed
in floats before, which runtimes do not compute alike to the last bit.
"""


def tipped(model: Model, seed: int, share: float = SIMULATED) -> Model:
    """Copy a network with floats before QUANTIZE, each tensor shifted by up to a share of its step
    before it is rounded; inputs stay where only what lies ``INSIDE`` is tipped, and layers that
    round floats themselves read others in the last bit.
    """
    rng, made = np.random.default_rng(seed), model.clone()
    for op in [op for graph in made.graphs for op in graph.ops if isinstance(op, Quantize)]:
        affine, graph = affine_of(op.output), op.graph
        if affine is None or graph is None or op.input.dtype != TensorType.FLOAT32:
            continue
        if share == INSIDE and op.input.is_input:
            continue
        shift = np.array(rng.uniform(-share, share) * affine.scale.min(), np.float32)
        constant = graph.add_constant(graph.unique_name("shift"), shift)
        shifted = graph.insert_before(op, Add(op.input, constant), graph.unique_name("shifted"))
        op.set_operand(0, shifted.output)
    if share == INSIDE:
        _nudge(made.graph, rng)
    return made


def _nudge(graph: Graph, rng: np.random.Generator) -> None:
    """Change the last bit of what layers read that round it themselves."""
    for op in [op for op in graph.ops if rounds_itself(op)]:
        x = op.required(0)
        if not x.is_input:
            factors = (1 + rng.uniform(-_LAST_BIT, _LAST_BIT, x.dims[-1])).astype(np.float32)
            constant = graph.add_constant(graph.unique_name("factors"), factors)
            made = graph.insert_before(op, Mul(x, constant), graph.unique_name("multiplied"))
            op.set_operand(0, made.output)


def rounds_itself(op: Op) -> bool:
    """Tell whether a layer reads floats beside integers for weights."""
    weights = weight_constant(op) if has_weights(op) else None
    is_integer = weights is not None and weights.dtype != TensorType.FLOAT32
    return is_integer and op.required(0).dtype == TensorType.FLOAT32


def litert(content: bytes, graph: Graph, records: Records, most: int) -> Outputs | None:
    """Compute by LiteRT's reference kernels; None where it does not take the file."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = OpResolverType.BUILTIN_REF
    try:
        peer = Interpreter(
            model_content=content, num_threads=1, experimental_op_resolver_type=resolver
        )
        peer.allocate_tensors()
    except (RuntimeError, ValueError):
        return None
    inputs, outputs = peer.get_input_details(), peer.get_output_details()
    runs = []
    for record in each(records, graph, most):
        peer.reset_all_variables()
        for detail, value in zip(inputs, graph.inputs, strict=True):
            peer.set_tensor(detail["index"], record[value.name])
        peer.invoke()
        runs.append([peer.get_tensor(detail["index"]) for detail in outputs])
    return _real(graph, runs)


def refused_by_litert(content: bytes) -> Iterator[str]:
    """Say why LiteRT does not take a file."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        Interpreter(
            model_content=content, experimental_op_resolver_type=resolver
        ).allocate_tensors()
    except (RuntimeError, ValueError) as error:
        yield str(error)[:_SHOWN]


def in_c(model: Model, records: Records, folder: Path, most: int) -> Outputs:
    """Compute by a program in C99. Raises LucioleError where the network has no such form."""
    program = compile_model(model, CompileOptions("net", "model", "model", (), "", "portable"))
    build_library(program, folder / "net.so", FLAGS)
    compiled, runs = Compiled(folder / "net.so"), []
    for record in each(records, model.graph, most):
        compiled.reset()
        arrays = zip(compiled.run(record), model.graph.outputs, strict=True)
        runs.append([array.reshape(value.dims) for array, value in arrays])
    return _real(model.graph, runs)


def in_onnx(content: bytes, graph: Graph, records: Records, most: int) -> Outputs:
    """Compute by onnxruntime, as the file says and no faster."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, _QUIET
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
    names = [slot.name for slot in session.get_inputs()]
    runs = []
    for record in each(records, graph, most):
        inputs = [record[v.name] for v in graph.inputs]
        runs.append(session.run(None, dict(zip(names, inputs, strict=True))))
    return _real(graph, runs)


def written(model: Model) -> Model:
    """Write a model and read it again."""
    return from_bytes(to_bytes(model))


def tflite(model: Model) -> bytes | None:
    """Write a model as a ``.tflite`` file, None where it has what those have not."""
    try:
        return to_bytes(model, "tflite")
    except LucioleError:
        return None


def steps(graph: Graph) -> list[float]:
    """Find the step of each output, 0 where it is not made of integers."""
    made = []
    for value in graph.outputs:
        maker = value.producer
        source = maker.op.operands[0] if maker and maker.op.kind == "DEQUANTIZE" else value
        affine = None if source is None else affine_of(source)
        made.append(0.0 if affine is None else float(np.max(affine.scale)))
    return made


def reference(model: Model, records: Sequence[Mapping[str, Array]]) -> Outputs:
    """Compute by NumPy kernels, operator by operator."""
    from tests.fuzz.rewriting.plainly import run

    runs = [run(model.graph, record) for record in records]
    return _real(model.graph, [[arrays[v] for v in model.graph.outputs] for arrays in runs])
