"""Machine code that was made ahead for a class of processors is read where it fits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

from luciole.ir import LucioleError
from luciole.kernels.jit import ahead, cache, classes, objects
from luciole.kernels.jit.ahead import ahead_folders
from luciole.kernels.jit.cache import cache_version, kernel_cache
from luciole.kernels.jit.choice import _host, chosen, parsed, told
from tests.cache_support import (
    CLEAN,
    ONE,
    PLANTED,
    SOMEBODY,
    adding,
    as_users,
    files,
    needs_root,
    outcome,
    plant_as,
    public_folder,
)

OWN = " ".join(told(*parsed("x86-64-v3")))
"""What LLVM is told of a class that the machines of these tests belong to by a patch."""


def forget() -> None:
    """As in a new process."""
    kernel_cache.cache_clear()
    ahead_folders.cache_clear()
    cache_version.cache_clear()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a machine of a class."""
    monkeypatch.setenv("LUCIOLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LUCIOLE_KERNELS", raising=False)
    monkeypatch.setattr(ahead, "PACKED", tmp_path / "packed")
    monkeypatch.setattr(objects, "fitting", lambda: [OWN])
    forget()
    yield tmp_path
    forget()


def named(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a folder that LUCIOLE_KERNELS names."""
    monkeypatch.setenv("LUCIOLE_KERNELS", str(here / "named"))
    return plant_as(OWN, here / "named")


def test_a_class_s_kernel_is_read_from_the_package_and_nothing_is_written(here: Path) -> None:
    file = plant_as(OWN, here / "packed")
    file.parent.chmod(0o555)
    assert outcome() == PLANTED
    assert files(here / "cache") == []


def test_a_class_s_kernel_is_read_from_the_folder_that_a_variable_names(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(here, monkeypatch)
    assert outcome() == PLANTED
    assert files(here / "cache") == []


def test_a_class_s_kernel_in_the_cache_is_read(here: Path) -> None:
    """As ``luciole cache import`` puts it there."""
    plant_as(OWN, here / "cache")
    assert outcome() == PLANTED


def test_what_is_in_the_cache_comes_first(here: Path) -> None:
    assert outcome() == CLEAN
    plant_as(OWN, here / "packed")
    assert outcome() == CLEAN


def test_a_package_may_be_linked_and_another_user_s(here: Path) -> None:
    """Installers make hard links and keep owners; the programs beside it are no safer."""
    file = plant_as(OWN, here / "packed")
    os.link(file, here / "other")
    file.chmod(0o666)
    file.parent.chmod(0o777)
    assert outcome() == PLANTED


def by_another_class(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "fitting", lambda: [OWN.replace("v3", "v2")])


def by_no_class(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "fitting", list)


def by_a_cut(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def by_another_kernel(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole file under a name that is not its own."""
    name = objects._file_name(adding(5).name, OWN)
    file.write_bytes(objects.packed(name, *adding(1000).compile()))


def by_a_folder(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.unlink()
    file.mkdir()


def by_another_numba(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: f"{version(name)}.1")


def by_another_python(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "EXTENSION_SUFFIXES", [".cpython-399-x86_64-linux-gnu.so"])


Change = Callable[[Path, pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    "change",
    [
        by_another_class,
        by_no_class,
        by_a_cut,
        by_another_kernel,
        by_a_folder,
        by_another_numba,
        by_another_python,
    ],
)
@pytest.mark.parametrize("place", ["packed", "named"])
def test_what_does_not_fit_is_compiled(
    here: Path, monkeypatch: pytest.MonkeyPatch, change: Change, place: str
) -> None:
    file = plant_as(OWN, here / "packed") if place == "packed" else named(here, monkeypatch)
    change(file, monkeypatch)
    forget()
    assert outcome() == CLEAN
    assert len(files(here / "cache")) == 1


def by_anybody(file: Path) -> None:
    file.parent.chmod(0o777)


def by_a_link(file: Path) -> None:
    moved = file.parent.rename(file.parent.with_name("moved"))
    file.parent.symlink_to(moved)


def by_somebody_else(file: Path) -> None:
    os.chown(file.parent, SOMEBODY, SOMEBODY)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (by_anybody, "others can write to"),
        (by_a_link, "is a link, not a folder"),
        pytest.param(by_somebody_else, f"belongs to user {SOMEBODY}", marks=needs_root),
    ],
)
def test_a_named_folder_refuses_what_others_may_have_written(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[Path], None],
    fault: str,
) -> None:
    """The kernel is compiled, and one line says why."""
    change(named(here, monkeypatch))
    assert outcome() == CLEAN
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("luciole: kernels made ahead are not used: ")
    assert fault in line


