"""The accuracy benchmark's arguments, tables and baseline; nothing is trained."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import accuracy, accuracy_networks, minifloats, pareto, uniform
from benchmarks.accuracy_keras import Records
from benchmarks.accuracy_subjects import Subject
from benchmarks.accuracy_table import Row, Width, markdown, plot, tables
from benchmarks.affine import min_max, nearest_levels, quantize_affine
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import LucioleError
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer import Choice, Config
from luciole.lquantizer.calibration.rows import weight_rows
from tests.networks import network, random


def test_widths_and_networks_from_the_command_line() -> None:
    arguments = accuracy.parser().parse_args(["--mnist", "m.npz", "--widths", "2,w1a8"])
    assert accuracy.networks(arguments) == ["mnist97", "mnist98"]
    found = accuracy.widths(arguments, "mnist97")
    assert found == [Width(2, 2), Width(1, 8)]
    assert [str(w) for w in found] == ["K=2", "w1a8"]


def test_formats_of_minifloats_are_read() -> None:
    options = minifloats.options_of("3,4sl")
    assert (str(options.numbers), options.scaled, options.layers_only) == ("<3,4>", True, True)
    with pytest.raises(LucioleError, match="no format"):
        minifloats.options_of("3.4")


def test_a_table_of_uniform_files_has_means_of_draws() -> None:
    rows = [
        uniform.Row("net", "luciole", "int8", draw, 1234, 1000, top1, top1 - 75, 96, 1, us, us)
        for draw, top1, us in ((0, 74.0, 30.0), (1, 75.0, None))
    ]
    head, line = uniform.table(rows)
    assert dict(zip(head, line, strict=True)) == {
        "made by": "luciole",
        "scheme": "int8",
        "draws": "2",
        "bytes": "1,234",
        "weights": "1,000",
        "top-1": "74.50",
        "delta": "-0.50",
        "agree": "96.00",
        "s": "1.0",
        "luciole, us": "30",
        "LiteRT, us": "30",
    }


def test_files_that_nothing_beats_in_bytes_and_answers_have_a_star() -> None:
    sizes = {"small": (10, 60.0), "same": (10, 60.0), "worse": (20, 60.0), "large": (30, 70.0)}
    rows = [
        uniform.Row("net", "luciole", name, 0, size, 8, top1, 0.0, 90.0, 1.0)
        for name, (size, top1) in sizes.items()
    ]
    assert [row.name for row in pareto.best(rows)] == ["small", "same", "large"]
    _, *lines = pareto.table(rows)
    assert [(line[0], line[2], line[3]) for line in lines] == [
        ("*", "small", "10"),
        ("*", "same", "10"),
        ("", "worse", "20"),
        ("*", "large", "30"),
    ]


def test_a_subject_is_judged_by_its_own_answers() -> None:
    """A file of the float network answers as that does; 6 of 8 labels are what it answers."""
    model, test = network(), random(3, 8, 20)
    subject = uniform.Subject("mnist", model, test, test, np.zeros(8))
    labels = subject.answers(model)
    labels[:2] = (labels[:2] + 1) % 10
    judge = uniform.Judge.of(uniform.Subject("mnist", model, test, test, labels), rounds=0)
    way = uniform.Way("float32", "", lambda model, _: to_bytes(model))
    row = judge.row(way, 0, test)
    assert (row.agree, row.top1, row.delta) == (100.0, 75.0, 0.0)
    assert (row.bytes, row.luciole_us) == (len(to_bytes(model)), None)


def test_uniform_refuses_what_is_no_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["uniform", "--draws", "0,one"])
    with pytest.raises(LucioleError, match="draws is '0,one': write numbers, as 0,1,2"):
        uniform.main()


def test_widths_as_recipes() -> None:
    model = network()
    texts = ["w1a8", "w2", "3+dense"]
    configs = [Config.parse(Width.parse(t).config(model), Choice()) for t in texts]
    assert [str(Width.parse(t)) for t in texts] == ["w1a8", "w2", "K=3+dense"]
    assert [r.choose("fc1") for r in configs] == [
        Choice(input_bits=8, weight_bits=1),
        Choice(weight_bits=2, weights_only=True),
        Choice(input_bits=3, weight_bits=3),
    ]
    assert [r.names("fc1") for r in configs] == [False, False, True]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "give the networks' data"),
        (["--mnist", "m.npz", "--only", "cifar"], "give the networks' data"),
        (["--mnist", "m.npz", "--only", "mnist"], "'mnist' is no network"),
        (["--mnist", "m.npz", "--methods", "magic"], "'magic' is no method: there is published"),
        (["--mnist", "m.npz", "--widths", "a2w4"], "'a2w4' is no width: write 3, or w2a4"),
    ],
)
def test_check_refuses_what_cannot_be_measured(argv: list[str], message: str) -> None:
    with pytest.raises(LucioleError, match=message):
        accuracy.check(accuracy.parser().parse_args(argv))


def test_check_refuses_a_plot_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    arguments = accuracy.parser().parse_args(["--mnist", "m.npz", "--plot", "p.png"])
    with pytest.raises(LucioleError, match="--plot needs matplotlib: pip install matplotlib"):
        accuracy.check(arguments)


ROWS = [
    Row("net", "top-1 in %", "float", None, 0, 98.0, 2_000_000, 0.0),
    Row("net", "top-1 in %", "fit", "K=1", 0, 95.0, 80_000, 1.0),
    Row("net", "top-1 in %", "fit", "K=1", 1, 96.0, 80_000, 2.0),
    Row("net", "top-1 in %", "affine", "K=2", 0, 90.0, 150_000, 0.5),
]


def test_tables_show_means_and_spread() -> None:
    (title, shares), (_, seconds), (_, sizes) = tables(ROWS, "net")
    assert title.startswith("net (float 98.00 %, 2.00 MB): top-1")
    assert shares == [
        ["method", "K=1", "K=2"],
        ["fit", "95.50 +- 0.71", "-"],
        ["affine", "-", "90.00"],
    ]
    assert (seconds[1][1], sizes[1][1]) == ("1.5", "80.0 KB")
    assert markdown(shares).splitlines() == [
        "| method | K=1           | K=2   |",
        "|--------|---------------|-------|",
        "| fit    | 95.50 +- 0.71 | -     |",
        "| affine | -             | 90.00 |",
    ]


def test_a_plot_is_a_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot(ROWS, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"


def test_rows_of_a_small_network() -> None:
    model, images = network(), random(50, 60, 20)
    labels = Interpreter(model).run(images)["fc2"].argmax(1)
    subject = Subject("small", model, images, images, labels)
    argv = ["--widths", "w3a8", "--seeds", "1", "--calibration", "40"]
    rows = list(accuracy.measured(subject, accuracy.parser().parse_args(argv)))
    assert [row.method for row in rows] == ["float", *accuracy.METHODS]
    assert rows[0].score == 100
    assert all(row.score > 50 and row.bytes < rows[0].bytes for row in rows[1:])


def test_affine_inputs_and_biases() -> None:
    model, x = network((20, 4)), random(3, 50, 20)
    quantized, _ = quantize_affine(model, {"x": x[:40]}, Config(Choice(2, 4)), correct=True)
    fc, layer = model.graph.ops[0], quantized.graph.ops[-1]
    assert isinstance(fc, FullyConnected)
    scale, zero = min_max(float(x[:40].min()), float(x[:40].max()), 2)
    codes = np.clip(np.floor(np.abs(x / scale) + 0.5) * np.sign(x) + zero, 0, 3)
    weights = nearest_levels(weight_rows(fc), 4)
    products = ((codes - zero) * scale) @ weights.T
    float_outputs = Interpreter(model).run(x[:40])["fc1"]
    wanted = products + float_outputs.mean(0) - products[:40].mean(0)
    found = Interpreter(from_bytes(to_bytes(quantized))).run(x)[layer.output.name]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_networks_are_chosen_by_parts_of_their_names() -> None:
    found = accuracy_networks.chosen("lstm,resnet8")
    wanted = [case for case in accuracy_networks.CASES if case.network in ("lstm", "resnet8")]
    assert found == wanted
    assert len({case.network for case in found}) == 2 < len(found)
    assert accuracy_networks.chosen(None) == list(accuracy_networks.CASES)
    with pytest.raises(LucioleError, match="'gru' is in no name: there is mbnet_bad"):
        accuracy_networks.chosen("gru")


def test_records_are_drawn_in_order_and_networks_without_labels_judged_by_their_error() -> None:
    x = np.arange(20, dtype=np.float32)
    found = accuracy_networks.drawn(x, 5)
    assert len(found) == 5
    assert (np.diff(found) > 0).all()
    given = random(1, 30, 20)
    model = network((20, 20))
    name = model.graph.inputs[0].name
    (wanted,) = Interpreter(model).run({name: given[:1]}).values()
    records = Records(given, given, given[:1], wanted + 0.5)
    assert accuracy_networks.score(model, records) == pytest.approx(0.5, rel=1e-4)
