"""Estimate what operators cost on another device, as a file says: instructions, cycles or
microseconds.

A file has a name, a unit and costs, each of a kind of operator and a width: of exact shapes, or
linear in the elements that the operator reads and gives, and the products that it adds up.
docs/reference/device.schema.json is the schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from luciole.files.json_reading import named_json
from luciole.ir import Graph, Op, Value
from luciole.ir.analysis.figures import macs
from luciole.ir.analysis.weights import weight_constant
from luciole.lquantizer.assignment.layer_format import option_format
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.space import UNCHANGED, Gene, Space

UNITS = ("instructions", "cycles", "microseconds")
ANY = "*"
"""A kind or a width that stands for all others."""
_NAME = re.compile(r"[\w.+-]{1,64}")
_LINEAR = ("call", "input", "output", "mac")

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Cost:
    """The cost of a kind of operator in a width: ``call``, for each element of its first operand
    ``input``, for each of its results ``output``, for each product that it adds up ``mac``.
    """

    call: float = 0.0
    input: float = 0.0
    output: float = 0.0
    mac: float = 0.0

    def of(self, op: Op) -> float:
        """Compute the cost of one operator."""
        read, written = math.prod(_shapes(op)[0]), sum(math.prod(_dims_of(v)) for v in op.results)
        return self.call + self.input * read + self.output * written + self.mac * (macs(op) or 0)


@dataclass(frozen=True)
class Device:
    """A device's name, its unit, linear costs by kind and width, and exact ones by the shapes of
    the operator's first input and weights besides.
    """

    name: str
    unit: str
    linear: Mapping[tuple[str, str], Cost]
    exact: Mapping[tuple[str, str, Dims, Dims], float]

    def cost(self, op: Op, width: str) -> float | None:
        """Return the cost of an operator in a width, None where no entry is for it: the exact one,
        or else by the narrowest entry: kind and width, kind, all.
        """
        exact = self.exact.get((op.kind, width, *_shapes(op)))
        if exact is not None:
            return exact
        keys = ((op.kind, width), (op.kind, ANY), (ANY, width), (ANY, ANY))
        linear = next((self.linear[key] for key in keys if key in self.linear), None)
        return None if linear is None else linear.of(op)

    def total(self, graph: Graph) -> float:
        """Add up the costs of a float network's operators. Raises QuantizeError for one without."""
        return sum(self.needed(op, UNCHANGED) for op in graph.ops)

    def needed(self, op: Op, width: str) -> float:
        """Return the cost of an operator in a width. Raises QuantizeError where there is none."""
        cost = self.cost(op, width)
        if cost is None:
            raise QuantizeError(
                f"device {self.name}: no cost of {op.kind} as {width} ({op.name!r})"
            )
        return cost


def _shapes(op: Op) -> tuple[Dims, Dims]:
    first = next((value for value in op.operands if value is not None), None)
    weights = weight_constant(op)
    shape = () if first is None else _dims_of(first)
    return shape, () if weights is None else weights.dims


def _dims_of(value: Value) -> Dims:
    """Read the extents of a tensor for one record."""
    return tuple(n or 1 for n in value.shape)


@dataclass(frozen=True)
class Devices:
    """Devices whose costs are objectives, and a float network's operators by name."""

    devices: Sequence[Device]
    ops: Mapping[str, Op]

    @classmethod
    def of(cls, devices: Sequence[Device], graph: Graph) -> Devices:
        """Look at a graph's operators. Raises QuantizeError for devices of one name."""
        names = [device.name for device in devices]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise QuantizeError(f"two devices are called {twice!r}")
        return cls(devices, {op.name: op for op in graph.ops})

    def excess(self, layer: str, option: str) -> dict[str, float]:
        """Return, by device, the cost of a layer and all that share its weights under an option,
        beyond the cost as floats.

        Raises QuantizeError for an operator without a cost.
        """
        ops = self._sharing(layer) if self.devices else []
        return {
            device.name: sum(device.needed(op, option) - device.needed(op, UNCHANGED) for op in ops)
            for device in self.devices
        }

    def _sharing(self, layer: str) -> list[Op]:
        """List the layers that have a layer's weights: they are quantized with it."""
        weights = weight_constant(self.ops[layer])
        return [op for op in self.ops.values() if weight_constant(op) is weights]

    def allowed(self, space: Space, say: Callable[[str], None]) -> Space:
        """Leave out the options for which some device has no cost, and report them.

        Raises QuantizeError for a layer that has none left.
        """
        gone: dict[tuple[str, str], list[str]] = {}
        genes = []
        for gene in space.genes:
            lacking = {option: self._lacking(gene, option) for option in gene.options}
            for option, name in lacking.items():
                if name is not None:
                    gone.setdefault((name, self.ops[gene.layers[0]].kind), []).append(option)
            kept = tuple(option for option, name in lacking.items() if name is None)
            if not kept:
                name = next(iter(lacking.values()))
                raise QuantizeError(f"device {name}: no cost of {gene.layers[0]!r} in any option")
            genes.append(replace(gene, options=kept))
        for (name, kind), options in gone.items():
            which = ", ".join(dict.fromkeys(options))
            say(f"device {name} has no cost of {kind} as {which}: left out")
        return Space(tuple(genes))

    def _lacking(self, gene: Gene, option: str) -> str | None:
        """Name a device that has no cost for some layer of a gene."""
        pairs = ((device, layer) for device in self.devices for layer in gene.layers)
        names = (d.name for d, layer in pairs if d.cost(self.ops[layer], option) is None)
        return next(names, None)

    def floats(self, graph: Graph) -> dict[str, float]:
        """Return the cost of the float network, by device."""
        return {device.name: device.total(graph) for device in self.devices}


