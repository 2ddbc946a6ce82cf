#!/usr/bin/env python3
"""Ask whether anything that CI installs has a known vulnerability; fails where something has.

Advisories that cannot be reached are said and are no failure: they say nothing about the packages.
Arguments go to pip-audit: one that cannot be helped is passed over by ``--ignore-vuln ID``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

LOCK = Path(__file__).resolve().parent / "requirements.lock"
UNREACHABLE = re.compile(r"(Connection|HTTP|Service|SSL)Error|Timeout")
"""Exceptions' names in what pip-audit prints where the network does not answer."""


class Verdict(NamedTuple):
    """How CI goes on, and what people read."""

    code: int
    text: str


def judge(report: str, errors: str) -> Verdict:
    """What pip-audit's JSON says, or, where there is none, its errors."""
    if not report.strip():
        last = errors.strip().rpartition("\n")[2]
        code = 0 if UNREACHABLE.search(errors) else 1
        return Verdict(code, f"audit: nothing was checked, pip-audit ended with: {last[:200]}")
    packages = json.loads(report)["dependencies"]
    found = [
        f"audit: {package['name']} {package['version']}: {fault['id']}, fixed in "
        f"{', '.join(fault['fix_versions']) or 'no version yet'}"
        for package in packages
        for fault in package.get("vulns", ())
    ]
    passed_over = [package["name"] for package in packages if "skip_reason" in package]
    asked = f"{len(packages) - len(passed_over)} of {len(packages)} packages"
    if len(passed_over) == len(packages):
        return Verdict(0, f"audit: nothing was checked, no advisories to be had here ({asked})")
    if passed_over:
        found.append(f"audit: no advisories to be had here for {', '.join(passed_over)}")
    known = any(package.get("vulns") for package in packages)
    found.append(f"audit: asked about {asked}: {'' if known else 'no '}known vulnerabilities")
    return Verdict(int(known), "\n".join(found))


def main(arguments: Sequence[str]) -> int:
    """Run pip-audit over the lock."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    command += ["--require-hashes", "--disable-pip", "--requirement", str(LOCK), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    verdict = judge(done.stdout, done.stderr)
    print(verdict.text)
    return verdict.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
