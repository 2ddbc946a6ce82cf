"""``luciole import``, ``circle-dump`` and ``luciole verify``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import save, to_bytes
from luciole.ir import Graph, Model, Op, TensorType
from luciole.ir.ops.elementwise_binary import Div, FloorDiv, Pow
from luciole.ir.ops.slice import Slice
from luciole.schema.reader import dialect_of
from luciole.tools import dump
from tests.networks import network, random
from tests.support import data_path, litert, one_op
from tests.tools.running import call, spawn

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("target", ["again.circle", "again.tflite", "again"])
def test_import_writes_the_format_of_the_name(capsys: Capture, folder: Path, target: str) -> None:
    outcome = call(capsys, "import", "model.circle", "-o", target)
    assert (outcome.code, outcome.err) == (0, "")
    size = Path(target).stat().st_size
    assert outcome.out == f"{target}: {size / 1000:.1f} KB, 2 FULLY_CONNECTED, 1 TANH\n"
    dialect = dialect_of(Path(target).read_bytes())
    assert dialect is not None
    assert dialect.name == ("tflite" if target.endswith(".tflite") else "circle")
    x = random(0, 3, 20)
    wanted, found = (luciole.Interpreter(p).run(x)["fc2"] for p in ("model.circle", target))
    np.testing.assert_array_equal(found, wanted)


def test_import_of_tflite_and_json(capsys: Capture, folder: Path) -> None:
    source = data_path("models/ad01_fp32.tflite")
    outcome = call(capsys, "import", source, "--output", "ad01.circle", "--json")
    content = json.loads(outcome.out)
    assert content["output"] == "ad01.circle"
    assert content["bytes"] == Path("ad01.circle").stat().st_size
    assert content["operators"] == {"FULLY_CONNECTED": 10}


def test_import_refuses_another_ending(capsys: Capture, folder: Path) -> None:
    for name in ("x.xyz", "nowhere/x.xyz"):
        text = call(capsys, "import", "model.circle", "-o", name).error(2)
        assert text == "x.xyz: can write .circle, .tflite and .onnx, not .xyz"


def test_import_refuses_what_the_format_cannot_hold(capsys: Capture, folder: Path) -> None:
    made = luciole.quantize("model.circle", random(0, 60, 20), encode_bits=3).model
    luciole.save(made, "q.circle")
    text = call(capsys, "import", "q.circle", "-o", "q.tflite").error(3)
    assert text == "tflite has no operator LQFullyConnected; save it as .circle"
    assert not Path("q.tflite").exists()


def test_dump_reads_standard_input(folder: Path) -> None:
    content = Path("model.circle").read_bytes()
    outcome = spawn("dump", "-", stdin=content)
    assert outcome.code == 0
    assert outcome.out.replace("Dump: -", "Dump: model.circle") == spawn("dump", "model.circle").out


def test_circle_dump_is_luciole_dump(capsys: Capture, folder: Path) -> None:
    first = call(capsys, "model.circle", main=dump.main)
    assert first == call(capsys, "dump", "model.circle")
    assert "FULLY_CONNECTED" in first.out
    assert "fc1/weights" in first.out


def test_dump_as_json(capsys: Capture, folder: Path) -> None:
    content = json.loads(call(capsys, "dump", "model.circle", "--json").out)
    assert (content["file"], content["format"]) == ("model.circle", "circle")
    assert content["findings"] == []
    assert content["description"] == "a small network"


def test_dump_shows_what_verify_refuses(capsys: Capture, folder: Path) -> None:
    damaged = network()
    damaged.graph.ops.reverse()
    Path("damaged.circle").write_bytes(to_bytes(damaged, check=False))
    shown = call(capsys, "dump", "damaged.circle")
    assert "O(0:2) FULLY_CONNECTED" in shown.out
    assert "Findings: severity [code] place: sentence\nerror [" in shown.out
    assert shown.code == 1
    assert shown.err.startswith("luciole: error: damaged.circle: error [")
    as_json = call(capsys, "dump", "damaged.circle", "--json")
    assert (as_json.code, as_json.err) == (1, shown.err)
    outcome = call(capsys, "verify", "damaged.circle")
    assert outcome.code == 1
    assert "damaged.circle has errors: 1 graph, 3 operators" in outcome.out
    content = call(capsys, "verify", "damaged.circle", "--json")
    assert content.code == 1
    found = json.loads(content.out)
    assert found["valid"] is False
    assert {f["severity"] for f in found["findings"]} >= {"error"}
    assert found["findings"][0].keys() == {"severity", "code", "path", "sentence"}
    assert json.loads(as_json.out)["findings"] == found["findings"]


def test_running_refuses_what_verify_refuses(capsys: Capture, folder: Path) -> None:
    damaged = network()
    damaged.graph.ops.reverse()
    Path("damaged.circle").write_bytes(to_bytes(damaged, check=False))
    text = call(capsys, "eval", "damaged.circle", "--data", "train.npy").error(1)
    assert text.startswith("damaged.circle: error [")


def test_verify_of_a_good_file(capsys: Capture, folder: Path) -> None:
    outcome = call(capsys, "verify", "model.circle")
    assert outcome.code == 0
    assert outcome.out == "model.circle is valid: 1 graph, 3 operators, 0 findings\n"
    content = json.loads(call(capsys, "verify", "model.circle", "--json").out)
    assert content == {"model": "model.circle", "valid": True, "findings": []}


def test_verify_lists_what_is_not_compiled(capsys: Capture, folder: Path) -> None:
    outcome = call(capsys, "verify", "model.circle", "--performance")
    assert (outcome.code, outcome.out.splitlines()[1:]) == (0, ["every operator is compiled"])
    x = np.ones(3, np.float32)
    save(one_op(Pow, [x, x]), "power.circle")
    lines = call(capsys, "verify", "power.circle", "--performance").out.splitlines()[1:]
    assert lines[0] == "not compiled as they are"
    assert [line.split(maxsplit=2) for line in lines[1:]] == [
        ["operator", "kind", "why"],
        ["y0", "POW", "no compiled form"],
    ]
    found = json.loads(call(capsys, "verify", "power.circle", "--performance", "--json").out)
    row = {"operator": "y0", "kind": "POW", "reason": "no compiled form"}
    assert found["performance"] == [row]


def test_verify_lists_what_has_no_c_form(capsys: Capture, folder: Path) -> None:
    outcome = call(capsys, "verify", "model.circle", "--c")
    assert (outcome.code, outcome.out.splitlines()[1:]) == (0, ["luciole compile writes it as C"])
    x = np.ones(3, np.float32)
    save(one_op(Pow, [x, x]), "power.circle")
    outcome = call(capsys, "verify", "power.circle", "--c")
    assert outcome.code == 3
    assert outcome.out.splitlines()[1:] == [
        "without a C form",
        "operator  kind  why",
        "y0        POW   no C form for FLOAT32",
    ]
    outcome = call(capsys, "verify", "power.circle", "--c", "--json")
    assert (outcome.code, json.loads(outcome.out)["c"][0]["kind"]) == (3, "POW")


def test_verify_settles_open_extents_that_do_not_fit_as_1(capsys: Capture, folder: Path) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, None, 4))
    begin = graph.add_constant("begin", np.array([0, 2, 0], np.int32))
    size = graph.add_constant("size", np.array([1, 3, 4], np.int32))
    graph.outputs = [graph.append(Slice(x, begin, size), "y").output]
    save(model, "open.circle")
    outcome = call(capsys, "verify", "open.circle", "--performance")
    assert (outcome.code, outcome.err) == (0, "")
    assert "open extents of 'x' count as 1: --shape NAME=... settles them" in outcome.out
    outcome = call(capsys, "verify", "open.circle", "--performance", "--shape", "x=1,6,4")
    assert (outcome.code, outcome.out.splitlines()[1:]) == (0, ["every operator is compiled"])


def test_verify_does_not_plan_a_model_that_has_errors(capsys: Capture, folder: Path) -> None:
    model = network()
    model.graph.ops.reverse()
    Path("damaged.circle").write_bytes(to_bytes(model, check=False))
    outcome = call(capsys, "verify", "damaged.circle", "--performance")
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1].startswith("damaged.circle has errors: ")


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-m', 'luciole', 'dump', 'model.circle'],\n"
        "                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
        "p.stdout.close()\n"
        "print(p.wait(), p.stderr.read())\n"
    )
    assert spawn(program=["-c", script]).out in ("1 b''\n", "0 b''\n")


@pytest.mark.parametrize("operator", [Div, FloorDiv, Pow])
def test_import_names_what_litert_does_not_run(
    capsys: Capture, folder: Path, operator: type[Op]
) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    ends = [graph.add_input(name, (3,), TensorType.INT64) for name in ("a", "b")]
    graph.outputs = [graph.append(operator.from_operands(ends, {}), "y").output]
    Path("long.circle").write_bytes(to_bytes(model))
    assert not call(capsys, "import", "long.circle", "-o", "copy.circle").err
    said = call(capsys, "import", "long.circle", "-o", "long.tflite").err
    kind = graph.ops[0].kind
    assert f"long.tflite: LiteRT does not run INT64 in {kind} 'y'" in said
    ones = np.ones(3, np.int64)
    with pytest.raises((RuntimeError, ValueError), match=r"INT64|only supports"):
        litert(Path("long.tflite").read_bytes(), [ones, ones], "AUTO")
