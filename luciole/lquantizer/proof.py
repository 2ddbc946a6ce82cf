"""Hold the figures of a file: how far its outputs are from the float network's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_FAR_DB, _CLOSE_DB = 6.0, 45.0
"""A file is far from its simulation where it loses so many dB more, unless so many are left:
integer kernels round sums, tables and means that a simulation computes in floats."""
_FAR_ANSWERS = 0.02
"""A file is far where it changes this share of answers more, beyond three standard errors."""


@dataclass(frozen=True)
class Fidelity:
    """How far a network's output is from the float network's: the signal-to-noise ratio in dB, None
    where there is no error, and the share of answers that stay, None for an output without classes.
    """

    snr_db: float | None
    agreement: float | None

    def is_far_from(self, other: Fidelity, answers: int) -> bool:
        """Return whether this one loses more than the ``other`` by more than rounding explains;
        agreement is a share of so many ``answers``.
        """
        return self._is_noisier(other) or self._answers_otherwise(other, answers)

    def _is_noisier(self, other: Fidelity) -> bool:
        own, bar = (math.inf if f.snr_db is None else f.snr_db for f in (self, other))
        return own < _CLOSE_DB and own < bar - _FAR_DB

    def _answers_otherwise(self, other: Fidelity, answers: int) -> bool:
        if self.agreement is None or other.agreement is None:
            return False
        changed = (1 - self.agreement) + (1 - other.agreement)
        chance = 3 * math.sqrt(changed / answers)
        return other.agreement - self.agreement > _FAR_ANSWERS + chance

    def __str__(self) -> str:
        ratio = "no error" if self.snr_db is None else f"{self.snr_db:.1f} dB"
        return ratio if self.agreement is None else f"{100 * self.agreement:.2f} % {ratio}"


@dataclass(frozen=True)
class Verdict:
    """The loss of a network that was chosen for a ``target``: the drop in its unit, on ``records``
    records of an ``origin``, and the percent of equal answers, None where there are none.
    """

    drop: float
    unit: str
    target: float
    records: int
    origin: str
    agree: float | None

    def __str__(self) -> str:
        share = "" if self.agree is None else f", {self.agree:.1f} % of the answers stay"
        allowed = f"{self.drop:.4g} {self.unit} where {self.target:g} may be"
        return f"{allowed}{share}, on {self.records} records {self.origin}"


@dataclass(frozen=True)
class OutputProof:
    """One output: the fidelity of the file, of the simulation in memory that it was made from, and
    of the file in other runtimes, by their names.
    """

    name: str
    file: Fidelity
    simulation: Fidelity | None = None
    runtimes: dict[str, Fidelity] = field(default_factory=dict)

    def __str__(self) -> str:
        ratio = (
            "no error" if self.file.snr_db is None else f"signal/noise {self.file.snr_db:.1f} dB"
        )
        share = self.file.agreement
        figures = ratio if share is None else f"{100 * share:.2f} % of the answers stay, {ratio}"
        beside = [] if self.simulation is None else [f"simulated {self.simulation}"]
        beside += [f"{name} {fidelity}" for name, fidelity in self.runtimes.items()]
        return figures + (f" ({', '.join(beside)})" if beside else "")


@dataclass(frozen=True)
class Measured:
    """A metric's figures of the float network and of the file, by labels or by the float network's
    own answers.
    """

    name: str
    reference: float
    file: float
    by_labels: bool

    def __str__(self) -> str:
        if self.by_labels:
            return f"{self.name} {self.file:.6g} where the float network has {self.reference:.6g}"
        return f"{self.name} {self.file:.6g} by the float network's answers"


@dataclass
class Proof:
    """The figures of a file against the float network: per output, on so many ``records`` of an
    ``origin``; the ``faults`` that make the file unusable, and ``notes`` on what was not judged.
    """

    records: int
    origin: str
    outputs: list[OutputProof] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    metric: Measured | None = None
    """The figures of the user's own metric; None where there is none."""

    @property
    def is_sound(self) -> bool:
        """Whether the file runs, gives finite numbers and agrees with its simulation."""
        return not self.faults

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *(f"fault: {fault}" for fault in self.faults)])

    def lines(self) -> list[str]:
        """Write a line per output and note."""
        several = len(self.outputs) > 1
        whose = f"on {self.records} records {self.origin}"
        lines = [
            f"proof{f' of {one.name}' if several else ''}: {one}, the file {whose}"
            for one in self.outputs
        ]
        if self.metric is not None:
            lines.append(f"proof: {self.metric}, {whose}")
        return lines + [f"proof: {note}" for note in self.notes]
