"""Ranges of tensors in a file: the same network again, edited ones, merged ones, and refusals."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, Model, TensorType
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Rsqrt
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.slice import Slice
from luciole.ir.quantization import Affine
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.calibration.saved import Ranges, merged
from luciole.lquantizer.calibration.seen import seen
from tests.lquantizer.networks import Builder, images
from tests.lquantizer.range_support import normal, watched
from tests.networks import random

NEAREST: dict[str, Any] = {"scheme": "int8", "rounding": "nearest", "proof": False}


@pytest.fixture(scope="module")
def model() -> Model:
    return images()


@pytest.fixture(scope="module")
def records() -> Array:
    return random(5, 24, 8, 8, 3)


@pytest.fixture(scope="module")
def found(model: Model, records: Array) -> Ranges:
    ranges = luciole.quantize(model, records, **NEAREST).ranges
    assert ranges is not None
    return ranges


def affine_of(model: Model, name: str) -> Affine:
    (value,) = (
        v for v in model.graph.values if v.name.startswith(name) and v.dtype == TensorType.INT8
    )
    return Affine.of(value, name)


def test_saved_ranges_give_the_same_file_without_data(
    model: Model, records: Array, found: Ranges, tmp_path: Path
) -> None:
    path = tmp_path / "ranges.json"
    found.save(path)
    again = luciole.quantize(model, ranges_from=path, **NEAREST)
    first = luciole.quantize(model, records, **NEAREST)
    assert to_bytes(again.model) == to_bytes(first.model)
    assert again.ranges == found
    with_data = luciole.quantize(model, records, scheme="int8", ranges_from=[found], proof=False)
    assert with_data.ranges is not None
    assert with_data.ranges.tensors == found.tensors


def test_a_file_says_what_was_found(found: Ranges, records: Array) -> None:
    entry = found.to_json()["tensors"]["x"]
    assert (entry["found"]["least"], entry["found"]["most"]) == (records.min(), records.max())
    assert entry["found"]["percentiles"]["50"] == pytest.approx(np.median(records), abs=0.01)
    assert entry["found"]["highest_low"] == pytest.approx(records.min((1, 2, 3)).max())
    assert (found.records, found.rule) == (24, "mse")
    assert {(e.front, e.back) for e in found.rescaled} == {("t10", "t13")}


def test_an_edited_range_is_used(model: Model, found: Ranges) -> None:
    content = found.to_json()
    content["tensors"]["x"] |= {"low": -12.7, "high": 12.8}
    result = luciole.quantize(model, ranges_from=content, **NEAREST)
    affine = affine_of(result.model, "x/integers")
    assert affine.scale[0] == pytest.approx(0.1)
    assert affine.zero_point[0] == -1


def test_tensors_without_a_range_are_calibrated(model: Model, records: Array) -> None:
    content = {"tensors": {"x": {"low": -12.7, "high": 12.8}}}
    result = luciole.quantize(model, records, ranges_from=content, ranges="min_max", **NEAREST)
    assert result.ranges is not None
    assert result.ranges.tensors["x"].high == 12.8
    assert result.ranges.tensors["t5"].found is not None
    with pytest.raises(QuantizeError, match=r"no range is given for 't5'.* give them, or data"):
        luciole.quantize(model, ranges_from=content, **NEAREST)


def test_merged_ranges_hold_all_that_was_found_unless_edited() -> None:
    def entry(low: float, high: float, *, edited: bool) -> dict[str, Any]:
        told = dict.fromkeys(("least", "most", "highest_low", "lowest_high"), 0.0)
        return {
            "low": low - edited,
            "high": high,
            "found": {"low": low, "high": high, "percentiles": {}, **told},
        }

    first = {
        "a": entry(-1, 2, edited=False),
        "b": entry(-1, 2, edited=True),
        "c": {"low": 0, "high": 1},
    }
    second = {
        "a": entry(-3, 1, edited=False),
        "b": entry(-8, 9, edited=False),
        "d": {"low": 0, "high": 5},
    }
    both = merged([Ranges.parse({"tensors": t, "records": 3}) for t in (first, second)])
    limits = {name: (one.low, one.high) for name, one in both.tensors.items()}
    assert limits == {"a": (-3, 2), "b": (-2, 2), "c": (0, 1), "d": (0, 5)}
    assert both.records == 6
    again = merged([both, Ranges.parse({"tensors": {"c": {"low": -4, "high": 4}}})])
    assert (again.tensors["c"].low, again.tensors["c"].high) == (-4, 4)


def test_ranges_of_networks_rescaled_otherwise_are_refused() -> None:
    pair = {"front": "a", "back": "b", "scales": [2.0]}
    both = [Ranges.parse({"tensors": {}, "rescaled": r}) for r in ([pair], [])]
    with pytest.raises(QuantizeError, match="rescaled otherwise"):
        merged(both)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({}, 'an object with an object "tensors" is needed'),
        ({"tensors": {}, "scheme": 1}, "scheme is not understood"),
        ({"tensors": {"x": {"low": float("nan"), "high": 1}}}, "'x': low is nan, a finite number"),
        ({"tensors": {"x": {"low": 0, "high": 1e39}}}, "'x': high is 1e\\+39, a finite number"),
        ({"tensors": {"x": {"low": 0, "high": True}}}, "high is True"),
        ({"tensors": {"x": {"low": 2, "high": 1}}}, "'x': low 2 is above high 1"),
        ({"tensors": {"x": {"low": 2}}}, "high is None"),
        ({"tensors": {"x": 5}}, 'an object with "low" and "high"'),
        ({"tensors": {"x": {"low": 0, "high": 1, "hgih": 2}}}, "hgih is not understood"),
        ({"tensors": {"x": {"low": 0, "high": 1, "found": {}}}}, "found is not what"),
        ({"tensors": {}, "rescaled": {}}, "a list is needed"),
        ({"tensors": {}, "rescaled": [{"front": "a"}]}, "front, back and scales"),
        ({"tensors": {}, "rescaled": [{"front": "a", "back": "b", "scales": [0]}]}, "above 0"),
        (
            {"tensors": {}, "rescaled": [{"front": "a", "back": "b", "scales": [1]}]},
            "no such layers",
        ),
        ({"tensors": {}, "records": "3"}, "records is a whole number"),
        ({"tensors": {"t55": {"low": 0, "high": 1}}}, "no tensor 't55' .*did you mean 't5'"),
        ({"tensors": {"c2": {"low": 0, "high": 1}}}, "no tensor 'c2' between operators"),
    ],
)
def test_what_a_file_cannot_say_is_refused(model: Model, content: Any, sentence: str) -> None:
    with pytest.raises(QuantizeError, match=sentence):
        luciole.quantize(model, ranges_from=content, **NEAREST)


def test_what_does_not_go_with_ranges_is_refused(model: Model, tmp_path: Path) -> None:
    for choices, sentence in (
        ({"scheme": "dynamic", "ranges_from": {"tensors": {}}}, "does not go with the scheme"),
        (
            {"scheme": "int8", "rescale": "peaks", "ranges_from": {"tensors": {}}},
            "rescale does not",
        ),
        ({"scheme": "int8", "ranges_from": {"tensors": {}}}, "learns from data"),
        ({"ranges_from": tmp_path / "none.json", **NEAREST}, "No such file"),
        ({"ranges_from": [], **NEAREST}, "names no ranges"),
    ):
        with pytest.raises(QuantizeError, match=sentence):
            luciole.quantize(model, **choices)
    broken = tmp_path / "broken.json"
    broken.write_text('{"tensors": {')
    with pytest.raises(QuantizeError, match="not JSON"):
        luciole.quantize(model, ranges_from=broken, **NEAREST)


def test_many_records_take_as_much_memory_as_few() -> None:
    """Extremes are kept of 8,192 records at the most, spread over all, and exact over all."""
    extremes = np.random.default_rng(1).normal(size=(50_000, 2)).astype(np.float32)
    some = watched(*np.array_split(extremes, 77))
    assert some.records == 50_000
    assert len(some.lows) == len(some.highs) == -(-50_000 // some.apart) <= 8192
    np.testing.assert_array_equal(some.lows, extremes.min(1)[:: some.apart])
    assert (some.low, some.high) == (extremes.min(), extremes.max())


def test_tensors_of_one_element_and_of_none_are_watched() -> None:
    """A scalar that is an input, and slices without elements."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x, scalar = graph.add_input("x", (1, 3)), graph.add_input("s", ())
    begin, size = (
        graph.add_constant(n, np.array(a, np.int32)) for n, a in (("b", [0, 3]), ("n", [1, 0]))
    )
    none = graph.append(Slice(x, begin, size), "none").output
    y = graph.append(Mul(x, scalar), "y").output
    graph.outputs = [y, none]
    data = {"x": random(1, 4, 3), "s": random(2, 4)}
    found = seen(model, [x, scalar, none, y], data, 1)
    assert (found[scalar].low, found[scalar].high) == (data["s"].min(), data["s"].max())
    assert (found[none].low, found[none].high) == (0, 0)
    assert found[y].high == (data["x"] * data["s"][:, None]).max()


