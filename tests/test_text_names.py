"""Hostile names never break a line."""

from __future__ import annotations

import json

import pytest

import luciole.ir.ops  # noqa: F401  # registers every operator class
from luciole.ir import Buffer, Model, Signature, TensorType, UnknownOp, Value
from luciole.ir.text.listing import describe, dump, show
from luciole.schema.enums import (
    BuiltinOperator,
)
from tests.text_support import (
    one_graph,
)

HOSTILE = [
    "two\nlines",
    "\r\x0b\x0c\x1c\x85\u2028\u2029",
    "\x1b[31mred\x1b[0m\x00",
    "\u202ereversed",
    "\udcff\udc80",
    "\ud800",
    "x" * 100_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_on_their_line(name: str) -> None:
    def model(name: str) -> Model:
        model, graph = one_graph()
        graph.name = name
        x = graph.add_input(name, (1,))
        op = UnknownOp(BuiltinOperator.CUSTOM, [x], custom_code=name)
        graph.append(op, results=[graph.add_value(Value(name, TensorType.FLOAT32, (1,)))])
        model.signatures.append(Signature(name, graph, [(name, x)], []))
        model.metadata.append((name, Buffer()))
        return model

    for text, tame in (
        (dump(model(name), name), dump(model("tame"), "tame")),
        (show(model(name).graph), show(model("tame").graph)),
    ):
        assert text.count("\n") == tame.count("\n") == len(text.splitlines())
        assert all(line.isprintable() and len(line) < 10_000 for line in text.split("\n"))
        text.encode()
    json.dumps(describe(model(name), name), allow_nan=False, ensure_ascii=False).encode()


def test_names_that_print_stand_as_they_are() -> None:
    model, graph = one_graph()
    graph.add_input("größe/日本;a\\b", (1,))
    graph.add_input("a\tb\udcff" + "\n", (1,))
    text = dump(model, "m")
    assert " größe/日本;a\\b\n" in text
    assert " a\\tb\\xff\\n\n" in text
    assert describe(model)["subgraphs"][0]["tensors"][1]["name"] == "a\tb\\xff\n"


# -------------------------------------------------------------------------------------- JSON