def test_a_named_folder_refuses_files_that_others_may_have_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(here, monkeypatch).chmod(0o666)
    assert outcome() == CLEAN


def test_a_folder_that_is_not_there_holds_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUCIOLE_KERNELS", str(here / "nowhere"))
    assert outcome() == CLEAN
    assert not (here / "nowhere").exists()


@needs_root
def test_a_user_reads_what_root_made_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And a process with rights of several users does not."""
    if not classes.names():
        pytest.skip("this machine is of no class")
    monkeypatch.delenv("LUCIOLE_KERNELS", raising=False)
    with public_folder() as folder:
        file = plant_as(classes.fitting()[0], folder / "all")
        for path in (*file.parents[:3], file):
            path.chmod(0o755)
        given = {"HOME": folder / "home", "LUCIOLE_KERNELS": folder / "all"}
        ran = as_users(given, [(ONE, ONE), ((SOMEBODY, SOMEBODY, 0), ONE)])
        assert [found.outcome for found in ran] == [PLANTED, CLEAN]


MADE = """
import numpy as np
from luciole.interpreter import Interpreter
from luciole.ir.ops.activations import Tanh
from luciole.kernels.jit import kernel_cache
from luciole.tools.random_models import convolutions, in_int8
graph = (model := convolutions(channels=24)).graph
graph.outputs = [graph.ops[2].results[0]]
for op in reversed(graph.ops[3:]):
    graph.remove(op)
graph.outputs = graph.append(Tanh(graph.outputs[0]), "y").results
interpreter = Interpreter(in_int8(model))
x = np.random.default_rng(0).normal(size=graph.inputs[0].shape)
(y,) = interpreter.run((8 * x).astype(interpreter.get_input_details()[0]["dtype"])).values()
print(y.tobytes().hex(), kernel_cache().compiled)
"""
"""Convolutions and a function of bytes, whose kernels depend on the processor."""


@pytest.mark.parametrize("text", classes.CLASSES)
def test_what_is_made_for_a_class_computes_the_same_without_compiling(
    text: str, tmp_path: Path
) -> None:
    """Compiled for the class, then read with an empty cache: by the machine itself where it is of
    the class, and for the first of its classes also where it is named.
    """
    try:
        chosen(text, _host())
    except LucioleError as error:
        pytest.skip(str(error))
    ahead = {"LUCIOLE_KERNELS": str(tmp_path / "ahead")}
    ran = [(tmp_path / "ahead", {"LUCIOLE_CPU": text})]
    if text not in classes.names()[1:]:
        ran += [(tmp_path / "first", {"LUCIOLE_CPU": text, **ahead})]
    if text in classes.names():
        ran += [(tmp_path / "second", ahead)]
    results = []
    for folder, variables in ran:
        environment = {**os.environ, "LUCIOLE_CACHE": str(folder), **variables}
        command = [sys.executable, "-c", MADE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        results.append(done.stdout.split())
    assert int(results[0].pop()) > 5
    assert [int(result.pop()) for result in results[1:]] == [0] * len(results[1:])
    assert all(result == results[0] for result in results)
