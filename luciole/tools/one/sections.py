"""Read onecc's configurations: sections of options, one for each of ONE's programs."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping

from luciole.tools.common.command import UsageError
from luciole.tools.one.table import forms

_NO = ("false", "0", "n", "no", "off", "")
"""Values that leave a switch out."""


def sections_of(path: str) -> Mapping[str, Mapping[str, str]]:
    """Read the sections of a file. Raises UsageError, with the line, for a file that is none."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names have upper case, too
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            parser.read_file(file, path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except (configparser.Error, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {' '.join(str(error).split())}") from None
    return {name: dict(parser[name]) for name in parser.sections()}


def section_words(path: str, section: str, program: str) -> list[str]:
    """Return a section's options as words of a program of ONE's. Raises UsageError for a section
    that is not there, and for an option that the program does not have.
    """
    sections = sections_of(path)
    if section not in sections:
        raise UsageError(f"{path} has no section [{section}]")
    return words_of(sections[section], program, f"{path}: [{section}]")


def words_of(entries: Mapping[str, str], program: str, place: str) -> list[str]:
    """Turn entries into words: empty ones are left out, and switches that are turned off. A
    program's values are paths as shells know them: ``~`` is the user's folder.
    """
    options = {
        name.lstrip("-"): option
        for alias in forms(program)
        for option in alias.all_options()
        for name in option.names
    }
    words: list[str] = []
    for key, value in entries.items():
        if key == "include":
            words += _groups(value, place)
            continue
        if key not in options:
            raise UsageError(f"{place} {key}: {program} has no such option")
        option = options[key]
        if option.values and value:
            words += [option.name, *map(os.path.expanduser, _split(value, len(option.values)))]
        elif not option.values and is_on(value):
            words.append(option.name)
    return words


def is_on(value: str) -> bool:
    """Return whether the value of a switch turns it on."""
    return value.lower() not in _NO


def _split(value: str, count: int) -> list[str]:
    return [value] if count == 1 else value.split()


def _groups(value: str, place: str) -> list[str]:
    """Turn ``O1`` into ``-O 1``."""
    words = []
    for group in value.split():
        if not group.startswith("O") or len(group) == 1:
            raise UsageError(f"{place} include: {group} is no group, O1 is one")
        words += ["-O", group[1:]]
    return words
