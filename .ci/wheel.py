#!/usr/bin/env python3
"""Build the sdist, which has to hold every file, and the wheel from it, twice: both have to be the
same bytes. Install the wheel under each Python that setup.cfg states and this machine has, and run
the demo there: sizes and accuracies have to be the same under all of them.

What the wheel needs is downloaded into the folder given, as .ci/runtime.lock says.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import lock

IDENTITY = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
"""What a Python that can make environments answers with its version."""

BUILD = """\
import sys
target = sys.argv.pop()
sys.path.insert(0, target + "/tools")
from setuptools.build_meta import build_sdist
build_sdist(target)
"""
"""What builds an sdist of the working folder into the folder given."""


RELEASED = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", re.M)
"""The headings of CHANGELOG's releases: version and date."""


def epoch() -> str:
    """SOURCE_DATE_EPOCH, the time of all packed files: the start of the newest release's day."""
    found = RELEASED.search((lock.ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError("CHANGELOG.md has no heading such as ## 1.0.0 - 2026-11-28")
    return str(int(datetime.fromisoformat(found[2]).replace(tzinfo=UTC).timestamp()))


def run(*command: str | Path, cwd: Path | None = None, cache: Path | None = None) -> str:
    """What a command prints. Raises CalledProcessError with its errors where it fails."""
    environment = os.environ if cache is None else os.environ | {"LUCIOLE_CACHE": str(cache)}
    done = subprocess.run(
        command, check=True, cwd=cwd, env=environment, capture_output=True, text=True
    )
    return done.stdout


def candidates(version: str) -> Iterator[str]:
    """Where a Python of this version may be: on PATH, or among pyenv's."""
    yield from filter(None, [shutil.which(f"python{version}")])
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))


def find(version: str) -> str | None:
    """The first of them that answers with the version; names may be pyenv's, without a program."""
    for program in candidates(version):
        done = subprocess.run([program, "-c", IDENTITY], check=False, capture_output=True)
        if done.stdout.decode().strip() == version:
            return program
    return None


def fetch(version: str, folder: Path) -> None:
    """Download what luciole needs under a Python."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--python-version", version, "--dest", str(folder)]
    run(*command, "--requirement", str(lock.RUNTIME))


def build_sdist(folder: Path, target: Path) -> Path:
    """The sdist of a copy of this checkout. Raises FileNotFoundError where it lacks files."""
    ignored = [line.rstrip("/") for line in (lock.ROOT / ".gitignore").read_text().split()]
    source = target / "source"
    shutil.copytree(lock.ROOT, source, ignore=shutil.ignore_patterns(".git", *ignored))
    files = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    tools = ["-m", "pip", "install", "--quiet", "--no-index", "--find-links", folder]
    run(sys.executable, *tools, "--target", target / "tools", "setuptools")
    run(sys.executable, "-c", BUILD, target, cwd=source)
    (sdist,) = target.glob("luciole-*.tar.gz")
    with tarfile.open(sdist) as archive:
        missing = files - {name.partition("/")[2] for name in archive.getnames()}
    if missing:
        raise FileNotFoundError(f"{sdist.name} does not hold {', '.join(sorted(missing))}")
    return sdist


def build_wheel(folder: Path, target: Path) -> Path:
    """The wheel, from the sdist beside it and from no index."""
    target.mkdir()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    run(*command, "--find-links", folder, "--wheel-dir", target, build_sdist(folder, target))
    (wheel,) = target.glob("luciole-*.whl")
    return wheel


def build_twice(folder: Path, target: Path) -> list[Path]:
    """The wheel and the sdist. Raises ValueError where a second build gives other bytes."""
    os.environ["SOURCE_DATE_EPOCH"] = epoch()
    os.umask(0o022)
    wheels = [build_wheel(folder, target / name) for name in ("first", "second")]
    builds = [sorted(wheel.parent.glob("luciole-*")) for wheel in wheels]
    for one, other in zip(*builds, strict=True):
        if one.read_bytes() != other.read_bytes():
            raise ValueError(f"two builds of {one.name} differ")
    return builds[0]


def demo(program: str, wheel: Path, folder: Path) -> str:
    """The demo's table without its times, from the wheel in a new environment."""
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        run(program, "-m", "venv", here / "venv")
        install = ["-m", "pip", "install", "--quiet", "--no-compile", "--no-index"]
        run(here / "venv/bin/python", *install, "--find-links", folder, wheel)
        printed = run(here / "venv/bin/luciole", "demo", "--json", cwd=here, cache=here / "cache")
    rows = json.loads(printed)["rows"]
    return ", ".join(f"{row['name']} {row['bytes']} B {row['top1']:.2%}" for row in rows)


def tables(folder: Path) -> dict[str, str]:
    """The demo's table under each Python that is here, two at a time."""
    found = {version: program for version in lock.pythons() if (program := find(version))}
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(2) as pool:
        wheel, _ = build_twice(folder, Path(place))
        for version in found:
            fetch(version, folder)
        printed = pool.map(lambda program: demo(program, wheel, folder), found.values())
        return dict(zip(found, printed, strict=True))


def main(arguments: Sequence[str]) -> int:
    """Print a line for each Python; fail where one fails, where two differ, or where none is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="wheels, setuptools among them")
    try:
        results = tables(parser.parse_args(arguments).folder)
    except (subprocess.CalledProcessError, FileNotFoundError, ValueError) as error:
        print(f"wheel: {error}\n{getattr(error, 'stderr', '')}", file=sys.stderr)
        return 1
    for version in lock.pythons():
        print(f"wheel: Python {version}: {results.get(version, 'not on this machine')}")
    return int(len(set(results.values())) != 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
