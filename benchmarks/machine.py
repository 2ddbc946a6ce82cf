"""What a figure was measured on: processor, date and versions, for the line under a table."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def machine(packages: Sequence[str], threads: str = "1 thread") -> str:
    """Processor, threads, date and the versions of Python and of packages."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    fields = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    cpu = f"{fields.get('model name', platform.processor())} family {fields.get('cpu family', '?')}"
    versions = ", ".join(f"{name} {_version(name)}" for name in packages)
    return f"{cpu}, {threads}, {date.today()}, Python {platform.python_version()}, {versions}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
