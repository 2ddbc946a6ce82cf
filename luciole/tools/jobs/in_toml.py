"""Read a job in TOML: a list of steps, each of which reads like the line that a user would type.

[[step]]
optimize = "net.circle"  # the first key names the program, its value what stands behind it
output = "small.circle"  # every other key is an option
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from luciole.tools.common.command import UsageError, similar
from luciole.tools.jobs.steps import Step
from luciole.tools.main import PROGRAMS, parser_of

_OWN = "build"
"""A job that runs jobs would be none that can be read at a glance."""


def steps_of(path: str) -> list[Step]:
    """Read the steps of a file. Raises UsageError, with the line or the step and the key, for what
    is not understood.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: this is no TOML: {error}") from None
    entries = content.pop("step", [])
    if content:
        raise UsageError(f"{path}: {next(iter(content))} is not understood: a job has [[step]]")
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path}: a job has steps, each of which begins with [[step]]")
    return [_step(entry, f"{path}: step {number}") for number, entry in enumerate(entries, 1)]


def _step(entry: Any, place: str) -> Step:
    if not isinstance(entry, Mapping) or not entry:
        raise UsageError(f'{place}: a program is missing, such as import = "net.tflite"')
    (program, operands), *options = entry.items()
    if program not in PROGRAMS or program == _OWN:
        likely = similar(program, set(PROGRAMS) - {_OWN})
        hint = f", did you mean {likely}?" if likely else ": luciole --help lists them"
        raise UsageError(f"{place} begins with {program}, which is no program{hint}")
    place = f"{place} ({program})"
    words = _texts(operands, f"{place}: {program}")
    parser = parser_of(program)
    for key, value in options:
        words += _option_words(parser, key, value, place)
    return Step(place, program, tuple(words))


def _spelled(key: str) -> str:
    return f"-{key}" if len(key) == 1 else f"--{key.replace('_', '-')}"


def _option_words(parser: argparse.ArgumentParser, key: str, value: Any, place: str) -> list[str]:
    """Write an option as the words that its program reads."""
    name = _spelled(key)
    action = parser._option_string_actions.get(name)
    if action is None:
        likely = similar(name, parser._option_string_actions).lstrip("-")
        hint = f", did you mean {likely}?" if likely else ""
        raise UsageError(f"{place}: {key} is no option{hint}")
    if isinstance(value, bool):
        if action.nargs not in (0, "?") and value:
            raise UsageError(f"{place}: {key} takes a value, found true")
        return [name] if value else []
    if action.nargs == 0:
        raise UsageError(f"{place}: {key} is true or false, found {value!r}")
    texts = _texts(value, f"{place}: {key}")
    if isinstance(action, argparse._AppendAction):
        return [word for text in texts for word in _with_value(name, text)]
    if action.nargs is None and len(texts) != 1:
        raise UsageError(f"{place}: {key} takes one value, found {len(texts)}")
    return _with_value(name, texts[0]) if action.nargs is None else [name, *texts]


def _with_value(name: str, text: str) -> list[str]:
    """Write an option and its value, which may begin with a dash."""
    return [f"{name}={text}"] if text.startswith("-") and len(name) > 2 else [name, text]


def _texts(value: Any, place: str) -> list[str]:
    """Write a text, a number or a list of them as words."""
    values = value if isinstance(value, list) else [value]
    for one in values:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise UsageError(f"{place} is a text, a number or a list of them, found {one!r}")
    return [os.fspath(one) if isinstance(one, str) else str(one) for one in values]
