"""``circle-bench``: its JSON, tables, files and refusals."""

from __future__ import annotations

import csv
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import save
from luciole.ir import Graph, Model
from luciole.ir.ops.elementwise_binary import Add, Pow
from luciole.tools import bench
from luciole.tools.bench import tables
from luciole.tools.common import console
from tests.networks import network, random, two_inputs
from tests.support import one_op
from tests.tools.bench_support import Capture, report, run
from tests.tools.running import call

STABLE = {
    "median_us": float,
    "p90_us": float,
    "p99_us": float,
    "min_us": float,
    "load_ms": float,
    "compile_ms": float,
    "arena_bytes": int,
    "constant_bytes": int,
    "peak_rss_bytes": int,
    "machine": dict,
    "peers": list,
    "operators": list,
}


def test_the_stable_keys(capsys: Capture, folder: Path) -> None:
    found = report(capsys, "model.circle")
    for key, kind in STABLE.items():
        assert isinstance(found[key], kind), key
    assert 0 < found["min_us"] <= found["median_us"] <= found["p90_us"] <= found["p99_us"]
    assert found["runs"] >= 3
    assert found["bytes"] == Path("model.circle").stat().st_size
    assert found["peak_rss_bytes"] > 10_000_000
    # x, fc1 + act1, fc2 in places of 64 bytes each; the weights and biases of both layers
    assert 0 < found["arena_bytes"] <= 4 * 128
    assert found["constant_bytes"] == 4 * (20 * 16 + 16 + 16 * 4 + 4)
    assert {"cpu", "features", "cores", "python", "versions", "date"} <= found["machine"].keys()
    assert "AVX-512 VPOPCNTDQ" in found["machine"]["features"]


def test_operators_and_kinds(capsys: Capture, folder: Path) -> None:
    found = report(capsys, "model.circle")
    operators, kinds = found["operators"], found["kinds"]
    assert [o["name"] for o in operators] == ["fc1", "act1", "fc2"]
    assert [o["kind"] for o in operators] == ["FULLY_CONNECTED", "TANH", "FULLY_CONNECTED"]
    assert {k["kind"]: k["count"] for k in kinds} == {"FULLY_CONNECTED": 2, "TANH": 1}
    for rows in (operators, kinds):
        assert sum(row["share"] for row in rows) == pytest.approx(1)
        assert rows[-1]["cumulative"] == pytest.approx(1)
    total = sum(o["median_us"] for o in operators)
    assert sum(k["median_us"] for k in kinds) == pytest.approx(total)
    for operator in operators:
        assert operator["share"] == pytest.approx(operator["median_us"] / total)


def test_the_checksum_is_of_the_outputs_on_seeded_inputs(capsys: Capture, folder: Path) -> None:
    x = np.random.default_rng(5).normal(size=(1, 20)).astype(np.float32)
    y = luciole.Interpreter("model.circle").run(x)["fc2"]
    found = report(capsys, "model.circle", "--seed", "5")
    assert found["checksum"] == f"{zlib.crc32(y.tobytes()):08x}"
    assert report(capsys, "model.circle", "--seed", "6")["checksum"] != found["checksum"]


def test_peers_are_compared_by_their_medians(capsys: Capture, folder: Path) -> None:
    luciole.save(network((20, 64, 4)), "larger.circle")
    found = report(
        capsys, "model.circle", "--against", "larger.circle", "--against", "model.circle"
    )
    assert [peer["name"] for peer in found["peers"]] == ["larger.circle", "model.circle"]
    for peer in found["peers"]:
        assert peer["ratio"] == peer["median_us"] / found["median_us"]
        copies = peer["with_copies"]
        assert copies["ratio"] == copies["median_us"] / found["with_copies"]["median_us"]
        assert peer["bytes_ratio"] == Path(peer["name"]).stat().st_size / found["bytes"]
    assert found["peers"][0]["largest_difference"] > 0
    assert found["peers"][1]["largest_difference"] == 0
    assert found["peers"][1]["checksum"] == found["checksum"]


def test_accuracy_needs_labelled_data_and_is_that_of_eval(capsys: Capture, folder: Path) -> None:
    luciole.save(network((20, 64, 4)), "larger.circle")
    argv = ("model.circle", "--data", "test.npz", "--against", "larger.circle")
    found = report(capsys, *argv)
    assert found["top1"] == 0.75  # a quarter of the labels are wrong on purpose
    evaluated = call(capsys, "eval", "larger.circle", "--data", "test.npz", "--json")
    assert found["peers"][0]["top1"] == json.loads(evaluated.out)["top1"]
    assert report(capsys, "model.circle", "--data", "train.npy")["top1"] is None


