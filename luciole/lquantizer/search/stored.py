"""Read the rows of a search's storage, which anybody may have written: ValueError for all that no
search writes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from sys import intern
from typing import Any

from luciole.files.json_reading import parse_json
from luciole.lquantizer.methods.coding import Coding
from luciole.lquantizer.search.evaluate import Alone
from luciole.lquantizer.search.space import Candidate

SCHEMA = """
create table if not exists study (key text primary key, value text not null);
create table if not exists layer (
  layer text, option text, bytes integer, loss real, us real, way text,
  primary key (layer, option));
create table if not exists evaluation (
  stage text, candidate text, number integer, state text not null, attempts integer not null,
  worker text, begun real, seconds real, figures text, error text, model blob,
  primary key (stage, candidate));
"""
_TABLES = "select type, name, tbl_name, sql from sqlite_master"
_FIGURES = {"bytes", "loss", "agreement"}


def check_tables(db: sqlite3.Connection) -> None:
    """Raise ValueError unless a database has no more than a search's tables: a view in the place of
    one computes whatever it likes.
    """
    with closing(sqlite3.connect(":memory:")) as own:
        own.executescript(SCHEMA)
        known = set(own.execute(_TABLES))
    if not known.issuperset(db.execute(_TABLES)):
        raise ValueError("its tables are others")


def candidate_of(text: object, choices: Sequence[Sequence[str]] | None) -> Candidate:
    """Read a candidate, an option for each gene; its options are the same objects wherever they
    occur, and sent once.
    """
    options = _json(text)
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise ValueError("a candidate is no list of options")
    if choices is not None:
        is_known = [o in possible for o, possible in zip(options, choices, strict=False)]
        if len(options) != len(choices) or not all(is_known):
            raise ValueError("a candidate has other options than the search")
    return tuple(map(intern, options))


def figures_of(text: object, named: Collection[str] = ()) -> dict[str, Any]:
    """Read a candidate's figures: bytes, loss, agreement, and costs where they have names."""
    figures = _json(text)
    if not isinstance(figures, dict) or figures.keys() - {"costs", "drop"} != _FIGURES:
        raise ValueError("figures are not those of a candidate")
    costs = figures.get("costs", {})
    if not isinstance(costs, dict) or costs.keys() != set(named):
        raise ValueError("costs are not those of a candidate")
    numbers = [figures["loss"], *costs.values()]
    numbers += [figures[name] for name in ("agreement", "drop") if figures.get(name) is not None]
    if type(figures["bytes"]) is not int or not all(map(_is_number, numbers)):
        raise ValueError("figures are no numbers")
    return figures


def alone_of(row: Sequence[object]) -> Alone:
    """Read the figures of one layer."""
    layer, option, size, loss, us, coding = row
    if not (isinstance(layer, str) and isinstance(option, str) and isinstance(coding, str)):
        raise ValueError("a layer's row has no names")
    if type(size) is not int or not isinstance(loss, float) or not isinstance(us, float):
        raise ValueError("a layer's figures are no numbers")
    Coding.parse(coding)  # raises ValueError
    return Alone(layer, option, size, loss, us, coding)


def model_of(blob: object) -> bytes:
    """Read the bytes of a model."""
    if not isinstance(blob, bytes):
        raise ValueError("a model is missing")
    return blob


def number_of(text: str) -> float:
    """Read a number of the study."""
    number = float(text)
    if not _is_number(number):
        raise ValueError("a number is none")
    return number


def _json(text: object) -> Any:
    if not isinstance(text, str):
        raise ValueError("a text is missing")
    return parse_json(text)


def _is_number(number: object) -> bool:
    """Return whether something is a number, be it infinite."""
    return type(number) in (int, float) and number == number
