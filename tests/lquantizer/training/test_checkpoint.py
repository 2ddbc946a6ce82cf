"""What a fine-tuning writes after each epoch, and how it goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.interpreter.records import digests
from luciole.ir import LucioleError
from luciole.lquantizer.training import FinetuneSettings, finetune
from luciole.lquantizer.training.parameters import trained_ops
from tests.lquantizer.training.models import (
    FEW,
    constants,
    digits,
    plain,
    tune,
)


class StoppedError(Exception):
    """Somebody pressed the button."""


def stop_after(epoch: int) -> Callable[[str], None]:
    def report(line: str) -> None:
        if line.startswith(f"epoch {epoch}/"):
            raise StoppedError

    return report


def test_a_resumed_run_is_equal_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with pytest.raises(StoppedError):
        tune(2, checkpoint=path, report=stop_after(1))
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    resumed = tune(2, checkpoint=path, resume=True)
    whole = plain(2)
    assert constants(resumed.model) == constants(whole.model)
    figures = [
        [(e.epoch, e.loss, e.held_back_loss, e.agreement) for e in r.history]
        for r in (resumed, whole)
    ]
    assert figures[0] == figures[1]
    again = tune(2, checkpoint=path, resume=True)
    assert constants(again.model) == constants(whole.model)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A checkpoint of a run of one epoch, which there was none to resume for, and its lines."""
    path, lines = tmp_path_factory.mktemp("run") / "run.npz", list[str]()
    tune(1, checkpoint=path, resume=True, report=lines.append)
    return path, lines


def test_a_run_without_a_checkpoint_to_resume_starts_from_the_student(
    ended: tuple[Path, list[str]],
) -> None:
    path, lines = ended
    assert "there is no checkpoint yet" in lines[0]
    with np.load(path, allow_pickle=False) as file:
        assert any(name.startswith("now/first:") for name in file.files)


def test_a_checkpoint_of_something_else_is_refused(ended: tuple[Path, list[str]]) -> None:
    teacher, student, records, labels = digits()
    path, _ = ended
    options: dict[str, Any] = {"epochs": 1, "checkpoint": path, "resume": True}
    settings = FinetuneSettings(**FEW)
    other = student.clone()
    trained_ops(other.graph)[0].input_scales.set_data(np.array([0.5], np.float32))
    with pytest.raises(LucioleError, match=r"run\.npz: it was made with other models"):
        finetune(other, teacher, records, settings=settings, **options)
    with pytest.raises(LucioleError, match="made with other records"):
        finetune(student, teacher, records, labels=labels, settings=settings, **options)
    with pytest.raises(LucioleError, match="made with other settings"):
        finetune(student, teacher, records, settings=FinetuneSettings(seed=1, **FEW), **options)
    options["learned_from"] = digests({name: array[:100] for name, array in records.items()})
    with pytest.raises(LucioleError, match="made with other records held back"):
        finetune(student, teacher, records, settings=settings, **options)


def test_a_file_that_is_no_checkpoint_is_refused(
    ended: tuple[Path, list[str]], tmp_path: Path
) -> None:
    path, content = tmp_path / "run.npz", ended[0].read_bytes()
    for wrong in (b"", b"hello", content[: len(content) // 2]):
        path.write_bytes(wrong)
        with pytest.raises(LucioleError, match=r"run\.npz: it was not written by a fine-tuning"):
            tune(1, checkpoint=path, resume=True)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(LucioleError, match="it was not written by"):
        tune(1, checkpoint=path, resume=True)


def test_a_checkpoint_in_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LucioleError, match="there is no folder"):
        tune(1, checkpoint=tmp_path / "nowhere" / "run.npz")
