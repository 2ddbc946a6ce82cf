"""Nodes of ONNX files behind operators, against the files as onnx reads them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import luciole
from luciole.importers.files import read
from luciole.importers.reader import reader_of
from luciole.ir.analysis.origins import MOST_NODES, SourceNode, origins
from tests.networks import network

onnx = pytest.importorskip("onnx")

GOLDEN = Path(__file__).parent.parent / "golden" / "onnx"


@pytest.mark.parametrize("name", ["mobilenet_v2_block", "unet", "transformer"])
def test_all_nodes_of_a_file_are_behind_operators_that_their_values_lead_to(name: str) -> None:
    path = GOLDEN / f"{name}.onnx"
    imported = read(path)
    graph, nodes = imported.model.graph, imported.nodes
    proto = onnx.load(path).graph
    assert [node.kind for node in nodes] == [node.op_type for node in proto.node]
    behind = origins(graph, nodes)
    assert set().union(*behind.values()) == set(range(len(nodes)))
    results = {value.name.strip("/"): op for op in behind for value in op.results}
    for op, numbers in behind.items():
        made = {output for n in numbers for output in nodes[n].outputs}
        inner = {i for n in numbers for i in nodes[n].inputs}
        others = {i for i in inner - made if i in results and results[i] is not op}
        makers = {output for node in nodes for output in node.outputs}
        assert not (inner & makers) - made - others, "what they read is theirs, or an operator's"


def test_a_convolution_has_its_normalization_and_its_activation_behind_it() -> None:
    path = GOLDEN / "cnn.onnx"
    imported = reader_of(path).read_bytes(path.read_bytes())
    graph, nodes = imported.model.graph, imported.nodes
    behind = origins(graph, nodes)
    kinds = [[nodes[n].kind for n in behind[op]] for op in graph.ops if op.kind == "CONV_2D"]
    assert kinds
    assert all(one[0] == "Conv" for one in kinds)
    assert any("Relu" in one or "Clip" in one for one in kinds)


def test_nodes_behind_a_result_that_kept_its_name_follow_it() -> None:
    chain = [
        SourceNode("Gemm", "a", ("x",), ("fc1",)),
        SourceNode("Identity", "b", ("fc1",), ("gone",)),
        SourceNode("Identity", "c", ("gone",), ("gone too",)),
    ]
    model = network()
    behind = {op.name: numbers for op, numbers in origins(model.graph, chain).items()}
    assert behind == {"fc1": [0, 1, 2], "act1": [], "fc2": []}


def test_no_operator_lists_nodes_without_end() -> None:
    names = ["x", *(f"n{i}" for i in range(3 * MOST_NODES)), "fc1"]
    chain = [SourceNode("Identity", b, (a,), (b,)) for a, b in pairwise(names)]
    model = network()
    assert max(map(len, origins(model.graph, chain).values())) == MOST_NODES


def test_files_whose_operators_are_taken_over_have_no_nodes(tmp_path: Path) -> None:
    path = tmp_path / "m.circle"
    luciole.save(network(), path)
    assert not read(path).nodes
