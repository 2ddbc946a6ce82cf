"""Everything that a benchmark found, as JSON values, CSV and a trace."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from luciole.tools.bench.compare import FIRST, Contender
from luciole.tools.bench.operators import OperatorTime, Profile, by_kind
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.runtime import Phase

TRACED_RUNS = 10


@dataclass
class Report:
    """Figures of a model and its peers, and of the machine."""

    runtime: Luciole
    contenders: list[Contender]
    profile: Profile | None
    machine: dict[str, Any]
    threads: int
    peak_rss_bytes: int
    inputs: list[dict[str, Any]]
    phases: dict[str, Phase] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    """A line for each peer that crashed."""

    @property
    def ours(self) -> Contender:
        """luciole's own figures."""
        return self.contenders[0]

    @property
    def peers(self) -> list[Contender]:
        """Everybody else's."""
        return self.contenders[1:]

    @property
    def operators(self) -> list[OperatorTime]:
        """Operators in execution order; none when they were not to be timed."""
        return self.profile.operators if self.profile else []

    def milliseconds(self, phase: str) -> float:
        """Return the milliseconds of a phase that was done once."""
        return self.phases[phase].milliseconds

    def to_json(self) -> dict[str, Any]:
        """Turn the whole report; the keys up to "operators" are stable."""
        ours = self.ours
        return {
            "model": str(self.runtime.path),
            "bytes": ours.bytes,
            **ours.invoke.to_json(),
            "with_copies": ours.copies.to_json(),
            "import_ms": self.milliseconds("import"),
            "load_ms": self.milliseconds("load"),
            "compile_ms": self.milliseconds("compile"),
            "first_ms": self.milliseconds(FIRST),
            "kernels_compiled": self.runtime.kernels_compiled,
            "arena_bytes": self.runtime.interpreter.arena_bytes,
            "constant_bytes": self.runtime.interpreter.constant_bytes,
            "peak_rss_bytes": self.peak_rss_bytes,
            "threads": self.threads,
            "inputs": self.inputs,
            "checksum": ours.checksum,
            "top1": ours.top1,
            "machine": self.machine,
            "peers": [peer.to_json(ours) for peer in self.peers],
            "crashed": self.lost,
            "operators": [asdict(operator) for operator in self.operators],
            "kinds": [asdict(kind) for kind in by_kind(self.operators)],
        }


def operators_csv(operators: Sequence[OperatorTime]) -> str:
    """Write a line of headings, then one for each operator in execution order."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(OperatorTime)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(operator) for operator in operators)
    return text.getvalue()


def chrome_trace(report: Report) -> str:
    """Write the phases that were done once and some runs, operator by operator, as Chrome and
    Perfetto show them.
    """
    start = min(phase.begin for phase in report.phases.values())
    events: list[dict[str, Any]] = [
        _event(p.name, "start", (p.begin - start) / 1000, (p.end - p.begin) / 1000, {})
        for p in report.phases.values()
    ]
    end = max(event["ts"] + event["dur"] for event in events)
    events += _run_events(report.profile, end) if report.profile else []
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1) + "\n"


def _run_events(profile: Profile, at: float) -> Iterable[dict[str, Any]]:
    """List the first runs that were timed operator by operator, one after the other from ``at``
    on.
    """
    for run, times in enumerate(profile.times[:TRACED_RUNS]):
        yield _event(f"run {run}", "run", at, float(times.sum()), {})
        for operator, duration in zip(profile.operators, times.tolist(), strict=True):
            facts = {"index": operator.index, "kind": operator.kind, "native": operator.native}
            yield _event(operator.name, operator.kind, at, duration, facts)
            at += duration


def _event(
    name: str, category: str, begin: float, duration: float, facts: dict[str, Any]
) -> dict[str, Any]:
    """Make a complete event; times in microseconds."""
    where = {"pid": 1, "tid": 1}
    times = {"ts": begin, "dur": duration}
    return {"name": name, "cat": category, "ph": "X", **where, **times, "args": facts}
