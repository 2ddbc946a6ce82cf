"""A file in the programs that look at files, called as people do, and what they print of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np

from luciole.drawing import document
from luciole.ir import LucioleError, Model
from luciole.ir.findings import Finding, refusal
from luciole.tools import dump, verify
from luciole.tools.dump import VIEWS
from luciole.tools.view import command as view

Rng = np.random.Generator
Main = Callable[[Sequence[str]], int]
NAME = "case.circle"


class BrokenPromiseError(AssertionError):
    """Something that must hold for every file did not."""


def look(rng: Rng, content: bytes, model: Model, findings: Sequence[Finding]) -> None:
    """Give a file to one of the programs. Raises what it raises, and BrokenPromiseError where it
    says too little, too much, or with the wrong exit code.
    """
    main, words = _program(rng, model)
    with TemporaryDirectory() as folder, _groups_of_few():
        path = Path(folder) / NAME
        path.write_bytes(content)
        target = Path(folder) / words[-1] if "-o" in words else None
        given = [str(target) if target is not None and w == words[-1] else w for w in words]
        code, out, err = _called(main, [str(path), *given, "--debug"])
        _check_said(main, code, err, refusal(findings))
        if "--json" in words:
            json.loads(out)
        elif main is not dump.main or "--tensor" not in words:
            _check_lines(out)
        if target is not None and target.suffix == ".svg":
            ElementTree.parse(target)  # our own file


@contextmanager
def _groups_of_few() -> Iterator[None]:
    """Let small graphs be drawn as large ones are: with groups, some of them closed."""
    before = document.FEWEST, document.COLLAPSE_ABOVE
    document.FEWEST, document.COLLAPSE_ABOVE = 2, 6
    try:
        yield
    finally:
        document.FEWEST, document.COLLAPSE_ABOVE = before


def _program(rng: Rng, model: Model) -> tuple[Main, list[str]]:
    kind = int(rng.integers(6))
    as_json = ["--json"] if rng.random() < 0.3 else []
    if kind == 0:
        return verify.main, as_json
    if kind == 1:
        return dump.main, as_json
    if kind == 2:
        return dump.main, [f"--{list(VIEWS)[int(rng.integers(len(VIEWS)))]}", *as_json]
    if kind == 3:
        values = [v for graph in model.graphs for v in graph.values]
        number = int(rng.integers(len(values) or 1))
        return dump.main, ["--tensor", f"T(0:{number})", *as_json]
    if kind == 4:
        return view.main, ["--json"]
    target = "shown.svg" if rng.random() < 0.5 else "shown.html"
    return view.main, ["--horizontal", "-o", target]


def _called(main: Main, argv: Sequence[str]) -> tuple[int, str, str]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(argv)
    return code, out.getvalue(), err.getvalue()


def _check_said(main: Main, code: int, err: str, reason: str | None) -> None:
    wanted = f"luciole: error: {NAME}: {reason}\n" if reason is not None else ""
    if code != (reason is not None):
        raise BrokenPromiseError(f"exit code {code} of a file refused for {reason}")
    if err != ("" if main is verify.main else wanted):
        raise BrokenPromiseError(f"standard error has {err[:200]!r} instead of {wanted[:200]!r}")


def _check_lines(out: str) -> None:
    strange = next((c for c in out if not c.isprintable() and c != "\n"), None)
    if strange is not None:
        raise BrokenPromiseError(f"{strange!r} is printed")


def allowed(error: LucioleError, model: Model) -> bool:
    """Whether a program may refuse: there is nothing to draw, or no values to show."""
    return not model.graphs or "tensor" in str(error)
