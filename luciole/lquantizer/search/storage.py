"""Keep everything a search has found in one SQLite file: the only state that it has.

One process writes, the one that searches; workers never open the file. What was committed when the
process died is there when the same search begins again.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from luciole.files import check_writable
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search import stored
from luciole.lquantizer.search.evaluate import Alone, Stage
from luciole.lquantizer.search.space import Candidate

State = Literal["running", "done", "failed"]

_OTHER = {
    "model": "another model",
    "data": "other records, labels or metric",
    "settings": "other settings",
}

_PAGES = 100
"""Of 4 KB that wait beside the file at the most, or so: SQLite's own 1,000 can be forty times a
small search."""


class Storage:
    """The file of a search, made where there is none.

    ``identity`` says by name what makes this search another than others: digests of the model and
    the records, and the settings; ``choices`` what each gene may be, ``costs`` what else is
    counted. Raises QuantizeError for a file that holds another search, for one that cannot be used,
    and for what no search wrote.
    """

    def __init__(
        self,
        path: Path | str,
        identity: Mapping[str, str],
        choices: Sequence[Sequence[str]] | None = None,
        costs: Collection[str] = (),
    ) -> None:
        self.path, self._choices, self._costs = path, choices, costs
        with self._named():
            self._db = sqlite3.connect(path, isolation_level=None)
            stored.check_tables(self._db)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._db.execute(f"pragma wal_autocheckpoint={_PAGES}")
            self._db.executescript(stored.SCHEMA)
            for key, value in identity.items():
                self._identify(key, value)

    def _identify(self, key: str, value: str) -> None:
        row = self._db.execute("select value from study where key=?", (key,)).fetchone()
        if row is None:
            self._db.execute("insert into study values (?, ?)", (key, value))
        elif row[0] != value:
            raise QuantizeError(
                f"{self.path} is of a search with {_OTHER[key]}: take another folder, or remove it"
            )

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in errors."""
        try:
            yield
        except sqlite3.Error as error:
            raise QuantizeError(f"{self.path}: {error}{_hint(error)}") from None
        except ValueError as error:
            raise QuantizeError(
                f"{self.path} was not written by this search ({error}): take another folder, or "
                "remove it"
            ) from None

    def _run(self, statement: str, *values: object) -> list[Any]:
        with self._named():
            return self._db.execute(statement, values).fetchall()

    def number(self, key: str, make: Callable[[], float]) -> float:
        """Read a number of the study, made the first time that it is asked for."""
        rows = self._run("select value from study where key=?", key)
        if rows:
            with self._named():
                return stored.number_of(rows[0][0])
        value = make()
        self._run("insert into study values (?, ?)", key, str(value))
        return value

    def add_alone(self, measured: Alone) -> None:
        """Keep the figures of one layer."""
        row = tuple(asdict(measured)[n] for n in ("layer", "option", "bytes", "loss", "us", "way"))
        self._run("insert or replace into layer values (?, ?, ?, ?, ?, ?)", *row)

    def alone(self) -> list[Alone]:
        """Read the figures of single layers."""
        rows = self._run("select layer, option, bytes, loss, us, way from layer order by rowid")
        with self._named():
            return [stored.alone_of(row) for row in rows]

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
        """Keep a candidate's figures."""
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
        """List the candidates that were evaluated, in the order in which they were begun."""
        rows = self._run(
            "select candidate, figures from evaluation where stage=? and state='done' "
            "order by number",
            stage,
        )
        with self._named():
            return [
                (self._candidate(text), stored.figures_of(figures, self._costs))
                for text, figures in rows
            ]

    def model(self, stage: Stage, candidate: Candidate) -> bytes:
        """Read the model that was made of a candidate."""
        rows = self._run(
            "select model from evaluation where stage=? and candidate=?",
            stage,
            json.dumps(candidate),
        )
        with self._named():
            return stored.model_of(rows[0][0] if rows else None)

    def in_state(self, stage: Stage, state: State) -> list[Candidate]:
        """List the candidates in a state; ``running`` are those that were under way when a process
        died.
        """
        rows = self._run(
            "select candidate from evaluation where stage=? and state=? order by number",
            stage,
            state,
        )
        with self._named():
            return [self._candidate(text) for (text,) in rows]

    def _candidate(self, text: object) -> Candidate:
        return stored.candidate_of(text, self._choices)

    def errors(self) -> list[str]:
        """List why candidates failed."""
        rows = self._run("select error from evaluation where state='failed' order by number")
        return [str(error) for (error,) in rows]

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def opened(
    folder: Path,
    identity: Mapping[str, str],
    choices: Sequence[Sequence[str]] | None = None,
    costs: Collection[str] = (),
) -> Storage:
    """Open the storage in a search's folder, which is made where there is none. Raises
    LucioleError for a folder that cannot be made or written, for links to files elsewhere, and as
    ``Storage`` does.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QuantizeError(f"{folder}: {error.strerror}") from None
    for name in ("search.db", "search.db-wal", "search.db-shm"):  # SQLite's own beside the first
        if (folder / name).is_symlink():
            raise QuantizeError(
                f"{folder / name} is a link: a search writes to files of its own, take another "
                "folder, or remove it"
            )
        check_writable(folder / name)
    return Storage(folder / "search.db", identity, choices, costs)


def _hint(error: sqlite3.Error) -> str:
    """Advise on a disk that is full, empty for other errors."""
    name: str = getattr(error, "sqlite_errorname", "")  # not where Python itself refuses
    if name != "SQLITE_FULL" and "IOERR" not in name:
        return ""
    return "; what was found is kept, and with more room the same command goes on"