def test_an_ignored_label_counts_nowhere(capsys: Capture, folder: Path) -> None:
    """Of 60 labels the first 15 are wrong on purpose, and now none."""
    data = np.load("test.npz")
    labels = data["y_test"].copy()
    labels[:20] = 255
    np.savez("ignored.npz", x_test=data["x_test"], y_test=labels)
    argv = ("model.circle", "--data", "ignored.npz")
    refused = call(capsys, "bench", *argv).error(2)
    assert refused.startswith("record 0 has label 255, output 'b' has 4 classes: 0 to 3")
    top1 = report(capsys, *argv, "--ignore-label", "255")["top1"]
    evaluated = call(capsys, "eval", *argv, "--ignore-label", "255", "--json")
    assert top1 == json.loads(evaluated.out)["top1"]


def test_records_fill_a_batch(capsys: Capture, folder: Path) -> None:
    luciole.save(network(shape=(None, 20)), "open.circle")
    argv = ("open.circle", "--data", "test.npz", "--input-layer-shape", "7,20")
    found = report(capsys, *argv)
    assert found["inputs"][0]["shape"] == [7, 20]
    assert found["inputs"][0]["records"] == 9  # 60 records, the last three begin anew
    assert found["top1"] == 0.75


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setattr(console, "columns", lambda: 80)
    monkeypatch.setattr(tables, "columns", lambda: 80)


def test_what_numpy_runs_is_listed_with_the_reason(capsys: Capture, folder: Path) -> None:
    x = np.ones(3, np.float32)
    save(one_op(Pow, [x, x]), "power.circle")
    lines = [line.split(maxsplit=2) for line in run(capsys, "power.circle").out.splitlines()]
    at = lines.index(["not", "compiled", "as they are"])
    assert lines[at + 2] == ["y0", "POW", "no compiled form"]
    (operator,) = report(capsys, "power.circle")["operators"]
    assert (operator["native"], operator["reason"]) == (False, "no compiled form")


@pytest.mark.usefixtures("narrow")
def test_tables_for_people(capsys: Capture, folder: Path) -> None:
    argv = ("model.circle", "--data", "test.npz", "--against", "model.circle")
    text = run(capsys, *argv).out
    for heading in (
        "time of a run",
        "operators in execution order",
        "kinds of operators",
        "size",
        "accuracy",
        "time, medians of interleaved samples",
    ):
        assert f"\n{heading}\n" in text
    assert "longest" not in text, "three operators need no list of the slowest"
    assert "75.00 %" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.usefixtures("narrow")
def test_many_operators_with_long_names_fit_the_width(capsys: Capture, folder: Path) -> None:
    model = network((20, *(8,) * 6, 4))
    for op in model.graph.ops:
        op.results[0].name = "network/stage/" * 8 + op.results[0].name
    luciole.save(model, "deep.circle")
    text = run(capsys, "deep.circle").out
    assert "\nthe 10 that take longest\n" in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("\nfc7 ") >= 1


