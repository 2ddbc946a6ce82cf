"""Graphs for Model Explorer: what it reads of nodes, edges, groups and called graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from luciole.drawing.blobs import Blobs
from luciole.drawing.document import Subject, document
from luciole.ir import Model
from luciole.tools.view.explorer import explorer_graphs
from tests.interpreter.loop_support import Loop, model_of
from tests.networks import network
from tests.tools.running import call
from tests.tools.view.conftest import Digits
from tests.tools.view.graphs import nested

Json = dict[str, Any]


def nodes_of(model: Model) -> dict[str, Json]:
    (graph,) = explorer_graphs(document([Subject(model, "m")], Blobs()))["graphs"]
    return {node["id"]: node for node in graph["nodes"]}


def test_every_node_reads_what_others_make() -> None:
    model = network()
    nodes = nodes_of(model)
    assert len(nodes) == len(model.graph.ops) + len(model.graph.inputs) + len(model.graph.outputs)
    for number, op in enumerate(model.graph.ops, start=len(model.graph.inputs)):
        node = nodes[str(number)]
        made = [v for v in op.operands if v is not None and not v.is_constant]
        read = [nodes[edge["sourceNodeId"]] for edge in node["incomingEdges"]]
        assert [n["outputsMetadata"][0]["attrs"][0]["value"] for n in read] == [
            v.name for v in made
        ]


def test_groups_are_folders() -> None:
    nodes = nodes_of(nested(60))
    assert nodes["1"]["namespace"] == "stage0/block0"
    assert nodes["0"]["namespace"] == ""


def test_a_loop_leads_to_its_graphs() -> None:
    made = explorer_graphs(document([Subject(model_of(Loop()), "m")], Blobs()))
    names = [graph["id"] for graph in made["graphs"]]
    called = [n["subgraphIds"] for n in made["graphs"][0]["nodes"] if n["subgraphIds"]]
    assert len(names) == len(set(names)) == 3
    assert called == [names[1:]]


def test_a_learned_layer_has_its_format_its_levels_and_a_colour(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, digits: Digits
) -> None:
    path = tmp_path / "graph.json"
    argv: list[str | Path] = [
        "view",
        digits.float_model,
        digits.quantized,
        "--model-explorer-graph",
        path,
        "--no-browser",
    ]
    assert call(capsys, *argv).code == 0
    made = json.loads(path.read_text())
    layer = next(n for n in made["graphs"][0]["nodes"] if n["label"] == "LQFullyConnected")
    facts = {pair["key"]: pair["value"] for pair in layer["attrs"]}
    assert facts["format"] == "levels:w3a3"
    assert facts["levels of its input"].count(",") == 7
    assert layer["style"]["backgroundColor"].startswith("#")
    assert float(facts["weights signal/noise [dB]"]) > 0
    assert int(facts["bytes of constants [B]"]) > 0
    values = [pair["value"] for n in made["graphs"][0]["nodes"] for pair in n["attrs"]]
    assert "None" not in values


def test_model_explorer_takes_names_that_end_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "view", "m.circle", "--model-explorer-graph", "graph.txt")
    assert outcome.error(2).startswith("--model-explorer-graph is graph.txt: Model Explorer takes")
