"""What a figure was measured on: processor, date and versions, for the line under a table."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.tools.common.machine import machine_facts, machine_text


def machine(packages: Sequence[str], threads: str = "1 thread") -> str:
    """Processor, threads, date and the versions of Python and of packages."""
    return machine_text(machine_facts(packages), threads)
