#!/usr/bin/env python3
"""Write .ci/requirements.lock, versions and hashes of everything that CI installs,
.ci/runtime.lock, of what luciole itself needs under each Python that setup.cfg states, and
.ci/release.lock, of what makes releases.

Run it with CI's Python on CI's kind of machine (each package's hashes are those of the files which
fit both) after requirements changed in setup.cfg, or to take up newer versions of everything.
"""

from __future__ import annotations

import configparser
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / ".ci" / "requirements.lock"
RUNTIME = ROOT / ".ci" / "runtime.lock"
RELEASE = ROOT / ".ci" / "release.lock"
HEAD = """\
# Versions and hashes of {what}: {system}.
# Made by: python3 .ci/lock.py
"""


def pythons() -> list[str]:
    """The versions of Python that setup.cfg states: 3.11, ..."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return re.findall(r"(?m):: (3\.\d+)$", config["metadata"]["classifiers"])


def report(*wanted: str) -> list[dict[str, Any]]:
    """What pip would install into an empty environment, without installing it. Raises
    CalledProcessError where pip cannot tell.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--only-binary", ":all:", "--report", "-", *wanted]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return found


def pinned(*wanted: str) -> list[dict[str, Any]]:
    """What pip would install of the lock's versions. Raises as ``report`` does."""
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder, "pins")
        pins.write_text("\n".join(re.findall(r"(?m)^\S+==\S+", LOCK.read_text())))
        return report(*wanted, "--constraint", str(pins))


def runtime(versions: Iterable[str]) -> list[dict[str, Any]]:
    """What luciole needs, in the lock's versions, once for each Python."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for version in versions:
            found += pinned(".", "--python-version", version, "--target", folder)
    return found


def locked(packages: Sequence[dict[str, Any]]) -> str:
    """The lock's lines, in the order of the packages' names, each version with all of its files'
    hashes. Those of this folder are left out.
    """
    hashes: dict[str, set[str]] = {}
    for package in packages:
        if "archive_info" not in package["download_info"]:
            continue
        name = re.sub(r"[-_.]+", "-", package["metadata"]["name"]).lower()
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
        hashes.setdefault(f"{name}=={package['metadata']['version']}", set()).add(digest)
    lines = {pin: [f"--hash=sha256:{digest}" for digest in sorted(hashes[pin])] for pin in hashes}
    order = sorted(lines, key=lambda pin: pin.partition("=="))
    return "".join(" \\\n    ".join((pin, *lines[pin])) + "\n" for pin in order)


def write(path: Path, what: str, python: str, packages: Sequence[dict[str, Any]]) -> None:
    """Write one of the locks, and say so."""
    system = f"{python}, {platform.system()}, {platform.machine()}"
    path.write_text(HEAD.format(what=what, system=system) + locked(packages))
    print(f"{path}: {path.read_text().count('==')} packages for {system}")


def main() -> int:
    """Write all locks."""
    kind, versions = platform.python_implementation(), pythons()
    python = f"{kind} {sys.version_info[0]}.{sys.version_info[1]}"
    packages = report(".[test,dev,docs]", "-r", ".ci/requirements.in")
    write(LOCK, "everything that CI installs", python, packages)
    write(RELEASE, "what makes releases", python, pinned("-r", ".ci/release.in"))
    python = f"{kind} {', '.join(versions)}"
    write(RUNTIME, "what luciole itself needs", python, runtime(versions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