def test_csv_and_trace(capsys: Capture, folder: Path) -> None:
    found = report(capsys, "model.circle", "--csv", "ops.csv", "--trace", "trace.json")
    with Path("ops.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["fc1", "act1", "fc2"]
    assert [float(row["median_us"]) for row in rows] == [
        operator["median_us"] for operator in found["operators"]
    ]
    events = json.loads(Path("trace.json").read_text())["traceEvents"]
    assert {"import", "load", "compile", "first run", "fc1", "act1"} <= {e["name"] for e in events}
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    first, second, third = [e for e in events if e["cat"] != "start" and e["cat"] != "run"][:3]
    assert first["ts"] + first["dur"] == pytest.approx(second["ts"])
    assert second["ts"] + second["dur"] == pytest.approx(third["ts"])


def test_operators_may_be_left_alone(capsys: Capture, folder: Path) -> None:
    found = report(capsys, "--graph=model.circle", "--enable_op_profiling=false")
    assert found["operators"] == found["kinds"] == []


def test_a_model_without_work(capsys: Capture, folder: Path) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.outputs = [graph.add_input("x", (2,))]
    luciole.save(model, "nothing.circle")
    assert report(capsys, "nothing.circle")["operators"] == []
    assert run(capsys, "nothing.circle").code == 0


def test_all_inputs_are_fed(capsys: Capture, folder: Path) -> None:
    luciole.save(two_inputs(), "two.circle")
    np.savez("two.npz", left=random(1, 30, 6), right=random(2, 30, 9))
    for argv in ((), ("--data", "two.npz")):
        found = report(capsys, "two.circle", *argv)
        assert [i["shape"] for i in found["inputs"]] == [[1, 6], [1, 9]]


def test_inputs_may_be_numbers_without_axes(capsys: Capture, folder: Path) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.append(Add(graph.add_input("x", ()), graph.add_input("y", ())), "sum")
    graph.outputs = [graph.ops[0].output]
    luciole.save(model, "numbers.circle")
    np.savez("numbers.npz", x=random(1, 5), y=random(2, 5))
    for argv in ((), ("--data", "numbers.npz"), ("--against", "numbers.circle")):
        found = report(capsys, "numbers.circle", *argv)
        assert [i["shape"] for i in found["inputs"]] == [[], []]


def test_help_has_its_own_name(capsys: Capture) -> None:
    outcome = call(capsys, "--help", main=bench.main)
    assert outcome.out.startswith("usage: circle-bench ")


INPUT_SHAPE = "argument --input-shape/--input-layer-shape"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "give one model to measure, as MODEL or as --graph MODEL"),
        (["a.circle", "--graph", "b.circle"], "give one model to measure"),
        (["m.circle", "--num_threads", "0"], "--num-threads is 0, at least 1 is needed"),
        (["m.circle", "--num_runs", "0"], "--num-runs is 0, at least 1 is needed"),
        (["m.circle", "--min_secs", "-1"], "--min-secs is -1.0, at least 0 is needed"),
        (["m.circle", "--max_secs", "nan"], "--max-secs is nan, at least 0 is needed"),
        (["m.circle", "--warmup_runs=-1"], "--warmup-runs is -1, at least 0 is needed"),
        (["m.circle", "--seed=-1"], "--seed is -1, at least 0 is needed"),
        (["m.circle", "--warmup_min_secs=-1"], "--warmup-min-secs is -1.0, at least 0 is"),
        (["m.circle", "--labels", "y"], "--labels goes with --data"),
        (["m.circle", "--ignore-label", "9"], "--ignore-label goes with --data"),
        (
            ["model.circle", "--data", "train.npy", "--ignore-label", "9"],
            "--ignore-label needs --labels",
        ),
        (["m.circle", "--limit", "3"], "--limit goes with --data"),
        (["m.circle", "--allow-outside"], "--allow-outside goes with --data"),
        (["model.circle", "--input_shape", "1,x"], f"{INPUT_SHAPE}: '1,x': a shape is written as"),
        (
            ["model.circle", "--input_shape", "0,20"],
            f"{INPUT_SHAPE}: '0,20': a shape is written as 1,32,32,3",
        ),
        (["model.circle", "--data", "test.npz", "--limit", "0"], "limit is 0, at least 1 record"),
        (["m.circle", "--csv", "x", "--enable-op-profiling", "false"], "--csv holds operators"),
    ],
)
def test_bench_refuses_wrong_usage(
    capsys: Capture, folder: Path, argv: list[str], sentence: str
) -> None:
    assert call(capsys, *argv, main=bench.main).error(2).startswith(sentence)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["m.circle"], "m.circle: No such file or directory"),
        (["model.circle", "--input_shape", "1,20:1,3"], "the model has 1 inputs, given were 2"),
        (["model.circle", "--data", "nowhere.npz"], "nowhere.npz: no such file"),
        (["model.circle", "--against", "larger.circle"], "larger.circle: No such file"),
    ],
)
def test_bench_refuses_what_it_cannot_run(
    capsys: Capture, folder: Path, argv: list[str], sentence: str
) -> None:
    assert run(capsys, *argv).error(1).startswith(sentence)


def test_bench_refuses_a_shape_that_the_model_does_not_take(capsys: Capture, folder: Path) -> None:
    """Also where some of its extents are open: the others are not put right in silence."""
    luciole.save(network(shape=(None, 20)), "open.circle")
    for name in ("model.circle", "open.circle"):
        text = run(capsys, name, "--input_shape", "7,30").error(1)
        assert text.endswith("input [7,30] does not divide into rows of 20")


def test_bench_refuses_unsupported_operators(capsys: Capture, unsupported: Path) -> None:
    assert run(capsys, unsupported).error(3).startswith("cannot run CUSTOM(Mystery) (2x)")