NOWHERE = Devices((), {})
"""No devices."""


def ready() -> list[str]:
    """Name the devices that come with the package."""
    folder = resources.files("luciole.lquantizer.search") / "devices"
    return sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".json"))


def read_device(source: str) -> Device:
    """Read a device's file, or one that comes with the package by its name.

    Raises QuantizeError in one line for a file that cannot be read, and for one whose content is
    not as the schema has it.
    """
    if source in ready():
        folder = resources.files("luciole.lquantizer.search") / "devices"
        return parse_device((folder / f"{source}.json").read_text("utf-8"), source)
    try:
        text = Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(ready())
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise QuantizeError(f"device {source}: {why}; ready ones are {known}") from None
    return parse_device(text, source)


def parse_device(text: str, path: str) -> Device:
    """Read a device from JSON. Raises QuantizeError, in one line, for what is wrong in it."""
    content = named_json(text, path, QuantizeError)
    if not isinstance(content, dict):
        raise QuantizeError(f"{path}: a device is an object with name, unit and costs")
    _check_keys(content, ("name", "unit", "costs"), ("about",), path)
    name, unit, costs = content["name"], content["unit"], content["costs"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise QuantizeError(f"{path}: name is {name!r}: letters, digits, - . + and _ are possible")
    if unit not in UNITS:
        raise QuantizeError(f"{path}: unit is {unit!r}: {', '.join(UNITS)} are possible")
    if not isinstance(costs, list) or not costs:
        raise QuantizeError(f"{path}: costs are a list of at least one")
    return _device(name, unit, costs, path)


def _device(name: str, unit: str, costs: Sequence[Any], path: str) -> Device:
    linear: dict[tuple[str, str], Cost] = {}
    exact: dict[tuple[str, str, Dims, Dims], float] = {}
    for number, entry in enumerate(costs):
        where = f"{path}: costs[{number}]"
        kind, width = _named(entry, where)
        if "cost" in entry:
            _check_keys(entry, ("kind", "width", "input", "cost"), ("weights",), where)
            shapes = _dims(entry, "input", where), _dims(entry, "weights", where)
            exact[kind, width, *shapes] = _number(entry, "cost", where)
            continue
        _check_keys(entry, ("kind", "width"), _LINEAR, where)
        if (kind, width) in linear:
            raise QuantizeError(f"{where}: {kind} as {width} is there twice")
        linear[kind, width] = Cost(*(_number(entry, key, where) for key in _LINEAR))
    return Device(name, unit, linear, exact)


def _named(entry: Any, where: str) -> tuple[str, str]:
    if not isinstance(entry, dict):
        raise QuantizeError(f"{where}: an object with kind and width is needed")
    for key in ("kind", "width"):
        if not isinstance(entry.get(key), str):
            raise QuantizeError(f"{where}: {key} is {entry.get(key)!r}: a text is needed")
    width = entry["width"]
    try:
        return entry["kind"], width if width == ANY else str(option_format(width))
    except QuantizeError as error:
        raise QuantizeError(f"{where}: {error}") from None


def _check_keys(
    content: Mapping[str, Any], needed: Iterable[str], possible: Iterable[str], where: str
) -> None:
    needed, possible = list(needed), list(possible)
    missing = [key for key in needed if key not in content]
    if missing:
        raise QuantizeError(f"{where}: {missing[0]} is missing")
    unknown = [key for key in content if key not in (*needed, *possible)]
    if unknown:
        known = ", ".join((*needed, *possible))
        raise QuantizeError(f"{where}: {unknown[0]!r} is not known: {known} are possible")


def _number(entry: Mapping[str, Any], key: str, where: str) -> float:
    number = entry.get(key, 0)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise QuantizeError(f"{where}: {key} is {number!r}: a number is needed")
    if not math.isfinite(number) or number < 0:
        raise QuantizeError(f"{where}: {key} is {number}: 0 or more is needed")
    return float(number)


def _dims(entry: Mapping[str, Any], key: str, where: str) -> Dims:
    extents = entry.get(key, [])
    whole = isinstance(extents, list) and all(
        isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in extents
    )
    if not whole:
        raise QuantizeError(f"{where}: {key} is {extents!r}: a list of extents is needed")
    return tuple(extents)
