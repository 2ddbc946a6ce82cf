"""Tables whose rows are looked up: stored in few bits, read by LiteRT, run in C, exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole import Interpreter
from luciole.exporters import to_bytes
from luciole.interpreter.records import first_output
from luciole.ir import Array, Model, TensorType
from luciole.ir.blockwise import blocks_of
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.reduce import Mean
from luciole.lquantizer.proving.simulation import simulation_of
from tests.compiler_support import built, close, needs_compiler, program_of
from tests.exporters.onnx_support import by_onnxruntime, ours, written
from tests.lquantizer.networks import Builder
from tests.networks import random
from tests.support import litert

ROWS, WIDTH, WORDS = 60, 32, 7


def classifier(
    dtype: TensorType = TensorType.INT32,
    batch: int | None = 1,
    width: int = WIDTH,
    table: Array | None = None,
) -> Model:
    """A mean of words' rows, and a dense layer."""
    b = Builder()
    x = b.graph.add_input("x", (batch, WORDS))
    x.dtype = dtype
    rows = random(2, ROWS, width) * np.linspace(0.1, 3, ROWS, dtype=np.float32)[:, None]
    picked = b.add(Gather(b.constant(rows if table is None else table), x))
    mean = b.add(Mean(picked, b.constant(np.array([1], np.int32)), keep_dims=False))
    b.graph.outputs = [b.add(FullyConnected(mean, b.weights(5, width)))]
    return b.model


