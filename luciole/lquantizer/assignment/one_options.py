"""Choose how a network of Samsung ONE's numbers is to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from luciole.ir import TensorType
from luciole.lquantizer.assignment.layer_format import Integers
from luciole.lquantizer.assignment.one_config import GRANULARITIES, TYPES, OneLayers
from luciole.lquantizer.errors import OptionsError

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
