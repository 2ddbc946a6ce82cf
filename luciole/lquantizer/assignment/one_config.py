"""Configurations of Samsung ONE's circle-quantizer: which element type and granularity each
operator has.

``{"default_quantization_dtype": "uint8", "default_granularity": "channel", "layers": [{"name" or
"names": ..., "dtype": ..., "granularity": ..., "alternate": {key: [names, ...]}}]}``; operators are
named by their results. Each ``alternate`` is another whole set of names for a layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

from luciole.ir import Graph, Op, TensorType
from luciole.ir.text.common import one_line
from luciole.lquantizer.assignment.layer_format import Integers
from luciole.lquantizer.errors import OptionsError, QuantizeError
from luciole.lquantizer.reading import refuse_others, text_in

TYPES = {"uint8": TensorType.UINT8, "int16": TensorType.INT16}
GRANULARITIES = ("channel", "layer")
_WHOLE = {"default_quantization_dtype", "default_granularity", "layers", "model_path"}
_LAYER = {"name", "names", "dtype", "granularity", "alternate"}


@dataclass(frozen=True)
class Kind:
    """The element type of an operator's result and weights, and whether these have a scale for each
    channel.
    """

    dtype: TensorType
    by_channel: bool

    @classmethod
    def of(cls, dtype: str, granularity: str, where: str) -> Kind:
        """Read both. Raises QuantizeError for what ONE does not have, in the name of ``where``."""
        if dtype not in TYPES:
            raise QuantizeError(f"{where}: dtype is {dtype!r}: {' and '.join(TYPES)} are possible")
        if granularity not in GRANULARITIES:
            names = " and ".join(GRANULARITIES)
            raise QuantizeError(f"{where}: granularity is {granularity!r}: {names} are possible")
        if granularity == "layer" and dtype != "uint8":
            raise QuantizeError(f"{where}: granularity layer is for uint8 only, dtype is {dtype}")
        return cls(TYPES[dtype], granularity == "channel")


@dataclass(frozen=True)
class OneLayers:
    """The kind of every operator: the default, and exceptions by the names of results."""

    default: Kind
    rules: tuple[tuple[tuple[tuple[str, ...], ...], Kind], ...] = ()
    """Sets of names, the first or exactly one of its alternates, and their kinds."""

    @classmethod
    def parse(cls, content: Any, dtype: str | None, granularity: str | None) -> OneLayers:
        """Read a configuration; ``dtype`` and ``granularity`` are its defaults unless it names
        others.

        Raises QuantizeError that says what was not understood.
        """
        if not isinstance(content, Mapping):
            raise QuantizeError("config: an object is needed")
        refuse_others("config", content, _WHOLE, "ONE has")
        layers = content.get("layers", [])
        if not isinstance(layers, list):
            raise QuantizeError(f"config: layers is {layers!r}, a list is needed")
        dtype = text_in("config", content, "default_quantization_dtype", dtype or "uint8")
        usual = "channel" if dtype == "int16" else "layer"
        granularity = text_in("config", content, "default_granularity", granularity or usual)
        return cls(Kind.of(dtype, granularity, "config"), tuple(_rule(e) for e in layers))

    def kinds(self, graph: Graph) -> dict[Op, Kind]:
        """Return the kind of every operator. Raises QuantizeError for a name that no operator's
        result has, and unless exactly one of a layer's sets of names is there.
        """
        by_name = {value.name: op for op in graph.ops for value in op.results}
        kinds = dict.fromkeys(graph.ops, self.default)
        for sets, kind in self.rules:
            for name in _present_names(sets, by_name):
                kinds[by_name[name]] = kind
        return kinds


def _present_names(sets: tuple[tuple[str, ...], ...], known: Mapping[str, Op]) -> tuple[str, ...]:
    """Find the set of names that the graph has."""
    whole = [names for names in sets if all(name in known for name in names)]
    if len(whole) == 1:
        return whole[0]
    if whole:
        raise QuantizeError(f"config: the network has both {whole[0]} and its alternate {whole[1]}")
    missing = next(name for name in sets[0] if name not in known)
    near = get_close_matches(missing, list(known), 1)
    hint = f", did you mean {one_line(near[0])!r}?" if near else ""
    raise QuantizeError(f"config: no operator's result is called {one_line(missing)!r}{hint}")


def _rule(entry: Any) -> tuple[tuple[tuple[str, ...], ...], Kind]:
    if not isinstance(entry, Mapping):
        raise QuantizeError(f"config: a layer is an object, found {entry!r}")
    refuse_others("config", entry, _LAYER, "ONE has")
    if len({"name", "names"} & entry.keys()) != 1:
        raise QuantizeError("config: a layer needs one of name and names")
    names = _names(entry["names"] if "names" in entry else [entry["name"]])
    alternates = entry.get("alternate", {})
    if not isinstance(alternates, Mapping):
        raise QuantizeError(f"config: alternate is {alternates!r}, an object is needed")
    others = [_names(one) for one in alternates.values()]
    dtype = text_in("config", entry, "dtype")
    usual = "channel" if dtype == "int16" else "layer"
    kind = Kind.of(
        dtype, text_in("config", entry, "granularity", usual), f"config: layer {names[0]!r}"
    )
    return (names, *others), kind


def _names(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise QuantizeError(f"config: names are {names!r}, a list of texts is needed")
    return tuple(names)


RANGES = "record_percentile:99"
"""The 1st and 99th percentile."""
ROUND, RECORD, MAKE = STEPS = ("weights", "ranges", "integers")
"""The steps of ONE's quantizer."""
ALONE = {"weights": TensorType.INT8, "weights_int16": TensorType.INT16}
"""Schemes that round weights and leave all else float."""
_WORDS = {
    str(Integers(8, 8, unsigned=True)): "uint8",
    str(Integers(16, 16)): "int16",
    str(Integers(8, None)): "weights",
    str(Integers(16, None)): "weights_int16",
}
"""ONE's names of formats."""


