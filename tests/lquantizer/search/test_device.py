"""Device files: what they say, what is refused in them, and searches for several devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import luciole
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.search.additive import Sum, Table, thinned
from luciole.lquantizer.search.device import Devices, parse_device, read_device, ready
from luciole.lquantizer.search.evaluate import Alone
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.space import Space
from tests.networks import network, random

X = random(1, 60, 40)
SIZES = (40, 32, 16, 4)
CONTENT: dict[str, Any] = {
    "name": "mcu",
    "unit": "instructions",
    "costs": [
        {"kind": "FULLY_CONNECTED", "width": "*", "call": 100, "input": 1, "output": 10, "mac": 2},
        {"kind": "FULLY_CONNECTED", "width": "levels:w1a2", "mac": 0.5},
        {
            "kind": "FULLY_CONNECTED",
            "width": "levels:w1a2",
            "input": [1, 32],
            "weights": [16, 32],
            "cost": 7,
        },
        {"kind": "*", "width": "float", "output": 3},
    ],
}


def device(**changes: Any) -> str:
    return json.dumps(CONTENT | changes)


def test_the_entry_that_says_most_counts() -> None:
    found = parse_device(device(), "mcu.json")
    first, act, second, *_ = network(SIZES).graph.ops
    assert found.cost(first, "levels:w1a2") == 0.5 * 40 * 32
    assert found.cost(second, "levels:w1a2") == 7  # of exactly these shapes
    assert found.cost(first, "dynamic:int8") == 100 + 40 + 10 * 32 + 2 * 40 * 32
    assert found.cost(act, "float") == 3 * 32
    assert found.cost(act, "int:w8a8") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": "hours"}, "unit is 'hours': instructions, cycles, microseconds"),
        ({"name": "a b"}, "name is 'a b'"),
        ({"costs": []}, "at least one"),
        ({"colour": 1}, "'colour' is not known"),
        ({"costs": [3]}, r"costs\[0\]: an object"),
        ({"costs": [{"kind": "ADD"}]}, r"costs\[0\]: width is None"),
        ({"costs": [{"kind": "ADD", "width": "int:w8a8", "mac": -1}]}, r"mac is -1"),
        ({"costs": [{"kind": "ADD", "width": "int:w8a8", "mac": "1"}]}, r"mac is '1': a number"),
        ({"costs": [{"kind": "ADD", "width": "int:w8a8", "macs": 1}]}, r"'macs' is not known"),
        ({"costs": [{"kind": "ADD", "width": "float", "cost": 1}]}, r"input is missing"),
        ({"costs": [{"kind": "A", "width": "*", "cost": 1, "input": [0]}]}, r"input is \[0\]"),
        ({"costs": [{"kind": "A", "width": "*"}] * 2}, r"costs\[1\]: A as \* is there twice"),
        (
            {"costs": [{"kind": "A", "width": "x"}]},
            r"costs\[0\]: option 'x': .* no format of a layer",
        ),
        (
            {"costs": [{"kind": "A", "width": "w4a8"}]},
            r"costs\[0\]: option 'w4a8' has two readings",
        ),
    ],
)
def test_a_file_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(QuantizeError, match=message) as caught:
        parse_device(device(**changes), "mcu.json")
    assert str(caught.value).startswith("mcu.json: ")
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QuantizeError, match="ready ones are cortex-m0plus, cortex-m4"):
        read_device(str(tmp_path / "none.json"))
    for text in ("{", "[" * 5000, '{"name": NaN'):
        with pytest.raises(QuantizeError, match="not JSON"):
            parse_device(text, "mcu.json")
    with pytest.raises(QuantizeError, match="costs is missing"):
        parse_device('{"name": "a", "unit": "cycles"}', "mcu.json")


def test_options_without_a_cost_are_left_out() -> None:
    costs = [{"kind": "*", "width": name, "mac": 1} for name in ("float", "levels:w1a2")]
    graph, lines = network(SIZES).graph, list[str]()
    devices = Devices.of([parse_device(device(costs=costs), "")], graph)
    space = devices.allowed(
        Space.of(graph, ("levels:w1a2", "levels:w2a4", "dynamic:int8", "float")), lines.append
    )
    assert set(space.choices) == {("levels:w1a2", "float")}
    assert lines == [
        "device mcu has no cost of FULLY_CONNECTED as levels:w2a4, dynamic:int8: left out"
    ]
    with pytest.raises(QuantizeError, match="no cost of 'fc1' in any option"):
        devices.allowed(Space.of(graph, ("levels:w2a4", "dynamic:int8")), lines.append)


def test_layers_that_share_their_weights_cost_as_often_as_they_run() -> None:
    model = network((8, 8, 8))
    first, _, second = model.graph.ops
    second.set_operand(1, first.operands[1])
    costs = [
        {"kind": "*", "width": name, "mac": mac} for name, mac in (("float", 5), ("int:w8a8", 2))
    ]
    devices = Devices.of([parse_device(device(costs=costs), "")], model.graph)
    assert devices.excess("fc1", "int:w8a8") == {"mcu": 2 * (2 - 5) * 8 * 8}


def test_a_long_front_is_thinned_by_what_whole_networks_cost_on_a_device() -> None:
    graph, goal = network(SIZES).graph, ("accuracy", "size", "latency:mcu")
    costs = [
        {"kind": "*", "width": name, "mac": mac}
        for name, mac in (("float", 9.0), ("levels:w1a2", 4.0), ("levels:w2a4", 5.0))
    ]
    devices = Devices.of([parse_device(device(costs=costs), "")], graph)
    space = Space.of(graph, ("levels:w1a2", "levels:w2a4", "float"))
    figures = {"levels:w1a2": (-900, 0.2), "levels:w2a4": (-600, 0.1), "float": (0, 0.0)}
    alone = [
        Alone(gene.layers[0], option, size * (k + 1), loss / (k + 1), 0.0, costs=excess)
        for k, gene in enumerate(space.genes)
        for option, (size, loss) in figures.items()
        if (excess := devices.excess(gene.layers[0], option))
    ]
    front = Table.of(space, alone).front(goal)
    whole = Sum((), 0.0, 20_000, 0.0, devices.floats(graph))
    kept = thinned(front, goal, 6, whole)
    assert len(front) > len(kept) == 6
    for ends in (min, max):  # of size, loss and cost on the device
        for figure in (lambda one: one.bytes, lambda one: one.loss, lambda one: one.costs["mcu"]):
            assert ends(map(figure, front)) in set(map(figure, kept))


def test_ready_files_are_as_the_schema_has_it() -> None:
    import jsonschema

    root = Path(__file__).parents[3]
    schema = json.loads((root / "docs" / "reference" / "device.schema.json").read_text())
    jsonschema.validate(CONTENT, schema)
    assert ready() == ["cortex-m0plus", "cortex-m4"]
    for name in ready():
        found = read_device(name)
        assert (found.name, found.unit) == (name, "instructions")
        path = root / "luciole" / "lquantizer" / "search" / "devices" / f"{name}.json"
        content = json.loads(path.read_text())
        jsonschema.validate(content, schema)
        assert "benchmarks.devices" in content["about"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(CONTENT | {"unit": "hours"}, schema)


def test_two_devices_are_two_objectives(tmp_path: Path) -> None:
    paths = []
    for name, mac in (("one", 1.0), ("two", 3.0)):
        costs = [
            {"kind": "FULLY_CONNECTED", "width": "levels:w1a2", "mac": 0.1},
            {"kind": "FULLY_CONNECTED", "width": "levels:w2a4", "mac": 0.8 / mac},
            {"kind": "*", "width": "float", "mac": mac, "output": 1},
        ]
        paths.append(str(tmp_path / f"{name}.json"))
        Path(paths[-1]).write_text(device(name=name, costs=costs))
    options = SearchOptions(
        objectives=("accuracy", "latency:one", "latency:two"),
        evaluations=6,
        options=("levels:w1a2", "levels:w2a4", "dynamic:int8", "float"),
        files=3,
        few=20,
        devices=tuple(paths),
    )
    folder, lines = tmp_path / "front", list[str]()
    found = luciole.search(network((40, 16, 4)), X, folder, options, say=lines.append)
    macs = dict(zip(("fc1", "fc2"), (40 * 16, 16 * 4), strict=True))
    elements = 16  # what TANH gives; layers as floats add their outputs
    outputs = dict(zip(macs, (16, 4), strict=True))
    for file in found.front:
        for name, mac in (("one", 1.0), ("two", 3.0)):
            each = {"levels:w1a2": (0.1, 0), "levels:w2a4": (0.8 / mac, 0), "float": (mac, 1)}
            wanted = elements + sum(
                each[option][0] * macs[layer] + each[option][1] * outputs[layer]
                for layer, option in file.options.items()
            )
            assert file.found.costs[name] == pytest.approx(wanted)
    assert any("dynamic:int8: left out" in line for line in lines)
    assert found.rows()[0][-3:] == ["one", "two", "options"]
    assert found.to_json()["front"][0]["costs"].keys() == {"one", "two"}
    with pytest.raises(QuantizeError, match="objective 'latency:three'"):
        SearchOptions(objectives=("accuracy", "latency:three"), devices=tuple(paths))
    twice = SearchOptions(devices=(paths[0], paths[0]))
    with pytest.raises(QuantizeError, match="two devices are called 'one'"):
        luciole.search(network((40, 16, 4)), X, tmp_path / "twice", twice)
