"""Translate the words of a program of ONE's into calls of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from luciole.tools.common.command import UsageError
from luciole.tools.one.alias import Alias, Option

Values = Mapping[str, Sequence[tuple[str, ...]]]
"""What stands behind each option, by its longest spelling: once for each time that it is there."""

JOINED = ("--passes", "--print")
"""Options of ours whose values are one list with commas."""
_PERCENTILES = (1.0, 99.0)
"""Those of record-minmax where none are named."""


class Call(NamedTuple):
    """A program of ours and its words."""

    program: str
    words: tuple[str, ...]


def calls_of(alias: Alias, values: Values) -> list[Call]:
    """Return the calls that do what ONE's program would. Raises UsageError, in a sentence, for an
    option without a counterpart.
    """
    _check_one_of(alias, values)
    _check_percentiles(values)
    _check_same_data(values)
    calls = [Call(alias.program, _joined([*alias.always.split(), *_words(alias.options, values)]))]
    behind = alias.then
    if behind is None:
        return calls
    words = _words(behind.options, values)
    if behind.switch in values:
        operands = [values[name][-1][0] for name in behind.operands]
        return [*calls, Call(behind.program, _joined([*operands, *words]))]
    for option in behind.options:
        if option.name in values:
            raise UsageError(f"{option.name} goes with {behind.switch}")
    return calls


def _words(options: Iterable[Option], values: Values) -> list[str]:
    words = []
    for option in options:
        for one in values.get(option.name, ()):
            words += option.words(one)
        if option.name not in values:
            words += option.absent.split()
    return words


def _joined(words: Sequence[str]) -> tuple[str, ...]:
    """Gather the values of an option that takes a list of names in the place of its first one."""
    result: list[str] = []
    places: dict[str, int] = {}
    remaining = iter(words)
    for word in remaining:
        if word not in JOINED:
            result.append(word)
            continue
        value = next(remaining)
        if word in places:
            result[places[word]] += f",{value}"
        else:
            result += [word, value]
            places[word] = len(result) - 1
    return tuple(result)


def _check_one_of(alias: Alias, values: Values) -> None:
    """Refuse none and several of the options that say what is done."""
    named = [name for name in alias.one_of if name in values]
    if alias.one_of and len(named) != 1:
        listed = " and ".join(named) or "none"
        raise UsageError(f"one of {', '.join(alias.one_of)} is needed, found {listed}")


def _check_percentiles(values: Values) -> None:
    """Refuse percentiles that do not cut off as much on both sides."""
    low, high = (
        _number(values, name, default)
        for name, default in zip(
            ("--min_percentile", "--max_percentile"), _PERCENTILES, strict=True
        )
    )
    if abs(low + high - 100) > 1e-6:
        raise UsageError(
            f"--min_percentile {low:g} and --max_percentile {high:g} have no counterpart: both "
            "are to add up to 100"
        )


def _number(values: Values, name: str, default: float) -> float:
    if name not in values:
        return default
    text = values[name][-1][0]
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{name} is {text!r}: a number is needed") from None


def _check_same_data(values: Values) -> None:
    """Refuse other records for the second model than for the first."""
    first, second = (values.get(f"--{which}_input_data") for which in ("first", "second"))
    if (first and first[-1]) != (second and second[-1]):
        raise UsageError(
            "--first_input_data and --second_input_data are to be the same file: both models read "
            "the same records"
        )
