"""``python -m tests.near [FILES]``: run the tests that tell most of the files, or of those that git
says changed, within about a minute; other options go to pytest.

Which tests a file has is known from ``tests/touched.json``, and for new files from their names.
``python -m tests.near --measure`` makes that table anew.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

import pytest

from tests import durations, touched
from tests.changes import changed

ROOT = touched.ROOT
SECONDS = 45.0
"""Of tests that are run; starting takes a few more."""
NEW = durations.Cost(1, 2.0, 2.0)
"""What a file of tests counts as that nobody has measured."""
HOUSE = ("tests/test_layers.py", "tests/test_house.py")
"""Tests that read the product's sources, and run nothing of it."""
ABOUT = {
    ".ci/": ("tests/test_supply_chain.py",),
    "benchmarks/": ("tests/test_benchmarks.py",),
    "docs/": ("tests/test_docs.py", "tests/test_site.py"),
    "docs/notebooks/": ("tests/test_notebooks.py",),
    "examples/": ("tests/test_docs.py", "tests/test_examples.py"),
    "luciole/drawing/page/": ("tests/tools/view/test_server.py",),
    "mkdocs.yml": ("tests/test_site.py",),
    "setup.cfg": ("tests/test_supply_chain.py",),
    "CHANGELOG.md": ("tests/test_docs.py",),
    "README.md": ("tests/test_docs.py",),
}
"""Tests of what is no module, by the beginning of its name."""


@cache
def tests() -> dict[str, Path]:
    """List all files of tests by their names from the root."""
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return {path.relative_to(ROOT).as_posix(): path for path in paths}


def tests_of(file: str) -> list[str]:
    """List the tests of a file, the most telling first: itself, those named like it, those that
    were seen to enter its functions, or those that import it.
    """
    namesakes = [name for name in tests() if Path(name).name == f"test_{Path(file).name}"]
    about = chain.from_iterable(names for begin, names in ABOUT.items() if file.startswith(begin))
    seen = touched.table().get(file, ())
    house = HOUSE if file.startswith("luciole/") and file.endswith(".py") else ()
    known = [file, *namesakes, *about, *(seen or _importers(file)), *house]
    return [name for name in dict.fromkeys(known) if name in tests()]


def _importers(file: str) -> list[str]:
    """List the tests that import a module that no test was seen to run, the shortest first."""
    module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    found = [name for name, path in tests().items() if module in _modules(path)]
    return sorted(found, key=lambda name: (seconds(name), name))


@cache
def _modules(path: Path) -> frozenset[str]:
    """List what a file imports, modules and what may be one."""
    return frozenset(chain.from_iterable(map(_imported, ast.walk(ast.parse(path.read_text())))))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def seconds(name: str) -> float:
    """Return what a file of tests takes."""
    return durations.table().files.get(name, NEW).seconds


def chosen(files: Iterable[str]) -> tuple[list[str], list[str]]:
    """Choose tests of files in turn, each file's most telling one first, as many as there is time
    for; return those, and those that are left out.
    """
    turns = zip_longest(*map(tests_of, files))
    near = [name for name in dict.fromkeys(chain.from_iterable(turns)) if name]
    fits: list[str] = []
    for name in near:
        if sum(map(seconds, fits)) + seconds(name) <= SECONDS:
            fits.append(name)
    return fits, [name for name in near if name not in fits]


def run(files: Sequence[str], options: Sequence[str]) -> int:
    """Run the tests near some files."""
    fits, others = chosen(files)
    if not fits:
        print(f"no short test is known of {', '.join(files) or 'what changed'}")
        return 1
    print(f"near {', '.join(files)}: about {sum(map(seconds, fits)):.0f} s of tests")
    if others:
        print("not in time: " + ", ".join(f"{name} ({seconds(name):.0f} s)" for name in others))
    return subprocess.run([sys.executable, "-m", "pytest", *fits, *options], cwd=ROOT).returncode


def measure(budget: float, options: Sequence[str]) -> int:
    """Run tests of every file that may be chosen for some seconds, and write what they touch."""
    watcher = touched.Watcher(budget)
    long = [f"--ignore={name}" for name in tests() if seconds(name) > SECONDS]
    quiet = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*quiet, *long, *options], plugins=[watcher])
    touched.write(watcher.touched)
    return int(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run near tests, or measure which are near."""
    parser = argparse.ArgumentParser(prog="python -m tests.near", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILES")
    parser.add_argument("--measure", action="store_true", help=f"write {touched.TABLE.name}")
    budget = "seconds of each file's tests that --measure runs (default %(default)s)"
    parser.add_argument("--budget", type=float, default=3.0, metavar="SECONDS", help=budget)
    arguments, options = parser.parse_known_args(argv)
    if arguments.measure:
        return measure(arguments.budget, [*arguments.files, *options])
    try:
        files = [Path(os.path.relpath(f, ROOT)).as_posix() for f in arguments.files] or changed()
    except (OSError, subprocess.CalledProcessError):
        parser.error("git does not say what changed: name files")
    return run(files, options)


if __name__ == "__main__":
    raise SystemExit(main())
