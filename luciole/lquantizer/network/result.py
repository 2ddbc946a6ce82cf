"""A quantized model, and where its layers came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from luciole.ir import Array, Model
from luciole.ir.shown import Shown
from luciole.lquantizer.calibration.saved import Ranges
from luciole.lquantizer.proof import Proof
from luciole.lquantizer.report import Report
from luciole.lquantizer.rewrite.rounded import Rounded


@dataclass
class Trace:
    """Where learned layers that share their weights are found: the names of the float layers and of
    the operators in their place; what the channels of their outputs are divided by; and whether
    each is judged together with the branch that is added to it.
    """

    floats: Sequence[str]
    learned: Sequence[str]
    scales: Array | None = None
    with_branch: bool = False


@dataclass
class Result(Shown):
    """A quantized model and what was done to it; for fine-tuning, the float weights [o, n] that
    each layer's codes stand for, by the name of its operator, and where to find the layers of the
    report again, by their names there; ``digests`` of the records that it was learned from. Of
    uniform integers, the ``ranges`` that they reach, and the ``rounded`` network that they were
    made from.
    """

    model: Model
    report: Report
    latents: dict[str, Array] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)
    rounded: Rounded | None = None
    ranges: Ranges | None = None
    learned_from: frozenset[bytes] = frozenset()

    @property
    def proof(self) -> Proof | None:
        """Verdict on the bytes of the model's file, beside the float network; None where nobody
        asked.
        """
        return self.report.proof

    def __repr__(self) -> str:
        return f"<Result: {self.model!r}, {self.report!r}>"
