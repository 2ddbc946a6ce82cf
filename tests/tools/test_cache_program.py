"""``luciole cache``: archives of compiled kernels, made on one machine and read on another."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from luciole.exporters import save
from luciole.kernels.jit import archive, objects
from luciole.kernels.jit.ahead import ahead_folders
from luciole.kernels.jit.cache import cache_version, kernel_cache
from luciole.schema.errors import LucioleError
from luciole.tools.cache import main
from luciole.tools.common.command import FAILED, FINE, WRONG_USAGE
from luciole.tools.random_models import dense
from tests.cache_support import CLEAN, adding, files, outcome, run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two empty caches, the first in use."""
    monkeypatch.delenv("LUCIOLE_KERNELS", raising=False)
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, "first")
    yield tmp_path
    forget()


def forget() -> None:
    kernel_cache.cache_clear()
    ahead_folders.cache_clear()
    cache_version.cache_clear()
    objects.used.clear()


def use(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Go to a machine with this cache."""
    monkeypatch.setenv("LUCIOLE_CACHE", name)
    forget()


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = FINE) -> str:
    """What the program prints, results and messages."""
    assert main(words) == code
    out, err = capsys.readouterr()
    return (out + err).strip()


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    answer: dict[str, object] = json.loads(said(capsys, *words, "--json"))
    return answer


def test_an_archive_carries_kernels_to_another_cache(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome() == CLEAN
    assert run(adding(5), 4) == 9
    count = kernel_cache().contents()[0]
    assert f"exported  {count} kernels to k.zip, " in said(capsys, "export", "k.zip")
    use(monkeypatch, "second")
    assert f"imported  {count} kernels from k.zip, " in said(capsys, "import", "k.zip")
    contents = [
        {p.name: p.read_bytes() for p in (here / c).rglob("*.o")} for c in ("first", "second")
    ]
    assert contents[0] == contents[1]
    assert outcome() == CLEAN
    assert kernel_cache().compiled == 0


def test_an_archive_of_models_holds_what_they_need(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exports are made in processes of their own: this one has kernels already."""
    assert run(adding(7), 4) == 11
    save(dense((8, 4)), "a.tflite")
    count = exported("k.zip")
    with zipfile.ZipFile("k.zip") as made:
        names = made.namelist()
    assert count == len(names) - 1 > 1
    assert not any("add-7" in name for name in names)
    use(monkeypatch, "second")
    assert told(capsys, "import", "k.zip")["kernels"] == count
    before = {path: path.stat().st_mtime_ns for path in (here / "second").rglob("*.o")}
    assert exported("again.zip") == count
    assert {path: path.stat().st_mtime_ns for path in (here / "second").rglob("*.o")} == before
    assert Path("again.zip").read_bytes() == Path("k.zip").read_bytes()


def exported(archive: str) -> int:
    """How many kernels of a model a process of its own puts into an archive."""
    words = ["cache", "export", archive, "--models", "a.tflite", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "luciole", *words], capture_output=True, check=True
    )
    return int(json.loads(done.stdout)["kernels"])


