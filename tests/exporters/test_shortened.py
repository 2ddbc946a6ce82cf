"""Files of integers with learned levels leave out scales that follow from others."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.exporters.circle.tables import to_tables
from luciole.importers import from_bytes
from luciole.ir import Model, TensorType
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.quantization import Affine
from luciole.schema.dialect import CIRCLE
from luciole.schema.writer import write
from tests.lquantizer.networks import images
from tests.networks import network, random


@pytest.fixture(scope="module", params=["dense", "convolutions"])
def model(request: pytest.FixtureRequest) -> Model:
    dense = request.param == "dense"
    floats = network((80, 40, 10)) if dense else images()
    x = random(1, 30, 80) if dense else random(1, 30, 8, 8, 3)
    return luciole.quantize(floats, x, scheme="int:w2a8", proof=False).model


def as_before(model: Model) -> bytes:
    """Write a file that says everything, as older ones do."""
    tables = to_tables(model, CIRCLE)
    (graph,) = tables.subgraphs or []
    for tensor, value in zip(graph.tensors or [], model.graph.values, strict=True):
        tensor.quantization = value.quantization
    return write(tables, CIRCLE)


def test_what_a_file_leaves_out_is_read_as_it_was(model: Model) -> None:
    content, old = luciole.to_bytes(model, "circle"), as_before(model)
    assert len(content) < len(old)
    for read in (from_bytes(content), from_bytes(old)):
        assert len(read.graph.values) == len(model.graph.values)
        for value, own in zip(read.graph.values, model.graph.values, strict=True):
            assert value.quantization == own.quantization, value.name
        assert luciole.to_bytes(read, "circle") == content


def test_only_products_and_zeros_beside_decoded_levels_are_left_out(model: Model) -> None:
    (graph,) = to_tables(model, CIRCLE).subgraphs or []
    tensors = dict(zip(model.graph.values, graph.tensors or [], strict=True))
    short = [v for v, tensor in tensors.items() if tensor.quantization != v.quantization]
    decoded = {op.output for op in model.graph.ops if isinstance(op, LevelsDecode)}
    readers = {use.op for value in decoded for use in value.users}
    assert decoded
    for value in short:
        is_bias = value.dtype == TensorType.INT32 and {use.op for use in value.users} <= readers
        assert value in decoded or is_bias
    assert len(short) == 2 * len(decoded)


def test_other_scales_of_a_bias_stay_in_the_file(model: Model) -> None:
    changed = model.clone()
    op = next(op for op in changed.graph.ops if isinstance(op, LevelsDecode))
    ((reader, _),) = op.output.users
    bias = reader.operands[2]
    assert bias is not None
    assert bias.quantization is not None
    assert bias.quantization.scale is not None
    scale = bias.quantization.scale * np.float32(2)
    bias.quantization = Affine.channels(scale, np.zeros(len(scale)), 0, bias.dtype).table()
    read = from_bytes(luciole.to_bytes(changed, "circle"))
    again = next(v for v in read.graph.values if v.name == bias.name)
    assert again.quantization == bias.quantization