@dataclass(frozen=True)
class OneOptions:
    """What ONE's numbers are to be of: a ``scheme`` (uint8, int16; weights and weights_int16 leave
    tensors between operators float), its ``granularity`` (channel, or layer, for uint8 only), and
    the ``layers`` that differ from it. Inputs and outputs of the file are of the scheme's type
    unless ``input_type`` or ``output_type`` say otherwise (uint8, int16, float32). ``ranges``
    says which percentile of the records' extremes tensors reach. A ``step`` is one of ONE's three
    alone: "weights" rounds them, "ranges" notes what tensors reach, "integers" makes integers of
    what they note.
    """

    compatible: ClassVar[str] = "one"
    scheme: str = "uint8"
    granularity: str | None = None
    input_type: str | None = None
    output_type: str | None = None
    config: object = None
    ranges: str = RANGES
    ranges_from: object = None
    step: str | None = None

    def __post_init__(self) -> None:
        """Refuse element types and granularities that ONE does not have."""
        object.__setattr__(self, "scheme", _WORDS.get(self.scheme, self.scheme))
        if self.scheme not in (*TYPES, *ALONE):
            names = ", ".join((*TYPES, *ALONE))
            raise OptionsError(f"scheme is {self.scheme!r}: ONE has {names}")
        if self.ranges.partition(":")[0] != RANGES.partition(":")[0]:
            raise OptionsError(f"ranges is {self.ranges!r}: ONE's numbers have record_percentile")
        if self.step not in (None, *STEPS):
            raise OptionsError(f"step is {self.step!r}: ONE has {', '.join(STEPS)}")
        if self.step is not None and not self.takes_data:
            raise OptionsError(f"scheme {self.scheme} is one step: leave step out")
        for name in ("input_type", "output_type"):
            end = getattr(self, name)
            if end not in (None, "float32", *TYPES):
                raise OptionsError(f"{name} is {end!r}: float32, uint8, int16 are possible")
        if self.granularity is not None and self.granularity not in GRANULARITIES:
            names = " and ".join(GRANULARITIES)
            raise OptionsError(f"granularity is {self.granularity!r}: ONE has {names}")

    @property
    def takes_data(self) -> bool:
        """Whether tensors between operators become integers."""
        return self.scheme in TYPES

    @property
    def needs_data(self) -> bool:
        """Whether no ranges are given instead."""
        return self.takes_data and self.ranges_from is None and self.step in (None, RECORD)

    def layers(self, content: object) -> OneLayers:
        """Read which kind every operator is. Raises QuantizeError that says what is wrong."""
        dtype = self.scheme if self.takes_data else None
        return OneLayers.parse({} if content is None else content, dtype, self.granularity)