def test_calibration_takes_no_more_memory_for_more_records(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luciole.lquantizer.calibration.seen._KEPT", 64)
    values = [op.results[0] for op in model.graph.ops]

    def peak(count: int) -> int:
        data = {"x": np.broadcast_to(normal(3, 1, 8, 8, 3), (count, 8, 8, 3))}
        tracemalloc.start()
        seen(model, values, data, 8)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(512)  # fills the interpreter's lists of free tuples, which count as memory
    assert peak(512) < 1.05 * peak(64)


def test_the_range_of_least_divergence_is_found() -> None:
    """Far-off elements are cut; what fills a range evenly is left whole."""
    from luciole.lquantizer.calibration.ranges import rule_of

    rule = rule_of("entropy")
    outliers = np.concatenate([normal(5, 1, 200_000), np.array([[-60, 60]], np.float32)], 1)
    low, high = rule(watched(outliers), TensorType.INT8)
    assert -30 < low < -3
    assert 3 < high < 30
    even = np.random.default_rng(2).uniform(-2, 3, (4, 50_000)).astype(np.float32)
    np.testing.assert_allclose(rule(watched(even), TensorType.INT8), (-2, 3), rtol=0.05)
    assert rule(watched(outliers), TensorType.INT16) == (-60, 60)
    rectified = np.maximum(normal(6, 4, 50_000), 0)
    assert rule(watched(rectified), TensorType.INT8)[0] == 0


def test_ranges_by_a_command(
    tmp_path: Path, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    from luciole.tools.quantize import main

    given, data = tmp_path / "m.tflite", tmp_path / "d.npy"
    luciole.save(model, given)
    np.save(data, random(5, 8, 8, 8, 3))
    how = [str(given), "--scheme", "int8", "--rounding", "nearest"]
    ranges, first, again = (tmp_path / n for n in ("r.json", "a.tflite", "b.tflite"))
    assert main([*how, "-o", str(first), "--data", str(data), "--save_ranges", str(ranges)]) == 0
    assert main([*how, "-o", str(again), "--ranges_from", str(ranges)]) == 0
    assert first.read_bytes() == again.read_bytes()
    content = json.loads(ranges.read_text())
    content["tensors"]["t5"]["low"] = 99
    ranges.write_text(json.dumps(content))
    new = tmp_path / "c.tflite"
    wanted = tmp_path / "new.json"
    words = [*how, "-o", str(new), "--ranges_from", str(ranges), "--save_ranges", str(wanted)]
    assert main(words) == 1
    assert "tensor 't5': low 99 is above high" in capsys.readouterr().err
    assert not new.exists()
    assert not wanted.exists()


def test_what_integers_would_ruin_stays_float_without_data(tmp_path: Path) -> None:
    """A layer normalization's RSQRT is found by what data show: saved ranges remember it."""
    model, data = normalization(), random(7, 40, 16)
    data *= np.geomspace(0.01, 10, len(data), dtype=np.float32)[:, None]
    first = luciole.quantize(model, data, **NEAREST)
    assert first.ranges is not None
    assert first.ranges.floats
    first.ranges.save(tmp_path / "ranges.json")
    again = luciole.quantize(model, ranges_from=tmp_path / "ranges.json", **NEAREST)
    assert to_bytes(again.model) == to_bytes(first.model)
    assert again.report.floats == first.report.floats


def normalization() -> Model:
    """A dense layer, and what it gives over its root mean square."""
    b = Builder()
    x = b.graph.add_input("x", (1, 16))
    y = b.add(FullyConnected(x, b.weights(16, 16)))
    axes = b.constant(np.array([1], np.int32))
    mean = b.add(Mean(b.add(Mul(y, y)), axes, keep_dims=True))
    inverse = b.add(Rsqrt(b.add(Add(mean, b.constant(np.array([1e-6], np.float32))))))
    b.graph.outputs = [b.add(FullyConnected(b.add(Mul(y, inverse)), b.weights(4, 16)))]
    return b.model


def test_names_of_floats_are_checked(found: Ranges) -> None:
    with pytest.raises(QuantizeError, match="floats is 3, a list of names is needed"):
        Ranges.parse({**found.to_json(), "floats": 3})
