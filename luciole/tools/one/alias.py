"""Describe a program of ONE's, and what stands here for each of its options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from luciole.tools.common.command import UsageError

_LISTS = re.compile(r"[^\[\],]*\[[^\]]*\]?|[^\[\],]+")
"""An entry in brackets, with all that stands in front, or whatever else stands between commas."""

HOLDS = ""
"""What stands here for an option whose effect is there without it."""

Here = str | Mapping[str, str] | None
"""Words of a program of ours: a long option, which the option's value follows or takes the place of
``{}`` in; the name of an operand, which the value is; ``HOLDS``. A mapping has them for each value
that is possible. None where there is no counterpart.
"""


@dataclass(frozen=True)
class Option:
    """An option or operand of a program of ONE's: its spellings, what stands for it here, the names
    of its values, a note about what is different or missing, and whether it has to be there and may
    be there several times. ``absent`` are the words that stand for it where it is not there.
    """

    names: tuple[str, ...]
    here: Here
    values: tuple[str, ...] = ()
    note: str = ""
    required: bool = False
    repeated: bool = False
    absent: str = ""
    listed: bool = False
    """Whether the value is a list with commas, of which each entry, which may be a list in brackets
    itself, gets the words.
    """

    @property
    def name(self) -> str:
        """The longest spelling."""
        return max(self.names, key=len)

    def words(self, values: tuple[str, ...]) -> list[str]:
        """Return the words that stand for the option with some values. Raises UsageError, with the
        note, where there are none.
        """
        text, here = " ".join(values), self.here
        if isinstance(here, Mapping):
            if text not in here:
                raise UsageError(self._refusal(f"{self.name} {text}"))
            return here[text].split()
        if here is None:
            raise UsageError(self._refusal(self.name))
        if "{}" in here:
            return [word.replace("{}", text) for word in here.split()]
        if self.listed:
            entries = _LISTS.findall(text) if text.startswith("[") else text.split(",")
            return [word for entry in entries for word in (here, entry.strip())]
        if here and not here.startswith("-"):
            return [text]
        return [*here.split(), *(values if here else ())]

    def _refusal(self, spelled: str) -> str:
        if isinstance(self.here, Mapping) and not self.note:
            return f"{spelled} has no counterpart: there are {', '.join(self.here)}"
        return f"{spelled} has no counterpart: {self.note}"


@dataclass(frozen=True)
class Then:
    """A program of ours that runs behind the first one where ``switch`` asks for it, over the
    operands that options of these names hold.
    """

    program: str
    switch: str
    operands: tuple[str, ...]
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Alias:
    """A program of ONE's, or the form of it that the option ``when`` asks for: the program of ours
    that runs, words that it always gets, and the options.
    """

    name: str
    program: str
    summary: str
    options: tuple[Option, ...]
    always: str = ""
    when: str = ""
    then: Then | None = None
    driver: bool = field(default=False)
    """Whether it reads sections of onecc's configuration (``-C``)."""
    one_of: tuple[str, ...] = ()
    """Options of which exactly one is to be there."""

    def all_options(self) -> Iterator[Option]:
        """List the options, also those of the program behind."""
        yield from self.options
        if self.then is not None:
            yield from self.then.options


def option(
    names: str,
    value: str,
    here: Here,
    note: str = "",
    *,
    required: bool = False,
    repeated: bool = False,
    absent: str = "",
    listed: bool = False,
) -> Option:
    """Describe an option: spellings and the names of values as words."""
    spelled, values = tuple(names.split()), tuple(value.split())
    return Option(spelled, here, values, note, required, repeated, absent, listed)


def switch(names: str, here: Here, note: str = "") -> Option:
    """Describe an option without a value."""
    return Option(tuple(names.split()), here, (), note)
