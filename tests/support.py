"""What many tests share: one-operator models, run here and in LiteRT, and where the data is."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter, compile_graph
from luciole.ir import Array, Graph, LucioleError, Model, Op, TensorType, Value
from luciole.ir.dtypes import tensor_type
from luciole.kernels.core import evaluation
from luciole.schema.tables import DimensionMetadata, QuantizationParameters, SparsityParameters

HERE = Path(__file__).parent


def refusal_of(use: Callable[..., object], *arguments: object) -> str:
    """Use something wrongly, and return the sentence that refuses it."""
    with pytest.raises(LucioleError) as caught:
        use(*arguments)
    return str(caught.value)


def data_path(name: str) -> Path:
    """A file of the shared test data; the test is skipped where it is not there."""
    root = Path(os.environ.get("LUCIOLE_DATA", HERE.parent.parent / "shared" / "data"))
    path = root / name
    if not path.exists():
        pytest.skip(f"needs {name}: set LUCIOLE_DATA to the folder with the test data")
    return path


class Affine(NamedTuple):
    """How a tensor's integers stand for numbers, scale (q - zero point), one each or one per
    channel; ``dtype`` where it is not what the array or the operator says.
    """

    scale: float | Sequence[float]
    zero_point: int | Sequence[int] = 0
    axis: int = 0
    dtype: TensorType | None = None

    def give(self, value: Value) -> None:
        """Let a tensor have it."""
        value.dtype = value.dtype if self.dtype is None else self.dtype
        value.quantization = QuantizationParameters(
            scale=np.atleast_1d(np.array(self.scale, np.float32)),
            zero_point=np.atleast_1d(np.array(self.zero_point, np.int64)),
            quantized_dimension=self.axis,
        )


def one_op(
    cls: type[Op],
    operands: Sequence[Array | None],
    constant: Sequence[int] = (),
    *,
    affine: Sequence[Affine | None] = (),
    results: Sequence[Affine | None] = (),
    **attributes: Any,
) -> Model:
    """A model of a single operator. Operands at the ``constant`` places are constants, the others
    inputs; ``affine`` and ``results`` are the first ones' scales and zero points.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    values: list[Value | None] = []
    for i, array in enumerate(operands):
        if array is None:
            values.append(None)
        elif i in constant:
            dtype = next((a.dtype for a in affine[i : i + 1] if a is not None), None)
            values.append(graph.add_constant(f"c{i}", np.asarray(array), dtype))
        else:
            value = graph.add_input(f"x{i}", np.asarray(array).shape)
            value.dtype = tensor_type(np.asarray(array).dtype)
            values.append(value)
    _give(affine, values)
    op = cls.from_operands(values, attributes)
    graph.append(op, *[f"y{i}" for i in range(len(op.result_shapes()))])
    _give(results, op.results)
    graph.outputs = list(op.results)
    return model


def _give(affine: Sequence[Affine | None], values: Sequence[Value | None]) -> None:
    for given, value in zip(affine, values, strict=False):
        if given is not None and value is not None:
            given.give(value)


def make_sparse(value: Value) -> None:
    """Let a constant be sparse, with tables that list all its elements."""
    value.sparsity = SparsityParameters(
        traversal_order=np.arange(len(value.dims), dtype=np.int32),
        block_map=np.zeros(0, np.int32),
        dim_metadata=[DimensionMetadata(dense_size=n) for n in value.dims],
    )


def heed_interrupts() -> None:
    """Let a child process be interrupted though the tests run in the background, where a shell has
    interrupts ignored: for ``preexec_fn``.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_reference(
    cls: type[Op], operands: Sequence[Array | None], constant: Sequence[int] = (), **attributes: Any
) -> tuple[Array, ...]:
    """The results of the reference kernel; checks that their shapes and types are the inferred
    ones.
    """
    op = one_op(cls, operands, constant, **attributes).graph.ops[0]
    arrays = [None if a is None else np.asarray(a) for a in operands]
    results = evaluation.computed(op, arrays)
    for value, array in zip(op.results, results, strict=True):
        assert all(n in (None, m) for n, m in zip(value.shape, array.shape, strict=True)), (
            value,
            array.shape,
        )
        assert value.dtype == tensor_type(array.dtype), (value, array.dtype)
    return results


def run_native(model: Model, x: Array) -> Array:
    """The result of the only operator's compiled kernel, run twice; fails where the reference would
    have run instead.
    """
    plan = compile_graph(model.graph, {model.graph.inputs[0]: x.shape})
    assert [step.native is not None for step in plan.steps] == [True]
    given, result = (plan.array(v[0]) for v in (model.graph.inputs, model.graph.outputs))
    assert given is not None
    assert result is not None
    result.reshape(-1).view(np.uint8)[...] = 0xFF  # NaN; every result is written
    given[...] = x
    plan.run()
    first = result.copy()
    plan.run()
    np.testing.assert_array_equal(result, first)  # nothing is left over from the run before
    return first


def invoked(interpreter: Interpreter, arrays: Sequence[Array]) -> list[Array]:
    """The outputs of a run on inputs, both in the order of the file."""
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def invoked_again(interpreter: Interpreter, arrays: Sequence[Array], times: int = 3) -> list[Array]:
    """The outputs of a run, which are those of every further run on the same inputs: for all that
    keeps no state. What is compiled while a model runs, and what a run leaves behind, shows only
    then.
    """
    first = invoked(interpreter, arrays)
    for _ in range(times - 1):
        for before, array in zip(first, invoked(interpreter, arrays), strict=True):
            np.testing.assert_array_equal(array, before, strict=True)
    return first


def run_litert(
    cls: type[Op], operands: Sequence[Array | None], constant: Sequence[int] = (), **attributes: Any
) -> tuple[Array, ...]:
    """The results of the same single operator in LiteRT's reference kernels."""
    model = one_op(cls, operands, constant, **attributes)
    return litert(
        to_bytes(model, "tflite"),
        [a for i, a in enumerate(operands) if a is not None and i not in constant],
    )


def litert(
    content: bytes, inputs: Sequence[Array], resolver: str = "BUILTIN_REF"
) -> tuple[Array, ...]:
    """Run a .tflite file in LiteRT, inputs and outputs in file order.

    ``resolver`` names its kernels: BUILTIN_REF (reference), AUTO (what users get), ...
    """
    return next(_in_litert(content, [inputs], resolver))


def litert_records(
    content: bytes, inputs: Sequence[Array], resolver: str = "BUILTIN_REF"
) -> list[Array]:
    """Run a .tflite file without states in LiteRT on records, one after the other: inputs and
    outputs are [records, ...], in file order.
    """
    records = ([array[i : i + 1] for array in inputs] for i in range(len(inputs[0])))
    outputs = zip(*_in_litert(content, records, resolver), strict=True)
    return [np.concatenate(arrays) for arrays in outputs]


def _in_litert(
    content: bytes, runs: Iterable[Sequence[Array]], resolver: str
) -> Iterator[tuple[Array, ...]]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content, num_threads=1, experimental_op_resolver_type=OpResolverType[resolver]
    )
    interpreter.allocate_tensors()
    for inputs in runs:
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], np.asarray(array))
        interpreter.invoke()
        yield tuple(interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details())
