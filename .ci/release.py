#!/usr/bin/env python3
"""Make a release in the folder given: sdist and wheel, built twice and the same bytes both times,
what they are made with (a CycloneDX SBOM of the wheel and all that it needs), and checksums.

The version is luciole's and stands, with the release's day, in CHANGELOG.md, below a part
"Unreleased" without lines. An index would show README as it should: twine says so. Nothing is sent
anywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import lock
import wheel


def version(changelog: str, package: str) -> str:
    """The version that CHANGELOG.md and the package state. Raises ValueError where they differ, or
    where lines wait for a release.
    """
    head = changelog.partition("## Unreleased")[2].partition("\n## ")[0]
    if head.strip():
        raise ValueError("CHANGELOG.md: lines below Unreleased belong to no version yet")
    found = wheel.RELEASED.search(changelog)
    (stated,) = re.findall(r'^__version__ = "(.+)"$', package, re.M)
    if found is None or found[1] != stated:
        newest = found and found[1]
        raise ValueError(f"luciole is {stated}, the newest version in CHANGELOG.md {newest}")
    return str(stated)


def stated_version() -> str:
    """That of this checkout."""
    changelog = (lock.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return version(changelog, (lock.ROOT / "luciole" / "__init__.py").read_text(encoding="utf-8"))


def download(target: Path) -> None:
    """Fetch what builds, checks and runs the wheel, by the locks' hashes."""
    for requirements in (lock.RELEASE, lock.RUNTIME):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--require-hashes", "--dest", str(target)]
        wheel.run(*command, "--requirement", requirements)


def environment(target: Path, folders: Sequence[Path], *wanted: str) -> Path:
    """The Python of a new environment with what is wanted, from folders of wheels, without pip."""
    wheel.run(sys.executable, "-m", "venv", "--without-pip", target)
    python = target / "bin" / "python"
    install = ["--python", python, "install", "--quiet", "--no-index", *wanted]
    wheel.run(sys.executable, "-m", "pip", *install, *(f"--find-links={f}" for f in folders))
    return python


def parts(tools: Path, python: Path, target: Path) -> None:
    """Write the SBOM of what is installed beside a Python."""
    command = [tools.parent / "cyclonedx-py", "environment", "--output-reproducible"]
    wheel.run(*command, "--output-file", target, python)


def release(target: Path) -> list[Path]:
    """The files of the release, which lie in the target when all checks have passed."""
    name = f"luciole-{stated_version()}"
    with tempfile.TemporaryDirectory() as place:
        here, folder = Path(place), Path(place, "wheels")
        download(folder)
        files = wheel.build_twice(folder, here)
        tools = environment(here / "tools", [folder], "twine", "cyclonedx-bom")
        wheel.run(tools, "-m", "twine", "check", "--strict", *files)
        python = environment(here / "venv", [folder, files[0].parent], "luciole")
        parts(tools, python, here / f"{name}.cdx.json")
        files.append(here / f"{name}.cdx.json")
        sums = (f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
        (here / "SHA256SUMS").write_text("".join(sums))
        target.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(file, target)) for file in (*files, here / "SHA256SUMS")]


def main(arguments: Sequence[str]) -> int:
    """Print the files of a release, or why there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, help="the folder that gets the files")
    parser.add_argument("--tag", help="refuse any other version than this tag's, as in v1.0.0")
    given = parser.parse_args(arguments)
    try:
        if given.tag not in (None, f"v{stated_version()}"):
            raise ValueError(f"the tag is {given.tag}, luciole is {stated_version()}")
        for file in release(given.target):
            print(f"release: {file} {file.stat().st_size} B")
    except (subprocess.CalledProcessError, FileNotFoundError, ValueError) as error:
        print(f"release: {error}\n{getattr(error, 'stderr', '')}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
