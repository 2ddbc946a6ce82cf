"""Read a configuration of ONE's onecc: which programs run, each with a section of its own."""

from __future__ import annotations

from collections.abc import Mapping

from luciole.tools.common import console
from luciole.tools.common.command import UsageError
from luciole.tools.jobs.steps import Step
from luciole.tools.one.command import translated
from luciole.tools.one.sections import is_on, sections_of, words_of
from luciole.tools.one.table import WITHOUT, names

_STEPS = ("onecc", "one-build")
"""Sections that say which programs run; the second is what older files have."""
_IMPORT = "one-import-"
_ORDER = ("one-optimize", "one-quantize", "one-partition", "one-pack", "one-codegen")
"""Programs in the order in which onecc runs them, behind those that import and before others."""
_UNREAD = ("Environment", "backend")
"""Sections that are for backends."""


def steps_of(path: str) -> list[Step]:
    """Read the steps of a file, and print a sentence for each one that has no counterpart. Raises
    UsageError, with the section and the key, for what is not understood, and where nothing is
    imported for the steps behind.
    """
    sections = sections_of(path)
    for name in _UNREAD:
        for key, value in sections.get(name, {}).items():
            if value:
                console.say(f"{path}: [{name}] {key} is left out: it is for a backend")
    steps: list[Step] = []
    for program in _programs(sections, path):
        if program not in WITHOUT:
            steps += _steps(sections, program, path)
            continue
        sentence = f"{path}: [{program}] has no counterpart: {WITHOUT[program]}"
        if program.startswith(_IMPORT):
            raise UsageError(sentence)
        console.say(f"{sentence}; it is left out")
    if not steps:
        raise UsageError(f"{path}: no step of [onecc] is on that has a counterpart here")
    return steps


def _programs(sections: Mapping[str, Mapping[str, str]], path: str) -> list[str]:
    """List the programs that are on, in the order in which they run."""
    name = next((name for name in _STEPS if name in sections), None)
    if name is None:
        raise UsageError(f"{path} has no section [{_STEPS[0]}]")
    programs = [key for key, value in sections[name].items() if key != "include" and is_on(value)]
    for program in programs:
        if program not in (*names(), *WITHOUT):
            raise UsageError(f"{path}: [{name}] {program} is no step")
    return sorted(programs, key=_place)


def _place(program: str) -> int:
    if program.startswith(_IMPORT):
        return -1
    return _ORDER.index(program) if program in _ORDER else len(_ORDER)


def _steps(sections: Mapping[str, Mapping[str, str]], program: str, path: str) -> list[Step]:
    place = f"{path}: [{program}]"
    if program not in sections:
        raise UsageError(f"{path} has no section [{program}]")
    entries = dict(sections[program])
    groups = sections.get(_STEPS[0], {}).get("include", "")
    if groups and program == "one-optimize":
        entries.setdefault("include", groups)
    calls = translated(program, words_of(entries, program, place), f"{place}:")
    return [Step(place, call.program, call.words) for call in calls]
