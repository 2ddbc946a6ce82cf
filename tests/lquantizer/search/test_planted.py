"""A folder whose ``search.db`` is not what a search wrote: a sentence, and nothing is done."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import luciole
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.storage import Storage
from tests.networks import network, random

X = random(1, 40, 20)
OPTIONS = SearchOptions(evaluations=3, options=("dynamic:int8", "float"), files=2, few=10)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a search filled."""
    folder = tmp_path_factory.mktemp("good")
    search(folder)
    return folder


def search(folder: Path) -> None:
    luciole.search(network(), X, folder, OPTIONS, say=lambda line: None)


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "front")
    return tmp_path / "front"


def damage(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "search.db", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def test_what_was_written_is_read_again(folder: Path) -> None:
    search(folder)


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "statement",
    [
        f"update evaluation set candidate='{DEEP}' where number=0",
        f"update evaluation set figures='{DEEP}'",
        "update evaluation set figures='[1]'",
        "update evaluation set figures=null",
        "update evaluation set figures=x'00ff'",
        """update evaluation set figures='{"bytes": "1", "loss": 0, "agreement": null}'""",
        """update evaluation set figures='{"bytes": 1, "loss": [], "agreement": null}'""",
        """update evaluation set figures='{"bytes": 1, "loss": NaN, "agreement": null}'""",
        """update evaluation set figures='{"bytes": 1, "loss": 0, "agreement": {}}'""",
        """update evaluation set figures='{"bytes": 1, "loss": 0, "agreement": 1, "costs": 3}'""",
        """update evaluation set figures='{"bytes": 1, "loss": 0}'""",
        "update evaluation set candidate='5' where number=0",
        "update evaluation set candidate='[1, 2]' where number=0",
        """update evaluation set candidate='["levels:w1a1", "odd"]' where number=0""",
        """update evaluation set candidate='["dynamic:int8"]' where number=0""",
        "update evaluation set candidate=7 where number=0",
        "update layer set bytes='many'",
        "update layer set loss='much'",
        "update layer set loss=null",
        "update layer set us=x'00'",
        "update layer set way=null",
        "update layer set way='refit 1.2.3'",
        "update layer set layer=x'ff' where option='dynamic:int8' and layer='fc1'",
        "update study set value='soon' where key='float_us'",
        "update study set value='nan' where key='float_us'",
        "update evaluation set model=null where stage='fitted'",
        "update evaluation set model=5 where stage='fitted'",
        "update evaluation set model='text' where stage='fitted'",
    ],
    ids=lambda statement: statement[:50],
)
def test_a_search_refuses_rows_that_none_wrote(folder: Path, statement: str) -> None:
    damage(folder, statement)
    with pytest.raises(QuantizeError, match="was not written by this search") as error:
        search(folder)
    assert "\n" not in str(error.value)
    assert str(folder / "search.db") in str(error.value)


@pytest.mark.parametrize(
    "statements",
    [
        (
            "alter table evaluation rename to other",
            "create view evaluation as select * from other",
        ),
        ("create trigger t after insert on layer begin delete from study; end",),
        ("alter table layer add column more text",),
        ("create table more (x)",),
    ],
    ids=["view", "trigger", "column", "table"],
)
def test_a_search_refuses_other_tables(folder: Path, statements: tuple[str, ...]) -> None:
    damage(folder, *statements)
    with pytest.raises(QuantizeError, match="its tables are others"):
        search(folder)


@pytest.mark.parametrize("name", ["search.db", "search.db-wal", "search.db-shm"])
@pytest.mark.parametrize("dangling", [False, True])
def test_a_search_refuses_links(folder: Path, name: str, dangling: bool) -> None:
    elsewhere = folder.parent / "elsewhere"
    if not dangling:
        elsewhere.write_bytes(b"precious")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(QuantizeError, match=f"{name} is a link: a search writes to files of its"):
        search(folder)
    assert elsewhere.exists() != dangling
    assert dangling or elsewhere.read_bytes() == b"precious"


def test_a_storage_that_was_only_begun_is_taken(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "search.db")) as db:
        db.execute("create table study (key text primary key, value text not null)")
    with closing(Storage(tmp_path / "search.db", {})) as storage:
        assert storage.found("fitted") == []