def test_the_program_shows_folders(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome() == CLEAN
    (file,) = files(here / "first")
    lines = said(capsys).splitlines()
    assert lines[0].startswith("cache  ")
    assert lines[0].endswith(f"in {file.parent}")
    shown = told(capsys)
    assert shown["cache"] == {
        "folder": str(file.parent),
        "kernels": len(list(file.parent.iterdir())),
        "bytes": sum(path.stat().st_size for path in file.parent.iterdir()),
        "fault": "",
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("export",), "export takes a FILE"),
        (("import", "k.zip", "--models", "a.tflite"), "--models goes with export"),
    ],
)
def test_the_program_refuses_words_that_do_not_go_together(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in said(capsys, *words, code=WRONG_USAGE)


def test_an_export_refuses_an_empty_cache(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds no kernels: luciole warmup" in said(capsys, "export", "k.zip", code=FAILED)
    assert not Path("k.zip").exists()


def test_an_import_refuses_a_cache_that_is_not_kept(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(capsys)
    use(monkeypatch, "second")
    (here / "second").mkdir()
    (here / "second").chmod(0o777)
    assert "others can write to" in said(capsys, "import", "k.zip", code=FAILED)
    assert list((here / "second").iterdir()) == []


def made(capsys: pytest.CaptureFixture[str]) -> bytes:
    """An archive with ``adding``'s kernel."""
    assert outcome() == CLEAN
    said(capsys, "export", "k.zip")
    return Path("k.zip").read_bytes()


def rewritten(content: dict[str, bytes]) -> None:
    with zipfile.ZipFile("k.zip", "w") as target:
        for name, data in content.items():
            target.writestr(name, data)


def without_facts(content: dict[str, bytes]) -> None:
    del content["luciole-kernels.json"]


def with_other_facts(content: dict[str, bytes]) -> None:
    content["luciole-kernels.json"] = b"[]"


def with_a_path(content: dict[str, bytes]) -> None:
    content[f"../{max(content)}"] = content[max(content)]


def with_a_strange_file(content: dict[str, bytes]) -> None:
    content["readme.txt"] = b"x"


def with_a_changed_kernel(content: dict[str, bytes]) -> None:
    """The ZIP file is whole, the kernel is not."""
    name = next(name for name in content if name.endswith(".o"))
    content[name] = content[name][:-1] + b"x"


def with_a_misplaced_kernel(content: dict[str, bytes]) -> None:
    name = next(name for name in content if name.endswith(".o"))
    content[f"other-{'0' * 16}.o"] = content.pop(name)


def with_a_huge_kernel(content: dict[str, bytes]) -> None:
    content[f"huge-{'0' * 16}.o"] = bytes((16 << 20) + 1)


@pytest.mark.parametrize(
    "change",
    [
        without_facts,
        with_other_facts,
        with_a_path,
        with_a_strange_file,
        with_a_changed_kernel,
        with_a_misplaced_kernel,
        with_a_huge_kernel,
    ],
)
def test_an_import_refuses_foreign_archives(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, bytes]], None],
) -> None:
    made(capsys)
    with zipfile.ZipFile("k.zip") as source:
        content = {name: source.read(name) for name in source.namelist()}
    change(content)
    rewritten(content)
    refused(monkeypatch, capsys, "k.zip is no whole archive of compiled kernels")


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sentence: str
) -> None:
    """One sentence, and nothing is written."""
    use(monkeypatch, "second")
    assert said(capsys, "import", "k.zip", code=FAILED) == f"luciole: error: {sentence}"
    assert kernel_cache().names() == []


def test_an_import_refuses_kernels_of_another_version(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(capsys)
    facts = archive.facts()
    with zipfile.ZipFile("k.zip") as source:
        content = {name: source.read(name) for name in source.namelist()}
    said_there = json.loads(content["luciole-kernels.json"])
    content["luciole-kernels.json"] = json.dumps({**said_there, "numba": "0.1"}).encode()
    rewritten(content)
    version, llvmlite, python = facts["version"], facts["llvmlite"], facts["python"]
    sentences = [
        f"luciole's kernels {version}, numba {numba}, llvmlite {llvmlite}, {python}"
        for numba in ("0.1", facts["numba"])
    ]
    said = f"k.zip holds kernels of {sentences[0]}; here it is {sentences[1]}"
    refused(monkeypatch, capsys, said)


def test_an_archive_refuses_every_cut_and_every_change(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each byte is turned: what is read all the same is what was written (times, comments)."""
    content = made(capsys)
    whole = archive.files_of(content)
    for end in range(0, len(content), 7):
        with pytest.raises(LucioleError, match="is no whole archive"):
            archive.files_of(content[:end])
    for place in range(len(content)):
        turned = bytearray(content)
        turned[place] ^= 0x55
        try:
            found = archive.files_of(bytes(turned))
        except LucioleError:
            continue
        assert found == whole
