"""Whatever is saved can be loaded: models that were edited carelessly are refused, in a line."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.exporters import save, to_bytes
from luciole.importers import from_bytes, import_model
from luciole.ir import Buffer, Graph, LucioleError, Model, Op, Signature, TensorType, Value
from luciole.ir.errors import FormatError
from luciole.schema.tables import QuantizationParameters
from tests.networks import network
from tests.ops.control_flow_support import branches, counter, growing

NUMBERS = [0, 1, 2, 3, -1, 2**31 - 1, 2**31, 2**40]
THINGS = [None, -1, 1.5, "x", True, (1, 2), (2**40,), (), float("nan"), 99, 2**31, 2**40]


class Editor:
    """Draws what is edited, and how."""

    def __init__(self, model: Model, seed: int) -> None:
        self.model, self.rng = model, random.Random(seed)
        self.graph: Graph = self.rng.choice(model.graphs)
        self.value: Value = self.rng.choice(self.graph.values)
        self.other: Value = self.rng.choice(self.rng.choice(model.graphs).values)
        self.op: Op = self.rng.choice([op for g in model.graphs for op in g.ops])

    def extents(self) -> tuple[int, ...]:
        return tuple(self.rng.choices(NUMBERS, k=self.rng.randrange(4)))

    def attribute(self) -> None:
        for field in self.op.attr_fields():
            setattr(self.op, field.name, self.rng.choice(THINGS))

    def quantization(self) -> None:
        scales = self.rng.choice([[], [0.1], [0.1, 0.2], [-1], [np.nan]])
        points = self.rng.choice([[], [0], [300], [2**40]])
        self.value.quantization = QuantizationParameters(
            scale=np.array(scales, np.float32),
            zero_point=np.array(points, np.int64),
            quantized_dimension=self.rng.choice(NUMBERS),
        )


def put(what: str, name: str, things: Callable[[Editor], Any]) -> Callable[[Editor], None]:
    """An edit that sets an attribute of something."""
    return lambda editor: setattr(getattr(editor, what), name, things(editor))


EDITS: dict[str, Callable[[Editor], None]] = {
    "type": put("value", "dtype", lambda e: e.rng.choice(list(TensorType))),
    "dims": put("value", "dims", Editor.extents),
    "shape": put("value", "shape", Editor.extents),
    "signature": put("value", "shape_signature", Editor.extents),
    "no buffer": put("value", "buffer", lambda e: None),
    "buffer": put("value", "buffer", lambda e: Buffer(np.ones(e.rng.randrange(9), np.uint8))),
    "odd buffer": put("value", "buffer", lambda e: Buffer(np.ones((2, 2), np.float32))),
    "variable": put("value", "is_variable", lambda e: True),
    "name": put("value", "name", lambda e: e.rng.choice(["", "\udcff", "x\0y", 7])),
    "blocks": put("value", "block_tensors", lambda e: (e.other, None)),
    "quantization": Editor.quantization,
    "attribute": Editor.attribute,
    "version": put("op", "version", lambda e: e.rng.choice(NUMBERS)),
    "results": put("op", "results", lambda e: (e.value,)),
    "intermediates": put("op", "intermediates", lambda e: (e.other,)),
    "operand": lambda e: e.op.set_operand(0, None) if e.op.operands else None,
    "other operand": lambda e: e.op.set_operand(0, e.other) if e.op.operands else None,
    "inputs": put("graph", "inputs", lambda e: [e.other]),
    "outputs": put("graph", "outputs", lambda e: [e.other]),
    "graph's name": put("graph", "name", lambda e: e.rng.choice(["", "\udcff", 7])),
    "order": put("graph", "ops", lambda e: e.graph.ops[::-1]),
    "tensor lost": lambda e: e.graph.values.remove(e.value),
    "tensor twice": lambda e: e.graph.values.append(e.value),
    "graph lost": lambda e: e.model.graphs.remove(e.graph),
    "signatures": put("model", "signatures", lambda e: [Signature("s", e.graph, [("x", e.other)])]),
    "foreign signature": put("model", "signatures", lambda e: [Signature("s", Graph("no"))]),
    "buffers lost": put("model", "buffers", lambda e: []),
    "description": put("model", "description", lambda e: e.rng.choice(["\udcff", 7, ""])),
}
MODELS = {
    "dense": lambda: network(),
    "if": branches,
    "while": lambda: growing(20),
    "once": counter,
}


@cache
def saved(name: str) -> bytes:
    """A model's file before anything is edited."""
    return to_bytes(MODELS[name]())


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_can_be_loaded(name: str, edit: str) -> None:
    for seed in range(8):
        model = from_bytes(saved(name))
        content = b""
        with suppress(LucioleError):  # nothing else may be raised
            EDITS[edit](Editor(model, seed))
            content = to_bytes(model)
        if content:
            from_bytes(content)


def test_save_refuses_a_model_that_could_not_be_loaded_unless_it_is_told_to(tmp_path: Path) -> None:
    model, path = network(), tmp_path / "m.circle"
    save(model, path)
    before = path.read_bytes()
    constant = next(value for value in model.graph.values if value.is_constant)
    constant.dims = (7,)
    for door in (lambda: save(model, path), lambda: to_bytes(model, "tflite")):
        with pytest.raises(FormatError, match=r"could not be loaded: error \[BUFFER_SIZE\]"):
            door()
    assert path.read_bytes() == before
    save(model, path, check=False)
    _, findings = import_model(path.read_bytes())
    assert "BUFFER_SIZE" in [finding.code for finding in findings]


def test_save_refuses_an_operand_that_is_missing_and_a_tensor_of_another_graph() -> None:
    model = network()
    model.graph.ops[0].set_operand(1, None)
    with pytest.raises(FormatError, match=r"\[OPERANDS\] .* operand 'weights' is missing"):
        to_bytes(model)
    model = network()
    model.graph.outputs = [network().graph.values[0]]
    with pytest.raises(FormatError, match=r"\[REFERENCE\] .* is not of the graph"):
        to_bytes(model)


def test_save_refuses_numbers_that_a_file_has_no_room_for() -> None:
    model = network()
    model.graph.debug_metadata_index = 2**40
    with pytest.raises(FormatError, match=r"holds what no file can \(TypeError: bad number"):
        to_bytes(model)
    model = network()
    model.graph.ops[0].version = 2**40
    with pytest.raises(FormatError, match=r"'fc1': version is 1099511627776, a whole number from"):
        to_bytes(model)
