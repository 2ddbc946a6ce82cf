"""``luciole optimize``: fewer operators, the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Graph, Model
from luciole.ir.names import is_stripped
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.elementwise_binary import Add, Mul
from tests.networks import dense, network, random
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]


def normalized() -> Model:
    """relu(dense(x) * m + (1 + 1)), for any number of records."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    y = dense(graph, graph.add_input("x", (None, 6)), (5, 6), "fc").output
    ones = graph.add_constant("ones", np.ones(5, np.float32))
    twos = graph.append(Add(ones, ones), "twos").output
    y = graph.append(Mul(y, graph.add_constant("m", random(3, 5))), "scaled").output
    y = graph.append(Add(y, twos), "shifted").output
    graph.outputs = [graph.append(Relu(y), "y").output]
    return model


def test_a_model_becomes_one_layer_that_computes_the_same(capsys: Capture, folder: Path) -> None:
    luciole.save(normalized(), "net.circle")
    outcome = call(capsys, "optimize", "net.circle", "-o", "out.circle")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1].startswith("out.circle: ")
    assert outcome.out.endswith("5 -> 1 operators, without 2 ADD, 1 MUL, 1 RELU\n")
    x = random(4, 7, 6)
    (wanted,) = luciole.Interpreter("net.circle").run(x).values()
    (found,) = luciole.Interpreter("out.circle").run(x).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert luciole.load("out.circle").graph.inputs[0].shape == (None, 6)


def test_names_are_taken_off_when_asked_for(capsys: Capture, folder: Path) -> None:
    luciole.save(normalized(), "net.circle")
    assert call(capsys, "optimize", "net.circle", "-o", "out.circle", "--strip_names").code == 0
    names = {v.name for v in luciole.load("out.circle").graph.values}
    assert {"x", "y"} < names
    assert all(is_stripped(name) for name in names - {"x", "y"})


def test_the_batch_is_fixed(capsys: Capture, folder: Path) -> None:
    luciole.save(normalized(), "net.circle")
    argv = ("optimize", "net.circle", "-o", "out.tflite", "--batch", "3", "--json")
    content = json.loads(call(capsys, *argv).out)
    assert content["after"] == {"FULLY_CONNECTED": 1}
    assert content["bytes"] == Path("out.tflite").stat().st_size
    graph = luciole.load("out.tflite").graph
    assert (graph.inputs[0].shape, graph.outputs[0].shape) == ((3, 6), (3, 5))


def test_optimize_refuses_what_import_refuses(capsys: Capture, folder: Path) -> None:
    luciole.save(network(), "net.circle")
    argv = ("optimize", "net.circle", "-o")
    assert "--batch is 0" in call(capsys, *argv, "o.circle", "--batch", "0").error(2)
    assert "o.pb" in call(capsys, *argv, "o.pb").error(2)
    call(capsys, "optimize", "no.circle", "-o", "o.circle").error(1)


def test_passes_are_chosen_listed_and_explained(capsys: Capture, folder: Path) -> None:
    luciole.save(normalized(), "net.circle")
    listed = call(capsys, "optimize", "--list").out
    assert "  fuse_batch_norm " in listed
    argv = ("optimize", "net.circle", "-o", "out.circle", "--passes", "fuse_batch_norm")
    out = call(capsys, *argv, "--explain").out
    assert out.startswith("fuse_batch_norm  -1 MUL\n")
    assert out.endswith("5 -> 4 operators, without 1 MUL\n")
    listing = json.loads(call(capsys, "optimize", "--list", "--json").out)
    assert {"fold_constants", "remove_dead"} <= {one["name"] for one in listing}
    none = call(capsys, "optimize", "net.circle", "-o", "o.circle", "--preset", "none", "--explain")
    assert none.out.startswith("no pass changed anything\n")


def test_a_file_is_verified_with_records(capsys: Capture, folder: Path) -> None:
    luciole.save(normalized(), "net.circle")
    np.save("x.npy", random(9, 20, 6))
    outcome = call(capsys, "optimize", "net.circle", "-o", "out.circle", "--verify", "x.npy")
    assert "the file on 20 records that were given" in outcome.out


def test_optimize_refuses_what_is_missing_or_unknown(capsys: Capture, folder: Path) -> None:
    luciole.save(normalized(), "net.circle")
    assert "MODEL is missing" in call(capsys, "optimize", "-o", "o.circle").error(2)
    assert "-o FILE is missing" in call(capsys, "optimize", "net.circle").error(2)
    for option in ("--limit=3", "--preprocess=x/2", "--data-limit=1KB", "--allow-outside"):
        outcome = call(capsys, "optimize", "net.circle", "-o", "o.circle", option)
        assert outcome.error(2) == f"{option.partition('=')[0]} goes with --verify DATA"
    for words in (["--keep"], ["--verify", "x.npy"]):
        outcome = call(capsys, "optimize", "net.circle", "-o", "o.circle", "--no-proof", *words)
        assert outcome.error(2) == f"{words[0]} goes with a proof: leave --no-proof out"
    argv = ("optimize", "net.circle", "-o", "o.circle", "--passes", "remove_deed")
    assert "did you mean remove_dead?" in call(capsys, *argv).error(1)
