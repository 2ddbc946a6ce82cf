"""Keep everything a search has found in one SQLite file: the only state that it has.

One process writes, the one that searches; workers never open the file. What was committed when the
process died is there when the same search begins again.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from sys import intern
from typing import Any, Literal

from luciole.files import check_writable
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.evaluate import Alone, Stage
from luciole.lquantizer.search.space import Candidate

State = Literal["running", "done", "failed"]

_OTHER = {"model": "another model", "data": "other records", "settings": "other settings"}

_PAGES = 100
"""Of 4 KB that wait beside the file at the most, or so: SQLite's own 1,000 can be forty times a
small search."""

_SCHEMA = """
create table if not exists study (key text primary key, value text not null);
create table if not exists layer (
  layer text, option text, bytes integer, loss real, us real, way text,
  primary key (layer, option));
create table if not exists evaluation (
  stage text, candidate text, number integer, state text not null, attempts integer not null,
  worker text, begun real, seconds real, figures text, error text, model blob,
  primary key (stage, candidate));
"""


class Storage:
    """The file of a search, made where there is none.

    ``identity`` says by name what makes this search another than others: digests of the model and
    the records, and the settings. Raises QuantizeError for a file that holds another search, and
    for one that cannot be used.
    """

    def __init__(self, path: Path | str, identity: Mapping[str, str]) -> None:
        self.path = path
        with self._named():
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._db.execute(f"pragma wal_autocheckpoint={_PAGES}")
            self._db.executescript(_SCHEMA)
            for key, value in identity.items():
                self._identify(key, value)

    def _identify(self, key: str, value: str) -> None:
        found = self._db.execute("select value from study where key=?", (key,)).fetchone()
        if found is None:
            self._db.execute("insert into study values (?, ?)", (key, value))
        elif found[0] != value:
            raise QuantizeError(
                f"{self.path} is of a search with {_OTHER[key]}: take another folder, or remove it"
            )

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Say of which file an error is."""
        try:
            yield
        except sqlite3.Error as error:
            raise QuantizeError(f"{self.path}: {error}{_hint(error)}") from None

    def _run(self, statement: str, *values: object) -> sqlite3.Cursor:
        with self._named():
            return self._db.execute(statement, values)

    def kept(self, key: str, make: Callable[[], str]) -> str:
        """Read a text of the study, made the first time that it is asked for."""
        found = self._run("select value from study where key=?", key).fetchone()
        if found is not None:
            return str(found[0])
        value = make()
        self._run("insert into study values (?, ?)", key, value)
        return value

    def add_alone(self, found: Alone) -> None:
        """Keep what was measured of one layer."""
        row = tuple(asdict(found)[n] for n in ("layer", "option", "bytes", "loss", "us", "way"))
        self._run("insert or replace into layer values (?, ?, ?, ?, ?, ?)", *row)

    def alone(self) -> list[Alone]:
        """Read what was measured of single layers."""
        rows = self._run("select layer, option, bytes, loss, us, way from layer order by rowid")
        return [Alone(*row) for row in rows]

    def begin(self, stage: Stage, candidate: Candidate) -> None:
        """Note that a candidate is under way."""
        self._run(
            "insert into evaluation (stage, candidate, number, state, attempts, begun) values "
            "(?, ?, (select coalesce(max(number), -1) + 1 from evaluation), 'running', 1, ?) "
            "on conflict (stage, candidate) do update set state='running', attempts=attempts+1, "
            "begun=excluded.begun",
            stage,
            json.dumps(candidate),
            time.time(),
        )

    def done(
        self,
        stage: Stage,
        candidate: Candidate,
        figures: Mapping[str, Any],
        seconds: float,
        worker: str,
        model: bytes | None = None,
    ) -> None:
        """Keep what a candidate was found to be."""
        self._run(
            "update evaluation set state='done', figures=?, seconds=?, worker=?, model=? "
            "where stage=? and candidate=?",
            json.dumps(figures),
            seconds,
            worker,
            model,
            stage,
            json.dumps(candidate),
        )

    def failed(self, stage: Stage, candidate: Candidate, error: str) -> None:
        """Keep why a candidate could not be evaluated; it is not given again."""
        self._run(
            "update evaluation set state='failed', error=? where stage=? and candidate=?",
            error,
            stage,
            json.dumps(candidate),
        )

    def found(self, stage: Stage) -> list[tuple[Candidate, dict[str, Any]]]:
        """List what was evaluated, in the order in which it was given."""
        rows = self._run(
            "select candidate, figures from evaluation where stage=? and state='done' "
            "order by number",
            stage,
        )
        return [(_candidate(text), json.loads(figures)) for text, figures in rows]

    def model(self, stage: Stage, candidate: Candidate) -> bytes:
        """Read the model that was made of a candidate."""
        (found,) = self._run(
            "select model from evaluation where stage=? and candidate=?",
            stage,
            json.dumps(candidate),
        ).fetchone()
        return bytes(found)

    def in_state(self, stage: Stage, state: State) -> list[Candidate]:
        """List the candidates in a state; ``running`` are those that were under way when a process
        died.
        """
        rows = self._run(
            "select candidate from evaluation where stage=? and state=? order by number",
            stage,
            state,
        )
        return [_candidate(text) for (text,) in rows]

    def errors(self) -> list[str]:
        """List why candidates failed."""
        rows = self._run("select error from evaluation where state='failed' order by number")
        return [str(error) for (error,) in rows]

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def opened(folder: Path, identity: Mapping[str, str]) -> Storage:
    """Open the storage in a search's folder, which is made where there is none. Raises
    LucioleError for a folder that cannot be made or written, and as ``Storage`` does.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QuantizeError(f"{folder}: {error.strerror}") from None
    for name in ("search.db", "search.db-wal"):  # SQLite makes the second one beside the first
        check_writable(folder / name)
    return Storage(folder / "search.db", identity)


def _hint(error: sqlite3.Error) -> str:
    """Say what to do where there is no room."""
    name: str = getattr(error, "sqlite_errorname", "")  # not where Python itself refuses
    if name != "SQLITE_FULL" and "IOERR" not in name:
        return ""
    return "; what was found is kept, and with more room the same command goes on"


def _candidate(text: str) -> Candidate:
    """Read a candidate; its options are the same objects wherever they occur, and sent once."""
    return tuple(map(intern, json.loads(text)))
