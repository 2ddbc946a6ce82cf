"""Steps of a job: programs with their words, checked before any runs, and run one by one."""

from __future__ import annotations

import argparse
import io
import json
import shlex
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from luciole.tools.common import console
from luciole.tools.common.apart import check_apart, files_named
from luciole.tools.common.command import FINE, UsageError, read_words
from luciole.tools.data.random_records import random_count
from luciole.tools.main import parser_of, run_named

_READ = ("MODEL", "SOURCE", "OTHER", "DATA", "FILE.json")
"""What programs call the values that name files which are to be there."""


@dataclass(frozen=True)
class Step:
    """A program with its words, and the place in a file that asks for it."""

    place: str
    program: str
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """The line that a user would type."""
        return shlex.join(["luciole", self.program, *self.words])


def check_steps(steps: Iterable[Step]) -> None:
    """Parse the words of every program, and look for the files that it reads. Ends the program, in
    a sentence that begins with the step, for words that it does not take. Raises UsageError for a
    file that neither is there nor may be written by a step before.
    """
    before: set[Path] = set()
    for step in steps:
        parser = parser_of(step.program)
        arguments = read_words(parser, step.words, f"{step.place}:")
        check_apart(arguments, f"{step.place}: ")
        for name in _files_read(parser, arguments):
            if not _is_there(name, before):
                raise UsageError(f"{step.place}: {name} is not there, and no step before writes it")
        before |= {Path(word).resolve() for word in step.words if not word.startswith("-")}


def _files_read(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[str]:
    named: list[str] = []
    for action in parser._actions:
        value = vars(arguments).get(action.dest)
        if action.metavar in _READ and value is not None:
            named += [value] if isinstance(value, str) else value
    return named


def _is_there(name: str, before: set[Path]) -> bool:
    """Return whether something has that name, without ``:ARRAY``, or is below what was named."""
    if name == "-" or random_count(name) is not None:
        return True
    return any(
        path.exists() or path in before or before.intersection(path.parents)
        for path in files_named(name)
    )


def run_steps(steps: Sequence[Step], as_json: bool) -> int:
    """Run steps until one fails, and return the exit code of the last one."""
    reports: list[dict[str, Any]] = []
    code = FINE
    for number, step in enumerate(steps, 1):
        console.say(f"step {number} of {len(steps)}: {step.command}")
        begun = perf_counter()
        code, report = _run(step, as_json)
        facts = {"program": step.program, "words": list(step.words), "exit_code": code}
        reports.append({**facts, "seconds": perf_counter() - begun, "report": report})
        if code != FINE:
            _say_rest(step, code, steps[number:])
            break
    if as_json:
        console.print_json({"steps": reports})
    return code


def _run(step: Step, as_json: bool) -> tuple[int, Any]:
    """Run a program, and return its exit code and what it prints as JSON where that is asked."""
    if not as_json:
        return run_named(step.program, step.words), None
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = run_named(step.program, [*step.words, "--json"])
    try:
        return code, json.loads(printed.getvalue())
    except json.JSONDecodeError:
        return code, None


def _say_rest(step: Step, code: int, rest: Sequence[Step]) -> None:
    left = f", and {', '.join(one.program for one in rest)} did not run" if rest else ""
    console.say(f"luciole: {step.place}: luciole {step.program} ended with {code}{left}")
