#!/usr/bin/env python3
"""Write .ci/requirements.lock: versions and hashes of everything that CI installs.

Run it with CI's Python on CI's kind of machine (each package's hash is that of the one file which
fits both) after requirements changed in setup.cfg, or to take up newer versions of everything.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / ".ci" / "requirements.lock"
HEAD = """\
# Versions and hashes of everything that CI installs: {system}.
# Made by: python3 .ci/lock.py
"""


def report(*wanted: str) -> list[dict[str, Any]]:
    """What pip would install into an empty environment, without installing it. Raises
    CalledProcessError where pip cannot tell.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--only-binary", ":all:", "--report", "-", *wanted]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return found


def locked(packages: Sequence[dict[str, Any]]) -> str:
    """The lock's lines, in the order of the packages' names. Those of this folder are left out."""
    lines = {
        re.sub(r"[-_.]+", "-", package["metadata"]["name"]).lower(): package
        for package in packages
        if "archive_info" in package["download_info"]
    }
    return "".join(
        f"{name}=={lines[name]['metadata']['version']} \\\n"
        f"    --hash=sha256:{lines[name]['download_info']['archive_info']['hashes']['sha256']}\n"
        for name in sorted(lines)
    )


def main() -> int:
    """Write the lock."""
    python = f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}"
    system = f"{python}, {platform.system()}, {platform.machine()}"
    packages = report(".[test,dev,docs]", "-r", ".ci/requirements.in")
    LOCK.write_text(HEAD.format(system=system) + locked(packages))
    print(f"{LOCK}: {LOCK.read_text().count('==')} packages for {system}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