def words(count: int = 1, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(3).integers(0, ROWS, (count, WORDS)).astype(dtype)


def table_of(model: Model) -> EmbeddingLookup:
    (op,) = [op for op in model.graph.ops if isinstance(op, EmbeddingLookup)]
    return op


def snr(model: Model, whole: Model) -> float:
    """Of 40 texts, in dB."""
    texts = {"x": words(40)}
    exact, found = (first_output(m, texts) for m in (whole, model))
    return float(10 * np.log10(np.square(exact).mean() / np.square(exact - found).mean()))


def test_a_simulation_looks_up_the_rows_of_the_file() -> None:
    """Rows of 4 bits beside integers of 8: both networks lie as far from the floats."""
    whole, texts = classifier(), {"x": words(40)}
    result = luciole.quantize(whole, texts, scheme="w4a8", proof=False)
    simulated = simulation_of(result)
    rows = (table_of(result.model).operands[1], table_of(simulated).operands[1])
    assert [v.dtype for v in rows if v is not None] == [TensorType.INT4] * 2
    assert snr(simulated, whole) == pytest.approx(snr(result.model, whole), abs=1)


@pytest.mark.parametrize(
    ("scheme", "word", "stored", "least"),
    [
        ("weights:int4", "weights:int4", WIDTH // 2 + 2, 17),
        ("weights:int4/32", "weights:int4", WIDTH // 2 + 2, 17),
        ("dynamic4", "weights:int4", WIDTH // 2 + 2, 17),
        ("weights", "weights:int8", WIDTH, 36),
        ("dynamic", "weights:int8", WIDTH, 33),
    ],
)
def test_tables_have_the_bits_of_layers(scheme: str, word: str, stored: int, least: float) -> None:
    """Bytes of a row, with its scale where it has one; LiteRT gives the same numbers."""
    whole = classifier()
    found = luciole.quantize(whole, scheme=scheme, proof=False)
    table = found.report.layers[0]
    assert (table.format, table.bytes_after) == (word, ROWS * stored)
    assert snr(found.model, whole) > least
    found.model.graph.outputs = [table_of(found.model).output]
    (theirs,) = litert(to_bytes(found.model, "tflite"), [words()])
    (rows,) = Interpreter(found.model).run({"x": words()}).values()
    np.testing.assert_array_equal(rows, theirs)


@pytest.mark.parametrize("scheme", ["w4a8", "int:w2a8", "int:w4a16"])
def test_tables_beside_integers_of_few_bits_have_4(scheme: str) -> None:
    whole = classifier()
    found = luciole.quantize(whole, {"x": words(50)}, scheme=scheme, proof=False)
    assert found.report.layers[0].format == "weights:int4"
    assert snr(found.model, whole) > 15
    (theirs,) = litert(to_bytes(found.model, "tflite"), [words()])
    step = np.abs(theirs).max() / 100
    np.testing.assert_allclose(first_output(found.model, {"x": words()}), theirs, atol=step)


def test_tables_beside_integers_of_8_bits_are_integers() -> None:
    model = luciole.quantize(classifier(), {"x": words(50)}, scheme="int8", proof=False).model
    assert isinstance(model.graph.ops[0], Gather)
    assert model.graph.ops[0].output.dtype == TensorType.INT8


@pytest.mark.parametrize(("width", "blocks"), [(96, 32), (48, 48), (33, None)])
def test_rows_have_blocks_where_they_divide(width: int, blocks: int | None) -> None:
    """An odd row has a scale of single precision."""
    whole = classifier(width=width)
    model = luciole.quantize(whole, scheme="weights:int4/32", proof=False).model
    details = blocks_of(table_of(model).value)
    assert (None if details is None else details.block_size) == blocks
    assert snr(model, whole) > 16


@pytest.mark.parametrize("batch", [2, None])
@pytest.mark.parametrize("dtype", [TensorType.INT32, TensorType.INT64])
def test_numbers_of_words_have_any_shape_and_type(dtype: TensorType, batch: int | None) -> None:
    kind = np.int32 if dtype == TensorType.INT32 else np.int64
    whole = classifier(dtype, batch)
    model = luciole.quantize(whole, scheme="weights:int4", proof=False).model
    assert table_of(model).value.dtype == TensorType.INT4
    assert [v.name for v in model.graph.outputs] == [v.name for v in whole.graph.outputs]
    texts = {"x": words(2, kind)}
    found, exact = (next(iter(Interpreter(m).run(texts).values())) for m in (model, whole))
    assert np.abs(found - exact).max() < 0.3 * np.abs(exact).max()


def test_a_table_of_two_readers_is_stored_once() -> None:
    b = Builder()
    table = b.constant(random(2, ROWS, WIDTH))
    for name in ("x", "y"):
        value = b.graph.add_input(name, (4,))
        value.dtype = TensorType.INT32
        b.graph.outputs = [*b.graph.outputs, b.add(Gather(table, value))]
    graph = luciole.quantize(b.model, scheme="weights:int4", proof=False).model.graph
    assert [op.kind for op in graph.ops] == ["EMBEDDING_LOOKUP"] * 2
    assert graph.ops[0].operands[1] is graph.ops[1].operands[1]


def test_columns_and_computed_tables_stay_floats() -> None:
    b = Builder()
    x = b.graph.add_input("x", (4, 6))
    places = b.constant(np.array([1, 0], np.int32))
    numbers = b.graph.add_input("n", (3,))
    numbers.dtype = TensorType.INT32
    columns = b.add(Gather(b.constant(random(3, 4, ROWS)), numbers, axis=1))
    layer = b.add(FullyConnected(b.add(Gather(x, places)), b.weights(8, 6)))
    b.graph.outputs = [columns, layer]
    model = luciole.quantize(b.model, scheme="weights:int4", proof=False).model
    assert [op.kind for op in model.graph.ops].count("GATHER") == 2


def test_tables_that_are_not_finite_are_skipped() -> None:
    table = random(2, ROWS, WIDTH)
    table[3] = -np.inf
    report = luciole.quantize(classifier(table=table), scheme="weights:int4", proof=False).report
    assert report.layers[0].skipped == "its rows are not all finite"


@needs_compiler
@pytest.mark.parametrize("scheme", ["weights:int4", "dynamic"])
def test_c_decodes_rows_as_they_are_looked_up(scheme: str, tmp_path: Path) -> None:
    model = luciole.quantize(classifier(), scheme=scheme, proof=False).model
    program = program_of(model)
    stored = ROWS * (WIDTH // 2 + 4) if scheme == "weights:int4" else ROWS * WIDTH
    assert stored < program.table_bytes < stored + 800
    (found,) = built(program, tmp_path).run({"x": words()})
    close(found, first_output(model, {"x": words()}))


@pytest.mark.parametrize("scheme", ["weights:int4", "weights"])
def test_onnxruntime_computes_the_same(scheme: str) -> None:
    model = luciole.quantize(classifier(), scheme=scheme, proof=False).model
    (theirs,) = by_onnxruntime(written(model), [words()])
    np.testing.assert_allclose(theirs, ours(model, [words()])[0], rtol=0, atol=1e-5)


def test_tables_are_decoded_compiled() -> None:
    model = luciole.quantize(classifier(), scheme="weights:int4", proof=False).model
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    steps = {step.op.kind: step.native is not None for step in interpreter.plan.steps}
    assert steps["EMBEDDING_LOOKUP"]
    assert interpreter.constant_bytes < 2 * ROWS * WIDTH


def test_a_network_with_tables_gets_another_number_of_records() -> None:
    whole = classifier(batch=None)
    model = luciole.quantize(whole, scheme="weights:int4", proof=False).model
    resized = luciole.resize(model, {"x": (3, WORDS)})
    assert resized.graph.outputs[0].shape == (3, 5)
    texts = {"x": words(3)}
    found, exact = (next(iter(Interpreter(m).run(texts).values())) for m in (resized, model))
    np.testing.assert_array_equal(found, exact)
