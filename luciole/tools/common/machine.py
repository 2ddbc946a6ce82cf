"""Describe the machine of a figure: processor, its features, cores, versions and the date."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("luciole", "numpy", "numba", "llvmlite")
FEATURES = {
    "AVX2": "avx2",
    "AVX-512": "avx512f",
    "AVX-512 VPOPCNTDQ": "avx512_vpopcntdq",
    "AVX-512 VNNI": "avx512_vnni",
    "AVX-512 BITALG": "avx512_bitalg",
    "GFNI": "gfni",
}
"""Instructions that kernels gain from, and their names in /proc/cpuinfo."""


def machine_facts(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Name the processor, what kernels are compiled for where LUCIOLE_CPU chooses less, features
    (None where the system does not tell), cores, versions and date.
    """
    fields = _cpuinfo()
    flags = fields["flags"].split() if "flags" in fields else None
    return {
        "cpu": _cpu_name(fields),
        "compiled_for": os.environ.get("LUCIOLE_CPU") or None,
        "features": {k: None if flags is None else v in flags for k, v in FEATURES.items()},
        "cores": os.cpu_count(),
        "cores_allowed": _cores_allowed(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: package_version(name) for name in packages},
        "date": str(date.today()),
    }


def package_version(package: str) -> str | None:
    """Find the installed version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def machine_text(facts: dict[str, Any], threads: str = "1 thread") -> str:
    """Write the facts in one line, for under a table."""
    listed = ", ".join(f"{k} {v or 'not installed'}" for k, v in facts["versions"].items())
    held = f" as {facts['compiled_for']}" if facts["compiled_for"] else ""
    return f"{facts['cpu']}{held}, {threads}, {facts['date']}, Python {facts['python']}, {listed}"


def _cpuinfo() -> dict[str, str]:
    """Read the last processor's fields; nothing where there is no /proc/cpuinfo."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}


def _cpu_name(fields: dict[str, str]) -> str:
    name = fields.get("model name") or platform.processor() or platform.machine()
    family = fields.get("cpu family")
    return name if family is None else f"{name} family {family} model {fields.get('model', '?')}"


def _cores_allowed() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
